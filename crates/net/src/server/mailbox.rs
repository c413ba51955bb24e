//! What other threads tell a shard's thread.

use super::core::Core;
use crate::wake::Waker;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicUsize, Ordering};
use rustix::fd::OwnedFd;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_server::{JobResult, Token};
use taktwerk_types::Instant;

/// One message.
pub(super) enum Mail<C: Core> {
    /// A connection that another shard's listener accepted.
    Accepted(OwnedFd, SocketAddr),
    /// A connection that another shard had.
    Moved {
        fd: OwnedFd,
        state: C::Moved,
        /// Bytes that were received and not used.
        tail: Vec<u8>,
    },
    /// What another shard has to say.
    Message(C::Message),
    /// An effect has ended.
    Done(Token, JobResult),
    /// End soon, and at this time in any case.
    Stop(Instant),
}

/// The way into a shard's thread.
pub(super) struct Mailbox<C: Core> {
    mail: Mutex<Vec<Mail<C>>>,
    waker: Waker,
    /// Connections that the shard has or is about to get, for balancing.
    connections: AtomicUsize,
}

impl<C: Core> Mailbox<C> {
    pub(super) fn new() -> io::Result<Arc<Self>> {
        let (mail, waker, connections) = (Mutex::default(), Waker::new()?, AtomicUsize::new(0));
        Ok(Arc::new(Self { mail, waker, connections }))
    }

    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }

    pub(super) fn post(&self, mail: Mail<C>) {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner).push(mail);
        self.waker.wake();
    }

    /// Swaps the mail with an empty vector, so that both keep their memory.
    pub(super) fn take(&self, into: &mut Vec<Mail<C>>) {
        debug_assert!(into.is_empty());
        core::mem::swap(into, &mut *self.mail.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(super) fn add_connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn remove_connection(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
