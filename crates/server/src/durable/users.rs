//! The accounts of the users that durable subscriptions belong to.
//!
//! Other subscriptions are kept for a session, which has a limit. Durable ones outlive many sessions, so their limit is
//! that of the user.

use crate::account::{Account, Level};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The accounts that are in use, by what names their owner.
#[derive(Debug, Default)]
pub(crate) struct DurableUsers {
    known: Mutex<BTreeMap<String, Weak<Account>>>,
}

impl DurableUsers {
    /// The account of a user, by what tells users apart.
    pub(crate) fn account(&self, server: &Arc<Account>, bytes_max: usize, name: &str) -> Arc<Account> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = known.get(name).and_then(Weak::upgrade) {
            return account;
        }
        // Users are few, and an entry without subscriptions is of no use.
        known.retain(|_, account| account.strong_count() > 0);
        let account = server.child(Level::User, bytes_max);
        known.insert(name.to_owned(), Arc::downgrade(&account));
        account
    }
}
