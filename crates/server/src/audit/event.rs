//! Audit records as AuditEvents (Part 5 §6.4.3 and its subtypes).
//!
//! The NodeSet lets only SecurityAdmin receive them. Here they also need a channel that encrypts, because they name users,
//! sessions and nodes.

use super::record::{AuditAction, AuditRecord};
use crate::event::NewEvent;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_schema::ids::object_ids;
use taktwerk_types::{NodeId, Variant};

/// Severity of what was done, and of what was refused or failed (Part 5 §6.4.2 has the bands).
const SEVERITY_DONE: u16 = 100;
const SEVERITY_REFUSED: u16 = 500;
/// Of a certificate that is not accepted, and of records that were left out.
const SEVERITY_SECURITY: u16 = 700;

impl AuditRecord {
    /// The event that tells of this record. `server` is its ServerId: the server's ApplicationUri.
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
            .message(&*format!("{} by {who}: {status}", self.source_name()))
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

    /// SourceNode: the node that was acted on, or the Server Object.
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
    fn add_fields(&self, event: NewEvent) -> NewEvent {
        match self {
            Self::OpenSecureChannel {
                client_certificate_thumbprint,
                is_renewal,
                security_policy,
                security_mode,
            } => {
                let mode = security_mode.map_or(0, MessageSecurityMode::number);
                event
                    .field("ClientCertificateThumbprint", &**client_certificate_thumbprint)
                    .field("RequestType", i32::from(*is_renewal))
                    .field("SecurityPolicyUri", security_policy.map_or("", |policy| policy.uri()))
                    .field("SecurityMode", mode)
            }
            Self::CloseSecureChannel | Self::CloseSession => event,
            Self::Certificate { thumbprint, .. } => event.field("ClientCertificateThumbprint", &**thumbprint),
            Self::CreateSession { revised_session_timeout } => {
                event.field("RevisedSessionTimeout", *revised_session_timeout)
            }
            Self::ActivateSession { user, roles } => {
                let text = format!("{} {}", user.kind, user.name);
                event.field("UserIdentityToken", text.trim_end()).field("CurrentRoleIds", roles.clone())
            }
            Self::Cancel { request_handle } => event.field("RequestHandle", *request_handle),
            Self::Write { attribute_id, index_range, old_value, new_value, .. } => event
                .field("AttributeId", *attribute_id)
                .field("IndexRange", &**index_range)
                .field("OldValue", old_value.as_ref().map_or(Variant::Empty, |value| value.as_str().into()))
                .field("NewValue", new_value.as_str()),
            Self::HistoryUpdate { node_id, details, .. } => {
                event.field("UpdatedNode", node_id.clone()).field("Details", *details)
            }
            Self::CallMethod { method_id, input_arguments, .. } => {
                let inputs: Vec<Variant> =
                    input_arguments.iter().map(|value| value.as_str().into()).collect();
                event.field("MethodId", method_id.clone()).field("InputArguments", inputs)
            }
            Self::NodeManagement { .. } => event,
            Self::Suppressed { class, count } => {
                let text = format!("{count} audit records of the class {} were left out", class.name());
                event.message(&*text)
            }
        }
    }
}
