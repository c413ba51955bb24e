//! A shard's connections as the driver sees them.

use super::coalesced::Place;
use crate::capture::CaptureStream;
use crate::poll::{Interest, Poller};
use rustix::fd::OwnedFd;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};

/// One connection.
#[derive(Debug)]
pub(super) struct Connection<I> {
    pub(super) id: I,
    pub(super) fd: OwnedFd,
    /// Distinguishes connections that follow each other under the same number.
    epoch: u32,
    interest: Interest,
    /// Received bytes that the core could not use yet. Empty, and without memory, for almost all connections almost
    /// all the time.
    pub(super) tail: Vec<u8>,
    /// Bytes wait in [`Self::tail`] because the core wants none at the moment, not because a chunk is incomplete.
    pub(super) paused: bool,
    /// With which epoll instance it is registered.
    pub(super) place: Place,
    /// Records it.
    pub(super) stream: Option<Box<CaptureStream>>,
}

impl<I> Connection<I> {
    /// Changes what the loop hears about; a system call only if something changes.
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

    /// Ends the connection so that the peer still gets what was sent: what it sent itself is read away first, because
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

/// Connections by the small number that the core gives each.
#[derive(Debug)]
pub(super) struct Connections<I> {
    places: Vec<Option<Connection<I>>>,
    len: usize,
    epoch: u32,
}

impl<I: Copy> Connections<I> {
    pub(super) fn new() -> Self {
        Self { places: Vec::new(), len: 0, epoch: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Stores a connection; returns the key to register it with.
    pub(super) fn insert(&mut self, index: usize, id: I, fd: OwnedFd, tail: Vec<u8>) -> u64 {
        self.epoch = self.epoch.wrapping_add(1);
        let (epoch, interest) = (self.epoch, Interest::READ);
        if self.places.len() <= index {
            self.places.resize_with(index + 1, || None);
        }
        if let Some(place) = self.places.get_mut(index) {
            debug_assert!(place.is_none(), "two connections with one number");
            *place = Some(Connection {
                id,
                fd,
                epoch,
                interest,
                tail,
                paused: false,
                place: Place::default(),
                stream: None,
            });
            self.len += 1;
        }
        key(index, epoch)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Connection<I>> {
        self.places.get_mut(index)?.as_mut()
    }

    /// The connection's present key.
    pub(super) fn key(&self, index: usize) -> Option<u64> {
        self.places.get(index)?.as_ref().map(|connection| key(index, connection.epoch))
    }

    /// The number of the connection that an event is about; `None` if it has gone since.
    #[inline]
    pub(super) fn index_of(&self, event: u64) -> Option<usize> {
        let index = (event & 0xffff_ffff) as usize;
        (self.key(index)? == event).then_some(index)
    }

    pub(super) fn remove(&mut self, index: usize) -> Option<Connection<I>> {
        let connection = self.places.get_mut(index)?.take()?;
        self.len -= 1;
        Some(connection)
    }

    /// The numbers of all connections.
    pub(super) fn indexes(&self) -> Vec<usize> {
        let present = self.places.iter().enumerate().filter(|(_, place)| place.is_some());
        present.map(|(index, _)| index).collect()
    }
}

fn key(index: usize, epoch: u32) -> u64 {
    index as u64 & 0xffff_ffff | u64::from(epoch) << 32
}
