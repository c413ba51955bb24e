//! Writing responses into the send buffers of connections.

use super::Connection;
use super::buffers::Buffers;
use crate::error::Fault;
use crate::ids::{ConnectionId, ReplyTo};
use crate::now::Now;
use crate::reply::Reply;
use crate::slab::Slab;
use crate::subscription::publish::{Responder, Ticket};
use std::collections::VecDeque;
use taktwerk_channel::ChannelError;
use taktwerk_types::StatusCode;

/// Connections with new output.
#[derive(Debug, Default)]
pub(crate) struct Transmit {
    /// Connections with data to send whose socket accepts it.
    pub(crate) queue: VecDeque<ConnectionId>,
    /// Connections whose channels ended because a message could not be secured.
    pub(crate) ended: Vec<ConnectionId>,
}

/// The send buffers of a shard, for writing responses.
#[derive(Debug)]
pub(crate) struct Outbox<'a> {
    pub(crate) connections: &'a mut Slab<Connection>,
    pub(crate) transmit: &'a mut Transmit,
    pub(crate) buffers: &'a mut Buffers,
    pub(crate) now: Now,
    pub(crate) send_budget: usize,
}

impl Outbox<'_> {
    /// Sends one message; `write` appends its body. Does nothing if the connection no longer exists.
    pub(crate) fn send(
        &mut self,
        to: ConnectionId,
        request_id: u32,
        handle: u32,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let Some(connection) = self.connections.get_mut(to.0) else { return };
        if connection.is_ending() {
            return;
        }
        connection.ensure_buffer(self.buffers);
        let start = connection.channel.begin(&mut connection.out);
        write(&mut connection.out);
        finish(connection, start, request_id, handle, self.now);
        if connection.channel.is_closed() {
            self.transmit.ended.push(to);
        }
        if connection.is_blocked() {
            connection.account_unsent();
        }
        schedule(to, connection, self.transmit);
    }

    /// Sends a ServiceFault.
    pub(crate) fn fault_to(&mut self, to: ReplyTo, status: StatusCode) {
        let time = self.now.utc;
        self.send(to.connection, to.request_id, to.request_handle, |out| {
            Reply::new(out, to.request_handle, time).fault(Fault::local(status, ""));
        });
    }
}

/// Completes the message that begins at `start`. If it exceeds the client's limits, sends a fault instead.
pub(crate) fn finish(
    connection: &mut Connection,
    start: taktwerk_channel::MessageStart,
    request_id: u32,
    request_handle: u32,
    now: Now,
) {
    let body = connection.out.get(start.body()..).unwrap_or_default();
    connection.spans.end(request_id, body);
    let status = if connection.out.len().saturating_sub(start.body()) > connection.session_len_max {
        // Part 4 §5.7.2.2, maxResponseMessageSize.
        connection.out.truncate(start.offset());
        StatusCode::BAD_RESPONSE_TOO_LARGE
    } else {
        match connection.channel.finish(start, request_id, &mut connection.out) {
            Ok(()) => return,
            Err(error) if matches!(error, ChannelError::Limit(_)) => error.status(),
            Err(error) => return tracing::debug!(%error, "response not sent"),
        }
    };
    tracing::debug!(%status, "response not sent");
    let start = connection.channel.begin(&mut connection.out);
    let fault = Fault::limit(status, "the client's message size");
    Reply::new(&mut connection.out, request_handle, now.utc).fault(fault);
    // A fault of 52 bytes fits every channel. If this fails too, the channel has ended and its timeout reports it.
    let _ = connection.channel.finish(start, request_id, &mut connection.out);
}

/// Adds a connection to the transmit queue.
#[inline]
pub(crate) fn schedule(id: ConnectionId, connection: &mut Connection, transmit: &mut Transmit) {
    if !connection.is_scheduled && !connection.is_blocked() && connection.unsent_len() > 0 {
        connection.is_scheduled = true;
        transmit.queue.push_back(id);
    }
}

impl Responder for Outbox<'_> {
    fn is_congested(&self, connection: ConnectionId) -> bool {
        self.connections
            .get(connection.0)
            .is_some_and(|connection| connection.is_blocked() || connection.unsent_len() > self.send_budget)
    }

    fn body_len_max(&self, connection: ConnectionId) -> usize {
        self.connections.get(connection.0).map_or(0, Connection::response_len_max)
    }

    fn respond(&mut self, ticket: &Ticket, body: &mut dyn FnMut(&mut Vec<u8>)) {
        self.send(ticket.connection, ticket.request_id, ticket.request_handle, body);
    }

    fn fault(&mut self, ticket: &Ticket, status: StatusCode) {
        let to = ReplyTo {
            connection: ticket.connection,
            request_id: ticket.request_id,
            request_handle: ticket.request_handle,
        };
        self.fault_to(to, status);
    }
}
