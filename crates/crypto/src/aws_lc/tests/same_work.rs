//! Refusing a message takes the same operations for every reason (Part 6 §6.7.7). The operations are counted, because
//! timing would measure the machine. `taktwerk lab flood timing` measures times.

use super::recorder::{Operation, Recorder};
use super::*;

/// The fault in an OpenSecureChannel message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// Nothing in it was encrypted for us.
    Cipher,
    FirstBlock,
    LastBlock,
    /// It can be decrypted, but the signature is wrong.
    Signature,
    /// The signature is invalid as a number: not below the modulus.
    NoSignature,
    /// The signature is valid, but the padding is wrong.
    Padding,
    /// It can be decrypted, but is shorter than a signature.
    Short,
}

const WRONG: [Wrong; 7] = [
    Wrong::Cipher,
    Wrong::FirstBlock,
    Wrong::LastBlock,
    Wrong::Signature,
    Wrong::NoSignature,
    Wrong::Padding,
    Wrong::Short,
];
const BLOCKS: usize = 3;

struct Setting {
    policy: SecurityPolicy,
    client: AwsLcProvider,
    server: Recorder,
}

impl Setting {
    fn headers(&self) -> Vec<u8> {
        [&[7; 20], self.client.own_certificate(self.policy).unwrap()].concat()
    }

    fn chunk(&self, wrong: Wrong) -> Vec<u8> {
        let (policy, headers) = (self.policy, self.headers());
        let receiver = self.client.peer_key(policy, self.server.own_certificate(policy).unwrap()).unwrap();
        let signature_len = self.client.signature_len(policy).unwrap();
        let (plain_block, cipher_block) = (receiver.plain_block_len(), receiver.cipher_block_len());
        if wrong == Wrong::Short {
            let mut chunk = headers;
            for _ in 0..BLOCKS {
                receiver.encrypt(&[9; 9], &mut chunk).unwrap();
            }
            return chunk;
        }
        // After the body: the padding and its length in one or two bytes.
        let mut signed = headers.clone();
        let extra = cipher_block > 256;
        let padding = 20;
        let body_len = BLOCKS * plain_block - signature_len - padding - 1 - usize::from(extra);
        signed.resize(signed.len() + body_len, 3);
        let [low, high, ..] = padding.to_le_bytes();
        signed.resize(signed.len() + padding + 1, low);
        if extra {
            signed.push(high);
        }
        if wrong == Wrong::Padding {
            signed[headers.len() + body_len + 1] ^= 1;
        }
        let mut signature = Vec::new();
        self.client.sign(policy, &[&signed, b"binding"], &mut signature).unwrap();
        match wrong {
            Wrong::Signature => signature[signature_len / 2] ^= 1,
            Wrong::NoSignature => signature.fill(0xff),
            _ => {}
        }
        let mut chunk = headers.clone();
        receiver.encrypt(&[&signed[headers.len()..], &signature].concat(), &mut chunk).unwrap();
        assert_eq!(chunk.len(), headers.len() + BLOCKS * cipher_block);
        let secured = &mut chunk[headers.len()..];
        match wrong {
            Wrong::Cipher => secured.chunks_mut(cipher_block).for_each(|block| block[9] ^= 1),
            Wrong::FirstBlock => secured[9] ^= 1,
            Wrong::LastBlock => secured[(BLOCKS - 1) * cipher_block + 9] ^= 1,
            _ => {}
        }
        chunk
    }

    /// The result of opening a chunk, and the operations it took.
    fn open(&self, chunk: Vec<u8>) -> (Result<JobOutput, CryptoError>, Vec<Operation>) {
        let headers_len = self.headers().len();
        let own = self.server.own_certificate(self.policy).unwrap();
        let job = Job::OpenChunk(OpenChunk {
            policy: self.policy,
            chunk,
            headers_len,
            sender_certificate: 20..headers_len,
            receiver_thumbprint: self.server.thumbprint(own),
            purpose: CertificatePurpose::Client { address: None },
            binding: b"binding".to_vec(),
        });
        self.server.take();
        let result = job.run(&self.server);
        (result, self.server.take())
    }
}

#[test]
fn invalid_handshakes_take_the_same_operations() {
    for (client, server) in [("RSA2048", "RSA2048"), ("RSA4096", "RSA2048"), ("RSA2048", "RSA4096")] {
        for policy in carried().filter(|policy| identity::oaep(*policy).is_some()) {
            let setting = Setting {
                policy,
                client: parties::with_rsa("client", client),
                server: Recorder::new(parties::with_rsa("server", server)),
            };
            let (opened, honest) = setting.open(setting.chunk(Wrong::Nothing));
            assert!(opened.is_ok(), "{policy} {client} {server} {:?}", opened.err());
            assert!(honest.len() >= 5, "{honest:?}");
            for wrong in WRONG {
                let (refused, done) = setting.open(setting.chunk(wrong));
                assert!(
                    matches!(refused, Err(CryptoError::Decryption | CryptoError::Signature)),
                    "{policy} {wrong:?} {:?}",
                    refused.err()
                );
                assert_eq!(done, honest, "{policy} {client} {server} {wrong:?}");
            }
        }
    }
}

#[test]
fn blocks_after_an_invalid_one_are_decrypted() {
    let setting = Setting {
        policy: SecurityPolicy::Basic256Sha256,
        client: provider("client"),
        server: Recorder::new(provider("server")),
    };
    let headers_len = setting.headers().len();
    let block = 256 - 42;
    for (wrong, right) in [(Wrong::Cipher, 0), (Wrong::FirstBlock, 2), (Wrong::LastBlock, 2)] {
        let (chunk, mut out) = (setting.chunk(wrong), Vec::new());
        let result = setting.server.decrypt(setting.policy, &chunk[headers_len..], &mut out);
        assert_eq!((result, out.len()), (Err(CryptoError::Decryption), right * block), "{wrong:?}");
    }
}

/// The result of opening a secret, and the operations it took.
fn opening(job: &OpenSecret, server: &Recorder) -> (Result<Secret, CryptoError>, Vec<Operation>) {
    server.take();
    let result = job.run(server);
    (result, server.take())
}

#[test]
fn undecryptable_secrets_take_the_same_operations() {
    let client = provider("client");
    for policy in carried().filter(|policy| identity::oaep(*policy).is_some()) {
        let server = Recorder::new(provider("server"));
        for len in [8, 200] {
            let seal = |server_nonce: Vec<u8>| {
                let job = SealSecret {
                    policy,
                    receiver_certificate: server.own_certificate(policy).unwrap().into(),
                    server_nonce,
                    secret: Secret::new(vec![b'x'; len]),
                    signing_time: UtcTime::from_ticks(133_000_000_000_000_000),
                    receiver_key: None,
                };
                job.run(&client).unwrap()
            };
            let algorithm = seal(vec![9; 32]).algorithm;
            let open = |data: Vec<u8>| {
                let job = OpenSecret {
                    policy,
                    algorithm: algorithm.into(),
                    data,
                    server_nonce: vec![9; 32],
                    now: UtcTime::from_ticks(133_000_000_000_000_000),
                    key: None,
                    sender_certificate: None,
                    secret_len_max: 1000,
                };
                opening(&job, &server)
            };
            let (right, honest) = open(seal(vec![9; 32]).bytes);
            assert!(right.is_ok(), "{policy} {len}");
            let bytes = seal(vec![9; 32]).bytes;
            // Forge bytes at every offset that is not readable, because the encrypted keys are somewhere in the middle.
            let mut kinds = Vec::new();
            for at in 0..bytes.len() {
                let mut forged = bytes.clone();
                forged[at] ^= 1;
                let (refused, done) = open(forged);
                assert_eq!(refused, Err(CryptoError::Decryption), "{policy} {len} {at}");
                if !kinds.contains(&done) {
                    kinds.push(done);
                }
            }
            let decrypting =
                |done: &&Vec<Operation>| done.iter().any(|it| matches!(it, Operation("decrypt", _)));
            let kinds: Vec<_> = kinds.iter().filter(decrypting).collect();
            assert_eq!(kinds.len(), 1, "{policy} {len} {kinds:?}");
            // Only a secret with a valid signature, whose sender knows the keys, gets further.
            assert!(honest.starts_with(kinds[0]), "{policy} {len} {honest:?} {kinds:?}");
            assert!(honest.len() <= kinds[0].len() + 1, "{policy} {len}");
        }
    }
}

#[test]
fn signatures_of_curves_are_checked_before_anything_is_derived() {
    let (client, server) = (provider("client"), Recorder::new(provider("server")));
    for policy in carried().filter(|policy| crate::secret::uses_ephemeral_keys(*policy)) {
        let key = server.ephemeral_key(policy).unwrap();
        let sealed = SealSecret {
            policy,
            receiver_certificate: server.own_certificate(policy).unwrap().into(),
            server_nonce: vec![9; 32],
            secret: Secret::new(b"password".to_vec()),
            signing_time: UtcTime::from_ticks(133_000_000_000_000_000),
            receiver_key: Some(key.public_key().to_vec()),
        }
        .run(&client)
        .unwrap();
        let open = |data: Vec<u8>| {
            let job = OpenSecret {
                policy,
                algorithm: "".into(),
                data,
                server_nonce: vec![9; 32],
                now: UtcTime::from_ticks(133_000_000_000_000_000),
                key: Some(key.clone()),
                sender_certificate: client.own_certificate(policy).map(Into::into),
                secret_len_max: 1000,
            };
            opening(&job, &server)
        };
        let derives = |done: &[Operation]| done.iter().any(|it| matches!(it, Operation("derive", _)));
        let (right, honest) = open(sealed.bytes.clone());
        assert!(right.is_ok() && derives(&honest), "{policy} {right:?} {honest:?}");
        for at in (0..sealed.bytes.len()).step_by(3) {
            let mut forged = sealed.bytes.clone();
            forged[at] ^= 1;
            let (refused, done) = open(forged);
            assert_eq!(refused, Err(CryptoError::Decryption), "{policy} {at}");
            assert!(!derives(&done), "{policy} {at}: keys are derived before the signature is verified");
        }
    }
}
