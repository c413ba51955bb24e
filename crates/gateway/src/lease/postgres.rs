//! Leases as advisory locks of a PostgreSQL database: a lock is held by a connection and goes with it.
//!
//! A lock has two numbers: of the group, and of the source. Number 0 is shared by all gateways of the group, so that they
//! see each other. The name of a connection, which all users may see, says what the others have to know of its gateway.

use super::peers::{Peer, Peers};
use super::share::{Seen, Share, fingerprint};
use super::{Cluster, Round};
use crate::database::Database;
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use core::time::Duration;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_postgres::Client;
use tokio_postgres::error::Error;

/// Shortest time for which leases are good without another look. Those of a gateway that is killed may be taken when it has
/// passed, and values are to be fresh again within two intervals of half a second.
const LEASE_MIN: Duration = Duration::from_millis(750);
/// The database finds out within four seconds that a gateway's machine is gone.
const BEGIN: &str = "SET tcp_keepalives_idle = 1; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 3; \
                     SET tcp_user_timeout = 4000";
/// The locks of a group: the source's number, the connection that holds it, and the name of that.
const LOOK: &str = "SELECT objid::bigint, pid, pg_backend_pid(), current_setting('taktwerk.link', true), application_name \
                    FROM pg_locks LEFT JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted AND objsubid = 2 \
                    AND classid::bigint = $1 AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Advisory locks of a database.
pub(super) struct Locks {
    database: Database,
    group: i32,
    share: Share,
    link: Option<Link>,
    /// What this gateway has had with its last connection.
    had: BTreeSet<String>,
    /// Whether that is asked without a connection.
    goes_on: bool,
}

struct Link {
    client: Client,
    /// Closed when the connection has ended.
    ended: watch::Receiver<()>,
    pid: i32,
    /// What nobody else calls the connection that holds the locks.
    mark: String,
    held: BTreeSet<String>,
    /// What the connection says of this gateway.
    told: Peer,
    peers: Peers,
    /// Whether it has taken nothing yet, because it does not know long enough who is there.
    is_new: bool,
}

impl Locks {
    pub(super) fn take(fields: &mut Fields, line: usize, url: &str, group: &str) -> Result<Self, Mistake> {
        let database = Database::take(fields, (line, url), |config| {
            config
                .application_name("taktwerk-gateway leases")
                .connect_timeout(Duration::from_secs(3))
                .tcp_user_timeout(Duration::from_secs(3));
        })?;
        Ok(Self {
            database,
            group: number(group),
            share: Share::default(),
            link: None,
            had: BTreeSet::new(),
            goes_on: false,
        })
    }

    async fn connect(&self, own: Peer) -> Result<Link, Fault> {
        let (client, ended) = self.database.connect_watched().await?;
        let begin = async {
            // Before others can see it.
            client.batch_execute(&format!("{BEGIN}; {}", name_of(own))).await?;
            let sql = "SELECT pg_backend_pid(), set_config('taktwerk.link', \
                       md5(random()::text || clock_timestamp()::text), false), pg_advisory_lock_shared($1, 0)";
            let row = client.query_one(sql, &[&self.group]).await?;
            Ok((row.try_get(0)?, row.try_get(1)?))
        };
        let (pid, mark) = begin.await.map_err(|error| self.database.failed(&error))?;
        let (held, peers) = (BTreeSet::new(), Peers::new());
        Ok(Link { client, ended, pid, mark, held, told: own, peers, is_new: true })
    }

    async fn look(&mut self, wanted: &[String], give_back: &[String], own: Peer) -> Result<Round, Fault> {
        // It says so before it takes anything.
        let is_back = self.goes_on && !self.had.is_empty();
        let mut link = match self.link.take() {
            Some(link) => link,
            None => self.connect(Peer { is_back, ..own }).await?,
        };
        link.is_new &= !link.peers.are_settled(Instant::now());
        if !link.is_new {
            self.had.clone_from(&link.held);
        }
        let own = Peer { is_new: link.is_new, is_back: link.is_new && is_back, ..own };
        let round = self.round_with(&mut link, wanted, give_back, own).await;
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
        own: Peer,
    ) -> Result<Option<Round>, Error> {
        if link.told != own {
            link.client.batch_execute(&name_of(own)).await?;
            link.told = own;
        }
        for name in give_back {
            if link.held.remove(name) {
                let sql = "SELECT pg_advisory_unlock($1, $2)";
                link.client.query_one(sql, &[&self.group, &number(name)]).await?;
            }
        }
        let group = i64::from(self.group.cast_unsigned());
        let begin = Instant::now();
        let rows = link.client.query(LOOK, &[&group]).await?;
        let now = Instant::now();
        let mut members = BTreeMap::new();
        let mut by_number: BTreeMap<i64, i32> = BTreeMap::new();
        for row in rows {
            let (number, pid): (i64, i32) = (row.try_get(0)?, row.try_get(1)?);
            if !is_same((link.pid, &link.mark), (row.try_get(2)?, row.try_get(3)?)) {
                return Ok(None);
            }
            if number == 0 {
                members.insert(pid, Peer::of_name(row.try_get::<_, Option<&str>>(4)?.unwrap_or_default()));
            } else {
                by_number.insert(number, pid);
            }
        }
        // Its own lock is there as long as the connection.
        if !members.contains_key(&link.pid) {
            return Ok(None);
        }
        let sharing = || members.iter().filter(|(_, peer)| !peer.is_new);
        let are_alike = sharing().all(|(_, peer)| peer.wants == own.wants);
        let pids: Vec<i32> = sharing().map(|(pid, _)| *pid).collect();
        if link.peers.look(own, members, (begin, now)) {
            // What was learnt of the others no longer holds.
            self.share = Share::default();
        }
        let holder = |name: &String| by_number.get(&i64::from(number(name).cast_unsigned())).copied();
        let (take, give) = if link.is_new {
            // Without the others this gateway would stop what it asks.
            let is_free = |name: &&String| self.goes_on && self.had.contains(*name) && holder(name).is_none();
            (wanted.iter().filter(is_free).cloned().collect(), Vec::new())
        } else if link.peers.are_settled(now) {
            let taken = wanted.iter().filter(|name| holder(name).is_some_and(|pid| pid != link.pid));
            let taken: BTreeSet<String> = taken.cloned().collect();
            let place = pids.iter().position(|pid| *pid == link.pid).unwrap_or(0);
            let asked = |pid: &i32| wanted.iter().filter(|name| holder(name) == Some(*pid)).count();
            let others: Vec<usize> = pids.iter().filter(|pid| **pid != link.pid).map(asked).collect();
            let seen =
                Seen { others: &others, own: place, wanted, held: &link.held, taken: &taken, are_alike };
            let decision = self.share.decide(&seen);
            (decision.take, decision.give)
        } else {
            (Vec::new(), Vec::new())
        };
        self.take_locks(link, take).await?;
        let (held, until) = (link.held.clone(), Some(own.until(begin)));
        Ok(Some(Round { held, excess: give, members: pids.len(), until }))
    }

    /// Tries for locks.
    async fn take_locks(&self, link: &mut Link, names: Vec<String>) -> Result<(), Error> {
        if names.is_empty() {
            return Ok(());
        }
        let numbers: Vec<i32> = names.iter().map(|name| number(name)).collect();
        let sql = "SELECT number, pg_try_advisory_lock($1, number) FROM unnest($2::int[]) AS number";
        let rows = link.client.query(sql, &[&self.group, &numbers]).await?;
        let mut got = BTreeSet::new();
        for row in rows {
            if row.try_get(1)? {
                got.insert(row.try_get::<_, i32>(0)?);
            }
        }
        link.held.extend(names.into_iter().filter(|name| got.contains(&number(name))));
        Ok(())
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
        every: Duration,
    ) -> BoxFuture<'a, Result<Round, Fault>> {
        let own = Peer {
            lease_time: LEASE_MIN.max(3 * every),
            wants: Some(fingerprint(wanted)),
            is_new: true,
            is_back: false,
        };
        Box::pin(self.look(wanted, give_back, own))
    }

    fn leave(&mut self) {
        self.link = None;
    }

    /// A connection that is missed is the first sign of a gateway that is gone, and a look takes a millisecond.
    fn rounds_per_interval(&self) -> u32 {
        4
    }

    fn goes_on(&mut self) {
        self.goes_on = true;
    }

    fn broken(&mut self) -> BoxFuture<'_, ()> {
        match &mut self.link {
            Some(link) => Box::pin(async {
                // Nothing is ever told.
                let _ = link.ended.changed().await;
            }),
            None => Box::pin(core::future::pending()),
        }
    }
}

/// Names a connection. The name has no quotation marks.
fn name_of(own: Peer) -> String {
    format!("SET application_name = '{}'", own.name())
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
