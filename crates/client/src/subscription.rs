//! What is known of a subscription: what the application wants, what the server has, and which notification message
//! comes next. No I/O and no messages here; see `publish` and `sync` for those.

use crate::filter_namespaces::renumbered;
use crate::namespaces::Namespaces;
use crate::notification::OwnedMessage;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use taktwerk_schema::{
    BrowsePath, CreateSubscriptionResponse, MonitoredItemCreateRequest, TimestampsToReturn,
};
use taktwerk_types::{ExtensionObject, Instant, NodeId, StatusCode, UaString};

/// Names a subscription of this client; it stays the same when the server's id changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionHandle(pub u32);

/// What an application asks of a subscription (Part 4 §5.14.2.2).
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriptionParams {
    /// In milliseconds. Default 1 000.
    pub publishing_interval_ms: f64,
    /// How many publishing intervals the server keeps the subscription without a Publish request. At least three times
    /// the keep-alive count. Default 60.
    pub lifetime_count: u32,
    /// After how many publishing intervals without a change the server says that it is alive. Default 10.
    pub keep_alive_count: u32,
    /// Most notifications per message; 0 is no limit. Default 0.
    pub notifications_max: u32,
    /// Whether the server sends notifications. Default true.
    pub publishing_enabled: bool,
    /// Relative to the other subscriptions of the session. Default 0.
    pub priority: u8,
    /// Which timestamps come with values. Default both.
    pub timestamps: TimestampsToReturn,
}

impl Default for SubscriptionParams {
    fn default() -> Self {
        Self {
            publishing_interval_ms: 1000.0,
            lifetime_count: 60,
            keep_alive_count: 10,
            notifications_max: 0,
            publishing_enabled: true,
            priority: 0,
            timestamps: TimestampsToReturn::BOTH,
        }
    }
}

/// A monitored item that an application wants.
///
/// The namespace indexes in it count in the NamespaceArray that the client knows when the item is added. If a server
/// comes back with another NamespaceArray, the item is created with the indexes that the same URIs have there, also those
/// in an EventFilter or an AggregateFilter.
#[derive(Debug, Clone, PartialEq)]
pub struct WantedItem {
    /// How it is created. Its client handle is the application's choice.
    pub request: MonitoredItemCreateRequest,
    /// How its node is found: asked for before the item is created, and again whenever it is created anew. The NodeId
    /// in `request` is replaced by what is found.
    pub browse_path: Option<BrowsePath>,
}

impl From<MonitoredItemCreateRequest> for WantedItem {
    fn from(request: MonitoredItemCreateRequest) -> Self {
        Self { request, browse_path: None }
    }
}

/// What became of a monitored item.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemResult {
    /// The handle that its notifications carry.
    pub client_handle: u32,
    /// The node as the server was asked for it.
    pub node_id: NodeId,
    /// Good, or why it could not be created.
    pub status: StatusCode,
    /// The server's id; 0 if it could not be created.
    pub monitored_item_id: u32,
    /// In milliseconds.
    pub revised_sampling_interval_ms: f64,
    /// In values.
    pub revised_queue_size: u32,
    /// What the server says about the filter, or null.
    pub filter_result: ExtensionObject,
}

impl ItemResult {
    /// An item that could not be created.
    pub(crate) fn failed(client_handle: u32, node_id: NodeId, status: StatusCode) -> Self {
        Self {
            client_handle,
            node_id,
            status,
            monitored_item_id: 0,
            revised_sampling_interval_ms: 0.0,
            revised_queue_size: 0,
            filter_result: ExtensionObject::NULL,
        }
    }
}

/// Where an item stands on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemState {
    /// To be created.
    Wanted,
    /// Being created.
    Creating,
    /// Created with this id.
    Live(u32),
    /// Refused; tried again only when the subscription is created anew.
    Failed,
}

/// A monitored item that the application wants.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) request: MonitoredItemCreateRequest,
    pub(crate) state: ItemState,
    browse_path: Option<Box<BrowsePath>>,
    /// The NodeId in `request` was found by the path, on the server as it is now.
    is_found: bool,
    /// The array that the indexes in `request` and `browse_path` count in.
    namespaces: Namespaces,
}

impl Item {
    pub(crate) fn new(wanted: WantedItem, namespaces: &Namespaces) -> Self {
        let WantedItem { request, browse_path } = wanted;
        let (browse_path, namespaces) = (browse_path.map(Box::new), namespaces.clone());
        Self { request, state: ItemState::Wanted, browse_path, is_found: false, namespaces }
    }

    /// Brings the indexes in line with another NamespaceArray.
    ///
    /// # Errors
    /// The URI that the array does not have.
    fn renumber(&mut self, to: &Namespaces) -> Result<(), UaString> {
        if to.is_empty() || self.namespaces.is(to) {
            return Ok(());
        }
        let from = self.namespaces.clone();
        let node = &mut self.request.item_to_monitor;
        // All or nothing: a NodeId with one index of each array would name another node.
        let node_index = match &self.browse_path {
            Some(_) => node.node_id.namespace_index,
            None => from.renumber(node.node_id.namespace_index, to)?,
        };
        let encoding_index = from.renumber(node.data_encoding.namespace_index, to)?;
        let parameters = &mut self.request.requested_parameters;
        let filter = renumbered(&parameters.filter, &from, to)?;
        if let Some(path) = &mut self.browse_path {
            let start_index = from.renumber(path.starting_node.namespace_index, to)?;
            let elements = &mut path.relative_path.elements;
            let indexes = elements.iter().map(|element| {
                let reference_type = from.renumber(element.reference_type_id.namespace_index, to)?;
                Ok((reference_type, from.renumber(element.target_name.namespace_index, to)?))
            });
            let indexes = indexes.collect::<Result<Vec<(u16, u16)>, UaString>>()?;
            path.starting_node.namespace_index = start_index;
            for (element, (reference_type, name)) in elements.iter_mut().zip(indexes) {
                element.reference_type_id.namespace_index = reference_type;
                element.target_name.namespace_index = name;
            }
        }
        if let Some(filter) = filter {
            parameters.filter = filter;
        }
        node.node_id.namespace_index = node_index;
        node.data_encoding.namespace_index = encoding_index;
        self.namespaces = to.clone();
        Ok(())
    }

    /// Takes what its path leads to.
    pub(crate) fn found(&mut self, node_id: NodeId) {
        self.request.item_to_monitor.node_id = node_id;
        self.is_found = true;
        self.state = ItemState::Wanted;
    }
}

/// What has to be done about the items in the state Wanted.
#[derive(Debug, Default)]
pub(crate) struct ToDo {
    /// To be created.
    pub(crate) create: Vec<MonitoredItemCreateRequest>,
    /// To be found first: client handles and paths.
    pub(crate) find: Vec<(u32, BrowsePath)>,
    /// Of namespaces that the server does not have: the URI and the item.
    pub(crate) unknown: Vec<(UaString, u32, NodeId)>,
}

/// Where a subscription stands on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// To be created when there is a session.
    Wanted,
    /// Being created.
    Creating,
    /// The server refused; the application decides.
    Failed,
    /// Exists.
    Live,
    /// Exists, as far as is known, since before the connection broke: what was missed is being asked for.
    Recovering,
    /// To be deleted, or being deleted.
    Deleting,
}

/// What the application has asked for since the subscription was created, and the server may not know.
#[derive(Debug, Default)]
pub(crate) struct Untold {
    /// Interval, counts and priority.
    pub(crate) parameters: bool,
    /// Whether it publishes.
    pub(crate) publishing: bool,
    /// Client handles of items whose monitoring mode has changed.
    pub(crate) modes: BTreeSet<u32>,
}

impl Untold {
    pub(crate) fn is_empty(&self) -> bool {
        !self.parameters && !self.publishing && self.modes.is_empty()
    }
}

/// A subscription.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) handle: SubscriptionHandle,
    pub(crate) params: SubscriptionParams,
    pub(crate) state: State,
    /// The server's id; meaningful in Live, Recovering and Deleting.
    pub(crate) server_id: u32,
    /// Revised by the server.
    pub(crate) interval_ms: f64,
    pub(crate) keep_alive_count: u32,
    pub(crate) items: BTreeMap<u32, Item>,
    /// Client handles of the items in the state Wanted, and perhaps of some that are not: spares looking at all of them.
    pub(crate) wanted: Vec<u32>,
    /// The connection broke while items were being created or deleted: the server has to be asked which there are.
    pub(crate) audit: bool,
    pub(crate) untold: Untold,
    /// Number of the next message.
    pub(crate) expected: u32,
    /// Messages behind a gap, oldest first.
    pub(crate) held: VecDeque<OwnedMessage>,
    /// While a gap is being filled: numbers that the server can send again.
    pub(crate) available: Vec<u32>,
    /// It came from another session: [`Self::available`] is all there is to be fetched.
    pub(crate) transferred: bool,
    /// A keep-alive named this as the next number, so everything before it has been sent.
    pub(crate) announced: Option<u32>,
    /// If nothing comes until then, something is wrong.
    pub(crate) alive_by: Instant,
    pub(crate) inactive: bool,
    /// Deleted by the application before the server had answered.
    pub(crate) delete_when_created: bool,
    /// The server has had it, lost it, and is being asked to create it anew.
    pub(crate) is_recreated: bool,
    /// How often the server was too busy to create it anew.
    pub(crate) refusals: u32,
    /// When it is asked again.
    pub(crate) retry_at: Option<Instant>,
}

/// The number after `number`: 0 is left out (Part 4 §7.26).
pub(crate) const fn following(number: u32) -> u32 {
    match number.wrapping_add(1) {
        0 => 1,
        next => next,
    }
}

/// Whether `one` comes before `other`, across the wrap.
pub(crate) const fn before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

/// The number before `number`.
pub(crate) const fn preceding(number: u32) -> u32 {
    match number.wrapping_sub(1) {
        0 => u32::MAX,
        previous => previous,
    }
}

/// What to do about a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gap {
    /// There is none.
    None,
    /// The server can send this message again.
    Fetch(u32),
    /// Messages from the first to the last number are gone.
    Lost(u32, u32),
}

/// Longer than the keep-alive interval by half, for clocks and networks.
const KEEP_ALIVE_MARGIN: f64 = 1.5;

impl Subscription {
    pub(crate) fn new(handle: SubscriptionHandle, params: SubscriptionParams) -> Self {
        Self {
            handle,
            interval_ms: params.publishing_interval_ms,
            keep_alive_count: params.keep_alive_count,
            params,
            state: State::Wanted,
            server_id: 0,
            items: BTreeMap::new(),
            wanted: Vec::new(),
            audit: false,
            untold: Untold::default(),
            expected: 1,
            held: VecDeque::new(),
            available: Vec::new(),
            transferred: false,
            announced: None,
            alive_by: Instant::FAR,
            inactive: false,
            delete_when_created: false,
            is_recreated: false,
            refusals: 0,
            retry_at: None,
        }
    }

    /// The server has created it.
    pub(crate) fn created(&mut self, response: &CreateSubscriptionResponse) {
        self.state = State::Live;
        self.is_recreated = false;
        self.refusals = 0;
        self.server_id = response.subscription_id;
        self.interval_ms = response.revised_publishing_interval;
        self.keep_alive_count = response.revised_max_keep_alive_count;
        self.forget_messages();
        self.expected = 1;
    }

    /// The server has lost it: everything has to be created anew.
    pub(crate) fn reset(&mut self) {
        self.state = State::Wanted;
        self.is_recreated = true;
        self.server_id = 0;
        self.forget_messages();
        self.alive_by = Instant::FAR;
        self.inactive = false;
        self.audit = false;
        self.wanted = self.items.keys().copied().collect();
        for item in self.items.values_mut() {
            item.state = ItemState::Wanted;
            item.is_found = false;
        }
    }

    /// The connection is gone; what was under way has an unknown outcome.
    pub(crate) fn interrupted(&mut self) {
        match self.state {
            State::Live => self.state = State::Recovering,
            State::Creating => self.state = State::Wanted,
            State::Wanted | State::Failed | State::Recovering | State::Deleting => {}
        }
        for (client_handle, item) in &mut self.items {
            if item.state != ItemState::Creating {
                continue;
            }
            item.state = ItemState::Wanted;
            self.wanted.push(*client_handle);
            self.audit = true;
        }
    }

    /// Takes the server's word for which items there are, as pairs of its id and our client handle; says which of them
    /// nobody wants.
    pub(crate) fn audited(&mut self, found: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
        self.audit = false;
        let mut surplus = Vec::new();
        for (id, client_handle) in found {
            match self.items.get_mut(&client_handle) {
                Some(item) if item.state == ItemState::Wanted => item.state = ItemState::Live(id),
                Some(item) if item.state == ItemState::Live(id) => {}
                _ => surplus.push(id),
            }
        }
        surplus
    }

    fn forget_messages(&mut self) {
        self.held.clear();
        self.available = Vec::new();
        self.announced = None;
        self.transferred = false;
    }

    /// Whether Publish responses for it are expected.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.state, State::Live | State::Recovering)
    }

    /// Something has come: it is alive. `slack` allows for the round trip.
    pub(crate) fn heard(&mut self, now: Instant, slack: Duration) {
        let silence_ms =
            self.interval_ms.max(1.0) * f64::from(self.keep_alive_count.max(1)) * KEEP_ALIVE_MARGIN;
        self.alive_by = now.plus_millis_f64(silence_ms) + slack;
    }

    /// What has to be done about messages that are missing in front of what is held or was announced.
    pub(crate) fn gap(&self) -> Gap {
        let held = self.held.front().map(|message| message.sequence_number);
        let end = match (held, self.announced) {
            (Some(held), Some(announced)) if before(announced, held) => announced,
            (Some(end), _) | (None, Some(end)) => end,
            (None, None) => return Gap::None,
        };
        if !before(self.expected, end) {
            return Gap::None;
        }
        match self.first_available(end) {
            Some(first) if first == self.expected => Gap::Fetch(first),
            Some(first) => Gap::Lost(self.expected, preceding(first)),
            None => Gap::Lost(self.expected, preceding(end)),
        }
    }

    /// The first message from the expected one on, and before `end`, that the server can send again.
    fn first_available(&self, end: u32) -> Option<u32> {
        let candidates = self.available.iter().copied();
        candidates
            .filter(|number| !before(*number, self.expected) && before(*number, end))
            .min_by_key(|number| number.wrapping_sub(self.expected))
    }

    /// After a transfer the server says what it can send again: the next of those, if any.
    pub(crate) fn next_available(&self) -> Option<u32> {
        self.first_available(self.expected.wrapping_add(i32::MAX as u32))
    }

    /// Notes that a message cannot be had.
    pub(crate) fn unavailable(&mut self, number: u32) {
        self.available.retain(|available| *available != number);
    }

    /// What is to be done about items that are wanted; they are marked as being created, or as failed.
    pub(crate) fn take_wanted(&mut self, namespaces: &Namespaces) -> ToDo {
        let mut to_do = ToDo::default();
        for client_handle in core::mem::take(&mut self.wanted) {
            // Some were removed, or found on the server, since they were noted.
            let Some(item) = self.items.get_mut(&client_handle) else { continue };
            if item.state != ItemState::Wanted {
                continue;
            }
            if let Err(uri) = item.renumber(namespaces) {
                item.state = ItemState::Failed;
                to_do.unknown.push((uri, client_handle, item.request.item_to_monitor.node_id.clone()));
                continue;
            }
            item.state = ItemState::Creating;
            match &item.browse_path {
                Some(path) if !item.is_found => to_do.find.push((client_handle, BrowsePath::clone(path))),
                _ => to_do.create.push(item.request.clone()),
            }
        }
        to_do
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::MessageView;
    use taktwerk_schema::NotificationMessage;
    use taktwerk_types::{DecodeLimits, Decoder, Encode};

    fn message(sequence_number: u32) -> OwnedMessage {
        let bytes = NotificationMessage { sequence_number, ..Default::default() }.encode_to_vec();
        MessageView::parse(&mut Decoder::new(&bytes, DecodeLimits::DEFAULT)).unwrap().to_owned()
    }

    #[test]
    fn numbers_leave_out_zero() {
        assert_eq!((following(u32::MAX), following(1), preceding(1)), (1, 2, u32::MAX));
        assert!(before(u32::MAX, 1) && !before(1, u32::MAX) && !before(5, 5));
    }

    #[test]
    fn gaps_are_fetched_where_possible_and_lost_where_not() {
        let mut subscription = Subscription::new(SubscriptionHandle(1), SubscriptionParams::default());
        assert_eq!(subscription.gap(), Gap::None);
        subscription.expected = 10;
        subscription.held.push_back(message(14));
        assert_eq!(subscription.gap(), Gap::Lost(10, 13));
        subscription.available = vec![9, 12, 13, 14];
        assert_eq!(subscription.gap(), Gap::Lost(10, 11));
        subscription.expected = 12;
        assert_eq!(subscription.gap(), Gap::Fetch(12));
        subscription.unavailable(12);
        assert_eq!(subscription.gap(), Gap::Lost(12, 12));
        subscription.expected = 14;
        assert_eq!(subscription.gap(), Gap::None);
        subscription.held.clear();
        subscription.announced = Some(16);
        assert_eq!(subscription.gap(), Gap::Fetch(14));
    }

    #[test]
    fn gaps_span_the_wrap() {
        let mut subscription = Subscription::new(SubscriptionHandle(1), SubscriptionParams::default());
        subscription.expected = u32::MAX - 1;
        subscription.held.push_back(message(2));
        subscription.available = vec![1, u32::MAX];
        assert_eq!(subscription.gap(), Gap::Lost(u32::MAX - 1, u32::MAX - 1));
        subscription.expected = u32::MAX;
        assert_eq!(subscription.gap(), Gap::Fetch(u32::MAX));
        subscription.expected = 1;
        assert_eq!(subscription.gap(), Gap::Fetch(1));
    }
}
