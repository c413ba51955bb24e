//! Data shared by all shards of a server.

use crate::account::Account;
use crate::account::addresses::Addresses;
use crate::admission::{Admission, Refusal};
use crate::authorization::Authorization;
use crate::config::ServerConfig;
use crate::diagnostics::nodes::SessionNode;
use crate::diagnostics::{Live, SessionRights};
use crate::discovery::DiscoveryCache;
use crate::durable::saved::Saved;
use crate::durable::users::DurableUsers;
use crate::eviction::Evictable;
use crate::history::StoreError;
use crate::session::lockout::LockOut;
use crate::space::AddressSpace;
use crate::space::role_set;
use crate::subscription::locations::Locations;
use arc_swap::ArcSwap;
use core::net::IpAddr;
use core::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_channel::ChannelConfig;
use taktwerk_types::{Instant, NodeId};

/// A server's configuration, address space and registries, shared by its shards.
#[derive(Debug)]
pub struct ServerShared {
    config: ServerConfig,
    space: Arc<AddressSpace>,
    live: Arc<Live>,
    channel: Arc<ChannelConfig>,
    locations: Arc<Locations>,
    authorization: ArcSwap<Authorization>,
    account: Arc<Account>,
    addresses: Addresses,
    admission: Admission,
    evictable: Arc<Evictable>,
    discovery: DiscoveryCache,
    lockout: Arc<Mutex<LockOut>>,
    durable_users: DurableUsers,
    /// Durable subscriptions that no shard has restored yet.
    saved: Mutex<Vec<Saved>>,
    shards: usize,
}

impl ServerShared {
    /// Assembles the parts of a server. `channel_origin` is the wall time at [`taktwerk_types::Instant::ZERO`].
    pub(crate) fn assemble(
        config: ServerConfig,
        space: Arc<AddressSpace>,
        live: Arc<Live>,
        shards: usize,
        channel_origin: taktwerk_types::UtcTime,
    ) -> Arc<Self> {
        let account = Account::server(config.limits.maxima());
        if config.node_management {
            space.write().set_added(&account);
        }
        if config.audit.sessions || config.audit.updates {
            space.restrict_audit_events();
        }
        space.install_aliases(config.start_time);
        space.install_filtered_retain(config.start_time);
        let addresses = Addresses::new(Arc::clone(&account), config.limits.bytes_per_address_max);
        let admission = Admission::new(&config.limits);
        let mut security: Vec<_> =
            config.endpoints.iter().map(|endpoint| (endpoint.policy, endpoint.mode)).collect();
        let none = (taktwerk_crypto::SecurityPolicy::None, taktwerk_crypto::MessageSecurityMode::None);
        if !security.contains(&none) {
            // Discovery must work without security (Part 4 §5.5.1); sessions are refused there.
            security.push(none);
        }
        let channel = Arc::new(ChannelConfig {
            limits: config.channel.clone(),
            provider: Arc::clone(&config.provider),
            security,
            utc_origin: channel_origin,
            key_log: config.key_log.clone(),
        });
        space.events().set_run(config.start_time);
        space.events().set_model_changes(config.model_changes);
        let locations = Arc::new(Locations::new(shards));
        let authorization = ArcSwap::from_pointee(config.authorization.clone());
        Arc::new(Self {
            config,
            space,
            live,
            channel,
            locations,
            authorization,
            account,
            addresses,
            admission,
            evictable: Arc::default(),
            discovery: DiscoveryCache::default(),
            lockout: Arc::default(),
            durable_users: DurableUsers::default(),
            saved: Mutex::default(),
            shards,
        })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// The address space.
    #[must_use]
    pub fn space(&self) -> &Arc<AddressSpace> {
        &self.space
    }

    /// Counters, state and sessions.
    #[must_use]
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// Changes ServerStatus.State and raises a SystemStatusChangeEvent of the Server Object (Part 5 §6.4.30). Does
    /// nothing if the state is the same.
    pub fn change_state(&self, state: taktwerk_schema::ServerState, now: taktwerk_types::UtcTime) {
        use taktwerk_schema::ids::{object_ids, object_type_ids};
        use taktwerk_types::NodeId;
        if !self.live().replace_state(state) {
            return;
        }
        self.space().raise_with(now, || {
            let kind = NodeId::numeric(0, object_type_ids::SYSTEM_STATUS_CHANGE_EVENT_TYPE);
            let name = if state == taktwerk_schema::ServerState::SHUTDOWN {
                "shuts down"
            } else {
                "changes its state"
            };
            crate::event::NewEvent::new(kind, NodeId::numeric(0, object_ids::SERVER))
                .source_name("Server")
                .severity(500)
                .message(&*format!("The server {name}"))
                .field("SystemState", state.0)
        });
    }

    /// The account of the server: everything stored for clients. It returns to zero when all clients have gone.
    #[must_use]
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// The account of an address.
    pub(crate) fn address_account(&self, address: Option<IpAddr>) -> Arc<Account> {
        self.addresses.account(address)
    }

    /// Admission control for connections and handshakes.
    pub(crate) fn admission(&self) -> &Admission {
        &self.admission
    }

    /// The evictable members of all shards.
    pub(crate) fn evictable(&self) -> &Arc<Evictable> {
        &self.evictable
    }

    /// The discovery responses.
    pub(crate) fn discovery(&self) -> &DiscoveryCache {
        &self.discovery
    }

    /// Counts a new connection from an address before anything is done for it. Afterwards call [`Shard::opened_from`]
    /// or [`Self::turned_away`].
    ///
    /// # Errors
    /// Why it must be closed at once.
    ///
    /// [`Shard::opened_from`]: crate::Shard::opened_from
    pub fn admit(&self, address: IpAddr, now: Instant) -> Result<(), Refusal> {
        let result = self.admission.admit(address, now);
        if result.is_err() {
            self.live.counters.refused_connection_count.up();
        }
        result
    }

    /// An admitted connection ended before a shard got it.
    pub fn turned_away(&self, address: IpAddr) {
        self.admission.leave(address);
    }

    /// Number of shards.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards
    }

    /// Reports, at any time, that a trust list or the list of users has changed. Every shard validates the certificates
    /// of its channels again and closes those no longer accepted, together with their sessions (Part 12 §7.8.2.5). It
    /// also ends the sessions of users whom the [`IdentityVerifier`](crate::IdentityVerifier) no longer knows. A shard
    /// notices the change with its next request or timer.
    pub fn trust_list_changed(&self) {
        self.config.trust_list_changes.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn trust_list_changes(&self) -> u64 {
        self.config.trust_list_changes.load(Ordering::Acquire)
    }

    pub(crate) fn certificate_changes(&self) -> u64 {
        self.config.certificate_changes.load(Ordering::Acquire)
    }

    /// The roles and their permissions.
    #[must_use]
    pub fn authorization(&self) -> Arc<Authorization> {
        self.authorization.load_full()
    }

    /// Replaces the roles and their permissions at any time. Sessions get the new roles of their users, and their
    /// monitored items are updated.
    pub fn set_authorization(&self, authorization: Authorization, time: taktwerk_types::UtcTime) {
        let authorization = Arc::new(authorization);
        self.authorization.store(Arc::clone(&authorization));
        // Last, because shards check this.
        let mut nodes = self.space.write();
        role_set::publish(&authorization, &mut nodes, time);
        nodes.configure_access(&authorization);
    }

    /// The current rights of a session, by its id; `None` if there is no such session.
    #[must_use]
    pub fn session_rights(&self, session_id: &NodeId) -> Option<SessionRights> {
        let number = SessionNode::session_of(session_id, &self.live)?;
        Some(self.live.session(number)?.rights())
    }

    /// The failed and successful logins.
    pub(crate) fn lockout(&self) -> &Arc<Mutex<LockOut>> {
        &self.lockout
    }

    /// The shard of each subscription.
    pub(crate) fn locations(&self) -> &Arc<Locations> {
        &self.locations
    }

    /// The accounts of users with durable subscriptions.
    pub(crate) fn durable_users(&self) -> &DurableUsers {
        &self.durable_users
    }

    /// Loads the durable subscriptions from the configured store; the shards restore them when they start. Call it
    /// before creating shards; it blocks. Returns their number. Damaged logs are reported and left unchanged.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn load_durable(&self) -> Result<usize, StoreError> {
        let Some(config) = &self.config.durable else { return Ok(0) };
        let mut saved = Vec::new();
        for log in config.store.load()? {
            match Saved::from_entries(log.subscription, &log.records) {
                Ok(one) => saved.push(one),
                Err(error) => {
                    tracing::error!(subscription = log.subscription, %error, "cannot restore a durable subscription: its log is damaged");
                }
            }
        }
        let count = saved.len();
        *self.saved.lock().unwrap_or_else(PoisonError::into_inner) = saved;
        Ok(count)
    }

    /// Removes and returns the durable subscriptions for a shard.
    pub(crate) fn take_saved(&self, shard: usize) -> Vec<Saved> {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let (here, others) =
            saved.drain(..).partition(|saved: &Saved| self.locations.creating_shard(saved.id) == shard);
        *saved = others;
        here
    }

    pub(crate) fn channel(&self) -> &Arc<ChannelConfig> {
        &self.channel
    }
}
