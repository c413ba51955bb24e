//! Limits the rate of messages sent on request, however often they are requested (Part 14 §7.2.4.6.12.2).

use std::collections::BTreeMap;
use taktwerk_types::Instant;

#[derive(Debug)]
struct Waiting {
    due: Instant,
    wanted: bool,
}

/// Enforces a pause per key. The keys come from the configuration, so their number is bounded.
#[derive(Debug)]
pub(crate) struct Pauses<K>(BTreeMap<K, Waiting>);

impl<K> Default for Pauses<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone> Pauses<K> {
    /// Requests a message: due now, or after the pause.
    pub(crate) fn want(&mut self, key: K, now: Instant) {
        let waiting = self.0.entry(key).or_insert(Waiting { due: now, wanted: false });
        waiting.due = waiting.due.max(now);
        waiting.wanted = true;
    }

    /// A key that is due. It will not be due again before `pause` nanoseconds have passed.
    pub(crate) fn take(&mut self, now: Instant, pause: u64) -> Option<K> {
        let (key, waiting) = self.0.iter_mut().find(|(_, waiting)| waiting.wanted && waiting.due <= now)?;
        waiting.wanted = false;
        waiting.due = Instant::from_nanos(now.as_nanos().saturating_add(pause));
        Some(key.clone())
    }

    /// The message was not sent: it is due again at `until`.
    pub(crate) fn postpone(&mut self, key: &K, until: Instant) {
        if let Some(waiting) = self.0.get_mut(key) {
            waiting.wanted = true;
            waiting.due = until;
        }
    }

    /// When something is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.0.values().filter(|waiting| waiting.wanted).map(|waiting| waiting.due).min()
    }

    /// Renames the keys; `None` removes one.
    pub(crate) fn rename(&mut self, name: impl Fn(K) -> Option<K>) {
        let old = core::mem::take(&mut self.0);
        self.0 = old.into_iter().filter_map(|(key, waiting)| Some((name(key)?, waiting))).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn each_key_is_due_once_per_pause() {
        let mut pauses = Pauses::default();
        pauses.want("a", at(5));
        pauses.want("a", at(6));
        assert_eq!(pauses.poll_timeout(), Some(at(6)));
        assert_eq!((pauses.take(at(7), 100), pauses.take(at(7), 100)), (Some("a"), None));
        pauses.want("a", at(8));
        assert_eq!((pauses.poll_timeout(), pauses.take(at(106), 100)), (Some(at(107)), None));
        assert_eq!(pauses.take(at(107), 100), Some("a"));
        pauses.postpone(&"a", at(300));
        pauses.rename(|key| (key == "a").then_some("b"));
        assert_eq!((pauses.take(at(299), 100), pauses.take(at(300), 100)), (None, Some("b")));
        pauses.rename(|_| None);
        assert_eq!(pauses.poll_timeout(), None);
    }
}
