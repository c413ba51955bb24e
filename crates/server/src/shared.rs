//! What all shards of a server share.

use crate::account::Account;
use crate::account::addresses::Addresses;
use crate::admission::{Admission, Refusal};
use crate::authorization::Authorization;
use crate::config::ServerConfig;
use crate::diagnostics::Live;
use crate::eviction::Evictable;
use crate::service::discovery::DiscoveryCache;
use crate::service::table;
use crate::session::lockout::LockOut;
use crate::space::AddressSpace;
use crate::space::nodes::Nodes;
use crate::space::role_set;
use crate::subscription::homes::Homes;
use arc_swap::ArcSwap;
use core::net::IpAddr;
use core::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use taktwerk_channel::ChannelConfig;
use taktwerk_schema::ids::variable_ids as v;
use taktwerk_types::{Instant, QualifiedName, StatusCode, UaString, Variant};

/// A server's configuration, address space and registries, shared by its shards.
#[derive(Debug)]
pub struct ServerShared {
    config: ServerConfig,
    space: Arc<AddressSpace>,
    live: Arc<Live>,
    channel: Arc<ChannelConfig>,
    homes: Arc<Homes>,
    authorization: ArcSwap<Authorization>,
    account: Arc<Account>,
    addresses: Addresses,
    admission: Admission,
    evictable: Arc<Evictable>,
    discovery: DiscoveryCache,
    lockout: Arc<Mutex<LockOut>>,
    shards: usize,
}

impl ServerShared {
    /// Joins a configuration and an address space, and shows the configuration in namespace 0.
    ///
    /// `channel_origin` is the wall time at [`taktwerk_types::Instant::ZERO`] of the driver's clock.
    #[must_use]
    pub fn new(
        mut config: ServerConfig,
        space: Arc<AddressSpace>,
        shards: usize,
        channel_origin: taktwerk_types::UtcTime,
    ) -> Arc<Self> {
        config.limits = config.limits.at_least_one();
        // A zero in the Acknowledge reads "no limit" (Part 6 §7.1.2.4).
        config.channel.message_size_max = config.channel.message_size_max.max(8192);
        config.channel.chunk_count_max = config.channel.chunk_count_max.max(1);
        let account = Account::server(config.limits.maxima());
        let addresses = Addresses::new(Arc::clone(&account), config.limits.bytes_per_address_max);
        let admission = Admission::new(&config.limits);
        let live = Arc::new(Live::new(&config));
        {
            let mut nodes = space.write();
            nodes.set_live(Arc::clone(&live));
            publish(&config, &live, &mut nodes);
            nodes.configure_access(&config.authorization);
            role_set::publish(&config.authorization, &mut nodes, config.start_time);
        }
        let mut security: Vec<_> =
            config.endpoints.iter().map(|endpoint| (endpoint.policy, endpoint.mode)).collect();
        let none = (taktwerk_crypto::SecurityPolicy::None, taktwerk_crypto::MessageSecurityMode::None);
        if !security.contains(&none) {
            // Discovery has to work without security (Part 4 §5.5.1); sessions are refused there.
            security.push(none);
        }
        let channel = Arc::new(ChannelConfig {
            limits: config.channel.clone(),
            provider: Arc::clone(&config.provider),
            security,
            utc_origin: channel_origin,
            key_log: config.key_log.clone(),
        });
        let homes = Arc::new(Homes::new(shards));
        let authorization = ArcSwap::from_pointee(config.authorization.clone());
        Arc::new(Self {
            config,
            space,
            live,
            channel,
            homes,
            authorization,
            account,
            addresses,
            admission,
            evictable: Arc::default(),
            discovery: DiscoveryCache::default(),
            lockout: Arc::default(),
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

    /// What all clients together make the server keep. Everything is back at zero when all of them are gone.
    #[must_use]
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// The account of an address.
    pub(crate) fn address_account(&self, address: Option<IpAddr>) -> Arc<Account> {
        self.addresses.account(address)
    }

    /// Which addresses may connect.
    pub(crate) fn admission(&self) -> &Admission {
        &self.admission
    }

    /// What can be evicted on which shard.
    pub(crate) fn evictable(&self) -> &Arc<Evictable> {
        &self.evictable
    }

    /// What discovery answers.
    pub(crate) fn discovery(&self) -> &DiscoveryCache {
        &self.discovery
    }

    /// Counts a new connection from an address in, before anything is done for it. [`Shard::opened_from`] or
    /// [`Self::turned_away`] has to follow.
    ///
    /// # Errors
    /// Why it is to be closed at once.
    ///
    /// [`Shard::opened_from`]: crate::Shard::opened_from
    pub fn admit(&self, address: IpAddr, now: Instant) -> Result<(), Refusal> {
        let result = self.admission.admit(address, now);
        if result.is_err() {
            self.live.counters.refused_connection_count.up();
        }
        result
    }

    /// A connection that was admitted ended before a shard got it.
    pub fn turned_away(&self, address: IpAddr) {
        self.admission.leave(address);
    }

    /// How many shards there are.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards
    }

    /// Says that a trust list has changed, or who can log on, at any time: every shard looks at the certificates of its
    /// channels again, and closes those that are no longer accepted together with their sessions (Part 12 §7.8.2.5); and
    /// it ends the sessions of users whom the [`IdentityVerifier`](crate::IdentityVerifier) no longer knows. A shard notices
    /// with the next request or timer.
    pub fn trust_list_changed(&self) {
        self.config.trust_list_changes.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn trust_list_changes(&self) -> u64 {
        self.config.trust_list_changes.load(Ordering::Acquire)
    }

    /// The roles and what they may do.
    #[must_use]
    pub fn authorization(&self) -> Arc<Authorization> {
        self.authorization.load_full()
    }

    /// Replaces the roles and what they may do, at any time: sessions get the roles that their users have now, and what
    /// they monitor follows.
    pub fn set_authorization(&self, authorization: Authorization, time: taktwerk_types::UtcTime) {
        let authorization = Arc::new(authorization);
        self.authorization.store(Arc::clone(&authorization));
        // Last, because this is what shards notice.
        let mut nodes = self.space.write();
        role_set::publish(&authorization, &mut nodes, time);
        nodes.configure_access(&authorization);
    }

    /// Who has failed to log on.
    pub(crate) fn lockout(&self) -> &Arc<Mutex<LockOut>> {
        &self.lockout
    }

    /// Which subscriptions live on which shard.
    pub(crate) fn homes(&self) -> &Arc<Homes> {
        &self.homes
    }

    pub(crate) fn channel(&self) -> &Arc<ChannelConfig> {
        &self.channel
    }
}

/// Writes what does not change while the server runs into namespace 0 (Part 5 §6.3.1, §6.3.2, §6.3.11).
fn publish(config: &ServerConfig, live: &Live, nodes: &mut Nodes) {
    let limits = &config.limits;
    let subscriptions = &limits.subscriptions;
    let build = live.build_info().clone();
    let strings = |values: &[String]| -> Variant {
        values.iter().map(|value| UaString::from(value.as_str())).collect::<Vec<_>>().into()
    };
    let count = |value: usize| -> Variant { u32::try_from(value).unwrap_or(u32::MAX).into() };
    // Operations of a request are limited, and published, by the service table.
    let values: Vec<(u32, Variant)> = vec![
        (v::SERVER_SERVER_ARRAY, strings(core::slice::from_ref(&config.application_uri))),
        (v::SERVER_AUDITING, (config.audit.sessions && config.audit.updates).into()),
        (v::SERVER_SERVER_STATUS_START_TIME, config.start_time.into()),
        (v::SERVER_SERVER_STATUS_BUILD_INFO, Variant::from_structure(&build)),
        (v::SERVER_SERVER_STATUS_BUILD_INFO_PRODUCT_URI, build.product_uri.into()),
        (v::SERVER_SERVER_STATUS_BUILD_INFO_MANUFACTURER_NAME, build.manufacturer_name.into()),
        (v::SERVER_SERVER_STATUS_BUILD_INFO_PRODUCT_NAME, build.product_name.into()),
        (v::SERVER_SERVER_STATUS_BUILD_INFO_SOFTWARE_VERSION, build.software_version.into()),
        (v::SERVER_SERVER_STATUS_BUILD_INFO_BUILD_NUMBER, build.build_number.into()),
        (v::SERVER_SERVER_STATUS_BUILD_INFO_BUILD_DATE, build.build_date.into()),
        (v::SERVER_SERVER_STATUS_SECONDS_TILL_SHUTDOWN, 0u32.into()),
        (v::SERVER_SERVER_STATUS_SHUTDOWN_REASON, taktwerk_types::LocalizedText::default().into()),
        (v::SERVER_SERVER_DIAGNOSTICS_ENABLED_FLAG, true.into()),
        (v::SERVER_SERVER_CAPABILITIES_SERVER_PROFILE_ARRAY, strings(&config.profiles)),
        (v::SERVER_SERVER_CAPABILITIES_LOCALE_ID_ARRAY, strings(&config.locale_ids)),
        (v::SERVER_SERVER_CAPABILITIES_MIN_SUPPORTED_SAMPLE_RATE, subscriptions.sampling_interval_min.into()),
        (
            v::SERVER_SERVER_CAPABILITIES_MAX_BROWSE_CONTINUATION_POINTS,
            limits.browse_continuation_points_max.into(),
        ),
        (v::SERVER_SERVER_CAPABILITIES_MAX_QUERY_CONTINUATION_POINTS, 0u16.into()),
        (v::SERVER_SERVER_CAPABILITIES_MAX_HISTORY_CONTINUATION_POINTS, 0u16.into()),
        (v::SERVER_SERVER_CAPABILITIES_MAX_ARRAY_LENGTH, limits.array_len_max.into()),
        (v::SERVER_SERVER_CAPABILITIES_MAX_STRING_LENGTH, limits.string_len_max.into()),
        (v::SERVER_SERVER_CAPABILITIES_MAX_BYTE_STRING_LENGTH, limits.byte_string_len_max.into()),
        (v::SERVER_SERVER_CAPABILITIES_MAX_SESSIONS, count(limits.sessions_max)),
        (v::SERVER_SERVER_CAPABILITIES_MAX_SUBSCRIPTIONS, subscriptions.subscriptions_max.into()),
        (v::SERVER_SERVER_CAPABILITIES_MAX_MONITORED_ITEMS, subscriptions.monitored_items_max.into()),
        (
            v::SERVER_SERVER_CAPABILITIES_MAX_SUBSCRIPTIONS_PER_SESSION,
            subscriptions.subscriptions_per_session_max.into(),
        ),
        (
            v::SERVER_SERVER_CAPABILITIES_MAX_MONITORED_ITEMS_PER_SUBSCRIPTION,
            subscriptions.monitored_items_per_subscription_max.into(),
        ),
        (v::SERVER_SERVER_CAPABILITIES_MAX_MONITORED_ITEMS_QUEUE_SIZE, subscriptions.queue_size_max.into()),
        (v::SERVER_SERVER_CAPABILITIES_MAX_SELECT_CLAUSE_PARAMETERS, 0u32.into()),
        (v::SERVER_SERVER_CAPABILITIES_MAX_WHERE_CLAUSE_PARAMETERS, 0u32.into()),
        (v::SERVER_SERVER_CAPABILITIES_CONFORMANCE_UNITS, Vec::<QualifiedName>::new().into()),
        (v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_HISTORY_READ_DATA, 0u32.into()),
        (v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_HISTORY_READ_EVENTS, 0u32.into()),
        (v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_HISTORY_UPDATE_DATA, 0u32.into()),
        (v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_HISTORY_UPDATE_EVENTS, 0u32.into()),
        (v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_NODE_MANAGEMENT, 0u32.into()),
    ];
    let operations = table::published(limits).map(|(id, max)| (id, max.into()));
    for (id, value) in values.into_iter().chain(operations) {
        nodes.ns0_slot(id).set(value, StatusCode::GOOD, config.start_time, config.start_time);
    }
}
