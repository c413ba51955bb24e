//! Accepting connections: one shard listens and passes each connection to the shard with the fewest connections.

use super::core::Core;
use super::mailbox::Mailbox;
use super::options::ServerOptions;
use crate::poll::{Interest, Poller};
use crate::socket::{AcceptError, Listener, send_some};
use core::net::SocketAddr;
use core::time::Duration;
use rustix::fd::OwnedFd;
use std::io;
use std::sync::Arc;
use taktwerk_types::Instant;

/// Maximum connections accepted per turn and listener, so that many new connections do not starve the established ones.
const ACCEPTS_MAX: usize = 64;
/// How long to wait when no file descriptor is free.
const PAUSE: Duration = Duration::from_millis(100);

/// An Error message (Part 6 §7.1.2.5) with Bad_TcpServerTooBusy and no reason.
const TOO_BUSY: [u8; 16] = *b"ERRF\x10\0\0\0\0\0\x7d\x80\xff\xff\xff\xff";

/// The listeners of a server, owned by its first shard.
#[derive(Debug)]
pub(super) struct Acceptor {
    listeners: Vec<Listener>,
    /// When accepting resumes; `None` if it is not paused.
    paused_until: Option<Instant>,
}

impl Acceptor {
    pub(super) fn new(listeners: Vec<Listener>) -> Self {
        Self { listeners, paused_until: None }
    }

    /// Registers the listeners; the key of each is `first_key` plus its position.
    pub(super) fn register(&self, poller: &Poller, first_key: u64) -> io::Result<()> {
        (first_key..)
            .zip(&self.listeners)
            .try_for_each(|(key, listener)| poller.add(listener.fd(), key, Interest::READ))
    }

    /// When [`Self::resume`] is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.paused_until
    }

    /// Resumes after a pause.
    pub(super) fn resume(&mut self, poller: &Poller, first_key: u64, now: Instant) {
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
            if let Err(error) = self.register(poller, first_key) {
                tracing::error!(%error, "no more connections can be accepted");
            }
        }
    }

    /// Accepts waiting connections of one listener. Calls `each` with the connection and its shard if `admit` accepts
    /// it; otherwise the client gets Bad_TcpServerTooBusy.
    #[allow(clippy::too_many_arguments)] // what a loop has, taken apart
    pub(super) fn accept<C: Core>(
        &mut self,
        at: usize,
        poller: &Poller,
        options: &ServerOptions,
        shards: &[Arc<Mailbox<C>>],
        now: Instant,
        mut admit: impl FnMut(SocketAddr) -> bool,
        mut each: impl FnMut(usize, OwnedFd, SocketAddr),
    ) {
        let Some(listener) = self.listeners.get(at) else { return };
        for _ in 0..ACCEPTS_MAX {
            match listener.accept(&options.socket) {
                Ok(None) => return,
                Ok(Some((fd, peer))) if !admit(peer) => {
                    // One system call and no state: refusing has to be cheaper than connecting.
                    let _ = send_some(&fd, &TOO_BUSY);
                }
                Ok(Some((fd, peer))) => {
                    let fewest = shards.iter().enumerate().min_by_key(|(_, shard)| shard.connections());
                    let Some((shard, mailbox)) = fewest else { return };
                    mailbox.add_connection();
                    each(shard, fd, peer);
                }
                Err(AcceptError::Exhausted(error)) => {
                    // A level-triggered listener would be reported again and again, so it is unregistered for a while.
                    tracing::warn!(%error, "no file descriptor is free: new connections wait; raise the limit of open files (ulimit -n)");
                    self.pause(poller, now);
                    return;
                }
                Err(AcceptError::Broken(error)) => {
                    tracing::error!(%error, address = %listener.address(), "accepting fails; trying again");
                    self.pause(poller, now);
                    return;
                }
            }
        }
    }

    fn pause(&mut self, poller: &Poller, now: Instant) {
        for listener in &self.listeners {
            // It was registered, so this cannot fail.
            let _ = poller.remove(listener.fd());
        }
        self.paused_until = Some(now + PAUSE);
    }

    /// Stops listening.
    pub(super) fn close(&mut self) {
        self.listeners.clear();
        self.paused_until = None;
    }
}
