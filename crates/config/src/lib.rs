//! Files that configure an installation of a server and that it keeps: configuration, users, tokens, audit.
//!
//! - [`ConfigFile`]: the configuration file of `taktwerk serve`;
//! - [`users`]: the file with users and password hashes, and the verifiers of users; [`tokens`]: access tokens of an
//!   authorization service;
//! - [`pubsub_keys`]: files with keys of security groups;
//! - [`management`]: the standard methods with which clients change users and roles;
//! - [`audit`]: audit records as lines of JSON; [`file`]: files that are replaced whole, and their permissions.

#![forbid(unsafe_code)]

pub mod audit;
mod configuration;
pub mod file;
pub mod management;
pub mod pubsub_keys;
pub mod tokens;
pub mod users;

pub use configuration::{
    AdmitSetting, AlarmGroupSection, AlarmSection, AlarmsSection, AuditSection, Config, ConfigError,
    ConfigFile, EXAMPLE, FieldValue, FileKind, FilesSection, IdentitiesSection, JwtSection, LimitsSection,
    NamedFile, NamespaceSection, OtlpSection, PermissionsSection, PubSubSection, RoleSection,
    SecuritySection, ServerSection, TokensConfig, Unspecified, WebSection, dashboard, line_of, nearest,
    role_id,
};
