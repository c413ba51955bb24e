//! Known answers, properties, and input that must be refused.
#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod known_answers;
mod parties;
mod properties;
mod recorder;
mod same_work;

use super::*;
use crate::{Agreed, Agreement, Job, JobOutput, OpenChunk, OpenSecret, SealChunk, SealSecret, Secret};
use parties::{identity, provider};
use taktwerk_types::{StatusCode, UtcTime};

/// All supported policies.
fn carried() -> impl Iterator<Item = SecurityPolicy> {
    SecurityPolicy::ALL.iter().copied().filter(|policy| carries(*policy))
}

#[test]
fn supported_policies_match_the_documentation() {
    let names: Vec<_> = carried().map(SecurityPolicy::name).collect();
    assert_eq!(
        names,
        [
            "Basic256Sha256",
            "Aes128_Sha256_RsaOaep",
            "Aes256_Sha256_RsaPss",
            "ECC_nistP256",
            "ECC_nistP256_AesGcm",
            "ECC_nistP256_ChaChaPoly",
            "ECC_nistP384",
            "ECC_nistP384_AesGcm",
            "ECC_nistP384_ChaChaPoly",
            "ECC_curve25519",
            "ECC_curve25519_AesGcm",
            "ECC_curve25519_ChaChaPoly",
            "RSA_DH_AesGcm",
            "RSA_DH_ChaChaPoly",
        ]
    );
    let provider = provider("all");
    assert!(carried().all(|policy| provider.supports(policy)));
    assert_eq!(provider.usable_policies().len(), names.len());
    assert_eq!(provider.usable_policies()[0].info().security_level, 9);
}

#[test]
fn broken_policies_are_refused_by_every_primitive() {
    let provider = provider("server");
    let certificate = identity("RSA2048", "server").chain().to_vec();
    for policy in [SecurityPolicy::Basic128Rsa15, SecurityPolicy::Basic256, SecurityPolicy::ECC_curve448] {
        assert!(!provider.supports(policy));
        assert_eq!(provider.own_certificate(policy), None);
        assert_eq!(provider.decrypt(policy, &[0; 256], &mut vec![]), Err(CryptoError::PolicyUnsupported));
        assert_eq!(provider.sign(policy, &[b"x"], &mut vec![]), Err(CryptoError::PolicyUnsupported));
        assert_eq!(provider.peer_key(policy, &certificate).err(), Some(CryptoError::PolicyUnsupported));
        let agreement = provider.agree(policy, MessageSecurityMode::Sign, Role::Server);
        assert_eq!(agreement.err(), Some(CryptoError::PolicyUnsupported));
        assert_eq!(provider.ephemeral_key(policy).err(), Some(CryptoError::PolicyUnsupported));
    }
}

#[test]
fn keys_and_certificates_must_belong_together() {
    let rsa = parties::key("RSA2048", "one");
    let other = parties::key("RSA2048", "two");
    let curve = parties::key("P-256", "one");
    assert_eq!(Identity::new(rsa.0.clone(), &other.1).err(), Some(IdentityError::Mismatch));
    assert_eq!(Identity::new(rsa.0.clone(), &curve.1).err(), Some(IdentityError::PrivateKey));
    assert_eq!(Identity::new(curve.0.clone(), &rsa.1).err(), Some(IdentityError::PrivateKey));
    assert_eq!(Identity::new(b"certificate".to_vec(), &rsa.1).err(), Some(IdentityError::Certificate));
    for cut in 0..rsa.0.len() {
        assert!(Identity::new(rsa.0[..cut].to_vec(), &rsa.1).is_err());
    }
    let identity = Identity::new(rsa.0.clone(), &rsa.1).unwrap();
    assert!(!format!("{identity:?}").contains(&format!("{:?}", &rsa.1[40..44])));
    assert!(identity.public_key_info().is_some_and(|info| rsa.0.windows(info.len()).any(|at| at == info)));
}

#[test]
fn a_policy_accepts_only_its_key_type() {
    let provider = provider("server");
    for policy in carried() {
        for kind in ["RSA2048", "RSA4096", "P-256", "P-384", "Ed25519"] {
            let certificate = identity(kind, "peer");
            let fits = certificate.kind().fits(policy);
            match provider.peer_key(policy, certificate.chain()) {
                Ok(_) => assert!(fits, "{policy} {kind}"),
                Err(CryptoError::Certificate(refusal)) => {
                    assert!(!fits, "{policy} {kind}");
                    assert_eq!(refusal.status(), StatusCode::BAD_CERTIFICATE_POLICY_CHECK_FAILED);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn signatures_are_valid_for_one_message_and_key() {
    let (one, two) = (provider("one"), provider("two"));
    for policy in carried() {
        let mut signature = b"before".to_vec();
        one.sign(policy, &[b"ab", b"", b"c"], &mut signature).unwrap();
        let signature = signature.strip_prefix(b"before").unwrap();
        assert_eq!(signature.len(), one.signature_len(policy).unwrap());
        let key = two.peer_key(policy, one.own_certificate(policy).unwrap()).unwrap();
        assert_eq!(key.signature_len(), signature.len());
        assert_eq!(key.verify(&[b"abc"], signature), Ok(()));
        assert_eq!(key.verify(&[b"abd"], signature), Err(CryptoError::Signature));
        assert_eq!(key.verify(&[b"abc"], &signature[1..]), Err(CryptoError::Signature));
        assert_eq!(key.verify(&[b"abc"], &[]), Err(CryptoError::Signature));
        let other = two.peer_key(policy, two.own_certificate(policy).unwrap()).unwrap();
        assert_eq!(other.verify(&[b"abc"], signature), Err(CryptoError::Signature));
    }
}

#[test]
fn oaep_failures_are_the_same_for_all_blocks() {
    let (client, server) = (provider("client"), provider("server"));
    for policy in carried() {
        let key = client.peer_key(policy, server.own_certificate(policy).unwrap()).unwrap();
        if key.cipher_block_len() == 0 {
            assert!(key.encrypt(b"x", &mut vec![]).is_err());
            continue;
        }
        let plain: Vec<u8> = (0..500u16).map(|at| at as u8).collect();
        let mut cipher = Vec::new();
        key.encrypt(&plain, &mut cipher).unwrap();
        assert_eq!(cipher.len(), plain.len().div_ceil(key.plain_block_len()) * key.cipher_block_len());
        let mut out = Vec::new();
        server.decrypt(policy, &cipher, &mut out).unwrap();
        assert_eq!(out, plain);
        for at in [0, cipher.len() / 2, cipher.len() - 1] {
            let mut wrong = cipher.clone();
            wrong[at] ^= 1;
            assert_eq!(server.decrypt(policy, &wrong, &mut vec![]), Err(CryptoError::Decryption));
        }
        for wrong in [&cipher[1..], &[][..], &vec![0xff; 256][..], &vec![0; 256][..]] {
            assert_eq!(server.decrypt(policy, wrong, &mut vec![]), Err(CryptoError::Decryption));
        }
        assert_eq!(client.decrypt(policy, &cipher, &mut vec![]), Err(CryptoError::Decryption));
    }
}

/// The result of opening an OpenSecureChannel chunk with `body_len` bytes from client to server.
fn handshake(
    policy: SecurityPolicy,
    client: &AwsLcProvider,
    server: &AwsLcProvider,
    body_len: usize,
    spoil: impl FnOnce(&mut Vec<u8>),
) -> Result<JobOutput, CryptoError> {
    let own = client.own_certificate(policy).unwrap();
    let headers_len = 20 + own.len();
    let mut chunk = b"OPNF....".to_vec();
    chunk.extend_from_slice(&[7; 12]);
    chunk.extend_from_slice(own);
    let nonce_at = chunk.len() + 8;
    chunk.resize(nonce_at + policy.info().nonce_len + body_len, 3);
    let plain_len = chunk.len();
    let sealed = Job::SealChunk(SealChunk {
        policy,
        mode: MessageSecurityMode::SignAndEncrypt,
        role: Role::Client,
        chunk,
        headers_len,
        nonce_at,
        receiver_certificate: server.own_certificate(policy).unwrap().into(),
        agreement: Agreement::Start,
        binding: b"binding".to_vec(),
    })
    .run(client)
    .unwrap();
    let JobOutput::Sealed { mut chunk, agreed: Agreed::Half(_), .. } = sealed else { panic!() };
    assert_eq!(chunk[4..8], u32::try_from(chunk.len()).unwrap().to_le_bytes());
    spoil(&mut chunk);
    let opened = Job::OpenChunk(OpenChunk {
        policy,
        chunk,
        headers_len,
        sender_certificate: 20..headers_len,
        receiver_thumbprint: server.thumbprint(server.own_certificate(policy).unwrap()),
        purpose: CertificatePurpose::Client { address: None },
        binding: b"binding".to_vec(),
    })
    .run(server)?;
    let JobOutput::Opened { chunk, body_end, .. } = &opened else { panic!() };
    assert_eq!(*body_end, plain_len);
    assert!(chunk[nonce_at + policy.info().nonce_len..*body_end].iter().all(|byte| *byte == 3));
    Ok(opened)
}

#[test]
fn handshake_chunks_of_every_policy_and_key_length() {
    for policy in carried() {
        for (one, other) in [("RSA2048", "RSA4096"), ("RSA4096", "RSA2048")] {
            let (client, server) = (parties::with_rsa("client", one), parties::with_rsa("server", other));
            for body_len in [0, 1, 131, 500] {
                handshake(policy, &client, &server, body_len, |_| ()).unwrap();
            }
        }
    }
}

#[test]
fn spoiled_handshake_chunks_are_refused() {
    for policy in carried() {
        let (client, server) = (provider("client"), provider("server"));
        let headers_len = 20 + client.own_certificate(policy).unwrap().len();
        for back in [1, 70, 100, 200] {
            let result = handshake(policy, &client, &server, 131, |chunk| {
                let at = (chunk.len() - back).max(headers_len);
                chunk[at] ^= 0x10;
            });
            assert!(
                matches!(result, Err(CryptoError::Signature | CryptoError::Decryption)),
                "{policy} {back} {result:?}"
            );
        }
        // A flood of blocks is refused before the key is used.
        let result =
            handshake(policy, &client, &server, 131, |chunk| chunk.resize(headers_len + 17 * 256, 9));
        assert!(result.is_err());
        let untrusted = provider("untrusted");
        let result = handshake(policy, &untrusted, &server, 131, |_| ());
        assert!(matches!(result, Err(CryptoError::Certificate(_))), "{result:?}");
    }
}

#[test]
fn secrets_with_every_policy() {
    let (client, server) = (provider("client"), provider("server"));
    let now = UtcTime::from_ticks(133_000_000_000_000_000);
    for policy in carried() {
        let key = crate::secret::uses_ephemeral_keys(policy).then(|| server.ephemeral_key(policy).unwrap());
        for len in [0, 1, 64, 65, 1000] {
            let sealed = SealSecret {
                policy,
                receiver_certificate: server.own_certificate(policy).unwrap().into(),
                server_nonce: vec![9; 32],
                secret: Secret::new(vec![b'x'; len]),
                signing_time: now,
                receiver_key: key.as_ref().map(|key| key.public_key().to_vec()),
            }
            .run(&client)
            .unwrap();
            let job = |data: Vec<u8>| OpenSecret {
                policy,
                algorithm: sealed.algorithm.into(),
                data,
                server_nonce: vec![9; 32],
                now,
                key: key.clone(),
                sender_certificate: client.own_certificate(policy).map(Into::into),
                secret_len_max: 1000,
            };
            let opened = job(sealed.bytes.clone()).run(&server).unwrap();
            assert_eq!(opened.expose(), vec![b'x'; len], "{policy}");
            for at in (0..sealed.bytes.len()).step_by(37) {
                let mut spoiled = sealed.bytes.clone();
                spoiled[at] ^= 4;
                assert_eq!(job(spoiled).run(&server), Err(CryptoError::Decryption), "{policy} {at}");
            }
        }
    }
}

#[test]
fn padding_after_a_secret_must_be_zero() {
    let (client, server) = (provider("client"), provider("server"));
    let policy = SecurityPolicy::Basic256Sha256;
    let key = client.peer_key(policy, server.own_certificate(policy).unwrap()).unwrap();
    let open = |length: u32, padding: &[u8]| {
        let plain = [&length.to_le_bytes()[..], b"password", &[9; 32], padding].concat();
        let mut data = Vec::new();
        key.encrypt(&plain, &mut data).unwrap();
        let job = OpenSecret {
            policy,
            algorithm: policy.info().asymmetric_encryption.uri().into(),
            data,
            server_nonce: vec![9; 32],
            now: UtcTime::NULL,
            key: None,
            sender_certificate: None,
            secret_len_max: 500,
        };
        job.run(&server).map(|secret| secret.expose().to_vec())
    };
    for padding in [&[][..], &[0], &[0; 170], &[0; 400]] {
        assert_eq!(open(40, padding), Ok(b"password".to_vec()));
    }
    for (length, padding) in
        [(40, &[1][..]), (40, &[0, 0, 1]), (41, &[]), (39, &[]), (31, &[]), (0, &[0]), (u32::MAX, &[0])]
    {
        assert_eq!(open(length, padding), Err(CryptoError::Decryption), "{length} {padding:?}");
    }
}

#[test]
fn ephemeral_keys_refuse_invalid_points() {
    let provider = provider("server");
    for policy in carried().filter(|policy| crate::secret::uses_ephemeral_keys(*policy)) {
        let key = provider.ephemeral_key(policy).unwrap();
        let len = policy.info().nonce_len;
        assert_eq!(key.public_key().len(), len);
        assert_eq!(key.derive(key.public_key(), b"salt", 16), Err(CryptoError::Nonce));
        for wrong in [vec![0; len], vec![0xff; len - 1], vec![], vec![1; len + 1]] {
            assert!(key.derive(&wrong, b"salt", 16).is_err(), "{policy}");
        }
        let other = provider.ephemeral_key(policy).unwrap();
        let (one, two) =
            (key.derive(other.public_key(), b"salt", 99), other.derive(key.public_key(), b"salt", 99));
        assert_eq!(one, two);
        assert_ne!(one, key.derive(other.public_key(), b"other salt", 99));
    }
}
