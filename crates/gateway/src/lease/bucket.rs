//! Leases as keys of a bucket with optimistic locking: a write names the revision that it replaces.

use super::registry::{Registry, Write, grace};
use super::{Cluster, LEASE_MIN, Round, lease_time};
use crate::fault::Fault;
use core::time::Duration;
use futures_util::future::{BoxFuture, try_join_all};
use std::collections::BTreeSet;
use tokio::time::Instant;

/// A key that has been written.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) revision: u64,
    /// The time from the creation of the bucket to this write, by the server's clock.
    pub(super) age: Duration,
}

/// A connection to a bucket.
pub(super) trait Bucket: Send {
    /// Writes a key; `None` if its revision differs from the one in the write.
    fn put<'a>(&self, write: &'a Write) -> BoxFuture<'a, Result<Option<u64>, Fault>>;

    /// Reads a key.
    fn read<'a>(&self, key: &'a str) -> BoxFuture<'a, Result<Option<Change>, Fault>>;

    /// The next write of a key of the group by any gateway. Existing keys come first.
    fn next(&mut self) -> BoxFuture<'_, Result<Change, Fault>>;

    /// Asks whether gateways have a connection. The answers have arrived when a later write is answered.
    fn probe<'a>(&self, ids: &'a [String]) -> BoxFuture<'a, Result<(), Fault>>;

    /// The gateways without a connection.
    fn unconnected(&mut self) -> BTreeSet<String>;

    /// Waits for the end of the connection.
    fn broken(&mut self) -> BoxFuture<'_, ()>;
}

/// Opens connections to a bucket.
pub(super) trait Connect: Send {
    type Bucket: Bucket;

    fn describe(&self) -> String;

    /// Connects as a gateway of a group. Creates the bucket if it does not exist.
    fn connect<'a>(&'a self, group: &'a str, id: &'a str) -> BoxFuture<'a, Result<Self::Bucket, Fault>>;

    /// A unique gateway name.
    fn name(&self) -> String;
}

/// Leases in a bucket.
pub(super) struct Keys<C: Connect> {
    connect: C,
    registry: Registry,
    link: Option<C::Bucket>,
    lease_time: Duration,
}

impl<C: Connect> Keys<C> {
    pub(super) fn new(connect: C, group: &str) -> Self {
        let registry = Registry::new(group, connect.name(), Instant::now());
        Self { connect, registry, link: None, lease_time: LEASE_MIN }
    }

    async fn look(&mut self, wanted: &[String], give_back: &[String]) -> Result<Round, Fault> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => {
                let link = self.connect.connect(self.registry.group(), self.registry.id()).await?;
                self.registry.connected(Instant::now());
                link
            }
        };
        if !self.renew(&mut link, wanted, give_back).await? {
            let id = self.connect.name();
            tracing::warn!(
                "this gateway did not renew its leases in time; other gateways may poll its sources"
            );
            self.registry.removed(id, Instant::now());
            // The next round starts again with another name.
            return Ok(Round::default());
        }
        let lapsed = self.registry.lapsed(&link.unconnected(), Instant::now());
        self.put_all(&mut link, lapsed).await?;
        let (take, excess) = self.registry.decide(wanted, Instant::now());
        self.put_all(&mut link, take).await?;
        let (held, until) = self.registry.held();
        let round = Round { held: held.clone(), excess, members: self.registry.members(), until };
        // Reuse a connection only if it has answered.
        self.link = Some(link);
        Ok(round)
    }

    /// Releases leases, renews the others, and reads all earlier writes; `false` if the leases are lost.
    async fn renew(
        &mut self,
        link: &mut C::Bucket,
        wanted: &[String],
        give_back: &[String],
    ) -> Result<bool, Fault> {
        let given = give_back.iter().filter_map(|name| self.registry.give_back(name)).collect();
        self.put_all(link, given).await?;
        let others: Vec<String> = self.registry.others().map(str::to_owned).collect();
        link.probe(&others).await?;
        let mut begin = Instant::now();
        let mut write = self.registry.renew(self.lease_time, wanted);
        let mut stored = link.put(&write).await?;
        if stored.is_none() {
            // An own write may have succeeded although its answer was lost.
            match link.read(&write.key).await? {
                Some(found) if !found.value.is_empty() => self.registry.correct(found.revision),
                _ => return Ok(false),
            }
            begin = Instant::now();
            write = self.registry.renew(self.lease_time, wanted);
            stored = link.put(&write).await?;
        }
        let Some(revision) = stored else { return Ok(false) };
        self.registry.renewed(revision, begin);
        loop {
            let change = link.next().await?;
            self.registry.seen(&change.key, &change.value, change.revision, Instant::now());
            if change.revision >= revision {
                self.registry.bucket_is_old(change.age, Instant::now());
                return Ok(true);
            }
        }
    }

    /// Writes keys. Keys that other gateways have changed in the meantime stay as they are.
    async fn put_all(&mut self, link: &mut C::Bucket, writes: Vec<Write>) -> Result<(), Fault> {
        let puts: Vec<_> = writes.iter().map(|write| link.put(write)).collect();
        let stored = try_join_all(puts).await?;
        for (write, revision) in writes.iter().zip(stored) {
            if let Some(revision) = revision {
                self.registry.seen(&write.key, &write.value, revision, Instant::now());
            }
        }
        Ok(())
    }
}

impl<C: Connect> Cluster for Keys<C> {
    fn describe(&self) -> String {
        self.connect.describe()
    }

    fn keeps_leases(&self) -> bool {
        true
    }

    fn round<'a>(
        &'a mut self,
        wanted: &'a [String],
        give_back: &'a [String],
        every: Duration,
    ) -> BoxFuture<'a, Result<Round, Fault>> {
        self.lease_time = lease_time(every);
        Box::pin(self.look(wanted, give_back))
    }

    fn leave(&mut self) {
        self.link = None;
    }

    fn broken(&mut self) -> BoxFuture<'_, ()> {
        match &mut self.link {
            Some(link) => link.broken(),
            None => Box::pin(core::future::pending()),
        }
    }

    fn grace(&self) -> Duration {
        grace(self.lease_time)
    }
}
