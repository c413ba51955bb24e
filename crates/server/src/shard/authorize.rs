//! Sessions and what they monitor after roles or permissions have changed.

use super::Shard;
use crate::now::Now;
use crate::session::SessionKey;

impl Shard {
    /// Authorises all sessions and subscriptions anew if roles or permissions have changed. One comparison if not.
    #[inline]
    pub(crate) fn refresh_authorization(&mut self, now: Now) {
        let generation = self.shared.space().access_generation();
        if generation != self.authorizer.generation {
            self.authorizer.generation = generation;
            self.authorize_all(now);
        }
    }

    #[cold]
    fn authorize_all(&mut self, now: Now) {
        let keys: Vec<SessionKey> = self.sessions.iter().map(|(key, _)| key).collect();
        let mut cx = self.context(None, now);
        for key in keys {
            cx.authorize(key);
        }
        // Those that wait for their client to come back.
        for (place, grant) in cx.engine.orphans() {
            let decisions = cx.authorizer.decisions(cx.shared, grant);
            cx.engine.authorize(place, &decisions, now, cx.shared.space());
        }
    }
}
