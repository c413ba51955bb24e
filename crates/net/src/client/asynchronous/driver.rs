//! The task that owns a client's core and socket.

use super::SubscriptionMessage;
use super::queue::Sender;
use super::waiting::Waiting;
use crate::client::resolve::first_address;
use crate::client::steps::{self, Steps};
use crate::clock::{self, monotonic};
use core::future::{Future, pending};
use core::pin::Pin;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_client::{
    Client, ClientError, ConnectionId, DataChanges, Effect, EndpointUrl, Event, EventNotifications, JobToken,
    OwnedReply, Reply, RequestHandle, SessionInfo, Sink, SubscriptionHandle,
};
use taktwerk_crypto::{CryptoError, JobOutput};
use taktwerk_types::Instant;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

/// A closure that the application runs on the core.
pub(super) type Command = Box<dyn FnOnce(&mut Driver) + Send>;

type Connecting = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;
type Answer = oneshot::Sender<Result<OwnedReply, ClientError>>;

/// Maximum bytes per read.
const READ_LEN: usize = 64 << 10;
/// How long sending the last bytes of a connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A client's task.
pub(super) struct Driver {
    core: Client,
    commands: mpsc::UnboundedReceiver<Command>,
    /// The last handle was dropped, or [`Driver::disconnect`] was called.
    is_ending: bool,
    line: Line,
    jobs: (mpsc::UnboundedSender<JobDone>, mpsc::UnboundedReceiver<JobDone>),
    outputs: Outputs,
    steps: Steps,
}

type JobDone = (JobToken, Result<JobOutput, CryptoError>);

/// The connection.
struct Line {
    id: ConnectionId,
    connecting: Option<Connecting>,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
    filled: usize,
}

/// Receivers of answers, notifications and events.
struct Outputs {
    waiting: BTreeMap<RequestHandle, Answer>,
    subscriptions: BTreeMap<SubscriptionHandle, Sender<SubscriptionMessage>>,
    /// Calls that wait for a change of a subscription or its items.
    calls: Waiting,
    /// Data of the current session.
    info: Arc<Mutex<Arc<SessionInfo>>>,
    events: Sender<Event>,
    disconnecting: Vec<oneshot::Sender<()>>,
    /// The client has ended for good.
    is_over: bool,
    /// Subscriptions whose receiver was dropped.
    orphans: Vec<SubscriptionHandle>,
}

/// What woke the task.
enum Turn {
    Command(Option<Command>),
    Connected(io::Result<TcpStream>),
    Readable,
    Writable,
    Job(JobDone),
    Due,
}

impl Driver {
    pub(super) fn new(
        core: Client,
        commands: mpsc::UnboundedReceiver<Command>,
        events: Sender<Event>,
        info: Arc<Mutex<Arc<SessionInfo>>>,
    ) -> Self {
        let line = Line {
            id: ConnectionId::default(),
            connecting: None,
            stream: None,
            buffer: Vec::new(),
            filled: 0,
        };
        let outputs = Outputs {
            waiting: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            calls: Waiting::default(),
            info,
            events,
            disconnecting: Vec::new(),
            is_over: false,
            orphans: Vec::new(),
        };
        Self {
            core,
            commands,
            is_ending: false,
            line,
            jobs: mpsc::unbounded_channel(),
            outputs,
            steps: Steps::default(),
        }
    }

    pub(super) fn core(&mut self) -> &mut Client {
        &mut self.core
    }

    pub(super) fn calls(&mut self) -> &mut Waiting {
        &mut self.outputs.calls
    }

    pub(super) fn wait_for(&mut self, handle: RequestHandle, answer: Answer) {
        self.outputs.waiting.insert(handle, answer);
    }

    pub(super) fn subscribe(&mut self, handle: SubscriptionHandle, sender: Sender<SubscriptionMessage>) {
        self.outputs.subscriptions.insert(handle, sender);
    }

    pub(super) fn unsubscribe(&mut self, handle: SubscriptionHandle) {
        self.outputs.subscriptions.remove(&handle);
    }

    pub(super) fn disconnect(&mut self, answer: Option<oneshot::Sender<()>>) {
        self.is_ending = true;
        self.outputs.disconnecting.extend(answer);
        self.core.disconnect(monotonic());
    }

    /// Runs until the client has ended.
    pub(super) async fn run(mut self) {
        loop {
            self.steps.look(&self.core);
            self.carry_out();
            self.drop_orphans();
            self.send();
            if self.outputs.is_over {
                return;
            }
            let turn = self.next().await;
            let now = monotonic();
            match turn {
                Turn::Command(Some(act)) => act(&mut self),
                Turn::Command(None) => self.disconnect(None),
                Turn::Connected(result) => self.connected(result, now),
                Turn::Readable => self.receive(now),
                // Sent at the start of the next round.
                Turn::Writable => {}
                Turn::Job((token, result)) => self.core.complete(token, result, now, &mut self.outputs),
                Turn::Due => self.core.handle_timeout(now, &mut self.outputs),
            }
        }
    }

    async fn next(&mut self) -> Turn {
        let deadline = self.core.poll_timeout().map(|(deadline, _)| deadline);
        let wants_write = !self.core.transmit().is_empty();
        let Line { connecting, stream, .. } = &mut self.line;
        tokio::select! {
            act = self.commands.recv(), if !self.is_ending => Turn::Command(act),
            result = poll_connecting(connecting) => Turn::Connected(result),
            () = readable(stream.as_ref()) => Turn::Readable,
            () = writable(stream.as_ref()), if wants_write => Turn::Writable,
            Some(done) = self.jobs.1.recv() => Turn::Job(done),
            () = sleep_until(deadline) => Turn::Due,
        }
    }

    /// Executes what the core requests.
    fn carry_out(&mut self) {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Connect { connection, url } => {
                    steps::connecting(&url);
                    self.core.set_utc_origin(clock::origin());
                    self.line.id = connection;
                    self.line.stream = None;
                    self.line.filled = 0;
                    self.line.connecting = Some(Box::pin(connect(url)));
                }
                Effect::Disconnect { connection, unsent } => {
                    if connection == self.line.id {
                        self.line.connecting = None;
                        if let Some(stream) = self.line.stream.take() {
                            tokio::spawn(finish(stream, unsent));
                        }
                    }
                }
                Effect::Crypto { token, job, provider } => {
                    let done = self.jobs.0.clone();
                    tokio::task::spawn_blocking(move || {
                        // The client may have ended in the meantime.
                        let _ = done.send((token, job.run(&*provider)));
                    });
                }
            }
        }
    }

    fn connected(&mut self, result: io::Result<TcpStream>, now: Instant) {
        self.line.connecting = None;
        match result {
            Ok(stream) => {
                self.line.stream = Some(stream);
                self.core.handle_connected(self.line.id, now, &mut self.outputs);
            }
            Err(error) => {
                self.core.handle_closed(self.line.id, &error.to_string(), now, &mut self.outputs);
            }
        }
    }

    fn receive(&mut self, now: Instant) {
        let Line { id, stream, buffer, filled, .. } = &mut self.line;
        let Some(open) = stream else { return };
        if buffer.len() - *filled < READ_LEN {
            buffer.resize(*filled + READ_LEN, 0);
        }
        let room = buffer.get_mut(*filled..).unwrap_or_default();
        let reason = match open.try_read(room) {
            Ok(0) => "the server closed the connection".to_owned(),
            Ok(count) => {
                *filled += count;
                let bytes = buffer.get_mut(..*filled).unwrap_or_default();
                let used = self.core.received(*id, bytes, now, &mut self.outputs);
                bytes.copy_within(used.., 0);
                *filled -= used;
                return;
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return;
            }
            Err(error) => error.to_string(),
        };
        *stream = None;
        self.core.handle_closed(*id, &reason, now, &mut self.outputs);
    }

    fn send(&mut self) {
        let Some(stream) = &self.line.stream else { return };
        let out = self.core.transmit();
        while !out.is_empty() {
            match stream.try_write(out) {
                Ok(count) if count == out.len() => out.clear(),
                Ok(count) => {
                    out.drain(..count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The read side reports the error.
                Err(_) => return out.clear(),
            }
        }
    }

    /// Deletes the subscriptions whose receivers were dropped.
    fn drop_orphans(&mut self) {
        for handle in core::mem::take(&mut self.outputs.orphans) {
            if self.outputs.subscriptions.remove(&handle).is_some() {
                // Fails only if the subscription no longer exists.
                let _ = self.core.delete_subscription(handle, monotonic());
            }
        }
    }
}

async fn connect(url: EndpointUrl) -> io::Result<TcpStream> {
    let EndpointUrl { host, port, .. } = url;
    let name = host.clone();
    let address = tokio::task::spawn_blocking(move || first_address(&name, port)).await;
    let address = address.map_err(io::Error::other)?;
    let in_words =
        |error: io::Error| io::Error::new(error.kind(), format!("cannot connect to {host}:{port}: {error}"));
    let stream = TcpStream::connect(address.map_err(in_words)?).await.map_err(in_words)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends the remaining bytes of a connection and closes it.
async fn finish(stream: TcpStream, unsent: Vec<u8>) {
    let mut rest = unsent.as_slice();
    let send = async {
        while !rest.is_empty() && stream.writable().await.is_ok() {
            match stream.try_write(rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    };
    // The result does not matter: the session ends either way.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, send).await;
}

async fn poll_connecting(connecting: &mut Option<Connecting>) -> io::Result<TcpStream> {
    match connecting {
        Some(connecting) => connecting.await,
        None => pending().await,
    }
}

async fn readable(stream: Option<&TcpStream>) {
    match stream {
        // A read returns the error, if there is one.
        Some(stream) => drop(stream.readable().await),
        None => pending().await,
    }
}

async fn writable(stream: Option<&TcpStream>) {
    match stream {
        Some(stream) => drop(stream.writable().await),
        None => pending().await,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep(deadline.since(monotonic())).await,
        None => pending().await,
    }
}

impl Outputs {
    fn tell(&mut self, subscription: SubscriptionHandle, message: SubscriptionMessage) {
        if let Some(sender) = self.subscriptions.get(&subscription)
            && !sender.send(message)
        {
            self.orphans.push(subscription);
        }
    }
}

impl Sink for Outputs {
    fn event(&mut self, event: Event) {
        match event {
            Event::Subscription(handle, event) => {
                if let Some(event) = self.calls.take(handle, event) {
                    self.tell(handle, SubscriptionMessage::State(event));
                }
            }
            event => {
                steps::happened(&event);
                if let Event::Connected(info) | Event::Restored(_, info) = &event {
                    let info = Arc::new(SessionInfo::clone(info));
                    *self.info.lock().unwrap_or_else(PoisonError::into_inner) = info;
                }
                if let Event::Disconnected(_) = event {
                    self.is_over = true;
                    self.disconnecting.drain(..).for_each(|answer| {
                        // The caller may have given up.
                        let _ = answer.send(());
                    });
                }
                // The application may have dropped the event receiver.
                self.events.send(event);
            }
        }
    }

    fn response(&mut self, handle: RequestHandle, result: Result<Reply<'_>, ClientError>) {
        if let Some(answer) = self.waiting.remove(&handle) {
            // The caller may have given up.
            let _ = answer.send(result.map(Reply::into_owned));
        }
    }

    fn data_changes(&mut self, subscription: SubscriptionHandle, changes: DataChanges<'_>) {
        let (sequence_number, publish_time) = (changes.sequence_number, changes.publish_time);
        let values = changes.filter_map(Result::ok).collect();
        self.tell(subscription, SubscriptionMessage::DataChanges { sequence_number, publish_time, values });
    }

    fn events(&mut self, subscription: SubscriptionHandle, events: EventNotifications<'_>) {
        let sequence_number = events.sequence_number;
        let events = events.filter_map(Result::ok).collect();
        self.tell(subscription, SubscriptionMessage::Events { sequence_number, events });
    }
}
