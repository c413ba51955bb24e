//! Returns freed memory to the operating system.
//!
//! After a flood, or after an hour with many clients, a server has freed their memory, but the C library's allocator
//! keeps it: its arenas shrink only from their ends, and one live allocation above a hundred freed megabytes keeps all
//! of them. The library's `malloc_trim` also frees pages in the middle, but the library never calls it. [`watch`] calls
//! it when the process has more memory than it needed before and does not grow ([`Patience`]).
//!
//! This crate is for programs, not for libraries, because the allocator belongs to the whole process. With another
//! allocator or C library, the functions do nothing.
//!
//! [`forget_start`] unmaps the pages of the program's file that only its start needed.
//!
//! [`free_evenly`] makes the allocator merge small freed pieces at once, instead of many thousands later.
//!
//! # Why there are three unsafe lines
//! Everything else in this workspace forbids unsafe code. No crate offers `malloc_trim`, `mallopt` or `madvise` as a
//! safe function. An allocator that returns memory by itself costs more than it saves (`docs/security/floods.md`):
//! three more megabytes when idle, and more at the peak of a flood than the budgets allow. `malloc_trim` takes a
//! number, does not touch live allocations, and may be called from any thread at any time (`MT-Safe` in the library's
//! manual). `mallopt` takes two numbers and locks each arena that it changes. `madvise` is called for pages that are
//! unchanged from the program's file; the kernel maps them again when they are used.

mod code;
mod patience;

pub use code::forget_start;
pub use patience::Patience;

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// How often memory is checked.
const PERIOD: Duration = Duration::from_secs(5);

/// Returns free pages to the system. True if there were any; always `false` if the C library is not glibc.
#[allow(unsafe_code)]
pub fn give_back() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it has no preconditions; its argument is the number of bytes to keep at the end of the heap.
        unsafe { libc::malloc_trim(0) == 1 }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    false
}

/// Makes the allocator merge small freed pieces with their free neighbours at once. By default, glibc keeps them in
/// separate lists and merges all of them at the next allocation of a kilobyte: after many small events that took 1 to 3
/// ms in one turn of a server, measured by `alarm_storm`. True if it has an effect; always `false` if the C library is
/// not glibc.
#[allow(unsafe_code)]
pub fn free_evenly() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it has no preconditions; 0 is in the range of the parameter.
        unsafe { libc::mallopt(libc::M_MXFAST, 0) == 1 }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    false
}

/// Resident memory of this process, in bytes.
///
/// # Errors
/// `/proc/self/statm` cannot be read.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn resident() -> io::Result<usize> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages = text.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    let pages = pages.ok_or_else(|| io::Error::other("/proc/self/statm has no second number"))?;
    Ok(pages.saturating_mul(rustix::param::page_size()))
}

/// Resident memory of this process, in bytes.
///
/// # Errors
/// Always: it is needed only on Linux with glibc.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn resident() -> io::Result<usize> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// The watching thread. Dropping it ends the thread.
#[derive(Debug)]
pub struct Watch {
    _end: Option<Sender<()>>,
}

/// Checks every five seconds, on its own thread, whether memory can be returned. On unsupported systems no thread is
/// started.
///
/// # Errors
/// The thread cannot be started.
pub fn watch() -> io::Result<Watch> {
    let Ok(mut last) = resident() else { return Ok(Watch { _end: None }) };
    let (end, ended) = channel::<()>();
    let mut patience = Patience::new(last);
    let look = move || {
        while matches!(ended.recv_timeout(PERIOD), Err(RecvTimeoutError::Timeout)) {
            last = resident().unwrap_or(last);
            if patience.look(last) {
                give_back();
                let after = resident().unwrap_or(last);
                patience.gave(last, after);
                tracing::debug!(before = last, after, "memory returned to the system");
            }
        }
    };
    thread::Builder::new().name("memory".to_owned()).stack_size(64 << 10).spawn(look)?;
    Ok(Watch { _end: Some(end) })
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// The tests share one heap, so they run one at a time.
    static HEAP: Mutex<()> = Mutex::new(());

    fn heap() -> MutexGuard<'static, ()> {
        HEAP.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn memory_below_a_live_allocation_is_returned() {
        let _heap = heap();
        // Too small to be mapped individually; the last one stays allocated, so the heap cannot shrink.
        let before = resident().unwrap();
        let mut pieces: Vec<Vec<u8>> = (0..4_000).map(|_| vec![1u8; 16 << 10]).collect();
        let most = resident().unwrap();
        assert!(most > before + (48 << 20), "{before} {most}");
        let last = pieces.pop();
        drop(pieces);
        let freed = resident().unwrap();
        assert!(give_back());
        let after = resident().unwrap();
        assert!(
            after < before + (8 << 20),
            "{before} at first, {most} at most, {freed} freed, {after} given back"
        );
        assert_eq!(last.map(|piece| piece.len()), Some(16 << 10));
    }

    #[test]
    #[allow(unsafe_code)]
    fn small_pieces_are_merged() {
        let _heap = heap();
        assert!(free_evenly());
        let mut pieces: Vec<Box<[u8; 24]>> = (0..100_000).map(|_| Box::new([1; 24])).collect();
        // Free every second one, so that no two neighbours are free.
        let mut at = 0;
        pieces.retain(|_| {
            at += 1;
            at % 2 == 0
        });
        // SAFETY: it has no preconditions.
        let apart = unsafe { libc::mallinfo2() }.fsmblks;
        // 1.6 MB if they were kept apart. The test runner may have freed some, too.
        assert!(apart < 64 << 10, "{apart}");
        assert_eq!(pieces.len(), 50_000);
    }

    #[test]
    fn a_watch_ends_when_it_is_dropped() {
        let _heap = heap();
        let watch = watch().unwrap();
        let end = watch._end.clone().unwrap();
        drop(watch);
        drop(end);
    }
}
