//! The files of a server installation: configuration, users, access-token keys, audit records.
//!
//! - [`ConfigFile`]: the configuration file of `taktwerk serve`;
//! - [`users`]: the users file with password hashes, and the verifiers that use it; [`tokens`]: access tokens of an
//!   authorization service;
//! - [`pubsub_keys`]: key files of security groups;
//! - [`management`]: the standard methods that let clients change users and roles;
//! - [`audit`]: audit records as lines of JSON; [`file`]: atomic replacement of files, and their permissions.

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
    ConfigFile, EXAMPLE, FILE_LEN_MAX, FieldValue, FileKind, FilesSection, IdentitiesSection, JwtSection,
    LimitsSection, Mistake, NamedFile, NamespaceSection, OtlpSection, PermissionsSection, PubSubSection,
    RECORDING_LEN_MAX, RoleSection, SecuritySection, ServerSection, TokensConfig, Unspecified, WebSection,
    line_of, nearest, role_id,
};
