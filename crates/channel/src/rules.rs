//! Tests of each rule for sequence numbers and security tokens, for every chunk layout and in both directions (Part 6
//! §6.7.2.4, §6.7.4, Part 4 §5.6.2). A peer that breaks a rule is refused even *with the right keys*.

use crate::common::{End, Pair, Seen, Setup, layouts, pattern, secured, small_buffers};
use crate::sequence::{Received, Sent};
use crate::{ChannelConfig, ChannelError, PeerFault};
use core::time::Duration;
use std::sync::Arc;
use taktwerk_crypto::{CryptoError, Job, MessageSecurityMode, SealChunk, SecurityPolicy};
use taktwerk_crypto_dummy::DummyProvider;
use taktwerk_types::StatusCode;

type Security = (SecurityPolicy, MessageSecurityMode);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sender {
    Client,
    Server,
}

const BOTH: [Sender; 2] = [Sender::Client, Sender::Server];

/// The sending and the receiving end.
fn ends(pair: &mut Pair, sender: Sender) -> (&mut End, &mut End) {
    match sender {
        Sender::Client => (&mut pair.client, &mut pair.server),
        Sender::Server => (&mut pair.server, &mut pair.client),
    }
}

/// The error with which the receiver closed after it got the sender's output.
fn refusal(receiver: &mut End) -> ChannelError {
    match receiver.take_seen().pop() {
        Some(Seen::Failed(error)) => {
            assert!(receiver.channel.is_closed());
            error
        }
        other => panic!("{other:?}"),
    }
}

/// On the wire all failed checks look alike. With authenticated ciphers a wrong number makes the tag wrong.
fn is_sequence_fault(error: &ChannelError, policy: SecurityPolicy) -> bool {
    match error {
        ChannelError::Peer(PeerFault::SequenceInvalid) => true,
        ChannelError::Crypto(CryptoError::Signature | CryptoError::Decryption) => policy.info().is_aead(),
        _ => false,
    }
}

/// Sends a message with number `next` to an end whose last number is `last`.
fn numbered(security: Security, sender: Sender, last: u32, next: u32) -> Option<ChannelError> {
    let mut pair = secured(security.0, security.1).open();
    let now = pair.now;
    let legacy = security.0.info().legacy_sequence_numbers;
    let (from, to) = ends(&mut pair, sender);
    from.channel.sent = Sent::starting_at(legacy, next);
    to.channel.received = Received::after(legacy, last);
    from.send(7, b"body").unwrap();
    let bytes = core::mem::take(&mut from.out);
    to.deliver(&bytes, now);
    if to.seen == [Seen::Message(7, b"body".to_vec())] {
        return None;
    }
    let error = refusal(to);
    if sender == Sender::Client {
        // What the client receives.
        let error_message = core::mem::take(&mut to.out);
        assert_eq!(error_message[..4], *b"ERRF");
        assert_eq!(error_message[8..12], StatusCode::BAD_SECURITY_CHECKS_FAILED.0.to_le_bytes());
    }
    Some(error)
}

#[test]
fn gaps_repeats_and_decreases_close_the_channel() {
    let mut cases = 0;
    for security in layouts() {
        for sender in BOTH {
            for (last, next) in [(5, 5), (5, 7), (5, 4), (5, 0), (5, 1_000_000), (1000, 999), (7, u32::MAX)] {
                let error = numbered(security, sender, last, next);
                let error = error.unwrap_or_else(|| panic!("{security:?} {sender:?} {last} {next}"));
                assert!(is_sequence_fault(&error, security.0), "{security:?} {last} {next} {error}");
                cases += 1;
            }
            assert_eq!(numbered(security, sender, 5, 6), None);
        }
    }
    assert!(cases >= 60, "{cases}");
}

#[test]
fn legacy_numbers_wrap_in_their_window_and_modern_ones_at_the_end() {
    for security in layouts() {
        let (legacy, aead) = (security.0.info().legacy_sequence_numbers, security.0.info().is_aead());
        for sender in BOTH {
            let accepted = |last, next| numbered(security, sender, last, next).is_none();
            assert!(accepted(u32::MAX - 1, u32::MAX));
            assert!(accepted(u32::MAX - 1025, u32::MAX - 1024));
            if legacy {
                for last in [u32::MAX - 1024, u32::MAX - 1000, u32::MAX] {
                    for next in [0, 1, 2, 500, 1023] {
                        assert!(accepted(last, next), "{security:?} {last} {next}");
                    }
                    for next in [1024, 1025, 70_000, u32::MAX - 1025] {
                        assert!(!accepted(last, next), "{security:?} {last} {next}");
                    }
                }
                assert!(!accepted(u32::MAX - 1025, 1), "too early");
            } else {
                assert!(accepted(u32::MAX, 0), "{security:?}");
                for (last, next) in
                    [(u32::MAX, 1), (u32::MAX - 1, 0), (u32::MAX - 1024, 1), (u32::MAX, u32::MAX)]
                {
                    assert!(!accepted(last, next), "{security:?} {last} {next} {aead}");
                }
            }
        }
    }
}

#[test]
fn conversations_continue_over_a_wrap() {
    for security in layouts() {
        let mut pair = secured(security.0, security.1).open();
        let legacy = security.0.info().legacy_sequence_numbers;
        // Both senders are close to the end of the numbers.
        let start = u32::MAX - 1030;
        for (sent, received) in [
            (&mut pair.client.channel.sent, &mut pair.server.channel.received),
            (&mut pair.server.channel.sent, &mut pair.client.channel.received),
        ] {
            *sent = Sent::starting_at(legacy, start);
            *received = Received::after(legacy, start - 1);
        }
        for request_id in 0..1100 {
            pair.client.send(request_id, b"there").unwrap();
            pair.server.send(request_id, b"back").unwrap();
            pair.deliver_all();
            assert_eq!(pair.server.take_seen(), [Seen::Message(request_id, b"there".to_vec())]);
            assert_eq!(pair.client.take_seen(), [Seen::Message(request_id, b"back".to_vec())]);
        }
    }
}

#[test]
fn repeated_or_missing_chunks_close_the_channel() {
    for security in layouts() {
        for sender in BOTH {
            for missing in [false, true] {
                let mut pair = secured(security.0, security.1).open();
                let now = pair.now;
                let (from, to) = ends(&mut pair, sender);
                from.send(1, b"first").unwrap();
                let first = core::mem::take(&mut from.out);
                from.send(2, b"second").unwrap();
                let second = core::mem::take(&mut from.out);
                if missing {
                    to.deliver(&second, now);
                } else {
                    to.deliver(&first, now);
                    to.deliver(&first, now);
                    assert_eq!(to.seen.remove(0), Seen::Message(1, b"first".to_vec()));
                }
                let error = refusal(to);
                assert!(is_sequence_fault(&error, security.0), "{security:?} {error}");
            }
        }
    }
}

#[test]
fn interleaved_chunks_close_the_channel() {
    for security in layouts() {
        for sender in BOTH {
            let mut pair =
                Setup { client: small_buffers(), server: small_buffers(), ..secured(security.0, security.1) }
                    .open();
            let now = pair.now;
            let (from, to) = ends(&mut pair, sender);
            from.send(1, &pattern(9000)).unwrap();
            let first = u32::from_le_bytes(from.out[4..8].try_into().unwrap()) as usize;
            let rest = from.out.split_off(first);
            let bytes = core::mem::take(&mut from.out);
            drop(rest);
            to.deliver(&bytes, now);
            assert!(to.seen.is_empty());
            // The next number, but the chunk belongs to another request.
            let number = to.channel.received.last().wrapping_add(1);
            from.channel.sent = Sent::starting_at(security.0.info().legacy_sequence_numbers, number);
            from.send(2, b"in between").unwrap();
            let bytes = core::mem::take(&mut from.out);
            to.deliver(&bytes, now);
            assert_eq!(refusal(to), PeerFault::Interleaved.into(), "{security:?}");
        }
    }
}

#[test]
fn unissued_tokens_are_unknown() {
    for security in layouts() {
        for sender in BOTH {
            for token in [0u32, 2, 3, u32::MAX] {
                let mut pair = secured(security.0, security.1).open();
                let now = pair.now;
                let (from, to) = ends(&mut pair, sender);
                from.send(1, b"body").unwrap();
                from.out[12..16].copy_from_slice(&token.to_le_bytes());
                let bytes = core::mem::take(&mut from.out);
                to.deliver(&bytes, now);
                assert_eq!(refusal(to), PeerFault::TokenUnknown.into(), "{security:?} {token}");
            }
        }
    }
}

/// Delivers a message under the first token `permille` thousandths of its lifetime after it was issued.
fn late(security: Security, sender: Sender, permille: u64, renewed: bool) -> Option<ChannelError> {
    let mut pair = Setup { lifetime_ms: 100_000, ..secured(security.0, security.1) }.open();
    let start = pair.now;
    let (from, _) = ends(&mut pair, sender);
    from.send(1, b"old").unwrap();
    let old = core::mem::take(&mut from.out);
    if renewed {
        // The message is in flight during the renewal and keeps its position in the sequence.
        pair.client.tick(start + Duration::from_secs(75));
        let request = core::mem::take(&mut pair.client.out);
        if sender == Sender::Client {
            // Messages sent before the renewal arrive before it.
            return None;
        }
        pair.server.deliver(&request, start + Duration::from_secs(75));
        pair.server.take_seen();
    }
    let (_, to) = ends(&mut pair, sender);
    to.deliver(&old, start + Duration::from_millis(permille * 100));
    if to.seen == [Seen::Message(1, b"old".to_vec())] { None } else { Some(refusal(to)) }
}

#[test]
fn tokens_are_accepted_for_a_quarter_of_their_lifetime_after_expiry() {
    for security in layouts() {
        for sender in BOTH {
            for renewed in [false, true] {
                for permille in [1, 749, 1000, 1010, 1240, 1250] {
                    assert_eq!(late(security, sender, permille, renewed), None, "{security:?} {permille}");
                }
                if !(renewed && sender == Sender::Client) {
                    for permille in [1251, 1260, 2000, 100_000] {
                        let error = late(security, sender, permille, renewed);
                        assert_eq!(error, Some(PeerFault::TokenUnknown.into()), "{security:?} {permille}");
                    }
                }
            }
        }
    }
}

#[test]
fn going_back_to_an_old_token_is_refused() {
    for security in layouts() {
        let mut pair = Setup { lifetime_ms: 100_000, ..secured(security.0, security.1) }.open();
        pair.client.send(1, b"old").unwrap();
        let old = core::mem::take(&mut pair.client.out);
        pair.now = pair.now + Duration::from_secs(75);
        pair.server.deliver(&old, pair.now);
        pair.client.tick(pair.now);
        pair.deliver_all();
        pair.client.send(2, b"new").unwrap();
        pair.deliver_all();
        pair.server.take_seen();
        // A chunk with the right sequence number under the old token's id.
        pair.client.send(3, b"back").unwrap();
        pair.client.out[12..16].copy_from_slice(&1u32.to_le_bytes());
        let bytes = core::mem::take(&mut pair.client.out);
        pair.server.deliver(&bytes, pair.now);
        assert_eq!(refusal(&mut pair.server), PeerFault::TokenUnknown.into(), "{security:?}");
    }
}

#[test]
fn sequence_numbers_never_repeat_under_one_token() {
    for security in secured_layouts() {
        for sender in BOTH {
            let open = || secured(security.0, security.1).open();
            let mut pair = open();
            let now = pair.now;
            let (from, _) = ends(&mut pair, sender);
            from.channel.tokens.as_mut().unwrap().sending().use_up_to(1);
            from.send(1, b"last").unwrap();
            let sent = from.out.len();
            assert_eq!(from.send(2, b"too many"), Err(PeerFault::TokenExhausted.into()), "{security:?}");
            assert!(from.channel.is_closed());
            // A server reports it to the client, and both roles report it to the connection's owner, once and at once.
            let told = from.out.split_off(sent);
            assert_eq!(told.starts_with(b"ERRF"), matches!(sender, Sender::Server), "{told:?}");
            assert!(told.is_empty() || matches!(sender, Sender::Server));
            assert_eq!(from.channel.poll_timeout().map(|(at, _)| at), Some(taktwerk_types::Instant::ZERO));
            let end = from.channel.handle_timeout(now, &mut Vec::new());
            assert_eq!(end.err(), Some(PeerFault::TokenExhausted.into()), "{security:?}");
            assert_eq!(from.channel.poll_timeout(), None);
            // A peer that ignores the limit.
            let mut pair = open();
            let now = pair.now;
            let (from, to) = ends(&mut pair, sender);
            to.channel.tokens.as_mut().unwrap().sending().use_up_to(1);
            for text in [&b"last"[..], b"too many"] {
                from.send(1, text).unwrap();
                let bytes = core::mem::take(&mut from.out);
                to.deliver(&bytes, now);
            }
            assert_eq!(refusal(to), PeerFault::TokenExhausted.into(), "{security:?}");
        }
        // A client requests the next token long before and continues with it.
        let mut pair = secured(security.0, security.1).open();
        pair.client.channel.tokens.as_mut().unwrap().sending().use_up_to(1);
        let now = pair.now;
        assert!(pair.client.channel.poll_timeout().is_some_and(|(at, _)| at <= now));
        pair.client.tick(now);
        pair.deliver_all();
        assert_eq!(pair.client.take_seen(), [Seen::Renewed], "{security:?}");
        for _ in 0..3 {
            pair.client.send(3, b"more").unwrap();
            pair.deliver_all();
        }
        assert!(!pair.server.channel.is_closed() && !pair.client.channel.is_closed());
    }
}

/// A renewal that is changed before it is signed and encrypted with the right keys.
fn renewal(security: Security, change: impl FnOnce(&mut SealChunk)) -> Pair {
    let mut pair = Setup { lifetime_ms: 100_000, ..secured(security.0, security.1) }.open();
    pair.now = pair.now + Duration::from_secs(75);
    pair.client.slow_jobs = true;
    pair.client.tick(pair.now);
    match pair.client.jobs.last_mut() {
        Some(Job::SealChunk(job)) => change(job),
        other => panic!("{other:?}"),
    }
    pair.client.run_jobs(pair.now);
    pair.client.slow_jobs = false;
    let bytes = core::mem::take(&mut pair.client.out);
    pair.server.deliver(&bytes, pair.now);
    pair
}

fn secured_layouts() -> impl Iterator<Item = Security> {
    layouts().into_iter().filter(|(policy, _)| policy.is_secure())
}

/// Position of the RequestType in the body of an OpenSecureChannel request: after the sequence header, the type id, the
/// request header and the protocol version.
fn request_type_at(job: &SealChunk) -> usize {
    job.headers_len + 8 + 4 + (2 + 8 + 4 + 4 + 4 + 4 + 3) + 4
}

fn put(at: usize, value: u32, job: &mut SealChunk) {
    job.chunk[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn a_renewal_changes_nothing_but_the_keys() {
    for security in secured_layouts() {
        let mut pair = renewal(security, |_| {});
        assert_eq!(pair.server.take_seen(), [Seen::Renewed], "{security:?}");
        let refused = |change: &dyn Fn(&mut SealChunk)| {
            let mut pair = renewal(security, change);
            refusal(&mut pair.server)
        };
        // A second Issue.
        let issue = |job: &mut SealChunk| put(request_type_at(job), 0, job);
        assert_eq!(refused(&issue), PeerFault::RequestTypeInvalid.into());
        let mode = if security.1 == MessageSecurityMode::Sign { 3 } else { 2 };
        for mode in [mode, 1, 0, 9] {
            let other = move |job: &mut SealChunk| put(request_type_at(job) + 4, mode, job);
            assert_eq!(refused(&other), PeerFault::ModeRejected.into(), "{mode}");
        }
        // Another channel's id, or none.
        for id in [0, 78] {
            assert_eq!(refused(&|job| put(8, id, job)), PeerFault::ChannelUnknown.into());
        }
        // Encrypted for another receiver.
        let thumbprint = |job: &mut SealChunk| job.chunk[job.headers_len - 1] ^= 1;
        assert_eq!(refused(&thumbprint), CryptoError::ThumbprintMismatch.into());
        // Numbers that do not follow the previous one.
        for number in [0, 5, 1000, u32::MAX] {
            let wrong = move |job: &mut SealChunk| put(job.headers_len, number, job);
            assert_eq!(refused(&wrong), PeerFault::SequenceInvalid.into(), "{number}");
        }
    }
}

#[test]
fn a_renewal_must_use_the_same_certificate() {
    for security in secured_layouts() {
        for name in ["client2", "other", "server"] {
            let mut pair = Setup { lifetime_ms: 100_000, ..secured(security.0, security.1) }.open();
            pair.now = pair.now + Duration::from_secs(75);
            let provider = Arc::new(DummyProvider::new(name, 2048));
            pair.client.provider = provider.clone();
            pair.client.channel.config =
                Arc::new(ChannelConfig { provider, ..ChannelConfig::clone(&pair.client.channel.config) });
            pair.client.tick(pair.now);
            let bytes = core::mem::take(&mut pair.client.out);
            pair.server.deliver(&bytes, pair.now);
            assert_eq!(refusal(&mut pair.server), PeerFault::CertificateChanged.into(), "{security:?}");
        }
    }
}

#[test]
fn a_renewal_must_use_the_same_policy() {
    for security in secured_layouts() {
        for policy in [SecurityPolicy::None, SecurityPolicy::Basic128Rsa15, SecurityPolicy::ECC_nistP256] {
            let mut setup = Setup { lifetime_ms: 100_000, ..secured(security.0, security.1) };
            // The policy is offered, but this channel was opened with another one.
            setup.offered = Some(vec![security, (policy, security.1)]);
            let mut pair = setup.open();
            pair.now = pair.now + Duration::from_secs(75);
            pair.client.channel.policy = policy;
            pair.client.tick(pair.now);
            let bytes = core::mem::take(&mut pair.client.out);
            pair.server.deliver(&bytes, pair.now);
            assert_eq!(refusal(&mut pair.server), PeerFault::PolicyRejected.into(), "{security:?} {policy}");
        }
    }
}

#[test]
fn a_repeated_nonce_in_a_renewal_is_refused() {
    for security in secured_layouts() {
        // Providers of the same name generate the same nonces: this one repeats the client's first nonce.
        let mut pair = Setup { lifetime_ms: 100_000, ..secured(security.0, security.1) }.open();
        pair.now = pair.now + Duration::from_secs(75);
        pair.client.provider = Arc::new(DummyProvider::new("client", 2048));
        pair.client.tick(pair.now);
        let bytes = core::mem::take(&mut pair.client.out);
        pair.server.deliver(&bytes, pair.now);
        assert_eq!(refusal(&mut pair.server), PeerFault::NonceInvalid.into(), "{security:?}");
        // And this one repeats the server's.
        let mut pair = Setup { lifetime_ms: 100_000, ..secured(security.0, security.1) }.open();
        pair.now = pair.now + Duration::from_secs(75);
        pair.server.provider = Arc::new(DummyProvider::new("server", 2048));
        pair.client.tick(pair.now);
        let bytes = core::mem::take(&mut pair.client.out);
        pair.server.deliver(&bytes, pair.now);
        let bytes = core::mem::take(&mut pair.server.out);
        pair.client.deliver(&bytes, pair.now);
        assert_eq!(refusal(&mut pair.client), PeerFault::NonceInvalid.into(), "{security:?}");
    }
}

#[test]
fn debug_output_does_not_contain_the_nonce() {
    for security in secured_layouts() {
        let pair = secured(security.0, security.1).open();
        for end in [&pair.client.channel, &pair.server.channel] {
            let nonce = format!("{:?}", end.peer.nonce);
            let printed = format!("{end:?}");
            assert!(nonce.len() > 32 && !printed.contains(nonce.trim_matches(['[', ']'])), "{printed}");
        }
    }
}

/// How a client reacts to a renewal response that was changed before it was signed.
fn answered(security: Security, change: impl FnOnce(&mut SealChunk)) -> Pair {
    let mut pair = Setup { lifetime_ms: 100_000, ..secured(security.0, security.1) }.open();
    pair.now = pair.now + Duration::from_secs(75);
    pair.client.tick(pair.now);
    pair.server.slow_jobs = true;
    let bytes = core::mem::take(&mut pair.client.out);
    pair.server.deliver(&bytes, pair.now);
    // First the request is opened, then the answer is sealed.
    let open = pair.server.jobs.pop().unwrap();
    let opened = open.run(&*pair.server.provider);
    match pair.server.channel.complete(opened, pair.now, &mut pair.server.out) {
        Ok(crate::Event::Effect(job)) => match *job {
            Job::SealChunk(mut job) => {
                change(&mut job);
                pair.server.jobs.push(Job::SealChunk(job));
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
    pair.server.run_jobs(pair.now);
    let bytes = core::mem::take(&mut pair.server.out);
    pair.client.deliver(&bytes, pair.now);
    pair
}

#[test]
fn a_response_must_match_its_request_and_channel() {
    for security in secured_layouts() {
        let mut pair = answered(security, |_| {});
        assert_eq!(pair.client.take_seen(), [Seen::Renewed], "{security:?}");
        let refused = |change: &dyn Fn(&mut SealChunk)| {
            let mut pair = answered(security, change);
            refusal(&mut pair.client)
        };
        assert_eq!(refused(&|job| put(8, 78, job)), PeerFault::ChannelUnknown.into());
        let request_id = |job: &mut SealChunk| put(job.headers_len + 4, 99, job);
        assert_eq!(refused(&request_id), PeerFault::ResponseMismatch.into());
        let number = |job: &mut SealChunk| put(job.headers_len, 99, job);
        assert_eq!(refused(&number), PeerFault::SequenceInvalid.into());
        // The SecurityToken follows the sequence header, the type id, the response header and the version.
        let channel_id = |job: &mut SealChunk| put(job.headers_len + 8 + 4 + 24 + 4, 78, job);
        assert_eq!(refused(&channel_id), PeerFault::ChannelUnknown.into());
        let thumbprint = |job: &mut SealChunk| job.chunk[job.headers_len - 1] ^= 1;
        assert_eq!(refused(&thumbprint), CryptoError::ThumbprintMismatch.into());
    }
}
