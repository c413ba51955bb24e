//! The shard: one state machine that owns connections, channels, sessions and subscriptions (design §3, §6).
//!
//! # Contract
//! The driver passes inputs and takes outputs; the shard does no I/O, reads no clock and never blocks.
//!
//! - In: [`Shard::opened`], [`Shard::received`], [`Shard::sent`], [`Shard::blocked`], [`Shard::writable`],
//!   [`Shard::closed`], [`Shard::timer`], [`Shard::done`], [`Shard::command`], [`Shard::import`],
//!   [`Shard::message`].
//! - Out, to be drained after every batch of inputs: [`Shard::poll_transmit`] with [`Shard::unsent`],
//!   [`Shard::poll_close`], [`Shard::poll_effect`], [`Shard::poll_move`] with [`Shard::export`],
//!   [`Shard::poll_message`], [`Shard::poll_audit`]. Then [`Shard::poll_timeout`] returns how long to sleep.
//!
//! The driver owns the receive buffers: it keeps bytes that [`Shard::received`] did not consume and passes them again
//! with the following ones. While [`Shard::wants_read`] is false, it neither reads nor passes anything. When it becomes
//! true again, it passes the bytes it kept.
//!
//! - `parts`: further state; `turn`: requests and deadlines; `turns`: requests processed in slices;
//! - `transfer`: messages between shards;
//! - `durable`: writing and restoring durable subscriptions;
//! - `authorize`, `trust`: sessions and connections after changes of permissions or trust lists; `audit`: audit records
//!   of channels.

mod audit;
mod authorize;
mod durable;
mod parts;
mod transfer;
mod trust;
mod turn;
mod turns;

pub use crate::effect::{Effect, Job, JobResult, SessionResult, Token};
pub use crate::ids::ConnectionId;
pub use crate::job_kind::{JobKind, UserProofKind};
pub use crate::service::shard_message::ShardMessage;

use parts::{Attention, ForDriver, Output, Synced};

use crate::account::{Account, Category, Charge};
use crate::audit::AuditLog;
use crate::connection::Connection;
use crate::connection::buffers::Buffers;
use crate::connection::outbox::{Outbox, Transmit, schedule};
use crate::durable::saved::Saved;
use crate::eviction::{Class, Holder, Kind};
use crate::limits::cost;
use crate::now::Now;
use crate::service::authorize::Authorizer;
use crate::service::deferred::Deferrals;
use crate::service::shard_message::Transfers;
use crate::service::turns::Turns;
use crate::session::{SessionKey, Sessions};
use crate::shared::ServerShared;
use crate::slab::Slab;
use crate::subscription::Engine;
use crate::work::Work;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::Arc;
use taktwerk_channel::Channel;
use taktwerk_crypto::{Entropy, MessageSecurityMode};
use taktwerk_types::{Instant, StatusCode};

/// After a client has sent only Publish requests for this long, they may wait a moment.
const WAITS_AFTER: Duration = Duration::from_secs(1);

/// A request from the application to a running shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// Ends all sessions and closes all connections.
    Shutdown,
}

/// A connection that moves to another shard.
#[derive(Debug)]
pub struct ConnectionState {
    channel: Channel,
    /// The account of its address, and the charges that move with it.
    account: Arc<Account>,
    _charge: Charge,
    address: Option<IpAddr>,
    holder: Holder,
    unsent: Vec<u8>,
    /// The request that caused the move and those after it: RequestIds and bodies.
    requests: Vec<(u32, Vec<u8>)>,
    /// The trust list change count at which the peer's certificate was accepted.
    trusted_at: u64,
}

/// One shard of a server.
pub struct Shard {
    index: usize,
    pub(crate) shared: Arc<ServerShared>,
    entropy: Box<dyn Entropy>,
    pub(crate) connections: Slab<Connection>,
    pub(crate) sessions: Sessions,
    pub(crate) authorizer: Authorizer,
    pub(crate) audit: AuditLog,
    engine: Engine,
    pub(crate) deferrals: Deferrals,
    transfers: Transfers,
    output: Output,
    driver: ForDriver,
    attention: Attention,
    synced: Synced,
    /// Postponed requests.
    pub(crate) turns: Turns,
    /// Work counters.
    work: Work,
    /// Durable subscriptions still to be restored.
    restoring: Vec<Saved>,
}

impl core::fmt::Debug for Shard {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shard")
            .field("index", &self.index)
            .field("connections", &self.connections.len())
            .field("sessions", &self.sessions.len())
            .field("subscriptions", &self.engine.subscription_count())
            .finish_non_exhaustive()
    }
}

impl Shard {
    /// Creates an empty shard. `index` is its number among the server's shards, from 0.
    #[must_use]
    pub fn new(index: usize, shared: Arc<ServerShared>, mut entropy: Box<dyn Entropy>) -> Self {
        let limits = &shared.config().limits;
        let first_id = first_subscription_id(index, shared.shards(), &mut *entropy);
        let store = Arc::clone(shared.space().slots());
        Self {
            index,
            engine: Engine::new(
                index,
                limits.subscriptions.clone(),
                store,
                Arc::clone(shared.locations()),
                Arc::clone(shared.space().events()),
                first_id,
            )
            .with_account(Arc::clone(shared.account()))
            .with_headroom(shared.config().headroom.clone())
            .with_durable(shared.config().durable.clone()),
            restoring: shared.take_saved(index),
            deferrals: Deferrals::new(limits),
            transfers: Transfers::default(),
            output: Output::new(limits.spare_buffers_max),
            driver: ForDriver::default(),
            attention: Attention::default(),
            synced: Synced::new(shared.trust_list_changes(), shared.certificate_changes()),
            sessions: Sessions::new(index, Arc::clone(shared.evictable())),
            authorizer: Authorizer::default(),
            audit: AuditLog::new(shared.config().audit.clone()),
            shared,
            entropy,
            connections: Slab::default(),
            turns: Turns::default(),
            work: Work::default(),
        }
    }

    /// The data shared by all shards.
    #[must_use]
    pub fn shared(&self) -> &Arc<ServerShared> {
        &self.shared
    }

    /// Number of connections.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// Number of sessions.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    // ---- connections

    /// A client has connected. At the limit, a connection without a session is evicted, or this one gets an Error
    /// message and is closed.
    pub fn opened(&mut self, now: Now) -> ConnectionId {
        self.open(None, now)
    }

    /// A client has connected from an address that [`ServerShared::admit`] has accepted.
    pub fn opened_from(&mut self, address: IpAddr, now: Now) -> ConnectionId {
        self.open(Some(address), now)
    }

    fn open(&mut self, address: Option<IpAddr>, now: Now) -> ConnectionId {
        self.restore(now);
        let live = Arc::clone(self.shared.live());
        let count = &live.counters.current_connection_count;
        let limits = &self.shared.config().limits;
        let (max, response_len_max) = (limits.connections_max, limits.response_len_max);
        let is_familiar = address.is_some_and(|address| self.shared.admission().is_familiar(address));
        let mut has_room = count.up_to(max);
        if !has_room {
            let class = if is_familiar { Class::Familiar } else { Class::Unsigned };
            let victim = self.shared.evictable().evict(Kind::Connection, class, self.index, max);
            has_room = victim.is_some();
            match victim {
                Some(victim) if victim.shard == self.index => {
                    self.evict_connection(ConnectionId(victim.into()), now);
                }
                Some(victim) => self.transfers.evict(victim, Kind::Connection),
                None => {}
            }
            count.up();
        }
        let id = live.next_channel();
        let channel = Channel::server(Arc::clone(self.shared.channel()), id, now.instant);
        let account = self.shared.address_account(address);
        let connection =
            Connection::new(channel, address, &account, is_familiar, now.instant, response_len_max);
        let id = ConnectionId(self.connections.insert(connection));
        if !has_room {
            self.fail(id, StatusCode::BAD_TCP_SERVER_TOO_BUSY, now);
        }
        self.watch(id);
        id
    }

    /// Whether a connection has no activated session and is not being closed.
    fn is_evictable(&self, id: ConnectionId) -> bool {
        let is_activated =
            |key: &SessionKey| self.sessions.get(*key).is_some_and(crate::session::Session::is_activated);
        self.connections.get(id.0).is_some_and(|connection| {
            !connection.is_closing && !connection.is_moving && !connection.sessions.iter().any(is_activated)
        })
    }

    /// Evicts a connection to free resources. A login in progress on it does not count as failed.
    fn evict_connection(&mut self, id: ConnectionId, now: Now) {
        self.shared.live().counters.evicted_connection_count.up();
        self.interrupt(id, now);
        self.fail(id, StatusCode::BAD_TCP_SERVER_TOO_BUSY, now);
    }

    /// Ends the waiting requests of a connection that is about to be evicted.
    fn interrupt(&mut self, id: ConnectionId, now: Now) {
        for deferred in self.deferrals.interrupt(id) {
            self.context(None, now).interrupted(deferred);
        }
    }

    /// A channel was opened or renewed, so its client is now known.
    fn identify(&mut self, id: ConnectionId) {
        let provider = Arc::clone(&self.shared.config().provider);
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let channel = &connection.channel;
        let certificate = channel.peer_certificate().filter(|_| channel.policy().is_secure());
        let application = certificate.map(|certificate| provider.thumbprint(certificate));
        if application.is_some() {
            connection.holder = Holder::new(connection.address, false, application, u64::from(channel.id()));
        }
    }

    /// The socket was closed or broke. The connection's sessions wait for their clients to reconnect.
    pub fn closed(&mut self, id: ConnectionId, now: Now) {
        self.detach(id, now);
        self.forget(id);
    }

    /// Removes a connection from the tables.
    fn forget(&mut self, id: ConnectionId) -> Option<Connection> {
        let mut connection = self.connections.remove(id.0)?;
        self.forget_evictable(id, &connection);
        if let Some(address) = connection.address {
            self.shared.admission().leave(address);
        }
        self.output.buffers.give(core::mem::take(&mut connection.out));
        self.attention.deadlines.remove(&(connection.timer, id));
        self.shared.live().counters.current_connection_count.down();
        Some(connection)
    }

    /// Detaches a connection's sessions; they stay alive.
    fn detach(&mut self, id: ConnectionId, now: Now) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let sessions = core::mem::take(&mut connection.sessions);
        self.deferrals.disconnect(id);
        self.turns.remove(id);
        for key in sessions {
            if self.sessions.get(key).is_some_and(|session| !session.is_activated()) {
                // A session that is not activated can be activated only over this channel (Part 4 §5.7.3.1).
                self.context(None, now).close_session(key, true, Some(id));
                continue;
            }
            let Some(session) = self.sessions.get_mut(key).filter(|session| session.connection == Some(id))
            else {
                continue;
            };
            session.connection = None;
            session.entry.set_connected(false);
            let mut outbox = outbox(
                &mut self.connections,
                &mut self.output.transmit,
                &mut self.output.buffers,
                now,
                &self.shared.config().limits,
            );
            self.engine.refuse_requests(key.into(), StatusCode::BAD_SECURE_CHANNEL_CLOSED, &mut outbox);
        }
        self.register_evictable(id);
    }

    /// Registers or unregisters a connection as evictable.
    fn register_evictable(&mut self, id: ConnectionId) {
        let is_evictable = self.is_evictable(id);
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let holder = is_evictable.then_some(connection.holder);
        if holder != connection.evictable {
            connection.evictable = holder;
            let member = id.0.member(self.index);
            match holder {
                Some(holder) => self.shared.evictable().add(Kind::Connection, member, holder),
                None => self.shared.evictable().remove(Kind::Connection, member),
            }
        }
    }

    /// Unregisters a connection that leaves the shard.
    fn forget_evictable(&self, id: ConnectionId, connection: &Connection) {
        if connection.evictable.is_some() {
            let member = id.0.member(self.index);
            self.shared.evictable().remove(Kind::Connection, member);
        }
    }

    /// Ends a connection with an Error message.
    fn fail(&mut self, id: ConnectionId, status: StatusCode, now: Now) {
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.ensure_buffer(&mut self.output.buffers);
            connection.channel.reject(status, "", &mut connection.out);
        }
        self.close(id, now);
    }

    /// Closes a connection once everything is sent.
    fn close(&mut self, id: ConnectionId, now: Now) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if connection.is_closing {
            return;
        }
        connection.is_closing = true;
        if connection.unsent_len() == 0 {
            self.driver.closes.push_back(id);
        } else {
            // A client that does not read its last bytes must not keep the connection open.
            let limit = self.shared.config().limits.blocked_timeout;
            let at = now.instant.plus_millis_f64(limit);
            schedule(id, connection, &mut self.output.transmit);
            rearm(&mut self.attention.deadlines, id, connection, at);
        }
        self.detach(id, now);
    }

    /// Closes the connections that hold most until the server's limits are kept.
    pub(super) fn relieve(&mut self, now: Now) {
        let shared = Arc::clone(&self.shared);
        for category in [Category::IncompleteMessages, Category::UnsentMessages, Category::Requests] {
            while shared.account().is_over(category) {
                // Charges of other shards must be freed by those shards.
                let Some(id) = self.largest(category) else { break };
                tracing::debug!("{}: closing the connection that holds most", category.name());
                self.close_over_limit(id, category, now);
            }
        }
    }

    /// Closes a connection that holds too much of a category.
    pub(super) fn close_over_limit(&mut self, id: ConnectionId, category: Category, now: Now) {
        self.interrupt(id, now);
        self.shared.live().counters.evicted_connection_count.up();
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        connection.release();
        if category == Category::IncompleteMessages {
            return self.fail(id, StatusCode::BAD_TCP_NOT_ENOUGH_RESOURCES, now);
        }
        // The client does not read, so it gets no message.
        connection.is_closing = true;
        self.detach(id, now);
        self.driver.closes.push_back(id);
    }

    /// The connection that holds most of a category; `None` if none holds any.
    fn largest(&self, category: Category) -> Option<ConnectionId> {
        self.connections
            .iter()
            .map(|(key, connection)| (connection.charged(category), ConnectionId(key)))
            .filter(|(charged, _)| *charged > 0)
            .max_by_key(|(charged, _)| *charged)
            .map(|(_, id)| id)
    }

    // ---- sending

    /// The next connection with data to send whose socket accepts it. Send [`Self::unsent`], then call [`Self::sent`].
    pub fn poll_transmit(&mut self) -> Option<ConnectionId> {
        while let Some(id) = self.output.transmit.queue.pop_front() {
            let Some(connection) = self.connections.get_mut(id.0) else { continue };
            connection.is_scheduled = false;
            if connection.unsent_len() > 0 && !connection.is_blocked() {
                count_made(connection, &mut self.work);
                return Some(id);
            }
        }
        None
    }

    /// The data to send on a connection.
    #[must_use]
    pub fn unsent(&self, id: ConnectionId) -> &[u8] {
        self.connections.get(id.0).map_or(&[], Connection::unsent)
    }

    /// `len` bytes of [`Self::unsent`] were sent. If data remain, the connection is returned again by
    /// [`Self::poll_transmit`], unless the driver calls [`Self::blocked`].
    pub fn sent(&mut self, id: ConnectionId, len: usize) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let budget = self.shared.config().limits.send_budget;
        connection.unsent_counted = connection.unsent_counted.saturating_sub(len);
        let was_over = connection.unsent_len() > budget;
        connection.on_sent(len, &mut self.output.buffers);
        connection.account_unsent();
        if connection.unsent_len() > 0 {
            schedule(id, connection, &mut self.output.transmit);
        } else if connection.is_closing {
            self.driver.closes.push_back(id);
        }
        if was_over && connection.unsent_len() <= budget {
            self.attention.resumed.push(id);
            self.turns.unblock(id);
        }
    }

    /// The socket accepts no more data for now. The connection is skipped until [`Self::writable`], or closed if that
    /// does not come in time.
    pub fn blocked(&mut self, id: ConnectionId, now: Now) {
        let limit = self.shared.config().limits.blocked_timeout;
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        connection.account_blocked();
        if connection.blocked_since.is_none() {
            connection.blocked_since = Some(now.instant);
            let at = now.instant.plus_millis_f64(limit);
            rearm(&mut self.attention.deadlines, id, connection, at);
        }
        let category = Category::UnsentMessages;
        if connection.charged(category) > 0 {
            if connection.account.parent().is_some_and(|address| address.is_over(category)) {
                self.close_over_limit(id, category, now);
            }
            self.relieve(now);
        }
    }

    /// The socket accepts data again.
    pub fn writable(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if connection.blocked_since.take().is_some() {
            schedule(id, connection, &mut self.output.transmit);
            self.attention.resumed.push(id);
        }
    }

    /// Whether to read from the connection. A client that does not read its responses is not read either.
    #[must_use]
    pub fn wants_read(&self, id: ConnectionId) -> bool {
        let budget = self.shared.config().limits.send_budget;
        self.connections.get(id.0).is_some_and(|connection| {
            !connection.is_ending()
                && !connection.is_moving
                && connection.unsent_len() <= budget
                && self.turns.accepts(id)
        })
    }

    /// Whether the client's next request may wait a moment. True if the client has, for a while, sent only Publish
    /// requests that waited for notifications, so its next one will probably wait too. A Publish request that is
    /// answered at once must not wait: its client has more notifications to fetch, one message at a time.
    #[must_use]
    #[inline]
    pub fn may_wait(&self, id: ConnectionId, now: Instant) -> bool {
        self.connections.get(id.0).is_some_and(|connection| {
            now.since(connection.asked) >= WAITS_AFTER && connection.blocked_since.is_none()
        })
    }

    /// The next connection to close. The shard has already removed it: do not call [`Self::closed`].
    pub fn poll_close(&mut self) -> Option<ConnectionId> {
        while let Some(id) = self.driver.closes.pop_front() {
            if self.forget(id).is_some() {
                return Some(id);
            }
        }
        None
    }

    // ---- slow work

    /// The next piece of work for the driver.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        let effect = self.deferrals.poll_effect();
        self.work.jobs += u64::from(effect.is_some());
        effect
    }

    /// Work counters since the last call. Drivers take them once per turn or less often.
    pub fn take_work(&mut self) -> Work {
        let mut work = core::mem::take(&mut self.work);
        work += self.engine.take_work();
        work
    }

    // ---- moving

    /// The next connection that must move to another shard, because its client activates a session there. Pass it with
    /// [`Self::export`] to that shard's [`Self::import`], together with the bytes received but not consumed.
    pub fn poll_move(&mut self) -> Option<(ConnectionId, usize)> {
        while let Some((id, shard)) = self.driver.moves.pop_front() {
            if self.connections.get(id.0).is_some() {
                return Some((id, shard));
            }
        }
        None
    }

    /// Removes a connection for moving it.
    pub fn export(&mut self, id: ConnectionId, now: Now) -> Option<ConnectionState> {
        let requests: Vec<(u32, Vec<u8>)> =
            self.turns.remove(id).into_iter().map(|request| (request.request_id, request.body)).collect();
        self.detach(id, now);
        let connection = self.connections.remove(id.0)?;
        self.forget_evictable(id, &connection);
        self.attention.deadlines.remove(&(connection.timer, id));
        let unsent = connection.unsent().to_vec();
        let account = connection.account.parent().unwrap_or_else(|| Arc::clone(self.shared.account()));
        let waiting: usize = requests.iter().map(|(_, body)| body.capacity()).sum();
        let bytes = unsent.capacity() + waiting;
        let _charge = account.charge_anyway(Category::Connections, cost::CONNECTION + bytes);
        let Connection { channel, address, holder, trusted_at, .. } = connection;
        Some(ConnectionState { channel, account, _charge, address, holder, unsent, requests, trusted_at })
    }

    /// Adds a moved connection and answers the request that caused the move.
    pub fn import(&mut self, state: ConnectionState, now: Now) -> ConnectionId {
        let ConnectionState { channel, account, _charge, address, holder, unsent, requests, trusted_at } =
            state;
        let response_len_max = self.shared.config().limits.response_len_max;
        let mut connection =
            Connection::new(channel, address, &account, false, now.instant, response_len_max);
        connection.holder = holder;
        connection.out = unsent;
        connection.trusted_at = trusted_at;
        let id = ConnectionId(self.connections.insert(connection));
        // Validations in progress on the old shard no longer reach the connection.
        self.check_certificate_if_due(id);
        for (request_id, body) in requests {
            self.request(id, request_id, &body, now);
        }
        self.update_connection(id, now);
        id
    }

    /// Executes a request of the application.
    pub fn command(&mut self, command: Command, now: Now) {
        match command {
            Command::Shutdown => {
                self.shared.change_state(taktwerk_schema::ServerState::SHUTDOWN, now.utc);
                self.publish_events(now);
                self.engine.end_durable(now);
                let sessions: Vec<SessionKey> = self.sessions.iter().map(|(key, _)| key).collect();
                for key in sessions {
                    self.context(None, now).close_session(key, true, None);
                }
                self.apply_attached(now);
                let all: Vec<ConnectionId> =
                    self.connections.iter().map(|(key, _)| ConnectionId(key)).collect();
                for id in all {
                    self.fail(id, StatusCode::BAD_SHUTDOWN, now);
                }
                self.write_durable(now);
            }
        }
    }
}

impl Shard {
    /// Sends the queued events, so that clients learn why their sessions end.
    fn publish_events(&mut self, now: Now) {
        let limits = &self.shared.config().limits;
        let mut outbox =
            outbox(&mut self.connections, &mut self.output.transmit, &mut self.output.buffers, now, limits);
        self.engine.publish_events(self.shared.space(), now, &mut outbox);
    }
}

/// The first subscription id of a shard. Each shard counts in steps of the number of shards, so ids never collide. The
/// start is random: after a restart, clients use their old ids, which must not belong to new subscriptions of other
/// clients.
fn first_subscription_id(index: usize, shards: usize, entropy: &mut dyn Entropy) -> u32 {
    let shards = shards.max(1) as u64;
    let rounds = entropy.below((1 << 30) / shards);
    u32::try_from(rounds * shards + index as u64 + 1).unwrap_or(1)
}

/// Adds output created since the last call to the work counters.
#[inline]
fn count_made(connection: &mut Connection, work: &mut Work) {
    let unsent = connection.unsent_len();
    let len = unsent.saturating_sub(connection.unsent_counted);
    connection.unsent_counted = unsent;
    let sent = connection.channel.chunks_sent();
    let chunks = u64::from(sent.wrapping_sub(connection.chunks_counted));
    connection.chunks_counted = sent;
    work.bytes_sent += len as u64;
    work.chunks_sent += chunks;
    if connection.channel.mode() != MessageSecurityMode::None {
        work.signatures += chunks;
    }
}

fn outbox<'a>(
    connections: &'a mut Slab<Connection>,
    transmit: &'a mut Transmit,
    buffers: &'a mut Buffers,
    now: Now,
    limits: &crate::limits::Limits,
) -> Outbox<'a> {
    Outbox { connections, transmit, buffers, now, send_budget: limits.send_budget }
}

/// Makes sure that the shard checks a connection at `at` or earlier.
fn rearm(
    deadlines: &mut BTreeSet<(Instant, ConnectionId)>,
    id: ConnectionId,
    connection: &mut Connection,
    at: Instant,
) {
    if at < connection.timer {
        deadlines.remove(&(connection.timer, id));
        connection.timer = at;
        deadlines.insert((at, id));
    }
}
