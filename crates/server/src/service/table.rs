//! The service table: the properties of each service, one row per request type.
//!
//! [`super::gate`] checks an incoming request against its row once. The services do not check the session or the number
//! of operations again.

use super::gate::Caller;
use super::reply::Reply;
use super::request::Request;
use super::subscription_context::SubscriptionContext;
use super::{Outcome, activate, browse, call, discovery, monitored_item as item, read, register, session};
use super::{
    context::Context, history, node_management, publish, query, subscription, transfer, translate, write,
};
use crate::diagnostics::session::Counted as C;
use crate::error::Fault;
use crate::limits::Limits;
use schema::ids::variable_ids as v;
use taktwerk_schema as schema;
use taktwerk_types::{Decoder, Structure};

/// One request type.
pub(crate) struct Service {
    /// Numeric id of the request's binary encoding.
    pub(crate) request: u32,
    /// The session state it requires.
    pub(crate) gate: Gate,
    /// Its counter in the session's diagnostics.
    pub(crate) counted: Option<C>,
    /// The list of operations in the request, if it has one.
    pub(crate) operations: Option<Operations>,
    /// Whether the service writes only its own response, so that it can be written directly to the send buffer. Other
    /// services also answer waiting requests, and their own response is written to a separate buffer first.
    pub(crate) answers_alone: bool,
    /// The subscriptions that it changes. If they are durable, the response waits until the change is written.
    pub(crate) changes: Changes,
    /// The implementation.
    pub(crate) handler: Handler,
}

/// The subscriptions that a service changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changes {
    /// None.
    Nothing,
    /// The one whose id follows the RequestHeader.
    Subscription,
    /// Those whose ids are in a list, this many bytes after the RequestHeader.
    List(usize),
    /// Those that its methods make durable.
    Methods,
}

impl core::fmt::Debug for Service {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(schema::message_name(self.request).unwrap_or("unknown"))
    }
}

/// The session state that a service requires (Part 4 §5.7.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// None: discovery, and CreateSession.
    Open,
    /// Any session of the server. ActivateSession finds it itself: it may be on another channel or shard.
    Any,
    /// A session on the request's channel, activated or not.
    Created,
    /// An activated session on that channel.
    Activated,
}

/// The position of a request's list of operations, and its maximum length.
pub(crate) struct Operations {
    pub(crate) at: ListAt,
    /// Smallest operation, in bytes.
    pub(crate) len_min: usize,
    /// Number of consecutive lists that count together. If there are several, all elements have `len_min` bytes.
    pub(crate) lists: usize,
    pub(crate) limit: &'static OperationLimit,
}

/// The position of a list.
pub(crate) enum ListAt {
    /// Bytes after the RequestHeader.
    Offset(usize),
    /// After an ExtensionObject and further bytes.
    BehindObject(usize),
    /// After a ViewDescription (Part 4 §7.45) and further bytes.
    BehindView(usize),
}

/// The maximum number of operations in one request.
pub(crate) struct OperationLimit {
    /// The field of [`Limits`].
    pub(crate) name: &'static str,
    pub(crate) max: fn(&Limits) -> u32,
    /// The Variable that publishes it (Part 5 §6.3.11); the specification has none for operations on subscriptions.
    pub(crate) variable: Option<u32>,
}

/// The implementation of a service.
pub(crate) enum Handler {
    /// A service without a session.
    Open(fn(&mut Context<'_>, &Request<'_>, &mut Reply<'_>) -> Result<Outcome, Fault>),
    /// A service for a session.
    Session(SessionService),
    /// A service of the subscription engine: the id of its response, and the function that writes it after the
    /// ResponseHeader.
    Engine(u32, EngineService),
    /// Not implemented.
    Unsupported,
}

pub(crate) type SessionService =
    fn(&mut Context<'_>, &Caller<'_>, &Request<'_>, &mut Reply<'_>) -> Result<Outcome, Fault>;

/// Receives the request after the RequestHeader.
pub(crate) type EngineService =
    fn(&mut SubscriptionContext<'_>, &mut Decoder<'_>, &mut Vec<u8>) -> Result<(), Fault>;

macro_rules! limit {
    ($name:ident, $variable:expr) => {
        OperationLimit { name: stringify!($name), max: |limits| limits.$name, variable: $variable }
    };
}

static READ: OperationLimit =
    limit!(nodes_per_read_max, Some(v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_READ));
static WRITE: OperationLimit =
    limit!(nodes_per_write_max, Some(v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_WRITE));
static CALL: OperationLimit = limit!(
    nodes_per_method_call_max,
    Some(v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_METHOD_CALL)
);
static BROWSE: OperationLimit =
    limit!(nodes_per_browse_max, Some(v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_BROWSE));
static QUERY: OperationLimit = limit!(nodes_per_browse_max, None);
static REGISTER: OperationLimit = limit!(
    nodes_per_register_nodes_max,
    Some(v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_REGISTER_NODES)
);
static TRANSLATE: OperationLimit = limit!(
    nodes_per_translate_max,
    Some(v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_TRANSLATE_BROWSE_PATHS_TO_NODE_IDS)
);
static NODE_MANAGEMENT: OperationLimit = limit!(
    nodes_per_node_management_max,
    Some(v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_NODE_MANAGEMENT)
);
static HISTORY_READ: OperationLimit = limit!(
    nodes_per_history_read_max,
    Some(v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_HISTORY_READ_DATA)
);
static HISTORY_UPDATE: OperationLimit = limit!(
    nodes_per_history_update_max,
    Some(v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_HISTORY_UPDATE_DATA)
);
static ITEMS: OperationLimit = limit!(
    monitored_items_per_call_max,
    Some(v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_MONITORED_ITEMS_PER_CALL)
);
static SUBSCRIPTIONS: OperationLimit = limit!(monitored_items_per_call_max, None);
/// Each may be a question to another shard. More than a session usually has.
static TRANSFERS: OperationLimit = OperationLimit {
    max: |limits| limits.monitored_items_per_call_max.min(1_000),
    ..limit!(monitored_items_per_call_max, None)
};

const fn list(offset: usize, len_min: usize, limit: &'static OperationLimit) -> Option<Operations> {
    Some(Operations { at: ListAt::Offset(offset), len_min, lists: 1, limit })
}

/// A row with defaults; rare properties are set afterwards.
const fn row<T: Structure>(handler: Handler) -> Service {
    Service {
        request: T::BINARY_ENCODING_ID,
        gate: Gate::Activated,
        counted: None,
        operations: None,
        answers_alone: false,
        changes: Changes::Nothing,
        handler,
    }
}

const fn open<T: Structure>(handler: Handler) -> Service {
    Service { gate: Gate::Open, ..row::<T>(handler) }
}

/// A service for an activated session.
const fn session<T: Structure>(
    counted: C,
    operations: Option<Operations>,
    handler: SessionService,
) -> Service {
    Service { counted: Some(counted), operations, ..row::<T>(Handler::Session(handler)) }
}

const fn alone(row: Service) -> Service {
    Service { answers_alone: true, ..row }
}

/// A service that changes one subscription.
const fn changes(row: Service) -> Service {
    Service { changes: Changes::Subscription, ..row }
}

const fn engine<T: schema::service::Request>(
    counted: C,
    operations: Option<Operations>,
    handler: EngineService,
) -> Service {
    let handler = Handler::Engine(<T::Response as Structure>::BINARY_ENCODING_ID, handler);
    Service { counted: Some(counted), operations, ..row::<T>(handler) }
}

/// All services, the most frequent first: rows are searched from the top.
static TABLE: [Service; 37] = [
    alone(session::<schema::ReadRequest>(C::Read, list(12, read::ITEM_LEN_MIN, &READ), read::read)),
    session::<schema::PublishRequest>(C::Publish, None, publish),
    alone(session::<schema::WriteRequest>(C::Write, list(0, 11, &WRITE), write::write)),
    Service {
        changes: Changes::Methods,
        ..alone(session::<schema::CallRequest>(C::Call, list(0, 8, &CALL), call::call))
    },
    alone(session::<schema::BrowseRequest>(
        C::Browse,
        Some(Operations {
            at: ListAt::BehindView(4),
            len_min: browse::DESCRIPTION_LEN_MIN,
            lists: 1,
            limit: &BROWSE,
        }),
        browse::browse,
    )),
    alone(session::<schema::BrowseNextRequest>(C::BrowseNext, list(1, 4, &BROWSE), browse::browse_next)),
    alone(session::<schema::TranslateBrowsePathsToNodeIdsRequest>(
        C::TranslateBrowsePathsToNodeIds,
        list(0, 6, &TRANSLATE),
        translate::translate,
    )),
    session::<schema::RegisterNodesRequest>(C::RegisterNodes, list(0, 2, &REGISTER), register::register),
    session::<schema::UnregisterNodesRequest>(
        C::UnregisterNodes,
        list(0, 2, &REGISTER),
        register::unregister,
    ),
    alone(changes(session::<schema::CreateMonitoredItemsRequest>(
        C::CreateMonitoredItems,
        list(8, 40, &ITEMS),
        item::create_monitored_items,
    ))),
    changes(session::<schema::ModifyMonitoredItemsRequest>(
        C::ModifyMonitoredItems,
        list(8, 24, &ITEMS),
        item::modify_monitored_items,
    )),
    changes(session::<schema::SetMonitoringModeRequest>(
        C::SetMonitoringMode,
        list(8, 4, &ITEMS),
        item::set_monitoring_mode,
    )),
    changes(engine::<schema::SetTriggeringRequest>(
        C::SetTriggering,
        Some(Operations { at: ListAt::Offset(8), len_min: 4, lists: 2, limit: &ITEMS }),
        item::set_triggering,
    )),
    changes(session::<schema::DeleteMonitoredItemsRequest>(
        C::DeleteMonitoredItems,
        list(4, 4, &ITEMS),
        item::delete_monitored_items,
    )),
    session::<schema::CreateSubscriptionRequest>(C::CreateSubscription, None, super::create_subscription),
    changes(engine::<schema::ModifySubscriptionRequest>(
        C::ModifySubscription,
        None,
        subscription::modify_subscription,
    )),
    Service {
        changes: Changes::List(1),
        ..session::<schema::SetPublishingModeRequest>(
            C::SetPublishingMode,
            list(1, 4, &SUBSCRIPTIONS),
            subscription::set_publishing_mode,
        )
    },
    session::<schema::DeleteSubscriptionsRequest>(
        C::DeleteSubscriptions,
        list(0, 4, &SUBSCRIPTIONS),
        subscription::delete_subscriptions,
    ),
    session::<schema::TransferSubscriptionsRequest>(
        C::TransferSubscriptions,
        list(0, 4, &TRANSFERS),
        transfer::transfer,
    ),
    session::<schema::RepublishRequest>(C::Republish, None, super::republish),
    alone(open::<schema::GetEndpointsRequest>(Handler::Open(discovery::get_endpoints))),
    open::<schema::FindServersRequest>(Handler::Open(discovery::find_servers)),
    open::<schema::CreateSessionRequest>(Handler::Open(session::create)),
    Service { gate: Gate::Any, ..row::<schema::ActivateSessionRequest>(Handler::Open(activate::activate)) },
    Service { gate: Gate::Created, ..row::<schema::CloseSessionRequest>(Handler::Session(session::close)) },
    row::<schema::CancelRequest>(Handler::Session(session::cancel)),
    open::<schema::FindServersOnNetworkRequest>(Handler::Unsupported),
    open::<schema::RegisterServerRequest>(Handler::Unsupported),
    open::<schema::RegisterServer2Request>(Handler::Unsupported),
    session::<schema::HistoryReadRequest>(
        C::HistoryRead,
        Some(Operations {
            at: ListAt::BehindObject(5),
            len_min: history::read::NODE_LEN_MIN,
            lists: 1,
            limit: &HISTORY_READ,
        }),
        history::read::history_read,
    ),
    session::<schema::HistoryUpdateRequest>(
        C::HistoryUpdate,
        list(0, 3, &HISTORY_UPDATE),
        history::update::history_update,
    ),
    alone(session::<schema::AddNodesRequest>(
        C::AddNodes,
        list(0, node_management::ITEM_LEN_MIN, &NODE_MANAGEMENT),
        node_management::add_nodes,
    )),
    alone(session::<schema::AddReferencesRequest>(
        C::AddReferences,
        list(0, 15, &NODE_MANAGEMENT),
        node_management::add_references,
    )),
    alone(session::<schema::DeleteNodesRequest>(
        C::DeleteNodes,
        list(0, 3, &NODE_MANAGEMENT),
        node_management::delete_nodes,
    )),
    alone(session::<schema::DeleteReferencesRequest>(
        C::DeleteReferences,
        list(0, 8, &NODE_MANAGEMENT),
        node_management::delete_references,
    )),
    alone(session::<schema::QueryFirstRequest>(
        C::QueryFirst,
        Some(Operations { at: ListAt::BehindView(0), len_min: query::TYPE_LEN_MIN, lists: 1, limit: &QUERY }),
        query::query_first,
    )),
    alone(session::<schema::QueryNextRequest>(C::QueryNext, None, query::query_next)),
];

/// The row for an unknown type id: treated like a service that is not implemented.
static UNKNOWN: Service = Service {
    request: 0,
    gate: Gate::Activated,
    counted: None,
    operations: None,
    answers_alone: false,
    changes: Changes::Nothing,
    handler: Handler::Unsupported,
};

/// The row of a request type.
#[inline]
pub(crate) fn find(type_id: u32) -> &'static Service {
    TABLE.iter().find(|service| service.request == type_id).unwrap_or(&UNKNOWN)
}

/// The limits that have a Variable, by its id (Part 5 §6.3.11).
pub(crate) fn published(limits: &Limits) -> impl Iterator<Item = (u32, u32)> {
    let all = TABLE.iter().filter_map(|service| service.operations.as_ref());
    all.filter_map(|operations| Some((operations.limit.variable?, (operations.limit.max)(limits))))
}

/// All rows.
#[cfg(test)]
pub(crate) fn all() -> &'static [Service] {
    &TABLE
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The requests of the schema that are services; the other two belong to the channel.
    fn requests() -> BTreeSet<u32> {
        let channel = [
            schema::OpenSecureChannelRequest::BINARY_ENCODING_ID,
            schema::CloseSecureChannelRequest::BINARY_ENCODING_ID,
        ];
        (0..=u32::from(u16::MAX))
            .filter(|id| schema::message_name(*id).is_some_and(|name| name.ends_with("Request")))
            .filter(|id| !channel.contains(id))
            .collect()
    }

    #[test]
    fn every_request_type_has_one_row() {
        let rows: Vec<u32> = TABLE.iter().map(|service| service.request).collect();
        let unique: BTreeSet<u32> = rows.iter().copied().collect();
        assert_eq!(rows.len(), unique.len(), "a request type has two rows");
        assert_eq!(unique, requests());
    }

    #[test]
    fn handlers_fit_their_gates() {
        for service in &TABLE {
            let name = schema::message_name(service.request).unwrap();
            match service.handler {
                Handler::Open(_) => assert!(matches!(service.gate, Gate::Open | Gate::Any), "{name}"),
                Handler::Session(_) => {
                    assert!(matches!(service.gate, Gate::Created | Gate::Activated), "{name}")
                }
                Handler::Engine(..) => assert_eq!(service.gate, Gate::Activated, "{name}"),
                Handler::Unsupported => {}
            }
            // Without an activated session there is no client to which the limits could apply.
            assert!(service.operations.is_none() || service.gate == Gate::Activated, "{name}");
        }
    }

    #[test]
    fn counters_belong_to_one_service_each() {
        let counted: Vec<usize> = TABLE.iter().filter_map(|row| row.counted).map(|c| c as usize).collect();
        let unique: BTreeSet<usize> = counted.iter().copied().collect();
        assert_eq!(counted.len(), unique.len());
        assert_eq!(unique.len(), C::UnregisterNodes as usize + 1, "a counter without a service");
    }
}
