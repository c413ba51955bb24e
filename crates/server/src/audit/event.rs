//! Audit records as AuditEvents (Part 5 §6.4.3 and its subtypes).
//!
//! The NodeSet grants them only to SecurityAdmin. This server also requires an encrypted channel, because they name
//! users, sessions and nodes.

use super::record::{AuditAction, AuditRecord, AuditUser};
use crate::event::NewEvent;
use std::sync::Arc;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_schema::ids::object_ids;
use taktwerk_schema::{
    AnonymousIdentityToken, DeleteAtTimeDetails, DeleteEventDetails, DeleteRawModifiedDetails,
    IssuedIdentityToken, UpdateDataDetails, UpdateEventDetails, UpdateStructureDataDetails,
    UserNameIdentityToken, X509IdentityToken,
};
use taktwerk_types::{ByteString, ExtensionObject, NodeId, Structure, UaString, Variant};

/// Severity of completed actions, and of refused or failed ones (Part 5 §6.4.2 defines the bands).
const SEVERITY_DONE: u16 = 100;
const SEVERITY_REFUSED: u16 = 500;
/// Severity of rejected certificates and of dropped records.
const SEVERITY_SECURITY: u16 = 700;

impl AuditRecord {
    /// The event for this record. `server` is its ServerId: the server's ApplicationUri.
    pub(crate) fn event(&self, server: &str) -> NewEvent {
        let status = self.status;
        let severity = match &self.action {
            AuditAction::Certificate { .. } | AuditAction::Suppressed { .. } => SEVERITY_SECURITY,
            _ if status.is_bad() => SEVERITY_REFUSED,
            _ => SEVERITY_DONE,
        };
        let who = if self.client_user_id.is_empty() { "System" } else { &*self.client_user_id };
        let event = NewEvent::new(self.event_type(), self.source())
            .source_name(self.source_name())
            .severity(severity)
            .time(self.time)
            .message(&*format!("{}{} by {who}: {status}", self.source_name(), self.action.what()))
            .field("ActionTimeStamp", self.time)
            .field("Status", !status.is_bad())
            .field("StatusCodeId", status)
            .field("ServerId", server)
            .field("ClientAuditEntryId", &*self.client_audit_entry_id)
            .field("ClientUserId", who)
            .field("SessionId", self.session_id.clone())
            .field("SecureChannelId", &*self.secure_channel_id.to_string());
        self.action.add_fields(event)
    }

    /// SourceNode: the node that was the target, or the Server Object.
    fn source(&self) -> NodeId {
        let node = match &self.action {
            AuditAction::Write { node_id, .. }
            | AuditAction::HistoryUpdate { node_id, .. }
            | AuditAction::NodeManagement { node_id, .. } => node_id,
            AuditAction::CallMethod { object_id, .. } => object_id,
            _ => &NodeId::NULL,
        };
        if node.is_null() { NodeId::numeric(0, object_ids::SERVER) } else { node.clone() }
    }
}

impl AuditAction {
    /// What was done, if the name of the Service does not tell.
    fn what(&self) -> String {
        match self {
            Self::HistoryUpdate { parameters, count: 0, .. } => format!(" ({})", parameters.verb()),
            Self::HistoryUpdate { parameters, count, .. } => format!(" ({count} {})", parameters.verb()),
            _ => String::new(),
        }
    }

    fn add_fields(&self, event: NewEvent) -> NewEvent {
        match self {
            Self::OpenSecureChannel {
                client_certificate_thumbprint,
                client_certificate,
                requested_lifetime,
                is_renewal,
                security_policy,
                security_mode,
            } => {
                let lifetime = requested_lifetime.map_or(Variant::Empty, |millis| f64::from(millis).into());
                let mode = security_mode.map_or(0, MessageSecurityMode::number);
                event
                    .field("ClientCertificate", bytes(client_certificate.as_ref()))
                    .field("ClientCertificateThumbprint", &**client_certificate_thumbprint)
                    .field("RequestedLifetime", lifetime)
                    .field("RequestType", i32::from(*is_renewal))
                    .field("SecurityPolicyUri", security_policy.map_or("", |policy| policy.uri()))
                    .field("SecurityMode", mode)
            }
            Self::CloseSecureChannel | Self::CloseSession => event,
            // InvalidHostname and InvalidUri are for certificates whose names do not match; the record does not have them.
            Self::Certificate { thumbprint, certificate, .. } => event
                .field("Certificate", bytes(certificate.as_ref()))
                .field("InvalidHostname", UaString::NULL)
                .field("InvalidUri", UaString::NULL)
                .field("ClientCertificateThumbprint", &**thumbprint),
            Self::CreateSession {
                revised_session_timeout,
                client_certificate_thumbprint,
                client_certificate,
            } => event
                .field("ClientCertificate", bytes(client_certificate.as_ref()))
                .field("ClientCertificateThumbprint", &**client_certificate_thumbprint)
                .field("RevisedSessionTimeout", *revised_session_timeout),
            // Clients send no SoftwareCertificates any more (Part 4 §5.6.3.2).
            Self::ActivateSession { user, roles } => event
                .field("ClientSoftwareCertificates", Vec::<ExtensionObject>::new())
                .field("UserIdentityToken", user.token())
                .field("CurrentRoleIds", roles.clone()),
            Self::Cancel { request_handle } => event.field("RequestHandle", *request_handle),
            Self::Write { attribute_id, index_range, old_value, new_value, .. } => event
                .field("AttributeId", *attribute_id)
                .field("IndexRange", &**index_range)
                .field("OldValue", old_value.as_ref().map_or(Variant::Empty, |value| value.as_str().into()))
                .field("NewValue", new_value.as_str()),
            Self::HistoryUpdate { node_id, details, parameters, .. } => {
                let event = event
                    .field("ParameterDataTypeId", details_type(details))
                    .field("UpdatedNode", node_id.clone())
                    .field("Details", *details);
                parameters.add_fields(event)
            }
            Self::CallMethod { method_id, input_arguments, change, condition, .. } => {
                let inputs: Vec<Variant> =
                    input_arguments.iter().map(|value| value.as_str().into()).collect();
                let event = event.field("MethodId", method_id.clone()).field("InputArguments", inputs);
                match (change, condition) {
                    (Some(change), _) => change.add_fields(event),
                    (None, Some(condition)) => condition.add_fields(event),
                    (None, None) => event,
                }
            }
            Self::NodeManagement { item, .. } => item.add_fields(event),
            Self::Suppressed { class, count } => {
                let text = format!("{count} audit records of the class {} were left out", class.name());
                event.message(&*text)
            }
        }
    }
}

impl AuditUser {
    /// The UserIdentityToken without its secret (Part 5 §6.4.10).
    fn token(&self) -> Variant {
        match self.kind {
            "UserName" => Variant::from_structure(&UserNameIdentityToken {
                user_name: (&*self.name).into(),
                ..Default::default()
            }),
            "Certificate" => Variant::from_structure(&X509IdentityToken::default()),
            "IssuedToken" => Variant::from_structure(&IssuedIdentityToken::default()),
            _ => Variant::from_structure(&AnonymousIdentityToken::default()),
        }
    }
}

/// A certificate as field.
fn bytes(certificate: Option<&Arc<[u8]>>) -> ByteString {
    certificate.map(|bytes| bytes.to_vec().into()).unwrap_or_default()
}

/// The DataType of the details of a HistoryUpdate.
fn details_type(details: &str) -> NodeId {
    let id = match details {
        "UpdateDataDetails" => UpdateDataDetails::DATA_TYPE_ID,
        "UpdateStructureDataDetails" => UpdateStructureDataDetails::DATA_TYPE_ID,
        "UpdateEventDetails" => UpdateEventDetails::DATA_TYPE_ID,
        "DeleteRawModifiedDetails" => DeleteRawModifiedDetails::DATA_TYPE_ID,
        "DeleteAtTimeDetails" => DeleteAtTimeDetails::DATA_TYPE_ID,
        "DeleteEventDetails" => DeleteEventDetails::DATA_TYPE_ID,
        _ => return NodeId::NULL,
    };
    NodeId::numeric(0, id)
}
