//! A shard's connections as the driver sees them: socket, partial chunk, registration.

use super::coalesced::Registration;
use crate::capture::CaptureStream;
use crate::poll::{Interest, Poller};
use rustix::fd::OwnedFd;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};

/// One connection.
#[derive(Debug)]
pub(super) struct Connection<I> {
    pub(super) id: I,
    pub(super) fd: OwnedFd,
    /// Distinguishes successive connections with the same number.
    epoch: u32,
    interest: Interest,
    /// Received bytes that the core could not use yet. Almost always empty, and then without memory.
    pub(super) tail: Vec<u8>,
    /// Bytes wait in [`Self::tail`] because the core wants no input now, not because a chunk is incomplete.
    pub(super) paused: bool,
    /// The epoll instance with which it is registered.
    pub(super) registration: Registration,
    /// The recording of this connection, if there is one.
    pub(super) stream: Option<Box<CaptureStream>>,
}

impl<I> Connection<I> {
    /// Changes the events the loop wants. Makes a system call only if something changes.
    pub(super) fn set_interest(&mut self, interest: Interest, poller: &Poller, key: u64) {
        if interest != self.interest {
            self.interest = interest;
            if let Err(error) = poller.modify(&self.fd, key, interest) {
                tracing::error!(%error, "epoll refuses a change");
            }
        }
    }

    pub(super) fn interest(&self) -> Interest {
        self.interest
    }

    /// Closes the connection so that the peer still receives what was sent. Unread input is discarded first, because
    /// closing a socket with unread bytes resets the connection.
    pub(super) fn finish(self) {
        let _ = shutdown(&self.fd, Shutdown::Write);
        let mut sink = [0u8; 4096];
        for _ in 0..16 {
            if !matches!(recv(&self.fd, &mut sink[..], RecvFlags::DONTWAIT), Ok((1.., _))) {
                return;
            }
        }
    }
}

/// Connections by the small number that the core assigns to each.
#[derive(Debug)]
pub(super) struct Connections<I> {
    slots: Vec<Option<Connection<I>>>,
    len: usize,
    epoch: u32,
}

impl<I: Copy> Connections<I> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), len: 0, epoch: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Stores a connection; returns the key to register it with.
    pub(super) fn insert(&mut self, index: usize, id: I, fd: OwnedFd, tail: Vec<u8>) -> u64 {
        self.epoch = self.epoch.wrapping_add(1);
        let (epoch, interest) = (self.epoch, Interest::READ);
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        if let Some(slot) = self.slots.get_mut(index) {
            debug_assert!(slot.is_none(), "two connections with one number");
            *slot = Some(Connection {
                id,
                fd,
                epoch,
                interest,
                tail,
                paused: false,
                registration: Registration::default(),
                stream: None,
            });
            self.len += 1;
        }
        key(index, epoch)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Connection<I>> {
        self.slots.get_mut(index)?.as_mut()
    }

    /// The connection's current key.
    pub(super) fn key(&self, index: usize) -> Option<u64> {
        self.slots.get(index)?.as_ref().map(|connection| key(index, connection.epoch))
    }

    /// The number of the connection that an event belongs to; `None` if that connection was closed since.
    #[inline]
    pub(super) fn index_of(&self, event: u64) -> Option<usize> {
        let index = (event & 0xffff_ffff) as usize;
        (self.key(index)? == event).then_some(index)
    }

    pub(super) fn remove(&mut self, index: usize) -> Option<Connection<I>> {
        let connection = self.slots.get_mut(index)?.take()?;
        self.len -= 1;
        Some(connection)
    }

    /// The numbers of all connections.
    pub(super) fn indexes(&self) -> Vec<usize> {
        let present = self.slots.iter().enumerate().filter(|(_, slot)| slot.is_some());
        present.map(|(index, _)| index).collect()
    }
}

fn key(index: usize, epoch: u32) -> u64 {
    index as u64 & 0xffff_ffff | u64::from(epoch) << 32
}
