//! Client and server channel against each other: opening, messages of any size at any split, renewal, closing.

use crate::common::*;
use core::time::Duration;
use proptest::prelude::*;
use taktwerk_channel::{
    ApiMisuse, Channel, ChannelError, ChannelLimits, Closed, Event, LimitHit, OpenParams, PeerFault,
};
use taktwerk_crypto::{Entropy, MessageSecurityMode, SecurityPolicy, SeededEntropy};
use taktwerk_types::{Instant, StatusCode};

#[test]
fn every_policy_opens_and_carries_messages_both_ways() {
    for (policy, mode) in securities() {
        for key_bits in [2048, 3072, 4096] {
            let mut pair = Setup { key_bits, ..secured(policy, mode) }.open();
            assert_eq!((pair.server.channel.policy(), pair.server.channel.mode()), (policy, mode));
            assert_eq!(pair.client.channel.id(), 77);
            assert_eq!(pair.server.channel.endpoint_url(), URL);
            assert_eq!(pair.client.channel.thumbprint(), pair.server.channel.thumbprint());
            assert_eq!(pair.server.channel.peer_certificate().is_some(), policy != SecurityPolicy::None);
            for len in [0, 1, 15, 16, 17, 1000, 100_000] {
                let body = pattern(len);
                pair.client.send(5, &body).unwrap();
                pair.server.send(6, &body).unwrap();
                pair.deliver_all();
                assert_eq!(pair.server.take_seen(), [Seen::Message(5, body.clone())]);
                assert_eq!(pair.client.take_seen(), [Seen::Message(6, body)]);
            }
        }
    }
}

#[test]
fn large_messages_are_cut_and_joined_with_small_buffers() {
    for (policy, mode) in layouts() {
        let setup = Setup { client: small_buffers(), server: small_buffers(), ..secured(policy, mode) };
        let mut pair = setup.open();
        let body = pattern(3_000_001);
        pair.client.send(5, &body).unwrap();
        pair.client.send(6, b"next").unwrap();
        pair.server.send(7, &body).unwrap();
        let sizes = chunk_sizes(&pair.client.out);
        assert!(sizes.len() > 300 && sizes.iter().all(|size| *size <= 8192));
        pair.deliver_all();
        assert_eq!(
            pair.server.take_seen(),
            [Seen::Message(5, body.clone()), Seen::Message(6, b"next".to_vec())]
        );
        assert_eq!(pair.client.take_seen(), [Seen::Message(7, body)]);
        assert_eq!(pair.server.channel.buffered_len(), 0);
    }
}

/// All body sizes around the border of a chunk, for each layout.
#[test]
fn sizes_around_a_chunk_border() {
    for (policy, mode) in [
        (SecurityPolicy::None, MessageSecurityMode::None),
        (SecurityPolicy::Basic256Sha256, MessageSecurityMode::Sign),
        (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt),
        (SecurityPolicy::ECC_nistP256_AesGcm, MessageSecurityMode::SignAndEncrypt),
    ] {
        let setup = Setup { client: small_buffers(), server: small_buffers(), ..secured(policy, mode) };
        let mut pair = setup.open();
        for border in [8192, 16384, 24576] {
            for len in border - 200..border + 20 {
                let body = pattern(len);
                pair.client.send(1, &body).unwrap();
                assert!(chunk_sizes(&pair.client.out).iter().all(|size| *size <= 8192));
                pair.deliver_all();
                assert_eq!(pair.server.take_seen(), [Seen::Message(1, body)]);
            }
        }
    }
}

#[test]
fn whole_conversation_byte_by_byte() {
    for (policy, mode) in layouts() {
        let setup = Setup { client: small_buffers(), server: small_buffers(), ..secured(policy, mode) };
        let mut pair = setup.pair();
        pair.deliver_all_in_pieces(|_| 1);
        let body = pattern(20_000);
        pair.client.send(1, &body).unwrap();
        pair.server.send(2, &body).unwrap();
        pair.deliver_all_in_pieces(|_| 1);
        assert_eq!(pair.server.take_seen(), [Seen::Opened, Seen::Message(1, body.clone())]);
        assert_eq!(pair.client.take_seen(), [Seen::Opened, Seen::Message(2, body)]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_split_gives_the_same(seed: u64, which in 0usize..53, lens in prop::collection::vec(0usize..40_000, 1..6)) {
        let all = securities();
        let (policy, mode) = all[which % all.len()];
        let setup = Setup { client: small_buffers(), server: small_buffers(), ..secured(policy, mode) };
        let mut pair = setup.pair();
        let mut entropy = SeededEntropy::new(seed);
        let mut piece = |len: usize| entropy.below(if len.is_multiple_of(3) { 20 } else { 9000 }) as usize;
        pair.deliver_all_in_pieces(&mut piece);
        let mut wanted = vec![Seen::Opened];
        for (at, len) in lens.iter().enumerate() {
            let id = u32::try_from(at).unwrap() + 10;
            pair.client.send(id, &pattern(*len)).unwrap();
            pair.server.send(id, &pattern(*len)).unwrap();
            wanted.push(Seen::Message(id, pattern(*len)));
        }
        pair.deliver_all_in_pieces(&mut piece);
        prop_assert_eq!(pair.server.take_seen(), wanted.clone());
        prop_assert_eq!(pair.client.take_seen(), wanted);
    }
}

fn chunk_sizes(bytes: &[u8]) -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let size = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
        sizes.push(size);
        rest = &rest[size..];
    }
    sizes
}

#[test]
fn a_single_chunk_is_a_range_of_the_buffer_and_more_are_assembled() {
    let mut pair = Setup { server: small_buffers(), ..Setup::default() }.open();
    for (len, several) in [(100, false), (9000, true)] {
        pair.client.send(1, &pattern(len)).unwrap();
        let mut wire = core::mem::take(&mut pair.client.out);
        let mut at = 0;
        loop {
            let received = pair.server.channel.receive(&mut wire[at..], pair.now, &mut vec![]).unwrap();
            if let Event::Message { body, .. } = received.event {
                assert_eq!(assembled(&body), several);
                assert_eq!(body.bytes(&wire[at..]), pattern(len));
                break;
            }
            at += received.consumed;
        }
    }
}

/// Messages secured with the old token arrive after the new one was issued, in both directions.
#[test]
fn messages_in_flight_under_the_old_token_are_accepted() {
    for (policy, mode) in securities() {
        let mut pair = Setup { lifetime_ms: 60_000, ..secured(policy, mode) }.open();
        for renewal in 0..50u32 {
            let token_of = |wire: &[u8]| u32::from_le_bytes(wire[12..16].try_into().unwrap());
            pair.now = pair.now + Duration::from_secs(45);
            // The client's last requests under the old token, then its renewal.
            pair.client.send(1, b"before").unwrap();
            pair.client.tick(pair.now);
            let requests = core::mem::take(&mut pair.client.out);
            // In the meantime the server answers another request; that response travels before its OPN response …
            pair.server.send(2, b"crossing").unwrap();
            pair.server.deliver(&requests, pair.now);
            assert_eq!(pair.server.take_seen(), [Seen::Message(1, b"before".to_vec()), Seen::Renewed]);
            // … and another response follows it, still under the old token because the new one is not in use yet.
            let behind = pair.server.out.len();
            pair.server.send(3, b"late").unwrap();
            assert_eq!(token_of(&pair.server.out[behind..]), renewal + 1);
            let responses = core::mem::take(&mut pair.server.out);
            pair.client.deliver(&responses, pair.now + Duration::from_secs(29));
            let wanted =
                [Seen::Message(2, b"crossing".to_vec()), Seen::Renewed, Seen::Message(3, b"late".to_vec())];
            assert_eq!(pair.client.take_seen(), wanted);
            // The client uses the new token at once, and then the server does too.
            pair.client.send(4, b"new").unwrap();
            assert_eq!(token_of(&pair.client.out), renewal + 2);
            pair.deliver_all();
            assert_eq!(pair.server.take_seen(), [Seen::Message(4, b"new".to_vec())]);
            pair.server.send(4, b"new").unwrap();
            assert_eq!(token_of(&pair.server.out), renewal + 2);
            pair.deliver_all();
            assert_eq!(pair.client.take_seen(), [Seen::Message(4, b"new".to_vec())]);
        }
    }
}

#[test]
fn a_channel_stays_open_for_hours_with_short_tokens() {
    for (policy, mode) in layouts() {
        let mut pair = Setup { lifetime_ms: 5_000, ..secured(policy, mode) }.open();
        let mut renewed = 0;
        for step in 0..1800u32 {
            pair.client.send(step, b"request").unwrap();
            pair.server.send(step, b"response").unwrap();
            pair.run(Duration::from_secs(2));
            pair.deliver_all();
            let (client, server) = (pair.client.take_seen(), pair.server.take_seen());
            assert!(client.contains(&Seen::Message(step, b"response".to_vec())));
            assert!(server.contains(&Seen::Message(step, b"request".to_vec())));
            assert!(
                !client.iter().chain(&server).any(|seen| matches!(seen, Seen::Failed(_) | Seen::Closed(_)))
            );
            renewed += client.iter().filter(|seen| **seen == Seen::Renewed).count();
        }
        assert!((900..1000).contains(&renewed), "{renewed}");
    }
}

#[test]
fn messages_wait_for_a_renewal_that_is_being_secured() {
    for (policy, mode) in layouts().into_iter().filter(|(policy, _)| *policy != SecurityPolicy::None) {
        let mut pair = Setup { lifetime_ms: 60_000, ..secured(policy, mode) }.open();
        pair.client.slow_jobs = true;
        pair.server.slow_jobs = true;
        pair.now = pair.now + Duration::from_secs(45);
        pair.client.tick(pair.now);
        let mut wanted_by_server = Vec::new();
        let mut wanted_by_client = Vec::new();
        for round in 0..6u32 {
            for part in 0..3 {
                let id = round * 3 + part;
                pair.client.send(id, &pattern(100_000)).unwrap();
                pair.server.send(id, &pattern(70_000)).unwrap();
                wanted_by_server.push(Seen::Message(id, pattern(100_000)));
                wanted_by_client.push(Seen::Message(id, pattern(70_000)));
                if part == 1 {
                    pair.deliver_all();
                }
            }
            // One job of each end per round: request sealed, checked, response sealed, checked.
            for end in [&mut pair.client, &mut pair.server] {
                if !end.jobs.is_empty() {
                    let job = end.jobs.remove(0);
                    let result = job.run(end.provider.as_ref());
                    match end.channel.complete(result, pair.now, &mut end.out).unwrap() {
                        Event::Effect(job) => end.jobs.push(*job),
                        Event::Renewed => end.seen.push(Seen::Renewed),
                        Event::Handled => {}
                        other => panic!("{other:?}"),
                    }
                }
            }
            pair.deliver_all();
        }
        let only_messages =
            |seen: Vec<Seen>| seen.into_iter().filter(|seen| *seen != Seen::Renewed).collect::<Vec<_>>();
        let (client, server) = (pair.client.take_seen(), pair.server.take_seen());
        assert!(client.contains(&Seen::Renewed) && server.contains(&Seen::Renewed));
        assert_eq!(only_messages(client), wanted_by_client);
        assert_eq!(only_messages(server), wanted_by_server);
        assert_eq!(pair.client.channel.buffered_len() + pair.server.channel.buffered_len(), 0);
    }
}

#[test]
fn a_token_that_is_never_renewed_ends_the_channel_at_125_percent() {
    let mut pair = Setup { lifetime_ms: 60_000, ..Setup::default() }.open();
    // The client's renewals get lost.
    let (server, client) = (&mut pair.server, &mut pair.client);
    assert_eq!(server.channel.poll_timeout().unwrap().0, START + Duration::from_secs(75));
    server.tick(START + Duration::from_secs(74));
    assert!(server.take_seen().is_empty());
    server.tick(START + Duration::from_secs(75));
    assert_eq!(server.take_seen(), [Seen::Failed(PeerFault::TokenExpired.into())]);
    assert_eq!(&server.out[..4], b"ERRF");
    assert_eq!(
        client.channel.poll_timeout(),
        Some((START + Duration::from_secs(45), "renew the security token"))
    );
    client.tick(START + Duration::from_secs(45));
    assert_eq!(client.channel.poll_timeout().unwrap().0, START + Duration::from_secs(75));
    client.tick(START + Duration::from_secs(75));
    assert_eq!(client.take_seen(), [Seen::Failed(PeerFault::TokenExpired.into())]);
}

#[test]
fn lifetimes_are_revised_within_bounds() {
    let server =
        ChannelLimits { lifetime_min_ms: 10_000, lifetime_max_ms: 600_000, ..ChannelLimits::default() };
    for (asked, granted) in [(0, 600_000), (1, 10_000), (60_000, 60_000), (u32::MAX, 600_000)] {
        let pair = Setup { server: server.clone(), lifetime_ms: asked, ..Setup::default() }.open();
        assert_eq!(pair.client.channel.token_lifetime_ms(), Some(granted));
        assert_eq!(pair.server.channel.token_lifetime_ms(), Some(granted));
    }
}

#[test]
fn messages_beyond_the_peers_limits_are_not_sent_and_the_channel_stays_open() {
    let limits = ChannelLimits { message_size_max: 50_000, chunk_count_max: 4, ..small_buffers() };
    let mut pair = Setup { client: limits.clone(), server: limits, ..Setup::default() }.open();
    pair.client.out.extend_from_slice(b"");
    for len in [50_001, 4 * 8168 + 1] {
        let too_large = |status| Err(LimitHit::PeerLimit { status }.into());
        assert_eq!(pair.client.send(1, &pattern(len)), too_large(StatusCode::BAD_REQUEST_TOO_LARGE));
        assert_eq!(pair.server.send(1, &pattern(len)), too_large(StatusCode::BAD_RESPONSE_TOO_LARGE));
        assert!(pair.client.out.is_empty() && pair.server.out.is_empty());
    }
    pair.client.send(1, &pattern(4 * 8168)).unwrap();
    pair.deliver_all();
    assert_eq!(pair.server.take_seen(), [Seen::Message(1, pattern(4 * 8168))]);
}

#[test]
fn a_server_closes_on_too_large_messages_and_a_client_drops_them() {
    // Give the sender larger limits than the receiver has: change them in Hello and Acknowledge.
    let tight = ChannelLimits { message_size_max: 20_000, chunk_count_max: 10, ..small_buffers() };
    let mut pair = Setup { client: tight.clone(), server: tight, ..Setup::default() }.pair();
    pair.client.out[20..28].fill(0);
    let hello = core::mem::take(&mut pair.client.out);
    pair.server.deliver(&hello, pair.now);
    pair.server.out[20..28].fill(0);
    pair.deliver_all();
    pair.server.take_seen();
    pair.client.take_seen();
    pair.server.send(9, &pattern(30_000)).unwrap();
    pair.server.send(10, b"small").unwrap();
    pair.deliver_all();
    assert_eq!(
        pair.client.take_seen(),
        [
            Seen::Aborted(
                9,
                StatusCode::BAD_RESPONSE_TOO_LARGE,
                "the response passes the client's limits".into()
            ),
            Seen::Message(10, b"small".to_vec())
        ]
    );
    pair.client.send(11, &pattern(30_000)).unwrap();
    pair.deliver_all();
    assert_eq!(pair.server.take_seen(), [Seen::Failed(LimitHit::MessageTooLarge.into())]);
    let closed =
        Closed::Error { status: StatusCode::BAD_TCP_MESSAGE_TOO_LARGE, reason: "message too large".into() };
    assert_eq!(pair.client.take_seen(), [Seen::Closed(closed)]);
}

#[test]
fn abort_drops_the_message_and_keeps_the_channel() {
    for (policy, mode) in securities() {
        let mut pair = Setup { client: small_buffers(), ..secured(policy, mode) }.open();
        pair.server.send(3, &pattern(30_000)).unwrap();
        // Only the first two chunks are sent; then the sender aborts.
        let sizes = chunk_sizes(&pair.server.out);
        let mut wire = core::mem::take(&mut pair.server.out);
        wire.truncate(sizes[0] + sizes[1]);
        pair.client.deliver(&wire, pair.now);
        assert!(pair.client.channel.buffered_len() > 16_000);
        // The numbers of the unsent chunks are used up, so test an abort on its own with a new pair.
        let mut pair = Setup { client: small_buffers(), ..secured(policy, mode) }.open();
        pair.server.channel.abort(3, StatusCode::BAD_ENCODING_ERROR, "why", &mut pair.server.out).unwrap();
        pair.server.send(4, b"next").unwrap();
        pair.deliver_all();
        assert_eq!(
            pair.client.take_seen(),
            [
                Seen::Aborted(3, StatusCode::BAD_ENCODING_ERROR, "why".into()),
                Seen::Message(4, b"next".to_vec())
            ]
        );
    }
}

#[test]
fn close_and_reject_reach_the_other_end() {
    for (policy, mode) in securities() {
        let mut pair = secured(policy, mode).open();
        pair.client.channel.close(pair.now, &mut pair.client.out);
        pair.deliver_all();
        assert_eq!(pair.server.take_seen(), [Seen::Closed(Closed::Close)]);
        assert!(pair.server.channel.is_closed() && pair.client.channel.is_closed());
        assert_eq!(pair.client.send(1, b""), Err(ApiMisuse::Closed.into()));
        assert!(pair.client.out.is_empty());
        let mut pair = secured(policy, mode).open();
        pair.server.channel.reject(StatusCode::BAD_TCP_SERVER_TOO_BUSY, "full", &mut pair.server.out);
        pair.deliver_all();
        let closed = Closed::Error { status: StatusCode::BAD_TCP_SERVER_TOO_BUSY, reason: "full".into() };
        assert_eq!(pair.client.take_seen(), [Seen::Closed(closed)]);
    }
}

#[test]
fn reverse_connections_start_with_the_server() {
    let setup = Setup::default();
    let (client_config, server_config) = setup.configs();
    let mut out = Vec::new();
    let server = Channel::server_reverse(server_config.clone(), 5, "urn:server", URL, START, &mut out);
    let mut pair = Pair {
        client: End::new(
            Channel::client_reverse(client_config.clone(), START),
            client_config.provider.clone(),
            vec![],
        ),
        server: End::new(server, server_config.provider.clone(), out),
        now: START,
    };
    pair.deliver_all();
    assert_eq!(pair.client.take_seen(), [Seen::ReverseHello("urn:server".into(), URL.into())]);
    pair.client.channel.accept_reverse(setup.params(), pair.now, &mut pair.client.out).unwrap();
    pair.deliver_all();
    assert_eq!((pair.client.take_seen(), pair.server.take_seen()), (vec![Seen::Opened], vec![Seen::Opened]));
    let mut out = Vec::new();
    let mut server = End::new(
        Channel::server_reverse(server_config.clone(), 5, "urn:server", URL, START, &mut out),
        server_config.provider.clone(),
        vec![],
    );
    let mut client = End::new(
        Channel::client_reverse(client_config.clone(), START),
        client_config.provider.clone(),
        vec![],
    );
    client.deliver(&out, START);
    client.channel.reject(StatusCode::BAD_TCP_SERVER_TOO_BUSY, "no", &mut client.out);
    server.deliver(&client.out, START);
    let closed = Closed::Error { status: StatusCode::BAD_TCP_SERVER_TOO_BUSY, reason: "no".into() };
    assert_eq!(server.take_seen(), [Seen::Closed(closed)]);
}

#[test]
fn deadlines_of_every_stage() {
    let second = Duration::from_secs(1);
    // Nothing arrives at all.
    let mut pair = Setup::default().pair();
    assert_eq!(pair.server.channel.poll_timeout(), Some((START + 10 * second, "hello")));
    pair.server.tick(START + 9 * second);
    assert!(pair.server.take_seen().is_empty());
    pair.server.tick(START + 10 * second);
    assert!(matches!(pair.server.take_seen()[..], [Seen::Failed(ChannelError::Peer(PeerFault::Timeout(_)))]));
    assert_eq!(pair.server.channel.poll_timeout(), None);
    // Half a Hello does not extend the deadline.
    let mut pair = Setup::default().pair();
    pair.server.deliver(b"HE", START + 9 * second);
    assert_eq!(pair.server.channel.poll_timeout(), Some((START + 10 * second, "hello")));
    // A Hello and nothing after it.
    let mut pair = Setup::default().pair();
    let hello = core::mem::take(&mut pair.client.out);
    pair.server.deliver(&hello, START + 5 * second);
    assert_eq!(pair.server.channel.poll_timeout(), Some((START + 15 * second, "open")));
    // Half a chunk.
    let mut pair = Setup::default().open();
    pair.client.send(1, b"body").unwrap();
    pair.server.deliver(&pair.client.out[..5], START + second);
    assert_eq!(pair.server.channel.poll_timeout(), Some((START + 11 * second, "rest of a chunk")));
    pair.server.deliver(&pair.client.out[5..6], START + 2 * second);
    assert_eq!(pair.server.channel.poll_timeout(), Some((START + 11 * second, "rest of a chunk")));
    pair.server.deliver(&pair.client.out[6..], START + 3 * second);
    assert_eq!(pair.server.channel.poll_timeout().unwrap().1, "security token expires");
    // Half a message.
    let mut pair = Setup { server: small_buffers(), ..Setup::default() }.open();
    pair.client.send(1, &pattern(20_000)).unwrap();
    pair.server.deliver(&pair.client.out[..8192], START);
    assert_eq!(pair.server.channel.poll_timeout(), Some((START + 120 * second, "rest of a message")));
    pair.server.tick(START + 120 * second);
    assert!(matches!(pair.server.take_seen()[..], [Seen::Failed(ChannelError::Peer(PeerFault::Timeout(_)))]));
}

#[test]
fn policies_and_modes_that_are_not_offered_are_refused() {
    use {MessageSecurityMode as M, SecurityPolicy as P};
    let rejected = |asked, offered: &[(P, M)]| {
        let (policy, mode) = asked;
        let mut pair = Setup { offered: Some(offered.to_vec()), ..secured(policy, mode) }.pair();
        pair.deliver_all();
        match (pair.server.take_seen().pop(), pair.client.take_seen().pop()) {
            (Some(Seen::Failed(_)), Some(Seen::Closed(Closed::Error { status, .. }))) => status,
            other => panic!("{other:?}"),
        }
    };
    let modern = [(P::Basic256Sha256, M::SignAndEncrypt)];
    assert_eq!(rejected((P::None, M::None), &modern), StatusCode::BAD_SECURITY_POLICY_REJECTED);
    assert_eq!(rejected((P::Basic128Rsa15, M::Sign), &modern), StatusCode::BAD_SECURITY_POLICY_REJECTED);
    assert_eq!(rejected((P::Basic256Sha256, M::Sign), &modern), StatusCode::BAD_SECURITY_MODE_REJECTED);
    let (config, _) = Setup::default().configs();
    let bad = OpenParams { policy: P::Basic256Sha256, mode: M::Sign, ..OpenParams::insecure(URL) };
    assert!(Channel::client(config.clone(), bad, START, &mut vec![]).is_err());
    let bad = OpenParams { mode: M::Sign, ..OpenParams::insecure(URL) };
    assert!(Channel::client(config, bad, START, &mut vec![]).is_err());
}

#[test]
fn a_tampered_chunk_ends_the_channel_without_a_hint() {
    for (policy, mode) in securities().into_iter().filter(|(policy, _)| *policy != SecurityPolicy::None) {
        for at in [8, 12, 16, 20, 30, 60] {
            let mut pair = secured(policy, mode).open();
            pair.client.send(1, &pattern(100)).unwrap();
            pair.client.out[at] ^= 0x40;
            pair.deliver_all();
            let seen = pair.client.take_seen();
            let [Seen::Closed(Closed::Error { status, reason })] = &seen[..] else { panic!("{seen:?}") };
            match at {
                8 => assert_eq!(*status, StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN),
                12 => assert_eq!(*status, StatusCode::BAD_SECURE_CHANNEL_TOKEN_UNKNOWN),
                _ => assert_eq!((*status, &**reason), (StatusCode::BAD_SECURITY_CHECKS_FAILED, "")),
            }
        }
    }
}

#[test]
fn a_channel_is_small() {
    assert!(size_of::<Channel>() <= 512, "{}", size_of::<Channel>());
    assert!(size_of::<Event>() <= 64, "{}", size_of::<Event>());
    let _ = Instant::ZERO;
}
