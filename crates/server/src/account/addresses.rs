//! The accounts of client addresses.

use super::{Account, Level};
use crate::origin::Origin;
use core::net::IpAddr;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Number of entries from which the map is searched for accounts that are no longer used.
const TIDY_MIN: usize = 256;

/// The accounts of the addresses that the server keeps something for. An IPv6 /64 network counts as one address.
#[derive(Debug)]
pub(crate) struct Addresses {
    server: Arc<Account>,
    bytes_max: usize,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    accounts: BTreeMap<Origin, Weak<Account>>,
    tidy_at: usize,
}

impl Addresses {
    pub(crate) fn new(server: Arc<Account>, bytes_max: usize) -> Self {
        let known = Known { accounts: BTreeMap::new(), tidy_at: TIDY_MIN };
        Self { server, bytes_max, known: Mutex::new(known) }
    }

    /// The account of an address. Without an address, each caller gets an account of its own.
    pub(crate) fn account(&self, address: Option<IpAddr>) -> Arc<Account> {
        let make = || self.server.child(Level::Address, self.bytes_max);
        let Some(address) = address else { return make() };
        let known = &mut *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = Origin::from(address);
        if let Some(account) = known.accounts.get(&origin).and_then(Weak::upgrade) {
            return account;
        }
        if known.accounts.len() >= known.tidy_at {
            known.accounts.retain(|_, account| account.strong_count() > 0);
            known.tidy_at = (2 * known.accounts.len()).max(TIDY_MIN);
        }
        let account = make();
        known.accounts.insert(origin, Arc::downgrade(&account));
        account
    }
}
