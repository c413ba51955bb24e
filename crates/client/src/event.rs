//! What the client delivers to the application through a [`Sink`]: events, responses and notifications.

use crate::error::{ClientError, Misuse};
use crate::limits::OperationLimits;
use crate::namespaces::Namespaces;
use crate::notification::{DataChanges, EventNotifications};
use crate::subscription::{ItemResult, SubscriptionHandle};
use core::any::Any;
use std::collections::VecDeque;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_schema::service::Response;
use taktwerk_types::{DataValue, DecodeLimits, Instant, NodeId, StatusCode, UaString, UtcTime, Variant};

/// Identifies a request until its response was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestHandle(pub u32);

/// Data of an active session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionInfo {
    /// NodeId of the session in the server's diagnostics.
    pub session_id: NodeId,
    /// How long the server keeps the session without a connection, in milliseconds.
    pub revised_timeout_ms: f64,
    /// The endpoint's policy.
    pub policy: SecurityPolicy,
    /// The endpoint's mode.
    pub mode: MessageSecurityMode,
    /// The server's limits per request; all zero if they were not read.
    pub limits: OperationLimits,
    /// The server's NamespaceArray; empty if it was not read.
    pub namespaces: Namespaces,
}

/// A notable condition that is no error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The server announces another host than the one that was connected to. The latter is used.
    HostRewritten {
        /// The URL in the endpoint's description.
        announced: Box<str>,
        /// The URL that is used.
        used: Box<str>,
    },
    /// The server's NamespaceArray has changed: NodeIds that were looked up before may address other nodes. Monitored
    /// items are adapted by the URIs of their namespaces.
    NamespacesChanged,
}

/// What happened to the session after a lost connection (Part 4 §6.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restored {
    /// The old session continues with everything in it.
    SameSession,
    /// The server had dropped the session, so a new one was created. Events report the result for each subscription.
    NewSession,
}

/// A change in the state of the client.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The session (or, without a session, the channel) is active for the first time.
    Connected(Box<SessionInfo>),
    /// A notable condition.
    Note(Note),
    /// The connection was lost. Outstanding requests have failed with the same error.
    ConnectionLost {
        /// The cause.
        error: ClientError,
        /// Time of the next attempt.
        retry_at: Instant,
    },
    /// A connection attempt failed and will be repeated.
    ConnectFailed {
        /// The cause.
        error: ClientError,
        /// Time of the next attempt.
        retry_at: Instant,
    },
    /// The connection was restored.
    Restored(Restored, Box<SessionInfo>),
    /// The client has ended: as requested, or because of an error that is not retried.
    Disconnected(Option<ClientError>),
    /// Something happened to a subscription.
    Subscription(SubscriptionHandle, SubscriptionEvent),
}

/// An event of a subscription.
#[derive(Debug, Clone, PartialEq)]
pub enum SubscriptionEvent {
    /// It exists on the server.
    Created {
        /// The server's id.
        subscription_id: u32,
        /// In milliseconds.
        publishing_interval_ms: f64,
        /// In publishing intervals.
        lifetime_count: u32,
        /// In publishing intervals.
        keep_alive_count: u32,
    },
    /// The server refused to create it. The client tries again only after [`SubscriptionEvent::Recreating`].
    CreateFailed(ClientError),
    /// It was modified as asked.
    Modified {
        /// In milliseconds.
        publishing_interval_ms: f64,
        /// In publishing intervals.
        lifetime_count: u32,
        /// In publishing intervals.
        keep_alive_count: u32,
    },
    /// The server refused to modify it or to change its publishing mode; its old parameters still apply.
    ModifyFailed(ClientError),
    /// Publishing was enabled or disabled as requested.
    PublishingModeSet(bool),
    /// These items cannot be created, because the server has no namespace with this URI. The client tries again when
    /// the subscription is created again.
    NamespaceMissing {
        /// The URI.
        namespace_uri: UaString,
        /// The items.
        client_handles: Vec<u32>,
    },
    /// Items were created or refused.
    Items(Vec<ItemResult>),
    /// A keep-alive: nothing has changed, and the connection works.
    KeepAlive,
    /// Nothing was received for longer than the keep-alive interval; the client probes the server.
    Inactive,
    /// After [`SubscriptionEvent::Inactive`]: the subscription is active again.
    Active,
    /// Notification messages are lost: those from the first to the last of these sequence numbers.
    DataLost {
        /// First.
        from: u32,
        /// Last.
        to: u32,
    },
    /// The subscription survived a reconnect in the same session. Nothing was lost unless
    /// [`SubscriptionEvent::DataLost`] reports it.
    Kept,
    /// The subscription was transferred to the new session (Part 4 §5.14.7).
    Transferred,
    /// The server had lost the subscription, with this status. The client creates it again with the same items and
    /// client handles; values in between are lost.
    Recreating(StatusCode),
    /// The server has ended it or transferred it to another session; the client does not create it again.
    Ended(StatusCode),
    /// It was deleted as requested.
    Deleted,
}

/// Receives the client's output. Called from within `Client::received` and similar methods; must not block.
pub trait Sink {
    /// The state changed.
    fn event(&mut self, event: Event);

    /// A request was answered or has failed.
    fn response(&mut self, handle: RequestHandle, result: Result<Reply<'_>, ClientError>);

    /// Values changed. Iterating decodes directly from the receive buffer; scalar values need no heap.
    fn data_changes(&mut self, subscription: SubscriptionHandle, changes: DataChanges<'_>);

    /// Events happened.
    fn events(&mut self, subscription: SubscriptionHandle, events: EventNotifications<'_>);
}

/// The response to a request.
#[derive(Debug)]
pub struct Reply<'a>(pub(crate) ReplyBody<'a>);

#[derive(Debug)]
pub(crate) enum ReplyBody<'a> {
    /// As received, after the type id.
    Wire { type_id: u32, body: &'a [u8], limits: DecodeLimits },
    /// Joined from the responses to the parts of a split request.
    Joined(Box<dyn Any + Send>),
}

impl<'a> Reply<'a> {
    /// Decodes the response.
    ///
    /// # Errors
    /// [`Misuse::WrongType`] if it has another type; [`ClientError::Decode`] if the bytes are invalid.
    pub fn decode<T: Response + 'static>(self) -> Result<T, ClientError> {
        match self.0 {
            ReplyBody::Wire { type_id, body, limits } if type_id == T::BINARY_ENCODING_ID => {
                Ok(T::decode_from(body, limits)?)
            }
            ReplyBody::Wire { .. } => Err(Misuse::WrongType.into()),
            ReplyBody::Joined(joined) => match joined.downcast::<T>() {
                Ok(response) => Ok(*response),
                Err(_) => Err(Misuse::WrongType.into()),
            },
        }
    }

    /// The encoding id of the message and the bytes after it, starting with the response header. `None` for a joined
    /// response.
    #[must_use]
    pub fn wire(&self) -> Option<(u32, &'a [u8])> {
        match &self.0 {
            ReplyBody::Wire { type_id, body, .. } => Some((*type_id, body)),
            ReplyBody::Joined(_) => None,
        }
    }

    /// A copy that outlives the receive buffer.
    #[must_use]
    pub fn into_owned(self) -> OwnedReply {
        match self.0 {
            ReplyBody::Wire { type_id, body, limits } => {
                OwnedReply(OwnedReplyBody::Wire { type_id, body: body.into(), limits })
            }
            ReplyBody::Joined(joined) => OwnedReply(OwnedReplyBody::Joined(joined)),
        }
    }
}

/// An owned response.
#[derive(Debug)]
pub struct OwnedReply(OwnedReplyBody);

#[derive(Debug)]
enum OwnedReplyBody {
    Wire { type_id: u32, body: Box<[u8]>, limits: DecodeLimits },
    Joined(Box<dyn Any + Send>),
}

impl OwnedReply {
    /// Decodes the response.
    ///
    /// # Errors
    /// As [`Reply::decode`].
    pub fn decode<T: Response + 'static>(self) -> Result<T, ClientError> {
        match self.0 {
            OwnedReplyBody::Wire { type_id, body, limits } => {
                Reply(ReplyBody::Wire { type_id, body: &body, limits }).decode()
            }
            OwnedReplyBody::Joined(joined) => Reply(ReplyBody::Joined(joined)).decode(),
        }
    }
}

/// An entry of an [`EventQueue`].
#[derive(Debug)]
pub enum Delivery {
    /// From [`Sink::event`].
    Event(Event),
    /// From [`Sink::response`].
    Response(RequestHandle, Result<OwnedReply, ClientError>),
    /// From [`Sink::data_changes`].
    DataChanges {
        /// The subscription.
        subscription: SubscriptionHandle,
        /// Number of the notification message.
        sequence_number: u32,
        /// When the server sent it.
        publish_time: UtcTime,
        /// Client handle and value of each change.
        values: Vec<(u32, DataValue)>,
    },
    /// From [`Sink::events`].
    Events {
        /// The subscription.
        subscription: SubscriptionHandle,
        /// Number of the notification message.
        sequence_number: u32,
        /// Client handle and fields of each event.
        events: Vec<(u32, Vec<Variant>)>,
    },
}

/// A sink that queues everything in order, for applications that process deliveries later.
#[derive(Debug, Default)]
pub struct EventQueue {
    /// Pending deliveries, oldest first.
    pub deliveries: VecDeque<Delivery>,
}

impl EventQueue {
    /// The oldest delivery.
    pub fn pop(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }
}

impl Sink for EventQueue {
    fn event(&mut self, event: Event) {
        self.deliveries.push_back(Delivery::Event(event));
    }

    fn response(&mut self, handle: RequestHandle, result: Result<Reply<'_>, ClientError>) {
        self.deliveries.push_back(Delivery::Response(handle, result.map(Reply::into_owned)));
    }

    fn data_changes(&mut self, subscription: SubscriptionHandle, changes: DataChanges<'_>) {
        let (sequence_number, publish_time) = (changes.sequence_number, changes.publish_time);
        let values = changes.filter_map(Result::ok).collect();
        self.deliveries.push_back(Delivery::DataChanges {
            subscription,
            sequence_number,
            publish_time,
            values,
        });
    }

    fn events(&mut self, subscription: SubscriptionHandle, events: EventNotifications<'_>) {
        let sequence_number = events.sequence_number;
        let events = events.filter_map(Result::ok).collect();
        self.deliveries.push_back(Delivery::Events { subscription, sequence_number, events });
    }
}
