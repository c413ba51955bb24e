//! Sources shared by several gateways: each source is polled by the gateway that holds its lease.
//!
//! Leases are stored in an existing cluster; the gateways form none of their own.
//!
//! - [`share`]: decides which leases to take and release; [`manager`]: the rounds of one gateway;
//! - `postgres`: advisory locks, with `peers`: the connections of other gateways; `nats`: a key-value bucket of NATS JetStream,
//!   with `bucket`: rounds with such a bucket, and `registry`: live gateways and lease holders according to its keys.

#[cfg(any(feature = "nats", test))]
mod bucket;
pub mod manager;
#[cfg(feature = "nats")]
mod nats;
#[cfg(any(feature = "postgres", test))]
mod peers;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "nats", test))]
mod registry;
pub mod share;
#[cfg(test)]
mod simulation;

pub use manager::{Lease, Leases};

use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use core::time::Duration;
use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use tokio::time::Instant;

/// Shortest validity of a lease in NATS without renewal.
#[cfg(any(feature = "nats", test))]
const LEASE_MIN: Duration = Duration::from_secs(1);

/// The validity of leases in NATS without renewal.
#[cfg(any(feature = "nats", test))]
fn lease_time(every: Duration) -> Duration {
    LEASE_MIN.max(3 * every)
}

/// The result of a round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Round {
    /// The sources whose leases this gateway holds.
    pub held: BTreeSet<String>,
    /// Those of them to release once they have stopped, because other gateways have fewer.
    pub excess: Vec<String>,
    /// The number of gateways in the group.
    pub members: usize,
    /// When the leases expire without another round; `None` if they end with the connection.
    pub until: Option<Instant>,
}

/// A lease service.
pub trait Cluster: Send {
    /// A short description for users.
    fn describe(&self) -> String;

    /// Whether leases outlive the connection until they expire.
    fn keeps_leases(&self) -> bool {
        false
    }

    /// Default number of rounds in the shortest interval of the sources.
    fn rounds_per_interval(&self) -> u32 {
        2
    }

    /// Lets running sources continue without a connection. Their leases are taken first when the connection returns.
    fn goes_on(&mut self) {}

    /// Releases leases, checks those of other gateways, and takes free ones of `wanted`. The next round is due after `every`.
    fn round<'a>(
        &'a mut self,
        wanted: &'a [String],
        give_back: &'a [String],
        every: Duration,
    ) -> BoxFuture<'a, Result<Round, Fault>>;

    /// Closes the connection, which ends leases without an expiration.
    fn leave(&mut self);

    /// Waits until the connection of the last round has ended, if that can be detected before the next round.
    fn broken(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(core::future::pending())
    }

    /// Longest validity of expiring leases after the connection is lost: other gateways may detect the loss and take them.
    fn grace(&self) -> Duration {
        Duration::ZERO
    }
}

/// What to do without a connection to the lease service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreachable {
    /// Sources stop, so that none is polled twice.
    Stop,
    /// Running sources continue.
    GoOn,
}

/// `[lease]` of a file.
pub struct LeaseConfig {
    /// The lease service.
    pub cluster: Box<dyn Cluster>,
    /// The time between rounds. Default: half the shortest interval of the sources; with PostgreSQL a quarter.
    pub check_every: Option<Duration>,
    /// What to do without a connection.
    pub unreachable: Unreachable,
}

impl core::fmt::Debug for LeaseConfig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LeaseConfig").field("cluster", &self.cluster.describe()).finish_non_exhaustive()
    }
}

impl LeaseConfig {
    /// Takes the settings of the section.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields) -> Result<Self, Mistake> {
        let (line, group) = fields.required("group", "\"plant\"")?;
        if group.len() > 100 || group.chars().any(char::is_control) {
            let hint = "names have at most 100 bytes and no control characters";
            return Err(fields.mistake_in(line, "group", format!("{group:?} is no name"), hint));
        }
        let (line, url) = fields.required("url", "\"postgresql://gateway@database/plant\"")?;
        let cluster = cluster(fields, line, &url, &group)?;
        let check_every = fields.span("check_every")?;
        let words = [("stop", Unreachable::Stop), ("go-on", Unreachable::GoOn)];
        let unreachable = fields.word("when_unreachable", &words)?.unwrap_or(Unreachable::Stop);
        fields.finish()?;
        Ok(Self { cluster, check_every, unreachable })
    }
}

/// The lease service at a URL.
fn cluster(fields: &mut Fields, line: usize, url: &str, group: &str) -> Result<Box<dyn Cluster>, Mistake> {
    // A PostgreSQL database can also be given as connection parameters: host=… user=… dbname=….
    match url.split_once("://").map_or("postgresql", |(scheme, _)| scheme) {
        #[cfg(feature = "postgres")]
        "postgresql" | "postgres" => Ok(Box::new(postgres::Locks::take(fields, line, url, group)?)),
        #[cfg(feature = "nats")]
        "nats" | "tls" => Ok(Box::new(nats::take(fields, line, url, group)?)),
        _ => {
            let problem = format!("no leases of {group:?} are kept there");
            let hint = match cfg!(feature = "nats") {
                true => "write \"postgresql://user@host:5432/database\" or \"nats://host:4222\"",
                false => "write \"postgresql://user@host:5432/database\"; NATS needs the feature nats",
            };
            Err(fields.mistake_in(line, "url", problem, hint))
        }
    }
}

#[cfg(test)]
#[cfg(feature = "postgres")]
mod tests {
    use super::*;
    use crate::fields::Sections;
    use std::path::Path;

    fn take(text: &str) -> Result<LeaseConfig, Mistake> {
        let text = format!("[lease]\n{text}");
        LeaseConfig::take(&mut Sections::parse(Path::new("g"), &text).unwrap().lease.unwrap())
    }

    #[test]
    fn a_section_names_the_group_and_who_keeps_its_leases() {
        let taken =
            take("group = \"plant\"\nurl = \"postgresql://gateway@db/plant\"\ncheck_every = \"100 ms\"\n")
                .unwrap();
        assert_eq!(taken.cluster.describe(), "PostgreSQL db:5432");
        assert_eq!(
            (taken.check_every, taken.unreachable),
            (Some(Duration::from_millis(100)), Unreachable::Stop)
        );
        for (text, key) in [
            ("group = \"a\"\nurl = \"redis://db\"\n", "url"),
            ("group = \"a\"\nurl = \"postgresql://gateway:secret@db/plant\"\n", "url"),
            (
                "group = \"a\"\nurl = \"postgresql://gateway@db/plant\"\nwhen_unreachable = \"panic\"\n",
                "when_unreachable",
            ),
            ("group = \"a\"\nurl = \"postgresql://gateway@db/plant\"\ngruop = 1\n", "gruop"),
            ("group = \"a\\u0007\"\nurl = \"postgresql://gateway@db/plant\"\n", "group"),
        ] {
            assert_eq!(take(text).unwrap_err().key, key, "{text}");
        }
    }
}
