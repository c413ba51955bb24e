//! Memory accounting: what the server keeps because of its peers (design §13).
//!
//! Everything that a peer can make the server keep is charged in bytes of memory. The capacity of an allocation counts,
//! not its length; data behind reference counts counts too. A charge counts on its own account and on every level
//! above: subscription, session or connection, address, server. Each level has a limit, and the server also has one for
//! each [`Category`]. [`Limits::memory_max`](crate::Limits::memory_max) is the sum of the server's limits.
//!
//! # How to use it
//! - A stored value owns its charge. Wrap it in a [`Charged`], or put a [`Charge`] beside it in the same structure.
//!   Dropping the value returns the charge, on any thread.
//! - Types report their heap through [`HeapSize`]. The macro `heap_size!` lists every field, so that a new field does
//!   not compile until it is listed as well.
//! - Charge *before* storing: [`Account::charge`] fails with [`Exhausted`], which converts into a [`Fault`] with the
//!   right StatusCode. [`Account::charge_anyway`] is for bytes that exist already; the caller then checks
//!   [`Account::is_over`] and closes the largest holders.
//! - The account of a connection, session or subscription is a field of that structure. When its owner changes,
//!   [`Account::move_to`] moves all its charges.
//!
//! # Cost
//! Subscriptions and sessions draw from the level above in steps, so that a charge per value or message touches one
//! uncontended lock. Values without a payload are not charged individually: their queue entry is charged when the queue
//! is created.

pub(crate) mod addresses;
mod heap_size;

pub use heap_size::HeapSize;
pub(crate) use heap_size::{allocation, heap_size};

use crate::error::Fault;
use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taktwerk_types::StatusCode;

/// What a charge is for. Each category has a server-wide limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Category {
    /// Connections with their channels and the [`ALLOWANCE`](crate::limits::ALLOWANCE) of each direction.
    Connections,
    /// Incomplete chunks and messages, beyond the allowance.
    IncompleteMessages,
    /// Messages not yet read by clients, beyond the allowance.
    UnsentMessages,
    /// Sessions: their strings, nonces, certificates, users and continuation points.
    Sessions,
    /// Waiting requests: for notifications, for slow work, for another shard.
    Requests,
    /// Subscriptions and MonitoredItems with their filters, index ranges and links.
    MonitoredItems,
    /// Entries in the queues of MonitoredItems.
    QueuePlaces,
    /// Payloads of values in the queues of MonitoredItems, and the previous values used for comparison.
    QueuedValues,
    /// Messages kept for Republish.
    Retransmission,
    /// Nodes and references that clients have added, with their values.
    AddedNodes,
    /// Number of OpenSecureChannel exchanges being computed. Not in bytes.
    HandshakeCount,
    /// Number of subscriptions. Not in bytes.
    SubscriptionCount,
    /// Number of MonitoredItems. Not in bytes.
    MonitoredItemCount,
    /// Number of nodes that clients have added. Not in bytes.
    AddedNodeCount,
}

impl Category {
    /// All categories.
    pub const ALL: [Self; 14] = [
        Self::Connections,
        Self::IncompleteMessages,
        Self::UnsentMessages,
        Self::Sessions,
        Self::Requests,
        Self::MonitoredItems,
        Self::QueuePlaces,
        Self::QueuedValues,
        Self::Retransmission,
        Self::AddedNodes,
        Self::HandshakeCount,
        Self::SubscriptionCount,
        Self::MonitoredItemCount,
        Self::AddedNodeCount,
    ];

    /// Whether it is measured in bytes of memory.
    #[must_use]
    pub const fn is_bytes(self) -> bool {
        !matches!(
            self,
            Self::HandshakeCount | Self::SubscriptionCount | Self::MonitoredItemCount | Self::AddedNodeCount
        )
    }

    /// A name for messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connections => "connection bytes",
            Self::IncompleteMessages => "incomplete message bytes",
            Self::UnsentMessages => "unsent message bytes",
            Self::Sessions => "session bytes",
            Self::Requests => "waiting request bytes",
            Self::MonitoredItems => "monitored item bytes",
            Self::QueuePlaces => "queue entry bytes",
            Self::QueuedValues => "queued value bytes",
            Self::Retransmission => "retransmission bytes",
            Self::AddedNodes => "bytes of nodes that clients have added",
            Self::HandshakeCount => "handshakes",
            Self::SubscriptionCount => "subscriptions",
            Self::MonitoredItemCount => "monitored items",
            Self::AddedNodeCount => "nodes that clients have added",
        }
    }
}

const CATEGORIES: usize = Category::ALL.len();

/// The owner of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Level {
    /// The whole server.
    Server,
    /// All connections and sessions of one address.
    Address,
    /// A connection.
    Connection,
    /// A session.
    Session,
    /// A subscription.
    Subscription,
    /// The durable subscriptions of a user.
    User,
}

impl Level {
    /// How many bytes an account draws from the level above beyond its current need. Connections and addresses draw
    /// exactly what they need.
    const fn step(self) -> usize {
        match self {
            Self::Server | Self::Address | Self::Connection | Self::User => 0,
            Self::Session | Self::Subscription => 4 << 10,
        }
    }
}

/// A limit that a charge would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}: the limit of the {level:?} is reached", category.name())]
pub struct Exhausted {
    /// The level whose limit it is.
    pub level: Level,
    /// What the charge was for.
    pub category: Category,
}

impl Exhausted {
    /// The status for the client.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self.category {
            Category::Connections | Category::IncompleteMessages | Category::UnsentMessages => {
                StatusCode::BAD_TCP_NOT_ENOUGH_RESOURCES
            }
            Category::HandshakeCount => StatusCode::BAD_TCP_SERVER_TOO_BUSY,
            Category::AddedNodeCount => StatusCode::BAD_RESOURCE_UNAVAILABLE,
            Category::SubscriptionCount => StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS,
            Category::MonitoredItemCount => StatusCode::BAD_TOO_MANY_MONITORED_ITEMS,
            Category::Sessions
            | Category::Requests
            | Category::MonitoredItems
            | Category::QueuePlaces
            | Category::QueuedValues
            | Category::Retransmission
            | Category::AddedNodes => StatusCode::BAD_OUT_OF_MEMORY,
        }
    }
}

impl From<Exhausted> for Fault {
    fn from(exhausted: Exhausted) -> Self {
        Self::limit(exhausted.status(), exhausted.category.name())
    }
}

/// The limits of an account.
#[derive(Debug, Clone)]
pub(crate) struct Maxima {
    /// For all bytes together.
    pub(crate) bytes: usize,
    by_category: [usize; CATEGORIES],
}

impl Maxima {
    /// Only a limit for all bytes together.
    pub(crate) const fn bytes(bytes: usize) -> Self {
        Self { bytes, by_category: [usize::MAX; CATEGORIES] }
    }

    /// The same with a limit for one category.
    #[must_use]
    pub(crate) fn with(mut self, category: Category, max: usize) -> Self {
        if let Some(entry) = self.by_category.get_mut(category as usize) {
            *entry = max;
        }
        self
    }

    pub(crate) fn of(&self, category: Category) -> usize {
        self.by_category.get(category as usize).copied().unwrap_or(0)
    }
}

/// The charges of one owner and of everything below it.
pub struct Account {
    level: Level,
    maxima: Maxima,
    state: Mutex<State>,
}

struct State {
    /// Charges here and below.
    used: [usize; CATEGORIES],
    /// What the level above was charged for this account: at least `used`, sometimes one step more.
    taken: [usize; CATEGORIES],
    /// The sum of `taken` over the categories in bytes.
    bytes: usize,
    parent: Option<Arc<Account>>,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Account");
        out.field("level", &self.level);
        for category in Category::ALL {
            match self.used(category) {
                0 => {}
                used => {
                    out.field(category.name(), &used);
                }
            }
        }
        out.finish_non_exhaustive()
    }
}

impl Account {
    /// The account of a server.
    pub(crate) fn server(maxima: Maxima) -> Arc<Self> {
        Self::new(Level::Server, maxima, None)
    }

    /// Creates an account below this one.
    pub(crate) fn child(self: &Arc<Self>, level: Level, bytes_max: usize) -> Arc<Self> {
        Self::new(level, Maxima::bytes(bytes_max), Some(Arc::clone(self)))
    }

    fn new(level: Level, maxima: Maxima, parent: Option<Arc<Self>>) -> Arc<Self> {
        let state = State { used: [0; CATEGORIES], taken: [0; CATEGORIES], bytes: 0, parent };
        Arc::new(Self { level, maxima, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner's level.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// Charges of a category, here and below.
    #[must_use]
    pub fn used(&self, category: Category) -> usize {
        self.state().used.get(category as usize).copied().unwrap_or(0)
    }

    /// Charged bytes of all categories, here and below.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let state = self.state();
        let bytes = Category::ALL.into_iter().zip(state.used).filter(|(category, _)| category.is_bytes());
        bytes.map(|(_, used)| used).sum()
    }

    /// The limit of a category.
    #[must_use]
    pub fn max(&self, category: Category) -> usize {
        self.maxima.of(category)
    }

    /// Whether the charges of a category, or all bytes together, exceed their limit.
    #[must_use]
    pub fn is_over(&self, category: Category) -> bool {
        let state = self.state();
        state.used.get(category as usize).is_some_and(|used| *used > self.maxima.of(category))
            || (category.is_bytes() && state.bytes > self.maxima.bytes)
    }

    /// The account above.
    pub(crate) fn parent(&self) -> Option<Arc<Self>> {
        self.state().parent.clone()
    }

    /// Charges `amount` if it fits within the limits of all levels.
    ///
    /// # Errors
    /// The first limit that would be exceeded. Nothing is charged then.
    pub(crate) fn charge(self: &Arc<Self>, category: Category, amount: usize) -> Result<Charge, Exhausted> {
        self.add(category, amount, false)?;
        Ok(Charge { account: Arc::clone(self), amount, category })
    }

    /// Charges `amount` regardless of the limits, for data that exists already.
    pub(crate) fn charge_anyway(self: &Arc<Self>, category: Category, amount: usize) -> Charge {
        // A forced charge cannot fail.
        let _ = self.add(category, amount, true);
        Charge { account: Arc::clone(self), amount, category }
    }

    /// A charge of zero, to be resized later.
    pub(crate) fn nothing(self: &Arc<Self>, category: Category) -> Charge {
        Charge { account: Arc::clone(self), amount: 0, category }
    }

    /// Moves the account with all its charges below another one. Limits are not checked: the data exists already.
    pub(crate) fn move_to(&self, parent: &Arc<Self>) {
        let mut state = self.state();
        let Some(old) = state.parent.replace(Arc::clone(parent)) else { return };
        for (category, taken) in Category::ALL.into_iter().zip(state.taken) {
            let _ = parent.add(category, taken, true);
            old.sub(category, taken);
        }
    }

    /// Moves the account up one level, for a subscription whose session ends.
    pub(crate) fn move_up(&self) {
        if let Some(above) = self.parent().and_then(|parent| parent.parent()) {
            self.move_to(&above);
        }
    }

    fn add(&self, category: Category, amount: usize, force: bool) -> Result<(), Exhausted> {
        if amount == 0 {
            return Ok(());
        }
        let at = category as usize;
        let state = &mut *self.state();
        let (Some(used), Some(taken)) = (state.used.get_mut(at), state.taken.get_mut(at)) else {
            return Ok(());
        };
        let exhausted = Exhausted { level: self.level, category };
        let after = match used.checked_add(amount) {
            Some(after) => after,
            None if force => usize::MAX,
            None => return Err(exhausted),
        };
        if after <= *taken {
            *used = after;
            return Ok(());
        }
        let need = after - *taken;
        let step = if category.is_bytes() { self.level.step() } else { 0 };
        let mut take = |wanted: usize, force: bool| {
            let total = if category.is_bytes() { state.bytes.saturating_add(wanted) } else { 0 };
            let sum = taken.saturating_add(wanted);
            if !force && (sum > self.maxima.of(category) || total > self.maxima.bytes) {
                return Err(exhausted);
            }
            if let Some(parent) = &state.parent {
                parent.add(category, wanted, force)?;
            }
            *taken = sum;
            if category.is_bytes() {
                state.bytes = total;
            }
            Ok(())
        };
        if step == 0 || take(need.saturating_add(step), false).is_err() {
            take(need, force)?;
        }
        *used = after;
        Ok(())
    }

    fn sub(&self, category: Category, amount: usize) {
        if amount == 0 {
            return;
        }
        let at = category as usize;
        let state = &mut *self.state();
        let (Some(used), Some(taken)) = (state.used.get_mut(at), state.taken.get_mut(at)) else { return };
        debug_assert!(*used >= amount, "more was returned than charged");
        *used = used.saturating_sub(amount);
        let step = if category.is_bytes() { self.level.step() } else { 0 };
        let spare = taken.saturating_sub(*used);
        if spare <= 2 * step {
            return;
        }
        let back = spare - step;
        *taken -= back;
        if category.is_bytes() {
            state.bytes -= back;
        }
        if let Some(parent) = &state.parent {
            parent.sub(category, back);
        }
    }

    /// How much more of a category can be charged now.
    fn room(&self, category: Category) -> usize {
        let state = self.state();
        let at = category as usize;
        let (used, taken) = (state.used.get(at).copied(), state.taken.get(at).copied());
        let (used, taken) = (used.unwrap_or(0), taken.unwrap_or(0));
        let mut more = self.maxima.of(category).saturating_sub(taken);
        if category.is_bytes() {
            more = more.min(self.maxima.bytes.saturating_sub(state.bytes));
        }
        if let Some(parent) = &state.parent {
            more = more.min(parent.room(category));
        }
        more.saturating_add(taken.saturating_sub(used))
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        // Every charge holds its account, so only what was drawn ahead is left.
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(parent) = state.parent.take() {
            for (category, taken) in Category::ALL.into_iter().zip(state.taken) {
                parent.sub(category, taken);
            }
        }
    }
}

/// A share of an account. Dropping it returns the share.
#[must_use = "dropping a charge returns it"]
pub struct Charge {
    account: Arc<Account>,
    amount: usize,
    category: Category,
}

impl fmt::Debug for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.amount, self.category.name())
    }
}

impl Charge {
    /// The charged amount.
    #[must_use]
    #[inline]
    pub fn amount(&self) -> usize {
        self.amount
    }

    /// Changes the amount. A reduction always succeeds.
    ///
    /// # Errors
    /// The limit that would be exceeded; the amount is unchanged.
    #[inline]
    pub(crate) fn resize(&mut self, amount: usize) -> Result<(), Exhausted> {
        if amount > self.amount {
            self.account.add(self.category, amount - self.amount, false)?;
        } else {
            self.account.sub(self.category, self.amount - amount);
        }
        self.amount = amount;
        Ok(())
    }

    /// Changes the amount regardless of the limits.
    #[inline]
    pub(crate) fn resize_anyway(&mut self, amount: usize) {
        if amount > self.amount {
            let _ = self.account.add(self.category, amount - self.amount, true);
        } else {
            self.account.sub(self.category, self.amount - amount);
        }
        self.amount = amount;
    }

    /// Grows by as many of `count` units of `unit` as fit. Returns how many.
    pub(crate) fn grow_up_to(&mut self, count: usize, unit: usize) -> usize {
        if self.resize(self.amount.saturating_add(count.saturating_mul(unit))).is_ok() {
            return count;
        }
        let fits = (self.account.room(self.category) / unit.max(1)).min(count);
        match self.resize(self.amount + fits * unit) {
            Ok(()) => fits,
            // Another shard took the rest in the meantime.
            Err(_) => 0,
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.sub(self.category, self.amount);
    }
}

/// A value with the charge for it: its own size and all heap that it owns.
///
/// The value changes only through [`Self::replace`] and [`Self::change`], which adjust the charge.
#[derive(Debug)]
pub(crate) struct Charged<T> {
    // Drop order: the value goes before its charge is returned.
    value: T,
    charge: Charge,
}

impl<T: HeapSize> Charged<T> {
    /// Charges a value and stores it.
    ///
    /// # Errors
    /// The limit that would be exceeded; the value is dropped.
    pub(crate) fn new(account: &Arc<Account>, category: Category, value: T) -> Result<Self, Exhausted> {
        let charge = account.charge(category, value.size())?;
        Ok(Self { value, charge })
    }

    /// Stores a value regardless of the limits.
    pub(crate) fn anyway(account: &Arc<Account>, category: Category, value: T) -> Self {
        let charge = account.charge_anyway(category, value.size());
        Self { value, charge }
    }

    /// Replaces the value.
    ///
    /// # Errors
    /// The limit that would be exceeded; the old value stays.
    pub(crate) fn replace(&mut self, value: T) -> Result<(), Exhausted> {
        self.charge.resize(value.size())?;
        self.value = value;
        Ok(())
    }

    /// Changes the value and adjusts the charge. The size of the change must not depend on the size of a request.
    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.value);
        self.charge.resize_anyway(self.value.size());
        result
    }
}

impl<T> core::ops::Deref for Charged<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

#[cfg(test)]
mod tests;
