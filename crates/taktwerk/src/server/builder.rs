//! Configures a server.

use super::identities::Identities;
use super::{
    EndpointConfig, Server, ServerOptions, UserTokenConfig, UserTokenKind, certificate_alarms, push,
};
use crate::alarms::AlarmFile;
use crate::history::{HistoryOpener, HistoryStore};
use crate::pki::{Pki, Renewal, TRUST_LIST_INTERVAL};
use core::net::SocketAddr;
use core::time::Duration;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::sync::Arc;
use taktwerk_crypto::policy::AsymmetricEncryption;
use taktwerk_crypto::{KeyLog, MessageSecurityMode, Provider, SecurityPolicy};
use taktwerk_net::capture::Capture;
use taktwerk_net::{AuditSink, Listener, SocketOptions, StartError, TurnTimes};
use taktwerk_pki::StoreValidator;
use taktwerk_server::ModelChangeEvents;
use taktwerk_server::audit::{AuditConfig, AuditRecord};
use taktwerk_server::config::BuildInfo;
use taktwerk_server::durable::DurableConfig;
use taktwerk_server::headroom::{Admit, Headroom, Prices};
use taktwerk_server::{Authorization, ConfigProblem, IdentityVerifier, Limits, ServerConfig};

/// Connections that the kernel queues until they are accepted; the kernel limits it to net.core.somaxconn.
const BACKLOG: i32 = 4096;

/// Settings of a server. Each has a default.
#[derive(Debug)]
#[must_use = "nothing happens before build()"]
pub struct ServerBuilder {
    application_name: String,
    application_uri: Option<String>,
    product_uri: Option<String>,
    build_info: BuildInfo,
    binds: Vec<String>,
    host_name: Option<String>,
    security: Vec<(SecurityPolicy, MessageSecurityMode)>,
    user_tokens: Vec<UserTokenConfig>,
    identities: Identities,
    allow_clear_passwords: bool,
    node_management: bool,
    model_changes: ModelChangeEvents,
    provider: Option<Arc<dyn Provider>>,
    trust: Option<Arc<StoreValidator>>,
    renewal: Option<Arc<Renewal>>,
    push_management: bool,
    usable_policies: Vec<SecurityPolicy>,
    authorization: Authorization,
    audit: AuditConfig,
    key_log: Option<Arc<dyn KeyLog>>,
    limits: Limits,
    headroom: Option<Arc<Headroom>>,
    shards: usize,
    history: Option<HistoryOpener>,
    durable: Option<DurableConfig>,
    alarm_file: Option<PathBuf>,
    certificate_limit: Duration,
    trust_list_frequency: Option<Duration>,
    options: ServerOptions,
}

impl Default for ServerBuilder {
    fn default() -> Self {
        Self {
            application_name: "Taktwerk server".to_owned(),
            application_uri: None,
            product_uri: None,
            build_info: BuildInfo::new("Taktwerk", "Taktwerk", env!("CARGO_PKG_VERSION"))
                .built_at(option_env!("SOURCE_DATE_EPOCH")),
            binds: Vec::new(),
            host_name: None,
            security: Vec::new(),
            user_tokens: Vec::new(),
            identities: Identities::default(),
            allow_clear_passwords: false,
            node_management: false,
            model_changes: ModelChangeEvents::default(),
            provider: None,
            trust: None,
            renewal: None,
            push_management: false,
            usable_policies: Vec::new(),
            authorization: Authorization::open(),
            audit: AuditConfig::default(),
            key_log: None,
            limits: Limits::default(),
            headroom: None,
            shards: 1,
            history: None,
            durable: None,
            alarm_file: None,
            certificate_limit: certificate_alarms::EXPIRES_BEFORE,
            trust_list_frequency: None,
            options: ServerOptions::default(),
        }
    }
}

impl ServerBuilder {
    /// The name for display in clients. Default: `Taktwerk server`.
    pub fn application_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.application_name);
        self
    }

    /// The globally unique URI of this instance, and the name of namespace 1. Default: derived from the names of host and
    /// application.
    pub fn application_uri(mut self, uri: &str) -> Self {
        self.application_uri = Some(uri.to_owned());
        self
    }

    /// The URI of the product. Default: `urn:taktwerk`.
    pub fn product_uri(mut self, uri: &str) -> Self {
        self.product_uri = Some(uri.to_owned());
        self
    }

    /// Manufacturer, name and version of the software, as shown to clients in ServerStatus. Default: those of this
    /// library.
    /// ```
    /// use taktwerk::server::{BuildInfo, Server};
    ///
    /// let info = BuildInfo::new("Example Ltd", "Boiler control", env!("CARGO_PKG_VERSION"));
    /// let builder = Server::builder().build_info(info.built_at(option_env!("SOURCE_DATE_EPOCH")));
    /// # drop(builder);
    /// ```
    pub fn build_info(mut self, info: BuildInfo) -> Self {
        self.build_info = info;
        self
    }

    /// Listens on `address:port` or `host:port`. Can be called several times. Default: `127.0.0.1:4840`. Port 0 chooses a free
    /// port.
    pub fn bind(mut self, address: &str) -> Self {
        self.binds.push(address.to_owned());
        self
    }

    /// The host name in endpoint URLs. Default: the first address. Answers to clients always contain the host that they used.
    pub fn host_name(mut self, name: &str) -> Self {
        self.host_name = Some(name.to_owned());
        self
    }

    /// Offers a security policy and mode. Can be called several times, the preferred one first. Default with [`Self::pki`]: all
    /// policies that its certificates serve, except deprecated ones. Default without it: None, on loopback addresses only; a
    /// server on other addresses cannot be built.
    pub fn security(mut self, policy: SecurityPolicy, mode: MessageSecurityMode) -> Self {
        self.security.push((policy, mode));
        self
    }

    /// The cryptographic library with the server's certificate and trust lists: needed for every policy but None.
    pub fn provider(mut self, provider: Arc<dyn Provider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Takes certificates and trust lists from a directory: needed for every policy but None. If no ApplicationUri was set, it is
    /// taken from the certificate. [`Self::security`] selects the offered policies. While the server runs, changes take effect:
    /// channels whose certificates are no longer trusted are closed; after a change of the server's certificates the new ones are
    /// used and all secured channels are closed.
    pub fn pki(mut self, pki: &Pki) -> Self {
        self.usable_policies = pki.policies();
        if self.application_uri.is_none() {
            self.application_uri = pki.application_uri().map(str::to_owned);
        }
        self.trust = Some(Arc::clone(pki.validator()));
        self.renewal = Some(Arc::clone(pki.renewal()));
        self.provider(pki.provider())
    }

    /// Lets clients with the role SecurityAdmin change the trust lists and renew the certificates of the [PKI](Self::pki) over an
    /// encrypted channel (push management, Part 12 §7.10). Default: disabled, and its Methods are not shown.
    pub fn push_management(mut self) -> Self {
        self.push_management = true;
        self
    }

    /// Accepts anonymous clients. Default: they are rejected. A server without any way to log on cannot be built.
    pub fn anonymous(mut self) -> Self {
        let anonymous = UserTokenConfig::anonymous();
        if !self.user_tokens.contains(&anonymous) {
            self.user_tokens.insert(0, anonymous);
        }
        self
    }

    /// Accepts users with name and password, if `verifier` accepts them.
    pub fn users(mut self, verifier: impl IdentityVerifier + 'static) -> Self {
        self.user_tokens.push(UserTokenConfig::user_name());
        self.identities.passwords = Some(Arc::new(verifier));
        self
    }

    /// Accepts users with certificates that are trusted for users, if `verifier` accepts them. Their clients prove possession of
    /// the key.
    pub fn certificate_users(mut self, verifier: impl IdentityVerifier + 'static) -> Self {
        self.user_tokens.push(UserTokenConfig::certificate());
        self.identities.certificates = Some(Arc::new(verifier));
        self
    }

    /// Accepts users with tokens of an authorization service, if `verifier` accepts them: it must check the token's signature,
    /// audience and lifetime. `issuer` tells clients where to get a token: a JSON object as in Part 6 §6.5.3.2, or empty.
    pub fn issued_tokens(mut self, issuer: &str, verifier: impl IdentityVerifier + 'static) -> Self {
        self.user_tokens.push(UserTokenConfig::issued_token(issuer));
        self.identities.tokens = Some(Arc::new(verifier));
        self
    }

    /// Allows passwords to be sent unencrypted where messages are not encrypted. Default: such a server cannot be built.
    pub fn allow_clear_passwords(mut self) -> Self {
        self.allow_clear_passwords = true;
        self
    }

    /// Lets clients add and delete nodes and references, subject to the permissions AddNode, DeleteNode, AddReference and
    /// RemoveReference. Nodes of the application can be deleted only if their RolePermissions allow it.
    pub fn node_management(mut self) -> Self {
        self.node_management = true;
        self
    }

    /// Which events report changed nodes and changed semantics: none, events without details, or events with the nodes. Default:
    /// events with the nodes.
    pub fn model_changes(mut self, events: ModelChangeEvents) -> Self {
        self.model_changes = events;
        self
    }

    /// Changes limits: `.limits(|limits| limits.sessions_max = 100)`.
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Number of threads that serve clients. Default: 1, enough for about 2 million values per second.
    pub fn shards(mut self, count: usize) -> Self {
        self.shards = count.clamp(1, taktwerk_server::space::SHARDS_MAX);
        self
    }

    /// Predicts the CPU use of the clients' subscriptions, from costs measured on this machine. `limit` is the maximum in cores.
    /// With [`Admit::Headroom`], demand beyond it is slowed down or rejected. Default: no prediction.
    pub fn headroom(mut self, prices: Prices, limit: f64, admit: Admit) -> Self {
        self.headroom = Some(Headroom::new(prices, limit, admit));
        self
    }

    /// How long a thread busy-polls after activity before it sleeps. Lower latency, higher CPU use. Default: not at all.
    pub fn busy_poll(mut self, span: Duration) -> Self {
        self.options.busy_poll = span;
        self
    }

    /// Measures the duration of the shards' event loop turns. Default: not measured.
    pub fn turn_times(mut self, times: Arc<TurnTimes>) -> Self {
        self.options.turn_times = Some(times);
        self
    }

    /// Pins the threads to these CPUs, in order. Default: not pinned.
    pub fn cpus(mut self, cpus: impl Into<Vec<usize>>) -> Self {
        self.options.cpus = cpus.into();
        self
    }

    /// Most threads for blocking methods. If that many hang, other blocking methods wait. Default: 8.
    pub fn callback_threads_max(mut self, count: usize) -> Self {
        self.options.callback_threads_max = count;
        self
    }

    /// Most threads for blocking sources. If that many hang, other blocking sources wait. Default: 64.
    pub fn source_threads_max(mut self, count: usize) -> Self {
        self.options.source_threads_max = count;
        self
    }

    /// Roles, their assignment to users, and their permissions. Default: everything that no node restricts is allowed.
    pub fn authorization(mut self, authorization: Authorization) -> Self {
        self.authorization = authorization;
        self
    }

    /// What clients' actions are audited, and the receiver of the audit records. A record corresponds to one AuditEvent. Default:
    /// no auditing.
    pub fn audit(mut self, what: AuditConfig, sink: Arc<dyn AuditSink>) -> Self {
        self.audit = what;
        self.options.audit = sink;
        self
    }

    /// Enables durable subscriptions, which survive restarts of the server and long absences of their clients (Part 4 §6.8).
    /// Default: disabled.
    pub fn durable_subscriptions(mut self, durable: DurableConfig) -> Self {
        self.durable = Some(durable);
        self
    }

    /// Stores the history of variables: see [`history`](crate::history). Default: no history.
    pub fn history(mut self, store: Arc<dyn HistoryStore>) -> Self {
        self.history = Some(store.into());
        self
    }

    /// Like [`Self::history`], with a store that may be unavailable when the server starts.
    pub fn history_when_available(mut self, store: HistoryOpener) -> Self {
        self.history = Some(store);
        self
    }

    /// Saves the states of alarms in a file, so that after a restart they are acknowledged, shelved and disabled as before. The
    /// file is written at most once a second, and when the server stops. Default: alarms begin in their initial states.
    pub fn alarm_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.alarm_file = Some(path.into());
        self
    }

    /// How long before the expiration of a server certificate the alarm CertificateExpired becomes active (Part 9 §5.8.24.7).
    /// Zero disables the alarm. Default: two weeks.
    pub fn certificate_alarm(mut self, before: Duration) -> Self {
        self.certificate_limit = before;
        self
    }

    /// How often the trust list of the [PKI](Self::pki) should be updated. The alarm TrustListOutOfDate becomes active when it
    /// has not changed for this time (Part 12 §7.8.2.11). Default: no such alarm.
    pub fn trust_list_alarm(mut self, frequency: Duration) -> Self {
        self.trust_list_frequency = Some(frequency);
        self
    }

    /// Passes the keys of all channels to `log`, if [`PkiBuilder::disclose_keys`](crate::pki::PkiBuilder::disclose_keys) was set
    /// too. For debugging only: with the keys, recorded traffic can be decrypted. Default: none.
    pub fn key_log(mut self, log: Arc<dyn KeyLog>) -> Self {
        self.key_log = Some(log);
        self
    }

    /// Records the traffic of all connections. Default: not recorded.
    pub fn capture(mut self, capture: Arc<Capture>) -> Self {
        self.options.capture = Some(capture);
        self
    }

    /// Sizes of the kernel's buffers per connection, and how long to wait for peers that do not read. Default: the kernel's
    /// sizes, and [`Limits::blocked_timeout`].
    pub fn socket(mut self, options: SocketOptions) -> Self {
        self.options.socket = options;
        self
    }

    /// Creates the server and binds its ports, so that port conflicts are detected here. Clients that connect wait until the
    /// server runs.
    ///
    /// # Errors
    /// An address does not exist, its port is in use, or the configuration is inconsistent
    /// ([`ConfigProblem`](taktwerk_server::ConfigProblem)).
    pub fn build(mut self) -> Result<Server, StartError> {
        if self.binds.is_empty() {
            self.binds.push("127.0.0.1:4840".to_owned());
        }
        let mut listeners = Vec::new();
        for bind in &self.binds {
            for address in resolve(bind)? {
                listeners.push(Listener::bind(address, BACKLOG)?);
            }
        }
        if self.security.is_empty() {
            self.security = self.default_security(&listeners)?;
        }
        if self.user_tokens.is_empty() {
            return Err(ConfigProblem::NobodyCanLogOn.into());
        }
        let config = self.config(&listeners);
        config.check()?;
        // A client that does not read is detected only when the kernel's buffer is full.
        let blocked_timeout = Duration::try_from_secs_f64(self.limits.blocked_timeout / 1e3);
        let user_timeout = &mut self.options.socket.user_timeout;
        *user_timeout = user_timeout.or(blocked_timeout.ok());
        if let Some(trust) = &self.trust {
            trust.watch(TRUST_LIST_INTERVAL).map_err(|source| StartError::TrustList { source })?;
        }
        let renewal = self.renewal.take();
        let (limit, frequency) = (self.certificate_limit, self.trust_list_frequency);
        let provider = Arc::clone(&config.provider);
        let (sink, uri) = (Arc::clone(&self.options.audit), config.application_uri.clone());
        let mut server = Server::new(config, self.shards, self.history, self.options, listeners);
        if let Some(path) = &self.alarm_file {
            let file = AlarmFile::open(path, server.space());
            server.keep_alarms(file.map_err(|source| StartError::Alarms { source })?);
        }
        // After the file of states, so that these alarms are restored too.
        let added = certificate_alarms::add(&server, &*provider, limit, self.trust.as_ref().zip(frequency));
        added.map_err(|error| StartError::Alarms { source: std::io::Error::other(error) })?;
        let source = |error| StartError::TrustList { source: std::io::Error::other(error) };
        let files = self.trust.as_ref().zip(renewal);
        push::leave_out(server.space(), self.push_management && files.is_some()).map_err(source)?;
        if let Some((trust, renewal)) = files {
            if self.push_management {
                push::install(&server, trust, Arc::clone(&renewal), Arc::clone(&sink)).map_err(source)?;
            }
            certificate_alarms::follow(&server, trust, renewal, &provider);
        }
        if let Some(trust) = self.trust.filter(|_| self.audit.sessions) {
            let space = Arc::clone(server.space());
            trust.on_overlooked(move |status, thumbprint| {
                let record = AuditRecord::overlooked(crate::space::now(), status, thumbprint);
                sink.record(&record);
                space.raise_audit(&record, &uri);
            });
        }
        Ok(server)
    }

    /// The default security policies.
    fn default_security(
        &self,
        listeners: &[Listener],
    ) -> Result<Vec<(SecurityPolicy, MessageSecurityMode)>, StartError> {
        let modes = [MessageSecurityMode::SignAndEncrypt, MessageSecurityMode::Sign];
        let secured =
            self.usable_policies.iter().flat_map(|policy| modes.iter().map(move |mode| (*policy, *mode)));
        let secured: Vec<_> = secured.collect();
        if !secured.is_empty() {
            return Ok(secured);
        }
        if listeners.iter().all(|listener| listener.address().ip().is_loopback()) {
            return Ok(vec![(SecurityPolicy::None, MessageSecurityMode::None)]);
        }
        Err(ConfigProblem::NothingOffered.into())
    }

    fn config(&mut self, listeners: &[Listener]) -> ServerConfig {
        let urls: Vec<String> = listeners
            .iter()
            .map(|listener| match &self.host_name {
                Some(host) => format!("opc.tcp://{host}:{}", listener.address().port()),
                None => format!("opc.tcp://{}", listener.address()),
            })
            .collect();
        let uri =
            self.application_uri.take().unwrap_or_else(|| default_application_uri(&self.application_name));
        let first_url = urls.first().map_or("", String::as_str);
        let mut config = ServerConfig::new(&self.application_name, &uri, first_url, crate::space::now());
        config.product_uri = self.product_uri.take().unwrap_or_else(|| "urn:taktwerk".to_owned());
        config.build_info = core::mem::take(&mut self.build_info);
        config.limits = self.limits.clone();
        config.headroom = self.headroom.take();
        config.authorization = self.authorization.clone();
        config.audit = self.audit.clone();
        config.key_log = self.key_log.take();
        if !self.identities.is_empty() {
            config.verifier = Some(Arc::new(core::mem::take(&mut self.identities)));
        }
        config.allow_clear_passwords = self.allow_clear_passwords;
        config.node_management = self.node_management;
        config.model_changes = self.model_changes;
        config.durable = self.durable.clone();
        if let Some(provider) = self.provider.take() {
            config.provider = provider;
        }
        if let Some(trust) = &self.trust {
            config.trust_list_changes = trust.change_counter();
        }
        if let Some(renewal) = &self.renewal {
            config.certificate_changes = renewal.counter();
        }
        let security = self.security.clone();
        config.endpoints = urls
            .iter()
            .flat_map(|url| security.iter().map(move |(policy, mode)| (url, *policy, *mode)))
            .map(|(url, policy, mode)| EndpointConfig {
                url: url.clone(),
                policy,
                mode,
                user_tokens: tokens(&self.user_tokens, policy, mode, &security),
            })
            .collect();
        config
    }
}

/// The user tokens of an endpoint. Where messages are not encrypted, secrets are encrypted with the endpoint's policy; on an
/// endpoint without security with the policy of another endpoint.
fn tokens(
    wanted: &[UserTokenConfig],
    policy: SecurityPolicy,
    mode: MessageSecurityMode,
    security: &[(SecurityPolicy, MessageSecurityMode)],
) -> Vec<UserTokenConfig> {
    let of_others = || {
        let mut policies = security.iter().map(|(policy, _)| *policy);
        // Ephemeral keys require an authenticated channel (Part 6 §6.8.2).
        policies.find(|policy| policy.info().asymmetric_encryption != AsymmetricEncryption::None)
    };
    let own = match mode {
        MessageSecurityMode::SignAndEncrypt => None,
        MessageSecurityMode::Sign => Some(policy),
        MessageSecurityMode::None => of_others(),
    };
    let protect = |token: &UserTokenConfig| match own {
        Some(own) if token.kind != UserTokenKind::Anonymous && token.policy.is_none() => {
            token.clone().with_policy(own)
        }
        _ => token.clone(),
    };
    wanted.iter().map(protect).collect()
}

fn resolve(bind: &str) -> Result<Vec<SocketAddr>, StartError> {
    let fail = |reason: String| StartError::Address { address: bind.to_owned(), reason };
    let addresses: Vec<SocketAddr> =
        bind.to_socket_addrs().map_err(|error| fail(error.to_string()))?.collect();
    if addresses.is_empty() {
        return Err(fail("the host name has no address".to_owned()));
    }
    Ok(addresses)
}

/// The default ApplicationUri: `urn:<host>:<application>`, with characters replaced that a URN does not allow.
#[must_use]
pub fn default_application_uri(application_name: &str) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let plain = |text: &str| -> String {
        text.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '-' }).collect()
    };
    let host = if host.is_empty() { "localhost".to_owned() } else { plain(host) };
    format!("urn:{host}:{}", plain(application_name))
}
