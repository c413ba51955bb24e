//! Audit records and events of push management (Part 12 §7.8.2.12, §7.8.2.13, §7.10.26, §7.10.27).

use super::attacks::{fitting, list_of};
use super::*;
use core::time::Duration;
use std::sync::{Arc, Mutex};
use taktwerk::client::{EventQuery, Item, Subscription, Update};
use taktwerk::schema::ids::object_type_ids as t;
use taktwerk::server::{AuditConfig, AuditRecord, AuditSink};

const CONFIGURATION: NodeId = NodeId::numeric(0, o::SERVER_CONFIGURATION);
const TRUST_LIST: NodeId = NodeId::numeric(0, LIST);

/// The records of the audit file.
#[derive(Default)]
pub(super) struct Records(Mutex<Vec<AuditRecord>>);

impl AuditSink for Records {
    fn record(&self, record: &AuditRecord) {
        self.0.lock().unwrap().push(record.clone());
    }
}

impl Records {
    /// The types of the records of requests and changes, sorted by name.
    pub(super) fn types(&self) -> Vec<&'static str> {
        let mut types: Vec<_> = self.0.lock().unwrap().iter().map(AuditRecord::event_type_name).collect();
        types.retain(|name| {
            name.ends_with("UpdatedAuditEventType") || name.ends_with("RequestedAuditEventType")
        });
        types.sort_unstable();
        types
    }

    /// Waits for new records of requests and changes. Records of requests follow the answer, those of changes precede it.
    async fn are(&self, expected: &[&str]) {
        let wait = async {
            while self.types().len() < expected.len() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(30), wait).await;
        assert_eq!(self.types(), expected);
        self.0.lock().unwrap().clear();
    }
}

/// EventType, SourceNode, MethodId, StatusCodeId, and the fields of the subtypes.
const FIELDS: [&str; 8] = [
    "EventType",
    "SourceNode",
    "MethodId",
    "StatusCodeId",
    "InputArguments",
    "TrustListId",
    "CertificateGroup",
    "CertificateType",
];

async fn next(subscription: &mut Subscription) -> Vec<Variant> {
    let next = async {
        loop {
            if let Update::Event(_, fields) = subscription.next().await.expect("a subscription") {
                return fields;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), next).await.expect("an event")
}

/// The next events, sorted by type.
async fn events(subscription: &mut Subscription, count: usize) -> Vec<Vec<Variant>> {
    let mut all = Vec::new();
    while all.len() < count {
        all.push(next(subscription).await);
    }
    all.sort_by_key(|event| format!("{:?}", event[0]));
    all
}

fn of(event_type: u32) -> Variant {
    NodeId::numeric(0, event_type).into()
}

/// A server with push management, and its audit records.
pub(super) fn serve_audited(pki: &Pki) -> (RunningServer, Arc<Records>) {
    let records = Arc::new(Records::default());
    let mut authorization = Authorization::suggested();
    authorization.role_mut("SecurityAdmin").unwrap().identities.push(IdentityRule::Anonymous);
    let builder = Server::builder().bind("127.0.0.1:0").anonymous().pki(pki).authorization(authorization);
    let builder = builder.security(POLICY, MessageSecurityMode::SignAndEncrypt).push_management();
    let builder = builder.audit(AuditConfig::all(), Arc::clone(&records) as _);
    (builder.build().unwrap().spawn().unwrap(), records)
}

#[tokio::test]
async fn changes_and_requests_are_audited() {
    let folder = Folder::new("audit");
    let (ours, theirs) = pair(&folder);
    let (running, records) = serve_audited(&ours);
    let client = connect(&running, &theirs).await;
    let mut subscription = client.subscribe(Duration::from_millis(50)).await.unwrap();
    let query = FIELDS.into_iter().fold(EventQuery::new(), EventQuery::select);
    let query = query.filter("Severity > 0").unwrap();
    let server = NodeId::numeric(0, o::SERVER);
    subscription.monitor_item(Item::events(server, query).queue(100)).await.unwrap();
    let other = own(&folder.pki("other"));
    let good = Variant::from(StatusCode::GOOD);

    // Immediately, and only if something has changed.
    let add = vec![der(&other).into(), true.into()];
    call(&client, LIST, ADD, add.clone()).await.unwrap();
    let added = events(&mut subscription, 2).await;
    let [updated, requested] = added.as_slice() else { panic!("{added:?}") };
    for (event, kind) in [
        (updated, t::TRUST_LIST_UPDATED_AUDIT_EVENT_TYPE),
        (requested, t::TRUST_LIST_UPDATE_REQUESTED_AUDIT_EVENT_TYPE),
    ] {
        let expected = [of(kind), TRUST_LIST.into(), NodeId::numeric(0, ADD).into(), good.clone()];
        assert_eq!(event[..4], expected);
    }
    assert_eq!((&updated[5], &requested[5]), (&TRUST_LIST.into(), &Variant::Empty));
    call(&client, LIST, ADD, add).await.unwrap();
    let garbage = vec![ByteString::from(vec![1, 2]).into(), true.into()];
    assert!(call(&client, LIST, ADD, garbage).await.is_err());
    for status in [StatusCode::GOOD, StatusCode::BAD_CERTIFICATE_INVALID] {
        let event = next(&mut subscription).await;
        assert_eq!((&event[0], &event[3]), (&requested[0], &status.into()), "nothing has changed");
    }
    let remove = taktwerk_pki::thumbprint_text(&taktwerk_crypto::certificate::thumbprint(other.der()));
    call(&client, LIST, REMOVE, vec![remove.as_str().into(), true.into()]).await.unwrap();
    let removed = events(&mut subscription, 2).await;
    assert_eq!((&removed[0][0], &removed[0][5]), (&updated[0], &TRUST_LIST.into()));
    let mut expected = vec!["TrustListUpdateRequestedAuditEventType"; 4];
    expected.extend(["TrustListUpdatedAuditEventType"; 2]);
    records.are(&expected).await;

    // Pending changes are audited as requests, and as changes when they are applied.
    let handle = written(&client, &list_of(&[&own(&theirs), &other])).await.unwrap();
    records.are(&[]).await;
    call(&client, LIST, UPDATE, vec![handle]).await.unwrap();
    let (certificate, key) = fitting();
    theirs.store().trust(Group::Applications, &certificate).unwrap();
    theirs.validator().refresh();
    send(&client, certificate.der(), &[], key.pem().as_bytes()).await.unwrap();
    let asked = ["CertificateUpdateRequestedAuditEventType", "TrustListUpdateRequestedAuditEventType"];
    records.are(&asked).await;
    apply(&client).await.unwrap();
    records.are(&["CertificateUpdatedAuditEventType", "TrustListUpdatedAuditEventType"]).await;
    // Including unrelated calls: Open and Write.
    let apply_changes = NodeId::numeric(0, m::SERVER_CONFIGURATION_APPLY_CHANGES);
    let last = [of(t::AUDIT_UPDATE_METHOD_EVENT_TYPE), CONFIGURATION.into(), apply_changes.clone().into()];
    let mut all: Vec<Vec<Variant>> = Vec::new();
    while !all.iter().any(|event| event[..3] == last) {
        all.push(next(&mut subscription).await);
    }
    let find = |kind: u32| {
        let found: Vec<_> = all.iter().filter(|event| event[0] == of(kind)).collect();
        assert_eq!(found.len(), 1, "{kind} in {all:?}");
        found[0]
    };
    let list = find(t::TRUST_LIST_UPDATED_AUDIT_EVENT_TYPE);
    let apply_changes = NodeId::numeric(0, m::SERVER_CONFIGURATION_APPLY_CHANGES);
    assert_eq!(
        (&list[1], &list[2], &list[5]),
        (&CONFIGURATION.into(), &apply_changes.clone().into(), &TRUST_LIST.into())
    );
    let updated = find(t::CERTIFICATE_UPDATED_AUDIT_EVENT_TYPE);
    assert_eq!((&updated[1], &updated[2]), (&CONFIGURATION.into(), &apply_changes.into()));
    let group = NodeId::numeric(0, GROUP);
    let kind = NodeId::numeric(0, t::ECC_NIST_P256_APPLICATION_CERTIFICATE_TYPE);
    assert_eq!((&updated[6], &updated[7]), (&group.into(), &kind.into()));
    // The private key is null, and appears nowhere in the records.
    let requested = find(t::CERTIFICATE_UPDATE_REQUESTED_AUDIT_EVENT_TYPE);
    assert!(format!("{:?}", requested[4]).contains("null"), "{requested:?}");
    find(t::TRUST_LIST_UPDATE_REQUESTED_AUDIT_EVENT_TYPE);

    // Repeating the change changes nothing.
    let key = ours.store().own(&mut Vec::new()).remove(0).key;
    let again = async {
        loop {
            if send(&client, certificate.der(), &[], key.pem().as_bytes()).await.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), again).await.expect("the client comes back");
    apply(&client).await.unwrap();
    let types = records.types();
    assert!(!types.iter().any(|name| name.ends_with("UpdatedAuditEventType")), "{types:?}");
}
