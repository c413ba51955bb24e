//! One connection: its channel and what is still to be sent.

use super::buffers::Buffers;
use crate::audit::note::Tried;
use crate::budget::Budgets;
use crate::eviction::Holder;
use crate::limits::ALLOWANCE;
use crate::session::SessionKey;
use core::net::IpAddr;
use smallvec::SmallVec;
use taktwerk_channel::Channel;
use taktwerk_types::Instant;

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
    /// Taken from the budget of incomplete messages.
    pub(crate) held: usize,
    /// Taken from the budget of unsent bytes.
    pub(crate) unsent_taken: usize,
    /// The change of the trust lists as of which the peer's certificate was accepted.
    pub(crate) trusted_at: u64,
    /// The same of a handshake under way.
    pub(crate) checked_at: u64,
    /// What that handshake said of itself, for the audit.
    pub(crate) tried: Option<Box<Tried>>,
}

/// Bytes sent at the front of a buffer that is never empty, before they are moved out of the way.
const COMPACT_LEN: usize = 256 << 10;

impl Connection {
    /// A connection from an address, if there are addresses. `is_familiar` says that somebody has logged on from there.
    pub(crate) fn new(
        channel: Channel,
        address: Option<IpAddr>,
        is_familiar: bool,
        now: Instant,
        response_len_max: usize,
    ) -> Self {
        let holder = Holder::new(address, is_familiar, None, u64::from(channel.id()));
        Self {
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
            held: 0,
            unsent_taken: 0,
            trusted_at: 0,
            checked_at: 0,
            tried: None,
        }
    }

    pub(crate) fn unsent(&self) -> &[u8] {
        self.out.get(self.sent..).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn unsent_len(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Brings the server's budget of unsent bytes up to date.
    #[inline]
    pub(crate) fn account_unsent(&mut self, budgets: &Budgets) {
        let taken = self.unsent_len().saturating_sub(ALLOWANCE);
        if taken != self.unsent_taken {
            budgets.unsent.change(self.unsent_taken, taken);
            self.unsent_taken = taken;
        }
    }

    /// Brings the server's budget of incomplete messages up to date: `kept` bytes wait with the driver.
    #[inline]
    pub(crate) fn account_held(&mut self, kept: usize, budgets: &Budgets) {
        let held = (kept + self.channel.buffered_len()).saturating_sub(ALLOWANCE);
        if held != self.held {
            budgets.reassembly.change(self.held, held);
            self.held = held;
        }
    }

    /// Gives everything back to the server's budgets.
    pub(crate) fn release(&mut self, budgets: &Budgets) {
        budgets.reassembly.give(core::mem::take(&mut self.held));
        budgets.unsent.give(core::mem::take(&mut self.unsent_taken));
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
