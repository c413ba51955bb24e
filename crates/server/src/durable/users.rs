//! The accounts of the users that own durable subscriptions.
//!
//! Other subscriptions are charged to a session, which has a limit. Durable ones outlive sessions, so their limit
//! applies per user.

use crate::account::{Account, Level};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The accounts in use, by the identity of their owner.
#[derive(Debug, Default)]
pub(crate) struct DurableUsers {
    known: Mutex<BTreeMap<String, Weak<Account>>>,
}

impl DurableUsers {
    /// The account of a user, by the user's identity.
    pub(crate) fn account(&self, server: &Arc<Account>, bytes_max: usize, name: &str) -> Arc<Account> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = known.get(name).and_then(Weak::upgrade) {
            return account;
        }
        // There are few users, and an entry without subscriptions is useless.
        known.retain(|_, account| account.strong_count() > 0);
        let account = server.child(Level::User, bytes_max);
        known.insert(name.to_owned(), Arc::downgrade(&account));
        account
    }
}
