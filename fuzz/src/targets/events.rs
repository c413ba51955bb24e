//! Event items with any select and where clauses, while events are raised, alarms change and clients refresh.

use super::alarms::add_alarms;
use super::server::finish;
use crate::input::Input;
use crate::server::{Server, VARIABLES};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_schema::ids::{method_ids, object_ids};
use taktwerk_schema::service::Request;
use taktwerk_schema::{
    ActivateSessionRequest, AttributeOperand, CallMethodRequest, CallRequest, ContentFilter,
    ContentFilterElement, CreateMonitoredItemsRequest, CreateSessionRequest, CreateSubscriptionRequest,
    DeleteMonitoredItemsRequest, ElementOperand, EventFilter, EventFilterResult, EventNotificationList,
    FilterOperator, LiteralOperand, ModifyMonitoredItemsRequest, MonitoredItemCreateRequest,
    MonitoredItemModifyRequest, MonitoringMode, MonitoringParameters, PublishRequest, PublishResponse,
    ReadValueId, RelativePath, RelativePathElement, RequestHeader, SetMonitoringModeRequest,
    SimpleAttributeOperand,
};
use taktwerk_server::NewEvent;
use taktwerk_sim::plant::variable_id;
use taktwerk_types::{
    Decode, DecodeLimits, ExtensionObject, LocalizedText, NodeId, QualifiedName, StatusCode, Variant,
};

/// Fields of events and conditions, and others.
const FIELDS: [&str; 14] = [
    "EventId",
    "EventType",
    "SourceNode",
    "SourceName",
    "Time",
    "Message",
    "Severity",
    "ActiveState",
    "AckedState",
    "Retain",
    "BranchId",
    "ConditionName",
    "Extra",
    "",
];
/// BaseEventType, ConditionType, AlarmConditionType, ExclusiveLevelAlarmType, SystemEventType, a type of Objects, an
/// unknown one.
const TYPES: [u32; 7] = [2041, 2782, 2915, 9482, 2130, 61, 99_999];

/// A sequence of requests about event items, of events, and of pauses.
pub fn filters(data: &[u8]) {
    let mut input = Input::new(data);
    let mut scene = Scene::new();
    while !input.is_empty() {
        scene.act(&mut input);
        scene.check();
    }
    finish(scene.server);
}

struct Scene {
    server: Server,
    client: usize,
    token: NodeId,
    handle: u32,
    subscription: u32,
    items: Vec<u32>,
    /// The numbers of select clauses that items with this client handle have or had.
    selected: BTreeMap<u32, BTreeSet<usize>>,
}

impl Scene {
    fn new() -> Self {
        let mut server = Server::new();
        add_alarms(&server);
        let client = server.connect();
        let mut scene = Self {
            server,
            client,
            token: NodeId::NULL,
            handle: 0,
            subscription: 0,
            items: Vec::new(),
            selected: BTreeMap::new(),
        };
        let create = CreateSessionRequest { requested_session_timeout: 3_600_000.0, ..Default::default() };
        scene.token = scene.send(create).map(|response| response.authentication_token).unwrap_or_default();
        scene.send(ActivateSessionRequest::default());
        let create = CreateSubscriptionRequest {
            requested_publishing_interval: 50.0,
            requested_lifetime_count: 100_000,
            requested_max_keep_alive_count: 10,
            publishing_enabled: true,
            ..Default::default()
        };
        scene.subscription = scene.send(create).map(|response| response.subscription_id).unwrap_or_default();
        scene
    }

    fn with_header<R: Request>(&mut self, mut request: R) -> R {
        self.handle += 1;
        *request.header_mut() = RequestHeader {
            authentication_token: self.token.clone(),
            request_handle: self.handle,
            ..RequestHeader::default()
        };
        request
    }

    fn send<R: Request>(&mut self, request: R) -> Option<R::Response> {
        let request = self.with_header(request);
        self.server.call(self.client, &request)
    }

    fn act(&mut self, input: &mut Input<'_>) {
        match input.below(16) {
            0..4 => self.raise(input),
            4..6 => self.create(input),
            6 | 7 => self.modify(input),
            8 | 9 => {
                let request = self.with_header(PublishRequest::default());
                self.server.request(self.client, &request);
            }
            10 | 11 => self.server.pass(Duration::from_millis(u64::from(input.byte()) * 2)),
            12 => {
                let value = input.pick(&[20.0, 81.0, 99.0, f64::NAN]);
                if let Some(variable) = self.server.variables.get(input.below(VARIABLES as usize)) {
                    variable.set_at(value, self.server.now.utc);
                }
                self.server.space.poll_alarms(self.server.now.utc);
            }
            13 | 14 => self.refresh(input),
            _ => self.change(input),
        }
    }

    /// The application raises events.
    fn raise(&mut self, input: &mut Input<'_>) {
        for _ in 0..=input.below(12) {
            let mut event = NewEvent::new(NodeId::numeric(0, input.pick(&TYPES)), source(input))
                .severity(input.u16())
                .message(LocalizedText::new("en", input.pick(&["", "pump", "100 %", "[x]"])));
            if input.flag() {
                event = event.field(QualifiedName::new(0, input.pick(&FIELDS)), value(input));
            }
            self.server.space.raise(event, self.server.now.utc);
        }
    }

    fn create(&mut self, input: &mut Input<'_>) {
        let filters: Vec<EventFilter> = (0..=input.below(3)).map(|_| filter(input)).collect();
        let items: Vec<_> = filters
            .iter()
            .map(|filter| MonitoredItemCreateRequest {
                item_to_monitor: ReadValueId {
                    node_id: if input.one_in(4) { source(input) } else { object_ids::SERVER.into() },
                    attribute_id: if input.one_in(16) { 13 } else { 12 },
                    ..ReadValueId::default()
                },
                monitoring_mode: MonitoringMode(2 - i32::from(input.byte() % 8 / 6)),
                requested_parameters: parameters(filter, input),
            })
            .collect();
        let handles: Vec<u32> = items.iter().map(|item| item.requested_parameters.client_handle).collect();
        let request = CreateMonitoredItemsRequest {
            subscription_id: self.subscription,
            items_to_create: items,
            ..Default::default()
        };
        let Some(response) = self.send(request) else { return };
        assert_eq!(response.results.len(), filters.len());
        for ((result, filter), handle) in response.results.iter().zip(&filters).zip(handles) {
            if self.accepted(result.status_code, &result.filter_result, filter, handle) {
                self.items.push(result.monitored_item_id);
            }
        }
    }

    fn modify(&mut self, input: &mut Input<'_>) {
        let filter = filter(input);
        let parameters = parameters(&filter, input);
        let handle = parameters.client_handle;
        let item = MonitoredItemModifyRequest {
            monitored_item_id: self.item(input),
            requested_parameters: parameters,
        };
        let request = ModifyMonitoredItemsRequest {
            subscription_id: self.subscription,
            items_to_modify: vec![item],
            ..Default::default()
        };
        let Some(response) = self.send(request) else { return };
        for result in &response.results {
            self.accepted(result.status_code, &result.filter_result, &filter, handle);
        }
    }

    /// Checks the result for a filter (Part 4 §7.22.3). Returns whether it is used.
    fn accepted(
        &mut self,
        status: StatusCode,
        result: &ExtensionObject,
        filter: &EventFilter,
        handle: u32,
    ) -> bool {
        if let Ok(result) = result.decode::<EventFilterResult>() {
            let (clauses, elements) = (filter.select_clauses.len(), filter.where_clause.elements.len());
            assert_eq!(result.select_clause_results.len(), clauses, "{result:?}");
            let results = &result.where_clause_result.element_results;
            assert!(results.is_empty() || results.len() == elements, "{result:?}");
            for (element, result) in filter.where_clause.elements.iter().zip(results) {
                let operands = &result.operand_status_codes;
                assert!(operands.is_empty() || operands.len() == element.filter_operands.len(), "{result:?}");
            }
        }
        if status.is_good() {
            self.selected.entry(handle).or_default().insert(filter.select_clauses.len());
        }
        status.is_good()
    }

    fn item(&self, input: &mut Input<'_>) -> u32 {
        match (self.items.len(), input.byte()) {
            (0, _) | (_, 0xf8..) => input.edgy_u32(),
            (len, choice) => self.items.get(usize::from(choice) % len).copied().unwrap_or_default(),
        }
    }

    /// ConditionRefresh and ConditionRefresh2 (Part 9 §5.5.7, §5.5.8).
    fn refresh(&mut self, input: &mut Input<'_>) {
        let (method, mut arguments) = if input.flag() {
            (method_ids::CONDITION_TYPE_CONDITION_REFRESH, vec![Variant::from(self.subscription)])
        } else {
            let item = self.item(input);
            (
                method_ids::CONDITION_TYPE_CONDITION_REFRESH2,
                vec![Variant::from(self.subscription), Variant::from(item)],
            )
        };
        if input.one_in(16) {
            arguments.push(value(input));
        }
        let call = CallMethodRequest {
            object_id: NodeId::numeric(0, 2782),
            method_id: NodeId::numeric(0, method),
            input_arguments: arguments,
        };
        self.send(CallRequest { methods_to_call: vec![call], ..Default::default() });
    }

    fn change(&mut self, input: &mut Input<'_>) {
        let item = self.item(input);
        if input.flag() {
            let request = SetMonitoringModeRequest {
                subscription_id: self.subscription,
                monitoring_mode: MonitoringMode(i32::from(input.byte() % 4)),
                monitored_item_ids: vec![item],
                ..Default::default()
            };
            self.send(request);
        } else {
            let request = DeleteMonitoredItemsRequest {
                subscription_id: self.subscription,
                monitored_item_ids: vec![item],
                ..Default::default()
            };
            self.send(request);
            self.items.retain(|other| *other != item);
        }
    }

    /// Every event has as many fields as its item selects.
    fn check(&mut self) {
        for answer in self.server.take_answers(self.client) {
            let Some(response) = answer.read::<PublishResponse>() else { continue };
            let blocks = &response.notification_message.notification_data;
            for list in blocks.iter().filter_map(|block| block.decode::<EventNotificationList>().ok()) {
                for event in list.events {
                    let selected = self.selected.get(&event.client_handle);
                    let is_known = selected.is_some_and(|counts| counts.contains(&event.event_fields.len()));
                    assert!(is_known, "{event:?} does not fit {selected:?}");
                }
            }
        }
    }
}

/// The Server, variables with alarms, other nodes, and none.
fn source(input: &mut Input<'_>) -> NodeId {
    match input.below(8) {
        0 => variable_id(u32::from(input.byte() % 5)),
        1 => NodeId::NULL,
        2 => NodeId::numeric(0, input.pick(&[84, 85, 2256, 58])),
        3 => NodeId::string(1, input.pick(&["alarm 0", "alarm 3", "first", "nothing"])),
        _ => object_ids::SERVER.into(),
    }
}

fn value(input: &mut Input<'_>) -> Variant {
    match input.below(10) {
        0 => u32::from(input.byte()).into(),
        1 => input.f64().into(),
        2 => input.pick(&["%pump%", "1", "true", "[^a-", "\\"]).into(),
        3 => input.flag().into(),
        4 => NodeId::numeric(0, input.pick(&TYPES)).into(),
        5 => vec![i32::from(input.byte()); input.below(4)].into(),
        6 => StatusCode(input.u32()).into(),
        7 => i64::from(input.u32()).wrapping_neg().into(),
        8 => Variant::Empty,
        _ => Variant::decode_from(input.piece(), DecodeLimits::DEFAULT).unwrap_or_default(),
    }
}

fn select(input: &mut Input<'_>) -> SimpleAttributeOperand {
    let len = if input.one_in(8) { input.below(12) } else { 1 };
    SimpleAttributeOperand {
        type_definition_id: match input.below(4) {
            0 => NodeId::numeric(0, input.pick(&TYPES)),
            1 => NodeId::NULL,
            _ => NodeId::numeric(0, 2041),
        },
        browse_path: (0..len).map(|_| QualifiedName::new(0, input.pick(&FIELDS))).collect(),
        attribute_id: match input.byte() {
            0xf0.. => u32::from(input.byte()),
            0xe0.. => 1,
            _ => 13,
        },
        index_range: input.pick(&["", "", "", "", "0", "0:1", "x"]).into(),
    }
}

fn operand(input: &mut Input<'_>) -> ExtensionObject {
    match input.below(10) {
        0..3 => ExtensionObject::new(&ElementOperand { index: u32::from(input.byte() % 9) }),
        3..6 => ExtensionObject::new(&select(input)),
        6 => ExtensionObject::new(&AttributeOperand {
            node_id: source(input),
            attribute_id: u32::from(input.byte() % 28),
            browse_path: RelativePath {
                elements: vec![RelativePathElement::default(); usize::from(input.byte() % 2)],
            },
            ..AttributeOperand::default()
        }),
        7 if input.one_in(4) => ExtensionObject::from_binary(NodeId::numeric(0, 597), input.piece().to_vec()),
        _ => ExtensionObject::new(&LiteralOperand { value: value(input) }),
    }
}

fn filter(input: &mut Input<'_>) -> EventFilter {
    let select_clauses = (0..input.below(5)).map(|_| select(input)).collect();
    let count = if input.one_in(3) { 0 } else { input.below(6) };
    let elements = (0..count)
        .map(|_| {
            let operator = i32::from(input.byte() % 19);
            // The usual number of operands, or any.
            let len = match operator {
                _ if input.one_in(8) => input.below(8),
                1 | 7 | 13 | 14 => 1,
                8 => 3,
                9 => 4,
                15 => 6,
                _ => 2,
            };
            ContentFilterElement {
                filter_operator: FilterOperator(operator),
                filter_operands: (0..len).map(|_| operand(input)).collect(),
            }
        })
        .collect();
    EventFilter { select_clauses, where_clause: ContentFilter { elements } }
}

fn parameters(filter: &EventFilter, input: &mut Input<'_>) -> MonitoringParameters {
    MonitoringParameters {
        client_handle: u32::from(input.byte() % 16),
        sampling_interval: 0.0,
        filter: if input.one_in(32) {
            ExtensionObject::from_binary(NodeId::numeric(0, 727), input.piece().to_vec())
        } else {
            ExtensionObject::new(filter)
        },
        queue_size: input.edgy_u32(),
        discard_oldest: input.flag(),
    }
}
