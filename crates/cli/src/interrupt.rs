//! SIGINT and SIGTERM: the first one requests the command to end and print what it has, the second one ends it at once.

use crate::failure::Failure;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Whether the command was interrupted.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt {
    asked: Arc<AtomicBool>,
    last_words: Arc<Mutex<LastWords>>,
}

/// What a command says when it is ended at once.
#[derive(Default)]
struct LastWords(Option<Box<dyn Fn() -> Option<String> + Send>>);

impl core::fmt::Debug for LastWords {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("LastWords").field(&self.0.is_some()).finish()
    }
}

/// Turns exceeding the file size limit (`ulimit -f`, `LimitFSIZE=`) into a failed write. Without a handler, SIGXFSZ
/// would end the process. The flag is not used.
pub(crate) fn survive_file_size_limits() -> Result<(), Failure> {
    match flag::register(SIGXFSZ, Arc::default()) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Environment(format!("cannot catch signals: {error}"))),
    }
}

/// How long last words may take. What they ask for may hang: that is when users send a second signal.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);

/// The result of a function that is not waited for beyond this time.
fn within(most: Duration, words: impl FnOnce() -> Option<String> + Send + 'static) -> Option<String> {
    let (said, is_said) = channel();
    let ask = move || {
        // This fails if the time is over. The process is about to end then.
        let _ = said.send(words());
    };
    std::thread::Builder::new().name("last-words".to_owned()).spawn(ask).ok()?;
    is_said.recv_timeout(most).ok()?
}

impl Interrupt {
    /// Installs handlers for the signals.
    pub(crate) fn catch() -> Result<Self, Failure> {
        let asked = Arc::new(AtomicBool::new(false));
        let failed = |error| Failure::Environment(format!("cannot catch signals: {error}"));
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the shutdown handler must check the flag before this signal sets it.
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&asked)).map_err(failed)?;
            flag::register(signal, Arc::clone(&asked)).map_err(failed)?;
        }
        Ok(Self { asked, last_words: Arc::default() })
    }

    /// Like [`Self::catch`], but the second signal first prints the [last words](Self::say_at_end).
    pub(crate) fn catch_and_say() -> Result<Self, Failure> {
        let failed = |error| Failure::Environment(format!("cannot catch signals: {error}"));
        let (asked, last_words) = (Arc::<AtomicBool>::default(), Arc::<Mutex<LastWords>>::default());
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&asked)).map_err(failed)?;
        }
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
        let words = Arc::clone(&last_words);
        let end = move || {
            if signals.forever().nth(1).is_some() {
                let ask = move || words.lock().unwrap_or_else(PoisonError::into_inner).0.as_ref()?();
                if let Some(text) = within(LAST_WORDS_MAX, ask) {
                    tell!("error: {text}");
                }
                low_level::exit(130);
            }
        };
        let thread = std::thread::Builder::new().name("signals".to_owned()).stack_size(64 << 10).spawn(end);
        thread.map_err(|error| Failure::Environment(format!("cannot start a thread: {error}")))?;
        Ok(Self { asked, last_words })
    }

    /// Sets what a second signal prints before it ends the command.
    pub(crate) fn say_at_end(&self, words: impl Fn() -> Option<String> + Send + 'static) {
        self.last_words.lock().unwrap_or_else(PoisonError::into_inner).0 = Some(Box::new(words));
    }

    /// Without handlers: signals have their default action.
    pub(crate) fn uncaught() -> Self {
        Self { asked: Arc::default(), last_words: Arc::default() }
    }

    /// The flag, which a signal sets.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    /// Whether a signal was received.
    pub(crate) fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_not_waited_for_without_end() {
        let wait = Duration::from_millis(50);
        assert_eq!(within(Duration::from_secs(60), || Some("lost".to_owned())).as_deref(), Some("lost"));
        let (release, is_released) = channel::<()>();
        let hangs = move || {
            let _ = is_released.recv();
            Some("late".to_owned())
        };
        assert_eq!(within(wait, hangs), None);
        drop(release);
    }
}
