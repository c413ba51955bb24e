//! Session data that all shards can read.

use crate::account::{Account, Category, Charge, Charged, Exhausted, HeapSize, allocation, heap_size};
use crate::callback::ClientOf;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use taktwerk_schema::{ApplicationDescription, ServiceCounterDataType};
use taktwerk_types::{NodeId, UaString, UtcTime};

/// The services with a counter of their own in SessionDiagnosticsDataType, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Counted {
    Read,
    HistoryRead,
    Write,
    HistoryUpdate,
    Call,
    CreateMonitoredItems,
    ModifyMonitoredItems,
    SetMonitoringMode,
    SetTriggering,
    DeleteMonitoredItems,
    CreateSubscription,
    ModifySubscription,
    SetPublishingMode,
    Publish,
    Republish,
    TransferSubscriptions,
    DeleteSubscriptions,
    AddNodes,
    AddReferences,
    DeleteNodes,
    DeleteReferences,
    Browse,
    BrowseNext,
    TranslateBrowsePathsToNodeIds,
    QueryFirst,
    QueryNext,
    RegisterNodes,
    UnregisterNodes,
}

/// Number of counted services.
const COUNTED: usize = Counted::UnregisterNodes as usize + 1;

/// A session as shown by diagnostics. Only the session's shard writes; any thread reads.
#[derive(Debug)]
pub(crate) struct SessionEntry {
    /// Unique among the sessions of this server run.
    pub(crate) number: u32,
    pub(crate) name: Box<str>,
    pub(crate) client: ApplicationDescription,
    pub(crate) endpoint_url: UaString,
    /// In milliseconds.
    pub(crate) timeout: f64,
    pub(crate) max_response_message_size: u32,
    pub(crate) connected: UtcTime,
    locale_ids: Mutex<Charged<Vec<UaString>>>,
    security: Mutex<Charged<Security>>,
    rights: Mutex<SessionRights>,
    /// Charge for everything else here.
    _charge: Charge,
    last_contact: AtomicI64,
    is_connected: AtomicBool,
    pub(crate) subscriptions: AtomicU32,
    pub(crate) monitored_items: AtomicU32,
    pub(crate) publish_requests: AtomicU32,
    total: AtomicU64,
    unauthorized: AtomicU32,
    /// Requests and errors of each counted service, in the two halves of a word.
    services: [AtomicU64; COUNTED],
}

impl ClientOf for SessionEntry {
    fn client_name(&self) -> &str {
        self.client.application_name.text.as_str()
    }

    fn client_certificate(&self) -> Option<Arc<[u8]>> {
        self.security().certificate
    }

    fn is_connected(&self) -> bool {
        self.is_connected.load(Ordering::Relaxed)
    }

    fn requests(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

impl SessionEntry {
    /// Creates the entry of a session with the account.
    ///
    /// # Errors
    /// The limit that would be exceeded.
    #[allow(clippy::too_many_arguments)] // what a client says of itself, and what it was told
    pub(crate) fn new(
        number: u32,
        name: Box<str>,
        client: ApplicationDescription,
        endpoint_url: UaString,
        timeout: f64,
        max_response_message_size: u32,
        connected: UtcTime,
        account: &Arc<Account>,
    ) -> Result<Self, Exhausted> {
        let bytes = allocation(size_of::<Self>())
            + ENTRIES
            + name.heap_size()
            + client.heap_size()
            + endpoint_url.heap_size();
        Ok(Self {
            _charge: account.charge(Category::Sessions, bytes)?,
            locale_ids: Mutex::new(Charged::new(account, Category::Sessions, Vec::new())?),
            security: Mutex::new(Charged::new(account, Category::Sessions, Security::default())?),
            rights: Mutex::default(),
            number,
            name,
            client,
            endpoint_url,
            timeout,
            max_response_message_size,
            connected,
            last_contact: AtomicI64::new(connected.ticks()),
            is_connected: AtomicBool::new(true),
            subscriptions: AtomicU32::new(0),
            monitored_items: AtomicU32::new(0),
            publish_requests: AtomicU32::new(0),
            total: AtomicU64::new(0),
            unauthorized: AtomicU32::new(0),
            services: [const { AtomicU64::new(0) }; COUNTED],
        })
    }

    /// The session's id, which is the NodeId of its diagnostics object.
    pub(crate) fn id(&self) -> NodeId {
        super::nodes::node_id(self.number, super::nodes::OBJECT)
    }

    /// Counts a request. There is a single writer, so plain load and store suffice.
    #[inline]
    pub(crate) fn count(&self, service: Option<Counted>, failed: bool, now: UtcTime) {
        let add = 1 | u64::from(failed) << 32;
        let bump =
            |word: &AtomicU64| word.store(word.load(Ordering::Relaxed).wrapping_add(add), Ordering::Relaxed);
        bump(&self.total);
        if let Some(word) = service.and_then(|service| self.services.get(service as usize)) {
            bump(word);
        }
        self.last_contact.store(now.ticks(), Ordering::Relaxed);
    }

    /// Records whether the session has a connection.
    pub(crate) fn set_connected(&self, is_connected: bool) {
        self.is_connected.store(is_connected, Ordering::Relaxed);
    }

    pub(crate) fn count_unauthorized(&self) {
        self.unauthorized.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn last_contact(&self) -> UtcTime {
        UtcTime::from_ticks(self.last_contact.load(Ordering::Relaxed))
    }

    pub(crate) fn unauthorized(&self) -> u32 {
        self.unauthorized.load(Ordering::Relaxed)
    }

    pub(crate) fn total(&self) -> ServiceCounterDataType {
        counter(&self.total)
    }

    pub(crate) fn service(&self, service: Counted) -> ServiceCounterDataType {
        self.services.get(service as usize).map_or_else(|| counter(&AtomicU64::new(0)), counter)
    }

    pub(crate) fn security(&self) -> Security {
        let security = self.security.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Security::clone(&security)
    }

    /// Records the session's user and security.
    pub(crate) fn set_security(&self, mut security: Security) {
        let mut known = self.security.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        security.history.clone_from(&known.history);
        if security.history.last() != Some(&security.user) {
            if security.history.len() >= USERS_MAX {
                security.history.remove(0);
            }
            security.history.push(security.user.clone());
        }
        if known.replace(security.clone()).is_err() {
            // Without memory for everything, drop the history.
            known.change(|known| *known = Security { history: Vec::new(), ..security });
        }
    }

    pub(crate) fn rights(&self) -> SessionRights {
        self.rights.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Records the permissions of the session's user.
    pub(crate) fn set_rights(&self, rights: SessionRights) {
        *self.rights.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = rights;
    }

    pub(crate) fn locale_ids(&self) -> Vec<UaString> {
        self.locale_ids.lock().unwrap_or_else(std::sync::PoisonError::into_inner).to_vec()
    }

    /// Stores the client's preferred locales.
    ///
    /// # Errors
    /// The limit that would be exceeded.
    pub(crate) fn set_locale_ids(&self, locale_ids: Vec<UaString>) -> Result<(), Exhausted> {
        self.locale_ids.lock().unwrap_or_else(std::sync::PoisonError::into_inner).replace(locale_ids)
    }
}

/// The current rights of a session.
#[derive(Debug, Clone)]
pub struct SessionRights {
    /// The roles of its user, sorted by id; none before activation.
    pub roles: Arc<[NodeId]>,
    /// The user must change the password first (Part 18 §5.2.8).
    pub must_change_password: bool,
}

impl Default for SessionRights {
    fn default() -> Self {
        Self { roles: Arc::from([]), must_change_password: false }
    }
}

/// A session's user and security, for SessionSecurityDiagnosticsDataType (Part 5 §12.12).
#[derive(Debug, Clone, Default)]
pub(crate) struct Security {
    /// The user's name or other identification; empty for Anonymous.
    pub(crate) user: Box<str>,
    /// Previous users, the oldest first.
    pub(crate) history: Vec<Box<str>>,
    /// How the user was identified.
    pub(crate) mechanism: &'static str,
    /// MessageSecurityMode.
    pub(crate) mode: i32,
    pub(crate) policy_uri: &'static str,
    /// DER; empty without security.
    pub(crate) certificate: Option<Arc<[u8]>>,
}

heap_size!(Security { user, history, certificate; mechanism, mode, policy_uri });

/// Bytes used by the entries in the lists of sessions.
const ENTRIES: usize = 256;

/// Maximum number of previous users kept per session.
const USERS_MAX: usize = 10;

fn counter(word: &AtomicU64) -> ServiceCounterDataType {
    let word = word.load(Ordering::Relaxed);
    ServiceCounterDataType { total_count: word as u32, error_count: (word >> 32) as u32 }
}
