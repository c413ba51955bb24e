//! Rejected certificates: kept for the administrator, but never so many or so fast that a stranger could fill the
//! disk or keep it busy (CVE-2024-45526).

use crate::file::{self, Secrecy};
use crate::layout::thumbprint_text;
use crate::scan;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use taktwerk_crypto::certificate::{split_chain, thumbprint};

/// Files that are kept; the oldest go first.
pub const REJECTED_MAX: usize = 100;
/// Files that may be written at once …
const BURST: u32 = 20;
/// … and how long it takes until one more may be.
const REFILL: Duration = Duration::from_millis(200);

/// A bounded, rate-limited folder of rejected certificates.
#[derive(Debug)]
pub struct RejectedStore {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The names of the files, the oldest first; `None` before the folder was looked at.
    names: Option<VecDeque<String>>,
    limit: Limit,
}

/// A limit of how often something may happen: a bucket of tokens.
#[derive(Debug)]
pub(crate) struct Limit {
    tokens: u32,
    refilled: Instant,
    passed_over: u64,
}

impl Limit {
    pub(crate) fn new() -> Self {
        Self { tokens: BURST, refilled: Instant::now(), passed_over: 0 }
    }

    /// Whether it may happen now; then, how often it might not since it last did.
    pub(crate) fn pass(&mut self, now: Instant) -> Option<u64> {
        let periods = now.saturating_duration_since(self.refilled).as_nanos() / REFILL.as_nanos();
        if periods > 0 {
            let refill = u32::try_from(periods).unwrap_or(u32::MAX);
            self.tokens = self.tokens.saturating_add(refill).min(BURST);
            self.refilled = now;
        }
        if self.tokens == 0 {
            self.passed_over += 1;
            return None;
        }
        self.tokens -= 1;
        Some(core::mem::take(&mut self.passed_over))
    }
}

impl RejectedStore {
    /// The folder need not exist yet.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, state: Mutex::new(State { names: None, limit: Limit::new() }) }
    }

    /// Keeps what a peer sent, if it is a certificate and there is not too much of that just now. Returns the file.
    pub fn offer(&self, chain: &[u8]) -> Option<PathBuf> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.limit.pass(Instant::now())?;
        let certificates = split_chain(chain).ok()?;
        let name = format!("{}.der", thumbprint_text(&thumbprint(certificates.first()?.der())));
        let path = self.folder.join(&name);
        match self.write(&mut state, name, &path, chain) {
            Ok(()) => Some(path),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a rejected certificate could not be kept");
                None
            }
        }
    }

    fn write(&self, state: &mut State, name: String, path: &Path, chain: &[u8]) -> std::io::Result<()> {
        let names = state.names.get_or_insert_with(|| self.names());
        let known = names.iter().position(|known| *known == name);
        if let Some(at) = known {
            names.remove(at);
            if path.is_file() {
                // The last one is found by its time.
                std::fs::File::options().append(true).open(path)?.set_modified(SystemTime::now())?;
                names.push_back(name);
                return Ok(());
            }
        }
        std::fs::create_dir_all(&self.folder)?;
        while names.len() >= REJECTED_MAX {
            let Some(oldest) = names.pop_front() else { break };
            file::remove(&self.folder.join(oldest))?;
        }
        file::write(path, chain, Secrecy::Public)?;
        names.push_back(name);
        Ok(())
    }

    /// What is in the folder already, the oldest first.
    fn names(&self) -> VecDeque<String> {
        let mut files = scan::files(&self.folder, &mut Vec::new());
        files.sort_by_key(|path| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok());
        files
            .iter()
            .filter_map(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_counts_what_it_stopped() {
        let start = Instant::now();
        let mut limit = Limit { tokens: BURST, refilled: start, passed_over: 0 };
        for _ in 0..BURST {
            assert_eq!(limit.pass(start), Some(0));
        }
        for _ in 0..5 {
            assert_eq!(limit.pass(start + REFILL / 2), None);
        }
        assert_eq!(limit.pass(start + REFILL), Some(5));
        assert_eq!(limit.pass(start + REFILL), None);
        assert_eq!(limit.pass(start + Duration::from_secs(3600)), Some(1));
    }
}
