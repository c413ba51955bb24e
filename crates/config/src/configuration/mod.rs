//! The configuration file of `taktwerk serve`, in TOML. Unknown and invalid settings are errors with the line and a
//! suggestion.
//!
//! - `sections`: the sections with their defaults; `meaning`: validation, roles, permissions and limits; `tokens`:
//!   access tokens; `changes`: differences of two files; `files`: the files of an installation; `alarms`: alarms;
//!   `shares`: directories that clients see;
//! - [`EXAMPLE`]: a commented file, which `taktwerk config init` writes.

mod alarms;
mod changes;
mod files;
mod meaning;
mod sections;
mod shares;
mod tokens;

pub use alarms::{AlarmGroupSection, AlarmSection, AlarmsSection, FieldValue};
pub use files::{FileKind, NamedFile, RECORDING_LEN_MAX};
pub use sections::{
    AdmitSetting, AuditSection, Config, IdentitiesSection, JwtSection, LimitsSection, NamespaceSection,
    OtlpSection, PermissionsSection, PubSubSection, RoleSection, SecuritySection, ServerSection, Unspecified,
    WebSection,
};
pub use shares::FilesSection;

pub use meaning::role_id;
pub use taktwerk_explain::{Mistake, line_of, nearest};
pub use tokens::TokensConfig;

use crate::file;
use core::fmt;
use std::path::{Path, PathBuf};
use taktwerk_pki::permissions::{self, Protection};

/// A configuration with every setting, its default, and its purpose.
pub const EXAMPLE: &str = include_str!("example.toml");

/// Largest configuration file, in bytes: enough for a hundred thousand tags.
pub const FILE_LEN_MAX: u64 = 16 << 20;

/// A mistake in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The path as given.
    pub path: PathBuf,
    /// The line, from 1; 0 if the mistake concerns the whole file.
    pub line: usize,
    /// The problem.
    pub problem: String,
    /// How to correct it; empty if that is obvious.
    pub hint: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.line {
            0 => write!(f, "{path}: {}", self.problem)?,
            line => write!(f, "{path}:{line}: {}", self.problem)?,
        }
        if self.hint.is_empty() { Ok(()) } else { write!(f, "; {}", self.hint) }
    }
}

impl std::error::Error for ConfigError {}

/// A configuration and its file.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    path: PathBuf,
    text: String,
    config: Config,
}

impl ConfigFile {
    /// Reads a file and checks everything that can be checked without starting a server.
    ///
    /// # Errors
    /// The first mistake.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text =
            permissions::check(path, Protection::Write).and_then(|()| file::read_text(path, FILE_LEN_MAX));
        let text = text.map_err(|error| ConfigError {
            path: path.to_owned(),
            line: 0,
            problem: error.to_string(),
            hint: match error.kind() {
                std::io::ErrorKind::NotFound => "`taktwerk config init` writes a new one".to_owned(),
                _ => String::new(),
            },
        })?;
        Self::parse(path, &text)
    }

    /// Parses the text of a file; `path` is for messages and for relative paths.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let config = toml::from_str(text).map_err(|error| {
            let Mistake { line, problem, hint } = Mistake::of(&error, Some(text));
            ConfigError { path: path.to_owned(), line, problem, hint }
        })?;
        let file = Self { path: path.to_owned(), text: text.to_owned(), config };
        file.check()?;
        Ok(file)
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The path as given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The directory that relative paths in the file start from.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Resolves a path in the file relative to the file's directory.
    #[must_use]
    pub fn resolve(&self, path: &Path) -> PathBuf {
        self.folder().join(path)
    }

    /// A mistake at a byte offset of the file, such as the start of a span.
    #[must_use]
    pub fn mistake(&self, at: usize, problem: impl Into<String>, hint: impl Into<String>) -> ConfigError {
        ConfigError {
            path: self.path.clone(),
            line: line_of(&self.text, at),
            problem: problem.into(),
            hint: hint.into(),
        }
    }

    /// A mistake at a key, such as `headroom.limit`. Its line is that of the key, or of the nearest table around it.
    #[must_use]
    pub fn mistake_of(&self, key: &str, problem: impl fmt::Display, hint: impl Into<String>) -> ConfigError {
        let span = taktwerk_explain::key_span(&self.text, key);
        ConfigError {
            path: self.path.clone(),
            line: span.map_or(0, |span| line_of(&self.text, span.start)),
            problem: format!("{key}: {problem}"),
            hint: hint.into(),
        }
    }

    /// A mistake in a section. Its line is that of the section heading, if there is one.
    fn section_error(
        &self,
        section: &str,
        problem: impl Into<String>,
        hint: impl Into<String>,
    ) -> ConfigError {
        let heading = self.text.lines().position(|line| line.trim() == format!("[{section}]"));
        ConfigError {
            path: self.path.clone(),
            line: heading.map_or(0, |at| at + 1),
            problem: problem.into(),
            hint: hint.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(text: &str) -> String {
        ConfigFile::parse(Path::new("server.toml"), text).unwrap_err().to_string()
    }

    const HISTORY_FILE: &str = "file = \"history.db\"";

    /// The example with all settings uncommented.
    fn uncommented() -> String {
        let lines = EXAMPLE.lines().map(|line| {
            match line.strip_prefix("# ").filter(|rest| rest.contains(" = ") || rest.starts_with('[')) {
                // History is stored in a file or in a database, not in both.
                Some(setting) if setting == HISTORY_FILE => String::new(),
                Some(setting) if !setting.contains("://www") => format!("{setting}\n"),
                _ => format!("{line}\n"),
            }
        });
        lines.collect()
    }

    #[test]
    fn the_example_is_valid_and_shows_the_defaults() {
        let example = ConfigFile::parse(Path::new("server.toml"), EXAMPLE).unwrap();
        let all = ConfigFile::parse(Path::new("server.toml"), &uncommented()).unwrap();
        assert!(all.config().role.len() > example.config().role.len());
        assert!(!all.config().namespace.is_empty());
        let database = all.config().history.clone();
        assert!(database.postgresql.is_some() && database.file.is_none());
        let with_file = EXAMPLE.replace(&format!("# {HISTORY_FILE}"), HISTORY_FILE);
        let with_file = ConfigFile::parse(Path::new("server.toml"), &with_file).unwrap();
        assert!(with_file.config().history.file.is_some());
        let default = Config::default();
        assert_eq!(example.config().limits, default.limits);
        assert_eq!(example.config().audit, default.audit);
        assert_eq!(example.config().node_management, default.node_management);
        assert!(!default.node_management.enabled);
        assert_eq!(example.config().nodeset_methods, default.nodeset_methods);
        assert!(!default.nodeset_methods.enabled && all.config().nodeset_methods.folder.is_some());
        assert_eq!(all.config().events, default.events);
        assert_eq!(example.config().pubsub, default.pubsub);
        assert_eq!(example.config().web, default.web);
        assert_eq!(example.config().otlp, default.otlp);
        assert_eq!(all.config().otlp.every_seconds, default.otlp.every_seconds);
        assert!(all.config().pubsub.configuration.is_some() && all.config().pubsub.save_to.is_some());
        assert_eq!(example.config().permissions, default.permissions);
        let security = (&example.config().security, &default.security);
        assert_eq!(security.0.pki, security.1.pki);
        assert_eq!(security.0.none, security.1.none);
        assert_eq!(all.config().security.policies.as_ref().map(Vec::len), Some(2));
    }

    #[test]
    fn mistakes_have_a_line_and_a_suggestion() {
        assert_eq!(
            mistake("[server]\nbinds = [\"127.0.0.1:4840\"]\n"),
            "server.toml:2: unknown field `binds`; did you mean `bind`?"
        );
        let far = mistake("[server]\nvelocity = 1\n");
        assert!(
            far.starts_with("server.toml:2: unknown field `velocity`, expected one of `application_name`"),
            "{far}"
        );
        assert_eq!(
            mistake("[[sorce]]\nname = \"a\"\n"),
            "server.toml:1: unknown field `sorce`; did you mean `source`?"
        );
        assert_eq!(
            mistake("[server]\nthreads = \"two\"\n"),
            "server.toml:2: server.threads: this is the text \"two\"; write a whole number from 0 on"
        );
        assert!(mistake("[server\n").starts_with("server.toml:1: "));
        let open = mistake(
            "[server]\nbind = [\n  \"127.0.0.1:4840\",\n  \"nowhere\",\n]\n[security]\nnone = true\n",
        );
        assert!(open.starts_with("server.toml:4: \"nowhere\" is not a valid listen address"), "{open}");
        let role = mistake(
            "[security]\nnone = true\n[[namespace]]\nuri = \"urn:a\"\n[namespace.permissions]\nOperater = [\"Read\"]\n",
        );
        assert!(
            role.starts_with("server.toml:6: there is no role \"Operater\"; did you mean \"Operator\"?"),
            "{role}"
        );
        let permission = mistake(
            "[security]\nnone = true\n[[namespace]]\nuri = \"urn:a\"\n[namespace.permissions]\nOperator = [\"Reed\"]\n",
        );
        assert!(permission.contains("no permission \"Reed\"; did you mean \"Read\"?"), "{permission}");
    }

    #[test]
    fn wrong_types_are_reported_with_key_and_expected_type() {
        // Every setting of the example, with a value of a wrong type.
        let all = uncommented();
        let mut section = String::new();
        let mut tried = 0;
        for (at, line) in all.lines().enumerate() {
            if line.starts_with('[') {
                section = line.trim_matches(['[', ']']).to_owned();
            }
            let Some((key, value)) = line.split_once(" = ").filter(|(key, _)| !key.starts_with('#')) else {
                continue;
            };
            let key = key.trim();
            // Settings of several lines.
            if value.trim() == "[" || key.contains(['{', ' ']) {
                continue;
            }
            let wrong = |line_at: usize, own: &str| match line_at == at {
                true => format!("{key} = [[true]]\n"),
                false => format!("{own}\n"),
            };
            let text: String = all.lines().enumerate().map(|(at, own)| wrong(at, own)).collect();
            let told = mistake(&text);
            let plain = key.trim_matches('"');
            assert!(told.starts_with(&format!("server.toml:{}: ", at + 1)), "[{section}] {key}: {told}");
            assert!(
                told.contains(&format!("{plain}: ")) && told.contains("; write "),
                "[{section}] {key}: {told}"
            );
            tried += 1;
        }
        assert!(tried > 100, "{tried}");
        for (text, expected) in [
            ("[limits]\nsessions = -1\n", "limits.sessions: -1 does not fit; write a whole number"),
            (
                "[[alarms.alarm]]\nvariable = 3\n",
                "variable: this is the whole number 3; write a text in quotation marks",
            ),
            (
                "[[alarms.alarm]]\nvariable = \"ns=2;i=1\"\nhigh = \"5\"\n",
                "high: this is the text \"5\"; write a number",
            ),
            (
                "[[alarms.alarm]]\nvariable = \"ns=2;i=1\"\nfields = { Cause = [1] }\n",
                "Cause: this has another type; write a text in quotation marks, a number, or true or false",
            ),
            (
                "[[alarms.group]]\nname = \"All\"\nmembers = \"a\"\n",
                "members: this is the text \"a\"; write a list",
            ),
            ("[server]\nsimulated_plant = 1\n", "this is the whole number 1; write true or false"),
            ("server = 1\n", "server: this is the whole number 1; write a table"),
        ] {
            let told = mistake(text);
            assert!(told.contains(expected), "{text}: {told}");
        }
    }

    #[test]
    fn unsafe_settings_must_be_explicit() {
        assert!(mistake("").contains("no client can log on"), "{}", mistake(""));
        let fine = |text: &str| ConfigFile::parse(Path::new("server.toml"), text).unwrap();
        let default = fine("[identities]\nusers_file = \"users.toml\"\n");
        let config = default.config();
        assert!(!config.security.none && !config.identities.anonymous && !config.identities.clear_passwords);
        let none_only = "[security]\npolicies = []\nnone = true\n[identities]\n";
        let clear = mistake(&format!("{none_only}users_file = \"users.toml\"\n"));
        assert!(clear.contains("unencrypted"), "{clear}");
        fine(&format!("{none_only}users_file = \"users.toml\"\nclear_passwords = true\n"));
        let proof = mistake(&format!("{none_only}certificates = true\n"));
        assert!(proof.contains("need a SecurityPolicy"), "{proof}");
        fine("[identities]\ncertificates = true\n");
        fine("[security]\nnone = true\n[identities]\nanonymous = true\n");
    }

    #[test]
    fn the_example_offers_neither_none_nor_anonymous() {
        let example = ConfigFile::parse(Path::new("server.toml"), EXAMPLE).unwrap();
        let config = example.config();
        assert!(!config.security.none && !config.identities.anonymous && !config.identities.clear_passwords);
        assert_eq!(example.policies().unwrap(), None);
        assert_eq!(example.modes().unwrap(), [taktwerk_crypto::MessageSecurityMode::SignAndEncrypt]);
    }

    #[test]
    fn tokens_need_an_issuer_an_audience_and_keys() {
        let base = "[server]\napplication_uri = \"urn:a\"\n[security]\npolicies = []\nnone = true\n";
        let with = |identities: &str, jwt: &str| {
            format!("{base}[identities]\n{identities}[identities.jwt]\nissuer = \"https://i\"\n{jwt}")
        };
        let clear = mistake(&with("", "keys = [\"a.json\"]\n"));
        assert!(clear.contains("unencrypted"), "{clear}");
        let clear = "clear_passwords = true\n";
        assert!(mistake(&with(clear, "")).contains("missing field `keys`"));
        assert!(mistake(&with(clear, "keys = []\n")).contains("no keys"));
        let weak = mistake(&with(clear, "keys = [\"a\"]\nalgorithms = [\"ES256\", \"HS256\"]\n"));
        assert!(weak.starts_with("server.toml:11: there is no algorithm \"HS256\""), "{weak}");
        let fine = with(clear, "keys = [\"a.json\"]\nalgorithms = [\"ES256\"]\nscopes = [\"plant\"]\n");
        let file = ConfigFile::parse(Path::new("/etc/server.toml"), &fine).unwrap();
        let tokens = file.tokens().unwrap().unwrap();
        assert_eq!((&*tokens.settings.issuer, &*tokens.settings.audience), ("https://i", "urn:a"));
        assert_eq!(tokens.keys, [Path::new("/etc/a.json")]);
        let told: serde_json::Value = serde_json::from_str(&tokens.issuer_endpoint).unwrap();
        assert_eq!(told["ua:resourceId"], "urn:a");
        assert_eq!(told["ua:authorityUrl"], "https://i");
        assert_eq!(told["ua:scopes"], serde_json::json!(["plant"]));
        let nameless = fine.replace("application_uri = \"urn:a\"\n", "");
        assert!(mistake(&nameless).contains("audience"), "{}", mistake(&nameless));
    }

    #[test]
    fn paths_start_from_the_files_folder() {
        let fine = "[security]\nnone = true\n[identities]\nanonymous = true\n";
        let file = ConfigFile::parse(Path::new("/etc/taktwerk/server.toml"), fine).unwrap();
        assert_eq!(file.resolve(Path::new("users.toml")), Path::new("/etc/taktwerk/users.toml"));
        assert_eq!(file.resolve(Path::new("/a")), Path::new("/a"));
    }
}
