//! The account: what the server keeps because peers asked for it (design §13).
//!
//! Everything that a peer can make the server keep is charged in bytes of memory: the capacity of what is allocated,
//! not its length, and what stands behind reference counts too. A charge counts at every level above the account that
//! it is taken from: subscription, session or connection, address, server. Each level has a limit, and the server has
//! one for each [`Category`]. The sum of the server's limits is in [`Limits::memory_max`](crate::Limits::memory_max).
//!
//! # How to use it
//! - A value that is kept owns its charge. Wrap it in a [`Charged`], or put a [`Charge`] beside it into the same
//!   structure. Dropping the value gives the charge back, on whichever thread.
//! - Types say how much heap they own through [`HeapSize`]; the macro `heap_size!` names every field, so that a new
//!   field does not compile until somebody has decided about it.
//! - Take the charge *before* anything is stored: [`Account::charge`] fails with [`Exhausted`], which converts into a
//!   [`Fault`] with the right StatusCode. [`Account::charge_anyway`] is for bytes that are there already; the caller
//!   then looks at [`Account::is_over`] and closes what holds most.
//! - The account of a connection, session or subscription stands in the structure of that name. When one of them
//!   changes hands, [`Account::move_to`] takes all its charges along.
//!
//! # Cost
//! Subscriptions and sessions take from the level above in steps, so that a charge that comes and goes with every value
//! or message touches one uncontended lock. Values without a payload are not charged one by one: their place in the
//! queue is charged when the queue is made.

pub(crate) mod addresses;
mod heap_size;

pub use heap_size::HeapSize;
pub(crate) use heap_size::{allocation, heap_size};

use crate::error::Fault;
use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taktwerk_types::StatusCode;

/// What something is kept for. Each category has a limit of its own for the whole server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Category {
    /// Connections with their channels and the [`ALLOWANCE`](crate::limits::ALLOWANCE) of each direction.
    Connections,
    /// Chunks and messages that have not arrived whole, beyond the allowance.
    IncompleteMessages,
    /// Messages that clients have not taken yet, beyond the allowance.
    UnsentMessages,
    /// Sessions: their strings, nonces, certificates, users and continuation points.
    Sessions,
    /// Requests that wait: for notifications, for slow work, for another shard.
    Requests,
    /// Subscriptions and MonitoredItems with their filters, index ranges and links.
    MonitoredItems,
    /// Places in the queues of MonitoredItems.
    QueuePlaces,
    /// Payloads of values in the queues of MonitoredItems, and of the values that they compare with.
    QueuedValues,
    /// Messages kept for Republish.
    Retransmission,
    /// Nodes and references that clients have added, and their values.
    AddedNodes,
    /// How many OpenSecureChannel exchanges are being computed. Counted, not in bytes.
    HandshakeCount,
    /// How many subscriptions there are. Counted, not in bytes.
    SubscriptionCount,
    /// How many MonitoredItems there are. Counted, not in bytes.
    MonitoredItemCount,
    /// How many nodes clients have added. Counted, not in bytes.
    AddedNodeCount,
}

impl Category {
    /// All of them.
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

    /// For people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connections => "connection bytes",
            Self::IncompleteMessages => "incomplete message bytes",
            Self::UnsentMessages => "unsent message bytes",
            Self::Sessions => "session bytes",
            Self::Requests => "waiting request bytes",
            Self::MonitoredItems => "monitored item bytes",
            Self::QueuePlaces => "queue place bytes",
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

/// Whom an account belongs to.
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
    /// How many bytes an account takes from the level above beyond what it needs. Connections and addresses take
    /// exactly what they need.
    const fn step(self) -> usize {
        match self {
            Self::Server | Self::Address | Self::Connection | Self::User => 0,
            Self::Session | Self::Subscription => 4 << 10,
        }
    }
}

/// A limit that a charge would pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}: the limit of the {level:?} is reached", category.name())]
pub struct Exhausted {
    /// Whose limit it is.
    pub level: Level,
    /// What was to be kept.
    pub category: Category,
}

impl Exhausted {
    /// What the client is told.
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
    /// Of all bytes together.
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

/// What one owner and everything below it keeps.
pub struct Account {
    level: Level,
    maxima: Maxima,
    state: Mutex<State>,
}

struct State {
    /// What is charged here and below.
    used: [usize; CATEGORIES],
    /// What the level above has been charged for it: no less than `used`, and more by a step at times.
    taken: [usize; CATEGORIES],
    /// The sum of `taken`, as far as it is bytes.
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

    /// An account below this one.
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

    /// Whom it belongs to.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// How much of a category is charged here and below.
    #[must_use]
    pub fn used(&self, category: Category) -> usize {
        self.state().used.get(category as usize).copied().unwrap_or(0)
    }

    /// How many bytes are charged here and below, of all categories.
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

    /// Whether more of a category is charged than there should be, or more than there should be at all.
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

    /// Charges `amount`, if it is within the limits of all levels.
    ///
    /// # Errors
    /// The first limit that it would pass. Nothing is charged then.
    pub(crate) fn charge(self: &Arc<Self>, category: Category, amount: usize) -> Result<Charge, Exhausted> {
        self.add(category, amount, false)?;
        Ok(Charge { account: Arc::clone(self), amount, category })
    }

    /// Charges `amount` whether it is within the limits or not: for what is there already.
    pub(crate) fn charge_anyway(self: &Arc<Self>, category: Category, amount: usize) -> Charge {
        // With force there is no error.
        let _ = self.add(category, amount, true);
        Charge { account: Arc::clone(self), amount, category }
    }

    /// A charge of nothing, to be resized later.
    pub(crate) fn nothing(self: &Arc<Self>, category: Category) -> Charge {
        Charge { account: Arc::clone(self), amount: 0, category }
    }

    /// Puts the account with everything charged to it below another one. Limits are not looked at: what is kept is kept
    /// already.
    pub(crate) fn move_to(&self, parent: &Arc<Self>) {
        let mut state = self.state();
        let Some(old) = state.parent.replace(Arc::clone(parent)) else { return };
        for (category, taken) in Category::ALL.into_iter().zip(state.taken) {
            let _ = parent.add(category, taken, true);
            old.sub(category, taken);
        }
    }

    /// Puts the account below the one above its owner: a subscription whose session ends.
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
        debug_assert!(*used >= amount, "more was given back than charged");
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

    /// How much more of a category could be charged at this moment.
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
        // Every charge holds its account, so what is left is only what was taken ahead.
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(parent) = state.parent.take() {
            for (category, taken) in Category::ALL.into_iter().zip(state.taken) {
                parent.sub(category, taken);
            }
        }
    }
}

/// A share of an account, which is given back when this is dropped.
#[must_use = "a charge that is dropped is given back"]
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
    /// How much it is.
    #[must_use]
    #[inline]
    pub fn amount(&self) -> usize {
        self.amount
    }

    /// Changes the amount. A smaller one always succeeds.
    ///
    /// # Errors
    /// The limit that it would pass; the amount stays as it was.
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

    /// Changes the amount whether it is within the limits or not.
    #[inline]
    pub(crate) fn resize_anyway(&mut self, amount: usize) {
        if amount > self.amount {
            let _ = self.account.add(self.category, amount - self.amount, true);
        } else {
            self.account.sub(self.category, self.amount - amount);
        }
        self.amount = amount;
    }

    /// Grows by as many of `count` units of `unit` as fit; returns how many.
    pub(crate) fn grow_up_to(&mut self, count: usize, unit: usize) -> usize {
        if self.resize(self.amount.saturating_add(count.saturating_mul(unit))).is_ok() {
            return count;
        }
        let fits = (self.account.room(self.category) / unit.max(1)).min(count);
        match self.resize(self.amount + fits * unit) {
            Ok(()) => fits,
            // Another shard was faster.
            Err(_) => 0,
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.sub(self.category, self.amount);
    }
}

/// A value together with the charge for it: its own size and all heap that it owns.
///
/// It can be read, and changed only through [`Self::replace`] and [`Self::change`], which charge anew.
#[derive(Debug)]
pub(crate) struct Charged<T> {
    // Dropped in this order: what is given back is gone.
    value: T,
    charge: Charge,
}

impl<T: HeapSize> Charged<T> {
    /// Charges a value and keeps it.
    ///
    /// # Errors
    /// The limit that it would pass; the value is dropped.
    pub(crate) fn new(account: &Arc<Account>, category: Category, value: T) -> Result<Self, Exhausted> {
        let charge = account.charge(category, value.size())?;
        Ok(Self { value, charge })
    }

    /// Keeps a value whether it is within the limits or not.
    pub(crate) fn anyway(account: &Arc<Account>, category: Category, value: T) -> Self {
        let charge = account.charge_anyway(category, value.size());
        Self { value, charge }
    }

    /// Keeps another value in its place.
    ///
    /// # Errors
    /// The limit that it would pass; the old value stays.
    pub(crate) fn replace(&mut self, value: T) -> Result<(), Exhausted> {
        self.charge.resize(value.size())?;
        self.value = value;
        Ok(())
    }

    /// Changes the value by something that does not depend on the size of a request, and charges it anew.
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
