//! The state of a subscription: what the application wants, what the server has, and the next expected notification
//! message. No I/O and no messages; see `publish` and `sync` for those.

use crate::filter_namespaces::renumbered;
use crate::namespaces::Namespaces;
use crate::notification::OwnedMessage;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use taktwerk_schema::{
    BrowsePath, CreateSubscriptionResponse, MonitoredItemCreateRequest, TimestampsToReturn,
};
use taktwerk_types::{ExtensionObject, Instant, NodeId, StatusCode, UaString};

/// Identifies a subscription of this client. It does not change when the server's id changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionHandle(pub u32);

/// The requested parameters of a subscription (Part 4 §5.14.2.2).
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriptionParams {
    /// In milliseconds. Default 1 000.
    pub publishing_interval_ms: f64,
    /// Lifetime in publishing intervals: how long the server keeps the subscription without a Publish request. At least
    /// three times the keep-alive count. Default 60.
    pub lifetime_count: u32,
    /// After how many publishing intervals without a change the server sends a keep-alive. Default 10.
    pub keep_alive_count: u32,
    /// Maximum notifications per message; 0 is unlimited. Default 0.
    pub notifications_max: u32,
    /// Whether the server sends notifications. Default true.
    pub publishing_enabled: bool,
    /// Relative to the other subscriptions of the session. Default 0.
    pub priority: u8,
    /// The timestamps to return with values. Default both.
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
/// Its namespace indexes refer to the NamespaceArray known when the item is added. If the server's NamespaceArray
/// changes, the item is created with the indexes that the same URIs have there, including those in an EventFilter or an
/// AggregateFilter.
#[derive(Debug, Clone, PartialEq)]
pub struct WantedItem {
    /// The request. The application chooses its client handle.
    pub request: MonitoredItemCreateRequest,
    /// Path to its node. It is resolved before the item is created, each time. The result replaces the NodeId in
    /// `request`.
    pub browse_path: Option<BrowsePath>,
}

impl From<MonitoredItemCreateRequest> for WantedItem {
    fn from(request: MonitoredItemCreateRequest) -> Self {
        Self { request, browse_path: None }
    }
}

/// The result of creating a monitored item.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemResult {
    /// Client handle of the item.
    pub client_handle: u32,
    /// The NodeId as requested from the server.
    pub node_id: NodeId,
    /// Good, or the reason of the failure.
    pub status: StatusCode,
    /// The server's id; 0 on failure.
    pub monitored_item_id: u32,
    /// In milliseconds.
    pub revised_sampling_interval_ms: f64,
    /// In values.
    pub revised_queue_size: u32,
    /// The server's filter result, or null.
    pub filter_result: ExtensionObject,
}

impl ItemResult {
    /// The result of an item that could not be created.
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

/// State of an item on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemState {
    /// To be created.
    Wanted,
    /// Being created.
    Creating,
    /// Created with this id.
    Live(u32),
    /// Refused; the client tries again only when the subscription is created again.
    Failed,
}

/// A monitored item that the application wants.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) request: MonitoredItemCreateRequest,
    pub(crate) state: ItemState,
    browse_path: Option<Box<BrowsePath>>,
    /// The NodeId in `request` was resolved from the path, for the current server state.
    is_found: bool,
    /// The array that the indexes in `request` and `browse_path` refer to.
    namespaces: Namespaces,
}

impl Item {
    pub(crate) fn new(wanted: WantedItem, namespaces: &Namespaces) -> Self {
        let WantedItem { request, browse_path } = wanted;
        let (browse_path, namespaces) = (browse_path.map(Box::new), namespaces.clone());
        Self { request, state: ItemState::Wanted, browse_path, is_found: false, namespaces }
    }

    /// Translates the indexes to another NamespaceArray.
    ///
    /// # Errors
    /// The URI that the array does not contain.
    fn renumber(&mut self, to: &Namespaces) -> Result<(), UaString> {
        if to.is_empty() || self.namespaces.is(to) {
            return Ok(());
        }
        let from = self.namespaces.clone();
        let node = &mut self.request.item_to_monitor;
        // All or nothing: a NodeId with indexes of both arrays would address another node.
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

    /// Stores the result of resolving the path.
    pub(crate) fn found(&mut self, node_id: NodeId) {
        self.request.item_to_monitor.node_id = node_id;
        self.is_found = true;
        self.state = ItemState::Wanted;
    }
}

/// Actions for the items in the state Wanted.
#[derive(Debug, Default)]
pub(crate) struct ToDo {
    /// Items to create.
    pub(crate) create: Vec<MonitoredItemCreateRequest>,
    /// Paths to resolve first, by client handle.
    pub(crate) find: Vec<(u32, BrowsePath)>,
    /// Items whose namespace the server does not have: the URI and the item.
    pub(crate) unknown: Vec<(UaString, u32, NodeId)>,
}

/// State of a subscription on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// To be created when there is a session.
    Wanted,
    /// Being created.
    Creating,
    /// The server refused; the application decides what to do.
    Failed,
    /// Exists on the server.
    Live,
    /// Probably exists since before the connection was lost; missed messages are being requested.
    Recovering,
    /// To be deleted, or being deleted.
    Deleting,
}

/// Changes that the application has made and the server may not have received.
#[derive(Debug, Default)]
pub(crate) struct PendingChanges {
    /// Interval, counts and priority.
    pub(crate) parameters: bool,
    /// The publishing mode.
    pub(crate) publishing: bool,
    /// Client handles of items whose monitoring mode has changed.
    pub(crate) modes: BTreeSet<u32>,
}

impl PendingChanges {
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
    /// Client handles of the items in the state Wanted, and possibly of others. Avoids searching all items.
    pub(crate) wanted: Vec<u32>,
    /// The connection broke while items were being created or deleted: ask the server which ones exist.
    pub(crate) audit: bool,
    pub(crate) pending: PendingChanges,
    /// Sequence number of the next message.
    pub(crate) expected: u32,
    /// Messages after a gap, oldest first.
    pub(crate) held: VecDeque<OwnedMessage>,
    /// Sequence numbers available for Republish, while a gap is being filled.
    pub(crate) available: Vec<u32>,
    /// It was transferred from another session: only [`Self::available`] can be fetched.
    pub(crate) transferred: bool,
    /// The next sequence number according to a keep-alive: all messages before it were sent.
    pub(crate) announced: Option<u32>,
    /// If nothing was received until then, the subscription counts as inactive.
    pub(crate) alive_by: Instant,
    pub(crate) inactive: bool,
    /// The application has deleted it before the server answered the creation.
    pub(crate) delete_when_created: bool,
    /// The server has lost it and is being asked to create it again.
    pub(crate) is_recreated: bool,
    /// How often the server was too busy to create it again.
    pub(crate) refusals: u32,
    /// Time of the next attempt.
    pub(crate) retry_at: Option<Instant>,
}

/// The sequence number after `number`, which skips 0 (Part 4 §7.26).
pub(crate) const fn following(number: u32) -> u32 {
    match number.wrapping_add(1) {
        0 => 1,
        next => next,
    }
}

/// Whether `one` comes before `other`, across a wrap.
pub(crate) const fn before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

/// The sequence number before `number`.
pub(crate) const fn preceding(number: u32) -> u32 {
    match number.wrapping_sub(1) {
        0 => u32::MAX,
        previous => previous,
    }
}

/// The action for a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gap {
    /// There is no gap.
    None,
    /// The server can send this message again.
    Fetch(u32),
    /// Messages from the first to the last number are lost.
    Lost(u32, u32),
}

/// Tolerance for clocks and networks: 1.5 times the keep-alive interval.
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
            pending: PendingChanges::default(),
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

    /// The server has lost it: everything has to be created again.
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

    /// The connection is lost; operations in progress have an unknown result.
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

    /// Compares with the server's list of items, as pairs of its id and our client handle. Returns the ids of items
    /// that are not wanted any more.
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

    /// Whether Publish responses are expected for it.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.state, State::Live | State::Recovering)
    }

    /// A message was received. `slack` allows for the round trip.
    pub(crate) fn heard(&mut self, now: Instant, slack: Duration) {
        let silence_ms =
            self.interval_ms.max(1.0) * f64::from(self.keep_alive_count.max(1)) * KEEP_ALIVE_MARGIN;
        self.alive_by = now.plus_millis_f64(silence_ms) + slack;
    }

    /// The action for missing messages before the held or announced ones.
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

    /// The first available message from the expected one on and before `end`.
    fn first_available(&self, end: u32) -> Option<u32> {
        let candidates = self.available.iter().copied();
        candidates
            .filter(|number| !before(*number, self.expected) && before(*number, end))
            .min_by_key(|number| number.wrapping_sub(self.expected))
    }

    /// After a transfer: the next message that the server can send again, if any.
    pub(crate) fn next_available(&self) -> Option<u32> {
        self.first_available(self.expected.wrapping_add(i32::MAX as u32))
    }

    /// Records that a message is not available.
    pub(crate) fn unavailable(&mut self, number: u32) {
        self.available.retain(|available| *available != number);
    }

    /// Collects the actions for wanted items and marks the items as being created or as failed.
    pub(crate) fn take_wanted(&mut self, namespaces: &Namespaces) -> ToDo {
        let mut to_do = ToDo::default();
        for client_handle in core::mem::take(&mut self.wanted) {
            // The item may have been removed, or found on the server, in the meantime.
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
    fn sequence_numbers_skip_zero() {
        assert_eq!((following(u32::MAX), following(1), preceding(1)), (1, 2, u32::MAX));
        assert!(before(u32::MAX, 1) && !before(1, u32::MAX) && !before(5, 5));
    }

    #[test]
    fn gaps_are_fetched_or_reported_as_lost() {
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
