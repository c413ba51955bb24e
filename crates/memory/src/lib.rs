//! Memory that was freed, given back to the operating system.
//!
//! A server that was flooded, or had many clients for an hour, frees what they took, but the C library's allocator keeps
//! the pieces: its arenas shrink from their ends only, and one living piece above a hundred free megabytes holds all of
//! them. The library has a function that looks for free pages in the middle as well, and never calls it. [`watch`] does,
//! when memory is there that was not always needed and nobody is asking for more ([`Patience`]).
//!
//! It is for programs, not for libraries: the allocator belongs to the whole process. Programs with an allocator of
//! their own, or with another C library, lose nothing: there is nothing to do then, and nothing is done.
//!
//! [`forget_start`] unmaps the pages of the program's file that only its start needed.
//!
//! [`free_evenly`] has small pieces joined with their neighbours when they are freed, instead of many thousands at once later.
//!
//! # Why there are three unsafe lines
//! Everything else in this workspace forbids unsafe code. No crate offers `malloc_trim`, `mallopt` or `madvise` without it, and an
//! allocator that gives memory back by itself costs more than it brings (`docs/security/floods.md`): three more megabytes
//! when idle, and more at the peak of a flood than the budgets allow. `malloc_trim` takes a number, touches nothing that is
//! allocated and may be called from any thread at any time (`MT-Safe` in the library's manual). `mallopt` takes two numbers
//! and locks each arena that it changes. `madvise` is called for
//! pages that are the same in the program's file, and the kernel maps them again when they are used.

mod code;
mod patience;

pub use code::forget_start;
pub use patience::Patience;

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// How often is looked.
const PERIOD: Duration = Duration::from_secs(5);

/// Gives free pages back. Returns whether there were any; always `false` where the C library is not glibc.
#[allow(unsafe_code)]
pub fn give_back() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it has no conditions; its argument is how many bytes to leave at the end of the heap.
        unsafe { libc::malloc_trim(0) == 1 }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    false
}

/// Small pieces that are freed are joined with their free neighbours at once. glibc otherwise keeps them in lists of their own
/// and joins all of them when somebody asks for a kilobyte: after many small events that took 1 to 3 ms in one turn of a server,
/// measured by `alarm_storm`. Returns whether this has an effect; always `false` where the C library is not glibc.
#[allow(unsafe_code)]
pub fn free_evenly() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it has no conditions; 0 is in the range of the parameter.
        unsafe { libc::mallopt(libc::M_MXFAST, 0) == 1 }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    false
}

/// How much memory this process has, bytes.
///
/// # Errors
/// Where the system does not say so in `/proc/self/statm`.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn resident() -> io::Result<usize> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages = text.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    let pages = pages.ok_or_else(|| io::Error::other("/proc/self/statm has no second number"))?;
    Ok(pages.saturating_mul(rustix::param::page_size()))
}

/// How much memory this process has, bytes.
///
/// # Errors
/// Always: only Linux with glibc needs to know.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn resident() -> io::Result<usize> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// The thread that looks. It ends when this is dropped.
#[derive(Debug)]
pub struct Watch {
    _end: Option<Sender<()>>,
}

/// Looks every five seconds whether there is memory to give back, in a thread of its own. Where there is never any,
/// no thread is started.
///
/// # Errors
/// If the thread cannot be started.
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
                tracing::debug!(before = last, after, "memory given back");
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

    /// There is one heap: who looks at it takes turns.
    static HEAP: Mutex<()> = Mutex::new(());

    fn heap() -> MutexGuard<'static, ()> {
        HEAP.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn what_lies_below_a_living_piece_is_given_back() {
        let _heap = heap();
        // Pieces that are too small to be mapped by themselves; the last one stays, so the heap cannot shrink.
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
    fn small_pieces_are_not_kept_apart() {
        let _heap = heap();
        assert!(free_evenly());
        let mut pieces: Vec<Box<[u8; 24]>> = (0..100_000).map(|_| Box::new([1; 24])).collect();
        // Every second one, so that no two neighbours are free.
        let mut at = 0;
        pieces.retain(|_| {
            at += 1;
            at % 2 == 0
        });
        // SAFETY: it has no conditions.
        let apart = unsafe { libc::mallinfo2() }.fsmblks;
        assert_eq!((apart, pieces.len()), (0, 50_000));
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
