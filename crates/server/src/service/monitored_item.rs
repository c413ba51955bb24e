//! The MonitoredItem service set (Part 4 §5.13). Requests are decoded and answered item by item, so that a request with
//! a hundred thousand items needs no list in memory.

use super::context::Context;
use super::event_item;
use super::gate::Caller;
use super::list::{self, Cursor, List};
use super::reply::Reply;
use super::request::Request;
use super::subscription_context::SubscriptionContext;
use super::{Outcome, with_engine};
use crate::authorization::{Decisions, Denial};
use crate::durable::record::{self, Section};
use crate::error::Fault;
use crate::space::NodeIx;
use crate::space::nodes::{Nodes, ValueAt};
use crate::space::view::attribute;
use crate::space::{attribute as attribute_of, attribute_permission};
use crate::subscription::filter::Filter;
use crate::subscription::item::{NONE, Trigger};
use crate::subscription::manage::{ItemSpec, Revised, Settings};
use crate::work::unit;
use taktwerk_schema::ids::data_type_ids;
use taktwerk_schema::{
    AggregateFilterResult, CreateMonitoredItemsResponse, DeleteMonitoredItemsResponse, EventFilter,
    EventFilterResult, ModifyMonitoredItemsResponse, MonitoredItemCreateRequest, MonitoredItemModifyRequest,
    MonitoringMode, Range, SetMonitoringModeResponse,
};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{
    Decode, DecodeError, Decoder, Encode, ExtensionObject, NodeIdRef, NumericRange, QualifiedName,
    StatusCode, TimestampsToReturn, Variant,
};

/// MonitoringParameters (Part 4 §7.21).
pub(super) struct Parameters {
    pub(super) client_handle: u32,
    sampling_interval: f64,
    pub(super) filter: ExtensionObject,
    pub(super) queue_size: u32,
    pub(super) discard_oldest: bool,
}

impl Parameters {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            client_handle: u32::decode(decoder)?,
            sampling_interval: f64::decode(decoder)?,
            filter: <ExtensionObject as Decode>::decode(decoder)?,
            queue_size: u32::decode(decoder)?,
            discard_oldest: bool::decode(decoder)?,
        })
    }

    /// Checks the filter against the node.
    fn settings(&self, nodes: &Nodes, node: NodeIx, attribute_id: u32) -> Result<Settings, StatusCode> {
        let view = nodes.view(node).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        let is_value = attribute_id == attribute::VALUE;
        // Event items are handled separately, so an EventFilter is invalid here.
        if self.filter.is::<EventFilter>() {
            return Err(StatusCode::BAD_FILTER_NOT_ALLOWED);
        }
        let aggregate = super::aggregate_filter::check(&self.filter, is_value, nodes, node)?;
        let filter = match aggregate {
            Some(_) => Filter { trigger: Trigger::StatusValueTimestamp, deadband: None },
            None => {
                let numeric = is_value && is_number(nodes, node);
                Filter::check(&self.filter, is_value, numeric, || eu_range(nodes, node))?
            }
        };
        let minimum_sampling_interval =
            if is_value { view.minimum_sampling_interval().max(0.0) } else { 0.0 };
        Ok(Settings {
            sampling_interval: self.sampling_interval,
            minimum_sampling_interval,
            queue_size: self.queue_size,
            discard_oldest: self.discard_oldest,
            filter,
            aggregate,
        })
    }
}

/// Whether a Variable's DataType is a Number.
fn is_number(nodes: &Nodes, node: NodeIx) -> bool {
    nodes
        .view(node)
        .and_then(|view| view.data_type())
        .and_then(|id| nodes.resolve(id.as_ref()))
        .is_some_and(|data_type| nodes.is_subtype(data_type, NodeIx::ns0(data_type_ids::NUMBER)))
}

/// The value of a Variable's EURange property (Part 8 §5.3.2.4).
fn eu_range(nodes: &Nodes, node: NodeIx) -> Option<Range> {
    let property = nodes.child(node, &QualifiedName::new(0, "EURange"))?;
    let value = match nodes.value_at(property) {
        ValueAt::Slot(slot) | ValueAt::Source(_, slot) => nodes.slot(slot)?.value(),
        ValueAt::Static(bytes) => Variant::decode_from(bytes, Default::default()).ok()?,
        ValueAt::Computed(_) | ValueAt::None => return None,
    };
    match value {
        Variant::ExtensionObject(range) => range.decode().ok(),
        _ => None,
    }
}

/// A CreateMonitoredItems or ModifyMonitoredItems in progress.
#[derive(Debug)]
pub(crate) struct Items {
    creates: bool,
    subscription_id: u32,
    timestamps: TimestampsToReturn,
}

/// CreateMonitoredItems (Part 4 §5.13.2).
pub(crate) fn create_monitored_items(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let items = Items::begin(cx, caller, request, true)?;
    encode_len(caller.count, reply.begin::<CreateMonitoredItemsResponse>());
    list::start(cx, caller, request, Cursor::Items(items), reply)
}

/// ModifyMonitoredItems (Part 4 §5.13.3).
pub(crate) fn modify_monitored_items(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let items = Items::begin(cx, caller, request, false)?;
    encode_len(caller.count, reply.begin::<ModifyMonitoredItemsResponse>());
    list::start(cx, caller, request, Cursor::Items(items), reply)
}

impl Items {
    fn begin(
        cx: &mut Context<'_>,
        caller: &Caller<'_>,
        request: &Request<'_>,
        creates: bool,
    ) -> Result<Self, Fault> {
        let mut body = request.body.clone();
        let subscription_id = u32::decode(&mut body)?;
        with_engine(cx, caller, |context| context.begin(subscription_id))?;
        Ok(Self { creates, subscription_id, timestamps: timestamps(&mut body)? })
    }

    pub(super) fn work(
        &mut self,
        cx: &mut Context<'_>,
        caller: &Caller<'_>,
        list: &mut List<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Fault> {
        with_engine(cx, caller, |context| {
            // The subscription may have ended while other connections had their turn.
            let place = context.find(self.subscription_id)?;
            while list.goes_on(reply)? {
                let before = list.body.remaining();
                let (decoder, out) = (&mut list.body, reply.out());
                let request = decoder.rest();
                let room = self.make_room(context, place, decoder)?;
                let Answer { result, filter_result } = if let Err((status, used)) = room {
                    *decoder = used;
                    Answer { result: Err(status), filter_result: None }
                } else if self.creates {
                    create_one(context, place, self.timestamps, decoder)?
                } else {
                    modify_one(context, place, self.timestamps, decoder)?
                };
                if result.is_ok() && context.engine.is_durable(place) {
                    let bytes = request.get(..before - list.body.remaining()).unwrap_or_default();
                    self.write_down(context, place, &result, bytes);
                }
                let (status, revised) = match result {
                    Ok(revised) => (StatusCode::GOOD, revised),
                    Err(status) => (status, NOTHING),
                };
                status.encode(out);
                if self.creates {
                    revised.item_id.encode(out);
                }
                encode_revised(&revised, filter_result.as_ref(), out);
                list.done(unit::ITEM, before - list.body.remaining());
            }
            Ok(())
        })
    }
}

impl Items {
    /// Makes sure that the log of a durable subscription has space for the next operation. Otherwise returns the status
    /// and the decoder positioned after the operation.
    fn make_room<'a>(
        &self,
        context: &mut SubscriptionContext<'_>,
        place: u32,
        decoder: &Decoder<'a>,
    ) -> Result<Result<(), (StatusCode, Decoder<'a>)>, Fault> {
        if !context.engine.is_durable(place) {
            return Ok(Ok(()));
        }
        let mut behind = decoder.clone();
        if self.creates {
            MonitoredItemCreateRequest::decode(&mut behind)?;
        } else {
            MonitoredItemModifyRequest::decode(&mut behind)?;
        }
        let bytes = decoder.remaining() - behind.remaining();
        let room = context.engine.journal_room(place, record::ITEM_BYTES + bytes);
        Ok(room.map_err(|status| (status, behind)))
    }

    /// Records a change to an item of a durable subscription.
    fn write_down(
        &self,
        context: &mut SubscriptionContext<'_>,
        place: u32,
        result: &Result<Revised, StatusCode>,
        request: &[u8],
    ) {
        let (Ok(Revised { item_id, .. }), timestamps) = (result, self.timestamps as i32) else { return };
        if self.creates {
            context.engine.journal(place, |out| record::created(*item_id, timestamps, request, out));
        } else {
            // The MonitoredItemId comes first.
            let parameters = request.get(4..).unwrap_or_default();
            context.engine.journal(place, |out| record::modified(*item_id, timestamps, parameters, out));
        }
    }
}

/// Restores an item of a durable subscription from its create request. Returns its index.
///
/// # Errors
/// The status that a client would receive.
pub(super) fn create_again(
    context: &mut SubscriptionContext<'_>,
    place: u32,
    timestamps: i32,
    request: &[u8],
) -> Result<u32, StatusCode> {
    let mut decoder = Decoder::new(request, context.limits.decode());
    let timestamps = TimestampsToReturn::from_wire(timestamps)?;
    let answer = create_one(context, place, timestamps, &mut decoder).map_err(|error| error.status())?;
    let revised = answer.result?;
    context.engine.find_item(place, revised.item_id)
}

/// Restores the modification of an item of a durable subscription.
///
/// # Errors
/// The status that a client would receive.
pub(super) fn modify_again(
    context: &mut SubscriptionContext<'_>,
    place: u32,
    index: u32,
    timestamps: i32,
    parameters: &[u8],
) -> Result<(), StatusCode> {
    let mut decoder = Decoder::new(parameters, context.limits.decode());
    let timestamps = TimestampsToReturn::from_wire(timestamps)?;
    let parameters = Parameters::decode(&mut decoder).map_err(|error| error.status())?;
    modify(context, place, Ok(index), timestamps, &parameters).result.map(|_| ())
}

/// The result for one item.
pub(super) struct Answer {
    pub(super) result: Result<Revised, StatusCode>,
    /// The result for an EventFilter or AggregateFilter.
    pub(super) filter_result: Option<FilterResult>,
}

/// The result for a filter.
pub(super) enum FilterResult {
    /// The errors in it.
    Events(Box<EventFilterResult>),
    /// The revised filter.
    Aggregate(Box<AggregateFilterResult>),
}

impl From<Result<Revised, StatusCode>> for Answer {
    fn from(result: Result<Revised, StatusCode>) -> Self {
        Self { result, filter_result: None }
    }
}

/// The revised values of a failed operation.
const NOTHING: Revised = Revised { item_id: 0, sampling_interval: 0.0, queue_size: 0 };

fn encode_revised(revised: &Revised, filter_result: Option<&FilterResult>, out: &mut Vec<u8>) {
    revised.sampling_interval.encode(out);
    revised.queue_size.encode(out);
    // DataChangeFilters have no filter result, and EventFilters have one only if there are errors.
    match filter_result {
        None => ExtensionObject::NULL,
        Some(FilterResult::Events(result)) => ExtensionObject::new(&**result),
        Some(FilterResult::Aggregate(result)) => ExtensionObject::new(&**result),
    }
    .encode(out);
}

fn timestamps(decoder: &mut Decoder<'_>) -> Result<TimestampsToReturn, Fault> {
    TimestampsToReturn::from_wire(i32::decode(decoder)?).map_err(|status| Fault::peer(status, "Part 4 §7.40"))
}

/// Parses and creates one item. The outer error means that the request cannot be parsed further.
fn create_one(
    context: &mut SubscriptionContext<'_>,
    place: u32,
    timestamps: TimestampsToReturn,
    decoder: &mut Decoder<'_>,
) -> Result<Answer, DecodeError> {
    let id = NodeIdRef::decode(decoder)?;
    let attribute_id = u32::decode(decoder)?;
    let index_range = decoder.str()?.unwrap_or("");
    let data_encoding = QualifiedName::decode(decoder)?;
    let mode = MonitoringMode(i32::decode(decoder)?);
    let parameters = Parameters::decode(decoder)?;
    if attribute_id == attribute::EVENT_NOTIFIER {
        let plain = index_range.is_empty() && data_encoding.is_null();
        return Ok(event_item::create(context, place, id, plain, mode, &parameters));
    }
    let spec = {
        let nodes = context.space.read();
        let decisions = &context.decisions;
        let range = || context.limits.index_range(index_range);
        check(&nodes, decisions, id, attribute_id, range, &data_encoding, mode, timestamps, &parameters)
    };
    let result = spec.and_then(|spec| context.engine.create_item(place, spec, context.now, context.space));
    Ok(super::aggregate_filter::answer(context, place, result))
}

#[allow(clippy::too_many_arguments)] // the fields of one wire structure
fn check(
    nodes: &Nodes,
    decisions: &Decisions,
    id: NodeIdRef<'_>,
    attribute_id: u32,
    index_range: impl FnOnce() -> Result<Option<NumericRange>, StatusCode>,
    data_encoding: &QualifiedName,
    mode: MonitoringMode,
    timestamps: TimestampsToReturn,
    parameters: &Parameters,
) -> Result<ItemSpec, StatusCode> {
    let node = nodes.resolve(id).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    let view = nodes.view(node).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    if !decisions.knows(nodes, node) {
        return Err(StatusCode::BAD_NODE_ID_UNKNOWN);
    }
    // Part 4 §5.13.2.1: an item on an unreadable node is created nevertheless, and reports the status.
    let denial = Denial::of(decisions.check(nodes, node, attribute_permission(attribute_id)));
    let mode = checked_mode(mode)?;
    let is_value = attribute_id == attribute::VALUE;
    let index_range = index_range()?;
    let (slot, is_polled) = if is_value {
        if view.class() != taktwerk_schema::NodeClass::VARIABLE {
            return Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID);
        }
        if !view.is_readable() {
            return Err(StatusCode::BAD_NOT_READABLE);
        }
        match nodes.value_at(node) {
            ValueAt::Slot(_) => (nodes.slot_handle(node), false),
            ValueAt::Source(..) => (nodes.slot_handle(node), true),
            ValueAt::Static(_) | ValueAt::Computed(_) | ValueAt::None => (None, false),
        }
    } else {
        if denial == Denial::No {
            attribute_of(nodes, decisions, node, &view, attribute_id)?;
        }
        if index_range.is_some() {
            return Err(StatusCode::BAD_INDEX_RANGE_INVALID);
        }
        (None, false)
    };
    if !data_encoding.is_null() {
        if !is_value {
            return Err(StatusCode::BAD_DATA_ENCODING_INVALID);
        }
        if *data_encoding != QualifiedName::new(0, "Default Binary") {
            return Err(StatusCode::BAD_DATA_ENCODING_UNSUPPORTED);
        }
    }
    let settings = parameters.settings(nodes, node, attribute_id)?;
    Ok(ItemSpec {
        node,
        attribute_id,
        slot,
        is_polled,
        denial,
        mode,
        client_handle: parameters.client_handle,
        timestamps,
        index_range,
        settings,
    })
}

pub(super) fn checked_mode(mode: MonitoringMode) -> Result<MonitoringMode, StatusCode> {
    if (0..=2).contains(&mode.0) { Ok(mode) } else { Err(StatusCode::BAD_MONITORING_MODE_INVALID) }
}

/// Parses and modifies one item.
fn modify_one(
    context: &mut SubscriptionContext<'_>,
    place: u32,
    timestamps: TimestampsToReturn,
    decoder: &mut Decoder<'_>,
) -> Result<Answer, DecodeError> {
    let id = u32::decode(decoder)?;
    let parameters = Parameters::decode(decoder)?;
    let index = context.engine.find_item(place, id);
    Ok(modify(context, place, index, timestamps, &parameters))
}

fn modify(
    context: &mut SubscriptionContext<'_>,
    place: u32,
    index: Result<u32, StatusCode>,
    timestamps: TimestampsToReturn,
    parameters: &Parameters,
) -> Answer {
    if let Ok(index) = index
        && context.engine.is_event_item(index)
    {
        return event_item::modify(context, index, parameters);
    }
    let result = index.and_then(|index| {
        let (node, attribute_id) =
            context.engine.item_target(index).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        let settings = {
            let nodes = context.space.read();
            parameters.settings(&nodes, node, attribute_id)?
        };
        context.engine.admit_settings(index, &settings)?;
        let handle = parameters.client_handle;
        Ok(context.engine.modify_item(index, handle, timestamps, settings, context.now))
    });
    super::aggregate_filter::answer(context, place, result)
}

/// SetTriggering (Part 4 §5.13.5).
pub(crate) fn set_triggering(
    context: &mut SubscriptionContext<'_>,
    decoder: &mut Decoder<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let place = context.subscription(decoder)?;
    let triggering = u32::decode(decoder)?;
    let add: Vec<u32> = decoder.array()?;
    let remove: Vec<u32> = decoder.array()?;
    let triggering = context
        .engine
        .find_item(place, triggering)
        .map_err(|status| Fault::peer(status, "Part 4 §5.13.5.3"))?;
    context.engine.journal_links_room(place, triggering, add.len())?;
    let (added, removed) = context.engine.set_triggering(place, triggering, &add, &remove);
    context.engine.journal_links(place, triggering);
    added.encode(out);
    encode_len(0, out);
    removed.encode(out);
    encode_len(0, out);
    Ok(())
}

/// A service that applies one operation to a list of ids and returns a StatusCode for each.
#[derive(Debug)]
pub(crate) enum Ids {
    /// SetMonitoringMode of items of a subscription.
    SetMonitoringMode(u32, MonitoringMode),
    /// DeleteMonitoredItems of a subscription.
    DeleteMonitoredItems(u32),
    /// SetPublishingMode of subscriptions.
    SetPublishingMode(bool),
    /// DeleteSubscriptions.
    DeleteSubscriptions,
}

/// SetMonitoringMode (Part 4 §5.13.4).
pub(crate) fn set_monitoring_mode(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let mut body = request.body.clone();
    let subscription_id = u32::decode(&mut body)?;
    with_engine(cx, caller, |context| context.begin(subscription_id))?;
    let mode = checked_mode(MonitoringMode(i32::decode(&mut body)?))
        .map_err(|status| Fault::peer(status, "Part 4 §7.23"))?;
    encode_len(caller.count, reply.begin::<SetMonitoringModeResponse>());
    list::start(cx, caller, request, Cursor::Ids(Ids::SetMonitoringMode(subscription_id, mode)), reply)
}

/// DeleteMonitoredItems (Part 4 §5.13.6).
pub(crate) fn delete_monitored_items(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let subscription_id = u32::decode(&mut request.body.clone())?;
    with_engine(cx, caller, |context| context.begin(subscription_id))?;
    encode_len(caller.count, reply.begin::<DeleteMonitoredItemsResponse>());
    list::start(cx, caller, request, Cursor::Ids(Ids::DeleteMonitoredItems(subscription_id)), reply)
}

impl Ids {
    pub(super) fn work(
        &mut self,
        cx: &mut Context<'_>,
        caller: &Caller<'_>,
        list: &mut List<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Fault> {
        with_engine(cx, caller, |context| {
            // The subscription may have ended while other connections had their turn.
            let place = match self {
                Self::SetMonitoringMode(id, _) | Self::DeleteMonitoredItems(id) => context.find(*id)?,
                Self::SetPublishingMode(_) | Self::DeleteSubscriptions => NONE,
            };
            while list.goes_on(reply)? {
                let id = u32::decode(&mut list.body)?;
                let mut units = unit::ITEM;
                let result = match self {
                    Self::SetMonitoringMode(_, mode) => {
                        context.engine.find_item(place, id).and_then(|index| {
                            context.engine.admit_mode(index, *mode)?;
                            context.engine.journal_room(place, record::ITEM_BYTES)?;
                            context.engine.set_mode(index, *mode, context.now, context.space);
                            let section = Section::Mode { item: id, mode: mode.0 };
                            context.engine.journal(place, |out| section.encode(out));
                            Ok(())
                        })
                    }
                    Self::DeleteMonitoredItems(_) => context.engine.find_item(place, id).map(|index| {
                        units += (context.engine.delete_item(index) / unit::LOOKED_AT) as i64;
                        context.engine.journal(place, |out| Section::Deleted { item: id }.encode(out));
                    }),
                    Self::SetPublishingMode(enabled) => {
                        context.engine.find(context.session, id).and_then(|place| {
                            context.engine.admit_publishing(place, *enabled)?;
                            context.engine.set_publishing_mode(place, *enabled);
                            Ok(())
                        })
                    }
                    Self::DeleteSubscriptions => context.engine.find(context.session, id).map(|place| {
                        let items = context.engine.subscription(place).map_or(0, |gone| gone.items.len());
                        units += unit::ITEM * items as i64 / 4;
                        context.engine.delete_subscription(place, context.responder);
                    }),
                };
                result.err().unwrap_or(StatusCode::GOOD).encode(reply.out());
                list.done(units, 0);
            }
            Ok(())
        })
    }
}
