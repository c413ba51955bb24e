//! The connections of a shard: channels and unsent data.
//!
//! - [`Connection`]: one connection; [`buffers`]: reusable send buffers; [`outbox`]: sending responses.

pub(crate) mod buffers;
pub(crate) mod outbox;

use crate::account::{Account, Category, Charge, Level};
use crate::eviction::Holder;
use crate::limits::{ALLOWANCE, cost};
use crate::session::SessionKey;
use crate::trace::Spans;
use buffers::Buffers;
use core::net::IpAddr;
use smallvec::SmallVec;
use std::sync::Arc;
use taktwerk_channel::Channel;
use taktwerk_crypto::SecurityPolicy;
use taktwerk_types::Instant;

/// Unencrypted data of an OpenSecureChannel request.
#[derive(Debug, Clone)]
pub(crate) struct Tried {
    pub(crate) policy: SecurityPolicy,
    /// SHA-1 of the client certificate, in hexadecimal digits.
    pub(crate) thumbprint: Box<str>,
    /// The client certificate; `None` without one, or if it is too long for an audit record.
    pub(crate) certificate: Option<Arc<[u8]>>,
}

/// A connection of a shard.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) channel: Channel,
    /// Bytes to be sent, starting at `sent`. Without data to send there is no buffer.
    pub(crate) out: Vec<u8>,
    sent: usize,
    /// Since when the socket has accepted no data.
    pub(crate) blocked_since: Option<Instant>,
    /// Whether it is in the shard's transmit queue.
    pub(crate) is_scheduled: bool,
    /// Closes once everything is sent.
    pub(crate) is_closing: bool,
    /// Waits to be moved to another shard.
    pub(crate) is_moving: bool,
    /// When the shard checks the connection's deadlines next.
    pub(crate) timer: Instant,
    /// Its sessions on this shard; nearly always one.
    pub(crate) sessions: SmallVec<[SessionKey; 1]>,
    /// Longest response body that the client's sessions requested and the server's limit allows, in bytes.
    pub(crate) session_len_max: usize,
    /// Its holder in the eviction groups.
    pub(crate) holder: Holder,
    /// The holder under which it is registered as evictable.
    pub(crate) evictable: Option<Holder>,
    /// The peer's address; `None` for transports without addresses.
    pub(crate) address: Option<IpAddr>,
    /// When bytes last arrived.
    pub(crate) heard: Instant,
    /// When it last got a request other than Publish, or a Publish request that was answered at once.
    pub(crate) asked: Instant,
    /// Its account, below the account of its address.
    pub(crate) account: Arc<Account>,
    /// Charge for the connection itself.
    _base: Charge,
    /// Charge for incomplete messages, beyond the allowance.
    incomplete: Charge,
    /// Charge for messages that the client has not read, beyond the allowance.
    unsent: Charge,
    /// Charge for postponed requests and those queued behind them, beyond the allowance.
    backlog: Charge,
    /// Work units that it may spend before other connections get their turn; negative if it has spent more.
    pub(crate) allowance: i64,
    /// When the allowance was last refilled.
    pub(crate) refilled: Instant,
    /// Sent chunks that the work counters include.
    pub(crate) chunks_counted: u32,
    /// Unsent bytes that the work counters include.
    pub(crate) unsent_counted: usize,
    /// The trust list change count at which the peer's certificate was accepted.
    pub(crate) trusted_at: u64,
    /// The same for a handshake in progress.
    pub(crate) checked_at: u64,
    /// Data of that handshake for the audit.
    pub(crate) tried: Option<Box<Tried>>,
    /// Trace spans of its requests, if tracing is on.
    pub(crate) spans: Spans,
}

/// Sent bytes at the front of a non-empty buffer before the rest is moved to the front.
const COMPACT_LEN: usize = 256 << 10;

impl Connection {
    /// A connection, from an address if the transport has addresses; its account is below that of the address.
    /// `is_familiar` means an earlier login from that address.
    pub(crate) fn new(
        channel: Channel,
        address: Option<IpAddr>,
        address_account: &Arc<Account>,
        is_familiar: bool,
        now: Instant,
        response_len_max: usize,
    ) -> Self {
        let holder = Holder::new(address, is_familiar, None, u64::from(channel.id()));
        let account = address_account.child(Level::Connection, usize::MAX);
        Self {
            _base: account.charge_anyway(Category::Connections, cost::CONNECTION),
            asked: now,
            incomplete: account.nothing(Category::IncompleteMessages),
            unsent: account.nothing(Category::UnsentMessages),
            backlog: account.nothing(Category::Requests),
            account,
            channel,
            out: Vec::new(),
            sent: 0,
            blocked_since: None,
            is_scheduled: false,
            is_closing: false,
            is_moving: false,
            timer: Instant::FAR,
            sessions: SmallVec::new(),
            session_len_max: response_len_max,
            evictable: None,
            holder,
            address,
            heard: now,
            allowance: 0,
            refilled: Instant::ZERO,
            chunks_counted: 0,
            unsent_counted: 0,
            trusted_at: 0,
            checked_at: 0,
            tried: None,
            spans: Spans::default(),
        }
    }

    pub(crate) fn unsent(&self) -> &[u8] {
        self.out.get(self.sent..).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn unsent_len(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Updates the charge for unsent messages. Data sent in the same turn is free: only a message beyond the allowance
    /// is charged, with the whole buffer.
    #[inline]
    pub(crate) fn account_unsent(&mut self) {
        let len = self.unsent_len();
        let kept = if len > ALLOWANCE { self.out.capacity() - ALLOWANCE } else { 0 };
        if kept != self.unsent.amount() {
            self.unsent.resize_anyway(kept);
        }
    }

    /// The socket accepts no more data: shrinks the remaining buffer and charges it.
    pub(crate) fn account_blocked(&mut self) {
        if self.out.capacity() > self.unsent_len() + self.unsent_len() / 2 + ALLOWANCE {
            self.out.drain(..self.sent);
            self.sent = 0;
            self.out.shrink_to(ALLOWANCE);
        }
        self.unsent.resize_anyway(self.out.capacity().saturating_sub(ALLOWANCE));
    }

    /// Updates the charge for incomplete messages: `kept` bytes wait in the driver, in a vector with up to twice the
    /// capacity.
    #[inline]
    pub(crate) fn account_incomplete(&mut self, kept: usize) {
        let held = (2 * kept + self.channel.buffered_len()).saturating_sub(ALLOWANCE);
        if held != self.incomplete.amount() {
            self.incomplete.resize_anyway(held);
        }
    }

    /// Updates the charge for postponed requests: `len` bytes of requests and responses.
    pub(crate) fn account_backlog(&mut self, len: usize) {
        let kept = len.saturating_sub(ALLOWANCE);
        if kept != self.backlog.amount() {
            self.backlog.resize_anyway(kept);
        }
    }

    /// Bytes charged for a category beyond the allowance.
    pub(crate) fn charged(&self, category: Category) -> usize {
        match category {
            Category::IncompleteMessages => self.incomplete.amount(),
            Category::UnsentMessages => self.unsent.amount(),
            Category::Requests => self.backlog.amount(),
            _ => 0,
        }
    }

    /// Returns the charges for messages before the connection and its buffers are closed.
    pub(crate) fn release(&mut self) {
        self.incomplete.resize_anyway(0);
        self.unsent.resize_anyway(0);
        self.backlog.resize_anyway(0);
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked_since.is_some()
    }

    /// Whether the connection sends and receives no more messages.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_closing || self.channel.is_closed()
    }

    /// Records that `len` bytes were sent. Returns the buffer if it is empty.
    pub(crate) fn on_sent(&mut self, len: usize, buffers: &mut Buffers) {
        self.sent = (self.sent + len).min(self.out.len());
        if self.sent == self.out.len() {
            self.sent = 0;
            buffers.give(core::mem::take(&mut self.out));
        } else if self.sent >= COMPACT_LEN {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
    }

    #[inline]
    pub(crate) fn ensure_buffer(&mut self, buffers: &mut Buffers) {
        if self.out.capacity() == 0 {
            self.out = buffers.take();
        }
    }

    /// Largest response body, in bytes.
    pub(crate) fn response_len_max(&self) -> usize {
        self.session_len_max.min(self.channel.message_len_max())
    }
}

impl Connection {
    /// Refills the allowance for this turn. Overspending of the previous turn is deducted.
    #[inline]
    pub(crate) fn refill(&mut self, quantum: i64, now: Instant) {
        self.allowance = (self.allowance + quantum).min(quantum);
        self.refilled = now;
    }
}
