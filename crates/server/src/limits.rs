//! Every limit of a server in one place (design §11).
//!
//! Limits for which the specification defines a Variable are published under ServerCapabilities (Part 5 §6.3.2), from
//! the same numbers that are enforced.

mod rate;
mod subscription;

pub use rate::Rate;
pub(crate) use rate::{ENTRIES_MAX, FAMILIAR_MAX};
pub use subscription::SubscriptionLimits;

use crate::account::{Category, Maxima};
use taktwerk_channel::ChannelLimits;
use taktwerk_types::range::dimension_count;
use taktwerk_types::{NumericRange, StatusCode};

/// Bytes that every connection may hold in each direction: enough for a Hello and for most requests, so that a flood on
/// other connections does not stop a regular client. They are charged when the connection is created.
pub const ALLOWANCE: usize = 8 << 10;

/// What a server accepts and stores. Requests above a limit get a StatusCode; memory does not grow.
///
/// The defaults are for a server on an untrusted network: [`Limits::memory_max`] is their sum. [`Limits::laboratory`]
/// is for load generators on the same machine. Zero never means "no limit": it is treated as one
/// ([`Limits::at_least_one`]).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Connections per server. More than sessions, so that a client can reconnect to a full server. At the limit, a
    /// connection without an activated session is evicted (Part 4 §5.6.2.1): one of the largest holder's.
    pub connections_max: usize,
    /// Connections per address. An IPv6 /64 network counts as one address.
    pub connections_per_address_max: usize,
    /// Rate of new connections from all addresses.
    pub connection_rate: Rate,
    /// Additional rate for networks with few recent connections, and again for addresses with few. A flood cannot use
    /// it up.
    pub connection_rate_reserved: Rate,
    /// Rate of new connections per address.
    pub connection_rate_per_address: Rate,
    /// Rate of GetEndpoints and FindServers requests per address; beyond: Bad_ServerTooBusy.
    pub discovery_rate_per_address: Rate,
    /// Bytes of a GetEndpoints response. A longer list is cut: first the issuers' certificates, then endpoints.
    pub discovery_response_len_max: usize,
    /// How long a connection without a session may be silent, in ms.
    pub sessionless_timeout: f64,
    /// OpenSecureChannel exchanges computed at a time, for all connections; beyond: Bad_TcpServerTooBusy before any
    /// cryptography.
    pub handshakes_max: usize,
    /// Rate of OpenSecureChannel exchanges of all clients without an earlier login; beyond: Bad_TcpServerTooBusy before
    /// any cryptography. The same rate again applies to addresses with an earlier login.
    pub handshake_rate: Rate,
    /// Additional rate for networks with few recent OpenSecureChannel exchanges, and again for addresses with few.
    pub handshake_rate_reserved: Rate,
    /// Sessions per connection at a time; beyond: Bad_TooManySessions.
    pub sessions_per_connection_max: usize,
    /// Bytes stored for all connections and sessions of one address; beyond: Bad_OutOfMemory, and a connection whose
    /// unsent or incomplete messages exceed it is closed. An IPv6 /64 network counts as one address.
    pub bytes_per_address_max: usize,
    /// Bytes stored for one session with its subscriptions; beyond: Bad_OutOfMemory.
    pub bytes_per_session_max: usize,
    /// Bytes of all sessions: strings, nonces, certificates, users, continuation points; beyond: Bad_OutOfMemory.
    pub session_bytes_max: usize,
    /// Bytes of all requests that wait for notifications, slow work or another shard; beyond: Bad_OutOfMemory.
    pub request_bytes_max: usize,
    /// Bytes of incomplete chunks and messages of all connections, beyond [`ALLOWANCE`] each. When exhausted, the
    /// connection with the most is closed.
    pub reassembly_bytes_max: usize,
    /// Unsent bytes of all connections, beyond [`ALLOWANCE`] each. When exhausted, the connection with the most is
    /// closed.
    pub unsent_bytes_max: usize,
    /// Longest response in bytes, even if the client accepts more; beyond: Bad_ResponseTooLarge.
    pub response_len_max: usize,
    /// Sessions per server (MaxSessions). Beyond: a session that was never activated is evicted; without one:
    /// Bad_TooManySessions.
    pub sessions_max: usize,
    /// The last of these sessions are reserved for clients with a trusted certificate and for addresses with an earlier
    /// login by credential; at most a tenth of [`Limits::sessions_max`].
    pub sessions_reserved: usize,
    /// Shortest session timeout in ms.
    pub session_timeout_min: f64,
    /// Longest session timeout in ms.
    pub session_timeout_max: f64,
    /// How long a session may exist before ActivateSession, in ms.
    pub session_activation_timeout: f64,
    /// Longest session name in bytes; longer ones are cut.
    pub session_name_len_max: usize,
    /// Longest string in a client's ApplicationDescription, and longest EndpointUrl of a CreateSession, in bytes;
    /// beyond: Bad_EncodingLimitsExceeded. Part 6 §7.1.2.3 sets the same limit for the EndpointUrl of a Hello.
    pub client_string_len_max: usize,
    /// Longest ClientCertificate of a CreateSession with its chain, in bytes; beyond: Bad_CertificateInvalid.
    pub client_certificate_len_max: usize,
    /// Longest signature of a CreateSession or ActivateSession, in bytes; beyond: Bad_ApplicationSignatureInvalid or
    /// Bad_UserSignatureInvalid.
    pub signature_len_max: usize,
    /// Locale ids stored per session.
    pub locale_ids_max: usize,
    /// Longest locale id in bytes; longer ones are dropped.
    pub locale_id_len_max: usize,
    /// Dimensions of an IndexRange; beyond: Bad_IndexRangeInvalid.
    pub index_range_dimensions_max: usize,
    /// Longest user name and password in bytes; beyond: Bad_IdentityTokenInvalid.
    pub user_secret_len_max: usize,
    /// Longest issued token in bytes; beyond: Bad_IdentityTokenInvalid.
    pub issued_token_len_max: usize,
    /// Longest certificate of a user with its chain, in bytes; beyond: Bad_IdentityTokenInvalid.
    pub user_certificate_len_max: usize,
    /// Continuation points per session (MaxBrowseContinuationPoints).
    pub browse_continuation_points_max: u16,
    /// References returned by one Browse operation; the rest needs a continuation point.
    pub references_per_browse_max: usize,
    /// Bytes of a response after which Browse leaves the rest to continuation points.
    pub browse_response_len_max: usize,
    /// Targets of one browse path; beyond: Bad_TooManyMatches.
    pub browse_path_targets_max: usize,
    /// Elements of one browse path; beyond: Bad_QueryTooComplex.
    pub browse_path_elements_max: usize,
    /// Select clauses of one EventFilter (MaxSelectClauseParameters); beyond: Bad_TooManyOperations.
    pub select_clauses_max: u32,
    /// Operands of one where clause (MaxWhereClauseParameters); beyond: Bad_TooManyOperations.
    pub where_operands_max: u32,
    /// Operations of one Read (MaxNodesPerRead).
    pub nodes_per_read_max: u32,
    /// Operations of one Write (MaxNodesPerWrite).
    pub nodes_per_write_max: u32,
    /// Operations of one Call (MaxNodesPerMethodCall).
    pub nodes_per_method_call_max: u32,
    /// Operations of one Browse or BrowseNext (MaxNodesPerBrowse).
    pub nodes_per_browse_max: u32,
    /// Nodes of one HistoryRead (MaxNodesPerHistoryReadData).
    pub nodes_per_history_read_max: u32,
    /// Operations of one HistoryUpdate (MaxNodesPerHistoryUpdateData).
    pub nodes_per_history_update_max: u32,
    /// Values of one HistoryRead; the rest needs continuation points.
    pub history_values_max: usize,
    /// Raw values in one interval of an aggregate; beyond: Bad_QueryTooComplex. After three times as many in one
    /// HistoryRead, the rest needs continuation points. While a worker thread reads, they are charged with 64 bytes
    /// each, plus 8 MB for their texts and arrays.
    pub history_raw_values_max: usize,
    /// Continuation points of HistoryRead per session (MaxHistoryContinuationPoints).
    pub history_continuation_points_max: u16,
    /// Operations of one RegisterNodes or UnregisterNodes (MaxNodesPerRegisterNodes).
    pub nodes_per_register_nodes_max: u32,
    /// Operations of one TranslateBrowsePathsToNodeIds (MaxNodesPerTranslateBrowsePathsToNodeIds).
    pub nodes_per_translate_max: u32,
    /// Operations of one AddNodes, AddReferences, DeleteNodes or DeleteReferences (MaxNodesPerNodeManagement).
    pub nodes_per_node_management_max: u32,
    /// Nodes that clients may add in total; beyond: Bad_ResourceUnavailable.
    pub added_nodes_max: usize,
    /// Bytes of all nodes and references that clients add, with the values of variable length in them; beyond:
    /// Bad_OutOfMemory.
    pub added_node_bytes_max: usize,
    /// Operations of one CreateMonitoredItems, ModifyMonitoredItems, SetMonitoringMode, SetTriggering or
    /// DeleteMonitoredItems (MaxMonitoredItemsPerCall).
    pub monitored_items_per_call_max: u32,
    /// Subscriptions and monitored items.
    pub subscriptions: SubscriptionLimits,
    /// Longest array accepted in a request (MaxArrayLength).
    pub array_len_max: u32,
    /// Longest String accepted in a request, in bytes (MaxStringLength).
    pub string_len_max: u32,
    /// Longest ByteString accepted in a request (MaxByteStringLength).
    pub byte_string_len_max: u32,
    /// Deepest nesting accepted in a request (Part 6 §5.2.2.16 requires 100).
    pub depth_max: u16,
    /// Bytes of memory for one decoded request; beyond: Bad_EncodingLimitsExceeded. An array of nulls takes many times
    /// more memory than bytes on the wire.
    pub request_memory_max: usize,
    /// Unsent bytes of a connection above which its requests are no longer read.
    pub send_budget: usize,
    /// How long a connection may stay blocked before it is closed, in ms.
    pub blocked_timeout: f64,
    /// Effects in progress per shard; beyond: Bad_ServerTooBusy. A quarter is reserved for CreateSession and
    /// ActivateSession; samples of monitored items use at most half.
    pub effects_max: usize,
    /// Effects in progress for one connection, including those of requests that its address has abandoned; beyond:
    /// Bad_ServerTooBusy.
    pub effects_per_connection_max: usize,
    /// Passwords checked at a time per shard. Fewer than worker threads, so that password guessing leaves threads for
    /// handshakes and signatures.
    pub credential_checks_max: usize,
    /// Waiting password checks per shard; beyond, the client with most of them gets Bad_ServerTooBusy. The same number
    /// again for users who have logged on before.
    pub credential_checks_waiting_max: usize,
    /// Longest time a deferred request waits for its effects, in ms, whatever its timeoutHint.
    pub deferred_timeout: f64,
    /// Spare send buffers that a shard keeps; one timer call fills up to 64.
    pub spare_buffers_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 1_100,
            connections_per_address_max: 200,
            connection_rate: Rate::new(1_000.0, 2_000),
            connection_rate_reserved: Rate::new(5_000.0, 5_000),
            connection_rate_per_address: Rate::new(100.0, 200),
            discovery_rate_per_address: Rate::new(1_000.0, 1_000),
            discovery_response_len_max: 64 << 10,
            sessionless_timeout: 30_000.0,
            handshakes_max: 64,
            handshake_rate: Rate::new(1_000.0, 1_000),
            handshake_rate_reserved: Rate::new(500.0, 500),
            sessions_max: 1_000,
            sessions_reserved: 100,
            sessions_per_connection_max: 50,
            bytes_per_address_max: 768 << 20,
            bytes_per_session_max: 256 << 20,
            session_bytes_max: 64 << 20,
            request_bytes_max: 64 << 20,
            session_timeout_min: 1_000.0,
            session_timeout_max: 3_600_000.0,
            session_activation_timeout: 10_000.0,
            session_name_len_max: 512,
            client_string_len_max: 4096,
            client_certificate_len_max: 16 << 10,
            signature_len_max: 2048,
            locale_ids_max: 8,
            locale_id_len_max: 64,
            index_range_dimensions_max: 32,
            user_secret_len_max: 1024,
            issued_token_len_max: 16 << 10,
            user_certificate_len_max: 16 << 10,
            browse_continuation_points_max: 10,
            references_per_browse_max: 10_000,
            browse_response_len_max: 4 << 20,
            browse_path_targets_max: 100,
            browse_path_elements_max: 64,
            select_clauses_max: 1_000,
            where_operands_max: 1_000,
            nodes_per_read_max: 10_000,
            nodes_per_write_max: 10_000,
            nodes_per_method_call_max: 1_000,
            nodes_per_browse_max: 10_000,
            nodes_per_history_read_max: 1_000,
            nodes_per_history_update_max: 1_000,
            history_values_max: 100_000,
            history_raw_values_max: 250_000,
            history_continuation_points_max: 100,
            nodes_per_register_nodes_max: 10_000,
            nodes_per_translate_max: 10_000,
            nodes_per_node_management_max: 10_000,
            added_nodes_max: 50_000,
            added_node_bytes_max: 64 << 20,
            monitored_items_per_call_max: 10_000,
            subscriptions: SubscriptionLimits::default(),
            array_len_max: 1 << 20,
            string_len_max: 1 << 20,
            byte_string_len_max: 16 << 20,
            depth_max: 100,
            request_memory_max: 64 << 20,
            reassembly_bytes_max: 64 << 20,
            unsent_bytes_max: 256 << 20,
            response_len_max: 32 << 20,
            send_budget: 1 << 20,
            blocked_timeout: 60_000.0,
            effects_max: 256,
            effects_per_connection_max: 128,
            credential_checks_max: 2,
            credential_checks_waiting_max: 256,
            deferred_timeout: 60_000.0,
            spare_buffers_max: 96,
        }
    }
}

/// Memory charged for each object, in bytes.
pub(crate) mod cost {
    use super::ALLOWANCE;

    /// A connection with its channel, certificate, keys, table entries and the [`ALLOWANCE`] of both directions.
    pub(crate) const CONNECTION: usize = (8 << 10) + 2 * ALLOWANCE;
    /// A subscription with its table entries, without its items.
    pub(crate) const SUBSCRIPTION: usize = 2 << 10;
    /// A MonitoredItem in the tables, without optional parts.
    pub(crate) const MONITORED_ITEM: usize = 128;
    /// Optional parts of a MonitoredItem: an IndexRange of a few dimensions, links.
    pub(crate) const RARE_MONITORED_ITEM: usize = 256;
    /// An entry in a queue.
    pub(crate) const QUEUE_ENTRY: usize = 56;
    /// The remembered data of an address or network.
    pub(crate) const ADDRESS: usize = 128;
    /// Buffers of a shard: spare send buffers, spare messages, its receive buffer and stack.
    pub(crate) const SHARD: usize = 72 << 20;
    /// Events in transit to a shard, by accounted size. An event that names many changed nodes is larger than others,
    /// so their number alone would not bound the memory.
    pub(crate) const EVENT_RING: usize = 8 << 20;
}

/// Budgets grow with the number of monitored items, up to this multiple of the default.
const GROWN_MAX: f64 = 16.0;

impl Limits {
    /// For load generators and experiments on the same machine: no limits on connections and rates below those of the
    /// system. Not for servers on a network.
    #[must_use]
    pub fn laboratory() -> Self {
        Self {
            connections_max: 12_000,
            connections_per_address_max: 12_000,
            connection_rate: Rate::new(1e6, 1_000_000),
            connection_rate_reserved: Rate::new(1e6, 1_000_000),
            connection_rate_per_address: Rate::new(1e6, 1_000_000),
            discovery_rate_per_address: Rate::new(1e6, 1_000_000),
            handshakes_max: 256,
            handshake_rate: Rate::new(1e6, 1_000_000),
            handshake_rate_reserved: Rate::new(1e6, 1_000_000),
            sessions_max: 10_000,
            sessions_reserved: 0,
            session_activation_timeout: 30_000.0,
            bytes_per_address_max: 16 << 30,
            bytes_per_session_max: 4 << 30,
            session_bytes_max: 512 << 20,
            request_bytes_max: 512 << 20,
            unsent_bytes_max: 2 << 30,
            added_nodes_max: 2_000_000,
            added_node_bytes_max: 4 << 30,
            subscriptions: SubscriptionLimits::laboratory(),
            ..Self::default()
        }
    }

    /// Sets the maximum number of monitored items of the server. With more items than the default, the budgets for
    /// their values and messages grow in proportion, up to sixteen times. [`Self::memory_max`] gives the resulting sum.
    pub fn set_monitored_items_max(&mut self, items: u32) {
        let usual = Self::default();
        let times = f64::from(items) / f64::from(usual.subscriptions.monitored_items_max);
        // `as` saturates.
        let grown = |limit: &mut usize, usual: usize| {
            *limit = (*limit).max((usual as f64 * times.min(GROWN_MAX)) as usize);
        };
        grown(&mut self.bytes_per_address_max, usual.bytes_per_address_max);
        grown(&mut self.unsent_bytes_max, usual.unsent_bytes_max);
        let (own, usual) = (&mut self.subscriptions, usual.subscriptions);
        grown(&mut own.queue_places_max, usual.queue_places_max);
        grown(&mut own.queued_value_bytes_max, usual.queued_value_bytes_max);
        grown(&mut own.retransmission_bytes_total_max, usual.retransmission_bytes_total_max);
        own.monitored_items_max = items;
    }

    /// Raises every zero to one. A limit of zero cannot be published, because zero there means "no limit" (Part 5
    /// §6.3.11).
    #[must_use]
    pub fn at_least_one(mut self) -> Self {
        for limit in [
            &mut self.connections_max,
            &mut self.connections_per_address_max,
            &mut self.handshakes_max,
            &mut self.sessions_max,
            &mut self.sessions_per_connection_max,
            &mut self.effects_max,
            &mut self.effects_per_connection_max,
            &mut self.credential_checks_max,
            &mut self.credential_checks_waiting_max,
        ] {
            *limit = (*limit).max(1);
        }
        for limit in [
            &mut self.select_clauses_max,
            &mut self.where_operands_max,
            &mut self.nodes_per_read_max,
            &mut self.nodes_per_write_max,
            &mut self.nodes_per_method_call_max,
            &mut self.nodes_per_browse_max,
            &mut self.nodes_per_history_read_max,
            &mut self.nodes_per_history_update_max,
            &mut self.nodes_per_register_nodes_max,
            &mut self.nodes_per_translate_max,
            &mut self.nodes_per_node_management_max,
            &mut self.monitored_items_per_call_max,
            &mut self.array_len_max,
            &mut self.string_len_max,
            &mut self.byte_string_len_max,
        ] {
            *limit = (*limit).max(1);
        }
        self.browse_continuation_points_max = self.browse_continuation_points_max.max(1);
        self.history_continuation_points_max = self.history_continuation_points_max.max(1);
        self.history_values_max = self.history_values_max.max(1);
        self.history_raw_values_max = self.history_raw_values_max.max(1);
        self.response_len_max = self.response_len_max.max(ALLOWANCE);
        self.subscriptions = self.subscriptions.at_least_one();
        self
    }

    /// Maximum memory in bytes that clients can make a server of `shards` shards use: the limits of its
    /// [account](crate::account), events in transit to its shards, and the messages being processed. Not included: the
    /// address space with its values, the application's own memory, and the kernel's socket buffers.
    #[must_use]
    pub fn memory_max(&self, channel: &ChannelLimits, shards: usize) -> usize {
        let maxima = self.maxima();
        let kept = Category::ALL
            .into_iter()
            .filter(|category| category.is_bytes())
            .fold(0, |sum: usize, category| sum.saturating_add(maxima.of(category)));
        // While a request is processed, it exists as received, decoded, and as its response.
        let message = channel.message_size_max as usize;
        let in_work = cost::SHARD
            .saturating_add(cost::EVENT_RING)
            .saturating_add(message.saturating_add(self.request_memory_max))
            .saturating_add(self.response_len_max);
        [
            kept,
            self.handshakes_max.saturating_mul(2 * channel.open_size_max as usize),
            (2 * ENTRIES_MAX + FAMILIAR_MAX) * cost::ADDRESS,
            shards.saturating_mul(in_work),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }

    /// The limits of the server's account.
    pub(crate) fn maxima(&self) -> Maxima {
        let subscriptions = &self.subscriptions;
        let items = (subscriptions.monitored_items_max as usize)
            .saturating_mul(cost::MONITORED_ITEM + cost::RARE_MONITORED_ITEM)
            .saturating_add((subscriptions.subscriptions_max as usize).saturating_mul(cost::SUBSCRIPTION));
        Maxima::bytes(usize::MAX)
            .with(Category::Connections, self.connections_max.saturating_mul(cost::CONNECTION))
            .with(Category::IncompleteMessages, self.reassembly_bytes_max)
            .with(Category::UnsentMessages, self.unsent_bytes_max)
            .with(Category::Sessions, self.session_bytes_max)
            .with(Category::Requests, self.request_bytes_max)
            .with(Category::MonitoredItems, items)
            .with(Category::QueuePlaces, subscriptions.queue_places_max.saturating_mul(cost::QUEUE_ENTRY))
            .with(Category::QueuedValues, subscriptions.queued_value_bytes_max)
            .with(Category::Retransmission, subscriptions.retransmission_bytes_total_max)
            .with(Category::AddedNodes, self.added_node_bytes_max)
            .with(Category::AddedNodeCount, self.added_nodes_max)
            .with(Category::HandshakeCount, self.handshakes_max)
            .with(Category::SubscriptionCount, subscriptions.subscriptions_max as usize)
            .with(Category::MonitoredItemCount, subscriptions.monitored_items_max as usize)
    }

    /// Parses an IndexRange of a request.
    ///
    /// # Errors
    /// Bad_IndexRangeInvalid, also if it has too many dimensions.
    pub(crate) fn index_range(&self, text: &str) -> Result<Option<NumericRange>, StatusCode> {
        if dimension_count(text) > self.index_range_dimensions_max {
            return Err(StatusCode::BAD_INDEX_RANGE_INVALID);
        }
        NumericRange::parse(text)
    }

    /// The limits of EventFilters.
    pub(crate) fn event_filter(&self) -> EventFilterLimits {
        EventFilterLimits {
            select_clauses_max: self.select_clauses_max as usize,
            where_operands_max: self.where_operands_max as usize,
            path_len_max: self.browse_path_elements_max,
        }
    }

    /// The limits of request decoders.
    #[must_use]
    pub(crate) fn decode(&self) -> taktwerk_types::DecodeLimits {
        taktwerk_types::DecodeLimits {
            string_len_max: self.string_len_max,
            byte_string_len_max: self.byte_string_len_max,
            array_len_max: self.array_len_max,
            depth_max: self.depth_max,
            memory_max: self.request_memory_max,
        }
    }
}

/// The limits of EventFilters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventFilterLimits {
    /// MaxSelectClauseParameters.
    pub(crate) select_clauses_max: usize,
    /// MaxWhereClauseParameters.
    pub(crate) where_operands_max: usize,
    /// Number of names in the path of a clause.
    pub(crate) path_len_max: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_fit_a_small_machine() {
        let sum = Limits::default().memory_max(&ChannelLimits::default(), 2);
        assert!(sum < 2 << 30, "{} MiB", sum >> 20);
    }

    #[test]
    fn budgets_grow_with_the_number_of_items() {
        let usual = Limits::default();
        let with = |items| {
            let mut limits = Limits::default();
            limits.set_monitored_items_max(items);
            limits
        };
        let (few, many) = (with(1_000), with(5_000_000));
        assert_eq!(few.subscriptions.monitored_items_max, 1_000);
        assert_eq!(
            (few.unsent_bytes_max, few.bytes_per_address_max),
            (usual.unsent_bytes_max, usual.bytes_per_address_max)
        );
        assert_eq!(many.unsent_bytes_max, 5 * usual.unsent_bytes_max);
        assert_eq!(many.bytes_per_address_max, 5 * usual.bytes_per_address_max);
        assert_eq!(many.subscriptions.queue_places_max, 5 * usual.subscriptions.queue_places_max);
        assert_eq!(with(u32::MAX).unsent_bytes_max, 16 * usual.unsent_bytes_max);
        let sum = |limits: &Limits| limits.memory_max(&ChannelLimits::default(), 2);
        assert!(sum(&many) > 3 * sum(&usual) && sum(&few) <= sum(&usual), "{}", sum(&many));
    }

    #[test]
    fn no_limit_can_be_zero() {
        let mut limits = Limits { nodes_per_read_max: 0, sessions_max: 0, ..Limits::default() };
        limits.subscriptions.monitored_items_max = 0;
        let limits = limits.at_least_one();
        assert_eq!((limits.nodes_per_read_max, limits.sessions_max), (1, 1));
        assert_eq!(limits.subscriptions.monitored_items_max, 1);
    }
}
