//! What the drivers of an emulated link share: waiting precisely, being woken, and a heap of deadlines.

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

/// The key of the waker; drivers use others.
const WAKE: u64 = u64::MAX;
/// Events taken per wait.
const EVENTS_MAX: usize = 128;

/// Ends the wait of a driver from another thread.
#[derive(Debug, Clone)]
pub(crate) struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Wakes it.
    pub(crate) fn wake(&self) {
        // A counter that is full has a wake-up pending already.
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

    /// Reports a file whenever it becomes readable or writable, once each time.
    pub(crate) fn add_edges(&self, file: impl AsFd, key: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, file, EventData::new_u64(key), flags)?)
    }

    /// Reports a file as long as it is readable.
    pub(crate) fn add_readable(&self, file: impl AsFd, key: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, file, EventData::new_u64(key), EventFlags::IN)?)
    }

    /// Waits until something happens or the monotonic clock reads `deadline`. Gives the keys of what happened.
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

/// Makes this thread's timers as precise as the kernel can: by default it may be 50 µs late to save wake-ups.
pub(crate) fn precise_timers() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Room for so many bytes on both sides of a socket, or as many as this user may have: a machine that is busy takes them later,
/// and what a socket drops no emulated link has dropped.
pub(crate) fn enlarge(socket: &UdpSocket, bytes: usize) {
    // Beyond the system's limit only root may.
    if sockopt::set_socket_send_buffer_size_force(socket, bytes).is_err() {
        let _ = sockopt::set_socket_send_buffer_size(socket, bytes);
    }
    if sockopt::set_socket_recv_buffer_size_force(socket, bytes).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(socket, bytes);
    }
}

/// What becomes due at some time.
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

/// Deadlines, the earliest first, and in the order of insertion where they are the same.
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
