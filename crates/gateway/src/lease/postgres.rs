//! Leases as advisory locks of a PostgreSQL database: a lock is held by a connection and goes with it.
//!
//! A lock has two numbers: of the group, and of the source. Number 0 is shared by all gateways of the group, so that they
//! see each other.

use super::share::{Seen, Share};
use super::{Cluster, Round};
use crate::database::Database;
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use core::time::Duration;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Client;
use tokio_postgres::error::Error;

/// The database finds out within four seconds that a gateway's machine is gone.
const BEGIN: &str = "SET tcp_keepalives_idle = 1; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 3; \
                     SET tcp_user_timeout = 4000";
/// The locks of a group: the source's number, and the connection that holds it.
const LOOK: &str = "SELECT objid::bigint, pid, pg_backend_pid(), current_setting('taktwerk.link', true) \
                    FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2 \
                    AND classid::bigint = $1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Advisory locks of a database.
pub(super) struct Locks {
    database: Database,
    group: i32,
    share: Share,
    link: Option<Link>,
}

struct Link {
    client: Client,
    pid: i32,
    /// What nobody else calls the connection that holds the locks.
    mark: String,
    held: BTreeSet<String>,
}

impl Locks {
    pub(super) fn take(fields: &mut Fields, line: usize, url: &str, group: &str) -> Result<Self, Mistake> {
        let database = Database::take(fields, (line, url), |config| {
            config
                .application_name("taktwerk-gateway leases")
                .connect_timeout(Duration::from_secs(3))
                .tcp_user_timeout(Duration::from_secs(3));
        })?;
        Ok(Self { database, group: number(group), share: Share::default(), link: None })
    }

    async fn connect(&self) -> Result<Link, Fault> {
        let client = self.database.connect().await?;
        let begin = async {
            client.batch_execute(BEGIN).await?;
            let sql = "SELECT pg_backend_pid(), set_config('taktwerk.link', \
                       md5(random()::text || clock_timestamp()::text), false), pg_advisory_lock_shared($1, 0)";
            let row = client.query_one(sql, &[&self.group]).await?;
            Ok((row.try_get(0)?, row.try_get(1)?))
        };
        let (pid, mark) = begin.await.map_err(|error| self.database.failed(&error))?;
        Ok(Link { client, pid, mark, held: BTreeSet::new() })
    }

    async fn look(&mut self, wanted: &[String], give_back: &[String]) -> Result<Round, Fault> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => self.connect().await?,
        };
        let round = self.round_with(&mut link, wanted, give_back).await;
        let round = round.map_err(|error| self.database.failed(&error))?;
        let round = round.ok_or_else(|| Fault::other(self.database.target(), POOLED))?;
        // Only a connection that has answered is used again.
        self.link = Some(link);
        Ok(round)
    }

    async fn round_with(
        &mut self,
        link: &mut Link,
        wanted: &[String],
        give_back: &[String],
    ) -> Result<Option<Round>, Error> {
        for name in give_back {
            if link.held.remove(name) {
                let sql = "SELECT pg_advisory_unlock($1, $2)";
                link.client.query_one(sql, &[&self.group, &number(name)]).await?;
            }
        }
        let group = i64::from(self.group.cast_unsigned());
        let rows = link.client.query(LOOK, &[&group]).await?;
        let mut members = BTreeSet::new();
        let mut by_number: BTreeMap<i64, i32> = BTreeMap::new();
        for row in rows {
            let (number, pid): (i64, i32) = (row.try_get(0)?, row.try_get(1)?);
            if !is_same((link.pid, &link.mark), (row.try_get(2)?, row.try_get(3)?)) {
                return Ok(None);
            }
            if number == 0 {
                members.insert(pid);
            } else {
                by_number.insert(number, pid);
            }
        }
        // Its own lock is there as long as the connection.
        if !members.contains(&link.pid) {
            return Ok(None);
        }
        let holder = |name: &String| by_number.get(&i64::from(number(name).cast_unsigned())).copied();
        let taken = wanted.iter().filter(|name| holder(name).is_some_and(|pid| pid != link.pid));
        let taken: BTreeSet<String> = taken.cloned().collect();
        let own = members.iter().position(|pid| *pid == link.pid).unwrap_or(0);
        let asked = |pid: &i32| wanted.iter().filter(|name| holder(name) == Some(*pid)).count();
        let others: Vec<usize> = members.iter().filter(|pid| **pid != link.pid).map(asked).collect();
        // What others want is not known.
        let are_alike = false;
        let seen = Seen { others: &others, own, wanted, held: &link.held, taken: &taken, are_alike };
        let decision = self.share.decide(&seen);
        if !decision.take.is_empty() {
            let numbers: Vec<i32> = decision.take.iter().map(|name| number(name)).collect();
            let sql = "SELECT number, pg_try_advisory_lock($1, number) FROM unnest($2::int[]) AS number";
            let rows = link.client.query(sql, &[&self.group, &numbers]).await?;
            let mut got = BTreeSet::new();
            for row in rows {
                if row.try_get(1)? {
                    got.insert(row.try_get::<_, i32>(0)?);
                }
            }
            link.held.extend(decision.take.into_iter().filter(|name| got.contains(&number(name))));
        }
        let (held, members) = (link.held.clone(), members.len());
        Ok(Some(Round { held, excess: decision.give, members, until: None }))
    }
}

impl Cluster for Locks {
    fn describe(&self) -> String {
        self.database.target().to_owned()
    }

    fn round<'a>(
        &'a mut self,
        wanted: &'a [String],
        give_back: &'a [String],
        _: Duration,
    ) -> BoxFuture<'a, Result<Round, Fault>> {
        Box::pin(self.look(wanted, give_back))
    }

    fn leave(&mut self) {
        self.link = None;
    }
}

/// Behind a pooler in transaction mode others have the connection that holds the locks.
const POOLED: &str = "the connection that holds the locks is not this gateway's own; \
                      connect to the database itself, not to a pooler in transaction mode";

/// Whether the connection that has answered is the one that holds the locks, and nobody else has had it meanwhile.
fn is_same((pid, mark): (i32, &str), (answered, said): (i32, Option<&str>)) -> bool {
    pid == answered && said == Some(mark)
}

/// The number of a name: FNV-1a, which is the same in every version. Never 0.
fn number(name: &str) -> i32 {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.max(1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_others_have_too_is_noticed() {
        assert!(is_same((7, "a"), (7, Some("a"))));
        // Another one; another gateway has had it; it was reset.
        for answer in [(8, Some("a")), (7, Some("b")), (7, None)] {
            assert!(!is_same((7, "a"), answer), "{answer:?}");
        }
    }

    #[test]
    fn numbers_of_names_stay_the_same() {
        assert_eq!(number("").cast_unsigned(), 0x811c_9dc5);
        assert_eq!(number("foobar").cast_unsigned(), 0xbf9c_f968);
    }
}
