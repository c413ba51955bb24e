//! Roles that clients have changed with AddRole, AddIdentity and similar methods (Part 18 §4.2, §4.4), as stored in the
//! users file.

use serde::{Deserialize, Serialize};
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_schema::IdentityCriteriaType;
use taktwerk_server::authorization::{Authorization, EndpointRestriction, IdentityRule, Restriction, Role};
use taktwerk_types::NodeId;

/// Longest name of a role, in bytes.
pub const ROLE_NAME_LEN_MAX: usize = 128;

/// Whether a new role may have this name, which becomes a BrowseName (Part 18 §4.2.2) and a part of NodeIds. The NodeIds of a role's
/// nodes are paths such as `Roles/NAME/Identities`, so `/` would make them ambiguous.
#[must_use]
pub fn is_role_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= ROLE_NAME_LEN_MAX
        && name.trim() == name
        && !name.contains(|char: char| char.is_control() || char == '/')
}

/// Warns of the name of a role in a file that [`is_role_name`] refuses for new ones.
pub(crate) fn warn_of_name(name: &str) {
    if name.contains('/') {
        tracing::warn!(
            role = name,
            "the name of this role contains `/`: the NodeIds of its nodes may be those of another role. Rename it"
        );
    }
}

/// A changed role. It replaces the role of the configuration. The `roles` of users are added to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagedRole {
    /// Name of a well-known role, of a role of the configuration, or of one that a client has added.
    pub name: String,
    /// Whether a client has added the role.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub added: bool,
    /// The namespace of an added role's BrowseName; empty for the server's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Identity mapping rules that grant the role.
    #[serde(default)]
    pub identities: Vec<Identity>,
    /// Whether `applications` lists the excluded applications instead of the included ones.
    pub applications_exclude: bool,
    /// ApplicationUris.
    #[serde(default)]
    pub applications: Vec<String>,
    /// Whether `endpoints` lists the excluded endpoints instead of the included ones.
    pub endpoints_exclude: bool,
    /// Endpoints.
    #[serde(default)]
    pub endpoints: Vec<Endpoint>,
}

/// An IdentityMappingRuleType.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity(pub IdentityRule);

/// The names of the criteria in the file.
const CRITERIA: [(&str, IdentityCriteriaType); 9] = [
    ("UserName", IdentityCriteriaType::USER_NAME),
    ("Thumbprint", IdentityCriteriaType::THUMBPRINT),
    ("Role", IdentityCriteriaType::ROLE),
    ("GroupId", IdentityCriteriaType::GROUP_ID),
    ("Anonymous", IdentityCriteriaType::ANONYMOUS),
    ("AuthenticatedUser", IdentityCriteriaType::AUTHENTICATED_USER),
    ("Application", IdentityCriteriaType::APPLICATION),
    ("X509Subject", IdentityCriteriaType::X509_SUBJECT),
    ("TrustedApplication", IdentityCriteriaType::TRUSTED_APPLICATION),
];

/// An [`Identity`] as stored in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEntry {
    criteria_type: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    criteria: String,
}

impl Serialize for Identity {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, criteria) = self.0.criteria();
        let name = CRITERIA.iter().find(|(_, known)| *known == kind).map_or("", |(name, _)| name);
        FileEntry { criteria_type: name.to_owned(), criteria: criteria.to_owned() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Identity {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = FileEntry::deserialize(deserializer)?;
        let kind = CRITERIA.iter().find(|(name, _)| *name == written.criteria_type);
        let rule = kind.and_then(|(_, kind)| IdentityRule::from_criteria(*kind, &written.criteria));
        rule.map(Self).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{:?} with the criteria {:?} is not an identity mapping rule of Part 18 §4.4.3",
                written.criteria_type, written.criteria
            ))
        })
    }
}

/// An EndpointType. Missing fields match every endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// The URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The number of the MessageSecurityMode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u8>,
    /// The URI of the SecurityPolicy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

/// The MessageSecurityMode with this number.
pub(crate) fn mode_of(number: u8) -> Option<MessageSecurityMode> {
    use MessageSecurityMode as M;
    [M::None, M::Sign, M::SignAndEncrypt].into_iter().find(|mode| mode.number() == i32::from(number))
}

impl Endpoint {
    pub(crate) fn of(endpoint: &EndpointRestriction) -> Self {
        Self {
            url: endpoint.url.clone(),
            mode: endpoint.mode.and_then(|mode| u8::try_from(mode.number()).ok()),
            policy: endpoint.policy.map(|policy| policy.uri().to_owned()),
        }
    }

    /// `None` if the mode or the policy does not exist. Such an endpoint matches nothing.
    fn restriction(&self) -> Option<EndpointRestriction> {
        Some(EndpointRestriction {
            url: self.url.clone(),
            mode: self.mode.map(|mode| mode_of(mode).ok_or(())).transpose().ok()?,
            policy: match &self.policy {
                None => None,
                Some(uri) => Some(SecurityPolicy::from_uri(uri)?),
            },
        })
    }
}

impl ManagedRole {
    /// The current state of a role.
    #[must_use]
    pub fn of(role: &Role) -> Self {
        let (applications_exclude, applications) =
            role.applications.as_ref().map_or((true, Vec::new()), |all| (all.exclude, all.list.clone()));
        let (endpoints_exclude, endpoints) =
            role.endpoints.as_ref().map_or((true, Vec::new()), |all| (all.exclude, all.list.clone()));
        Self {
            name: role.name.clone(),
            added: false,
            namespace: String::new(),
            identities: role.identities.iter().cloned().map(Identity).collect(),
            applications_exclude,
            applications,
            endpoints_exclude,
            endpoints: endpoints.iter().map(Endpoint::of).collect(),
        }
    }

    /// A new role that is granted to no identity. Its lists exclude (Part 18 §4.2.2).
    #[must_use]
    pub fn new(name: &str, namespace: &str) -> Self {
        let empty = Role::new(NodeId::NULL, name);
        Self { added: true, namespace: namespace.to_owned(), ..Self::of(&empty) }
    }

    /// The NodeId of a role in the server's own namespace.
    #[must_use]
    pub fn id_of(name: &str) -> NodeId {
        NodeId::string(1, format!("Roles/{name}"))
    }

    /// Replaces the role in `authorization`. Returns false if the configuration has no such role any more.
    pub(crate) fn apply(&self, authorization: &mut Authorization) -> bool {
        if self.added && authorization.role(&self.name).is_none() {
            authorization.roles.push(Role::new(Self::id_of(&self.name), &self.name));
        }
        let Some(role) = authorization.role_mut(&self.name) else { return false };
        role.identities = self.identities.iter().map(|identity| identity.0.clone()).collect();
        let applications =
            Restriction { exclude: self.applications_exclude, list: self.applications.clone() };
        role.applications = Some(applications);
        let list = self.endpoints.iter().filter_map(Endpoint::restriction).collect();
        role.endpoints = Some(Restriction { exclude: self.endpoints_exclude, list });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::Users;
    use std::path::Path;

    #[test]
    fn a_role_survives_writing_and_reading() {
        let mut authorization = Authorization::suggested();
        let role = authorization.role_mut("Operator").unwrap();
        role.identities = vec![IdentityRule::GroupId("shift".into()), IdentityRule::TrustedApplication];
        let mode = Some(MessageSecurityMode::Sign);
        let endpoint = EndpointRestriction { mode, policy: Some(SecurityPolicy::Basic256Sha256), url: None };
        role.endpoints = Some(Restriction { exclude: false, list: vec![endpoint] });
        let mut users = Users::default();
        users.roles.push(ManagedRole::of(authorization.role("Operator").unwrap()));
        users.roles.push(ManagedRole::new("Cleaner", "urn:roles"));
        let text = toml::to_string(&users).unwrap();
        let again = Users::parse(Path::new("users.toml"), &text).unwrap();
        assert_eq!(again.roles, users.roles, "{text}");
        let mut fresh = Authorization::suggested();
        assert!(again.roles.iter().all(|role| role.apply(&mut fresh)));
        let (before, after) = (authorization.role("Operator").unwrap(), fresh.role("Operator").unwrap());
        assert_eq!((&before.identities, &before.endpoints), (&after.identities, &after.endpoints));
        assert_eq!(fresh.role("Cleaner").unwrap().id, NodeId::string(1, "Roles/Cleaner"));
        // A role that was removed from the configuration is not created again.
        let gone = ManagedRole { added: false, ..ManagedRole::new("Gone", "") };
        assert!(!gone.apply(&mut fresh));
    }

    #[test]
    fn names_that_are_paths_are_refused_for_new_roles() {
        for name in ["", "a/b", "/", "Operator/Identities", " a", "a ", "a\n", &"a".repeat(129)] {
            assert!(!is_role_name(name), "{name:?}");
        }
        for name in ["a", "Line 1", "a.b", "Maler & Söhne", &"a".repeat(128)] {
            assert!(is_role_name(name), "{name:?}");
        }
        // A file of an earlier version.
        let mut users = Users::default();
        users.roles.push(ManagedRole::new("a/b", ""));
        let again = Users::parse(Path::new("u"), &toml::to_string(&users).unwrap()).unwrap();
        assert_eq!(again.roles, users.roles);
    }

    #[test]
    fn wrong_rules_are_named() {
        let text = "[[role]]\nname = \"Operator\"\napplications_exclude = true\nendpoints_exclude = true\n\
                    [[role.identities]]\ncriteria_type = \"Username\"\ncriteria = \"a\"\n";
        let error = Users::parse(Path::new("u"), text).unwrap_err().to_string();
        assert!(error.contains("\"Username\""), "{error}");
    }
}
