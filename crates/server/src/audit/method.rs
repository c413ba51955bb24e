//! Method calls in audit records: the EventType for each Method, and the changes that a call made.

use super::record::{AuditAction, AuditField, AuditRecord};
use crate::alarm::Method;
use crate::callback::CallContext;
use crate::event::NewEvent;
use std::borrow::Cow;
use taktwerk_schema::ids::{method_ids as m, object_type_ids as t};
use taktwerk_types::{NodeId, StatusCode, UtcTime};

/// A change made by a Method. Each change has its own record, in addition to the record of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditChange {
    /// CertificateUpdatedAuditEventType (Part 12 §7.10.27): a server certificate was replaced.
    Certificate {
        /// The CertificateGroup.
        group: NodeId,
        /// The CertificateType.
        certificate_type: NodeId,
    },
    /// TrustListUpdatedAuditEventType (Part 12 §7.8.2.13): a trust list was changed.
    TrustList {
        /// TrustListId: the TrustList Object.
        trust_list: NodeId,
    },
}

impl AuditChange {
    pub(super) fn event_type(&self) -> u32 {
        match self {
            Self::Certificate { .. } => t::CERTIFICATE_UPDATED_AUDIT_EVENT_TYPE,
            Self::TrustList { .. } => t::TRUST_LIST_UPDATED_AUDIT_EVENT_TYPE,
        }
    }

    pub(super) fn add_fields(&self, event: NewEvent) -> NewEvent {
        match self {
            Self::Certificate { group, certificate_type } => event
                .field("CertificateGroup", group.clone())
                .field("CertificateType", certificate_type.clone()),
            Self::TrustList { trust_list } => event.field("TrustListId", trust_list.clone()),
        }
    }

    pub(super) fn fields<'a>(&'a self, all: &mut Vec<(&'static str, AuditField<'a>)>) {
        let mut push = |name, id: &NodeId| all.push((name, AuditField::Text(Cow::Owned(id.to_string()))));
        match self {
            Self::Certificate { group, certificate_type } => {
                push("CertificateGroup", group);
                push("CertificateType", certificate_type);
            }
            Self::TrustList { trust_list } => push("TrustListId", trust_list),
        }
    }
}

impl AuditRecord {
    /// The record of a change made by a call, with the client and arguments of the call's record. `None` if calls are
    /// not audited.
    #[must_use]
    pub fn of_change(caller: &CallContext, time: UtcTime, new: AuditChange) -> Option<Self> {
        let call: &Self = caller.noted.get()?;
        let mut record = Self { time, status: StatusCode::GOOD, ..call.clone() };
        let AuditAction::CallMethod { change, .. } = &mut record.action else { return None };
        *change = Some(new);
        Some(record)
    }
}

/// UpdateCertificate of ServerConfiguration and of its type.
const UPDATE_CERTIFICATE: [u32; 2] =
    [m::SERVER_CONFIGURATION_UPDATE_CERTIFICATE, m::SERVER_CONFIGURATION_TYPE_UPDATE_CERTIFICATE];

/// Methods that change a trust list, on the server's TrustLists and on their type.
const UPDATE_TRUST_LIST: [u32; 12] = [
    m::TRUST_LIST_TYPE_CLOSE_AND_UPDATE,
    m::TRUST_LIST_TYPE_ADD_CERTIFICATE,
    m::TRUST_LIST_TYPE_REMOVE_CERTIFICATE,
    m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST_CLOSE_AND_UPDATE,
    m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST_ADD_CERTIFICATE,
    m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST_REMOVE_CERTIFICATE,
    m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_USER_TOKEN_GROUP_TRUST_LIST_CLOSE_AND_UPDATE,
    m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_USER_TOKEN_GROUP_TRUST_LIST_ADD_CERTIFICATE,
    m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_USER_TOKEN_GROUP_TRUST_LIST_REMOVE_CERTIFICATE,
    m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_HTTPS_GROUP_TRUST_LIST_CLOSE_AND_UPDATE,
    m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_HTTPS_GROUP_TRUST_LIST_ADD_CERTIFICATE,
    m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_HTTPS_GROUP_TRUST_LIST_REMOVE_CERTIFICATE,
];

/// The index of a Method's private-key argument, which records show as null (Part 12 §7.10.26).
pub(crate) fn private_key_argument(method: &NodeId) -> Option<usize> {
    /// The arguments of UpdateCertificate end with the format of the key and the key.
    const PRIVATE_KEY: usize = 5;
    method.ns0().is_some_and(|id| UPDATE_CERTIFICATE.contains(&id)).then_some(PRIVATE_KEY)
}

/// The EventType of a call of a condition's Method (Part 9 §5.10).
pub(super) fn condition_event_type(method: Method) -> u32 {
    match method {
        Method::Enable | Method::Disable => t::AUDIT_CONDITION_ENABLE_EVENT_TYPE,
        Method::AddComment => t::AUDIT_CONDITION_COMMENT_EVENT_TYPE,
        Method::Acknowledge => t::AUDIT_CONDITION_ACKNOWLEDGE_EVENT_TYPE,
        Method::Confirm => t::AUDIT_CONDITION_CONFIRM_EVENT_TYPE,
        Method::Respond => t::AUDIT_CONDITION_RESPOND_EVENT_TYPE,
        Method::TimedShelve | Method::OneShotShelve | Method::Unshelve => {
            t::AUDIT_CONDITION_SHELVING_EVENT_TYPE
        }
        Method::Suppress | Method::Unsuppress => t::AUDIT_CONDITION_SUPPRESSION_EVENT_TYPE,
        Method::RemoveFromService | Method::PlaceInService => t::AUDIT_CONDITION_OUT_OF_SERVICE_EVENT_TYPE,
        Method::Silence => t::AUDIT_CONDITION_SILENCE_EVENT_TYPE,
        Method::Reset => t::AUDIT_CONDITION_RESET_EVENT_TYPE,
    }
}

/// The EventType of another call. For push management: Part 12 §7.8.2.12 and §7.10.26.
pub(super) fn event_type(method: &NodeId) -> u32 {
    match method.ns0() {
        Some(id) if UPDATE_CERTIFICATE.contains(&id) => t::CERTIFICATE_UPDATE_REQUESTED_AUDIT_EVENT_TYPE,
        Some(id) if UPDATE_TRUST_LIST.contains(&id) => t::TRUST_LIST_UPDATE_REQUESTED_AUDIT_EVENT_TYPE,
        _ => t::AUDIT_UPDATE_METHOD_EVENT_TYPE,
    }
}

/// SourceName of a call of a condition's Method (Part 9 §5.10.2).
pub(super) fn condition_source_name(method: Method) -> &'static str {
    match method {
        Method::Enable => "Method/Enable",
        Method::Disable => "Method/Disable",
        Method::AddComment => "Method/AddComment",
        Method::Acknowledge => "Method/Acknowledge",
        Method::Confirm => "Method/Confirm",
        Method::Respond => "Method/Respond",
        Method::TimedShelve => "Method/TimedShelve",
        Method::OneShotShelve => "Method/OneShotShelve",
        Method::Unshelve => "Method/Unshelve",
        Method::Suppress => "Method/Suppress",
        Method::Unsuppress => "Method/Unsuppress",
        Method::RemoveFromService => "Method/RemoveFromService",
        Method::PlaceInService => "Method/PlaceInService",
        Method::Silence => "Method/Silence",
        Method::Reset => "Method/Reset",
    }
}

/// SourceName of other calls (Part 5 §6.4.27).
pub(super) const CALL: &str = "Attribute/Call";

#[cfg(test)]
mod tests {
    use super::super::condition::AuditCondition;
    use super::*;
    use crate::callback::NotedCall;
    use std::sync::Arc;
    use taktwerk_schema::NodeClass;
    use taktwerk_schema::ns0::Ns0;

    fn call(method_id: u32) -> AuditRecord {
        let method_id = NodeId::numeric(0, method_id);
        let action = AuditAction::CallMethod {
            object_id: NodeId::NULL,
            condition: AuditCondition::of_type(&method_id, &[]).map(Box::new),
            method_id,
            input_arguments: Vec::new(),
            change: None,
        };
        AuditRecord::new(UtcTime::NULL, StatusCode::BAD_USER_ACCESS_DENIED, action)
    }

    #[test]
    fn calls_of_conditions_are_named_after_their_methods() {
        let of = |method| call(method).source_name();
        assert_eq!(of(m::ACKNOWLEDGEABLE_CONDITION_TYPE_ACKNOWLEDGE), "Method/Acknowledge");
        assert_eq!(of(m::CONDITION_TYPE_DISABLE), "Method/Disable");
        assert_eq!(of(m::SERVER_CONFIGURATION_TYPE_UPDATE_CERTIFICATE), "Attribute/Call");
    }

    /// Part 12 §7.8.2.12 and §7.10.26, for the Methods of all instances of a server.
    #[test]
    fn calls_of_push_management_have_types_of_their_own() {
        let ours = [m::TRUST_LIST_TYPE_CLOSE_AND_UPDATE, m::SERVER_CONFIGURATION_TYPE_UPDATE_CERTIFICATE];
        let names = ["TrustListUpdateRequestedAuditEventType", "CertificateUpdateRequestedAuditEventType"];
        for (method, name) in ours.into_iter().zip(names) {
            assert_eq!(call(method).event_type_name(), name);
        }
        assert_eq!(
            call(m::SERVER_CONFIGURATION_APPLY_CHANGES).event_type_name(),
            "AuditUpdateMethodEventType"
        );
        // The tables contain nothing else.
        let all = UPDATE_TRUST_LIST.iter().chain(&UPDATE_CERTIFICATE);
        let nodes = all.map(|id| Ns0::get().node(*id).unwrap());
        for node in nodes {
            assert_eq!(node.class(), NodeClass::METHOD);
            let names = ["CloseAndUpdate", "AddCertificate", "RemoveCertificate", "UpdateCertificate"];
            assert!(names.contains(&node.browse_name()), "{}", node.browse_name());
        }
    }

    #[test]
    fn a_change_record_has_the_same_client_as_the_call() {
        let mut record = call(m::SERVER_CONFIGURATION_APPLY_CHANGES);
        record.client_user_id = "sara".into();
        let change = AuditChange::TrustList { trust_list: NodeId::numeric(0, 12_642) };
        let noted = |record: AuditRecord| {
            let noted = NotedCall::of(&Arc::new(record));
            CallContext { noted, ..CallContext::default() }
        };
        let changed = AuditRecord::of_change(&noted(record), UtcTime::NULL, change.clone()).unwrap();
        assert_eq!(changed.event_type_name(), "TrustListUpdatedAuditEventType");
        assert_eq!((&*changed.client_user_id, changed.status), ("sara", StatusCode::GOOD));
        let fields = changed.fields();
        let id = fields.iter().find(|(name, _)| *name == "TrustListId").unwrap();
        assert_eq!(id.1, AuditField::Text("i=12642".into()));
        let closed = AuditRecord::new(UtcTime::NULL, StatusCode::GOOD, AuditAction::CloseSession);
        for caller in [noted(closed), CallContext::default()] {
            assert_eq!(AuditRecord::of_change(&caller, UtcTime::NULL, change.clone()), None);
        }
    }
}
