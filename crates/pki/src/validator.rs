//! Decides from the files of a store whether a certificate is trusted, and detects changes of the files.

use crate::in_process::InProcess;
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

/// Interval between checks of the files while certificates are validated.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Called after a trust list has changed, with the number of the change: certificates in use must be validated again (Part 12
/// §7.8.2.5).
type Hook = Box<dyn Fn(u64) + Send + Sync>;

/// Called whenever the watching thread checks the files.
type LookHook = Box<dyn Fn() + Send + Sync>;

/// Called with a finding that the options suppress, and the certificate's SHA-1 in hexadecimal digits.
type OverlookedHook = Box<dyn Fn(StatusCode, &str) + Send + Sync>;

/// A [`CertificateValidator`] over a [`Store`].
///
/// Changes of the files are detected within a second, at the next validation or by [`StoreValidator::watch`]. Rejected
/// certificates are kept in `rejected/certs`, and the log says why they were rejected.
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
    in_process: Mutex<Vec<Weak<InProcess>>>,
    rejected: RejectedStore,
    rejected_users: RejectedStore,
    log: Mutex<Limit>,
    server_log: Mutex<Limit>,
    /// Separate from `log`: anyone can cause rejections, and they must not hide suppressed findings.
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
    /// Reads the trust lists. Broken files are logged and ignored.
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
            in_process: Mutex::default(),
            log: Mutex::new(Limit::new()),
            server_log: Mutex::new(Limit::new()),
            overlooked_log: Mutex::new(Limit::new()),
            store,
        }
    }

    /// Trusts a server's certificate permanently at its first use if nothing else is wrong with it. It is not a first use if
    /// another certificate with the same ApplicationUri is already trusted.
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

    /// The trust list of a group as last read.
    #[must_use]
    pub fn trust_list(&self, group: Group) -> Arc<TrustList> {
        let lists = self.lists.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(match group {
            Group::Applications => &lists.applications,
            Group::Users => &lists.users,
        })
    }

    /// Trusts the certificates of a client in this process as long as `client` lives, whatever the trust list contains.
    pub fn trust_in_process(&self, client: &Arc<InProcess>) {
        let mut all = self.in_process.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(client));
    }

    fn is_in_process(&self, chain: &[u8], purpose: &CertificatePurpose) -> bool {
        let all = self.in_process.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).any(|client| client.includes(chain, purpose))
    }

    /// Calls `hook` after every change of a trust list.
    pub fn on_change(&self, hook: impl Fn(u64) + Send + Sync + 'static) {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(hook));
    }

    /// Calls `hook` whenever the thread of [`Self::watch`] checks the files, for users of other files of the store.
    pub fn on_look(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(hook));
    }

    /// Calls `hook` with a finding that was suppressed by the options, and the certificate's SHA-1 in hexadecimal digits. The
    /// rate limit of the log applies.
    pub fn on_overlooked(&self, hook: impl Fn(StatusCode, &str) + Send + Sync + 'static) {
        self.overlooked.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(hook));
    }

    /// How often the trust lists have changed since they were first read.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The counter of changes. A server validates the certificates of its channels again when it increases.
    #[must_use]
    pub fn change_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.changes)
    }

    /// Checks the files now, and reads them if they have changed. Returns whether they had.
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

    /// Checks the files every `interval` on a separate thread until the validator is dropped. Repeated calls start no further
    /// thread.
    ///
    /// # Errors
    /// The thread cannot be started.
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

    /// Validates without side effects: no logging, no files, no trust.
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

    /// Validates as [`CertificateValidator::validate`] does, using all information about the peer.
    ///
    /// # Errors
    /// The certificate is refused.
    pub fn check(&self, chain: &[u8], request: &ValidationRequest<'_>) -> Result<(), CertificateRefusal> {
        if self.is_in_process(chain, request.purpose) {
            return Ok(());
        }
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
        // A client returns the refusal as its error. A server tells its peer little, so the log must say why. Separate limits:
        // servers that are rejected repeatedly must not silence the log about clients.
        let is_of_server = matches!(request.purpose, CertificatePurpose::Server { .. });
        let limit = if is_of_server { &self.server_log } else { &self.log };
        if let Some(passed_over) = pass(limit) {
            let (status, reason) = (refusal.status(), refusal.reason());
            let kept = kept.map(|path| path.display().to_string());
            if is_of_server {
                tracing::info!(%status, reason, kept, passed_over, "a certificate was rejected");
            } else {
                tracing::warn!(%status, reason, kept, passed_over, "a certificate was rejected");
            }
        }
        Err(refusal)
    }

    /// Logs the suppressed findings of an accepted certificate (Part 4 §6.1.3).
    fn audit(&self, report: &ValidationReport) {
        for finding in report.findings().iter().filter(|finding| finding.suppressed) {
            if pass(&self.overlooked_log).is_some() {
                let thumbprint = report.chain().first().map(digits).unwrap_or_default();
                let hooks = self.overlooked.lock().unwrap_or_else(PoisonError::into_inner);
                hooks.iter().for_each(|hook| hook(finding.status, &thumbprint));
                tracing::warn!(
                    target: "taktwerk::audit",
                    event = finding.step.audit_event_type(),
                    status = %finding.status,
                    reason = finding.sentence(),
                    "a fault of a certificate was ignored, as the options say"
                );
            }
        }
    }

    /// Trust on first use: only for servers, only if the missing trust is the only fault, and only once per application.
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
                    "the server's certificate is now trusted (first use)"
                );
                self.refresh();
                Ok(())
            }
            Err(error) => {
                let reason = format!("the certificate could not be added to the trust list: {error}");
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
        // Compute the fingerprint first: a change during reading is then detected next time.
        let fingerprints = fingerprints(store);
        let mut problems: Vec<Problem> = Vec::new();
        let applications = Arc::new(store.trust_list(Group::Applications, &mut problems));
        let users = Arc::new(store.trust_list(Group::Users, &mut problems));
        for problem in problems {
            tracing::warn!(path = %problem.path.display(), what = problem.what, "a file of the certificate store is ignored");
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

/// Whether a line may be logged, and how many were suppressed since the last one.
fn pass(limit: &Mutex<Limit>) -> Option<u64> {
    limit.lock().unwrap_or_else(PoisonError::into_inner).pass(Instant::now())
}

/// The wall-clock time, against which validity is checked.
fn now() -> UtcTime {
    UtcTime::from_unix(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// The first certificate of a peer's chain, for messages.
#[must_use]
pub fn first_certificate(chain: &[u8]) -> Option<Certificate> {
    split_chain(chain).ok()?.into_iter().next()
}
