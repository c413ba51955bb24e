//! Sends the parts of split requests and joins their responses.

use crate::batch::BatchOwner;
use crate::client::Client;
use crate::error::{ClientError, is_too_large};
use crate::event::{Reply, ReplyBody, Sink};
use crate::link::Answer;
use crate::outstanding::Purpose;
use core::any::Any;
use taktwerk_types::Instant;

impl Client {
    /// Sends parts up to the limit of parts in flight.
    pub(crate) fn pump_batches(&mut self, now: Instant) {
        if !self.link.is_open() {
            return;
        }
        let timeout = Some(self.config.request_timeout);
        for (id, batch) in &mut self.batches.active {
            while batch.in_flight < self.config.parts_in_flight_max {
                let kind = batch.parts.kind();
                let Some((part, request)) = batch.parts.next() else { break };
                let handle = match batch.owner {
                    BatchOwner::User(handle) => handle,
                    _ => self.link.next_handle(),
                };
                let purpose = Purpose::Part { batch: *id, part };
                match self.link.send(request, handle, purpose, timeout, now) {
                    Ok(()) => batch.in_flight += 1,
                    Err(error) if is_too_large(&error) => match batch.parts.halve(part) {
                        Some(refused) => self.learned.limits.learn(kind, refused),
                        None => {
                            self.batches.failed.push((*id, error));
                            break;
                        }
                    },
                    Err(error) => {
                        self.batches.failed.push((*id, error));
                        break;
                    }
                }
            }
        }
    }

    /// A part was answered or has failed.
    pub(crate) fn on_part(
        &mut self,
        id: u32,
        part: u32,
        result: Result<Answer<'_>, ClientError>,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        // After one part has failed, the others are ignored.
        let Some(batch) = self.batches.active.get_mut(&id) else { return };
        batch.in_flight = batch.in_flight.saturating_sub(1);
        let limits = self.config.decode_limits;
        match result {
            Ok(answer) => {
                if let (true, BatchOwner::User(handle)) = (batch.parts.is_whole(), &batch.owner) {
                    let reply = ReplyBody::Wire { type_id: answer.type_id, body: answer.body, limits };
                    let handle = *handle;
                    self.batches.active.remove(&id);
                    return sink.response(handle, Ok(Reply(reply)));
                }
                if let Err(error) = batch.parts.answer(part, answer.type_id, answer.body, limits) {
                    return self.fail_batch(id, &error, now, sink);
                }
                if let Some(joined) = batch.parts.finish() {
                    self.finish_batch(id, joined, now, sink);
                }
            }
            Err(error) if is_too_large(&error) => {
                let kind = batch.parts.kind();
                match batch.parts.halve(part) {
                    Some(refused) => self.learned.limits.learn(kind, refused),
                    None => self.fail_batch(id, &error, now, sink),
                }
            }
            Err(error) => self.fail_batch(id, &error, now, sink),
        }
    }

    fn finish_batch(&mut self, id: u32, joined: Box<dyn Any + Send>, now: Instant, sink: &mut dyn Sink) {
        let Some(batch) = self.batches.active.remove(&id) else { return };
        match batch.owner {
            BatchOwner::User(handle) => sink.response(handle, Ok(Reply(ReplyBody::Joined(joined)))),
            BatchOwner::Limits(restored) => self.on_limits(restored, Ok(joined), now, sink),
            BatchOwner::Paths { subscription, server_id, handles } => {
                self.on_paths_found(subscription, server_id, &handles, Ok(joined), sink);
            }
            BatchOwner::Items { subscription, server_id, handles } => {
                self.on_items_created(subscription, server_id, &handles, Ok(joined), sink);
            }
            BatchOwner::Deleted(_) | BatchOwner::Modes { .. } => {}
        }
    }

    /// Fails a split request.
    pub(crate) fn fail_batch(&mut self, id: u32, error: &ClientError, now: Instant, sink: &mut dyn Sink) {
        let Some(batch) = self.batches.active.remove(&id) else { return };
        match batch.owner {
            BatchOwner::User(handle) => sink.response(handle, Err(error.clone())),
            BatchOwner::Limits(restored) => self.on_limits(restored, Err(error.clone()), now, sink),
            BatchOwner::Paths { subscription, server_id, handles } => {
                self.on_paths_found(subscription, server_id, &handles, Err(error.clone()), sink);
            }
            BatchOwner::Items { subscription, server_id, handles } => {
                self.on_items_created(subscription, server_id, &handles, Err(error.clone()), sink);
            }
            BatchOwner::Deleted(_) | BatchOwner::Modes { .. } => {}
        }
    }

    /// Fails the application's split requests when the connection is lost. The client's own are started again after the
    /// reconnect.
    pub(crate) fn drop_batches(&mut self, error: &ClientError, sink: &mut dyn Sink) {
        for (_, batch) in core::mem::take(&mut self.batches.active) {
            match batch.owner {
                BatchOwner::User(handle) => sink.response(handle, Err(error.clone())),
                BatchOwner::Deleted(handle) => {
                    if let Some(subscription) = self.subscription(handle) {
                        subscription.audit = true;
                    }
                }
                BatchOwner::Modes { subscription, handles } => {
                    if let Some(subscription) = self.subscription(subscription) {
                        subscription.pending.modes.extend(handles);
                    }
                }
                BatchOwner::Limits(_) | BatchOwner::Paths { .. } | BatchOwner::Items { .. } => {}
            }
        }
    }
}
