//! One client on the calling thread. A request and its answer cost two system calls: send and recv.

use super::resolve::Resolver;
use super::steps::{self, Steps};
use crate::capture::{Capture, CaptureStream};
use crate::clock::{self, monotonic};
use crate::entropy::OsEntropy;
use crate::socket::{self, SocketOptions, addresses};
use core::time::Duration;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use taktwerk_client::{
    Client, ClientConfig, ClientError, ConnectionId, Delivery, Effect, Event, EventQueue, Reply,
    RequestHandle, SessionInfo, Sink, Splittable, SubscriptionHandle, Target, TypeQuestion, TypeReader,
};
use taktwerk_schema::service::Request;
use taktwerk_types::Instant;

/// Maximum wait of one receive before deadlines are checked. Only keep-alives, token renewals and timeouts depend on
/// it, and none of them needs better precision.
const RECEIVE_SLICE: Duration = Duration::from_millis(50);
const BUFFER_LEN: usize = 128 << 10;

/// A client that blocks the calling thread while it waits. The session is kept alive only during calls: call
/// [`BlockingClient::wait`] in between.
#[derive(Debug)]
pub struct BlockingClient {
    core: Client,
    line: Line,
    others: EventQueue,
}

/// The connection and its receive buffer.
#[derive(Debug)]
struct Line {
    fd: Option<OwnedFd>,
    connection: ConnectionId,
    buffer: Vec<u8>,
    filled: usize,
    resolver: Resolver,
    /// Spin instead of sleep.
    busy_poll: bool,
    /// Where connections are recorded, and the stream of this one.
    capture: Option<Arc<Capture>>,
    stream: Option<CaptureStream>,
    /// Why the connection ended; not yet reported to the core.
    ended: Option<(ConnectionId, String)>,
    connected: bool,
    jobs: VecDeque<(taktwerk_client::JobToken, taktwerk_crypto::Job, Arc<dyn taktwerk_crypto::Provider>)>,
}

impl BlockingClient {
    /// Connects. Returns when the session is active.
    ///
    /// # Errors
    /// The connection or the session could not be established.
    pub fn connect(config: Arc<ClientConfig>, target: Target) -> Result<(Self, SessionInfo), ClientError> {
        Self::connect_captured(config, target, None)
    }

    /// Like [`Self::connect`], and records the traffic of the connection.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_captured(
        config: Arc<ClientConfig>,
        target: Target,
        capture: Option<Arc<Capture>>,
    ) -> Result<(Self, SessionInfo), ClientError> {
        let mut core = Client::new(config, Box::new(OsEntropy));
        core.set_utc_origin(clock::origin());
        core.connect(target, monotonic())?;
        let line = Line {
            fd: None,
            connection: ConnectionId::default(),
            buffer: vec![0; BUFFER_LEN],
            filled: 0,
            resolver: Resolver::default(),
            busy_poll: false,
            capture,
            stream: None,
            ended: None,
            connected: false,
            jobs: VecDeque::new(),
        };
        let mut client = Self { core, line, others: EventQueue::default() };
        let mut steps = Steps::default();
        loop {
            steps.look(&client.core);
            let mut others = core::mem::take(&mut client.others);
            client.turn(Instant::FAR, &mut others);
            client.others = others;
            while let Some(delivery) = client.others.pop() {
                match delivery {
                    Delivery::Event(Event::Connected(info)) => {
                        steps::session(&info);
                        return Ok((client, *info));
                    }
                    Delivery::Event(Event::Disconnected(error)) => {
                        return Err(error.unwrap_or_else(|| ClientError::Connection("disconnected".into())));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Spins instead of sleeping while it waits for answers: lower latency, but one CPU at 100 %.
    #[must_use]
    pub fn busy_poll(mut self, spin: bool) -> Self {
        self.line.busy_poll = spin;
        self
    }

    /// The client core, for functions that have no method here. Requests made through it are sent with the next call.
    pub fn core(&mut self) -> &mut Client {
        &mut self.core
    }

    /// Sends a request and waits for the answer. The request can be used again.
    ///
    /// # Errors
    /// The request failed or was not answered in time.
    pub fn call<R: Request>(&mut self, request: &mut R) -> Result<R::Response, ClientError>
    where
        R::Response: 'static,
    {
        self.call_with(request, |reply| reply.decode())?
    }

    /// Sends a request and decodes the answer in the receive buffer: for loops that must not allocate.
    ///
    /// # Errors
    /// The request failed or was not answered in time.
    pub fn call_with<R: Request, T>(
        &mut self,
        request: &mut R,
        read: impl FnOnce(Reply<'_>) -> T,
    ) -> Result<T, ClientError> {
        let handle = self.core.request(request, None, monotonic())?;
        self.answer(handle, read)
    }

    /// Sends a list of operations, split into as many requests as the server's limits require, and waits for all
    /// results.
    ///
    /// # Errors
    /// A request failed or was not answered in time.
    pub fn operate<R: Splittable>(&mut self, request: R) -> Result<R::Response, ClientError> {
        let handle = self.core.operate(request, monotonic())?;
        self.answer(handle, |reply| reply.decode())?
    }

    /// Reads type definitions from the server until the reader has all it needs.
    ///
    /// # Errors
    /// A request failed. The next call continues where the reader stopped.
    pub fn learn(&mut self, reader: &mut TypeReader) -> Result<(), ClientError> {
        while let Some(question) = reader.question() {
            match question {
                TypeQuestion::Browse(request) => reader.browsed(self.operate(request))?,
                TypeQuestion::Read(request) => reader.read(self.operate(request))?,
            }
        }
        Ok(())
    }

    fn answer<T>(
        &mut self,
        handle: RequestHandle,
        read: impl FnOnce(Reply<'_>) -> T,
    ) -> Result<T, ClientError> {
        let others = core::mem::take(&mut self.others);
        let mut waiting = Waiting { handle, read: Some(read), result: None, others };
        let result = loop {
            if let Some(result) = waiting.result.take() {
                break result;
            }
            self.turn(Instant::FAR, &mut waiting);
        };
        self.others = waiting.others;
        result
    }

    /// Keeps the session alive and receives until `until`. Passes everything that arrives to `sink`.
    pub fn run_until(&mut self, until: Instant, sink: &mut dyn Sink) {
        while monotonic() < until {
            self.turn(until, sink);
        }
    }

    /// The next delivery that no call was waiting for: events and value changes. Waits until `until` at most.
    pub fn wait(&mut self, until: Instant) -> Option<Delivery> {
        loop {
            if let Some(delivery) = self.others.pop() {
                return Some(delivery);
            }
            if monotonic() >= until {
                return None;
            }
            let mut others = core::mem::take(&mut self.others);
            self.turn(until, &mut others);
            self.others = others;
        }
    }

    /// Closes session and connection.
    pub fn disconnect(mut self) {
        self.core.disconnect(monotonic());
        let mut sink = EventQueue::default();
        let ended = |delivery| matches!(delivery, Delivery::Event(Event::Disconnected(_)));
        while !core::mem::take(&mut sink.deliveries).into_iter().any(ended) {
            self.turn(Instant::FAR, &mut sink);
        }
    }

    /// Sends pending bytes, waits until bytes arrive or a deadline passes, and delivers what was received.
    fn turn(&mut self, until: Instant, sink: &mut dyn Sink) {
        self.line.carry_out(&mut self.core);
        let now = monotonic();
        if self.line.report_results(&mut self.core, now, sink) {
            return;
        }
        if self.core.poll_timeout().is_some_and(|(deadline, _)| deadline <= now) {
            self.core.handle_timeout(now, sink);
            return;
        }
        if self.line.fd.is_none() {
            // Between two connection attempts there is nothing to do but wait.
            let deadline = self.core.poll_timeout().map_or(until, |(deadline, _)| deadline.min(until));
            std::thread::sleep(deadline.since(now).min(RECEIVE_SLICE));
            return;
        }
        self.line.send(self.core.transmit());
        self.line.receive(&mut self.core, until, sink);
    }
}

impl Line {
    /// Executes what the core requests.
    fn carry_out(&mut self, core: &mut Client) {
        while let Some(effect) = core.poll_effect() {
            match effect {
                Effect::Connect { connection, url } => {
                    steps::connecting(&url);
                    self.fd = None;
                    (self.connection, self.filled) = (connection, 0);
                    core.set_utc_origin(clock::origin());
                    match self.resolver.resolve(&url).and_then(|address| open(&address)) {
                        Ok(fd) => {
                            let ends =
                                self.capture.as_ref().and_then(|capture| Some((capture, addresses(&fd)?)));
                            self.stream = ends.map(|(capture, (own, peer))| capture.stream(own, peer));
                            (self.fd, self.connected) = (Some(fd), true);
                        }
                        Err(error) => {
                            let reason = format!("{}:{}: {error}", url.host, url.port);
                            self.ended = Some((connection, reason));
                        }
                    }
                }
                Effect::Disconnect { connection, mut unsent } => {
                    if connection == self.connection {
                        self.send(&mut unsent);
                        self.fd = None;
                        self.ended = None;
                    }
                }
                Effect::Crypto { token, job, provider } => self.jobs.push_back((token, *job, provider)),
            }
        }
    }

    /// Reports the results of requested actions to the core. True if there was one.
    fn report_results(&mut self, core: &mut Client, now: Instant, sink: &mut dyn Sink) -> bool {
        if let Some((connection, reason)) = self.ended.take() {
            self.fd = None;
            core.handle_closed(connection, &reason, now, sink);
            return true;
        }
        if core::mem::take(&mut self.connected) {
            core.handle_connected(self.connection, now, sink);
            return true;
        }
        if let Some((token, job, provider)) = self.jobs.pop_front() {
            let result = job.run(&*provider);
            core.complete(token, result, monotonic(), sink);
            return true;
        }
        false
    }

    fn send(&mut self, bytes: &mut Vec<u8>) {
        let Some(fd) = &self.fd else { return };
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            match send(fd, rest, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    if let (Some(stream), Some(sent)) = (&mut self.stream, rest.get(..count)) {
                        stream.client_says(sent);
                    }
                    rest = rest.get(count..).unwrap_or_default();
                }
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.ended = Some((self.connection, error.to_string()));
                    break;
                }
            }
        }
        bytes.clear();
    }

    fn receive(&mut self, core: &mut Client, until: Instant, sink: &mut dyn Sink) {
        let Some(fd) = &self.fd else { return };
        if self.buffer.len() == self.filled {
            self.buffer.resize(self.filled * 2, 0);
        }
        let started = monotonic();
        loop {
            let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
            let flags = if self.busy_poll { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
            match recv(fd, &mut *room, flags) {
                Ok((0, _)) => {
                    self.ended = Some((self.connection, "the server closed the connection".to_owned()));
                }
                Ok((count, _)) => {
                    if let (Some(stream), Some(new)) = (&mut self.stream, room.get(..count)) {
                        stream.server_says(new);
                    }
                    self.filled += count;
                    let Some(bytes) = self.buffer.get_mut(..self.filled) else { return };
                    let used = core.received(self.connection, bytes, monotonic(), sink);
                    bytes.copy_within(used.., 0);
                    self.filled -= used;
                }
                Err(Errno::AGAIN) if self.busy_poll => {
                    let now = monotonic();
                    if now < until && now.since(started) < RECEIVE_SLICE {
                        core::hint::spin_loop();
                        continue;
                    }
                }
                // The receive timed out; deadlines are checked now.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => self.ended = Some((self.connection, error.to_string())),
            }
            return;
        }
    }
}

fn open(address: &core::net::SocketAddr) -> io::Result<OwnedFd> {
    let fd = socket::connect_blocking(address, &SocketOptions::default(), Duration::from_secs(10))?;
    sockopt::set_socket_timeout(&fd, sockopt::Timeout::Recv, Some(RECEIVE_SLICE))?;
    Ok(fd)
}

/// Waits for one answer and queues everything else.
struct Waiting<F, T> {
    handle: RequestHandle,
    read: Option<F>,
    result: Option<Result<T, ClientError>>,
    others: EventQueue,
}

impl<F: FnOnce(Reply<'_>) -> T, T> Sink for Waiting<F, T> {
    fn event(&mut self, event: Event) {
        self.others.event(event);
    }

    fn response(&mut self, handle: RequestHandle, result: Result<Reply<'_>, ClientError>) {
        match self.read.take() {
            Some(read) if handle == self.handle => self.result = Some(result.map(read)),
            read => {
                self.read = read;
                self.others.response(handle, result);
            }
        }
    }

    fn data_changes(&mut self, subscription: SubscriptionHandle, changes: taktwerk_client::DataChanges<'_>) {
        self.others.data_changes(subscription, changes);
    }

    fn events(&mut self, subscription: SubscriptionHandle, events: taktwerk_client::EventNotifications<'_>) {
        self.others.events(subscription, events);
    }
}
