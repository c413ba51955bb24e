//! The event loop of one shard.
//!
//! A turn is: wait, read the clocks once, take messages, pass received bytes to the core, fire timers. After every
//! input all outputs of the core are executed. A request and its response cost three system calls: epoll_pwait2, recv,
//! send.

use super::accept::Acceptor;
use super::coalesced::Coalesced;
use super::connection::Connections;
use super::core::Core;
use super::effects::Effects;
use super::mailbox::{Mail, Mailbox};
use super::options::ServerOptions;
use super::turn_times::TurnTimes;
use crate::clock::{Clock, monotonic};
use crate::poll::{Interest, Poller, Ready};
use crate::recv::{Read, read, read_behind};
use crate::socket::{Sent, addresses, send_some};
use core::net::SocketAddr;
use core::time::Duration;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use taktwerk_server::Now;
use taktwerk_types::Instant;

/// Key of the waker.
const WAKER: u64 = u64::MAX;
/// Key of the coalesced instance.
const COALESCED: u64 = u64::MAX - 1;
/// Key of the first listener. Connections' keys stay below: their epochs would have to count to 2^32 first.
const LISTENERS: u64 = u64::MAX - 1024;
/// Bytes that a turn reads from all connections together, shared among those with input. Without this limit, clients
/// that flood the server would delay the others.
const TURN_LEN: usize = 512 << 10;
/// Minimum share of a connection: most requests fit.
const SHARE_MIN: usize = 8 << 10;

/// Bytes that a turn reads from each of `count` connections.
pub(super) fn share(count: usize) -> usize {
    TURN_LEN.checked_div(count).unwrap_or(TURN_LEN).max(SHARE_MIN)
}

/// The arguments of a shard's thread.
pub(super) struct ShardSetup<C: Core> {
    pub(super) core: C,
    /// Number of the shard.
    pub(super) number: usize,
    pub(super) options: Arc<ServerOptions>,
    /// Of all shards; this shard's is at `number`.
    pub(super) mailboxes: Arc<[Arc<Mailbox<C>>]>,
    /// Only the first shard listens.
    pub(super) acceptor: Option<Acceptor>,
    pub(super) effects: Effects<C>,
}

/// One shard and everything its loop needs.
pub(super) struct Loop<C: Core> {
    core: C,
    number: usize,
    options: Arc<ServerOptions>,
    poller: Poller,
    clock: Clock,
    mailboxes: Arc<[Arc<Mailbox<C>>]>,
    mailbox: Arc<Mailbox<C>>,
    acceptor: Option<Acceptor>,
    connections: Connections<C::Id>,
    coalesced: Coalesced,
    effects: Effects<C>,
    buffer: Vec<u8>,
    mail: Vec<Mail<C>>,
    /// Numbers of the connections whose buffered bytes wait until the core wants input.
    paused: Vec<usize>,
    /// Time of the last activity, for busy polling.
    active: Instant,
    stop_at: Option<Instant>,
}

impl<C: Core> Loop<C> {
    /// Creates a loop on the calling thread.
    pub(super) fn new(setup: ShardSetup<C>) -> io::Result<Self> {
        let ShardSetup { core, number, options, mailboxes, acceptor, effects } = setup;
        let mailbox = mailboxes.get(number).map(Arc::clone);
        let mailbox = mailbox.ok_or_else(|| io::Error::other("a shard without a mailbox"))?;
        let poller = Poller::new()?;
        poller.add_edge(mailbox.waker().fd(), WAKER)?;
        if let Some(acceptor) = &acceptor {
            acceptor.register(&poller, LISTENERS)?;
        }
        let coalesced = Coalesced::new(&poller, COALESCED)?;
        let buffer = vec![0; options.receive_buffer_len.max(8 << 10)];
        Ok(Self {
            core,
            number,
            options,
            poller,
            clock: Clock::new(),
            mailboxes,
            mailbox,
            acceptor,
            connections: Connections::new(),
            coalesced,
            effects,
            buffer,
            mail: Vec::new(),
            paused: Vec::new(),
            active: monotonic(),
            stop_at: None,
        })
    }

    /// Runs until it is told to stop. Fails only if epoll fails.
    pub(super) fn run(&mut self) -> io::Result<()> {
        let now = self.now();
        self.flush(now);
        loop {
            self.wait()?;
            let now = self.now();
            let begun = self.options.turn_times.is_some().then(|| TurnTimes::begin(now.instant));
            if self.mailbox.waker().awake() {
                self.take_mail(now);
                self.core.timer(now);
                self.flush(now);
            }
            let share = share(self.poller.len());
            for at in 0..self.poller.len() {
                let Some(event) = self.poller.get(at) else { break };
                match event.key {
                    WAKER => {}
                    COALESCED => self.coalesced.has_woken(now.instant),
                    LISTENERS.. => self.accept((event.key - LISTENERS) as usize, now),
                    _ => self.ready(event, share, now),
                }
            }
            let is_due = self.core.poll_timeout().is_some_and(|(deadline, _)| deadline <= now.instant);
            // Take waiting Publish requests before their subscriptions publish.
            if self.coalesced.deadline().is_some_and(|at| is_due || at <= now.instant) {
                self.take_coalesced(now)?;
            }
            if self.core.poll_timeout().is_some_and(|(deadline, _)| deadline <= now.instant) {
                self.core.timer(now);
                self.flush(now);
            }
            if !self.paused.is_empty() {
                self.resume_paused(now);
            }
            if let Some(acceptor) = &mut self.acceptor {
                acceptor.resume(&self.poller, LISTENERS, now.instant);
            }
            if let (Some(begun), Some(times)) = (begun, &self.options.turn_times) {
                times.end(begun);
            }
            if let Some(stop_at) = self.stop_at
                && ((self.connections.len() == 0 && !self.core.is_ending()) || stop_at <= now.instant)
            {
                self.close_all(now);
                return Ok(());
            }
        }
    }

    /// A connection can be read or written.
    fn ready(&mut self, event: Ready, share: usize, now: Now) {
        let Some(index) = self.connections.index_of(event.key) else { return };
        if event.write {
            self.write_ready(index, now);
        }
        if event.read {
            self.read_ready(index, event.broken, share, now);
        }
    }

    /// Reads the coalesced connections.
    fn take_coalesced(&mut self, now: Now) -> io::Result<()> {
        self.coalesced.look(&self.poller, now.instant)?;
        let share = share(self.coalesced.len());
        for at in 0..self.coalesced.len() {
            let Some(event) = self.coalesced.get(at) else { break };
            self.ready(event, share, now);
        }
        self.coalesced.looked(&self.poller)
    }

    /// Registers a connection with the epoll instance it now belongs to.
    fn register(&mut self, index: usize, now: Now) {
        // Busy polling and coalescing exclude each other.
        if !self.options.busy_poll.is_zero() {
            return;
        }
        let Some(key) = self.connections.key(index) else { return };
        let Some(connection) = self.connections.get_mut(index) else { return };
        let may_wait = self.core.may_wait(connection.id, now);
        if let Err(error) = self.coalesced.register(connection, key, may_wait, &self.poller) {
            tracing::error!(%error, "epoll refuses a change");
        }
    }

    fn now(&mut self) -> Now {
        let (instant, utc) = self.clock.read();
        Now { instant, utc }
    }

    // ---- waiting

    fn wait(&mut self) -> io::Result<()> {
        let deadline = [
            self.core.poll_timeout().map(|(deadline, _)| deadline),
            self.stop_at,
            self.acceptor.as_ref().and_then(Acceptor::deadline),
            self.coalesced.deadline(),
        ];
        let deadline = deadline.into_iter().flatten().min();
        if self.has_resumable() {
            return self.poller.wait(Some(Duration::ZERO));
        }
        if !self.options.busy_poll.is_zero() && self.spin(deadline)? {
            return Ok(());
        }
        // The turn may have taken a while: compute the timeout from the current time.
        let timeout = deadline.map(|deadline| deadline.since(monotonic()));
        if timeout.is_some_and(|timeout| timeout.is_zero()) || !self.mailbox.waker().sleep() {
            return self.poller.wait(Some(Duration::ZERO));
        }
        self.poller.wait(timeout)
    }

    /// Polls without sleeping as long as the last activity is recent. True if there is something to do.
    fn spin(&mut self, deadline: Option<Instant>) -> io::Result<bool> {
        loop {
            self.poller.wait(Some(Duration::ZERO))?;
            let now = monotonic();
            if self.poller.len() > 0 {
                self.active = now;
                return Ok(true);
            }
            if self.mailbox.waker().is_notified() || deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(true);
            }
            if now.since(self.active) > self.options.busy_poll {
                return Ok(false);
            }
            core::hint::spin_loop();
        }
    }

    // ---- input

    fn take_mail(&mut self, now: Now) {
        let mut mail = core::mem::take(&mut self.mail);
        self.mailbox.take(&mut mail);
        for message in mail.drain(..) {
            match message {
                Mail::Accepted(fd, peer) => self.open(fd, peer, now),
                Mail::Moved { fd, state, tail } => {
                    let id = self.core.import(state, now);
                    self.adopt(id, fd, tail, now);
                }
                Mail::Message(message) => self.core.message(message, now),
                Mail::Done(token, result) => self.core.done(token, result, now),
                Mail::Stop(at) => {
                    self.stop_at = Some(at);
                    if let Some(acceptor) = &mut self.acceptor {
                        acceptor.close();
                    }
                    self.core.shut_down(now);
                }
            }
            self.flush(now);
        }
        self.mail = mail;
    }

    fn accept(&mut self, listener: usize, now: Now) {
        let Some(mut acceptor) = self.acceptor.take() else { return };
        let mut own = Vec::new();
        acceptor.accept(
            listener,
            &self.poller,
            &self.options,
            &self.mailboxes,
            now.instant,
            |peer| self.core.admit(peer, now),
            |shard, fd, peer| match self.mailboxes.get(shard) {
                Some(mailbox) if shard != self.number => mailbox.post(Mail::Accepted(fd, peer)),
                _ => own.push((fd, peer)),
            },
        );
        self.acceptor = Some(acceptor);
        for (fd, peer) in own {
            self.open(fd, peer, now);
        }
    }

    fn open(&mut self, fd: OwnedFd, peer: SocketAddr, now: Now) {
        let id = self.core.opened(peer, now);
        self.adopt(id, fd, Vec::new(), now);
    }

    /// Adds a connection to the loop, with bytes that were received before.
    fn adopt(&mut self, id: C::Id, fd: OwnedFd, tail: Vec<u8>, now: Now) {
        let index = C::index(id);
        let has_tail = !tail.is_empty();
        let key = self.connections.insert(index, id, fd, tail);
        if let Some(capture) = &self.options.capture
            && let Some(connection) = self.connections.get_mut(index)
            && let Some((own, peer)) = addresses(&connection.fd)
        {
            connection.stream = Some(Box::new(capture.stream(peer, own)));
        }
        let added = match self.connections.get_mut(index) {
            Some(connection) => self.poller.add(&connection.fd, key, Interest::READ),
            None => return,
        };
        if let Err(error) = added {
            tracing::error!(%error, "epoll takes no more connections");
            self.drop_connection(index, None, now);
        } else if has_tail {
            self.feed_tail(index, now);
        }
        self.flush(now);
    }

    /// Reads at most `share` bytes, and a little more if a chunk is incomplete. Sockets are level-triggered, so the
    /// remaining bytes are reported again in the next turn, after the other connections had their share.
    fn read_ready(&mut self, index: usize, broken: bool, share: usize, now: Now) {
        if broken && self.connections.get_mut(index).is_some_and(|connection| !connection.interest().read) {
            // Nothing is read from it, so these events would repeat without end.
            return self.drop_connection(index, None, now);
        }
        let mut left = share;
        while left > 0 {
            let Some(connection) = self.connections.get_mut(index) else { return };
            if !connection.interest().read || connection.paused {
                // Buffered bytes come first. Otherwise a client that sends faster than it is answered would fill the
                // memory.
                return;
            }
            let outcome = if connection.tail.is_empty() {
                let len = self.buffer.len().min(left);
                let Some(room) = self.buffer.get_mut(..len) else { return };
                let outcome = read(&connection.fd, room);
                if let Read::Bytes { count, .. } = outcome {
                    let id = connection.id;
                    let Some(bytes) = self.buffer.get_mut(..count) else { return };
                    if let Some(stream) = &mut connection.stream {
                        stream.client_says(bytes);
                    }
                    let used = self.core.received(id, bytes, now);
                    if let Some(rest) = bytes.get(used..).filter(|rest| !rest.is_empty()) {
                        connection.tail.extend_from_slice(rest);
                    }
                    self.after_feed(index, now);
                }
                outcome
            } else {
                let known = connection.tail.len();
                let outcome = read_behind(&connection.fd, &mut connection.tail, share);
                if let (Some(stream), Some(new)) = (&mut connection.stream, connection.tail.get(known..)) {
                    stream.client_says(new);
                }
                if matches!(outcome, Read::Bytes { .. }) {
                    self.feed_tail(index, now);
                }
                outcome
            };
            match outcome {
                Read::Bytes { count, filled: true } => left = left.saturating_sub(count),
                Read::Bytes { filled: false, .. } | Read::Empty => return,
                Read::End(error) => return self.drop_connection(index, error, now),
            }
        }
    }

    /// Passes the buffered bytes to the core.
    fn feed_tail(&mut self, index: usize, now: Now) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        let used = self.core.received(connection.id, &mut connection.tail, now);
        if used >= connection.tail.len() {
            connection.tail = Vec::new();
        } else {
            connection.tail.drain(..used);
        }
        self.after_feed(index, now);
    }

    /// Executes the core's output after input, and stops reading if the core wants no more.
    fn after_feed(&mut self, index: usize, now: Now) {
        // Before sending: if the core stopped because of unsent output, it wants input again as soon as that is sent.
        // The buffered bytes would otherwise wait for further input from the client.
        self.note_pause(index);
        if let Some(connection) = self.connections.get_mut(index) {
            self.coalesced.heard(&mut connection.registration);
        }
        self.flush(now);
        self.register(index, now);
        self.update_interest(index);
    }

    /// Registers a connection as paused if the core wants no input.
    fn note_pause(&mut self, index: usize) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        if !connection.paused && !self.core.wants_read(connection.id) {
            connection.paused = true;
            self.paused.push(index);
        }
    }

    /// Whether buffered bytes are wanted again.
    fn has_resumable(&mut self) -> bool {
        let Self { paused, connections, core, .. } = self;
        paused.iter().any(|index| {
            connections
                .get_mut(*index)
                .is_some_and(|connection| connection.paused && core.wants_read(connection.id))
        })
    }

    /// Resumes reading where the core wants input again.
    fn resume_paused(&mut self, now: Now) {
        let paused = core::mem::take(&mut self.paused);
        for index in paused {
            let Some(connection) = self.connections.get_mut(index) else { continue };
            if !connection.paused {
                continue;
            }
            if self.core.wants_read(connection.id) {
                connection.paused = false;
                if connection.tail.is_empty() {
                    self.update_interest(index);
                } else {
                    self.feed_tail(index, now);
                }
            } else {
                self.paused.push(index);
            }
        }
    }

    fn update_interest(&mut self, index: usize) {
        self.note_pause(index);
        let Some(connection) = self.connections.get_mut(index) else { return };
        let read = self.core.wants_read(connection.id);
        let interest = connection.interest();
        if read != interest.read {
            self.set_interest(index, Interest { read, ..interest });
        }
    }

    // ---- output

    /// Executes all output of the core.
    #[inline]
    fn flush(&mut self, now: Now) {
        loop {
            while let Some(id) = self.core.poll_transmit() {
                self.send(C::index(id), now);
            }
            while let Some(effect) = self.core.poll_effect() {
                self.effects.run(effect);
            }
            while let Some(record) = self.core.poll_audit() {
                self.options.audit.record(&record);
            }
            while let Some((shard, message)) = self.core.poll_message() {
                if let Some(mailbox) = self.mailboxes.get(shard) {
                    mailbox.post(Mail::Message(message));
                }
            }
            while let Some((id, shard)) = self.core.poll_move() {
                self.hand_over(id, shard, now);
            }
            let Some(id) = self.core.poll_close() else { return };
            self.finish(C::index(id));
        }
    }

    fn send(&mut self, index: usize, now: Now) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        let id = connection.id;
        let unsent = self.core.unsent(id);
        let len = unsent.len();
        let count = match send_some(&connection.fd, unsent) {
            Sent::Bytes(count) => count,
            Sent::Blocked => 0,
            Sent::Gone(error) => return self.drop_connection(index, Some(error), now),
        };
        if let (Some(stream), Some(sent)) = (&mut connection.stream, unsent.get(..count)) {
            stream.server_says(sent);
        }
        if count > 0 {
            self.core.sent(id, count);
            self.coalesced.sent(&mut connection.registration);
        }
        let write = count < len;
        if write {
            self.core.blocked(id, now);
        }
        if write != connection.interest().write {
            let interest = Interest { write, ..connection.interest() };
            self.set_interest(index, interest);
            self.register(index, now);
        }
    }

    fn write_ready(&mut self, index: usize, now: Now) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        if connection.interest().write {
            self.core.writable(connection.id);
            self.flush(now);
            self.update_interest(index);
        }
    }

    fn set_interest(&mut self, index: usize, interest: Interest) {
        let key = self.connections.key(index);
        if let (Some(key), Some(connection)) = (key, self.connections.get_mut(index)) {
            let poller = self.coalesced.poller(&self.poller, connection.registration);
            connection.set_interest(interest, poller, key);
        }
    }

    // ---- ends

    /// The peer is gone, or sending to it fails.
    fn drop_connection(&mut self, index: usize, error: Option<Errno>, now: Now) {
        if let Some(mut connection) = self.connections.remove(index) {
            self.coalesced.heard(&mut connection.registration);
            match error {
                Some(error) => tracing::debug!(%error, "connection broken"),
                None => tracing::debug!("connection ended by the client"),
            }
            self.mailbox.remove_connection();
            self.core.closed(connection.id, now);
            self.flush(now);
        }
    }

    /// The core has ended the connection and its output was sent.
    fn finish(&mut self, index: usize) {
        if let Some(mut connection) = self.connections.remove(index) {
            self.coalesced.heard(&mut connection.registration);
            self.mailbox.remove_connection();
            tracing::debug!("connection ended by the server");
            connection.finish();
        }
    }

    fn hand_over(&mut self, id: C::Id, shard: usize, now: Now) {
        let index = C::index(id);
        let Some(mailbox) = self.mailboxes.get(shard) else { return };
        let Some(state) = self.core.export(id, now) else { return };
        let Some(mut connection) = self.connections.remove(index) else { return };
        self.coalesced.heard(&mut connection.registration);
        // Otherwise the old loop would get events of a descriptor that now belongs to the other loop.
        let _ = self.coalesced.poller(&self.poller, connection.registration).remove(&connection.fd);
        self.mailbox.remove_connection();
        mailbox.add_connection();
        mailbox.post(Mail::Moved { fd: connection.fd, state, tail: connection.tail });
    }

    fn close_all(&mut self, now: Now) {
        for index in self.connections.indexes() {
            self.drop_connection(index, None, now);
        }
    }
}
