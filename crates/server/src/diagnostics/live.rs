//! Diagnostics values that are computed when read.

use super::counters::ServerCounters;
use super::nodes::{self, SessionNode};
use super::session::{Counted, SessionEntry};
use crate::config::{BuildInfo, ServerConfig};
use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, Ordering};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taktwerk_schema::ids::variable_ids as v;
use taktwerk_schema::{
    MessageSecurityMode, ServerDiagnosticsSummaryDataType, ServerState, ServerStatusDataType,
    SessionDiagnosticsDataType, SessionSecurityDiagnosticsDataType, SubscriptionDiagnosticsDataType,
};
use taktwerk_types::{ExtensionObject, LocalizedText, UtcTime, Variant};

/// The server's data about itself, shared by all shards.
#[derive(Debug)]
pub struct Live {
    start_time: UtcTime,
    build_info: taktwerk_schema::BuildInfo,
    state: AtomicI32,
    service_level: AtomicU8,
    next_session: AtomicU32,
    next_channel: AtomicU32,
    /// Counts of the whole server.
    pub counters: ServerCounters,
    sessions: Mutex<Registry>,
    /// The subscriptions of each shard, as last published.
    subscriptions: Mutex<BTreeMap<usize, Vec<SubscriptionDiagnosticsDataType>>>,
    /// Incremented when a client reads data that shards must publish first.
    looks: AtomicU32,
}

/// The sessions of all shards.
#[derive(Debug, Default)]
struct Registry {
    by_number: BTreeMap<u32, Arc<SessionEntry>>,
    names: BTreeSet<Box<str>>,
}

impl Live {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let BuildInfo { manufacturer_name, product_name, software_version, build_number, build_date } =
            config.build_info.clone();
        Self {
            start_time: config.start_time,
            build_info: taktwerk_schema::BuildInfo {
                product_uri: config.product_uri.clone().into(),
                manufacturer_name: manufacturer_name.into(),
                product_name: product_name.into(),
                software_version: software_version.into(),
                build_number: build_number.into(),
                build_date,
            },
            state: AtomicI32::new(ServerState::RUNNING.0),
            service_level: AtomicU8::new(255),
            next_session: AtomicU32::new(1),
            next_channel: AtomicU32::new(1),
            counters: ServerCounters::default(),
            sessions: Mutex::default(),
            subscriptions: Mutex::default(),
            looks: AtomicU32::new(0),
        }
    }

    /// When the server started.
    #[must_use]
    pub fn start_time(&self) -> UtcTime {
        self.start_time
    }

    /// ServerStatus.State.
    #[must_use]
    pub fn current_state(&self) -> ServerState {
        self.state()
    }

    /// Changes ServerStatus.State.
    pub fn set_state(&self, state: ServerState) {
        self.state.store(state.0, Ordering::Relaxed);
    }

    /// Changes ServerStatus.State. Returns whether it was different.
    pub(crate) fn replace_state(&self, state: ServerState) -> bool {
        self.state.swap(state.0, Ordering::AcqRel) != state.0
    }

    /// Changes ServiceLevel (Part 4 §6.6.2.4.2): 255 is full service.
    pub fn set_service_level(&self, level: u8) {
        self.service_level.store(level, Ordering::Relaxed);
    }

    /// A number for a new session, never 0.
    pub(crate) fn next_session(&self) -> u32 {
        next(&self.next_session)
    }

    /// A SecureChannelId, unique on the server, never 0.
    pub(crate) fn next_channel(&self) -> u32 {
        next(&self.next_channel)
    }

    pub(crate) fn add_session(&self, entry: Arc<SessionEntry>) {
        let mut sessions = lock(&self.sessions);
        sessions.names.insert(entry.name.clone());
        sessions.by_number.insert(entry.number, entry);
    }

    pub(crate) fn remove_session(&self, number: u32) {
        let mut sessions = lock(&self.sessions);
        if let Some(entry) = sessions.by_number.remove(&number) {
            sessions.names.remove(&entry.name);
        }
    }

    pub(crate) fn session(&self, number: u32) -> Option<Arc<SessionEntry>> {
        lock(&self.sessions).by_number.get(&number).cloned()
    }

    /// Whether a session with this name exists.
    pub(crate) fn session_name_taken(&self, name: &str) -> bool {
        lock(&self.sessions).names.contains(name)
    }

    pub(crate) fn session_numbers(&self) -> Vec<u32> {
        lock(&self.sessions).by_number.keys().copied().collect()
    }

    /// Number of reads of the subscription diagnostics. Shards publish again when it changes.
    pub(crate) fn looks(&self) -> u32 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Whether a Variable shows data that shards must publish first.
    pub(crate) fn shows_subscriptions(ix: crate::node_ix::NodeIx) -> bool {
        SessionNode::from_ix(ix).is_some()
            || ix.index == v::SERVER_SERVER_DIAGNOSTICS_SUBSCRIPTION_DIAGNOSTICS_ARRAY
            || ix.index == v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY
            || ix.index == v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_PUBLISHING_INTERVAL_COUNT
            || ix.index == v::SERVER_SERVER_DIAGNOSTICS_SESSIONS_DIAGNOSTICS_SUMMARY_SESSION_DIAGNOSTICS_ARRAY
    }

    /// Replaces the data about a shard's subscriptions.
    pub(crate) fn publish_subscriptions(&self, shard: usize, all: Vec<SubscriptionDiagnosticsDataType>) {
        lock(&self.subscriptions).insert(shard, all);
    }

    /// The value of a computed static Variable; `None` for others.
    pub(crate) fn ns0_value(&self, id: u32, now: UtcTime) -> Option<Variant> {
        let counters = &self.counters;
        Some(match id {
            v::SERVER_SERVER_STATUS => Variant::from_structure(&ServerStatusDataType {
                start_time: self.start_time,
                current_time: now,
                state: self.state(),
                build_info: self.build_info.clone(),
                seconds_till_shutdown: 0,
                shutdown_reason: LocalizedText::default(),
            }),
            v::SERVER_SERVER_STATUS_CURRENT_TIME => now.into(),
            v::SERVER_SERVER_STATUS_STATE => self.state().0.into(),
            v::SERVER_SERVICE_LEVEL => self.service_level.load(Ordering::Relaxed).into(),
            v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY => {
                Variant::from_structure(&self.summary())
            }
            v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_SERVER_VIEW_COUNT => 0u32.into(),
            v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_CURRENT_SESSION_COUNT => {
                counters.current_session_count.value().into()
            }
            v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_CUMULATED_SESSION_COUNT => {
                counters.cumulated_session_count.value().into()
            }
            v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_SECURITY_REJECTED_SESSION_COUNT => {
                counters.security_rejected_session_count.value().into()
            }
            v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_REJECTED_SESSION_COUNT => {
                counters.all_rejected_sessions().into()
            }
            v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_SESSION_TIMEOUT_COUNT => {
                counters.session_timeout_count.value().into()
            }
            v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_SESSION_ABORT_COUNT => {
                counters.session_abort_count.value().into()
            }
            v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_PUBLISHING_INTERVAL_COUNT => {
                self.publishing_interval_count().into()
            }
            v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_CURRENT_SUBSCRIPTION_COUNT => {
                counters.current_subscription_count.value().into()
            }
            v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_CUMULATED_SUBSCRIPTION_COUNT => {
                counters.cumulated_subscription_count.value().into()
            }
            v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_SECURITY_REJECTED_REQUESTS_COUNT => {
                counters.security_rejected_requests_count.value().into()
            }
            v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_REJECTED_REQUESTS_COUNT => {
                counters.rejected_requests_count.value().into()
            }
            v::SERVER_SERVER_DIAGNOSTICS_SUBSCRIPTION_DIAGNOSTICS_ARRAY => self.subscriptions(None),
            v::SERVER_SERVER_DIAGNOSTICS_SESSIONS_DIAGNOSTICS_SUMMARY_SESSION_DIAGNOSTICS_ARRAY => {
                let sessions: Vec<Arc<SessionEntry>> =
                    lock(&self.sessions).by_number.values().cloned().collect();
                let all: Vec<ExtensionObject> =
                    sessions.iter().map(|entry| ExtensionObject::new(&diagnostics(entry))).collect();
                all.into()
            }
            v::SERVER_SERVER_DIAGNOSTICS_SESSIONS_DIAGNOSTICS_SUMMARY_SESSION_SECURITY_DIAGNOSTICS_ARRAY => {
                let sessions: Vec<Arc<SessionEntry>> =
                    lock(&self.sessions).by_number.values().cloned().collect();
                let all: Vec<ExtensionObject> =
                    sessions.iter().map(|entry| ExtensionObject::new(&security(entry))).collect();
                all.into()
            }
            _ => return None,
        })
    }

    /// Whether a static Variable's value is computed.
    #[inline]
    pub(crate) fn computes(id: u32) -> bool {
        matches!(
            id,
            v::SERVER_SERVER_STATUS
                | v::SERVER_SERVER_STATUS_CURRENT_TIME
                | v::SERVER_SERVER_STATUS_STATE
                | v::SERVER_SERVICE_LEVEL
                | v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY
                | v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_SERVER_VIEW_COUNT
                | v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_CURRENT_SESSION_COUNT
                | v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_CUMULATED_SESSION_COUNT
                | v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_SECURITY_REJECTED_SESSION_COUNT
                | v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_REJECTED_SESSION_COUNT
                | v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_SESSION_TIMEOUT_COUNT
                | v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_SESSION_ABORT_COUNT
                | v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_PUBLISHING_INTERVAL_COUNT
                | v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_CURRENT_SUBSCRIPTION_COUNT
                | v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_CUMULATED_SUBSCRIPTION_COUNT
                | v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_SECURITY_REJECTED_REQUESTS_COUNT
                | v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_REJECTED_REQUESTS_COUNT
                | v::SERVER_SERVER_DIAGNOSTICS_SUBSCRIPTION_DIAGNOSTICS_ARRAY
                | v::SERVER_SERVER_DIAGNOSTICS_SESSIONS_DIAGNOSTICS_SUMMARY_SESSION_DIAGNOSTICS_ARRAY
                | v::SERVER_SERVER_DIAGNOSTICS_SESSIONS_DIAGNOSTICS_SUMMARY_SESSION_SECURITY_DIAGNOSTICS_ARRAY
        )
    }

    /// The value of a session's diagnostics node.
    pub(crate) fn session_value(&self, node: SessionNode) -> Option<Variant> {
        let entry = self.session(node.session)?;
        match node.declaration {
            nodes::SUBSCRIPTIONS => Some(self.subscriptions(Some(node.session))),
            nodes::DIAGNOSTICS => Some(Variant::from_structure(&diagnostics(&entry))),
            nodes::SECURITY => Some(Variant::from_structure(&security(&entry))),
            declaration if node.is_confidential() => security_component(security(&entry), declaration),
            declaration => component(&diagnostics(&entry), declaration),
        }
    }

    fn state(&self) -> ServerState {
        ServerState(self.state.load(Ordering::Relaxed))
    }

    pub(crate) fn build_info(&self) -> &taktwerk_schema::BuildInfo {
        &self.build_info
    }

    fn summary(&self) -> ServerDiagnosticsSummaryDataType {
        let counters = &self.counters;
        ServerDiagnosticsSummaryDataType {
            server_view_count: 0,
            current_session_count: counters.current_session_count.value(),
            cumulated_session_count: counters.cumulated_session_count.value(),
            security_rejected_session_count: counters.security_rejected_session_count.value(),
            rejected_session_count: counters.all_rejected_sessions(),
            session_timeout_count: counters.session_timeout_count.value(),
            session_abort_count: counters.session_abort_count.value(),
            current_subscription_count: counters.current_subscription_count.value(),
            cumulated_subscription_count: counters.cumulated_subscription_count.value(),
            publishing_interval_count: self.publishing_interval_count(),
            security_rejected_requests_count: counters.security_rejected_requests_count.value(),
            rejected_requests_count: counters.rejected_requests_count.value(),
        }
    }

    /// Number of different publishing intervals.
    fn publishing_interval_count(&self) -> u32 {
        self.looks.fetch_add(1, Ordering::Relaxed);
        let all = lock(&self.subscriptions);
        let intervals: BTreeSet<u64> =
            all.values().flatten().map(|entry| entry.publishing_interval.to_bits()).collect();
        u32::try_from(intervals.len()).unwrap_or(u32::MAX)
    }

    fn subscriptions(&self, of_session: Option<u32>) -> Variant {
        self.looks.fetch_add(1, Ordering::Relaxed);
        let session_id = of_session.map(nodes::session_id);
        let all: Vec<ExtensionObject> = lock(&self.subscriptions)
            .values()
            .flatten()
            .filter(|entry| session_id.as_ref().is_none_or(|id| entry.session_id == *id))
            .map(ExtensionObject::new)
            .collect();
        all.into()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn next(counter: &AtomicU32) -> u32 {
    loop {
        let number = counter.fetch_add(1, Ordering::Relaxed);
        if number != 0 {
            return number;
        }
    }
}

fn security(entry: &SessionEntry) -> SessionSecurityDiagnosticsDataType {
    let security = entry.security();
    SessionSecurityDiagnosticsDataType {
        session_id: entry.id(),
        client_user_id_of_session: (&*security.user).into(),
        client_user_id_history: security.history.iter().map(|user| (&**user).into()).collect(),
        authentication_mechanism: security.mechanism.into(),
        encoding: "UA Binary".into(),
        transport_protocol: "opc.tcp".into(),
        security_mode: MessageSecurityMode(security.mode),
        security_policy_uri: security.policy_uri.into(),
        client_certificate: security.certificate.map(|der| der.to_vec().into()).unwrap_or_default(),
    }
}

fn security_component(all: SessionSecurityDiagnosticsDataType, declaration: u32) -> Option<Variant> {
    Some(match declaration {
        v::SESSION_SECURITY_DIAGNOSTICS_TYPE_SESSION_ID => all.session_id.into(),
        v::SESSION_SECURITY_DIAGNOSTICS_TYPE_CLIENT_USER_ID_OF_SESSION => {
            all.client_user_id_of_session.into()
        }
        v::SESSION_SECURITY_DIAGNOSTICS_TYPE_CLIENT_USER_ID_HISTORY => all.client_user_id_history.into(),
        v::SESSION_SECURITY_DIAGNOSTICS_TYPE_AUTHENTICATION_MECHANISM => all.authentication_mechanism.into(),
        v::SESSION_SECURITY_DIAGNOSTICS_TYPE_ENCODING => all.encoding.into(),
        v::SESSION_SECURITY_DIAGNOSTICS_TYPE_TRANSPORT_PROTOCOL => all.transport_protocol.into(),
        v::SESSION_SECURITY_DIAGNOSTICS_TYPE_SECURITY_MODE => all.security_mode.0.into(),
        v::SESSION_SECURITY_DIAGNOSTICS_TYPE_SECURITY_POLICY_URI => all.security_policy_uri.into(),
        v::SESSION_SECURITY_DIAGNOSTICS_TYPE_CLIENT_CERTIFICATE => all.client_certificate.into(),
        _ => return None,
    })
}

fn diagnostics(entry: &SessionEntry) -> SessionDiagnosticsDataType {
    use Counted as C;
    SessionDiagnosticsDataType {
        session_id: entry.id(),
        session_name: (&*entry.name).into(),
        client_description: entry.client.clone(),
        server_uri: taktwerk_types::UaString::NULL,
        endpoint_url: entry.endpoint_url.clone(),
        locale_ids: entry.locale_ids(),
        actual_session_timeout: entry.timeout,
        max_response_message_size: entry.max_response_message_size,
        client_connection_time: entry.connected,
        client_last_contact_time: entry.last_contact(),
        current_subscriptions_count: entry.subscriptions.load(Ordering::Relaxed),
        current_monitored_items_count: entry.monitored_items.load(Ordering::Relaxed),
        current_publish_requests_in_queue: entry.publish_requests.load(Ordering::Relaxed),
        total_request_count: entry.total(),
        unauthorized_request_count: entry.unauthorized(),
        read_count: entry.service(C::Read),
        history_read_count: entry.service(C::HistoryRead),
        write_count: entry.service(C::Write),
        history_update_count: entry.service(C::HistoryUpdate),
        call_count: entry.service(C::Call),
        create_monitored_items_count: entry.service(C::CreateMonitoredItems),
        modify_monitored_items_count: entry.service(C::ModifyMonitoredItems),
        set_monitoring_mode_count: entry.service(C::SetMonitoringMode),
        set_triggering_count: entry.service(C::SetTriggering),
        delete_monitored_items_count: entry.service(C::DeleteMonitoredItems),
        create_subscription_count: entry.service(C::CreateSubscription),
        modify_subscription_count: entry.service(C::ModifySubscription),
        set_publishing_mode_count: entry.service(C::SetPublishingMode),
        publish_count: entry.service(C::Publish),
        republish_count: entry.service(C::Republish),
        transfer_subscriptions_count: entry.service(C::TransferSubscriptions),
        delete_subscriptions_count: entry.service(C::DeleteSubscriptions),
        add_nodes_count: entry.service(C::AddNodes),
        add_references_count: entry.service(C::AddReferences),
        delete_nodes_count: entry.service(C::DeleteNodes),
        delete_references_count: entry.service(C::DeleteReferences),
        browse_count: entry.service(C::Browse),
        browse_next_count: entry.service(C::BrowseNext),
        translate_browse_paths_to_node_ids_count: entry.service(C::TranslateBrowsePathsToNodeIds),
        query_first_count: entry.service(C::QueryFirst),
        query_next_count: entry.service(C::QueryNext),
        register_nodes_count: entry.service(C::RegisterNodes),
        unregister_nodes_count: entry.service(C::UnregisterNodes),
    }
}

/// The component of a session's diagnostics that corresponds to a declaration.
fn component(all: &SessionDiagnosticsDataType, declaration: u32) -> Option<Variant> {
    macro_rules! counters {
        ($($id:ident => $field:ident),* $(,)?) => {
            match declaration {
                v::SESSION_DIAGNOSTICS_VARIABLE_TYPE_SESSION_ID => all.session_id.clone().into(),
                v::SESSION_DIAGNOSTICS_VARIABLE_TYPE_SESSION_NAME => all.session_name.clone().into(),
                v::SESSION_DIAGNOSTICS_VARIABLE_TYPE_CLIENT_DESCRIPTION => {
                    Variant::from_structure(&all.client_description)
                }
                v::SESSION_DIAGNOSTICS_VARIABLE_TYPE_SERVER_URI => all.server_uri.clone().into(),
                v::SESSION_DIAGNOSTICS_VARIABLE_TYPE_ENDPOINT_URL => all.endpoint_url.clone().into(),
                v::SESSION_DIAGNOSTICS_VARIABLE_TYPE_LOCALE_IDS => all.locale_ids.clone().into(),
                v::SESSION_DIAGNOSTICS_VARIABLE_TYPE_ACTUAL_SESSION_TIMEOUT => all.actual_session_timeout.into(),
                v::SESSION_DIAGNOSTICS_VARIABLE_TYPE_MAX_RESPONSE_MESSAGE_SIZE => {
                    all.max_response_message_size.into()
                }
                v::SESSION_DIAGNOSTICS_VARIABLE_TYPE_CLIENT_CONNECTION_TIME => all.client_connection_time.into(),
                v::SESSION_DIAGNOSTICS_VARIABLE_TYPE_CLIENT_LAST_CONTACT_TIME => {
                    all.client_last_contact_time.into()
                }
                v::SESSION_DIAGNOSTICS_VARIABLE_TYPE_CURRENT_SUBSCRIPTIONS_COUNT => {
                    all.current_subscriptions_count.into()
                }
                v::SESSION_DIAGNOSTICS_VARIABLE_TYPE_CURRENT_MONITORED_ITEMS_COUNT => {
                    all.current_monitored_items_count.into()
                }
                v::SESSION_DIAGNOSTICS_VARIABLE_TYPE_CURRENT_PUBLISH_REQUESTS_IN_QUEUE => {
                    all.current_publish_requests_in_queue.into()
                }
                v::SESSION_DIAGNOSTICS_VARIABLE_TYPE_UNAUTHORIZED_REQUEST_COUNT => {
                    all.unauthorized_request_count.into()
                }
                $(v::$id => Variant::from_structure(&all.$field),)*
                _ => return None,
            }
        };
    }
    Some(counters! {
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_TOTAL_REQUEST_COUNT => total_request_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_READ_COUNT => read_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_HISTORY_READ_COUNT => history_read_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_WRITE_COUNT => write_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_HISTORY_UPDATE_COUNT => history_update_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_CALL_COUNT => call_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_CREATE_MONITORED_ITEMS_COUNT => create_monitored_items_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_MODIFY_MONITORED_ITEMS_COUNT => modify_monitored_items_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_SET_MONITORING_MODE_COUNT => set_monitoring_mode_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_SET_TRIGGERING_COUNT => set_triggering_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_DELETE_MONITORED_ITEMS_COUNT => delete_monitored_items_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_CREATE_SUBSCRIPTION_COUNT => create_subscription_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_MODIFY_SUBSCRIPTION_COUNT => modify_subscription_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_SET_PUBLISHING_MODE_COUNT => set_publishing_mode_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_PUBLISH_COUNT => publish_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_REPUBLISH_COUNT => republish_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_TRANSFER_SUBSCRIPTIONS_COUNT => transfer_subscriptions_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_DELETE_SUBSCRIPTIONS_COUNT => delete_subscriptions_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_ADD_NODES_COUNT => add_nodes_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_ADD_REFERENCES_COUNT => add_references_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_DELETE_NODES_COUNT => delete_nodes_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_DELETE_REFERENCES_COUNT => delete_references_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_BROWSE_COUNT => browse_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_BROWSE_NEXT_COUNT => browse_next_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_TRANSLATE_BROWSE_PATHS_TO_NODE_IDS_COUNT
            => translate_browse_paths_to_node_ids_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_QUERY_FIRST_COUNT => query_first_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_QUERY_NEXT_COUNT => query_next_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_REGISTER_NODES_COUNT => register_nodes_count,
        SESSION_DIAGNOSTICS_VARIABLE_TYPE_UNREGISTER_NODES_COUNT => unregister_nodes_count,
    })
}
