//! One audit record, with the names of the specification's AuditEventTypes (Part 5 §6.4).

use super::value::AuditValue;
use crate::account::HeapSize;
use crate::alarm::Method;
use crate::authorization::UserIdentity;
use core::net::IpAddr;
use std::borrow::Cow;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_schema::ids::object_type_ids as t;
use taktwerk_schema::{AddNodesRequest, AddReferencesRequest, DeleteNodesRequest};
use taktwerk_schema::{IssuedIdentityToken, UserNameIdentityToken, X509IdentityToken};
use taktwerk_types::{ExtensionObject, NodeId, StatusCode, Structure, UtcTime};

/// Longest text of a client's that a record repeats, in bytes.
const CLIENT_TEXT_LEN_MAX: usize = 128;

/// What happened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AuditRecord {
    /// ActionTimeStamp.
    pub time: UtcTime,
    /// What became of it (StatusCodeId); bad if the action was refused or failed.
    pub status: StatusCode,
    /// ClientAuditEntryId, as the client gave it, cut to 128 bytes.
    pub client_audit_entry_id: Box<str>,
    /// ClientUserId: the user of the session, empty for Anonymous and before there is one.
    pub client_user_id: Box<str>,
    /// The address from which the connection comes.
    pub client_address: Option<IpAddr>,
    /// SecureChannelId; 0 if the action came through none.
    pub secure_channel_id: u32,
    /// SessionId; null if there is no session.
    pub session_id: NodeId,
    /// What was done.
    pub action: AuditAction,
    /// Whose quota it is counted in.
    pub class: AuditClass,
}

/// Who can cause records. Each class has a quota of its own, so that those who are not known cannot suppress what others do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AuditClass {
    /// What the server says of itself: certificates that are no longer accepted, or accepted although something is wrong
    /// with them.
    Security,
    /// Method calls of users and of applications with a trusted certificate: they change configurations.
    Configuration,
    /// Writes of the same.
    Update,
    /// Channels and sessions of the same, logins that failed among them.
    Trusted,
    /// Logins that failed with the name of a user that exists, from an application without a trusted certificate.
    KnownUser,
    /// Everything else.
    Stranger,
}

impl AuditClass {
    /// All classes.
    pub const ALL: [Self; 6] =
        [Self::Security, Self::Configuration, Self::Update, Self::Trusted, Self::KnownUser, Self::Stranger];

    /// The class of what somebody does who is known by name or certificate, or is not.
    pub(crate) fn of(action: &AuditAction, is_known: bool) -> Self {
        match action {
            AuditAction::Certificate { is_overlooked: true, .. } | AuditAction::Suppressed { .. } => {
                Self::Security
            }
            _ if !is_known => Self::Stranger,
            AuditAction::CallMethod { .. } => Self::Configuration,
            AuditAction::Write { .. }
            | AuditAction::Cancel { .. }
            | AuditAction::NodeManagement { .. }
            | AuditAction::HistoryUpdate { .. } => Self::Update,
            _ => Self::Trusted,
        }
    }

    /// Its name, as it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Security => "Security",
            Self::Configuration => "Configuration",
            Self::Update => "Update",
            Self::Trusted => "Trusted",
            Self::KnownUser => "KnownUser",
            Self::Stranger => "Stranger",
        }
    }

    /// Where it stands in [`Self::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether everybody who can connect can cause as many records as they like.
    pub(crate) const fn is_open_to_all(self) -> bool {
        matches!(self, Self::KnownUser | Self::Stranger)
    }
}

/// What was done, or tried.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AuditAction {
    /// AuditOpenSecureChannelEventType.
    OpenSecureChannel {
        /// SHA-1 of the client's certificate, in hexadecimal digits; empty without one.
        client_certificate_thumbprint: Box<str>,
        /// Whether an open channel got new keys.
        is_renewal: bool,
        /// The algorithms; `None` if the request was refused before they were known.
        security_policy: Option<SecurityPolicy>,
        /// What is done to messages; `None` if the request was refused before it could be read.
        security_mode: Option<MessageSecurityMode>,
    },
    /// AuditChannelEventType, for a channel that ends.
    CloseSecureChannel,
    /// One of the subtypes of AuditCertificateEventType: a certificate was refused, or taken nevertheless. The status says
    /// at which step of Part 4 §6.1.3, which the client is not told.
    Certificate {
        /// SHA-1 of the certificate, in hexadecimal digits; empty if it is not known.
        thumbprint: Box<str>,
        /// The options say that this is to be overlooked.
        is_overlooked: bool,
    },
    /// AuditCreateSessionEventType.
    CreateSession {
        /// ms.
        revised_session_timeout: f64,
    },
    /// AuditActivateSessionEventType.
    ActivateSession {
        /// Who it is, or who it claims to be if it was refused.
        user: AuditUser,
        /// CurrentRoleIds.
        roles: Vec<NodeId>,
    },
    /// AuditSessionEventType, for a session that ends.
    CloseSession,
    /// AuditCancelEventType.
    Cancel {
        /// The handle of the requests.
        request_handle: u32,
    },
    /// AuditWriteUpdateEventType.
    Write {
        /// The node.
        node_id: NodeId,
        /// The attribute.
        attribute_id: u32,
        /// IndexRange, cut to 128 bytes.
        index_range: Box<str>,
        /// What was there; `None` if that is not known, as after a refusal.
        old_value: Option<AuditValue>,
        /// What was written or was to be.
        new_value: AuditValue,
    },
    /// AuditHistoryUpdateEventType and its subtypes.
    HistoryUpdate {
        /// The node whose history was changed.
        node_id: NodeId,
        /// The name of the details, such as UpdateDataDetails.
        details: &'static str,
        /// How many values or times there were; 0 for a range.
        count: u32,
    },
    /// AuditUpdateMethodEventType.
    CallMethod {
        /// The object.
        object_id: NodeId,
        /// The method.
        method_id: NodeId,
        /// What was passed.
        input_arguments: Vec<AuditValue>,
    },
    /// One of the subtypes of AuditNodeManagementEventType, for one node or reference.
    NodeManagement {
        /// The type id of the request: AddNodes, AddReferences, DeleteNodes or DeleteReferences.
        request: u32,
        /// The node, or the source of the reference; null for one that was not added.
        node_id: NodeId,
    },
    /// Records that were not made because there were too many.
    Suppressed {
        /// Of which class they were.
        class: AuditClass,
        /// How many.
        count: u64,
    },
}

/// A UserIdentityToken without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditUser {
    /// Anonymous, UserName, Certificate or IssuedToken.
    pub kind: &'static str,
    /// The user's name, the certificate's subject, or the token's.
    pub name: Box<str>,
}

impl HeapSize for AuditRecord {
    /// Texts are cut, and there are few of them: this is what the longest record takes.
    fn heap_size(&self) -> usize {
        4096
    }
}

impl AuditAction {
    /// An activation by the user that a token claims.
    pub(crate) fn activation(token: &ExtensionObject) -> Self {
        Self::ActivateSession { user: AuditUser::claimed(token), roles: Vec::new() }
    }
}

impl AuditUser {
    /// The user that a token claims. Nothing but names is looked at.
    fn claimed(token: &ExtensionObject) -> Self {
        if let Ok(token) = token.decode::<UserNameIdentityToken>() {
            return Self { kind: "UserName", name: cut(token.user_name.as_str()) };
        }
        let kind = if token.is::<X509IdentityToken>() {
            "Certificate"
        } else if token.is::<IssuedIdentityToken>() {
            "IssuedToken"
        } else {
            "Anonymous"
        };
        Self { kind, name: Box::default() }
    }

    /// A verified user.
    #[must_use]
    pub fn of(identity: &UserIdentity) -> Self {
        let (kind, name): (_, &str) = match identity {
            UserIdentity::Anonymous => ("Anonymous", ""),
            UserIdentity::UserName(name) => ("UserName", name),
            UserIdentity::Certificate { subject, .. } => ("Certificate", subject),
            UserIdentity::Issued { subject, .. } => ("IssuedToken", subject),
        };
        Self { kind, name: name.into() }
    }
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum AuditField<'a> {
    /// A text; what clients gave is in here as it is, with whatever characters.
    Text(Cow<'a, str>),
    /// A number.
    Number(f64),
    /// Yes or no.
    Boolean(bool),
    /// Texts.
    List(Vec<Cow<'a, str>>),
}

/// The start of a client's text.
pub(crate) fn cut(text: &str) -> Box<str> {
    let mut end = text.len().min(CLIENT_TEXT_LEN_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().into()
}

impl AuditRecord {
    /// Something that a request did.
    pub(crate) fn new(time: UtcTime, status: StatusCode, action: AuditAction) -> Self {
        let class = AuditClass::of(&action, false);
        Self {
            time,
            status,
            client_audit_entry_id: Box::default(),
            client_user_id: Box::default(),
            client_address: None,
            secure_channel_id: 0,
            session_id: NodeId::NULL,
            action,
            class,
        }
    }

    /// Something is wrong with a certificate that the options of validation overlook (Part 4 §6.1.3): `status` says at
    /// which step, `thumbprint` is its SHA-1 in hexadecimal digits.
    #[must_use]
    pub fn overlooked(time: UtcTime, status: StatusCode, thumbprint: &str) -> Self {
        Self::new(
            time,
            status,
            AuditAction::Certificate { thumbprint: thumbprint.into(), is_overlooked: true },
        )
    }

    /// The EventType: an ObjectType of namespace 0.
    #[must_use]
    pub fn event_type(&self) -> NodeId {
        NodeId::numeric(
            0,
            match &self.action {
                AuditAction::OpenSecureChannel { .. } => t::AUDIT_OPEN_SECURE_CHANNEL_EVENT_TYPE,
                AuditAction::CloseSecureChannel => t::AUDIT_CHANNEL_EVENT_TYPE,
                AuditAction::Certificate { .. } => certificate_event_type(self.status),
                AuditAction::CreateSession { .. } => t::AUDIT_CREATE_SESSION_EVENT_TYPE,
                AuditAction::ActivateSession { .. } => t::AUDIT_ACTIVATE_SESSION_EVENT_TYPE,
                AuditAction::CloseSession => t::AUDIT_SESSION_EVENT_TYPE,
                AuditAction::Cancel { .. } => t::AUDIT_CANCEL_EVENT_TYPE,
                AuditAction::Write { .. } => t::AUDIT_WRITE_UPDATE_EVENT_TYPE,
                AuditAction::HistoryUpdate { details, .. } => match *details {
                    "DeleteRawModifiedDetails" => t::AUDIT_HISTORY_RAW_MODIFY_DELETE_EVENT_TYPE,
                    "DeleteAtTimeDetails" => t::AUDIT_HISTORY_AT_TIME_DELETE_EVENT_TYPE,
                    "UpdateStructureDataDetails" => t::AUDIT_HISTORY_ANNOTATION_UPDATE_EVENT_TYPE,
                    "UpdateDataDetails" => t::AUDIT_HISTORY_VALUE_UPDATE_EVENT_TYPE,
                    _ => t::AUDIT_HISTORY_UPDATE_EVENT_TYPE,
                },
                AuditAction::CallMethod { method_id, .. } => method_event_type(method_id),
                AuditAction::NodeManagement { request, .. } => match *request {
                    AddNodesRequest::BINARY_ENCODING_ID => t::AUDIT_ADD_NODES_EVENT_TYPE,
                    AddReferencesRequest::BINARY_ENCODING_ID => t::AUDIT_ADD_REFERENCES_EVENT_TYPE,
                    DeleteNodesRequest::BINARY_ENCODING_ID => t::AUDIT_DELETE_NODES_EVENT_TYPE,
                    _ => t::AUDIT_DELETE_REFERENCES_EVENT_TYPE,
                },
                AuditAction::Suppressed { .. } => t::AUDIT_EVENT_TYPE,
            },
        )
    }

    /// The name of the EventType.
    #[must_use]
    pub fn event_type_name(&self) -> &'static str {
        taktwerk_schema::ns0::Ns0::get()
            .node(self.event_type().ns0().unwrap_or_default())
            .map_or("AuditEventType", |node| node.browse_name())
    }

    /// SourceName, as the specification wants it for the type.
    #[must_use]
    pub fn source_name(&self) -> &'static str {
        match &self.action {
            AuditAction::OpenSecureChannel { .. } => "SecureChannel/OpenSecureChannel",
            AuditAction::CloseSecureChannel => "SecureChannel/CloseSecureChannel",
            AuditAction::Certificate { .. } => "Security/Certificate",
            AuditAction::CreateSession { .. } => "Session/CreateSession",
            AuditAction::ActivateSession { .. } => "Session/ActivateSession",
            AuditAction::CloseSession => "Session/CloseSession",
            AuditAction::Cancel { .. } => "Session/Cancel",
            AuditAction::Write { .. } => "Attribute/Write",
            AuditAction::HistoryUpdate { .. } => "Attribute/HistoryUpdate",
            AuditAction::CallMethod { .. } => "Method/Call",
            AuditAction::NodeManagement { request, .. } => match *request {
                AddNodesRequest::BINARY_ENCODING_ID => "NodeManagement/AddNodes",
                AddReferencesRequest::BINARY_ENCODING_ID => "NodeManagement/AddReferences",
                DeleteNodesRequest::BINARY_ENCODING_ID => "NodeManagement/DeleteNodes",
                _ => "NodeManagement/DeleteReferences",
            },
            AuditAction::Suppressed { .. } => "Server/Audit",
        }
    }

    /// All fields with their names, those of the type behind those that all have.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, AuditField<'_>)> {
        let mut all = vec![
            ("EventType", text(self.event_type_name())),
            ("ActionTimeStamp", owned(self.time.to_string())),
            ("SourceName", text(self.source_name())),
            ("Status", AuditField::Boolean(!self.status.is_bad())),
            ("StatusCodeId", owned(self.status.to_string())),
        ];
        if !self.client_audit_entry_id.is_empty() {
            all.push(("ClientAuditEntryId", text(&self.client_audit_entry_id)));
        }
        if !self.client_user_id.is_empty() {
            all.push(("ClientUserId", text(&self.client_user_id)));
        }
        if let Some(address) = self.client_address {
            all.push(("ClientAddress", owned(address.to_string())));
        }
        if self.secure_channel_id != 0 {
            all.push(("SecureChannelId", number(self.secure_channel_id)));
        }
        if !self.session_id.is_null() {
            all.push(("SessionId", owned(self.session_id.to_string())));
        }
        self.action.fields(&mut all);
        all
    }
}

impl AuditAction {
    fn fields<'a>(&'a self, all: &mut Vec<(&'static str, AuditField<'a>)>) {
        match self {
            Self::OpenSecureChannel {
                client_certificate_thumbprint,
                is_renewal,
                security_policy,
                security_mode,
            } => {
                all.push(("RequestType", text(if *is_renewal { "Renew" } else { "Issue" })));
                if let Some(policy) = security_policy {
                    all.push(("SecurityPolicyUri", text(policy.uri())));
                }
                if let Some(mode) = security_mode {
                    all.push(("SecurityMode", owned(mode.to_string())));
                }
                if !client_certificate_thumbprint.is_empty() {
                    all.push(("ClientCertificateThumbprint", text(client_certificate_thumbprint)));
                }
            }
            Self::CloseSecureChannel | Self::CloseSession => {}
            Self::Certificate { thumbprint, is_overlooked } => {
                if *is_overlooked {
                    all.push(("Overlooked", AuditField::Boolean(true)));
                }
                if !thumbprint.is_empty() {
                    all.push(("CertificateThumbprint", text(thumbprint)));
                }
            }
            Self::CreateSession { revised_session_timeout } => {
                all.push(("RevisedSessionTimeout", AuditField::Number(*revised_session_timeout)));
            }
            Self::ActivateSession { user, roles } => {
                all.push(("UserIdentityToken", text(user.kind)));
                if !user.name.is_empty() {
                    all.push(("UserName", text(&user.name)));
                }
                let roles = roles.iter().map(|role| Cow::Owned(role.to_string())).collect();
                all.push(("CurrentRoleIds", AuditField::List(roles)));
            }
            Self::Cancel { request_handle } => all.push(("RequestHandle", number(*request_handle))),
            Self::Write { node_id, attribute_id, index_range, old_value, new_value } => {
                all.push(("SourceNode", owned(node_id.to_string())));
                all.push(("AttributeId", number(*attribute_id)));
                if !index_range.is_empty() {
                    all.push(("IndexRange", text(index_range)));
                }
                if let Some(old_value) = old_value {
                    all.push(("OldValue", text(old_value.as_str())));
                }
                all.push(("NewValue", text(new_value.as_str())));
            }
            Self::HistoryUpdate { node_id, details, count } => {
                all.push(("UpdatedNode", owned(node_id.to_string())));
                all.push(("Details", text(details)));
                all.push(("Count", number(*count)));
            }
            Self::CallMethod { object_id, method_id, input_arguments } => {
                all.push(("SourceNode", owned(object_id.to_string())));
                all.push(("MethodId", owned(method_id.to_string())));
                let inputs = input_arguments.iter().map(|value| Cow::Borrowed(value.as_str())).collect();
                all.push(("InputArguments", AuditField::List(inputs)));
            }
            Self::NodeManagement { node_id, .. } => {
                all.push(("SourceNode", owned(node_id.to_string())));
            }
            Self::Suppressed { class, count } => {
                all.push(("SuppressedClass", text(class.name())));
                all.push(("SuppressedCount", AuditField::Number(*count as f64)));
            }
        }
    }
}

fn text(text: &str) -> AuditField<'_> {
    AuditField::Text(Cow::Borrowed(text))
}

fn owned<'a>(text: String) -> AuditField<'a> {
    AuditField::Text(Cow::Owned(text))
}

fn number<'a>(number: u32) -> AuditField<'a> {
    AuditField::Number(f64::from(number))
}

/// The EventType of a method call: of those of conditions, Part 9 §5.10.
fn method_event_type(method: &NodeId) -> u32 {
    match method.ns0().and_then(Method::from_type) {
        Some((Method::Enable | Method::Disable, _)) => t::AUDIT_CONDITION_ENABLE_EVENT_TYPE,
        Some((Method::AddComment, _)) => t::AUDIT_CONDITION_COMMENT_EVENT_TYPE,
        Some((Method::Acknowledge, _)) => t::AUDIT_CONDITION_ACKNOWLEDGE_EVENT_TYPE,
        Some((Method::Confirm, _)) => t::AUDIT_CONDITION_CONFIRM_EVENT_TYPE,
        Some((Method::Respond, _)) => t::AUDIT_CONDITION_RESPOND_EVENT_TYPE,
        Some((Method::TimedShelve | Method::OneShotShelve | Method::Unshelve, _)) => {
            t::AUDIT_CONDITION_SHELVING_EVENT_TYPE
        }
        Some((Method::Suppress | Method::Unsuppress, _)) => t::AUDIT_CONDITION_SUPPRESSION_EVENT_TYPE,
        Some((Method::RemoveFromService | Method::PlaceInService, _)) => {
            t::AUDIT_CONDITION_OUT_OF_SERVICE_EVENT_TYPE
        }
        Some((Method::Silence, _)) => t::AUDIT_CONDITION_SILENCE_EVENT_TYPE,
        Some((Method::Reset, _)) => t::AUDIT_CONDITION_RESET_EVENT_TYPE,
        None => t::AUDIT_UPDATE_METHOD_EVENT_TYPE,
    }
}

/// The EventType for each reason to refuse a certificate (Part 4 §6.1.3, Table of validation steps).
fn certificate_event_type(status: StatusCode) -> u32 {
    use StatusCode as S;
    match status {
        S::BAD_CERTIFICATE_TIME_INVALID | S::BAD_CERTIFICATE_ISSUER_TIME_INVALID => {
            t::AUDIT_CERTIFICATE_EXPIRED_EVENT_TYPE
        }
        S::BAD_CERTIFICATE_UNTRUSTED | S::BAD_CERTIFICATE_CHAIN_INCOMPLETE => {
            t::AUDIT_CERTIFICATE_UNTRUSTED_EVENT_TYPE
        }
        S::BAD_CERTIFICATE_REVOKED
        | S::BAD_CERTIFICATE_ISSUER_REVOKED
        | S::BAD_CERTIFICATE_REVOCATION_UNKNOWN
        | S::BAD_CERTIFICATE_ISSUER_REVOCATION_UNKNOWN => t::AUDIT_CERTIFICATE_REVOKED_EVENT_TYPE,
        S::BAD_CERTIFICATE_USE_NOT_ALLOWED | S::BAD_CERTIFICATE_ISSUER_USE_NOT_ALLOWED => {
            t::AUDIT_CERTIFICATE_MISMATCH_EVENT_TYPE
        }
        S::BAD_CERTIFICATE_HOST_NAME_INVALID | S::BAD_CERTIFICATE_URI_INVALID => {
            t::AUDIT_CERTIFICATE_DATA_MISMATCH_EVENT_TYPE
        }
        _ => t::AUDIT_CERTIFICATE_INVALID_EVENT_TYPE,
    }
}

/// Bytes in hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> Box<str> {
    use core::fmt::Write;
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02X}");
    }
    digits.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_certificates_have_the_event_types_of_the_specification() {
        let name = |status| {
            let action = AuditAction::Certificate { thumbprint: "AB".into(), is_overlooked: false };
            AuditRecord::new(UtcTime::NULL, status, action).event_type_name()
        };
        assert_eq!(name(StatusCode::BAD_CERTIFICATE_INVALID), "AuditCertificateInvalidEventType");
        assert_eq!(name(StatusCode::BAD_CERTIFICATE_TIME_INVALID), "AuditCertificateExpiredEventType");
        assert_eq!(name(StatusCode::BAD_CERTIFICATE_UNTRUSTED), "AuditCertificateUntrustedEventType");
        assert_eq!(name(StatusCode::BAD_CERTIFICATE_REVOKED), "AuditCertificateRevokedEventType");
        assert_eq!(name(StatusCode::BAD_CERTIFICATE_USE_NOT_ALLOWED), "AuditCertificateMismatchEventType");
        assert_eq!(name(StatusCode::BAD_CERTIFICATE_URI_INVALID), "AuditCertificateDataMismatchEventType");
    }

    #[test]
    fn texts_of_clients_are_cut_between_characters() {
        assert_eq!(cut("short").len(), 5);
        let long = "é".repeat(100);
        assert_eq!(cut(&long).len(), 128);
        assert_eq!(cut(&format!("x{long}")).len(), 127);
    }
}
