//! Trust lists, read and changed by clients.

use super::*;
use core::time::Duration;
use taktwerk::client::Attribute;
use taktwerk::types::{Decode, DecodeLimits};

/// Reads the rest of an open list in small pieces, and closes it.
async fn rest(client: &Client, handle: Variant) -> TrustListDataType {
    let mut all = Vec::new();
    loop {
        let piece = call(client, LIST, READ, vec![handle.clone(), 100i32.into()]).await.unwrap().remove(0);
        let piece = ByteString::try_from(piece).unwrap();
        if piece.as_bytes().is_empty() {
            break;
        }
        all.extend_from_slice(piece.as_bytes());
    }
    call(client, LIST, CLOSE, vec![handle]).await.unwrap();
    TrustListDataType::decode_from(&all, DecodeLimits::DEFAULT).unwrap()
}

#[tokio::test]
async fn administrators_read_and_change_the_trust_list() {
    let folder = Folder::new("list");
    let (ours, theirs) = pair(&folder);
    let other = folder.pki("other");
    let running = serve(&ours, "SecurityAdmin", true);
    let client = connect(&running, &theirs).await;
    let trusted = || trusted(&ours);
    let (client_certificate, other_certificate) = (own(&theirs), own(&other));
    // The whole list, and one part of it.
    let handle = call(&client, LIST, OPEN, vec![1u8.into()]).await.unwrap().remove(0);
    let list = rest(&client, handle).await;
    assert_eq!((list.specified_lists, &list.trusted_certificates[..]), (15, &[der(&client_certificate)][..]));
    let handle = call(&client, LIST, OPEN_WITH_MASKS, vec![4u32.into()]).await.unwrap().remove(0);
    let list = rest(&client, handle).await;
    assert_eq!((list.specified_lists, list.trusted_certificates.len()), (4, 0));
    for wrong in [0u8, 2, 3, 4, 7, 8, 10, 16] {
        let refused = call(&client, LIST, OPEN, vec![wrong.into()]).await;
        assert_eq!(refused, Err(StatusCode::BAD_NOT_SUPPORTED), "{wrong}");
    }
    // Adds a certificate, and removes it.
    call(&client, LIST, ADD, vec![der(&other_certificate).into(), true.into()]).await.unwrap();
    assert!(trusted().contains(&other_certificate));
    let garbage = call(&client, LIST, ADD, vec![ByteString::from(vec![1, 2]).into(), true.into()]).await;
    assert_eq!(garbage, Err(StatusCode::BAD_CERTIFICATE_INVALID));
    let thumbprint =
        taktwerk_pki::thumbprint_text(&taktwerk_crypto::certificate::thumbprint(other_certificate.der()));
    let remove = vec![thumbprint.to_uppercase().as_str().into(), true.into()];
    call(&client, LIST, REMOVE, remove.clone()).await.unwrap();
    assert_eq!(trusted(), core::slice::from_ref(&client_certificate));
    assert_eq!(call(&client, LIST, REMOVE, remove).await, Err(StatusCode::BAD_INVALID_ARGUMENT));
    // A new list, in pieces. It replaces only the lists that it specifies.
    let new = TrustListDataType {
        specified_lists: 5,
        trusted_certificates: vec![der(&client_certificate), der(&other_certificate)],
        issuer_certificates: vec![der(&other_certificate)],
        ..TrustListDataType::default()
    };
    let handle = call(&client, LIST, OPEN, vec![6u8.into()]).await.unwrap().remove(0);
    let second = call(&client, LIST, OPEN, vec![6u8.into()]).await;
    assert_eq!(second, Err(StatusCode::BAD_NOT_WRITABLE));
    let add = call(&client, LIST, ADD, vec![der(&other_certificate).into(), true.into()]).await;
    assert_eq!(add, Err(StatusCode::BAD_INVALID_STATE));
    for piece in new.encode_to_vec().chunks(200) {
        let piece = ByteString::from(piece.to_vec());
        call(&client, LIST, WRITE, vec![handle.clone(), piece.into()]).await.unwrap();
    }
    assert_eq!(trusted().len(), 1, "nothing counts before it is closed");
    let stranger = connect(&running, &theirs).await;
    let stolen = call(&stranger, LIST, UPDATE, vec![handle.clone()]).await;
    assert_eq!(stolen, Err(StatusCode::BAD_INVALID_ARGUMENT), "another session");
    assert_eq!(call(&client, LIST, UPDATE, vec![handle]).await, Ok(vec![true.into()]));
    assert_eq!(trusted().len(), 1, "nor before it is applied");
    assert_eq!(apply(&client).await, Ok(Vec::new()));
    assert_eq!(trusted().len(), 2);
    assert_eq!(ours.store().entries(Group::Applications, Part::Issuers, &mut Vec::new()).len(), 1);
    // Content that is not a trust list changes nothing.
    let handle = call(&client, LIST, OPEN, vec![6u8.into()]).await.unwrap().remove(0);
    let garbage = ByteString::from(vec![7; 50]);
    call(&client, LIST, WRITE, vec![handle.clone(), garbage.into()]).await.unwrap();
    assert_eq!(call(&client, LIST, UPDATE, vec![handle]).await, Err(StatusCode::BAD_CERTIFICATE_INVALID));
    assert_eq!(apply(&client).await, Ok(Vec::new()), "there is nothing to change any more");
    assert_eq!(apply(&client).await, Err(StatusCode::BAD_NOTHING_TO_DO));
    assert_eq!(trusted().len(), 2);
    let count: u16 = client.read_value(NodeId::numeric(0, open_count())).await.unwrap();
    assert_eq!(count, 0);
    // Rejected certificates are listed.
    ours.store().reject(Group::Applications, &other_certificate).unwrap();
    let id = m::SERVER_CONFIGURATION_GET_REJECTED_LIST;
    let rejected = call(&client, o::SERVER_CONFIGURATION, id, Vec::new()).await.unwrap().remove(0);
    assert_eq!(rejected, vec![der(&other_certificate)].into());
}

pub(super) fn open_count() -> u32 {
    taktwerk::schema::ids::variable_ids::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST_OPEN_COUNT
}

#[tokio::test]
async fn others_are_refused_and_unsupported_parts_hidden() {
    let folder = Folder::new("others");
    let (ours, theirs) = pair(&folder);
    for (role, has_push) in [("ConfigureAdmin", true), ("SecurityAdmin", false)] {
        let running = serve(&ours, role, has_push);
        let client = connect(&running, &theirs).await;
        for (object, method, inputs) in [
            (LIST, OPEN, vec![1u8.into()]),
            (o::SERVER_CONFIGURATION, m::SERVER_CONFIGURATION_GET_REJECTED_LIST, Vec::new()),
            (o::SERVER_CONFIGURATION, m::SERVER_CONFIGURATION_APPLY_CHANGES, Vec::new()),
        ] {
            assert!(call(&client, object, method, inputs).await.is_err(), "{role} {method}");
        }
        let shown = client.browse(NodeId::numeric(0, o::SERVER_CONFIGURATION)).await.unwrap_or_default();
        let methods: Vec<_> = shown.iter().filter(|node| node.node_class.0 == 4).collect();
        assert!(methods.is_empty(), "{role}: {methods:?}");
        client.disconnect().await;
        running.stop(Duration::from_secs(1));
    }
    let running = serve(&ours, "SecurityAdmin", true);
    let client = connect(&running, &theirs).await;
    let shown = client.browse(NodeId::numeric(0, o::SERVER_CONFIGURATION)).await.unwrap();
    for node in shown.iter().filter(|node| node.node_class.0 == 4) {
        let executable =
            client.read_attribute(node.node_id.node_id.clone(), Attribute::Executable).await.unwrap();
        assert_eq!(executable.value, Some(true.into()), "{}", node.browse_name.name);
    }
    assert!(!shown.iter().any(|node| node.browse_name.name.as_str() == "ConfigurationFile"));
}

/// Part 12 §7.8.2.9 defines four bits.
#[tokio::test]
async fn unknown_lists_are_rejected() {
    let folder = Folder::new("masks");
    let (ours, theirs) = pair(&folder);
    let running = serve(&ours, "SecurityAdmin", true);
    let client = connect(&running, &theirs).await;
    for masks in [16, 17, 31, 1 << 31, u32::MAX] {
        let new = TrustListDataType { specified_lists: masks, ..attacks::list_of(&[&own(&theirs)]) };
        let handle = written(&client, &new).await.unwrap();
        let refused = call(&client, LIST, UPDATE, vec![handle]).await;
        assert_eq!(refused, Err(StatusCode::BAD_INVALID_ARGUMENT), "{masks:#x}");
    }
    assert_eq!(trusted(&ours), [own(&theirs)]);
}

/// Trailing bytes indicate that the client wrote something unintended.
#[tokio::test]
async fn trailing_bytes_after_a_trust_list_are_rejected() {
    let folder = Folder::new("behind");
    let (ours, theirs) = pair(&folder);
    let running = serve(&ours, "SecurityAdmin", true);
    let client = connect(&running, &theirs).await;
    let handle = written(&client, &attacks::list_of(&[])).await.unwrap();
    let more = ByteString::from(vec![0]);
    call(&client, LIST, WRITE, vec![handle.clone(), more.into()]).await.unwrap();
    let refused = call(&client, LIST, UPDATE, vec![handle]).await;
    assert_eq!(refused, Err(StatusCode::BAD_CERTIFICATE_INVALID));
    apply(&client).await.unwrap();
    assert_eq!(trusted(&ours), [own(&theirs)]);
}
