//! Chunks of every policy, mode and size: the other side opens a sealed chunk and refuses everything else.

use super::*;
use crate::{ChunkLayout, ChunkNonce, SymmetricKeys};
use proptest::prelude::*;

const HEADERS_LEN: usize = 16;

/// The keys of both sides for a token; renewals chain to `previous`.
fn token(
    policy: SecurityPolicy,
    mode: MessageSecurityMode,
    previous: Option<&[u8]>,
) -> (Box<dyn SymmetricKeys>, Box<dyn SymmetricKeys>) {
    let provider = provider("any");
    let client = provider.agree(policy, mode, Role::Client).unwrap();
    let server = provider.agree(policy, mode, Role::Server).unwrap();
    let (client_nonce, server_nonce) = (client.nonce().to_vec(), server.nonce().to_vec());
    assert_eq!(client_nonce.len(), policy.info().nonce_len);
    (client.derive(&server_nonce, previous).unwrap(), server.derive(&client_nonce, previous).unwrap())
}

/// A chunk with counting plain text, space for the signature, and a whole number of blocks.
fn chunk(layout: ChunkLayout, body_len: usize) -> (Vec<u8>, usize) {
    let secured = (body_len + layout.signature_len).next_multiple_of(layout.block_len);
    let len = HEADERS_LEN + secured;
    let mut chunk: Vec<u8> = (0..len).map(|at| at as u8).collect();
    let body_end = len - layout.signature_len;
    chunk[body_end..].fill(0);
    (chunk, body_end)
}

fn securities() -> impl Strategy<Value = (SecurityPolicy, MessageSecurityMode)> {
    let modes = [MessageSecurityMode::Sign, MessageSecurityMode::SignAndEncrypt];
    let all: Vec<_> = carried()
        .filter(|policy| policy.info().key_exchange != KeyExchange::Ffdhe3072)
        .flat_map(|policy| modes.map(|mode| (policy, mode)))
        .collect();
    prop::sample::select(all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Sealing chunks in parallel gives the same result as sealing them one by one.
    #[test]
    fn parallel_sealing_equals_sealing_one_by_one(
        (policy, mode) in securities(),
        body_len in 8usize..3000,
        last_body_len in 1usize..3000,
        count in 1u32..11,
        token_id: u32,
        first: u32,
    ) {
        let (mut ours, mut theirs) = token(policy, mode, None);
        let layout = ours.layout();
        let (full, _) = chunk(layout, body_len);
        let (last, _) = chunk(layout, last_body_len.min(body_len));
        let mut message = full.repeat(count as usize - 1);
        message.extend_from_slice(&last);
        let nonces = (0..count).map(|at| ChunkNonce { token_id, last_sequence_number: first.wrapping_add(at) });
        let mut alone = message.clone();
        for (chunk, nonce) in alone.chunks_mut(full.len()).zip(nonces.clone()) {
            ours.seal(chunk, HEADERS_LEN, nonce).unwrap();
        }
        ours.seal_message(&mut message, full.len(), HEADERS_LEN, &mut nonces.clone()).unwrap();
        prop_assert!(message == alone);
        for (chunk, nonce) in message.chunks_mut(full.len()).zip(nonces) {
            prop_assert!(theirs.open(chunk, HEADERS_LEN, nonce).is_ok());
        }
        let lanes = ours.lanes();
        let encrypts_blocks = mode == MessageSecurityMode::SignAndEncrypt && !policy.info().is_aead();
        prop_assert!(lanes == 1 || lanes == 4 && encrypts_blocks);
    }

    #[test]
    fn only_sealed_chunks_open(
        (policy, mode) in securities(),
        body_len in 8usize..9000,
        token_id: u32,
        last_sequence_number: u32,
        flipped: prop::sample::Index,
        bit in 0u8..8,
    ) {
        let (mut ours, mut theirs) = token(policy, mode, None);
        let layout = ours.layout();
        prop_assert_eq!(layout, ChunkLayout::of(policy, mode));
        let nonce = ChunkNonce { token_id, last_sequence_number };
        let (plain, body_end) = chunk(layout, body_len);
        let mut sealed = plain.clone();
        ours.seal(&mut sealed, HEADERS_LEN, nonce).unwrap();
        prop_assert_eq!(&sealed[..HEADERS_LEN], &plain[..HEADERS_LEN]);
        if mode == MessageSecurityMode::SignAndEncrypt {
            prop_assert_ne!(&sealed[HEADERS_LEN..body_end], &plain[HEADERS_LEN..body_end]);
        } else {
            prop_assert_eq!(&sealed[..body_end], &plain[..body_end]);
        }
        let mut opened = sealed.clone();
        prop_assert_eq!(theirs.open(&mut opened, HEADERS_LEN, nonce), Ok(body_end));
        prop_assert_eq!(&opened[..body_end], &plain[..body_end]);

        let mut flipped_bit = sealed.clone();
        flipped_bit[flipped.index(sealed.len())] ^= 1 << bit;
        prop_assert!(theirs.open(&mut flipped_bit, HEADERS_LEN, nonce).is_err());
        let mut cut = sealed[..flipped.index(sealed.len())].to_vec();
        prop_assert!(theirs.open(&mut cut, HEADERS_LEN, nonce).is_err());
        // Our own chunks do not open with the peer's keys: they cannot be reflected.
        let mut reflected = sealed.clone();
        prop_assert!(ours.open(&mut reflected, HEADERS_LEN, nonce).is_err());
        if policy.info().is_aead() {
            for other in [
                ChunkNonce { token_id: token_id ^ 1, last_sequence_number },
                ChunkNonce { token_id, last_sequence_number: last_sequence_number ^ 1 },
            ] {
                let mut moved = sealed.clone();
                prop_assert!(theirs.open(&mut moved, HEADERS_LEN, other).is_err());
            }
        }
        // The keys of another token do not open it.
        let (_, mut others) = token(policy, mode, None);
        let mut other = sealed.clone();
        prop_assert!(others.open(&mut other, HEADERS_LEN, nonce).is_err());
    }

    #[test]
    fn arbitrary_chunks_do_not_panic(
        (policy, mode) in securities(),
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        headers_len in 0usize..40,
    ) {
        let (mut keys, _) = token(policy, mode, None);
        let nonce = ChunkNonce { token_id: 1, last_sequence_number: 1 };
        prop_assert!(keys.open(&mut bytes, headers_len, nonce).is_err());
    }
}

#[test]
fn keys_are_chained_over_renewals() {
    let nonce = ChunkNonce { token_id: 1, last_sequence_number: 1 };
    for policy in carried() {
        let mode = MessageSecurityMode::SignAndEncrypt;
        let (client, server) = token(policy, mode, None);
        let chain = client.chain_secret();
        assert_eq!(chain, server.chain_secret());
        assert_eq!(chain.is_some(), policy.info().enhancements, "{policy}");
        let Some(chain) = chain else { continue };
        let provider = provider("any");
        // Client and server understand each other only if both chain to the same secret.
        for (server_chain, understood) in [(Some(chain.as_slice()), true), (None, false)] {
            let client = provider.agree(policy, mode, Role::Client).unwrap();
            let server = provider.agree(policy, mode, Role::Server).unwrap();
            let (client_nonce, server_nonce) = (client.nonce().to_vec(), server.nonce().to_vec());
            let mut client = client.derive(&server_nonce, Some(&chain)).unwrap();
            let mut server = server.derive(&client_nonce, server_chain).unwrap();
            let (mut sealed, body_end) = chunk(client.layout(), 100);
            client.seal(&mut sealed, HEADERS_LEN, nonce).unwrap();
            assert_eq!(server.open(&mut sealed, HEADERS_LEN, nonce) == Ok(body_end), understood, "{policy}");
            assert_ne!(client.chain_secret(), Some(chain.clone()));
        }
    }
}

#[test]
fn agreement_refuses_repeated_and_wrong_nonces() {
    let provider = provider("any");
    for policy in carried() {
        let start = || provider.agree(policy, MessageSecurityMode::Sign, Role::Client).unwrap();
        let (one, two) = (start(), start());
        assert_ne!(one.nonce(), two.nonce());
        let own = one.nonce().to_vec();
        assert_eq!(one.derive(&own, None).err(), Some(CryptoError::Nonce), "{policy}");
        for len in [0, 1, policy.info().nonce_len - 1, policy.info().nonce_len + 1] {
            assert_eq!(start().derive(&vec![5; len], None).err(), Some(CryptoError::Nonce), "{policy}");
        }
    }
}
