//! Sources that several gateways share: each is asked by the gateway that has its lease.
//!
//! Leases are kept by a cluster that is there anyway; this module has none of its own.
//!
//! - [`share`]: who takes and gives back what; [`manager`]: the rounds of one gateway;
//! - `postgres`: advisory locks, with `peers`: whose connections are there; `nats`: a key-value bucket of NATS JetStream, with `bucket`: rounds with such a bucket, and
//!   `registry`: who is alive and who has what, as its keys say it.

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

/// Shortest time for which a lease in NATS is good without being renewed.
#[cfg(any(feature = "nats", test))]
const LEASE_MIN: Duration = Duration::from_secs(1);

/// For how long leases in NATS are good without being renewed.
#[cfg(any(feature = "nats", test))]
fn lease_time(every: Duration) -> Duration {
    LEASE_MIN.max(3 * every)
}

/// What a round has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Round {
    /// The sources whose leases this gateway has.
    pub held: BTreeSet<String>,
    /// Those of them that it should give back, once they have stopped, because other gateways have fewer.
    pub excess: Vec<String>,
    /// Gateways of the group.
    pub members: usize,
    /// Until when the leases are good without another round, if they do not go with the connection.
    pub until: Option<Instant>,
}

/// Who keeps the leases.
pub trait Cluster: Send {
    /// What it is, in a few words for people.
    fn describe(&self) -> String;

    /// Whether leases stay when the connection is gone, until they expire.
    fn keeps_leases(&self) -> bool {
        false
    }

    /// How many rounds there are in the shortest interval of the sources, unless it is named.
    fn rounds_per_interval(&self) -> u32 {
        2
    }

    /// Sources that are asked go on without a connection: their leases are taken at once when it is back.
    fn goes_on(&mut self) {}

    /// Gives leases back, looks at those of others, and takes free ones of `wanted`. The next round is due after `every`.
    fn round<'a>(
        &'a mut self,
        wanted: &'a [String],
        give_back: &'a [String],
        every: Duration,
    ) -> BoxFuture<'a, Result<Round, Fault>>;

    /// Ends the connection, with which leases go that have no end of their own.
    fn leave(&mut self);

    /// Waits until the connection of the last round has ended, if that can be known before the next one.
    fn broken(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(core::future::pending())
    }

    /// For how long leases with an end are good at most when the connection is gone: others may see that it is, and take them.
    fn grace(&self) -> Duration {
        Duration::ZERO
    }
}

/// What to do without a connection to those who keep the leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreachable {
    /// Sources stop: none is asked twice.
    Stop,
    /// Sources that are asked go on.
    GoOn,
}

/// `[lease]` of a file.
pub struct LeaseConfig {
    /// Who keeps the leases.
    pub cluster: Box<dyn Cluster>,
    /// How often they are looked at. Half of the shortest interval of the sources unless it is named, with PostgreSQL a quarter of it.
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

/// Those who keep leases at a URL.
fn cluster(fields: &mut Fields, line: usize, url: &str, group: &str) -> Result<Box<dyn Cluster>, Mistake> {
    // A database can also be named as its own programs have it: host=… user=… dbname=….
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
