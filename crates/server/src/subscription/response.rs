//! The encoding of PublishResponses (Part 4 §5.14.5.2) and of RepublishResponses that had to wait (§5.14.6.2).

use super::message::MessageWriter;
use super::publish::{Responder, Ticket};
use super::subscription::Subscription;
use crate::now::Now;
use taktwerk_schema::ids::encoding_ids;
use taktwerk_types::codec::encode_len;
use taktwerk_types::{Encode, NodeId, StatusCode};

/// Appends the type id and a good response header (Part 4 §7.33).
fn encode_header(out: &mut Vec<u8>, type_id: u32, ticket: &Ticket, now: Now) {
    NodeId::numeric(0, type_id).encode(out);
    now.utc.encode(out);
    ticket.request_handle.encode(out);
    StatusCode::GOOD.encode(out);
    // No diagnostics, an empty string table and no additional header.
    out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0]);
}

/// Appends the response before the NotificationMessage.
fn encode_before(
    out: &mut Vec<u8>,
    id: u32,
    available: impl ExactSizeIterator<Item = u32>,
    more_notifications: bool,
) {
    id.encode(out);
    encode_len(available.len(), out);
    available.for_each(|number| number.encode(out));
    more_notifications.encode(out);
}

/// Appends the response after the NotificationMessage.
fn encode_after(out: &mut Vec<u8>, ticket: &Ticket) {
    ticket.results.as_slice().encode(out);
    encode_len(0, out);
}

pub(super) fn respond_notifications(
    responder: &mut dyn Responder,
    ticket: &Ticket,
    now: Now,
    subscription: &Subscription,
    sequence_number: u32,
) {
    let sent = &subscription.retransmission;
    responder.respond(ticket, &mut |out| {
        let message = sent.find(sequence_number).unwrap_or_default();
        // Additional space for the headers of its chunks.
        out.reserve_exact(message.len() + message.len() / 64 + 256);
        encode_header(out, encoding_ids::PUBLISH_RESPONSE_BINARY, ticket, now);
        encode_before(out, subscription.id, subscription.available(), subscription.more_notifications);
        out.extend_from_slice(message);
        encode_after(out, ticket);
    });
}

pub(super) fn respond_keep_alive(
    responder: &mut dyn Responder,
    ticket: &Ticket,
    now: Now,
    subscription: &Subscription,
) {
    responder.respond(ticket, &mut |out| {
        encode_header(out, encoding_ids::PUBLISH_RESPONSE_BINARY, ticket, now);
        encode_before(out, subscription.id, subscription.available(), false);
        // The sequence number of the next message with notifications.
        MessageWriter::begin(out, subscription.next_to_send(), now.utc).finish();
        encode_after(out, ticket);
    });
}

pub(super) fn respond_status_change(
    responder: &mut dyn Responder,
    ticket: &Ticket,
    now: Now,
    id: u32,
    sequence_number: u32,
    status: StatusCode,
) {
    responder.respond(ticket, &mut |out| {
        encode_header(out, encoding_ids::PUBLISH_RESPONSE_BINARY, ticket, now);
        encode_before(out, id, core::iter::empty(), false);
        let mut message = MessageWriter::begin(out, sequence_number, now.utc);
        message.block(encoding_ids::STATUS_CHANGE_NOTIFICATION_BINARY, |out| {
            status.encode(out);
            // An empty DiagnosticInfo.
            out.push(0);
            1
        });
        message.finish();
        encode_after(out, ticket);
    });
}

pub(super) fn respond_republished(responder: &mut dyn Responder, ticket: &Ticket, now: Now, message: &[u8]) {
    responder.respond(ticket, &mut |out| {
        encode_header(out, encoding_ids::REPUBLISH_RESPONSE_BINARY, ticket, now);
        out.extend_from_slice(message);
    });
}
