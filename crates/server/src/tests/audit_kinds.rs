//! Every kind of audit record as AuditEvent, against the EventTypes of namespace 0.

use super::*;
use crate::alarm::Method;
use crate::audit::record::AuditUser;
use crate::audit::{
    AuditAction, AuditChange, AuditClass, AuditCondition, AuditHistory, AuditItem, AuditRecord, AuditValue,
};
use crate::event::FieldName;
use crate::node_ix::NodeIx;
use crate::space::data_type::built_in;
use schema::ids::{object_ids, object_type_ids as t, reference_type_ids as r};
use schema::{
    AddNodesItem, AddReferencesItem, DeleteNodesItem, DeleteReferencesItem, EventFilter,
    HistoryEventFieldList, NodeClass, PerformUpdateType, SimpleAttributeOperand, UserNameIdentityToken,
};
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_types::{
    BuiltInType, ByteString, DataValue, ExtensionObject, LocalizedText, QualifiedName, Variant,
};

const NODE: NodeId = NodeId::numeric(1, 7);

fn history(details: &'static str, parameters: AuditHistory) -> AuditAction {
    AuditAction::HistoryUpdate { node_id: NODE, details, count: 1, parameters }
}

fn call(condition: Option<(Method, Vec<Variant>)>, change: Option<AuditChange>) -> AuditAction {
    AuditAction::CallMethod {
        object_id: NODE,
        method_id: NodeId::numeric(1, 8),
        input_arguments: vec![AuditValue::of(&1.5f64.into())],
        change,
        condition: condition.map(|(method, inputs)| Box::new(AuditCondition::of(method, false, &inputs))),
    }
}

/// One or more actions of each kind.
fn actions() -> Vec<AuditAction> {
    let certificate: Option<Arc<[u8]>> = Some(vec![1, 2, 3].into());
    let (insert, id) = (PerformUpdateType::INSERT, ByteString::from(vec![7u8; 8]));
    let comment: Variant = LocalizedText::from_text("seen").into();
    let filter = EventFilter {
        select_clauses: vec![SimpleAttributeOperand {
            browse_path: vec![QualifiedName::new(0, "EventId")],
            ..Default::default()
        }],
        ..Default::default()
    };
    let event = HistoryEventFieldList { event_fields: vec![id.clone().into()] };
    let mut actions = vec![
        AuditAction::OpenSecureChannel {
            client_certificate_thumbprint: "AB".into(),
            client_certificate: certificate.clone(),
            requested_lifetime: Some(60_000),
            is_renewal: true,
            security_policy: Some(SecurityPolicy::Basic256Sha256),
            security_mode: Some(MessageSecurityMode::SignAndEncrypt),
        },
        AuditAction::CloseSecureChannel,
        AuditAction::Certificate {
            thumbprint: "AB".into(),
            certificate: certificate.clone(),
            is_overlooked: false,
        },
        AuditAction::CreateSession {
            revised_session_timeout: 60_000.0,
            client_certificate_thumbprint: "AB".into(),
            client_certificate: certificate,
        },
        AuditAction::ActivateSession {
            user: AuditUser { kind: "UserName", name: "ann".into() },
            roles: vec![NodeId::numeric(0, 15704)],
        },
        AuditAction::CloseSession,
        AuditAction::Cancel { request_handle: 5 },
        AuditAction::Write {
            node_id: NODE,
            attribute_id: 13,
            index_range: "1:2".into(),
            old_value: Some(AuditValue::of(&1.0f64.into())),
            new_value: AuditValue::of(&2.0f64.into()),
        },
        history("UpdateDataDetails", AuditHistory::values(insert, &[DataValue::new(1.5)])),
        history("UpdateStructureDataDetails", AuditHistory::annotations(insert, &[DataValue::new(1.5)])),
        history("UpdateEventDetails", AuditHistory::events(insert, &filter, &[event])),
        history("DeleteAtTimeDetails", AuditHistory::delete_times(&[UtcTime::from_ticks(5)])),
        history("DeleteEventDetails", AuditHistory::delete_events(core::slice::from_ref(&id))),
        history(
            "DeleteRawModifiedDetails",
            AuditHistory::DeleteRange {
                is_delete_modified: true,
                start_time: UtcTime::from_ticks(5),
                end_time: UtcTime::from_ticks(6),
                old_values: Vec::new(),
            },
        ),
        history("", AuditHistory::Unknown),
        call(None, None),
        call(None, Some(AuditChange::TrustList { trust_list: NODE })),
        call(None, Some(AuditChange::Certificate { group: NODE, certificate_type: NODE })),
        AuditAction::NodeManagement {
            item: AuditItem::of_node(&AddNodesItem { node_class: NodeClass::OBJECT, ..Default::default() }),
            node_id: NODE,
        },
        AuditAction::NodeManagement { item: AuditItem::AddReference(Box::default()), node_id: NODE },
        AuditAction::NodeManagement {
            item: AuditItem::DeleteNode(DeleteNodesItem { node_id: NODE, delete_target_references: true }),
            node_id: NODE,
        },
        AuditAction::NodeManagement { item: AuditItem::DeleteReference(Box::default()), node_id: NODE },
        AuditAction::Suppressed { class: AuditClass::Stranger, count: 3 },
    ];
    for method in Method::ALL {
        let inputs = match method {
            Method::AddComment | Method::Acknowledge | Method::Confirm => {
                vec![id.clone().into(), comment.clone()]
            }
            Method::TimedShelve => vec![5_000.0.into()],
            Method::Respond => vec![1i32.into()],
            _ => Vec::new(),
        };
        actions.push(call(Some((method, inputs)), None));
    }
    actions
}

/// The number of a kind. A new kind does not compile until it is here, and fails the test until it is above.
fn kind(action: &AuditAction) -> usize {
    match action {
        AuditAction::OpenSecureChannel { .. } => 0,
        AuditAction::CloseSecureChannel => 1,
        AuditAction::Certificate { .. } => 2,
        AuditAction::CreateSession { .. } => 3,
        AuditAction::ActivateSession { .. } => 4,
        AuditAction::CloseSession => 5,
        AuditAction::Cancel { .. } => 6,
        AuditAction::Write { .. } => 7,
        AuditAction::HistoryUpdate { parameters, .. } => match parameters {
            AuditHistory::Values { .. } => 8,
            AuditHistory::Events { .. } => 9,
            AuditHistory::DeleteRange { .. } => 10,
            AuditHistory::DeleteTimes { .. } => 11,
            AuditHistory::DeleteEvents { .. } => 12,
            AuditHistory::Unknown => 13,
            AuditHistory::Annotations { .. } => 23,
        },
        AuditAction::CallMethod { change: Some(AuditChange::TrustList { .. }), .. } => 14,
        AuditAction::CallMethod { change: Some(AuditChange::Certificate { .. }), .. } => 15,
        AuditAction::CallMethod { condition: Some(_), .. } => 16,
        AuditAction::CallMethod { .. } => 17,
        AuditAction::NodeManagement { item, .. } => match item {
            AuditItem::AddNode(_) => 18,
            AuditItem::AddReference(_) => 19,
            AuditItem::DeleteNode(_) => 20,
            AuditItem::DeleteReference(_) => 21,
        },
        AuditAction::Suppressed { .. } => 22,
    }
}
const KINDS: usize = 24;

/// The mandatory Properties of an EventType and its supertypes below BaseEventType, with the built-in types of their values.
fn mandatory(server: &Server, event_type: &NodeId) -> BTreeMap<String, Option<BuiltInType>> {
    let nodes = server.space.read();
    let mut found = BTreeMap::new();
    let mut next = nodes.resolve(event_type.as_ref());
    while let Some(ix) = next.filter(|ix| *ix != NodeIx::ns0(t::BASE_EVENT_TYPE)) {
        nodes.references(ix, |reference| {
            let rule = nodes.forward_target(reference.target, r::HAS_MODELLING_RULE);
            if reference.is_forward
                && reference.reference_type == NodeIx::ns0(r::HAS_PROPERTY)
                && rule == Some(NodeIx::ns0(object_ids::MODELLING_RULE_MANDATORY))
                && let Some(view) = nodes.view(reference.target)
            {
                let data_type = view.data_type().and_then(|id| nodes.resolve(id.as_ref()));
                let kind = data_type.and_then(|ix| built_in(&nodes, ix));
                found.insert(view.browse_name().name.to_string(), kind);
            }
            true
        });
        next = None;
        nodes.references(ix, |reference| {
            if !reference.is_forward && reference.reference_type == NodeIx::ns0(r::HAS_SUBTYPE) {
                next = Some(reference.target);
            }
            next.is_none()
        });
    }
    found
}

/// Fields that may be null: the server does not know them, as the specification allows.
const UNKNOWN: [&str; 3] = ["InvalidHostname", "InvalidUri", "ClientAuditEntryId"];

#[test]
fn every_kind_of_record_is_an_audit_event_with_the_fields_of_its_type() {
    let server = Server::new();
    let actions = actions();
    let kinds: BTreeSet<usize> = actions.iter().map(kind).collect();
    assert_eq!(kinds, (0..KINDS).collect::<BTreeSet<usize>>(), "a kind is missing in the list above");
    let mut types = BTreeSet::new();
    let certificates = [
        StatusCode::BAD_CERTIFICATE_INVALID,
        StatusCode::BAD_CERTIFICATE_TIME_INVALID,
        StatusCode::BAD_CERTIFICATE_UNTRUSTED,
        StatusCode::BAD_CERTIFICATE_REVOKED,
        StatusCode::BAD_CERTIFICATE_USE_NOT_ALLOWED,
        StatusCode::BAD_CERTIFICATE_URI_INVALID,
    ];
    for action in actions {
        let statuses: &[StatusCode] =
            if kind(&action) == 2 { &certificates } else { &[StatusCode::BAD_USER_ACCESS_DENIED] };
        for status in statuses {
            let mut record = AuditRecord::new(UtcTime::from_ticks(5), *status, action.clone());
            record.client_user_id = "ann".into();
            record.session_id = NodeId::numeric(1, 99);
            record.secure_channel_id = 4;
            let (name, event) = (record.event_type_name(), record.event(APPLICATION));
            types.insert(name);
            let wanted = mandatory(&server, &record.event_type());
            assert!(wanted.len() >= 5, "{name}: {wanted:?}");
            for (field, kind) in wanted {
                let known = FieldName::from(&*field);
                let value = event.fields.iter().find(|(name, _)| *name == known).map(|(_, value)| value);
                let Some(value) = value else { panic!("{name} has no field {field}") };
                let shown = value.built_in_type();
                if matches!(kind, Some(kind) if kind != BuiltInType::Variant) {
                    assert_eq!(shown, kind, "{name}: {field} is {value:?}");
                }
                let is_null =
                    *value == Variant::Empty || matches!(value, Variant::String(text) if text.is_null());
                assert!(!is_null || UNKNOWN.contains(&&*field), "{name}: {field} is null");
            }
            assert_eq!(event.severity >= 500, status.is_bad(), "{name}");
        }
    }
    for name in [
        "AuditHistoryEventUpdateEventType",
        "AuditHistoryEventDeleteEventType",
        "AuditHistoryAnnotationUpdateEventType",
        "AuditHistoryRawModifyDeleteEventType",
        "AuditConditionAcknowledgeEventType",
        "AuditConditionShelvingEventType",
        "AuditConditionRespondEventType",
        "AuditAddNodesEventType",
        "AuditDeleteReferencesEventType",
    ] {
        assert!(types.contains(name), "{name} in {types:?}");
    }
}

/// The contents of fields, where they are more than a copy.
#[test]
fn fields_have_the_values_of_the_request() {
    let event = |action| {
        let record = AuditRecord::new(UtcTime::NULL, StatusCode::BAD_USER_ACCESS_DENIED, action);
        record.event(APPLICATION)
    };
    let get = |event: &crate::event::NewEvent, name: &str| {
        let name = FieldName::from(name);
        event.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value.clone())
    };
    let all = actions();
    let of = |number: usize| event(all.iter().find(|action| kind(action) == number).unwrap().clone());
    let activated = of(4);
    let Some(Variant::ExtensionObject(token)) = get(&activated, "UserIdentityToken") else { panic!() };
    let token: UserNameIdentityToken = token.decode().unwrap();
    assert_eq!((token.user_name.as_str(), token.password.as_bytes()), ("ann", &b""[..]));
    assert_eq!(get(&activated, "StatusCodeId"), Some(StatusCode::BAD_USER_ACCESS_DENIED.into()));
    assert_eq!(get(&activated, "Status"), Some(false.into()));
    assert_eq!((activated.severity, activated.source.clone()), (500, object_ids::SERVER.into()));
    assert_eq!(get(&of(10), "IsDeleteModified"), Some(true.into()));
    assert_eq!(get(&of(8), "NewValues"), Some(vec![DataValue::new(1.5)].into()));
    assert!(of(9).message.text.as_str().contains("1 inserted"), "{:?}", of(9).message);
    let acknowledged = event(call(
        Some((
            Method::Acknowledge,
            vec![ByteString::from(vec![7u8; 8]).into(), LocalizedText::from_text("seen").into()],
        )),
        None,
    ));
    assert_eq!(get(&acknowledged, "Comment"), Some(LocalizedText::from_text("seen").into()));
    assert_eq!(get(&acknowledged, "ConditionEventId"), Some(ByteString::from(vec![7u8; 8]).into()));
    assert_eq!(acknowledged.source_name.as_ref().unwrap().as_str(), "Method/Acknowledge");
    let shelved = event(call(Some((Method::TimedShelve, vec![5_000.0.into()])), None));
    assert_eq!(get(&shelved, "ShelvingTime"), Some(5_000.0.into()));
    let answered = event(call(Some((Method::Respond, vec![1i32.into()])), None));
    assert_eq!(get(&answered, "SelectedResponse"), Some(1u32.into()));
}

/// A refused operation may contain any text from a client; records do not.
#[test]
fn refused_node_management_leaves_texts_out() {
    let canary = super::audit::CANARY;
    let node: NodeId = NodeId::string(1, canary);
    let items = [
        AuditItem::of_node(&AddNodesItem {
            requested_new_node_id: node.clone().into(),
            browse_name: QualifiedName::new(0, canary),
            parent_node_id: node.clone().into(),
            node_attributes: ExtensionObject::new(&UserNameIdentityToken {
                user_name: canary.into(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        AuditItem::AddReference(Box::new(AddReferencesItem {
            source_node_id: node.clone(),
            target_server_uri: canary.into(),
            target_node_id: node.clone().into(),
            ..Default::default()
        })),
        AuditItem::DeleteNode(DeleteNodesItem { node_id: node.clone(), delete_target_references: false }),
        AuditItem::DeleteReference(Box::new(DeleteReferencesItem {
            source_node_id: node,
            ..Default::default()
        })),
    ];
    for item in items {
        assert!(format!("{item:?}").contains(canary));
        assert!(!format!("{:?}", item.without_texts()).contains(canary));
    }
}
