//! Reloads own certificates while a server runs: when their files change, and when a client has uploaded new ones.

use super::{PkiError, identities};
use core::sync::atomic::{AtomicU64, Ordering};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;
use taktwerk_crypto::CryptoError;
use taktwerk_crypto::aws_lc::AwsLcProvider;
use taktwerk_pki::{Problem, Store};

/// A snapshot of the files' state.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stamp {
    Folder(u64),
    Files([Option<(SystemTime, u64)>; 2]),
}

#[derive(Debug)]
struct Seen {
    /// When the certificates in use were read, or rejected.
    read: Stamp,
    /// At the last check. Files that are still changing are not read.
    last: Stamp,
}

/// Reloads own certificates and replaces those of the provider.
#[derive(Debug)]
pub(crate) struct Renewal {
    store: Store,
    /// Certificate and key, if they are not in the store.
    files: Option<(PathBuf, PathBuf)>,
    application_uri: Option<String>,
    /// Weak: its users keep it alive.
    provider: Weak<AwsLcProvider>,
    seen: Mutex<Seen>,
    /// How often the certificates were replaced.
    count: Arc<AtomicU64>,
}

impl Renewal {
    pub(super) fn new(
        store: Store,
        files: Option<(PathBuf, PathBuf)>,
        application_uri: Option<String>,
        provider: &Arc<AwsLcProvider>,
    ) -> Self {
        let now = stamp(&store, files.as_ref());
        let seen = Mutex::new(Seen { read: now.clone(), last: now });
        let provider = Arc::downgrade(provider);
        Self { store, files, application_uri, provider, seen, count: Arc::default() }
    }

    /// The counter of replacements. A server closes the channels of old certificates when it increases.
    pub(crate) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.count)
    }

    /// Whether the certificates can be replaced again without a restart.
    pub(crate) fn is_possible(&self) -> bool {
        self.provider.upgrade().is_some_and(|provider| provider.renewals_left() > 0)
    }

    /// Checks the files, and uses them if they have changed since they were read but not since the last check. Returns whether
    /// there are new certificates. An unusable certificate is logged once.
    pub(crate) fn look(&self) -> bool {
        let now = stamp(&self.store, self.files.as_ref());
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let is_stable = seen.last == now;
            seen.last = now.clone();
            if !is_stable || seen.read == now {
                return false;
            }
        }
        self.renew().unwrap_or_else(|error| {
            tracing::error!(%error, "the new certificates cannot be used; the server keeps the old ones");
            false
        })
    }

    /// Reads the files now. Returns whether there are new certificates.
    ///
    /// # Errors
    /// The certificates cannot be used; the old ones stay.
    pub(crate) fn renew(&self) -> Result<bool, PkiError> {
        let Some(provider) = self.provider.upgrade() else { return Ok(false) };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        // Take the snapshot first: a change during reading is then detected next time.
        seen.read = stamp(&self.store, self.files.as_ref());
        let refused = |reason: String| PkiError::File { path: self.store.root().join("own/certs"), reason };
        let mut problems: Vec<Problem> = Vec::new();
        let found = identities(&self.store, self.files.as_ref(), &mut problems)?;
        let is_same = found.iter().map(|(identity, _)| identity.chain());
        if is_same.eq(provider.identities().iter().map(|identity| identity.chain())) {
            return Ok(false);
        }
        for (_, certificate) in &found {
            let uri = certificate.application_uri().map(str::to_owned);
            if uri != self.application_uri {
                let ours = self.application_uri.as_deref().unwrap_or("none");
                let theirs = uri.as_deref().unwrap_or("none");
                return Err(refused(format!(
                    "the ApplicationUri of the new certificate is {theirs}, that of the server {ours}; restart the server"
                )));
            }
        }
        let found = found.into_iter().map(|(identity, _)| Arc::new(identity)).collect();
        match provider.renew(found) {
            Ok(()) => {}
            Err(CryptoError::NoOwnCertificate) => {
                let problem = problems.first().map_or(String::new(), |problem| {
                    format!(" ({}: {})", problem.path.display(), problem.what)
                });
                return Err(refused(format!(
                    "for some security policies there is no certificate any more{problem}; restart the server if that is \
                     intended"
                )));
            }
            Err(_) => {
                return Err(refused("replaced too often without a restart; restart the server".to_owned()));
            }
        }
        let count = self.count.fetch_add(1, Ordering::AcqRel) + 1;
        tracing::info!(count, "the server uses new certificates; channels with the old ones are closed");
        Ok(true)
    }
}

fn stamp(store: &Store, files: Option<&(PathBuf, PathBuf)>) -> Stamp {
    let Some((certificate, key)) = files else { return Stamp::Folder(store.own_fingerprint()) };
    Stamp::Files([certificate, key].map(|path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    }))
}
