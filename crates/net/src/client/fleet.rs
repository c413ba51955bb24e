//! Thousands of clients on the calling thread, for generating load.
//!
//! The caller controls time: it runs the fleet until the next request is due, sends the request, and runs the fleet
//! again. Answers and value changes are passed to a [`FleetSink`] directly from the receive buffer.

use super::resolve::Resolver;
use crate::clock::{self, monotonic};
use crate::entropy::OsEntropy;
use crate::poll::{Interest, Poller};
use crate::recv::{Read, read, read_behind};
use crate::socket::{Sent, SocketOptions, connect_result, send_some, start_connect};
use core::cmp::Reverse;
use core::time::Duration;
use rustix::fd::OwnedFd;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;
use taktwerk_client::{
    Client, ClientConfig, ClientError, ConnectionId, DataChanges, Effect, Event, EventNotifications, Reply,
    RequestHandle, Sink, SubscriptionHandle, Target,
};
use taktwerk_types::Instant;

/// Maximum reads per connection and turn, while each read fills the buffer.
const READS_MAX: usize = 8;

/// A client of a fleet, numbered from 0 in the order of [`Fleet::add`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u32);

/// Receives what arrives for a fleet. `now` is the time at which the bytes were received. The methods must not block.
pub trait FleetSink {
    /// The state of a client changed.
    fn event(&mut self, member: MemberId, event: Event, now: Instant);

    /// A request was answered or has failed.
    fn response(
        &mut self,
        member: MemberId,
        handle: RequestHandle,
        result: Result<Reply<'_>, ClientError>,
        now: Instant,
    );

    /// Values changed. Iterating decodes them; numbers need no heap.
    fn data_changes(
        &mut self,
        member: MemberId,
        subscription: SubscriptionHandle,
        changes: DataChanges<'_>,
        now: Instant,
    );

    /// Events happened.
    fn events(
        &mut self,
        member: MemberId,
        subscription: SubscriptionHandle,
        events: EventNotifications<'_>,
        now: Instant,
    ) {
        let _ = (member, subscription, events, now);
    }

    /// Called after everything received for a member was delivered, and before its responses are sent. Requests made
    /// through `client` here share one segment with the acknowledgements. Made later through [`Fleet::with`], they cost
    /// another system call, and the server another TCP acknowledgement. The default does nothing.
    fn react(&mut self, member: MemberId, client: &mut Client, now: Instant) {
        let _ = (member, client, now);
    }
}

/// Options of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FleetOptions {
    /// Maximum number of clients that connect at the same time; the others wait. Default 64.
    pub connecting_max: usize,
    /// How long the thread spins after activity before it sleeps. Default zero.
    pub busy_poll: Duration,
    /// Options of the sockets.
    pub socket: SocketOptions,
    /// Maximum bytes per read. Default 256 KiB.
    pub receive_buffer_len: usize,
}

impl Default for FleetOptions {
    fn default() -> Self {
        Self {
            connecting_max: 64,
            busy_poll: Duration::ZERO,
            socket: SocketOptions::default(),
            receive_buffer_len: 256 << 10,
        }
    }
}

/// Resources that the fleet itself has used since it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FleetStats {
    /// CPU time of the thread. The difference of two readings is the generator's cost of a measurement.
    pub cpu: Duration,
    /// The part of it, approximately, that busy polling ([`FleetOptions::busy_poll`]) spent without finding anything.
    pub in_vain: Duration,
    /// Bytes received.
    pub bytes_received: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Times the thread waited for the kernel.
    pub waits: u64,
    /// The longest delay with which [`Fleet::run_until`] returned.
    pub late_max: Duration,
    /// Sum of these delays over [`Self::runs`].
    pub late_sum: Duration,
    /// How often it returned.
    pub runs: u64,
}

/// Clients that share a thread, an epoll and a receive buffer.
#[derive(Debug)]
pub struct Fleet {
    members: Vec<Member>,
    config: Arc<ClientConfig>,
    options: FleetOptions,
    poller: Poller,
    resolver: Resolver,
    buffer: Vec<u8>,
    /// When to process which member; outdated entries are harmless.
    timers: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Members that wait to connect.
    waiting: VecDeque<(u32, Target)>,
    connecting: usize,
    stats: FleetStats,
    active: Instant,
}

#[derive(Debug)]
struct Member {
    core: Client,
    line: Line,
    /// The member's earliest entry in the fleet's timers.
    timer: Instant,
    /// Counts as connecting.
    is_connecting: bool,
}

/// A member's connection.
#[derive(Debug, Default)]
struct Line {
    fd: Option<OwnedFd>,
    connection: ConnectionId,
    /// Distinguishes events of this connection from those of the previous one.
    epoch: u32,
    is_open: bool,
    wants_write: bool,
    tail: Vec<u8>,
}

impl Fleet {
    /// A fleet without members. All members will share this configuration.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn new(config: Arc<ClientConfig>, options: FleetOptions) -> io::Result<Self> {
        let buffer = vec![0; options.receive_buffer_len.max(8 << 10)];
        Ok(Self {
            members: Vec::new(),
            config,
            options,
            poller: Poller::new()?,
            resolver: Resolver::default(),
            buffer,
            timers: BinaryHeap::new(),
            waiting: VecDeque::new(),
            connecting: 0,
            stats: FleetStats::default(),
            active: monotonic(),
        })
    }

    /// Adds a client. It connects as soon as [`FleetOptions::connecting_max`] allows. [`Event::Connected`] or
    /// [`Event::Disconnected`] follows.
    pub fn add(&mut self, target: Target) -> MemberId {
        let number = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        self.members.push(Member {
            core: Client::new(Arc::clone(&self.config), Box::new(OsEntropy)),
            line: Line::default(),
            timer: Instant::FAR,
            is_connecting: false,
        });
        self.waiting.push_back((number, target));
        MemberId(number)
    }

    /// The number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether the fleet has no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The number of members that are connecting or waiting to connect.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.waiting.len() + self.connecting
    }

    /// A member's core, read-only.
    #[must_use]
    pub fn get(&self, member: MemberId) -> Option<&Client> {
        self.members.get(member.0 as usize).map(|member| &member.core)
    }

    /// Runs a closure on a member and sends its output at once. `None` if there is no such member.
    pub fn with<T>(
        &mut self,
        member: MemberId,
        act: impl FnOnce(&mut Client, Instant) -> T,
        sink: &mut impl FleetSink,
    ) -> Option<T> {
        let now = monotonic();
        let result = act(&mut self.members.get_mut(member.0 as usize)?.core, now);
        self.flush(member.0, now, sink);
        Some(result)
    }

    /// Resources that the fleet itself has used.
    #[must_use]
    pub fn stats(&self) -> FleetStats {
        FleetStats { cpu: clock::thread_cpu(), ..self.stats }
    }

    /// Receives, connects and keeps sessions alive until `until`. Returns the time at which it returned.
    ///
    /// # Errors
    /// epoll failed.
    pub fn run_until(&mut self, until: Instant, sink: &mut impl FleetSink) -> io::Result<Instant> {
        loop {
            let now = monotonic();
            if now >= until {
                let late = now.since(until);
                self.stats.runs += 1;
                self.stats.late_sum += late;
                self.stats.late_max = self.stats.late_max.max(late);
                return Ok(now);
            }
            self.turn(now, until, sink)?;
        }
    }

    /// Like [`Self::run_until`], but also returns as soon as something has been delivered: for loops that react to
    /// answers.
    ///
    /// # Errors
    /// epoll failed.
    /// One of epoll itself.
    pub fn run_once(&mut self, until: Instant, sink: &mut impl FleetSink) -> io::Result<Instant> {
        self.turn(monotonic(), until, sink)?;
        Ok(monotonic())
    }

    fn turn(&mut self, now: Instant, until: Instant, sink: &mut impl FleetSink) -> io::Result<()> {
        self.start_waiting(now, sink);
        self.fire_timers(now, sink);
        let next = self.timers.peek().map_or(Instant::FAR, |Reverse((at, _))| *at);
        self.wait(until.min(next))?;
        for at in 0..self.poller.len() {
            let Some(event) = self.poller.get(at) else { break };
            let number = event.key as u32;
            let Some(member) = self.members.get_mut(number as usize) else { continue };
            if member.line.key(number) != event.key || member.line.fd.is_none() {
                continue;
            }
            if !member.line.is_open {
                self.finish_connect(number, sink);
                continue;
            }
            if event.write {
                self.flush(number, monotonic(), sink);
            }
            if event.read {
                self.read(number, sink);
            }
        }
        Ok(())
    }

    fn wait(&mut self, deadline: Instant) -> io::Result<()> {
        self.stats.waits += 1;
        if !self.options.busy_poll.is_zero() {
            let mut before = monotonic();
            loop {
                self.poller.wait(Some(Duration::ZERO))?;
                let now = monotonic();
                if self.poller.len() > 0 {
                    self.active = now;
                    return Ok(());
                }
                self.stats.in_vain += now.since(core::mem::replace(&mut before, now));
                if now >= deadline {
                    return Ok(());
                }
                if now.since(self.active) > self.options.busy_poll {
                    break;
                }
                core::hint::spin_loop();
            }
        }
        let timeout = (deadline != Instant::FAR).then(|| deadline.since(monotonic()));
        self.poller.wait(timeout)
    }

    // ---- connecting

    fn start_waiting(&mut self, now: Instant, sink: &mut impl FleetSink) {
        while self.connecting < self.options.connecting_max {
            let Some((number, target)) = self.waiting.pop_front() else { return };
            let Some(member) = self.members.get_mut(number as usize) else { continue };
            member.core.set_utc_origin(clock::origin());
            match member.core.connect(target, now) {
                Ok(()) => {
                    member.is_connecting = true;
                    self.connecting += 1;
                    self.flush(number, now, sink);
                }
                Err(error) => sink.event(MemberId(number), Event::Disconnected(Some(error)), now),
            }
        }
    }

    fn finish_connect(&mut self, number: u32, sink: &mut impl FleetSink) {
        let Some(member) = self.members.get_mut(number as usize) else { return };
        let Some(fd) = &member.line.fd else { return };
        let now = monotonic();
        let mut outputs = MemberSink { member: MemberId(number), now, sink, is_done: false };
        match connect_result(fd) {
            Ok(()) => {
                member.line.is_open = true;
                member.line.wants_write = false;
                if let Err(error) = self.poller.modify(fd, member.line.key(number), Interest::READ) {
                    tracing::error!(%error, "epoll refuses a change");
                }
                member.core.handle_connected(member.line.connection, now, &mut outputs);
            }
            Err(error) => {
                member.line.close();
                let reason = error.to_string();
                member.core.handle_closed(member.line.connection, &reason, now, &mut outputs);
            }
        }
        self.after(number, outputs.is_done, now, sink);
    }

    /// Executes what a member requests after an input.
    fn after(&mut self, number: u32, is_done: bool, now: Instant, sink: &mut impl FleetSink) {
        if is_done
            && let Some(member) = self.members.get_mut(number as usize)
            && core::mem::take(&mut member.is_connecting)
        {
            self.connecting -= 1;
        }
        self.flush(number, now, sink);
    }

    // ---- input

    fn read(&mut self, number: u32, sink: &mut impl FleetSink) {
        for _ in 0..READS_MAX {
            let Some(member) = self.members.get_mut(number as usize) else { return };
            let Some(fd) = &member.line.fd else { return };
            let connection = member.line.connection;
            let is_tail = !member.line.tail.is_empty();
            let outcome = if is_tail {
                read_behind(fd, &mut member.line.tail, usize::MAX)
            } else {
                read(fd, &mut self.buffer)
            };
            let now = monotonic();
            let mut outputs = MemberSink { member: MemberId(number), now, sink, is_done: false };
            match outcome {
                Read::Bytes { count, .. } => {
                    self.stats.bytes_received += count as u64;
                    if is_tail {
                        let used = member.core.received(connection, &mut member.line.tail, now, &mut outputs);
                        if used >= member.line.tail.len() {
                            member.line.tail = Vec::new();
                        } else {
                            member.line.tail.drain(..used);
                        }
                    } else if let Some(bytes) = self.buffer.get_mut(..count) {
                        let used = member.core.received(connection, bytes, now, &mut outputs);
                        member.line.tail.extend_from_slice(bytes.get(used..).unwrap_or_default());
                    }
                }
                Read::Empty => return,
                Read::End(error) => {
                    member.line.close();
                    let reason = error.map(|error| error.to_string());
                    let reason = reason.as_deref().unwrap_or("the server closed the connection");
                    member.core.handle_closed(connection, reason, now, &mut outputs);
                }
            }
            let is_done = outputs.is_done;
            sink.react(MemberId(number), &mut member.core, now);
            self.after(number, is_done, now, sink);
            if !matches!(outcome, Read::Bytes { filled: true, .. }) {
                return;
            }
        }
    }

    fn fire_timers(&mut self, now: Instant, sink: &mut impl FleetSink) {
        while let Some(Reverse((at, number))) = self.timers.peek().copied() {
            if at > now {
                return;
            }
            self.timers.pop();
            let Some(member) = self.members.get_mut(number as usize) else { continue };
            if at != member.timer {
                continue;
            }
            member.timer = Instant::FAR;
            let is_due = member.core.poll_timeout().is_some_and(|(deadline, _)| deadline <= now);
            let mut outputs = MemberSink { member: MemberId(number), now, sink, is_done: false };
            if is_due {
                member.core.handle_timeout(now, &mut outputs);
            }
            let is_done = outputs.is_done;
            self.after(number, is_done, now, sink);
        }
    }

    // ---- output

    /// Executes effects, sends, and registers the next deadline.
    fn flush(&mut self, number: u32, now: Instant, sink: &mut impl FleetSink) {
        loop {
            let Some(member) = self.members.get_mut(number as usize) else { return };
            let Some(effect) = member.core.poll_effect() else { break };
            let mut outputs = MemberSink { member: MemberId(number), now, sink, is_done: false };
            match effect {
                Effect::Connect { connection, url } => {
                    member.line.close();
                    member.line.connection = connection;
                    let begun = self
                        .resolver
                        .resolve(&url)
                        .and_then(|address| start_connect(&address, &self.options.socket))
                        .and_then(|fd| member.line.open(fd, number, &self.poller));
                    if let Err(error) = begun {
                        let reason = format!("{}:{}: {error}", url.host, url.port);
                        member.core.handle_closed(connection, &reason, now, &mut outputs);
                    }
                }
                Effect::Disconnect { connection, unsent } => {
                    if connection == member.line.connection {
                        if let Some(fd) = member.line.fd.take() {
                            // Bytes that do not fit into the kernel's buffer now are not worth waiting for.
                            let _ = send_some(&fd, &unsent);
                        }
                        member.line.close();
                    }
                }
                Effect::Crypto { token, job, provider } => {
                    let result = job.run(&*provider);
                    member.core.complete(token, result, monotonic(), &mut outputs);
                }
            }
            if outputs.is_done && core::mem::take(&mut member.is_connecting) {
                self.connecting -= 1;
            }
        }
        self.send(number, now, sink);
        self.arm(number);
    }

    fn send(&mut self, number: u32, now: Instant, sink: &mut impl FleetSink) {
        let Some(member) = self.members.get_mut(number as usize) else { return };
        let (core, line) = (&mut member.core, &mut member.line);
        let Some(fd) = line.fd.as_ref().filter(|_| line.is_open) else { return };
        let out = core.transmit();
        if out.is_empty() && !line.wants_write {
            return;
        }
        let count = match send_some(fd, out) {
            _ if out.is_empty() => 0,
            Sent::Bytes(count) => count,
            Sent::Blocked => 0,
            Sent::Gone(error) => {
                line.close();
                let mut outputs = MemberSink { member: MemberId(number), now, sink, is_done: false };
                core.handle_closed(line.connection, &error.to_string(), now, &mut outputs);
                let is_done = outputs.is_done;
                return self.after(number, is_done, now, sink);
            }
        };
        self.stats.bytes_sent += count as u64;
        if count == out.len() {
            out.clear();
        } else {
            out.drain(..count);
        }
        let write = !out.is_empty();
        if write != line.wants_write {
            line.wants_write = write;
            let interest = Interest { read: true, write };
            if let Err(error) = self.poller.modify(fd, line.key(number), interest) {
                tracing::error!(%error, "epoll refuses a change");
            }
        }
    }

    fn arm(&mut self, number: u32) {
        let Some(member) = self.members.get_mut(number as usize) else { return };
        if let Some((at, _)) = member.core.poll_timeout()
            && at < member.timer
        {
            member.timer = at;
            self.timers.push(Reverse((at, number)));
        }
    }
}

impl Line {
    fn key(&self, number: u32) -> u64 {
        u64::from(number) | u64::from(self.epoch) << 32
    }

    fn open(&mut self, fd: OwnedFd, number: u32, poller: &Poller) -> io::Result<()> {
        self.epoch = self.epoch.wrapping_add(1);
        // Writable means connected, or failed.
        poller.add(&fd, self.key(number), Interest { read: false, write: true })?;
        self.fd = Some(fd);
        Ok(())
    }

    fn close(&mut self) {
        self.fd = None;
        self.is_open = false;
        self.wants_write = false;
        self.tail = Vec::new();
    }
}

/// Adds the member and the time to the core's output, and notices when the member has connected or given up.
struct MemberSink<'a, S> {
    member: MemberId,
    now: Instant,
    sink: &'a mut S,
    is_done: bool,
}

impl<S: FleetSink> Sink for MemberSink<'_, S> {
    fn event(&mut self, event: Event) {
        self.is_done |= matches!(
            event,
            Event::Connected(_) | Event::Restored(..) | Event::Disconnected(_) | Event::ConnectFailed { .. }
        );
        self.sink.event(self.member, event, self.now);
    }

    #[inline]
    fn response(&mut self, handle: RequestHandle, result: Result<Reply<'_>, ClientError>) {
        self.sink.response(self.member, handle, result, self.now);
    }

    #[inline]
    fn data_changes(&mut self, subscription: SubscriptionHandle, changes: DataChanges<'_>) {
        self.sink.data_changes(self.member, subscription, changes, self.now);
    }

    fn events(&mut self, subscription: SubscriptionHandle, events: EventNotifications<'_>) {
        self.sink.events(self.member, subscription, events, self.now);
    }
}
