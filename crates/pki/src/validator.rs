//! Decides by the files of a store whether a certificate is trusted, and notices when they change.

use crate::layout::{Folder, Group};
use crate::rejected::{Limit, RejectedStore};
use crate::scan::Problem;
use crate::store::Store;
use core::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant, SystemTime};
use taktwerk_crypto::certificate::{
    AwsLcVerifier, Certificate, Step, TrustList, Validation, ValidationOptions, ValidationReport,
    ValidationRequest, split_chain, thumbprint,
};
use taktwerk_crypto::{CertificatePurpose, CertificateRefusal, CertificateValidator, CryptoError};
use taktwerk_types::{StatusCode, UtcTime};

/// How often the files are looked at while certificates are being checked.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Called after a trust list has changed, with the number of the change: certificates that are in use have to be
/// looked at again (Part 12 §7.8.2.5).
type Hook = Box<dyn Fn(u64) + Send + Sync>;

/// Called whenever the watching thread looks at the files.
type LookHook = Box<dyn Fn() + Send + Sync>;

/// Called with a finding that the options overlook, and the certificate's SHA-1 in hexadecimal digits.
type OverlookedHook = Box<dyn Fn(StatusCode, &str) + Send + Sync>;

/// A [`CertificateValidator`] over a [`Store`].
///
/// Files that change are noticed within a second, at the next check or by [`StoreValidator::watch`]. Who is refused is
/// kept in `rejected/certs`, and the log says why.
pub struct StoreValidator {
    store: Store,
    options: ValidationOptions,
    first_use: bool,
    lists: RwLock<Lists>,
    looked: Mutex<Instant>,
    changes: Arc<AtomicU64>,
    hooks: Mutex<Vec<Hook>>,
    looks: Mutex<Vec<LookHook>>,
    overlooked: Mutex<Vec<OverlookedHook>>,
    is_watching: AtomicBool,
    rejected: RejectedStore,
    rejected_users: RejectedStore,
    log: Mutex<Limit>,
    /// Apart, so that refusals, which anybody can cause, do not hide what is overlooked.
    overlooked_log: Mutex<Limit>,
}

#[derive(Debug, Clone)]
struct Lists {
    applications: Arc<TrustList>,
    users: Arc<TrustList>,
    fingerprints: (u64, u64),
}

impl fmt::Debug for StoreValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreValidator").field("store", &self.store).finish_non_exhaustive()
    }
}

impl StoreValidator {
    /// Reads the trust lists. What is broken is logged and does not count.
    #[must_use]
    pub fn new(store: Store, options: ValidationOptions) -> Self {
        let lists = Lists::read(&store);
        let rejected = |group| RejectedStore::new(store.folder(group, Folder::Rejected));
        Self {
            rejected: rejected(Group::Applications),
            rejected_users: rejected(Group::Users),
            options,
            first_use: false,
            lists: RwLock::new(lists),
            looked: Mutex::new(Instant::now()),
            changes: Arc::default(),
            hooks: Mutex::new(Vec::new()),
            looks: Mutex::new(Vec::new()),
            overlooked: Mutex::new(Vec::new()),
            is_watching: AtomicBool::new(false),
            log: Mutex::new(Limit::new()),
            overlooked_log: Mutex::new(Limit::new()),
            store,
        }
    }

    /// Trusts a server's certificate for good when it is seen for the first time and nothing else is wrong with it.
    /// A second certificate with the ApplicationUri of one that is trusted already is not a first use.
    #[must_use]
    pub fn trust_on_first_use(mut self, on: bool) -> Self {
        self.first_use = on;
        self
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The trust list of a group as it was last read.
    #[must_use]
    pub fn trust_list(&self, group: Group) -> Arc<TrustList> {
        let lists = self.lists.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(match group {
            Group::Applications => &lists.applications,
            Group::Users => &lists.users,
        })
    }

    /// Calls `hook` after every change of a trust list.
    pub fn on_change(&self, hook: impl Fn(u64) + Send + Sync + 'static) {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(hook));
    }

    /// Calls `hook` whenever the thread of [`Self::watch`] looks at the files: for those who watch other files of the store.
    pub fn on_look(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(hook));
    }

    /// Calls `hook` with what is wrong with a certificate that is taken nevertheless because the options say so, and with
    /// the certificate's SHA-1 in hexadecimal digits. Not more often than the log is written.
    pub fn on_overlooked(&self, hook: impl Fn(StatusCode, &str) + Send + Sync + 'static) {
        self.overlooked.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(hook));
    }

    /// How often the trust lists have changed since they were first read.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Counts the changes for others: a server looks at the certificates of its channels again when it moves.
    #[must_use]
    pub fn change_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.changes)
    }

    /// Looks at the files now, and reads them if they have changed. Returns whether they had.
    pub fn refresh(&self) -> bool {
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let fingerprints = fingerprints(&self.store);
        if self.lists.read().unwrap_or_else(PoisonError::into_inner).fingerprints == fingerprints {
            return false;
        }
        let lists = Lists::read(&self.store);
        *self.lists.write().unwrap_or_else(PoisonError::into_inner) = lists;
        let change = self.changes.fetch_add(1, Ordering::AcqRel) + 1;
        tracing::info!(store = %self.store.root().display(), change, "the trust list has changed");
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|hook| hook(change));
        true
    }

    fn refresh_if_due(&self) {
        let due = self.looked.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= LOOK_INTERVAL;
        if due {
            self.refresh();
        }
    }

    /// Looks at the files every `interval` from a thread of its own, until the validator is dropped. There is one such
    /// thread, however often this is called.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn watch(self: &Arc<Self>, interval: Duration) -> std::io::Result<()> {
        if self.is_watching.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let validator: Weak<Self> = Arc::downgrade(self);
        let thread = std::thread::Builder::new().name("pki-watch".to_owned()).spawn(move || {
            loop {
                std::thread::sleep(interval);
                let Some(validator) = validator.upgrade() else { break };
                validator.refresh();
                validator.looks.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|hook| hook());
            }
        });
        thread.inspect_err(|_| self.is_watching.store(false, Ordering::Release))?;
        Ok(())
    }

    /// Validates without consequences: nothing is logged, kept or trusted.
    #[must_use]
    pub fn report(
        &self,
        chain: &[u8],
        request: &ValidationRequest<'_>,
        exhaustive: bool,
    ) -> ValidationReport {
        let group = group_of(request.purpose);
        let trust = self.trust_list(group);
        let options = self.options;
        Validation { trust: &trust, verifier: &AwsLcVerifier, options, now: now(), exhaustive }
            .run(chain, request)
    }

    /// Validates as [`CertificateValidator::validate`] does, with everything that is known of the peer.
    ///
    /// # Errors
    /// The refusal.
    pub fn check(&self, chain: &[u8], request: &ValidationRequest<'_>) -> Result<(), CertificateRefusal> {
        self.refresh_if_due();
        let report = self.report(chain, request, false);
        let Err(refusal) = report.outcome() else {
            self.audit(&report);
            return Ok(());
        };
        let Err(refusal) = self.first_use(chain, request, refusal) else {
            self.audit(&report);
            return Ok(());
        };
        let kept = match group_of(request.purpose) {
            Group::Applications => self.rejected.offer(chain, request.purpose.address()),
            Group::Users => self.rejected_users.offer(chain, request.purpose.address()),
        };
        if let Some(passed_over) = self.pass_log() {
            tracing::warn!(
                status = %refusal.status(),
                reason = refusal.reason(),
                kept = kept.map(|path| path.display().to_string()),
                passed_over,
                "a certificate was refused"
            );
        }
        Err(refusal)
    }

    fn pass_log(&self) -> Option<u64> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).pass(Instant::now())
    }

    /// What is overlooked of a certificate that is taken is said nevertheless (Part 4 §6.1.3).
    fn audit(&self, report: &ValidationReport) {
        for finding in report.findings().iter().filter(|finding| finding.suppressed) {
            let mut limit = self.overlooked_log.lock().unwrap_or_else(PoisonError::into_inner);
            let passes = limit.pass(Instant::now()).is_some();
            drop(limit);
            if passes {
                let thumbprint = report.chain().first().map(digits).unwrap_or_default();
                let hooks = self.overlooked.lock().unwrap_or_else(PoisonError::into_inner);
                hooks.iter().for_each(|hook| hook(finding.status, &thumbprint));
                tracing::warn!(
                    target: "taktwerk::audit",
                    event = finding.step.audit_event_type(),
                    status = %finding.status,
                    reason = finding.sentence(),
                    "overlooked as the options say"
                );
            }
        }
    }

    /// Trust on first use: only for servers, only if being unknown is all that is wrong, and only once per
    /// application.
    fn first_use(
        &self,
        chain: &[u8],
        request: &ValidationRequest<'_>,
        refusal: CertificateRefusal,
    ) -> Result<(), CertificateRefusal> {
        let is_server = matches!(request.purpose, CertificatePurpose::Server { .. });
        if !self.first_use || !is_server || refusal.status() != StatusCode::BAD_CERTIFICATE_UNTRUSTED {
            return Err(refusal);
        }
        let all = self.report(chain, request, true);
        let mut others = all.findings().iter().filter(|it| !it.suppressed && it.step != Step::TrustList);
        if let Some(other) = others.next() {
            return Err(CertificateRefusal::new(other.status, other.sentence()));
        }
        let Some(certificate) = all.chain().first() else { return Err(refusal) };
        if let Some(known) = self.same_application(certificate) {
            let reason = format!(
                "another certificate is already trusted for {}: {}; this is not the first use",
                certificate.application_uri().unwrap_or_default(),
                known.subject_text()
            );
            return Err(CertificateRefusal::new(StatusCode::BAD_CERTIFICATE_UNTRUSTED, reason));
        }
        match self.store.trust(Group::Applications, certificate) {
            Ok(path) => {
                tracing::warn!(
                    path = %path.display(),
                    subject = certificate.subject_text(),
                    "a server's certificate is trusted on its first use"
                );
                self.refresh();
                Ok(())
            }
            Err(error) => {
                let reason = format!("it could not be kept as trusted: {error}");
                Err(CertificateRefusal::new(StatusCode::BAD_CERTIFICATE_UNTRUSTED, reason))
            }
        }
    }

    fn same_application(&self, certificate: &Certificate) -> Option<Certificate> {
        let uri = certificate.application_uri()?;
        let trust = self.trust_list(Group::Applications);
        trust.trusted().find(|known| known.application_uri() == Some(uri)).cloned()
    }
}

impl CertificateValidator for StoreValidator {
    fn validate(&self, chain_der: &[u8], purpose: &CertificatePurpose) -> Result<(), CryptoError> {
        self.check(chain_der, &ValidationRequest::new(purpose))
            .map_err(|refusal| CryptoError::Certificate(Box::new(refusal)))
    }
}

impl Lists {
    fn read(store: &Store) -> Self {
        // The fingerprint first: a change while we read is noticed the next time.
        let fingerprints = fingerprints(store);
        let mut problems: Vec<Problem> = Vec::new();
        let applications = Arc::new(store.trust_list(Group::Applications, &mut problems));
        let users = Arc::new(store.trust_list(Group::Users, &mut problems));
        for problem in problems {
            tracing::warn!(path = %problem.path.display(), what = problem.what, "a file of the PKI does not count");
        }
        Self { applications, users, fingerprints }
    }
}

fn fingerprints(store: &Store) -> (u64, u64) {
    (store.fingerprint(Group::Applications), store.fingerprint(Group::Users))
}

fn group_of(purpose: &CertificatePurpose) -> Group {
    match purpose {
        CertificatePurpose::User { .. } => Group::Users,
        _ => Group::Applications,
    }
}

/// A certificate's SHA-1 in hexadecimal digits.
fn digits(certificate: &Certificate) -> String {
    thumbprint(certificate.der()).iter().map(|byte| format!("{byte:02X}")).collect()
}

/// The time by which certificates are valid: the wall clock's.
fn now() -> UtcTime {
    UtcTime::from_unix(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// The first certificate of what a peer sent, for messages.
#[must_use]
pub fn first_certificate(chain: &[u8]) -> Option<Certificate> {
    split_chain(chain).ok()?.into_iter().next()
}
