//! Validation of a configuration, and conversion of names to roles, permissions and limits.

use super::sections::{NamespaceSection, RoleSection, Unspecified};
use super::{ConfigError, ConfigFile};
use crate::audit::Rotation;
use core::time::Duration;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_explain::meant;
use taktwerk_schema::{AccessRestrictionType, PermissionType};
use taktwerk_server::Limits;
use taktwerk_server::audit::AuditConfig;
use taktwerk_server::authorization::{
    Access, Authorization, EndpointRestriction, IdentityRule, Restriction, Role,
};
use taktwerk_types::NodeId;
use toml::Spanned;

/// PermissionType (Part 3 §8.55): the permissions that the server enforces.
const PERMISSIONS: [(&str, PermissionType); 16] = [
    ("Browse", PermissionType::BROWSE),
    ("ReadRolePermissions", PermissionType::READ_ROLE_PERMISSIONS),
    ("WriteAttribute", PermissionType::WRITE_ATTRIBUTE),
    ("WriteHistorizing", PermissionType::WRITE_HISTORIZING),
    ("Read", PermissionType::READ),
    ("Write", PermissionType::WRITE),
    ("ReadHistory", PermissionType::READ_HISTORY),
    ("InsertHistory", PermissionType::INSERT_HISTORY),
    ("ModifyHistory", PermissionType::MODIFY_HISTORY),
    ("DeleteHistory", PermissionType::DELETE_HISTORY),
    ("ReceiveEvents", PermissionType::RECEIVE_EVENTS),
    ("Call", PermissionType::CALL),
    ("AddReference", PermissionType::ADD_REFERENCE),
    ("RemoveReference", PermissionType::REMOVE_REFERENCE),
    ("DeleteNode", PermissionType::DELETE_NODE),
    ("AddNode", PermissionType::ADD_NODE),
];

/// AccessRestrictionType (Part 3 §8.56).
const RESTRICTIONS: [(&str, AccessRestrictionType); 4] = [
    ("SigningRequired", AccessRestrictionType::SIGNING_REQUIRED),
    ("EncryptionRequired", AccessRestrictionType::ENCRYPTION_REQUIRED),
    ("SessionRequired", AccessRestrictionType::SESSION_REQUIRED),
    ("ApplyRestrictionsToBrowse", AccessRestrictionType::APPLY_RESTRICTIONS_TO_BROWSE),
];

const MODES: [(&str, MessageSecurityMode); 3] = [
    ("None", MessageSecurityMode::None),
    ("Sign", MessageSecurityMode::Sign),
    ("SignAndEncrypt", MessageSecurityMode::SignAndEncrypt),
];

impl ConfigFile {
    /// Checks everything that can be checked without starting a server.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        // Mistakes with their own line come first.
        self.authorization()?;
        let config = self.config();
        for bind in &config.server.bind {
            self.address(bind)?;
        }
        if config.server.bind.is_empty() {
            return Err(self.section_error(
                "server",
                "bind is empty",
                "name an address, such as \"127.0.0.1:4840\"",
            ));
        }
        if config.server.threads == 0 {
            return Err(self.section_error(
                "server",
                "threads is 0",
                "1 serves some two million values a second",
            ));
        }
        let is_secured = self.policies()?.is_none_or(|policies| !policies.is_empty());
        let modes = self.modes()?;
        if is_secured && modes.is_empty() {
            return Err(self.section_error(
                "security",
                "modes is empty",
                "write modes = [\"SignAndEncrypt\"]",
            ));
        }
        if !is_secured && !config.security.none {
            return Err(self.section_error(
                "security",
                "nothing is offered to clients",
                "remove policies to offer all that match the certificates; `none = true` offers SecurityPolicy \
                 None, where everyone on the network can read messages",
            ));
        }
        let identities = &config.identities;
        let has_secrets = identities.users_file.is_some() || identities.jwt.is_some();
        if !identities.anonymous && !has_secrets && !identities.certificates {
            return Err(self.section_error(
                "identities",
                "no client can log on",
                "set users_file or [identities.jwt], `certificates = true` for users with certificates, or \
                 `anonymous = true` for clients without a user",
            ));
        }
        if identities.certificates && !is_secured {
            return Err(self.section_error(
                "identities",
                "user certificates need a SecurityPolicy, and none is offered",
                "name policies in [security], or leave them out there to offer all",
            ));
        }
        if has_secrets && !is_secured && !identities.clear_passwords {
            return Err(self.section_error(
                "identities",
                "passwords and tokens would be sent unencrypted, because only SecurityPolicy None is offered",
                "offer another policy, or set `clear_passwords = true` on a trusted network",
            ));
        }
        self.tokens()?;
        self.web()?;
        self.shares()?;
        self.check_history()?;
        let audit = &config.audit;
        if audit.megabytes_per_file == 0 || audit.hours_per_file == 0 || audit.files == 0 {
            return Err(self.section_error(
                "audit",
                "megabytes_per_file, hours_per_file and files are numbers greater than 0",
                "leave them out for 64 MB, 24 hours and 30 files",
            ));
        }
        let added = &config.node_management;
        if added.nodes == 0 || added.megabytes == 0 || added.megabytes > 1 << 20 {
            return Err(self.section_error(
                "node_management",
                "nodes and megabytes are numbers greater than 0, and megabytes is at most 1048576",
                "leave them out for the defaults",
            ));
        }
        let megabytes = config.nodeset_methods.megabytes;
        if megabytes == 0 || megabytes > 256 {
            return Err(self.section_error(
                "nodeset_methods",
                "megabytes is a number from 1 to 256",
                "leave it out for 16",
            ));
        }
        if config.durable_subscriptions.write_interval == 0 {
            return Err(self.section_error(
                "durable_subscriptions",
                "write_interval is 0",
                "write an interval in milliseconds from 1 on, or leave it out for 100",
            ));
        }
        let limits = &config.limits;
        let spans = [limits.session_timeout, limits.publishing_interval_min];
        if !spans.iter().all(|span| span.is_finite() && *span > 0.0) || limits.sessions == 0 {
            return Err(self.section_error("limits", "limits are numbers greater than 0", ""));
        }
        Ok(())
    }

    /// Allows only one history store, and refuses settings of the other one.
    fn check_history(&self) -> Result<(), ConfigError> {
        let section = &self.config().history;
        let Some(database) = &section.postgresql else {
            let of_databases = [
                ("password_file", section.password_file.is_some()),
                ("tls", section.tls.is_some()),
                ("ca_file", section.ca_file.is_some()),
            ];
            return match of_databases.iter().find(|(_, is_set)| *is_set) {
                None => Ok(()),
                Some((key, _)) => Err(self.section_error(
                    "history",
                    format!("{key} is set, but no database"),
                    "name one with postgresql = \"postgresql://user@host:5432/database\"",
                )),
            };
        };
        let wrong = |problem: &str, hint: &str| Err(self.mistake(database.span().start, problem, hint));
        if section.file.is_some() {
            return wrong("history.postgresql and history.file are both set", "remove one of them");
        }
        if section.keep_megabytes != 0 {
            return wrong(
                "history.keep_megabytes is for SQLite files only",
                "limit the database with keep_days",
            );
        }
        Ok(())
    }

    fn address(&self, bind: &Spanned<String>) -> Result<Vec<SocketAddr>, ConfigError> {
        bind.get_ref().to_socket_addrs().map(Iterator::collect).map_err(|_| {
            self.mistake(
                bind.span().start,
                format!("{:?} is not a valid listen address", bind.get_ref()),
                "write \"address:port\", such as \"0.0.0.0:4840\"",
            )
        })
    }

    /// The named policies besides None; `None` for all that match the certificates.
    ///
    /// # Errors
    /// An unknown or a broken policy.
    pub fn policies(&self) -> Result<Option<Vec<SecurityPolicy>>, ConfigError> {
        let Some(names) = &self.config().security.policies else { return Ok(None) };
        let known: Vec<(&str, SecurityPolicy)> = SecurityPolicy::ALL
            .iter()
            .filter(|policy| policy.info().security_level > 0)
            .map(|policy| (policy.name(), *policy))
            .collect();
        let mut policies = Vec::new();
        for name in names {
            if name.get_ref() == SecurityPolicy::None.name() {
                let problem = "SecurityPolicy None is not among the policies";
                return Err(self.mistake(name.span().start, problem, "`none = true` offers it"));
            }
            let policy = self.named(name, "usable policy", &known)?;
            if !policies.contains(&policy) {
                policies.push(policy);
            }
        }
        Ok(Some(policies))
    }

    /// The modes of every policy.
    ///
    /// # Errors
    /// An unknown mode.
    pub fn modes(&self) -> Result<Vec<MessageSecurityMode>, ConfigError> {
        // The first mode is None, which belongs to the policy None only.
        let secured = MODES.get(1..).unwrap_or_default();
        self.config()
            .security
            .modes
            .iter()
            .map(|mode| self.named(mode, "mode of a policy", secured))
            .collect()
    }

    /// The listen addresses as written.
    #[must_use]
    pub fn binds(&self) -> Vec<&str> {
        self.config().server.bind.iter().map(|bind| bind.get_ref().as_str()).collect()
    }

    /// The hosts in the listen addresses, except wildcard addresses.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        let hosts = self.binds().into_iter().filter_map(|bind| bind.rsplit_once(':')).map(|(host, _)| host);
        let hosts = hosts.map(|host| host.trim_start_matches('[').trim_end_matches(']'));
        let is_any = |host: &str| host.parse().is_ok_and(|address: IpAddr| address.is_unspecified());
        hosts.filter(|host| !is_any(host)).map(str::to_owned).collect()
    }

    /// Whether the server listens on loopback addresses only.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let addresses = self.config().server.bind.iter().filter_map(|bind| self.address(bind).ok());
        addresses.flatten().map(|address| address.ip()).all(|address: IpAddr| address.is_loopback())
    }

    /// The listen address of dashboard and metrics, if enabled.
    ///
    /// # Errors
    /// The address is invalid, or it is not a loopback address and HTTPS is off.
    pub fn web(&self) -> Result<Option<SocketAddr>, ConfigError> {
        let web = &self.config().web;
        let Some(bind) = &web.bind else { return Ok(None) };
        let address = self.address(bind)?.into_iter().next();
        let at = bind.span().start;
        let Some(address) = address else {
            return Err(self.mistake(at, "the name has no address", "write \"127.0.0.1:8080\""));
        };
        match (&web.certificate, &web.key) {
            (Some(_), None) | (None, Some(_)) => {
                Err(self.section_error("web", "HTTPS needs certificate and key", "name both, or neither"))
            }
            (None, None) if !address.ip().is_loopback() => Err(self.mistake(
                at,
                format!("{address} is not a loopback address, and without HTTPS passwords would be sent unencrypted"),
                "set certificate and key for HTTPS, or bind it to 127.0.0.1",
            )),
            _ => Ok(Some(address)),
        }
    }

    /// The roles, their identities, and their permissions.
    ///
    /// # Errors
    /// A name that does not exist.
    pub fn authorization(&self) -> Result<Authorization, ConfigError> {
        let mut authorization = match self.config().permissions.unspecified {
            Unspecified::Suggested => Authorization::suggested(),
            Unspecified::Open => Authorization::open(),
        };
        for section in &self.config().role {
            self.add_role(section, &mut authorization)?;
        }
        for section in &self.config().namespace {
            let access = self.access(section, &authorization)?;
            authorization.namespaces.insert(section.uri.get_ref().clone(), access);
        }
        Ok(authorization)
    }

    fn add_role(&self, section: &RoleSection, authorization: &mut Authorization) -> Result<(), ConfigError> {
        let name = section.name.get_ref();
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(self.mistake(section.name.span().start, "a role needs a name", ""));
        }
        crate::users::role::warn_of_name(name);
        if authorization.role(name).is_none() {
            authorization.roles.push(Role::new(role_id(name), name));
        }
        let rules = self.rules(section)?;
        let endpoints = match &section.only_modes {
            None => None,
            Some(modes) => {
                let list = modes.iter().map(|mode| {
                    let mode = self.named(mode, "mode", &MODES)?;
                    Ok(EndpointRestriction { mode: Some(mode), ..EndpointRestriction::default() })
                });
                Some(Restriction { exclude: false, list: list.collect::<Result<_, ConfigError>>()? })
            }
        };
        let applications = match (&section.only_applications, &section.not_applications) {
            (None, None) => None,
            (Some(list), None) => Some(Restriction { exclude: false, list: list.clone() }),
            (None, Some(list)) => Some(Restriction { exclude: true, list: list.clone() }),
            (Some(_), Some(_)) => {
                let problem = "only_applications and not_applications exclude each other";
                return Err(self.mistake(section.name.span().start, problem, ""));
            }
        };
        if let Some(role) = authorization.role_mut(name) {
            if section.replace {
                role.identities.clear();
            }
            role.identities.extend(rules);
            role.applications = applications;
            role.endpoints = endpoints;
        }
        Ok(())
    }

    fn rules(&self, section: &RoleSection) -> Result<Vec<IdentityRule>, ConfigError> {
        use IdentityRule as R;
        let mut rules = Vec::new();
        rules.extend(section.anonymous.then_some(R::Anonymous));
        rules.extend(section.authenticated_users.then_some(R::AuthenticatedUser));
        rules.extend(section.trusted_applications.then_some(R::TrustedApplication));
        rules.extend(section.users.iter().cloned().map(R::UserName));
        rules.extend(section.applications.iter().cloned().map(R::Application));
        rules.extend(section.subjects.iter().cloned().map(R::X509Subject));
        rules.extend(section.token_roles.iter().cloned().map(R::Role));
        rules.extend(section.token_groups.iter().cloned().map(R::GroupId));
        for thumbprint in &section.thumbprints {
            // Users copy thumbprints with colons, spaces and in any case.
            let digits: String =
                thumbprint.get_ref().chars().filter(|char| !matches!(char, ':' | ' ')).collect();
            if digits.len() != 40 || !digits.chars().all(|char| char.is_ascii_hexdigit()) {
                let problem = format!("{:?} is not a thumbprint", thumbprint.get_ref());
                return Err(self.mistake(thumbprint.span().start, problem, "it has 40 hexadecimal digits"));
            }
            rules.push(R::Thumbprint(digits.to_ascii_uppercase()));
        }
        Ok(rules)
    }

    fn access(
        &self,
        section: &NamespaceSection,
        authorization: &Authorization,
    ) -> Result<Access, ConfigError> {
        let roles: Vec<(&str, NodeId)> =
            authorization.roles.iter().map(|role| (role.name.as_str(), role.id.clone())).collect();
        let mut permissions = Vec::new();
        for (role, names) in &section.permissions {
            let role = self.named(role, "role", &roles)?;
            let mut all = PermissionType::EMPTY;
            for name in names {
                all |= self.named(name, "permission", &PERMISSIONS)?;
            }
            permissions.push((role, all));
        }
        let mut restrictions = AccessRestrictionType::EMPTY;
        for name in &section.restrictions {
            restrictions |= self.named(name, "restriction", &RESTRICTIONS)?;
        }
        Ok(Access {
            role_permissions: (!permissions.is_empty()).then_some(permissions),
            access_restrictions: (!restrictions.is_empty()).then_some(restrictions),
        })
    }

    /// Looks up a name.
    pub(super) fn named<T: Clone>(
        &self,
        name: &Spanned<String>,
        kind: &str,
        all: &[(&str, T)],
    ) -> Result<T, ConfigError> {
        let wanted = name.get_ref().as_str();
        if let Some((_, meaning)) = all.iter().find(|(name, _)| *name == wanted) {
            return Ok(meaning.clone());
        }
        let hint = meant(wanted, all.iter().map(|(name, _)| *name));
        Err(self.mistake(name.span().start, format!("there is no {kind} {wanted:?}"), hint))
    }

    /// Copies the limits.
    pub fn apply_limits(&self, limits: &mut Limits) {
        let section = &self.config().limits;
        limits.sessions_max = section.sessions;
        let added = &self.config().node_management;
        limits.added_nodes_max = added.nodes;
        limits.added_node_bytes_max = added.megabytes << 20;
        // Discovery clients have no session, and reconnecting clients need two connections for a moment.
        limits.connections_max = section.sessions + 100;
        limits.session_timeout_max = section.session_timeout * 1e3;
        limits.session_timeout_min = limits.session_timeout_min.min(limits.session_timeout_max);
        limits.subscriptions.subscriptions_per_session_max = section.subscriptions_per_session;
        limits.subscriptions.monitored_items_per_subscription_max = section.monitored_items_per_subscription;
        limits.set_monitored_items_max(section.monitored_items);
        limits.subscriptions.publishing_interval_min = section.publishing_interval_min;
    }

    /// When the audit file is rotated, and how many files are kept.
    #[must_use]
    pub fn audit_rotation(&self) -> Rotation {
        let section = &self.config().audit;
        Rotation {
            bytes_max: u64::from(section.megabytes_per_file) << 20,
            age_max: Duration::from_secs(u64::from(section.hours_per_file) * 3600),
            files: section.files,
        }
    }

    /// Which events are audited.
    #[must_use]
    pub fn audit(&self) -> AuditConfig {
        let section = &self.config().audit;
        let mut audit = AuditConfig::default();
        audit.sessions = section.sessions;
        audit.updates = section.updates;
        audit.records_per_second_max = section.records_per_second;
        audit
    }
}

/// The NodeId of a role that a file defines. It is in the server's own namespace and is stable over restarts.
#[must_use]
pub fn role_id(name: &str) -> NodeId {
    NodeId::string(1, format!("Roles/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use taktwerk_server::authorization::{Identity, UserIdentity, role::well_known};

    const BASE: &str = "[security]\nnone = true\n[identities]\nanonymous = true\n";

    fn authorization(text: &str) -> Authorization {
        ConfigFile::parse(Path::new("c"), &format!("{BASE}{text}")).unwrap().authorization().unwrap()
    }

    fn user(name: &str, mode: MessageSecurityMode) -> Identity {
        Identity::new(UserIdentity::UserName(name.into()), Some("urn:a"), "", SecurityPolicy::None, mode)
    }

    #[test]
    fn roles_are_granted_as_the_file_says() {
        let all = authorization(
            "[[role]]\nname = \"Operator\"\nusers = [\"olaf\"]\nonly_modes = [\"SignAndEncrypt\"]\n\
             [[role]]\nname = \"Painter\"\nusers = [\"otto\"]\nnot_applications = [\"urn:a\"]\n",
        );
        let has = |identity: &Identity, id: NodeId| all.roles_of(identity).contains(&id);
        let operator = NodeId::numeric(0, well_known::OPERATOR);
        assert!(has(&user("olaf", MessageSecurityMode::SignAndEncrypt), operator.clone()));
        assert!(!has(&user("olaf", MessageSecurityMode::Sign), operator.clone()));
        assert!(!has(&user("otto", MessageSecurityMode::SignAndEncrypt), operator));
        let painter = NodeId::string(1, "Roles/Painter");
        assert!(!has(&user("otto", MessageSecurityMode::Sign), painter));
    }

    #[test]
    fn defaults_of_the_specification_can_be_replaced() {
        let name = |all: &Authorization| all.role("Anonymous").map(|role| role.identities.len());
        assert_eq!(name(&authorization("")), Some(2));
        assert_eq!(name(&authorization("[[role]]\nname = \"Anonymous\"\nreplace = true\n")), Some(0));
    }

    #[test]
    fn namespaces_have_permissions_and_restrictions() {
        let all = authorization(
            "[[namespace]]\nuri = \"urn:a\"\nrestrictions = [\"SigningRequired\", \"ApplyRestrictionsToBrowse\"]\n\
             [namespace.permissions]\nObserver = [\"Browse\", \"Read\"]\n",
        );
        let access = &all.namespaces["urn:a"];
        assert_eq!(access.access_restrictions, Some(AccessRestrictionType(9)));
        let observer = NodeId::numeric(0, well_known::OBSERVER);
        assert_eq!(access.role_permissions, Some(vec![(observer, PermissionType(33))]));
    }

    #[test]
    fn thumbprints_may_have_colons_and_any_case() {
        let digits = "00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff:00:11:22:33";
        let all = authorization(&format!("[[role]]\nname = \"Engineer\"\nthumbprints = [\"{digits}\"]\n"));
        let rules = &all.role("Engineer").unwrap().identities;
        assert_eq!(rules[..], [IdentityRule::Thumbprint("00112233445566778899AABBCCDDEEFF00112233".into())]);
        let wrong = format!("{BASE}[[role]]\nname = \"Engineer\"\nthumbprints = [\"abc\"]\n");
        let error = ConfigFile::parse(Path::new("c"), &wrong).unwrap_err();
        assert!(error.to_string().starts_with("c:7: \"abc\" is not a thumbprint"), "{error}");
    }

    #[test]
    fn policies_and_modes_are_those_of_the_specification() {
        let parse = |text: &str| {
            let text = format!("[security]\n{text}\n[identities]\nanonymous = true\n");
            ConfigFile::parse(Path::new("c"), &text).map_err(|error| error.to_string())
        };
        let all = parse("").unwrap();
        assert_eq!(all.policies().unwrap(), None);
        assert_eq!(all.modes().unwrap(), [MessageSecurityMode::SignAndEncrypt]);
        let some =
            parse("policies = [\"Basic256Sha256\", \"ECC_nistP256_AesGcm\"]\nmodes = [\"Sign\"]").unwrap();
        let named = vec![SecurityPolicy::Basic256Sha256, SecurityPolicy::ECC_nistP256_AesGcm];
        assert_eq!(some.policies().unwrap(), Some(named));
        assert_eq!(some.modes().unwrap(), [MessageSecurityMode::Sign]);
        for (text, expected) in [
            ("policies = [\"Basic256Sha265\"]", "did you mean \"Basic256Sha256\"?"),
            ("policies = [\"Basic128Rsa15\"]", "c:2: there is no usable policy \"Basic128Rsa15\""),
            ("policies = [\"None\"]", "`none = true` offers it"),
            ("modes = [\"None\"]", "c:2: there is no mode of a policy \"None\""),
            ("modes = []", "modes is empty"),
            ("policies = []", "nothing is offered"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn the_dashboard_listens_on_loopback_or_with_https() {
        let base = "[identities]\nanonymous = true\n";
        let web = |section: &str| {
            ConfigFile::parse(Path::new("c"), &format!("{base}[web]\n{section}")).and_then(|file| file.web())
        };
        assert_eq!(web("").unwrap(), None);
        assert_eq!(web("bind = \"127.0.0.1:8080\"\n").unwrap(), Some(([127, 0, 0, 1], 8080).into()));
        let open = web("bind = \"0.0.0.0:8080\"\n").unwrap_err().to_string();
        assert!(open.starts_with("c:4: 0.0.0.0:8080 is not a loopback address"), "{open}");
        let half = web("bind = \"0.0.0.0:8080\"\ncertificate = \"a.pem\"\n").unwrap_err().to_string();
        assert!(half.starts_with("c:3: HTTPS needs certificate and key"), "{half}");
        let both = "bind = \"0.0.0.0:8080\"\ncertificate = \"a.pem\"\nkey = \"a.key\"\n";
        assert!(web(both).unwrap().is_some());
        let wrong = web("bind = \"here\"\n").unwrap_err().to_string();
        assert!(wrong.starts_with("c:4: \"here\" is not a valid listen address"), "{wrong}");
    }

    #[test]
    fn certificate_hosts_are_the_listen_hosts() {
        let text = "[server]\nbind = [\"0.0.0.0:1\", \"[::1]:2\", \"localhost:3\", \"192.0.2.7:4\"]\n\
                    [identities]\nanonymous = true\n";
        let file = ConfigFile::parse(Path::new("c"), text).unwrap();
        assert_eq!(file.hosts(), ["::1", "localhost", "192.0.2.7"]);
    }
}
