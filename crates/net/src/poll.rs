//! epoll, with the few operations the event loops need.
//!
//! Sockets are level-triggered. A loop that stops reading early gets the event again, and a read that does not fill the
//! buffer needs no second read to find the socket empty.

use core::time::Duration;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::io;

/// Maximum events per wait. The next wait returns the remaining ones.
const EVENTS_MAX: usize = 256;

/// Which events of a socket a loop wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interest {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl Interest {
    pub(crate) const READ: Self = Self { read: true, write: false };

    fn flags(self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.read);
        flags.set(EventFlags::OUT, self.write);
        flags
    }
}

/// One event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    /// The key with which the socket was registered.
    pub(crate) key: u64,
    /// A read returns bytes, the end of the stream, or an error.
    pub(crate) read: bool,
    /// Bytes can be sent, or sending returns an error.
    pub(crate) write: bool,
    /// The connection is broken or has ended in both directions. Always reported.
    pub(crate) broken: bool,
}

/// An epoll instance and its buffer.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl core::fmt::Debug for Poller {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Poller").field("epoll", &self.epoll).finish_non_exhaustive()
    }
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC)?, events: Vec::with_capacity(EVENTS_MAX) })
    }

    pub(crate) fn add(&self, fd: impl AsFd, key: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(key), interest.flags())?)
    }

    /// Edge-triggered, for descriptors that are never read.
    pub(crate) fn add_edge(&self, fd: impl AsFd, key: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(key), EventFlags::IN | EventFlags::ET)?)
    }

    /// Registers for one event; [`Self::rearm_once`] allows the next one. For nested epoll instances.
    pub(crate) fn add_once(&self, fd: impl AsFd, key: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(key), EventFlags::IN | EventFlags::ONESHOT)?)
    }

    /// Allows one more event, also for input that has arrived since the last one.
    pub(crate) fn rearm_once(&self, fd: impl AsFd, key: u64) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, EventData::new_u64(key), EventFlags::IN | EventFlags::ONESHOT)?)
    }

    /// The descriptor of this instance, to be registered with another instance.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    pub(crate) fn modify(&self, fd: impl AsFd, key: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, EventData::new_u64(key), interest.flags())?)
    }

    pub(crate) fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Waits until an event occurs or the timeout expires; `None` waits for ever. Nanosecond timeouts need epoll_pwait2
    /// (Linux 5.11).
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.map(|span| Timespec {
            tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: span.subsec_nanos().into(),
        });
        self.events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(Errno::NOSYS) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "epoll_pwait2 is missing: Linux 5.11 or later is needed (in a container, its seccomp profile must \
                 allow the call)",
            )),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// An event of the last wait.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<Ready> {
        let event = self.events.get(at)?;
        let flags = event.flags;
        let broken = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        Some(Ready {
            key: { event.data }.u64(),
            read: broken || flags.contains(EventFlags::IN),
            write: broken || flags.contains(EventFlags::OUT),
            broken,
        })
    }
}
