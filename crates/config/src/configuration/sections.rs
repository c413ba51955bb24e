//! What can stand in a configuration file. Everything has a default; what is dangerous is off.

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

/// What the server is and where it listens.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSection {
    /// The name that clients show to people.
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
    /// Whether there is a plant to play with.
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

/// How messages are secured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecuritySection {
    /// The folder with the server's certificates and those that it trusts.
    pub pki: PathBuf,
    /// The policies that are offered besides None; without it all that the certificates serve.
    pub policies: Option<Vec<Spanned<String>>>,
    /// The modes of each policy.
    pub modes: Vec<Spanned<String>>,
    /// Offers SecurityPolicy None.
    pub none: bool,
    /// Lets SecurityAdmins change trust lists and certificates as clients.
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

/// Who can log on.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IdentitiesSection {
    /// Lets clients in without a user.
    pub anonymous: bool,
    /// The file with users and their passwords.
    pub users_file: Option<PathBuf>,
    /// Lets users log on whose certificate is trusted in the `users` folder of the PKI.
    pub certificates: bool,
    /// Lets passwords and tokens cross the network readably.
    pub clear_passwords: bool,
    /// `[identities.jwt]`
    pub jwt: Option<JwtSection>,
}

/// The authorization service whose tokens are believed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JwtSection {
    /// The `iss` of its tokens.
    pub issuer: String,
    /// The `aud` of tokens for this server; its ApplicationUri unless the service knows it by another name.
    pub audience: Option<String>,
    /// Files with the service's public keys.
    pub keys: Vec<PathBuf>,
    /// How tokens may be signed; all that are supported unless they are named.
    pub algorithms: Option<Vec<Spanned<String>>>,
    /// By how many seconds clocks may differ.
    #[serde(default = "leeway")]
    pub leeway: u32,
    /// The claim with roles.
    #[serde(default = "roles_claim")]
    pub roles_claim: String,
    /// The claim with groups.
    #[serde(default = "groups_claim")]
    pub groups_claim: String,
    /// What clients are told: the service's base URL; the issuer unless it is another one.
    pub authority_url: Option<String>,
    /// What clients are told: the profile of the service.
    pub authority_profile_uri: Option<String>,
    /// What clients are told: where tokens are asked for.
    pub token_endpoint: Option<String>,
    /// What clients are told: the scopes to ask for.
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

/// Who is granted a role, and where from.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleSection {
    /// A well-known role, or one of the server's own.
    pub name: Spanned<String>,
    /// Forgets whom the specification grants the role.
    #[serde(default)]
    pub replace: bool,
    /// Clients without a user.
    #[serde(default)]
    pub anonymous: bool,
    /// Everybody with a user.
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
    /// Only to clients that are these applications.
    pub only_applications: Option<Vec<String>>,
    /// To all clients but these applications.
    pub not_applications: Option<Vec<String>>,
    /// Only over channels with these modes.
    pub only_modes: Option<Vec<Spanned<String>>>,
}

/// What roles may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PermissionsSection {
    /// With nodes for which nobody says anything.
    pub unspecified: Unspecified,
}

/// What roles may do with nodes for which nobody says anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unspecified {
    /// What Part 3 §4.9.2 suggests for each well-known role.
    #[default]
    Suggested,
    /// Everybody may do everything.
    Open,
}

/// What roles may do in a namespace.
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
    /// Nodes that all clients together may add.
    pub nodes: usize,
    /// Megabytes that they may take.
    pub megabytes: usize,
}

impl Default for NodeManagementSection {
    fn default() -> Self {
        let limits = taktwerk_server::Limits::default();
        Self { enabled: false, nodes: limits.added_nodes_max, megabytes: limits.added_node_bytes_max >> 20 }
    }
}

/// What clients that monitor events hear of the server itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EventsSection {
    /// Of changed nodes, and of values with another meaning.
    pub model_changes: ModelChanges,
}

/// What is told of changed nodes (Part 3 §9.32, §9.33).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelChanges {
    /// Nothing.
    Off,
    /// That something has changed.
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

/// Limits that installations change. There are more, which are fine as they are.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSection {
    /// Sessions at a time.
    pub sessions: usize,
    /// Longest session timeout, seconds.
    pub session_timeout: f64,
    /// Subscriptions of one session.
    pub subscriptions_per_session: u32,
    /// Monitored items of one subscription.
    pub monitored_items_per_subscription: u32,
    /// Monitored items of the server.
    pub monitored_items: u32,
    /// Shortest publishing interval, milliseconds.
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

/// What the CPU of this machine suffices for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HeadroomSection {
    /// A cost model of this machine, as `taktwerk model fit -o FILE` writes it. Without it nothing is predicted.
    pub calibration: Option<PathBuf>,
    /// What becomes of requests that would not fit.
    pub admit: AdmitSetting,
    /// Share of the CPU of all threads that clients may take.
    pub limit: f64,
}

impl Default for HeadroomSection {
    fn default() -> Self {
        Self { calibration: None, admit: AdmitSetting::Always, limit: 0.8 }
    }
}

/// What becomes of requests that would not fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AdmitSetting {
    /// They are granted.
    #[default]
    Always,
    /// Publishing intervals are revised upward and items refused.
    Headroom,
}

/// What is noted of what clients do.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditSection {
    /// Channels, certificates and sessions.
    pub sessions: bool,
    /// Writes and method calls.
    pub updates: bool,
    /// Records per second, of each class; the rest is counted.
    pub records_per_second: u32,
    /// A file with one JSON object per line.
    pub file: Option<PathBuf>,
    /// A new file begins after so many megabytes …
    pub megabytes_per_file: u32,
    /// … or so many hours.
    pub hours_per_file: u32,
    /// Files that are kept, the current one included.
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

/// The dashboard and the metrics. Off unless there is an address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebSection {
    /// Where to listen.
    pub bind: Option<Spanned<String>>,
    /// The certificate for HTTPS and the authorities behind it, PEM.
    pub certificate: Option<PathBuf>,
    /// Its key, PEM.
    pub key: Option<PathBuf>,
    /// More names by which browsers may call it.
    pub host_names: Vec<String>,
    /// Whether visitors see without logging on what clients see without a user. Default: on loopback.
    pub anonymous: Option<bool>,
    /// A file with the token that `/metrics` takes. Default: none is needed on loopback, and elsewhere there are no metrics.
    pub metrics_token_file: Option<PathBuf>,
}

/// Metrics and traces that are sent to a collector.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OtlpSection {
    /// The collector; without it nothing is sent.
    pub url: Option<Spanned<String>>,
    /// Seconds between two exports.
    pub every_seconds: u32,
    /// Whether metrics are sent.
    pub metrics: bool,
    /// Whether traces are.
    pub traces: bool,
    /// Whether traces have spans of the services, one for each request.
    pub services: bool,
    /// `service.name`; the name of the application without it.
    pub service_name: Option<String>,
    /// A file with headers, one a line.
    pub headers_file: Option<PathBuf>,
    /// The authorities of HTTPS, PEM; those of the system without it.
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

/// What is published and received. Without either file there is no PubSub.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PubSubSection {
    /// The configuration to begin with: TOML, or the standard binary file.
    pub configuration: Option<PathBuf>,
    /// Where the configuration is kept when clients have changed it; read instead of the other where it is there.
    pub save_to: Option<PathBuf>,
    /// Files with the keys of security groups that no key service hands out, as `taktwerk pubsub keys` makes them.
    pub keys: Vec<PathBuf>,
    /// Actions are answered also where the configuration has no message security for them.
    pub unsecured_actions: bool,
    /// Passwords in its URLs are sent also to brokers without TLS that are not on this machine.
    pub allow_plaintext_password: bool,
    /// Where it is kept what was received of secured messages, so that nothing is taken again after a restart; beside it,
    /// with another ending for each responder, what was asked of Actions.
    pub replay_file: Option<PathBuf>,
}

/// Durable subscriptions: whether there are any, and what they may take.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DurableSection {
    /// The SQLite file; without it there are none.
    pub file: Option<PathBuf>,
    /// The longest lifetime without the client.
    pub lifetime_hours: u32,
    /// The longest queue of an item, in values.
    pub queue_size: u32,
    /// What the subscriptions of one user take at most.
    pub megabytes_per_user: usize,
    /// How often queues are written, in ms.
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

/// What is recorded, and where it is kept.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HistorySection {
    /// The SQLite file; without it and a database nothing is recorded.
    pub file: Option<PathBuf>,
    /// The PostgreSQL database: `postgresql://user@host:5432/database`. Instead of a file.
    pub postgresql: Option<Spanned<String>>,
    /// The file with the password of the database's user, read for each connection.
    pub password_file: Option<PathBuf>,
    /// Whether connections to the database have TLS: unless set, those that leave this machine.
    pub tls: Option<bool>,
    /// The authorities for the certificate of the database; without it, those of the system.
    pub ca_file: Option<PathBuf>,
    /// Values that are older are deleted; 0 keeps them.
    pub keep_days: u32,
    /// When the file is larger, the oldest values are deleted; 0 is no limit.
    pub keep_megabytes: u64,
    /// Whether events are recorded.
    pub events: bool,
    /// Whether clients with the permissions for it may change recorded events.
    pub events_writable: bool,
    /// `[[history.record]]`
    pub record: Vec<RecordSection>,
}

impl HistorySection {
    /// Whether there is somewhere to record to.
    #[must_use]
    pub const fn has_store(&self) -> bool {
        self.file.is_some() || self.postgresql.is_some()
    }
}

/// Variables that are recorded, and which of their values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordSection {
    /// A node: it is recorded if it is a variable, and so are all variables below it. `nsu=urn:plant;s=Boiler` or `ns=2;…`.
    pub below: Spanned<String>,
    /// Only values that differ from the last one.
    #[serde(default)]
    pub on_change: bool,
    /// Only numbers that differ from the last one by more than this.
    #[serde(default)]
    pub deadband: f64,
    /// At most one value in so many ms.
    #[serde(default)]
    pub interval: f64,
    /// Whether clients with the permissions for it may change the history.
    #[serde(default)]
    pub writable: bool,
}
