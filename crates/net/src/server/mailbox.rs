//! Messages from other threads to a shard's thread.

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
    /// A connection that moves from another shard.
    Moved {
        fd: OwnedFd,
        state: C::Moved,
        /// Bytes that were received and not used yet.
        tail: Vec<u8>,
    },
    /// A message from another shard.
    Message(C::Message),
    /// An effect has finished.
    Done(Token, JobResult),
    /// Shut down, at the latest at this time.
    Stop(Instant),
}

/// The message queue of a shard's thread.
pub(super) struct Mailbox<C: Core> {
    mail: Mutex<Vec<Mail<C>>>,
    waker: Waker,
    /// Connections that the shard has or is about to get, for load balancing.
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

    /// Swaps the queue with an empty vector, so that both keep their capacity.
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
