//! Wakes a thread that sleeps in epoll, from any thread, with at most one system call per sleep.

use core::sync::atomic::{AtomicU8, Ordering};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::Arc;

/// The thread runs and checks for work before it sleeps.
const AWAKE: u8 = 0;
/// The thread sleeps or is about to.
const SLEEPING: u8 = 1;
/// A wake-up was requested.
const NOTIFIED: u8 = 2;

#[derive(Debug)]
struct Inner {
    state: AtomicU8,
    fd: OwnedFd,
}

/// Wakes one event loop. Clones wake the same loop.
#[derive(Debug, Clone)]
pub struct Waker(Arc<Inner>);

impl Waker {
    /// A waker of a loop that is awake.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Inner { state: AtomicU8::new(AWAKE), fd })))
    }

    /// Makes the loop take a turn soon. Makes a system call only if the loop sleeps and was not woken yet.
    #[inline]
    pub fn wake(&self) {
        // Always swap without a load before: a stale load could see the previous notification, which the loop has
        // already taken, and this one would be lost.
        if self.0.state.swap(NOTIFIED, Ordering::AcqRel) == SLEEPING {
            // The counter cannot overflow in practice, and if it did, the loop would be awake already.
            let _ = rustix::io::write(&self.0.fd, &1u64.to_ne_bytes());
        }
    }

    /// The descriptor the loop waits on. It is registered edge-triggered, so that it never has to be read.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd.as_fd()
    }

    /// Called by the loop before it sleeps. False if [`Self::wake`] was called since the last [`Self::awake`]: check
    /// for work instead of sleeping.
    #[inline]
    pub(crate) fn sleep(&self) -> bool {
        self.0.state.compare_exchange(AWAKE, SLEEPING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Called by the loop after it slept and before it checks for work. True if it was woken.
    #[inline]
    pub(crate) fn awake(&self) -> bool {
        self.0.state.swap(AWAKE, Ordering::AcqRel) == NOTIFIED
    }

    /// Whether a wake-up was requested: for loops that spin instead of sleeping.
    #[inline]
    pub(crate) fn is_notified(&self) -> bool {
        self.0.state.load(Ordering::Relaxed) == NOTIFIED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(waker: &Waker) -> u64 {
        let mut counter = [0; 8];
        rustix::io::read(waker.fd(), &mut counter).map_or(0, |_| u64::from_ne_bytes(counter))
    }

    #[test]
    fn waking_costs_a_system_call_only_if_the_loop_sleeps() {
        let waker = Waker::new().unwrap();
        waker.wake();
        assert_eq!(writes(&waker), 0);
        assert!(!waker.sleep(), "a wake before the sleep is not lost");
        assert!(waker.awake());
        assert!(waker.sleep());
        for _ in 0..100 {
            waker.wake();
        }
        assert_eq!(writes(&waker), 1);
        assert!(waker.is_notified() && waker.awake() && !waker.is_notified());
    }

    #[test]
    fn no_wake_is_lost_before_sleeping() {
        use crate::poll::Poller;
        use core::sync::atomic::AtomicU32;
        const COUNT: u32 = 20_000;
        let waker = Waker::new().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add_edge(waker.fd(), 1).unwrap();
        let (asked, seen) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (other, told, done) = (waker.clone(), Arc::clone(&asked), Arc::clone(&seen));
        let thread = std::thread::spawn(move || {
            for number in 1..=COUNT {
                told.store(number, Ordering::Relaxed);
                other.wake();
                while done.load(Ordering::Relaxed) < number {
                    std::hint::spin_loop();
                }
            }
        });
        while seen.load(Ordering::Relaxed) < COUNT {
            if waker.sleep() {
                poller.wait(Some(core::time::Duration::from_secs(10))).unwrap();
                assert!(waker.is_notified(), "slept through a wake");
            }
            if waker.awake() {
                seen.store(asked.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        thread.join().unwrap();
    }
}
