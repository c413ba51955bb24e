//! Roles as clients have changed them (Part 18 §4.2, §4.4): what the file keeps of AddRole, AddIdentity and the like.

use serde::{Deserialize, Serialize};
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_schema::IdentityCriteriaType;
use taktwerk_server::authorization::{Authorization, EndpointRestriction, IdentityRule, Restriction, Role};
use taktwerk_types::NodeId;

/// Longest name of a role, in bytes.
pub const ROLE_NAME_LEN_MAX: usize = 128;

/// What is said of a role. It replaces what the configuration says of it, except for users' own roles, which are added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagedRole {
    /// The name: of a well-known role, one of the configuration, or one that a client has added.
    pub name: String,
    /// Whether a client has added the role.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub added: bool,
    /// The namespace of an added role's BrowseName; empty for the server's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Who is granted the role.
    #[serde(default)]
    pub identities: Vec<Identity>,
    /// Whether `applications` lists those that are excluded, and not those that are included.
    pub applications_exclude: bool,
    /// ApplicationUris.
    #[serde(default)]
    pub applications: Vec<String>,
    /// Whether `endpoints` lists those that are excluded, and not those that are included.
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

/// An [`Identity`] as the file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    criteria_type: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    criteria: String,
}

impl Serialize for Identity {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, criteria) = self.0.criteria();
        let name = CRITERIA.iter().find(|(_, known)| *known == kind).map_or("", |(name, _)| name);
        Written { criteria_type: name.to_owned(), criteria: criteria.to_owned() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Identity {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let kind = CRITERIA.iter().find(|(name, _)| *name == written.criteria_type);
        let rule = kind.and_then(|(_, kind)| IdentityRule::from_criteria(*kind, &written.criteria));
        rule.map(Self).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{:?} with the criteria {:?} is no identity mapping rule of Part 18 §4.4.3",
                written.criteria_type, written.criteria
            ))
        })
    }
}

/// An EndpointType; what is missing matches every endpoint.
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

/// The mode of a number.
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

    /// `None` if mode or policy do not exist: such an endpoint matches nothing.
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
    /// What a role is now.
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

    /// A new role that nobody is granted. Its lists exclude (Part 18 §4.2.2).
    #[must_use]
    pub fn new(name: &str, namespace: &str) -> Self {
        let nobodys = Role::new(NodeId::NULL, name);
        Self { added: true, namespace: namespace.to_owned(), ..Self::of(&nobodys) }
    }

    /// The NodeId of a role of the server's own.
    #[must_use]
    pub fn id_of(name: &str) -> NodeId {
        NodeId::string(1, format!("Roles/{name}"))
    }

    /// Puts this in place of what is said of the role. Returns false if there is no such role, because the configuration
    /// no longer has it.
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
    fn a_role_is_kept_and_read_again() {
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
        // A role of a configuration that is no longer there is not made again.
        let gone = ManagedRole { added: false, ..ManagedRole::new("Gone", "") };
        assert!(!gone.apply(&mut fresh));
    }

    #[test]
    fn wrong_rules_are_named() {
        let text = "[[role]]\nname = \"Operator\"\napplications_exclude = true\nendpoints_exclude = true\n\
                    [[role.identities]]\ncriteria_type = \"Username\"\ncriteria = \"a\"\n";
        let error = Users::parse(Path::new("u"), text).unwrap_err().to_string();
        assert!(error.contains("\"Username\""), "{error}");
    }
}
