//! Shared parts of the drivers of emulated links: precise waiting, wake-up, and a heap of deadlines.

use crate::clock;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::time::Timespec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::UdpSocket;
use std::num::NonZeroU64;
use std::sync::Arc;

/// Key of the waker; drivers use other keys.
const WAKE: u64 = u64::MAX;
/// Maximum number of events per wait.
const EVENTS_MAX: usize = 128;

/// Ends the wait of a driver from another thread.
#[derive(Debug, Clone)]
pub(crate) struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Wakes it.
    pub(crate) fn wake(&self) {
        // The write fails only if a wake-up is already pending.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

/// epoll and a waker.
#[derive(Debug)]
pub(crate) struct Waiting {
    epoll: OwnedFd,
    waker: Waker,
}

impl Waiting {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let waker = Waker(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?));
        epoll::add(&epoll, &*waker.0, EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Self { epoll, waker })
    }

    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Reports a file each time it becomes readable or writable (edge-triggered).
    pub(crate) fn add_edges(&self, file: impl AsFd, key: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, file, EventData::new_u64(key), flags)?)
    }

    /// Reports a file as long as it is readable (level-triggered).
    pub(crate) fn add_readable(&self, file: impl AsFd, key: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, file, EventData::new_u64(key), EventFlags::IN)?)
    }

    /// Waits for an event, or until the monotonic clock reaches `deadline`. Returns the keys of the events in
    /// `happened`.
    pub(crate) fn wait(&self, deadline: Option<u64>, happened: &mut Vec<u64>) -> io::Result<()> {
        happened.clear();
        let timeout = deadline.map(|deadline| {
            let left = deadline.saturating_sub(clock::monotonic());
            Timespec {
                tv_sec: i64::try_from(left / 1_000_000_000).unwrap_or(i64::MAX),
                tv_nsec: i64::try_from(left % 1_000_000_000).unwrap_or(0),
            }
        });
        let mut events = Vec::<Event>::with_capacity(EVENTS_MAX);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            if event.data.u64() == WAKE {
                let _ = rustix::io::read(&*self.waker.0, &mut [0u8; 8]);
            } else {
                happened.push(event.data.u64());
            }
        }
        Ok(())
    }
}

/// Makes the timers of this thread as precise as possible. By default the kernel may delay them by 50 µs to save
/// wake-ups.
pub(crate) fn precise_timers() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Sets both buffers of a socket to this size, or to the maximum that this user may set. Datagrams dropped by a full
/// socket on a busy machine would look like losses of the emulated link.
pub(crate) fn enlarge(socket: &UdpSocket, bytes: usize) {
    // Only root may exceed the system's limit.
    if sockopt::set_socket_send_buffer_size_force(socket, bytes).is_err() {
        let _ = sockopt::set_socket_send_buffer_size(socket, bytes);
    }
    if sockopt::set_socket_recv_buffer_size_force(socket, bytes).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(socket, bytes);
    }
}

/// An entry with its due time.
#[derive(Debug)]
struct Due<T> {
    at: u64,
    number: u64,
    what: T,
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}
impl<T> Eq for Due<T> {}
impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Due<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// Deadlines in ascending order; equal deadlines in the order of insertion.
#[derive(Debug)]
pub(crate) struct Deadlines<T> {
    heap: BinaryHeap<Reverse<Due<T>>>,
    number: u64,
}

impl<T> Deadlines<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), number: 0 }
    }

    pub(crate) fn insert(&mut self, at: u64, what: T) {
        self.number += 1;
        self.heap.push(Reverse(Due { at, number: self.number, what }));
    }

    pub(crate) fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(due)| due.at)
    }

    pub(crate) fn take(&mut self, now: u64) -> Option<T> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(due)| due.what)
    }
}
