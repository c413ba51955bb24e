//! A server with a configuration file.

use super::security::{check_offer, report};
use super::{Content, headroom, plant, pubsub};
use crate::config_file::load;
use crate::failure::Failure;
use crate::security::{environment, new_keys};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use taktwerk::Server;
use taktwerk::headroom::Admit;
use taktwerk::pki::Pki;
use taktwerk::server::{AuditSink, NodeSetMethods, NodeSetRemoval, ServerBuilder, default_application_uri};
use taktwerk_config::AdmitSetting;
use taktwerk_config::audit::AuditFile;
use taktwerk_config::management::Management;
use taktwerk_config::tokens::{JwtVerifier, TokenAuthority};
use taktwerk_config::users::{CertificateVerifier, PasswordVerifier, UserStore};
use taktwerk_config::{ConfigError, ConfigFile};
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_net::server::audit::AuditTracing;
use taktwerk_pki::CertificateSettings;
use taktwerk_server::{Authorization, ServerShared};

/// A configuration and its users.
pub(super) struct Configured {
    file: ConfigFile,
    /// The server's certificates, after they were opened.
    pki: OnceLock<Pki>,
    users: Option<Arc<UserStore>>,
    /// Management of users and roles by clients, if there is a users file.
    management: Option<Arc<Management>>,
    tokens: Option<(Arc<TokenAuthority>, String)>,
}

/// The PubSub files of a configuration.
pub(super) fn pubsub_files(file: &ConfigFile) -> pubsub::Files {
    let config = &file.config().pubsub;
    let resolved = |path: &Option<PathBuf>| path.as_ref().map(|path| file.resolve(path));
    pubsub::Files {
        configuration: resolved(&config.configuration),
        save_to: resolved(&config.save_to),
        keys: config.keys.iter().map(|path| file.resolve(path)).collect(),
        unsecured_actions: config.unsecured_actions,
        plaintext_password: config.allow_plaintext_password,
        replay: resolved(&config.replay_file),
    }
}

/// Checks the files of a configuration, except users and NodeSets, without starting anything. It refuses what the
/// server would refuse at the start. Returns the number of PubSub connections, if PubSub is configured.
pub(crate) fn check_files(file: &ConfigFile) -> Result<Option<usize>, Failure> {
    let usage = |error: &dyn core::fmt::Display| Failure::Usage(error.to_string());
    if let Some(tokens) = file.tokens().map_err(|error| usage(&error))? {
        TokenAuthority::open(tokens.settings, tokens.keys).map_err(|error| usage(&error))?;
    }
    let config = file.config();
    let written = [
        ("audit.file", &config.audit.file),
        ("pubsub.save_to", &config.pubsub.save_to),
        ("pubsub.replay_file", &config.pubsub.replay_file),
        ("history.file", &config.history.file),
        ("alarms.file", &config.alarms.file),
        ("durable_subscriptions.file", &config.durable_subscriptions.file),
    ];
    for (key, path) in written {
        let Some(path) = path.as_ref().map(|path| file.resolve(path)) else { continue };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let problem = format!("the directory {} does not exist", folder.display());
            let hint = "create it, or name a file in another one";
            return Err(usage(&file.mistake_of(key, problem, hint)));
        }
    }
    if let Some(folder) = nodeset_folder(file).filter(|folder| !folder.is_dir()) {
        let problem = format!("the directory {} does not exist", folder.display());
        return Err(usage(&file.mistake_of(
            "nodeset_methods.folder",
            problem,
            "create it, or name another one",
        )));
    }
    for section in &config.files {
        let folder = file.resolve(&section.folder);
        if !folder.is_dir() {
            let problem = format!("[[files]] folder: the directory {} does not exist", folder.display());
            let at = section.name.span().start;
            return Err(usage(&file.mistake(at, problem, "create it, or name another one")));
        }
    }
    headroom_of(file)?;
    super::alarms::own_spans(file)?;
    super::history::check(file)?;
    #[cfg(feature = "web")]
    super::otlp::check(file)?;
    pubsub_files(file).check()
}

/// Refuses rules for namespaces that the server does not have, because they would protect nothing.
pub(super) fn check_namespaces(file: &ConfigFile, registered: &[String]) -> Result<(), Failure> {
    for section in &file.config().namespace {
        let uri = section.uri.get_ref();
        if !registered.contains(uri) {
            let problem = format!(
                "[[namespace]] uri = \"{uri}\": the server has no such namespace, so these rules would protect nothing"
            );
            let hint = match taktwerk_config::nearest(uri, registered.iter().map(String::as_str)) {
                _ if uri == plant::NAMESPACE => plant::MISSING.to_owned(),
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("it has {}", registered.join(", ")),
            };
            return Err(Failure::Usage(file.mistake(section.uri.span().start, problem, hint).to_string()));
        }
    }
    Ok(())
}

/// The folder of NodeSets that clients load, if they may.
fn nodeset_folder(file: &ConfigFile) -> Option<PathBuf> {
    let section = &file.config().nodeset_methods;
    section.folder.as_ref().filter(|_| section.enabled).map(|folder| file.resolve(folder))
}

/// Lets administrators load NodeSets, if the configuration allows it. Imports those that were loaded before.
pub(super) fn nodeset_methods(file: &ConfigFile, server: &Server) -> Result<(), Failure> {
    let section = &file.config().nodeset_methods;
    if !section.enabled {
        return Ok(());
    }
    let path = file.path().to_owned();
    let keep = move |removal: &NodeSetRemoval<'_>| super::kept::check(&path, removal);
    let mut settings = NodeSetMethods::new().length_max(section.megabytes << 20).keep(keep);
    // The first source or tag may be added while the server runs.
    settings = settings.reserve(super::gateway::namespaces(file)).reserve([super::plant::NAMESPACE]);
    if let Some(folder) = nodeset_folder(file) {
        settings = settings.folder(folder);
    }
    Ok(server.nodeset_methods(settings).map_err(super::ServeError::from)?)
}

/// The NodeSet files of a configuration, including the XML files in named directories.
pub(super) fn nodesets_of(file: &ConfigFile) -> Vec<PathBuf> {
    let named = file.config().server.nodesets.iter().map(|path| file.resolve(path));
    named.flat_map(|path| if path.is_dir() { xml_files(&path) } else { vec![path] }).collect()
}

/// The XML files in a directory, sorted by name. Hidden files are ignored: editors create them while writing.
fn xml_files(folder: &Path) -> Vec<PathBuf> {
    let is_meant = |path: &PathBuf| {
        let is_hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        let is_xml = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xml"));
        is_xml && !is_hidden && path.is_file()
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_meant).collect();
    files.sort();
    files
}

/// The headroom settings.
pub(super) fn headroom_of(file: &ConfigFile) -> Result<Option<headroom::Settings>, Failure> {
    let config = file.config();
    let section = &config.headroom;
    let wrong = |key: &str, problem: &str, hint: &str| {
        Failure::Usage(file.mistake_of(&format!("headroom.{key}"), problem, hint).to_string())
    };
    let Some(calibration) = &section.calibration else {
        return match section.admit {
            AdmitSetting::Always => Ok(None),
            AdmitSetting::Headroom => Err(wrong(
                "admit",
                "it needs a calibration",
                "run `taktwerk lab calibrate --quick`, then `taktwerk model fit -o models.json`, and set calibration = \
                 \"models.json\"",
            )),
        };
    };
    let admit = match section.admit {
        AdmitSetting::Always => Admit::Always,
        AdmitSetting::Headroom => Admit::Headroom,
    };
    // Assume encryption, the most expensive mode, if clients cannot connect without security.
    let is_encrypted = !config.security.none;
    let prices = headroom::prices(file.folder(), calibration, is_encrypted)
        .map_err(|problem| wrong("calibration", &problem, headroom::CALIBRATE))?;
    let limit = headroom::limit(section.limit, config.server.threads)
        .map_err(|problem| wrong("limit", &problem, headroom::LIMITS))?;
    Ok(Some(headroom::Settings { prices, limit, admit }))
}

impl Configured {
    /// The headroom settings.
    pub(super) fn headroom(&self) -> Result<Option<headroom::Settings>, Failure> {
        headroom_of(&self.file)
    }

    /// Reads the configuration and its users file.
    pub(super) fn load(path: &Path) -> Result<Self, Failure> {
        let file = load(path)?;
        let users = match &file.config().identities.users_file {
            None => None,
            Some(users) => {
                let users = file.resolve(users);
                Some(UserStore::open(&users).map_err(|error| Failure::Usage(error.to_string()))?)
            }
        };
        let usage = |error: &dyn core::fmt::Display| Failure::Usage(error.to_string());
        let tokens = match file.tokens().map_err(|error| usage(&error))? {
            None => None,
            Some(tokens) => {
                let authority =
                    TokenAuthority::open(tokens.settings, tokens.keys).map_err(|error| usage(&error))?;
                Some((Arc::new(authority), tokens.issuer_endpoint))
            }
        };
        let base = file.authorization().map_err(|error| usage(&error))?;
        let management = users.as_ref().map(|users| Management::new(Arc::clone(users), base));
        Ok(Self { file, pki: OnceLock::new(), users, management, tokens })
    }

    /// The configuration file.
    pub(super) fn file(&self) -> &ConfigFile {
        &self.file
    }

    /// Replaces the file, for settings that are read while the server runs.
    pub(super) fn replace_file(&mut self, file: ConfigFile) {
        self.file = file;
    }

    /// The roles of the configuration and of the users.
    fn authorization(&self) -> Result<Authorization, Failure> {
        self.authorization_of(&self.file)
    }

    /// The roles of another configuration and of the current users.
    pub(super) fn authorization_of(&self, file: &ConfigFile) -> Result<Authorization, Failure> {
        let mut authorization = file.authorization().map_err(|error| Failure::Usage(error.to_string()))?;
        if let Some(users) = &self.users {
            for role in users.grant(&mut authorization) {
                tracing::warn!(role, "a user has an unknown role");
            }
        }
        Ok(authorization)
    }

    /// Allows clients to manage users and roles, if there is a users file.
    pub(super) fn manage(&self, server: &Server) -> Result<(), Failure> {
        let Some(management) = &self.management else { return Ok(()) };
        management.install(server.space()).map_err(|error| Failure::Environment(error.to_string()))
    }

    /// From now on, changes of users and roles by clients take effect.
    pub(super) fn managed(&self, shared: &Arc<ServerShared>) {
        if let Some(management) = &self.management {
            management.start(shared);
        }
    }

    /// Applies changed roles and permissions.
    pub(super) fn apply_authorization(
        &self,
        file: &ConfigFile,
        shared: &ServerShared,
    ) -> Result<(), Failure> {
        let authorization = file.authorization().map_err(|error| Failure::Usage(error.to_string()))?;
        match &self.management {
            Some(management) => management.set_base(authorization),
            None => shared.set_authorization(authorization, taktwerk_net::clock::wall()),
        }
        Ok(())
    }

    /// The server without its nodes.
    pub(super) fn builder(&self) -> Result<ServerBuilder, Failure> {
        let config = self.file.config();
        let sink: Arc<dyn AuditSink> = match &config.audit.file {
            None => Arc::new(AuditTracing),
            Some(path) => {
                let path = self.file.resolve(path);
                Arc::new(
                    AuditFile::open(&path, &self.file.audit_rotation())
                        .map_err(|error| Failure::Environment(format!("{}: {error}", path.display())))?,
                )
            }
        };
        let mut builder = Server::builder()
            .application_name(&config.server.application_name)
            .build_info(super::product::build_info())
            .shards(config.server.threads)
            .limits(|limits| self.file.apply_limits(limits))
            .authorization(self.authorization()?)
            .audit(self.file.audit(), sink);
        for bind in self.file.binds() {
            builder = builder.bind(bind);
        }
        if let Some(uri) = &config.server.application_uri {
            builder = builder.application_uri(uri);
        }
        if let Some(host) = &config.server.host_name {
            builder = builder.host_name(host);
        }
        builder = self.secure(builder)?;
        if config.node_management.enabled {
            builder = builder.node_management();
        }
        builder = builder.model_changes(config.events.model_changes.into());
        if config.identities.anonymous {
            builder = builder.anonymous();
        }
        if let Some(users) = &self.users {
            builder = builder.users(PasswordVerifier::new(Arc::clone(users)));
        }
        if let Some((authority, issuer)) = &self.tokens {
            builder = builder.issued_tokens(issuer, JwtVerifier::new(Arc::clone(authority)));
        }
        if config.identities.certificates {
            builder = builder.certificate_users(CertificateVerifier::new());
        }
        if config.identities.clear_passwords {
            builder = builder.allow_clear_passwords();
        }
        builder = super::alarms::configured(builder, &self.file)?;
        builder = super::durable::configured(builder, &self.file)?;
        super::history::configured(builder, &self.file, &self.application_uri())
    }

    /// The ApplicationUri. The certificates must be open.
    fn application_uri(&self) -> String {
        let config = &self.file.config().server;
        let certified = || self.pki.get().and_then(Pki::application_uri).map(str::to_owned);
        let named = config.application_uri.clone().or_else(certified);
        named.unwrap_or_else(|| default_application_uri(&config.application_name))
    }

    /// Configures security policies and certificates.
    fn secure(&self, mut builder: ServerBuilder) -> Result<ServerBuilder, Failure> {
        let usage = |error: ConfigError| Failure::Usage(error.to_string());
        let named = self.file.policies().map_err(usage)?;
        if named.as_ref().is_none_or(|policies| !policies.is_empty()) {
            let pki = self.pki(named.as_deref().unwrap_or_default())?;
            let policies = named.unwrap_or_else(|| pki.policies());
            check_offer(&pki, &policies)?;
            builder = builder.pki(&pki);
            if self.file.config().security.push_management {
                builder = builder.push_management();
            }
            self.pki.get_or_init(|| pki);
            for policy in policies {
                for mode in self.file.modes().map_err(usage)? {
                    builder = builder.security(policy, mode);
                }
            }
        }
        if self.file.config().security.none {
            builder = builder.security(SecurityPolicy::None, MessageSecurityMode::None);
        }
        Ok(builder)
    }

    /// The certificate directory. Missing parts are created.
    fn pki(&self, policies: &[SecurityPolicy]) -> Result<Pki, Failure> {
        let config = self.file.config();
        let name = &config.server.application_name;
        let uri = config.server.application_uri.clone().unwrap_or_else(|| default_application_uri(name));
        let mut settings = CertificateSettings::new(name, &uri);
        // Clients compare the names with the host of the URL.
        settings.hosts.extend(config.server.host_name.clone());
        settings.hosts.extend(self.file.hosts());
        let folder = self.file.resolve(&config.security.pki);
        let pki = Pki::in_folder(folder).settings(settings).create_missing(new_keys(policies)).open();
        let pki = pki.map_err(environment)?;
        report(&pki);
        if let (Some(wanted), Some(certified)) = (&config.server.application_uri, pki.application_uri()) {
            if wanted != certified {
                return Err(Failure::Usage(format!(
                    "application_uri is {wanted}, but the certificate in {} says {certified}: clients would refuse it; \
                     use that one, or create a new certificate with `taktwerk pki init --renew --uri {wanted} --pki \
                     {}`",
                    pki.store().root().display(),
                    pki.store().root().display()
                )));
            }
        }
        Ok(pki)
    }

    /// The dashboard settings of a file, if any.
    #[cfg(feature = "web")]
    pub(super) fn web_of(&self, file: &ConfigFile) -> Result<Option<super::web::Web>, Failure> {
        let usage = |error: ConfigError| Failure::Usage(error.to_string());
        let Some(bind) = file.web().map_err(usage)? else { return Ok(None) };
        // The login settings are those of the start.
        let config = self.file.config();
        let needs_security = !(config.security.none && config.identities.anonymous) || self.users.is_some();
        super::web::Web::of_file(
            bind,
            &file.config().web,
            |path| file.resolve(path),
            self.pki.get().filter(|_| needs_security),
            config.identities.anonymous,
        )
        .map(Some)
    }

    /// The content of the address space.
    pub(super) fn content(&self) -> Content {
        Content {
            pubsub: pubsub_files(&self.file),
            nodesets: nodesets_of(&self.file),
            plant: self.file.config().server.simulated_plant,
        }
    }

    /// Reads changed files again. An invalid file is reported once, and the old content stays in effect.
    pub(super) fn refresh(&self) {
        if let Some((authority, _)) = &self.tokens {
            match authority.reload() {
                Ok(false) => {}
                Ok(true) => tracing::info!("the keys of the authorization service were read again"),
                Err(error) => {
                    tracing::error!(%error, "the keys of the authorization service stay as they were")
                }
            }
        }
        let (Some(users), Some(management)) = (&self.users, &self.management) else { return };
        match users.reload() {
            Ok(false) => {}
            Ok(true) => {
                for role in management.users_changed() {
                    tracing::warn!(role, "a user has an unknown role");
                }
                tracing::info!(users = users.users().iter().len(), "the users file was read again");
            }
            Err(error) => tracing::error!(%error, "the users stay as they were"),
        }
        management.tick();
    }

    /// A summary of one line: who can do what.
    pub(super) fn summary(&self) -> String {
        let config = self.file.config();
        let reach = if self.file.is_loopback() { "loopback only" } else { "open to the network" };
        let security = match (self.file.policies(), config.security.none) {
            (Ok(Some(policies)), true) if policies.is_empty() => "SecurityPolicy None only (not encrypted)",
            (_, true) => "secured, and SecurityPolicy None (not encrypted)",
            (_, false) => "secured connections only",
        };
        let users = self.users.as_ref().map_or(0, |users| users.users().iter().len());
        let users = crate::output::counted(users, "user");
        let anonymous = if config.identities.anonymous { "anonymous clients allowed" } else { "users only" };
        let tokens = if self.tokens.is_some() { ", access tokens" } else { "" };
        let certificates = if config.identities.certificates { ", users with certificates" } else { "" };
        format!("{reach}, {security}, {anonymous}, {users} with passwords{certificates}{tokens}")
    }
}
