//! Updates sessions and monitored items after changes of roles or permissions.

use super::Shard;
use crate::now::Now;
use crate::session::SessionKey;

impl Shard {
    /// Authorizes all sessions and subscriptions again if roles or permissions have changed. Otherwise one comparison.
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
        // Subscriptions without a session, which wait for their client.
        for (place, grant) in cx.engine.orphans() {
            let decisions = cx.authorizer.decisions(cx.shared, grant);
            cx.engine.authorize(place, &decisions, now, cx.shared.space());
        }
    }
}
