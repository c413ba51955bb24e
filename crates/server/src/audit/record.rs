//! One audit record, with the names of the specification's AuditEventTypes (Part 5 §6.4).

use super::condition::AuditCondition;
use super::history::AuditHistory;
use super::method::{self, AuditChange};
use super::node_item::AuditItem;
use super::value::AuditValue;
use crate::account::HeapSize;
use crate::authorization::UserIdentity;
use core::net::IpAddr;
use std::borrow::Cow;
use std::sync::Arc;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_schema::ids::object_type_ids as t;
use taktwerk_schema::{IssuedIdentityToken, UserNameIdentityToken, X509IdentityToken};
use taktwerk_types::{ExtensionObject, NodeId, StatusCode, UtcTime};

/// Longest text from a client that a record contains, in bytes.
const CLIENT_TEXT_LEN_MAX: usize = 128;

/// An audit record.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AuditRecord {
    /// ActionTimeStamp.
    pub time: UtcTime,
    /// The result (StatusCodeId); bad if the action was refused or failed.
    pub status: StatusCode,
    /// ClientAuditEntryId from the client, cut to 128 bytes.
    pub client_audit_entry_id: Box<str>,
    /// ClientUserId: the user of the session; empty for Anonymous and before login.
    pub client_user_id: Box<str>,
    /// The client's address.
    pub client_address: Option<IpAddr>,
    /// SecureChannelId; 0 if there was no channel.
    pub secure_channel_id: u32,
    /// SessionId; null if there is no session.
    pub session_id: NodeId,
    /// The action.
    pub action: AuditAction,
    /// The class whose quota it counts against.
    pub class: AuditClass,
}

/// Who can cause a record. Each class has its own quota, so that unknown clients cannot suppress the records of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AuditClass {
    /// Records about the server itself: certificates no longer accepted, or accepted despite a problem.
    Security,
    /// Method calls by users and by applications with a trusted certificate: they change configurations.
    Configuration,
    /// Writes by the same.
    Update,
    /// Channels and sessions of the same, including failed logins.
    Trusted,
    /// Failed logins with the name of an existing user, from an application without a trusted certificate.
    KnownUser,
    /// Everything else.
    Stranger,
}

impl AuditClass {
    /// All classes.
    pub const ALL: [Self; 6] =
        [Self::Security, Self::Configuration, Self::Update, Self::Trusted, Self::KnownUser, Self::Stranger];

    /// The class of an action; `is_known` if the client is known by name or certificate.
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

    /// Its name in logs.
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

    /// Its index in [`Self::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether any client that can connect can cause any number of these records.
    pub(crate) const fn is_open_to_all(self) -> bool {
        matches!(self, Self::KnownUser | Self::Stranger)
    }
}

/// An action, or an attempt.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AuditAction {
    /// AuditOpenSecureChannelEventType.
    OpenSecureChannel {
        /// SHA-1 of the client's certificate, in hexadecimal digits; empty without one.
        client_certificate_thumbprint: Box<str>,
        /// The client's certificate; `None` without one, or if it is longer than 4096 bytes.
        client_certificate: Option<Arc<[u8]>>,
        /// RequestedLifetime in milliseconds; `None` if the request was refused before it could be read.
        requested_lifetime: Option<u32>,
        /// Whether it renewed an open channel.
        is_renewal: bool,
        /// The security policy; `None` if the request was refused before it was known.
        security_policy: Option<SecurityPolicy>,
        /// The security mode; `None` if the request was refused before it could be read.
        security_mode: Option<MessageSecurityMode>,
    },
    /// AuditChannelEventType, for a channel that ends.
    CloseSecureChannel,
    /// One of the subtypes of AuditCertificateEventType: a certificate was refused, or accepted despite a problem. The
    /// status names the step of Part 4 §6.1.3, which the client does not learn.
    Certificate {
        /// SHA-1 of the certificate in hexadecimal digits; empty if unknown.
        thumbprint: Box<str>,
        /// The certificate; `None` if unknown, or if it is longer than 4096 bytes.
        certificate: Option<Arc<[u8]>>,
        /// The validation options ignore this problem.
        is_overlooked: bool,
    },
    /// AuditCreateSessionEventType.
    CreateSession {
        /// In milliseconds.
        revised_session_timeout: f64,
        /// SHA-1 of the client's certificate, in hexadecimal digits; empty without one.
        client_certificate_thumbprint: Box<str>,
        /// The client's certificate; `None` without one, or if it is longer than 4096 bytes.
        client_certificate: Option<Arc<[u8]>>,
    },
    /// AuditActivateSessionEventType.
    ActivateSession {
        /// The user, or the claimed user if the login was refused.
        user: AuditUser,
        /// CurrentRoleIds.
        roles: Vec<NodeId>,
    },
    /// AuditSessionEventType, for a session that ends.
    CloseSession,
    /// AuditCancelEventType.
    Cancel {
        /// The handle of the cancelled requests.
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
        /// The previous value; `None` if unknown, for example after a refusal.
        old_value: Option<AuditValue>,
        /// The value that was or should have been written.
        new_value: AuditValue,
    },
    /// AuditHistoryUpdateEventType and its subtypes.
    HistoryUpdate {
        /// The node whose history was changed.
        node_id: NodeId,
        /// The name of the details, such as UpdateDataDetails.
        details: &'static str,
        /// Number of values or times; 0 for a range.
        count: u32,
        /// The parameters.
        parameters: AuditHistory,
    },
    /// AuditUpdateMethodEventType.
    CallMethod {
        /// The object.
        object_id: NodeId,
        /// The method.
        method_id: NodeId,
        /// The input arguments.
        input_arguments: Vec<AuditValue>,
        /// The change, if the record is about one.
        change: Option<AuditChange>,
        /// For a Method of a condition: which one, and its arguments.
        condition: Option<Box<AuditCondition>>,
    },
    /// One of the subtypes of AuditNodeManagementEventType, for one node or reference.
    NodeManagement {
        /// The operation.
        item: AuditItem,
        /// The node, or the source of the reference; null for a node that was not added.
        node_id: NodeId,
    },
    /// Records that were dropped because there were too many.
    Suppressed {
        /// Their class.
        class: AuditClass,
        /// Their number.
        count: u64,
    },
}

/// A UserIdentityToken without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditUser {
    /// Anonymous, UserName, Certificate or IssuedToken.
    pub kind: &'static str,
    /// The user's name, or the subject of the certificate or token.
    pub name: Box<str>,
}

impl HeapSize for AuditRecord {
    /// Texts are cut and lists are short, so a constant covers the longest record of a kind.
    fn heap_size(&self) -> usize {
        match self.action {
            AuditAction::HistoryUpdate { .. } => 12_288,
            _ => 4096,
        }
    }
}

impl AuditAction {
    /// An activation with the user that a token claims.
    pub(crate) fn activation(token: &ExtensionObject) -> Self {
        Self::ActivateSession { user: AuditUser::claimed(token), roles: Vec::new() }
    }
}

impl AuditUser {
    /// The user that a token claims. Only names are read.
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
    /// A text. Texts from clients are unescaped.
    Text(Cow<'a, str>),
    /// A number.
    Number(f64),
    /// Yes or no.
    Boolean(bool),
    /// Texts.
    List(Vec<Cow<'a, str>>),
}

/// The start of a text from a client.
pub(crate) fn cut(text: &str) -> Box<str> {
    let mut end = text.len().min(CLIENT_TEXT_LEN_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().into()
}

impl AuditRecord {
    /// Creates the record of a request.
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

    /// A certificate problem that the validation options ignore (Part 4 §6.1.3). `status` names the step, `thumbprint`
    /// is the certificate's SHA-1 in hexadecimal digits.
    #[must_use]
    pub fn overlooked(time: UtcTime, status: StatusCode, thumbprint: &str) -> Self {
        Self::new(
            time,
            status,
            AuditAction::Certificate {
                thumbprint: thumbprint.into(),
                certificate: None,
                is_overlooked: true,
            },
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
                AuditAction::HistoryUpdate { parameters, .. } => parameters.event_type(),
                AuditAction::CallMethod { change: Some(change), .. } => change.event_type(),
                AuditAction::CallMethod { condition: Some(condition), .. } => {
                    method::condition_event_type(condition.method)
                }
                AuditAction::CallMethod { method_id, .. } => method::event_type(method_id),
                AuditAction::NodeManagement { item, .. } => item.event_type(),
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

    /// SourceName, as the specification requires for the type.
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
            AuditAction::CallMethod { condition: Some(condition), .. } => {
                method::condition_source_name(condition.method)
            }
            AuditAction::CallMethod { .. } => method::CALL,
            AuditAction::NodeManagement { item, .. } => item.source_name(),
            AuditAction::Suppressed { .. } => "Server/Audit",
        }
    }

    /// All fields with their names: the common ones first, then those of the type.
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
                requested_lifetime,
                client_certificate: _,
            } => {
                all.push(("RequestType", text(if *is_renewal { "Renew" } else { "Issue" })));
                if let Some(policy) = security_policy {
                    all.push(("SecurityPolicyUri", text(policy.uri())));
                }
                if let Some(mode) = security_mode {
                    all.push(("SecurityMode", owned(mode.to_string())));
                }
                if let Some(lifetime) = requested_lifetime {
                    all.push(("RequestedLifetime", number(*lifetime)));
                }
                if !client_certificate_thumbprint.is_empty() {
                    all.push(("ClientCertificateThumbprint", text(client_certificate_thumbprint)));
                }
            }
            Self::CloseSecureChannel | Self::CloseSession => {}
            Self::Certificate { thumbprint, is_overlooked, certificate: _ } => {
                if *is_overlooked {
                    all.push(("Overlooked", AuditField::Boolean(true)));
                }
                if !thumbprint.is_empty() {
                    all.push(("CertificateThumbprint", text(thumbprint)));
                }
            }
            Self::CreateSession { revised_session_timeout, client_certificate_thumbprint, .. } => {
                all.push(("RevisedSessionTimeout", AuditField::Number(*revised_session_timeout)));
                if !client_certificate_thumbprint.is_empty() {
                    all.push(("ClientCertificateThumbprint", text(client_certificate_thumbprint)));
                }
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
            Self::HistoryUpdate { node_id, details, count, parameters } => {
                all.push(("UpdatedNode", owned(node_id.to_string())));
                all.push(("Details", text(details)));
                all.push(("Count", number(*count)));
                parameters.fields(all);
            }
            Self::CallMethod { object_id, method_id, input_arguments, change, condition } => {
                all.push(("SourceNode", owned(object_id.to_string())));
                all.push(("MethodId", owned(method_id.to_string())));
                let inputs = input_arguments.iter().map(|value| Cow::Borrowed(value.as_str())).collect();
                all.push(("InputArguments", AuditField::List(inputs)));
                if let Some(change) = change {
                    change.fields(all);
                }
                if let Some(condition) = condition {
                    condition.fields(all);
                }
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

/// The EventType for each reason for refusing a certificate (Part 4 §6.1.3, Table of validation steps).
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

/// A certificate for a record; `None` if it is too long.
pub(crate) fn short_certificate(certificate: &Arc<[u8]>) -> Option<Arc<[u8]>> {
    (certificate.len() <= CERTIFICATE_LEN_MAX).then(|| Arc::clone(certificate))
}

/// Longest certificate in a record, in bytes.
pub(crate) const CERTIFICATE_LEN_MAX: usize = 4096;

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
            let action =
                AuditAction::Certificate { thumbprint: "AB".into(), certificate: None, is_overlooked: false };
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
