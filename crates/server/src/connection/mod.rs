//! The connections of a shard: their channels and what is still to be sent.
//!
//! - [`Connection`]: one connection; [`buffers`]: send buffers that are used again; [`outbox`]: sending responses.

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

/// What an OpenSecureChannel request says of itself in the part that is not encrypted.
#[derive(Debug, Clone)]
pub(crate) struct Tried {
    pub(crate) policy: SecurityPolicy,
    /// Of the certificate that was shown, in hexadecimal digits.
    pub(crate) thumbprint: Box<str>,
}

/// A connection of a shard.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) channel: Channel,
    /// Bytes to be sent, from `sent` on. Without anything to send there is no buffer.
    pub(crate) out: Vec<u8>,
    sent: usize,
    /// Since when the socket takes no more.
    pub(crate) blocked_since: Option<Instant>,
    /// Stands in the shard's transmit queue.
    pub(crate) is_scheduled: bool,
    /// Ends when everything is sent.
    pub(crate) is_closing: bool,
    /// Waits to be taken to another shard.
    pub(crate) is_moving: bool,
    /// When the shard looks at the connection's deadlines next.
    pub(crate) timer: Instant,
    /// The sessions that live here; nearly always one.
    pub(crate) sessions: SmallVec<[SessionKey; 1]>,
    /// Longest response that the client's sessions asked for and that the server's limit allows, in bytes of body.
    pub(crate) session_len_max: usize,
    /// Who holds it, for evictions.
    pub(crate) holder: Holder,
    /// As whose it is registered among what can be evicted.
    pub(crate) evictable: Option<Holder>,
    /// Where it comes from; `None` where there are no addresses.
    pub(crate) address: Option<IpAddr>,
    /// When bytes came last.
    pub(crate) heard: Instant,
    /// When it was sent a request last that was not a Publish request, or one that was answered at once.
    pub(crate) asked: Instant,
    /// What is kept for it; below the account of its address.
    pub(crate) account: Arc<Account>,
    /// For the connection itself.
    _base: Charge,
    /// For messages that have not arrived whole, beyond the allowance.
    incomplete: Charge,
    /// For messages that the client has not taken, beyond the allowance.
    unsent: Charge,
    /// For requests that were left and those behind them, beyond the allowance.
    backlog: Charge,
    /// Work units that it may spend before others have their turn; negative if it has spent more.
    pub(crate) allowance: i64,
    /// When it got them.
    pub(crate) refilled: Instant,
    /// Chunks sent that are counted.
    pub(crate) chunks_counted: u32,
    /// Bytes that wait to be sent and are in the work counters already.
    pub(crate) unsent_counted: usize,
    /// The change of the trust lists as of which the peer's certificate was accepted.
    pub(crate) trusted_at: u64,
    /// The same of a handshake under way.
    pub(crate) checked_at: u64,
    /// What that handshake said of itself, for the audit.
    pub(crate) tried: Option<Box<Tried>>,
    /// Of its requests, if somebody asks for them.
    pub(crate) spans: Spans,
}

/// Bytes sent at the front of a buffer that is never empty, before they are moved out of the way.
const COMPACT_LEN: usize = 256 << 10;

impl Connection {
    /// A connection from an address, if there are addresses, whose account is below that of the address. `is_familiar` says
    /// that somebody has logged on from there.
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

    /// Brings the charge for unsent messages up to date. What is sent in this turn costs nothing: only a message beyond the
    /// allowance is charged, with the whole buffer that it lies in.
    #[inline]
    pub(crate) fn account_unsent(&mut self) {
        let len = self.unsent_len();
        let kept = if len > ALLOWANCE { self.out.capacity() - ALLOWANCE } else { 0 };
        if kept != self.unsent.amount() {
            self.unsent.resize_anyway(kept);
        }
    }

    /// The socket takes no more: the buffer stays, so it is made as small as what is left, and charged.
    pub(crate) fn account_blocked(&mut self) {
        if self.out.capacity() > self.unsent_len() + self.unsent_len() / 2 + ALLOWANCE {
            self.out.drain(..self.sent);
            self.sent = 0;
            self.out.shrink_to(ALLOWANCE);
        }
        self.unsent.resize_anyway(self.out.capacity().saturating_sub(ALLOWANCE));
    }

    /// Brings the charge for incomplete messages up to date: `kept` bytes wait with the driver, in a vector that may be
    /// twice as long.
    #[inline]
    pub(crate) fn account_incomplete(&mut self, kept: usize) {
        let held = (2 * kept + self.channel.buffered_len()).saturating_sub(ALLOWANCE);
        if held != self.incomplete.amount() {
            self.incomplete.resize_anyway(held);
        }
    }

    /// Brings the charge up to date for requests that were left: `len` bytes of requests and responses.
    pub(crate) fn account_backlog(&mut self, len: usize) {
        let kept = len.saturating_sub(ALLOWANCE);
        if kept != self.backlog.amount() {
            self.backlog.resize_anyway(kept);
        }
    }

    /// Bytes of a category beyond the allowance.
    pub(crate) fn charged(&self, category: Category) -> usize {
        match category {
            Category::IncompleteMessages => self.incomplete.amount(),
            Category::UnsentMessages => self.unsent.amount(),
            Category::Requests => self.backlog.amount(),
            _ => 0,
        }
    }

    /// Gives back what is charged for messages: the connection is about to be closed, and its buffers with it.
    pub(crate) fn release(&mut self) {
        self.incomplete.resize_anyway(0);
        self.unsent.resize_anyway(0);
        self.backlog.resize_anyway(0);
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked_since.is_some()
    }

    /// Whether no more messages go in or out.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_closing || self.channel.is_closed()
    }

    /// Notes that `len` bytes went out; gives the buffer back when it is done with.
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

    /// Most bytes of a response's body.
    pub(crate) fn response_len_max(&self) -> usize {
        self.session_len_max.min(self.channel.message_len_max())
    }
}

impl Connection {
    /// Gives the connection what it may spend in this turn. Debts of the turn before are taken from it.
    #[inline]
    pub(crate) fn refill(&mut self, quantum: i64, now: Instant) {
        self.allowance = (self.allowance + quantum).min(quantum);
        self.refilled = now;
    }
}
