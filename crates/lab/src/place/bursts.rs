//! A program that competes for the server's CPU.

use crate::clock;
use crate::pin::CpuList;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// A thread that computes in bursts on given CPUs, half of the time, like other programs on a gateway.
pub(super) struct Bursts {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Bursts {
    /// Starts to compete.
    ///
    /// # Errors
    /// If the thread cannot start or cannot use these CPUs.
    pub(super) fn on(cpus: CpuList) -> io::Result<Self> {
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new().name("bursts".to_owned()).spawn(move || {
            let pinned = cpus.pin();
            let is_there = pinned.is_ok();
            // The caller waits for this result.
            let _ = tell.send(pinned);
            if !is_there {
                return;
            }
            // Bursts of 1 to 16 ms, each followed by an equally long pause.
            let mut random = 1u64;
            while !ended.load(Ordering::Relaxed) {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let span = 1_000_000 + (random >> 33) % 15_000_000;
                let until = clock::monotonic() + span;
                while clock::monotonic() < until {
                    std::hint::spin_loop();
                }
                clock::sleep_until(until + span);
            }
        });
        let bursts = Self { end, thread: Some(thread?) };
        let pinned = told.recv().map_err(|_| io::Error::other("its thread has ended"))?;
        pinned.map_err(io::Error::other)?;
        Ok(bursts)
    }
}

impl Drop for Bursts {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_end() {
        let first = CpuList::single(CpuList::allowed().cpus()[0]);
        let bursts = Bursts::on(first).unwrap();
        let end = Arc::clone(&bursts.end);
        drop(bursts);
        // The thread has dropped its reference.
        assert!(end.load(Ordering::Relaxed) && Arc::strong_count(&end) == 1);
    }

    #[test]
    fn errors_of_the_competing_thread_are_reported() {
        let nowhere: CpuList = "1000".parse().unwrap();
        assert!(Bursts::on(nowhere).is_err());
    }
}
