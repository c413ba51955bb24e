//! Peers that violate the protocol are refused with the right status and never cause a panic.

use crate::common;
use crate::common::*;
use proptest::prelude::*;
use taktwerk_channel::{
    Channel, ChannelConfig, ChannelError, ChannelLimits, Closed, LimitHit, OpenParams, PeerFault,
};
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_types::StatusCode;

/// The status of the Error message that the server answers to `bytes` on an open channel.
fn refused_when_open(change: impl Fn(&mut Vec<u8>)) -> (ChannelError, StatusCode) {
    let mut pair = Setup::default().open();
    pair.client.send(1, b"body").unwrap();
    change(&mut pair.client.out);
    pair.deliver_all();
    refusal(&mut pair)
}

fn refusal(pair: &mut Pair) -> (ChannelError, StatusCode) {
    match (pair.server.take_seen().pop(), pair.client.take_seen().pop()) {
        (Some(Seen::Failed(error)), Some(Seen::Closed(Closed::Error { status, .. }))) => (error, status),
        other => panic!("{other:?}"),
    }
}

fn patch(at: usize, value: u32) -> impl Fn(&mut Vec<u8>) {
    move |out| out[at..at + 4].copy_from_slice(&value.to_le_bytes())
}

#[test]
fn broken_headers() {
    let invalid = (PeerFault::HeaderInvalid.into(), StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID);
    assert_eq!(refused_when_open(|out| out[0] = b'X'), invalid);
    assert_eq!(refused_when_open(|out| out[3] = b'X'), invalid);
    for size in [0, 1, 7, 8, 12, 23] {
        assert_eq!(refused_when_open(patch(4, size)), invalid);
    }
    for size in [65_537, 0x8000_0000, u32::MAX] {
        let too_large = LimitHit::ChunkTooLarge { size, limit: 65_536 }.into();
        assert_eq!(refused_when_open(patch(4, size)), (too_large, StatusCode::BAD_TCP_MESSAGE_TOO_LARGE));
    }
}

#[test]
fn wrong_ids_and_sequence_numbers() {
    let unknown = (PeerFault::ChannelUnknown.into(), StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN);
    assert_eq!(refused_when_open(patch(8, 0)), unknown);
    assert_eq!(refused_when_open(patch(8, 78)), unknown);
    let unknown = (PeerFault::TokenUnknown.into(), StatusCode::BAD_SECURE_CHANNEL_TOKEN_UNKNOWN);
    assert_eq!(refused_when_open(patch(12, 0)), unknown);
    assert_eq!(refused_when_open(patch(12, 2)), unknown);
    let sequence = (PeerFault::SequenceInvalid.into(), StatusCode::BAD_SECURITY_CHECKS_FAILED);
    // The OPN was number 1, so 2 is expected.
    for number in [0, 1, 3, u32::MAX] {
        assert_eq!(refused_when_open(patch(16, number)), sequence);
    }
}

#[test]
fn unexpected_message_types() {
    let unexpected = |bytes: &[u8], opened: bool| {
        let mut pair = if opened { Setup::default().open() } else { Setup::default().pair() };
        pair.client.out = bytes.to_vec();
        pair.deliver_all();
        refusal(&mut pair).1
    };
    let invalid = StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID;
    let mut hello = Setup::default().pair().client.out;
    assert_eq!(unexpected(&hello, true), invalid);
    hello[..3].copy_from_slice(b"ACK");
    assert_eq!(unexpected(&hello, false), invalid);
    assert_eq!(unexpected(b"OPNF\x10\0\0\0\0\0\0\0\0\0\0\0", false), invalid);
    assert_eq!(unexpected(b"MSGF\x18\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", false), invalid);
    assert_eq!(unexpected(b"ERRF\x10\0\0\0\0\0\0\0\xff\xff\xff\xff", true), invalid);
    assert_eq!(unexpected(b"GET / HTTP/1.1\r\n\r\n", false), invalid);
}

#[test]
fn a_message_before_the_channel_is_open() {
    let mut pair = Setup::default().pair();
    let mut bytes = core::mem::take(&mut pair.client.out);
    bytes.extend_from_slice(b"MSGF\x18\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    pair.server.deliver(&bytes, START);
    assert_eq!(pair.server.take_seen(), [Seen::Failed(PeerFault::ChannelUnknown.into())]);
}

#[test]
fn hellos_beyond_the_limits() {
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut pair = Setup::default().pair();
        change(&mut pair.client.out);
        pair.deliver_all();
        refusal(&mut pair).1
    };
    assert_eq!(refused(&patch(12, 8191)), StatusCode::BAD_CONNECTION_REJECTED);
    assert_eq!(refused(&patch(16, 8191)), StatusCode::BAD_CONNECTION_REJECTED);
    assert_eq!(refused(&patch(4, 20)), StatusCode::BAD_DECODING_ERROR);
    assert_eq!(refused(&patch(4, 100_000)), StatusCode::BAD_TCP_MESSAGE_TOO_LARGE);
    let (config, server) = Setup::default().configs();
    let mut out = Vec::new();
    Channel::client(config, OpenParams::insecure("u".repeat(4097)), START, &mut out).unwrap();
    let mut server = End::new(
        Channel::server(server, 1, START),
        common::Setup::default().configs().1.provider.clone(),
        vec![],
    );
    server.deliver(&out, START);
    assert_eq!(server.take_seen(), [Seen::Failed(PeerFault::EndpointUrlInvalid.into())]);
    // A newer version is answered with version 0, and unlimited buffers with our sizes.
    let mut pair = Setup::default().pair();
    patch(8, 7)(&mut pair.client.out);
    patch(12, u32::MAX)(&mut pair.client.out);
    patch(16, u32::MAX)(&mut pair.client.out);
    pair.deliver_all();
    assert_eq!(pair.client.take_seen(), [Seen::Opened]);
}

#[test]
fn small_buffers_only_with_elliptic_curves() {
    let limits =
        ChannelLimits { receive_buffer_size: 1024, send_buffer_size: 1024, ..ChannelLimits::default() };
    let offered = vec![
        (SecurityPolicy::None, MessageSecurityMode::None),
        (SecurityPolicy::ECC_nistP256_AesGcm, MessageSecurityMode::SignAndEncrypt),
    ];
    let mut pair = Setup {
        client: limits,
        offered: Some(offered),
        ..secured(SecurityPolicy::ECC_nistP256_AesGcm, MessageSecurityMode::SignAndEncrypt)
    }
    .pair();
    pair.deliver_all();
    assert_eq!(pair.client.take_seen(), [Seen::Opened]);
    pair.client.send(1, &pattern(50_000)).unwrap();
    pair.deliver_all();
    assert_eq!(pair.server.take_seen(), [Seen::Opened, Seen::Message(1, pattern(50_000))]);
}

#[test]
fn a_second_issue_and_a_foreign_renewal_are_refused() {
    // Replay the first OPN, with the right sequence number, on the open channel.
    for (policy, mode) in securities() {
        let mut pair = secured(policy, mode).pair();
        let hello = core::mem::take(&mut pair.client.out);
        pair.server.deliver(&hello, START);
        let ack = core::mem::take(&mut pair.server.out);
        pair.client.deliver(&ack, START);
        let opn = pair.client.out.clone();
        pair.deliver_all();
        pair.server.take_seen();
        pair.client.take_seen();
        pair.server.deliver(&opn, START);
        let seen = pair.server.take_seen();
        // Its channel id is 0, so its request type is not even examined.
        assert_eq!(seen, [Seen::Failed(PeerFault::ChannelUnknown.into())]);
    }
    let mut pair = Setup { lifetime_ms: 10_000, ..Setup::default() }.open();
    pair.client.tick(START + core::time::Duration::from_secs(8));
    // RequestType follows policy, two null strings, sequence header, type id, request header and version.
    let at = 12 + 4 + SecurityPolicy::None.uri().len() + 8 + 8 + 4 + (2 + 8 + 4 + 4 + 4 + 4 + 3) + 4;
    assert_eq!(pair.client.out[at], 1);
    pair.client.out[at] = 0;
    pair.deliver_all();
    assert_eq!(refusal(&mut pair).1, StatusCode::BAD_REQUEST_TYPE_INVALID);
}

#[test]
fn interleaved_messages_are_refused() {
    let mut pair = Setup { server: small_buffers(), ..Setup::default() }.open();
    pair.client.send(1, &pattern(9000)).unwrap();
    // The second chunk belongs to another request.
    pair.client.out[8192 + 20] = 2;
    pair.deliver_all();
    assert_eq!(refusal(&mut pair), (PeerFault::Interleaved.into(), StatusCode::BAD_SECURITY_CHECKS_FAILED));
}

#[test]
fn a_client_refuses_a_server_that_changes_its_certificate_or_policy() {
    let setup = secured(SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt);
    let mut pair = setup.pair();
    // The server's own certificate differs from the one the client expects.
    pair.server.provider = std::sync::Arc::new(taktwerk_crypto_dummy::DummyProvider::new("other", 2048));
    pair.deliver_all();
    assert!(pair.server.take_seen().iter().any(|seen| matches!(seen, Seen::Failed(ChannelError::Crypto(_)))));
    let mut other = Setup { ..secured(SecurityPolicy::Basic256Sha256, MessageSecurityMode::Sign) };
    other.offered = Some(vec![(SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt)]);
    let mut pair = other.pair();
    pair.deliver_all();
    assert_eq!(refusal(&mut pair).1, StatusCode::BAD_SECURITY_MODE_REJECTED);
}

/// Feeds bytes in pieces and checks the invariants that hold for any input.
fn feed(mut end: End, bytes: &[u8], piece: usize) {
    for part in bytes.chunks(piece.max(1)) {
        end.deliver(part, START);
        assert!(end.channel.buffered_len() <= end.inbox.len() + bytes.len());
        let _ = end.channel.poll_timeout();
    }
    assert!(end.out.len() < 10_000);
    end.tick(START + core::time::Duration::from_secs(100_000));
}

fn fresh(role: usize, security: usize) -> End {
    let all = securities();
    let (policy, mode) = all[security % all.len()];
    let pair = match role % 3 {
        0 | 1 => secured(policy, mode).pair(),
        _ => secured(policy, mode).open(),
    };
    if role.is_multiple_of(2) { pair.client } else { pair.server }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_never_panic(role in 0usize..6, security in 0usize..53, piece in 1usize..300, bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        feed(fresh(role, security), &bytes, piece);
    }

    #[test]
    fn random_bodies_behind_right_headers_never_panic(
        role in 0usize..6, security in 0usize..53, letters in 0usize..7, flag in 0usize..3,
        body in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut bytes = [b"HEL", b"ACK", b"ERR", b"RHE", b"OPN", b"CLO", b"MSG"][letters].to_vec();
        bytes.push(b"FCA"[flag]);
        bytes.extend_from_slice(&u32::try_from(body.len() + 8).unwrap().to_le_bytes());
        bytes.extend_from_slice(&body);
        feed(fresh(role, security), &bytes, 300);
    }

    #[test]
    fn mutated_conversations_never_panic(security in 0usize..53, flips in prop::collection::vec((any::<u16>(), any::<u8>()), 1..8), cut: u16) {
        let all = securities();
        let (policy, mode) = all[security % all.len()];
        let mut pair = Setup { client: small_buffers(), server: small_buffers(), ..secured(policy, mode) }.pair();
        for round in 0..4 {
            for (at, value) in &flips {
                for out in [&mut pair.client.out, &mut pair.server.out] {
                    if !out.is_empty() && usize::from(*at) % 4 == round {
                        let at = usize::from(*at) % out.len();
                        out[at] ^= value;
                    }
                }
            }
            if usize::from(cut) % 4 == round {
                let keep = usize::from(cut) % (pair.client.out.len() + 1);
                pair.client.out.truncate(keep);
            }
            pair.deliver_all();
            let _ = pair.client.send(1, &pattern(10_000));
            let _ = pair.server.send(1, &pattern(10_000));
        }
        pair.deliver_all();
    }

    /// With the right keys, everything after the signature can also be random.
    #[test]
    fn random_open_bodies_without_security_never_panic(body in prop::collection::vec(any::<u8>(), 0..200), renew: bool) {
        let mut pair = if renew { Setup::default().open() } else { Setup::default().pair() };
        if !renew {
            let hello = core::mem::take(&mut pair.client.out);
            pair.server.deliver(&hello, START);
        }
        let uri = SecurityPolicy::None.uri();
        let mut opn = b"OPNF".to_vec();
        opn.extend_from_slice(&u32::try_from(12 + 4 + uri.len() + 8 + 8 + body.len()).unwrap().to_le_bytes());
        opn.extend_from_slice(&u32::from(renew).wrapping_mul(77).to_le_bytes());
        opn.extend_from_slice(&u32::try_from(uri.len()).unwrap().to_le_bytes());
        opn.extend_from_slice(uri.as_bytes());
        opn.extend_from_slice(&[0xff; 8]);
        opn.extend_from_slice(&[2, 0, 0, 0, 9, 0, 0, 0]);
        opn.extend_from_slice(&body);
        pair.server.deliver(&opn, START);
        prop_assert!(matches!(pair.server.take_seen().pop(), Some(Seen::Failed(_))));
    }
}

#[test]
fn zero_limits_are_not_unlimited() {
    let limits = ChannelConfig::default().limits;
    assert!(limits.message_size_max > 0 && limits.chunk_count_max > 0);
}
