//! Links that are made and verified once and then used for many measurements.

use super::link::{Link, LinkError};
use super::probe::{Effort, Probed, probe};
use super::profile::{ParseProfileError, Profile};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// A link that does what was asked for.
#[derive(Debug)]
pub struct Verified {
    /// The link.
    pub link: Link,
    /// What was asked for and what was seen; it belongs into every result.
    pub probed: Probed,
}

/// Why there is no such link.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// It is not written as links are.
    #[error(transparent)]
    Profile(#[from] ParseProfileError),
    /// It cannot be made.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It cannot be probed.
    #[error("the link {name} cannot be probed: {source}")]
    Probe {
        /// Which.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// It is not what was asked for.
    #[error("the link {name} is not what was asked for: {}; is the machine busy?", deviations.join("; "))]
    Deviates {
        /// Which.
        name: String,
        /// In what.
        deviations: Vec<String>,
    },
}

/// Links by their names. They are taken away when this is dropped.
#[derive(Debug, Clone, Default)]
pub struct Links {
    made: Arc<Mutex<BTreeMap<String, Arc<Verified>>>>,
}

impl Links {
    /// The link of this name, made and verified when it is asked for first. A machine that was busy for a moment gets a
    /// second chance.
    ///
    /// # Errors
    /// If there is no such link here, or it does not do what was asked for.
    pub fn get(&self, name: &str, seed: u64, effort: &Effort) -> Result<Arc<Verified>, KeptError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verified) = made.get(name) {
            return Ok(Arc::clone(verified));
        }
        let profile: Profile = name.parse()?;
        let link = Link::up(&profile, seed)?;
        let look =
            || probe(&link, effort).map_err(|source| KeptError::Probe { name: name.to_owned(), source });
        let mut probed = look()?;
        if !probed.is_verified() {
            probed = look()?;
        }
        if !probed.is_verified() {
            return Err(KeptError::Deviates { name: name.to_owned(), deviations: probed.deviations });
        }
        let verified = Arc::new(Verified { link, probed });
        made.insert(name.to_owned(), Arc::clone(&verified));
        Ok(verified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn is_made_once_and_mistakes_are_told() {
        let links = Links::default();
        let effort =
            Effort { round_trips: Duration::from_millis(200), round_trips_max: 10, ..Effort::default() };
        assert!(matches!(links.get("5g", 1, &effort), Err(KeptError::Profile(_))));
        // No rate and no loss: nothing that a busy machine could spoil but the delay, and that is what is looked at.
        match links.get("delay=30ms", 1, &effort) {
            Ok(first) => {
                let again = links.get("delay=30ms", 1, &effort).unwrap();
                assert!(Arc::ptr_eq(&first, &again));
                assert!(first.probed.is_verified() && first.probed.round_trips.min_ms >= 60.0);
            }
            Err(error) => assert!(matches!(error, KeptError::Deviates { .. }), "{error}"),
        }
    }
}
