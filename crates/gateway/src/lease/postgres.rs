//! Leases as advisory locks of a PostgreSQL database. A lock is held by a connection and ends with it.
//!
//! A lock has two numbers: the group and the source. Number 0 is shared by all gateways of the group, so that they detect each
//! other. The name of a connection, visible to all users, contains what other gateways must know.

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

/// Shortest validity of leases without another check. When it has passed, the leases of a killed gateway can be taken; values
/// should be fresh again within two intervals of half a second.
const LEASE_MIN: Duration = Duration::from_millis(750);
/// The database detects a lost machine within four seconds.
const BEGIN: &str = "SET tcp_keepalives_idle = 1; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 3; \
                     SET tcp_user_timeout = 4000";
/// The locks of a group: source number, holding connection and its name.
const LOOK: &str = "SELECT objid::bigint, pid, pg_backend_pid(), current_setting('taktwerk.link', true), application_name \
                    FROM pg_locks LEFT JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted AND objsubid = 2 \
                    AND classid::bigint = $1 AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Advisory locks of a database.
pub(super) struct Locks {
    database: Database,
    group: i32,
    share: Share,
    link: Option<Link>,
    /// The leases that this gateway had with its last connection.
    had: BTreeSet<String>,
    /// Whether their sources are polled without a connection.
    goes_on: bool,
}

struct Link {
    client: Client,
    /// Closed when the connection has ended.
    ended: watch::Receiver<()>,
    pid: i32,
    /// A unique mark of the connection that holds the locks.
    mark: String,
    held: BTreeSet<String>,
    /// What the connection name currently says.
    told: Peer,
    peers: Peers,
    /// Whether it has not taken anything yet, because it has not observed the others for long enough.
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
            // Before other gateways can see the connection.
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
        // Publish this before taking anything.
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
        // Reuse a connection only if it has answered.
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
        // The own lock exists as long as the connection.
        if !members.contains_key(&link.pid) {
            return Ok(None);
        }
        let sharing = || members.iter().filter(|(_, peer)| !peer.is_new);
        let are_alike = sharing().all(|(_, peer)| peer.wants == own.wants);
        let pids: Vec<i32> = sharing().map(|(pid, _)| *pid).collect();
        if link.peers.look(own, members, (begin, now)) {
            // The group has changed: discard what was learnt about the others.
            self.share = Share::default();
        }
        let holder = |name: &String| by_number.get(&i64::from(number(name).cast_unsigned())).copied();
        let (take, give) = if link.is_new {
            // Take its previous leases immediately; otherwise this gateway would stop their sources.
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

    /// Tries to take locks.
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

    /// A missing connection is the first sign of a lost gateway, and a check takes only a millisecond. So check often.
    fn rounds_per_interval(&self) -> u32 {
        4
    }

    fn goes_on(&mut self) {
        self.goes_on = true;
    }

    fn broken(&mut self) -> BoxFuture<'_, ()> {
        match &mut self.link {
            Some(link) => Box::pin(async {
                // No value is ever sent.
                let _ = link.ended.changed().await;
            }),
            None => Box::pin(core::future::pending()),
        }
    }
}

/// Sets the name of a connection. The name contains no quotation marks.
fn name_of(own: Peer) -> String {
    format!("SET application_name = '{}'", own.name())
}

/// A pooler in transaction mode shares the connection that holds the locks.
const POOLED: &str = "the connection that holds the locks is not this gateway's own; \
                      connect to the database itself, not to a pooler in transaction mode";

/// Whether the connection that answered is the one that holds the locks, and no other client has used it.
fn is_same((pid, mark): (i32, &str), (answered, said): (i32, Option<&str>)) -> bool {
    pid == answered && said == Some(mark)
}

/// The number of a name: FNV-1a, identical in all versions, never 0.
fn number(name: &str) -> i32 {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.max(1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_connection_is_detected() {
        assert!(is_same((7, "a"), (7, Some("a"))));
        // Another connection; used by another gateway; reset.
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
