//! Every limit of a server in one place (design §11).
//!
//! What the specification has a Variable for is published under ServerCapabilities (Part 5 §6.3.2) from the same
//! numbers that are enforced.

use crate::subscription::SubscriptionLimits;

/// What a server accepts and keeps. At a limit the answer is a StatusCode, never growth.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Connections per server; one more than sessions, so that a client can reconnect to a full server.
    pub connections_max: usize,
    /// Sessions per server (MaxSessions). Beyond: a session that was never activated gives way, else
    /// Bad_TooManySessions.
    pub sessions_max: usize,
    /// Shortest session timeout in ms.
    pub session_timeout_min: f64,
    /// Longest session timeout in ms.
    pub session_timeout_max: f64,
    /// How long a session may stay without ActivateSession, in ms.
    pub session_activation_timeout: f64,
    /// Longest session name in bytes; longer ones are cut.
    pub session_name_len_max: usize,
    /// Locale ids kept per session.
    pub locale_ids_max: usize,
    /// Longest user name and password in bytes; beyond: Bad_IdentityTokenInvalid.
    pub user_secret_len_max: usize,
    /// Continuation points per session (MaxBrowseContinuationPoints).
    pub browse_continuation_points_max: u16,
    /// References that one Browse operation returns at once; the rest waits behind a continuation point.
    pub references_per_browse_max: usize,
    /// Bytes of one response after which Browse puts the rest behind continuation points.
    pub browse_response_len_max: usize,
    /// Targets of one browse path; beyond: Bad_TooManyMatches.
    pub browse_path_targets_max: usize,
    /// Elements of one browse path; beyond: Bad_QueryTooComplex.
    pub browse_path_elements_max: usize,
    /// Operations of one Read (MaxNodesPerRead).
    pub nodes_per_read_max: u32,
    /// Operations of one Write (MaxNodesPerWrite).
    pub nodes_per_write_max: u32,
    /// Operations of one Call (MaxNodesPerMethodCall).
    pub nodes_per_method_call_max: u32,
    /// Operations of one Browse or BrowseNext (MaxNodesPerBrowse).
    pub nodes_per_browse_max: u32,
    /// Operations of one RegisterNodes or UnregisterNodes (MaxNodesPerRegisterNodes).
    pub nodes_per_register_nodes_max: u32,
    /// Operations of one TranslateBrowsePathsToNodeIds (MaxNodesPerTranslateBrowsePathsToNodeIds).
    pub nodes_per_translate_max: u32,
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
    /// Deepest nesting accepted in a request (Part 6 §5.2.2.16 asks for 100).
    pub depth_max: u16,
    /// Unsent bytes of a connection above which its requests are no longer read.
    pub send_budget: usize,
    /// How long a connection may stay blocked before it is closed, in ms.
    pub blocked_timeout: f64,
    /// Effects under way per shard; beyond: Bad_ServerTooBusy.
    pub effects_max: usize,
    /// How long a deferred request waits for its effects at most, in ms, whatever its timeoutHint.
    pub deferred_timeout: f64,
    /// Emptied send buffers that a shard keeps; one timer call fills up to 64.
    pub spare_buffers_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 12_000,
            sessions_max: 10_000,
            session_timeout_min: 1_000.0,
            session_timeout_max: 3_600_000.0,
            session_activation_timeout: 30_000.0,
            session_name_len_max: 512,
            locale_ids_max: 8,
            user_secret_len_max: 1024,
            browse_continuation_points_max: 10,
            references_per_browse_max: 10_000,
            browse_response_len_max: 4 << 20,
            browse_path_targets_max: 100,
            browse_path_elements_max: 64,
            nodes_per_read_max: 10_000,
            nodes_per_write_max: 10_000,
            nodes_per_method_call_max: 1_000,
            nodes_per_browse_max: 10_000,
            nodes_per_register_nodes_max: 10_000,
            nodes_per_translate_max: 10_000,
            monitored_items_per_call_max: 10_000,
            subscriptions: SubscriptionLimits::default(),
            array_len_max: 1 << 20,
            string_len_max: 1 << 20,
            byte_string_len_max: 16 << 20,
            depth_max: 100,
            send_budget: 1 << 20,
            blocked_timeout: 60_000.0,
            effects_max: 256,
            deferred_timeout: 60_000.0,
            spare_buffers_max: 96,
        }
    }
}

impl Limits {
    /// What request decoders accept.
    #[must_use]
    pub(crate) fn decode(&self) -> taktwerk_types::DecodeLimits {
        taktwerk_types::DecodeLimits {
            string_len_max: self.string_len_max,
            byte_string_len_max: self.byte_string_len_max,
            array_len_max: self.array_len_max,
            depth_max: self.depth_max,
        }
    }
}
