//! The sections of a configuration file. All settings have safe defaults.

use super::alarms::AlarmsSection;
use super::shares::FilesSection;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Spanned;

/// A whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `[server]`
    pub server: ServerSection,
    /// `[security]`
    pub security: SecuritySection,
    /// `[identities]`
    pub identities: IdentitiesSection,
    /// `[[role]]`
    pub role: Vec<RoleSection>,
    /// `[permissions]`
    pub permissions: PermissionsSection,
    /// `[[namespace]]`
    pub namespace: Vec<NamespaceSection>,
    /// `[node_management]`
    pub node_management: NodeManagementSection,
    /// `[nodeset_methods]`
    pub nodeset_methods: NodeSetMethodsSection,
    /// `[events]`
    pub events: EventsSection,
    /// `[limits]`
    pub limits: LimitsSection,
    /// `[headroom]`
    pub headroom: HeadroomSection,
    /// `[audit]`
    pub audit: AuditSection,
    /// `[pubsub]`
    pub pubsub: PubSubSection,
    /// `[web]`
    pub web: WebSection,
    /// `[otlp]`
    pub otlp: OtlpSection,
    /// `[history]`
    pub history: HistorySection,
    /// `[gateway]`, which the gateway reads itself
    pub gateway: Option<IgnoredAny>,
    /// `[[source]]`, likewise
    pub source: Vec<IgnoredAny>,
    /// `[[tag]]`, likewise
    pub tag: Vec<IgnoredAny>,
    /// `[[template]]`, likewise
    pub template: Vec<IgnoredAny>,
    /// `[[instance]]`, likewise
    pub instance: Vec<IgnoredAny>,
    /// `[[destination]]`, likewise
    pub destination: Vec<IgnoredAny>,
    /// `[lease]`, likewise
    pub lease: Option<IgnoredAny>,
    /// `[alarms]`
    pub alarms: AlarmsSection,
    /// `[[files]]`
    pub files: Vec<FilesSection>,
    /// `[durable_subscriptions]`
    pub durable_subscriptions: DurableSection,
}

/// Names and listen addresses of the server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSection {
    /// The name that clients display.
    pub application_name: String,
    /// The globally unique URI of this instance.
    pub application_uri: Option<String>,
    /// Addresses with ports.
    pub bind: Vec<Spanned<String>>,
    /// The host in endpoint URLs.
    pub host_name: Option<String>,
    /// Threads that serve clients.
    pub threads: usize,
    /// NodeSet2 files.
    pub nodesets: Vec<PathBuf>,
    /// Whether the simulated demo plant is added.
    pub simulated_plant: bool,
}

impl Default for ServerSection {
    fn default() -> Self {
        Self {
            application_name: "Taktwerk server".to_owned(),
            application_uri: None,
            bind: vec![Spanned::new(0..0, "127.0.0.1:4840".to_owned())],
            host_name: None,
            threads: 1,
            nodesets: Vec::new(),
            simulated_plant: false,
        }
    }
}

/// Security of messages.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecuritySection {
    /// The directory with the server's certificates and its trust list.
    pub pki: PathBuf,
    /// The policies besides None. Default: all that match the certificates.
    pub policies: Option<Vec<Spanned<String>>>,
    /// The modes of each policy.
    pub modes: Vec<Spanned<String>>,
    /// Offers SecurityPolicy None.
    pub none: bool,
    /// Allows the role SecurityAdmin to change trust lists and certificates (push management).
    pub push_management: bool,
}

impl Default for SecuritySection {
    fn default() -> Self {
        Self {
            pki: PathBuf::from("pki"),
            policies: None,
            modes: vec![Spanned::new(0..0, "SignAndEncrypt".to_owned())],
            none: false,
            push_management: false,
        }
    }
}

/// Which users can log on.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IdentitiesSection {
    /// Allows clients without a user.
    pub anonymous: bool,
    /// The file with users and password hashes.
    pub users_file: Option<PathBuf>,
    /// Allows users with a certificate that is trusted in the `users` directory of the PKI.
    pub certificates: bool,
    /// Allows unencrypted passwords and tokens.
    pub clear_passwords: bool,
    /// `[identities.jwt]`
    pub jwt: Option<JwtSection>,
}

/// The authorization service whose tokens are accepted.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JwtSection {
    /// The `iss` of its tokens.
    pub issuer: String,
    /// The `aud` of tokens for this server. Default: its ApplicationUri.
    pub audience: Option<String>,
    /// Files with the service's public keys.
    pub keys: Vec<PathBuf>,
    /// The allowed signature algorithms. Default: all supported ones.
    pub algorithms: Option<Vec<Spanned<String>>>,
    /// Allowed difference of the clocks, in seconds.
    #[serde(default = "leeway")]
    pub leeway: u32,
    /// The claim with roles.
    #[serde(default = "roles_claim")]
    pub roles_claim: String,
    /// The claim with groups.
    #[serde(default = "groups_claim")]
    pub groups_claim: String,
    /// For clients: the base URL of the service. Default: the issuer.
    pub authority_url: Option<String>,
    /// For clients: the profile of the service.
    pub authority_profile_uri: Option<String>,
    /// For clients: where to request tokens.
    pub token_endpoint: Option<String>,
    /// For clients: the scopes to request.
    #[serde(default)]
    pub scopes: Vec<String>,
}

fn leeway() -> u32 {
    30
}

fn roles_claim() -> String {
    "roles".to_owned()
}

fn groups_claim() -> String {
    "groups".to_owned()
}

/// A role: its identities and its restrictions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleSection {
    /// A well-known role, or a new one in the server's own namespace.
    pub name: Spanned<String>,
    /// Replaces the identities that the specification grants the role.
    #[serde(default)]
    pub replace: bool,
    /// Clients without a user.
    #[serde(default)]
    pub anonymous: bool,
    /// All users.
    #[serde(default)]
    pub authenticated_users: bool,
    /// Every application with a trusted certificate, on a signed channel.
    #[serde(default)]
    pub trusted_applications: bool,
    /// Names of users.
    #[serde(default)]
    pub users: Vec<String>,
    /// ApplicationUris, on a signed channel.
    #[serde(default)]
    pub applications: Vec<String>,
    /// Thumbprints of users' certificates.
    #[serde(default)]
    pub thumbprints: Vec<Spanned<String>>,
    /// Subjects of users' certificates or of their issuers.
    #[serde(default)]
    pub subjects: Vec<String>,
    /// Roles in access tokens.
    #[serde(default)]
    pub token_roles: Vec<String>,
    /// Groups in access tokens.
    #[serde(default)]
    pub token_groups: Vec<String>,
    /// Only for clients with these ApplicationUris.
    pub only_applications: Option<Vec<String>>,
    /// For all clients except those with these ApplicationUris.
    pub not_applications: Option<Vec<String>>,
    /// Only for channels with these modes.
    pub only_modes: Option<Vec<Spanned<String>>>,
}

/// Default permissions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PermissionsSection {
    /// Permissions of nodes without permissions of their own or of their namespace.
    pub unspecified: Unspecified,
}

/// Permissions of nodes without permissions of their own or of their namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unspecified {
    /// The suggestion of Part 3 §4.9.2 for each well-known role.
    #[default]
    Suggested,
    /// All permissions for all roles.
    Open,
}

/// Permissions in a namespace.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamespaceSection {
    /// The namespace.
    pub uri: Spanned<String>,
    /// Permissions by role.
    #[serde(default)]
    pub permissions: BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
    /// AccessRestrictions.
    #[serde(default)]
    pub restrictions: Vec<Spanned<String>>,
}

/// Whether clients may change the structure of the address space.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NodeManagementSection {
    /// Offers AddNodes, DeleteNodes, AddReferences and DeleteReferences.
    pub enabled: bool,
    /// Maximum number of added nodes, for all clients together.
    pub nodes: usize,
    /// Maximum memory of the added nodes, in megabytes.
    pub megabytes: usize,
}

impl Default for NodeManagementSection {
    fn default() -> Self {
        let limits = taktwerk_server::Limits::default();
        Self { enabled: false, nodes: limits.added_nodes_max, megabytes: limits.added_node_bytes_max >> 20 }
    }
}

/// Whether administrators may load NodeSets with Methods.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NodeSetMethodsSection {
    /// Offers LoadNodeSet and UnloadNamespace.
    pub enabled: bool,
    /// The folder that keeps loaded NodeSets over a restart. Without it, they are lost.
    pub folder: Option<PathBuf>,
    /// Longest NodeSet, in megabytes.
    pub megabytes: usize,
}

impl Default for NodeSetMethodsSection {
    fn default() -> Self {
        Self { enabled: false, folder: None, megabytes: 16 }
    }
}

/// Events about changes in the server itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EventsSection {
    /// Events about changed nodes, and about Properties that change the meaning of values.
    pub model_changes: ModelChanges,
}

/// Content of model change events (Part 3 §9.32, §9.33).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelChanges {
    /// Nothing.
    Off,
    /// Only that something has changed.
    Brief,
    /// Which nodes have.
    #[default]
    Full,
}

impl From<ModelChanges> for taktwerk_server::ModelChangeEvents {
    fn from(changes: ModelChanges) -> Self {
        match changes {
            ModelChanges::Off => Self::Off,
            ModelChanges::Brief => Self::Brief,
            ModelChanges::Full => Self::Full,
        }
    }
}

/// Limits that installations commonly change.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSection {
    /// Maximum number of sessions.
    pub sessions: usize,
    /// Maximum session timeout, in seconds.
    pub session_timeout: f64,
    /// Maximum number of subscriptions per session.
    pub subscriptions_per_session: u32,
    /// Maximum number of monitored items per subscription.
    pub monitored_items_per_subscription: u32,
    /// Maximum number of monitored items of the server. Above a million, the memory for their messages grows in
    /// proportion.
    pub monitored_items: u32,
    /// Minimum publishing interval, in milliseconds.
    pub publishing_interval_min: f64,
}

impl Default for LimitsSection {
    fn default() -> Self {
        let limits = taktwerk_server::Limits::default();
        Self {
            sessions: 1000,
            session_timeout: limits.session_timeout_max / 1e3,
            subscriptions_per_session: limits.subscriptions.subscriptions_per_session_max,
            monitored_items_per_subscription: limits.subscriptions.monitored_items_per_subscription_max,
            monitored_items: limits.subscriptions.monitored_items_max,
            publishing_interval_min: limits.subscriptions.publishing_interval_min,
        }
    }
}

/// Admission control by predicted CPU use.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HeadroomSection {
    /// A cost model of this machine, as written by `taktwerk model fit -o FILE`. Without it, nothing is predicted.
    pub calibration: Option<PathBuf>,
    /// What to do with requests that exceed the limit.
    pub admit: AdmitSetting,
    /// Maximum share of the CPU of all threads.
    pub limit: f64,
}

impl Default for HeadroomSection {
    fn default() -> Self {
        Self { calibration: None, admit: AdmitSetting::Always, limit: 0.8 }
    }
}

/// What to do with requests that exceed the limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AdmitSetting {
    /// Accept them.
    #[default]
    Always,
    /// Raise publishing intervals and refuse items.
    Headroom,
}

/// Which client actions are audited.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditSection {
    /// Channels, certificates and sessions.
    pub sessions: bool,
    /// Writes and method calls.
    pub updates: bool,
    /// Maximum number of records per second and class; further records are only counted.
    pub records_per_second: u32,
    /// A file with one JSON object per line.
    pub file: Option<PathBuf>,
    /// A new file is started after this many megabytes …
    pub megabytes_per_file: u32,
    /// … or hours.
    pub hours_per_file: u32,
    /// Number of files to keep, including the current one.
    pub files: usize,
}

impl Default for AuditSection {
    fn default() -> Self {
        Self {
            sessions: true,
            updates: true,
            records_per_second: 1000,
            file: None,
            megabytes_per_file: 64,
            hours_per_file: 24,
            files: 30,
        }
    }
}

/// Dashboard and metrics. Disabled without `bind`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebSection {
    /// The listen address.
    pub bind: Option<Spanned<String>>,
    /// The certificate chain for HTTPS, PEM.
    pub certificate: Option<PathBuf>,
    /// Its key, PEM.
    pub key: Option<PathBuf>,
    /// Additional host names in the URLs of browsers.
    pub host_names: Vec<String>,
    /// Whether the dashboard is shown without login, with the permissions of Anonymous. Default: only on loopback.
    pub anonymous: Option<bool>,
    /// A file with the token for `/metrics`. Without it, `/metrics` is available on loopback only, without a token.
    pub metrics_token_file: Option<PathBuf>,
}

/// Metrics and traces that are sent to a collector.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OtlpSection {
    /// URL of the collector. Without it, nothing is sent.
    pub url: Option<Spanned<String>>,
    /// Seconds between two exports.
    pub every_seconds: u32,
    /// Whether metrics are sent.
    pub metrics: bool,
    /// Whether traces are sent.
    pub traces: bool,
    /// Whether traces contain a span for each service request.
    pub services: bool,
    /// `service.name`. Default: the application name.
    pub service_name: Option<String>,
    /// A file with HTTP headers, one per line.
    pub headers_file: Option<PathBuf>,
    /// Certificate authorities for HTTPS, PEM. Default: those of the system.
    pub ca_file: Option<PathBuf>,
}

impl Default for OtlpSection {
    fn default() -> Self {
        Self {
            url: None,
            every_seconds: 10,
            metrics: true,
            traces: false,
            services: false,
            service_name: None,
            headers_file: None,
            ca_file: None,
        }
    }
}

/// PubSub. Disabled without a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PubSubSection {
    /// The initial configuration: TOML, or the standard binary file.
    pub configuration: Option<PathBuf>,
    /// The file for changes by clients. If it exists, it is read instead of `configuration`.
    pub save_to: Option<PathBuf>,
    /// Files with keys of security groups without a key service, created by `taktwerk pubsub keys`.
    pub keys: Vec<PathBuf>,
    /// Answers Actions even if the configuration has no message security for them.
    pub unsecured_actions: bool,
    /// Sends passwords in broker URLs also without TLS to other machines.
    pub allow_plaintext_password: bool,
    /// The file for the sequence numbers of received secured messages, so that replayed messages are rejected after a
    /// restart. Each Action responder has its own file beside it, with another suffix.
    pub replay_file: Option<PathBuf>,
}

/// Durable subscriptions and their limits.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DurableSection {
    /// The SQLite file. Without it, durable subscriptions are disabled.
    pub file: Option<PathBuf>,
    /// Maximum lifetime without the client, in hours.
    pub lifetime_hours: u32,
    /// Maximum queue size of an item, in values.
    pub queue_size: u32,
    /// Maximum memory for the durable subscriptions of one user, in megabytes.
    pub megabytes_per_user: usize,
    /// Interval at which queues are written, in milliseconds.
    pub write_interval: u32,
}

impl Default for DurableSection {
    fn default() -> Self {
        Self {
            file: None,
            lifetime_hours: 168,
            queue_size: 100_000,
            megabytes_per_user: 256,
            write_interval: 100,
        }
    }
}

/// Which history is recorded, and where it is stored.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HistorySection {
    /// The SQLite file. Without it and without a database, nothing is recorded.
    pub file: Option<PathBuf>,
    /// The PostgreSQL database, instead of a file: `postgresql://user@host:5432/database`.
    pub postgresql: Option<Spanned<String>>,
    /// The file with the password of the database's user, read for each connection.
    pub password_file: Option<PathBuf>,
    /// Whether connections to the database use TLS. Default: only connections to other machines.
    pub tls: Option<bool>,
    /// Certificate authorities for the database's certificate. Default: those of the system.
    pub ca_file: Option<PathBuf>,
    /// Days after which values are deleted; 0 keeps them.
    pub keep_days: u32,
    /// Size in megabytes above which the oldest values are deleted; 0 means no limit.
    pub keep_megabytes: u64,
    /// Whether events are recorded.
    pub events: bool,
    /// Whether clients with the permissions may change recorded events.
    pub events_writable: bool,
    /// `[[history.record]]`
    pub record: Vec<RecordSection>,
}

impl HistorySection {
    /// Whether a file or a database is configured.
    #[must_use]
    pub const fn has_store(&self) -> bool {
        self.file.is_some() || self.postgresql.is_some()
    }
}

/// Variables to record, and which of their values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordSection {
    /// A node: the variable itself, and all variables below it. `nsu=urn:plant;s=Boiler` or `ns=2;…`.
    pub below: Spanned<String>,
    /// Only values that differ from the last one.
    #[serde(default)]
    pub on_change: bool,
    /// Only numbers that differ from the last one by more than this.
    #[serde(default)]
    pub deadband: f64,
    /// Minimum time between recorded values, in milliseconds.
    #[serde(default)]
    pub interval: f64,
    /// Whether clients with the permissions may change the history.
    #[serde(default)]
    pub writable: bool,
}
