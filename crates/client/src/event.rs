//! What the client tells its application: events, responses and notifications, through a [`Sink`].

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

/// Names a request until its answer has been delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestHandle(pub u32);

/// What is known of a session once it is up.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionInfo {
    /// The session's node in the server's diagnostics.
    pub session_id: NodeId,
    /// How long the server keeps the session without a connection, in milliseconds.
    pub revised_timeout_ms: f64,
    /// The endpoint's policy.
    pub policy: SecurityPolicy,
    /// The endpoint's mode.
    pub mode: MessageSecurityMode,
    /// What the server allows per request; all zero if it was not read.
    pub limits: OperationLimits,
    /// The server's NamespaceArray; empty if it was not read.
    pub namespaces: Namespaces,
}

/// Something worth knowing that is no failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The server announces a host that was not dialled; the dialled one is used.
    HostRewritten {
        /// The URL in the endpoint's description.
        announced: Box<str>,
        /// The URL that is used.
        used: Box<str>,
    },
    /// The server has come back with another NamespaceArray: NodeIds that were looked up before may name other nodes.
    /// Monitored items follow the URIs of their namespaces.
    NamespacesChanged,
}

/// What became of the session after the connection had been lost (Part 4 §6.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restored {
    /// The old session goes on with all it had.
    SameSession,
    /// The server had dropped the session; there is a new one. What became of each subscription is told one by one.
    NewSession,
}

/// A change in the state of the client.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The session (or, without one, the channel) is up for the first time.
    Connected(Box<SessionInfo>),
    /// Something worth knowing.
    Note(Note),
    /// The connection broke. Outstanding requests have been answered with the same error.
    ConnectionLost {
        /// Why.
        error: ClientError,
        /// When the next attempt will be made.
        retry_at: Instant,
    },
    /// An attempt to connect failed and will be repeated.
    ConnectFailed {
        /// Why.
        error: ClientError,
        /// When the next attempt will be made.
        retry_at: Instant,
    },
    /// The connection is back.
    Restored(Restored, Box<SessionInfo>),
    /// The client has ended, as asked for or because of an error that is not retried.
    Disconnected(Option<ClientError>),
    /// Something happened to a subscription.
    Subscription(SubscriptionHandle, SubscriptionEvent),
}

/// Something that happened to a subscription.
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
    /// The server refused to create it. It is tried again only after [`SubscriptionEvent::Recreating`].
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
    /// The server refused to modify it, or to change its publishing mode; what it had before goes on.
    ModifyFailed(ClientError),
    /// Publishing was switched on or off as asked.
    PublishingModeSet(bool),
    /// These items cannot be created, because the server has no namespace of this URI any more. They are tried again when
    /// the subscription is created anew.
    NamespaceMissing {
        /// The URI.
        namespace_uri: UaString,
        /// The items.
        client_handles: Vec<u32>,
    },
    /// Items were created, or failed to be.
    Items(Vec<ItemResult>),
    /// Nothing happened for a publishing interval; the connection works.
    KeepAlive,
    /// Nothing has come for longer than the keep-alive interval allows; the server is being asked.
    Inactive,
    /// After [`SubscriptionEvent::Inactive`]: it is alive.
    Active,
    /// Notification messages are lost for good: those from the first to the last of these sequence numbers.
    DataLost {
        /// First.
        from: u32,
        /// Last.
        to: u32,
    },
    /// The subscription survived a reconnection, in the same session; nothing was lost unless
    /// [`SubscriptionEvent::DataLost`] says so.
    Kept,
    /// The subscription was transferred to the new session (Part 4 §5.14.7).
    Transferred,
    /// The server had lost the subscription (for the reason given). It is being created anew with the same items and
    /// client handles; values in between are lost.
    Recreating(StatusCode),
    /// The server ended it or gave it to another session; it is not created anew.
    Ended(StatusCode),
    /// It was deleted as asked.
    Deleted,
}

/// Where a client delivers. Called from within `Client::received` and its like; must not block.
pub trait Sink {
    /// The state changed.
    fn event(&mut self, event: Event);

    /// A request was answered, or will not be.
    fn response(&mut self, handle: RequestHandle, result: Result<Reply<'_>, ClientError>);

    /// Values changed. Iterating decodes straight from the receive buffer; scalar values take no heap.
    fn data_changes(&mut self, subscription: SubscriptionHandle, changes: DataChanges<'_>);

    /// Events happened.
    fn events(&mut self, subscription: SubscriptionHandle, events: EventNotifications<'_>);
}

/// The answer to a request.
#[derive(Debug)]
pub struct Reply<'a>(pub(crate) ReplyBody<'a>);

#[derive(Debug)]
pub(crate) enum ReplyBody<'a> {
    /// As received: behind the type id.
    Wire { type_id: u32, body: &'a [u8], limits: DecodeLimits },
    /// Joined from the answers to the parts of a split request.
    Joined(Box<dyn Any + Send>),
}

impl<'a> Reply<'a> {
    /// Reads the answer.
    ///
    /// # Errors
    /// [`Misuse::WrongType`] if it is of another type; [`ClientError::Decode`] if the server's bytes are wrong.
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

    /// The id of the message's encoding and its bytes behind it, starting with the response header. `None` for an
    /// answer that was joined from several.
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

/// The answer to a request, kept.
#[derive(Debug)]
pub struct OwnedReply(OwnedReplyBody);

#[derive(Debug)]
enum OwnedReplyBody {
    Wire { type_id: u32, body: Box<[u8]>, limits: DecodeLimits },
    Joined(Box<dyn Any + Send>),
}

impl OwnedReply {
    /// Reads the answer.
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

/// What an [`EventQueue`] holds.
#[derive(Debug)]
pub enum Delivery {
    /// From [`Sink::event`].
    Event(Event),
    /// From [`Sink::response`].
    Response(RequestHandle, Result<OwnedReply, ClientError>),
    /// From [`Sink::data_changes`].
    DataChanges {
        /// Of which subscription.
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
        /// Of which subscription.
        subscription: SubscriptionHandle,
        /// Number of the notification message.
        sequence_number: u32,
        /// Client handle and fields of each event.
        events: Vec<(u32, Vec<Variant>)>,
    },
}

/// A sink that keeps everything in order: for applications that take what they are told later.
#[derive(Debug, Default)]
pub struct EventQueue {
    /// What has not been taken yet, oldest first.
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
