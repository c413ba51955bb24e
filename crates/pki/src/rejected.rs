//! Keeps rejected certificates for the administrator. Number and rate are limited, so that a stranger cannot fill the disk or
//! keep it busy (CVE-2024-45526).

use crate::layout::thumbprint_text;
use crate::scan;
use core::net::IpAddr;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use taktwerk_crypto::certificate::{split_chain, thumbprint};
use taktwerk_files::PUBLIC;

/// Most files in the directory.
pub const REJECTED_MAX: usize = 100;
/// Files that may be written at once …
const BURST: u32 = 20;
/// … and how long it takes until one more may be.
const REFILL: Duration = Duration::from_millis(200);
/// Largest address file, in bytes: a line for each certificate.
const ADDRESSES_LEN_MAX: u64 = REJECTED_MAX as u64 * 128;

/// A bounded, rate-limited directory of rejected certificates.
///
/// When the directory is full, the oldest certificate of the network with most certificates is evicted, so a peer that shows many
/// certificates displaces its own. Networks without a certificate in the directory have a separate rate limit.
#[derive(Debug)]
pub struct RejectedStore {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The certificates, the oldest first; `None` before the directory was read.
    kept: Option<Vec<Kept>>,
    limit: Limit,
    /// For networks without a certificate in the directory.
    newcomers: Limit,
}

/// A certificate file.
#[derive(Debug, PartialEq, Eq)]
struct Kept {
    /// The file name without its extension.
    thumbprint: String,
    address: Option<IpAddr>,
}

/// The network of an address: /24 for IPv4 and /64 for IPv6, the block that one host or site usually has.
fn network(address: Option<IpAddr>) -> Option<u128> {
    address.map(|address| match address.to_canonical() {
        IpAddr::V4(address) => u128::from(address.to_bits() >> 8),
        IpAddr::V6(address) => address.to_bits() >> 64 << 64,
    })
}

/// The index of the certificate to evict: the oldest of the network with most certificates.
fn least_missed(kept: &[Kept]) -> Option<usize> {
    let mut counts: BTreeMap<Option<u128>, usize> = BTreeMap::new();
    for one in kept {
        *counts.entry(network(one.address)).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    kept.iter().position(|one| counts.get(&network(one.address)) == Some(&most))
}

/// The file with the addresses from which certificates came: lines of thumbprint and address. It is next to the certificate
/// directory, where other programs expect only certificates.
fn addresses_path(folder: &Path) -> PathBuf {
    folder.with_file_name("addresses.txt")
}

/// The addresses of rejected certificates by thumbprint.
pub(crate) fn addresses(folder: &Path) -> BTreeMap<String, IpAddr> {
    let bytes = taktwerk_files::read_bytes(&addresses_path(folder), ADDRESSES_LEN_MAX).unwrap_or_default();
    let line = |line: &str| {
        let (thumbprint, address) = line.split_once(' ')?;
        Some((thumbprint.to_owned(), address.trim().parse().ok()?))
    };
    String::from_utf8_lossy(&bytes).lines().filter_map(line).collect()
}

/// A rate limit: a token bucket.
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

    /// `None` if the limit is exceeded. Otherwise the number of calls that exceeded it since the last success.
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
    /// The directory need not exist yet.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, state: Mutex::new(State { kept: None, limit: Limit::new(), newcomers: Limit::new() }) }
    }

    /// Keeps the chain of a peer if it is a certificate and the rate limit allows it. Returns the file.
    pub fn offer(&self, chain: &[u8], address: Option<IpAddr>) -> Option<PathBuf> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { kept, limit, newcomers } = &mut *state;
        let kept = kept.get_or_insert_with(|| self.kept());
        let is_known = kept.iter().any(|one| network(one.address) == network(address));
        let limit = if is_known { limit } else { newcomers };
        limit.pass(Instant::now())?;
        let certificates = split_chain(chain).ok()?;
        let thumbprint = thumbprint_text(&thumbprint(certificates.first()?.der()));
        let path = self.path(&thumbprint);
        match self.write(kept, Kept { thumbprint, address }, chain) {
            Ok(()) => Some(path),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a rejected certificate could not be kept");
                None
            }
        }
    }

    fn path(&self, thumbprint: &str) -> PathBuf {
        self.folder.join(format!("{thumbprint}.der"))
    }

    fn write(&self, kept: &mut Vec<Kept>, new: Kept, chain: &[u8]) -> std::io::Result<()> {
        let path = self.path(&new.thumbprint);
        let known = kept.iter().position(|one| one.thumbprint == new.thumbprint).map(|at| kept.remove(at));
        if known.is_some() && path.is_file() {
            // The latest certificate is identified by its modification time.
            std::fs::File::options().append(true).open(path)?.set_modified(SystemTime::now())?;
            let is_same = known.as_ref() == Some(&new);
            kept.push(new);
            return if is_same { Ok(()) } else { self.write_addresses(kept) };
        }
        std::fs::create_dir_all(&self.folder)?;
        while kept.len() >= REJECTED_MAX {
            let Some(at) = least_missed(kept) else { break };
            taktwerk_files::remove(&self.path(&kept.remove(at).thumbprint))?;
        }
        taktwerk_files::replace(&path, chain, PUBLIC)?;
        kept.push(new);
        self.write_addresses(kept)
    }

    fn write_addresses(&self, kept: &[Kept]) -> std::io::Result<()> {
        let line = |one: &Kept| Some(format!("{} {}\n", one.thumbprint, one.address?));
        let lines: String = kept.iter().filter_map(line).collect();
        taktwerk_files::replace(&addresses_path(&self.folder), lines.as_bytes(), PUBLIC)
    }

    /// Reads the directory, the oldest certificate first.
    fn kept(&self) -> Vec<Kept> {
        let mut files = scan::files(&self.folder, &mut Vec::new());
        files.sort_by_key(|path| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok());
        let addresses = addresses(&self.folder);
        let kept = |path: &PathBuf| {
            let thumbprint = path.file_name()?.to_str()?.strip_suffix(".der")?.to_owned();
            let address = addresses.get(&thumbprint).copied();
            Some(Kept { thumbprint, address })
        };
        files.iter().filter_map(kept).collect()
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

    #[test]
    fn the_network_with_most_certificates_displaces_its_own() {
        let kept = |thumbprint: &str, address: &str| Kept {
            thumbprint: thumbprint.to_owned(),
            address: address.parse().ok(),
        };
        let mut all = vec![kept("honest", "192.0.2.1"), kept("unknown", "")];
        assert_eq!(least_missed(&all), Some(0), "the oldest if all have equally many");
        all.extend([kept("flood1", "198.51.100.7"), kept("flood2", "198.51.100.99")]);
        assert_eq!(least_missed(&all), Some(2));
        all.extend([kept("a", "2001:db8::1"), kept("b", "2001:db8::2:0:0:1"), kept("c", "2001:db8:0:1::1")]);
        all.remove(2);
        assert_eq!(least_missed(&all), Some(3), "one network has two addresses");
        assert_eq!(least_missed(&[]), None);
    }
}
