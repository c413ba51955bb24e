//! Published vectors for the primitives, and the key derivations of Part 6 computed by an independent implementation.

use crate::aws_lc::agreement::{channel_material, hkdf, p_sha256};
use crate::aws_lc::chunk::{Aead, cbc_decrypt, cbc_encrypt};
use crate::{ChunkNonce, MessageSecurityMode, SecurityPolicy};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// The TLS 1.2 vector that has circulated since the draft of RFC 5246 (label and seed concatenated are the seed).
#[test]
fn p_sha256_of_tls_1_2() {
    let secret = hex("9bbe436ba940f017b17652849a71db35");
    let seed = [b"test label".as_slice(), &hex("a0ba9f936cda311827a6f796ffd5198c")].concat();
    let expected = hex(
        "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a6b301791e90d35c9c9a46b4e14baf9af
         0fa022f7077def17abfd3797c0564bab4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff701
         87347b66",
    );
    assert_eq!(*p_sha256(&secret, &seed, 100), expected);
    assert_eq!(*p_sha256(&secret, &seed, 33), expected[..33]);
}

/// NIST SP 800-38A, F.2.1 and F.2.5.
#[test]
fn aes_cbc_of_sp_800_38a() {
    let iv = hex("000102030405060708090a0b0c0d0e0f");
    let plain = hex("6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51");
    for (key, cipher) in [
        (
            "2b7e151628aed2a6abf7158809cf4f3c",
            "7649abac8119b246cee98e9b12e9197d 5086cb9b507219ee95db113a917678b2",
        ),
        (
            "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
            "f58c4c04d6e5f1ba779eabfb5f7bfbd6 9cfc4e967edb808d679f777bc6702c7d",
        ),
    ] {
        let mut bytes = plain.clone();
        cbc_encrypt(&hex(key), &iv, &mut bytes).unwrap();
        assert_eq!(bytes, hex(cipher));
        cbc_decrypt(&hex(key), &iv, &mut bytes).unwrap();
        assert_eq!(bytes, plain);
        assert!(cbc_encrypt(&hex(key), &iv, &mut [0; 17]).is_err());
        assert!(cbc_decrypt(&hex(key), &iv, &mut [0; 17]).is_err());
    }
}

fn aead(policy: SecurityPolicy, key: &str, iv: &str, headers: &str, plain: &[u8], cipher: &str, tag: &str) {
    let nothing = ChunkNonce { token_id: 0, last_sequence_number: 0 };
    let aead = Aead::keyed(policy.info(), &hex(key), &hex(iv)).unwrap();
    let (mut bytes, mut written) = (plain.to_vec(), [0; 16]);
    aead.seal(nothing, &hex(headers), &mut bytes, &mut written).unwrap();
    assert_eq!((bytes.clone(), written.to_vec()), (hex(cipher), hex(tag)));
    aead.open(nothing, &hex(headers), &mut bytes, &written).unwrap();
    assert_eq!(bytes, plain);
}

/// "The Galois/Counter Mode of Operation", test cases 4 and 16.
#[test]
fn aes_gcm_of_its_authors() {
    let plain = hex(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525
         b16aedf5aa0de657ba637b39",
    );
    let (iv, headers) = ("cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2");
    aead(
        SecurityPolicy::ECC_nistP256_AesGcm,
        "feffe9928665731c6d6a8f9467308308",
        iv,
        headers,
        &plain,
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa05
         1ba30b396a0aac973d58e091",
        "5bc94fbc3221a5db94fae95ae7121a47",
    );
    aead(
        SecurityPolicy::ECC_nistP384_AesGcm,
        "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        iv,
        headers,
        &plain,
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838
         c5f61e6393ba7a0abcc9f662",
        "76fc6ece0f4e1768cddf8853bb2d551b",
    );
}

/// RFC 8439 §2.8.2.
#[test]
fn chacha20_poly1305_of_rfc_8439() {
    aead(
        SecurityPolicy::ECC_curve25519_ChaChaPoly,
        "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
        "070000004041424344454647",
        "50515253c0c1c2c3c4c5c6c7",
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, \
          sunscreen would be it.",
        "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b
         1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc
         3ff4def08e4b7a9de576d26586cec64b6116",
        "1ae10b594f09e26a7e902ecbd0600691",
    );
}

/// The nonce is the initialization vector combined with TokenId and LastSequenceNumber in its first eight bytes (Part 6
/// §6.8.1, Table 69). An initialization vector that already contains them gives the same nonce.
#[test]
fn token_and_sequence_number_go_into_the_nonce() {
    let info = SecurityPolicy::ECC_nistP256_AesGcm.info();
    let aead = |iv: &str| Aead::keyed(info, &[1; 16], &hex(iv)).unwrap();
    let seal = |aead: &Aead, token_id, last_sequence_number| {
        let (mut bytes, mut tag) = ([7; 20], [0; 16]);
        aead.seal(ChunkNonce { token_id, last_sequence_number }, b"", &mut bytes, &mut tag).unwrap();
        (bytes, tag)
    };
    let mixed = seal(&aead("000000000000000000000000"), 0x0403_0201, 0x0807_0605);
    assert_eq!(mixed, seal(&aead("010203040506070800000000"), 0, 0));
}

/// HKDF with the salt as info (Part 6 §6.8.1), from an independent implementation.
#[test]
fn key_derivation_of_part_6() {
    let bytes = |len: u8| (0..len).collect::<Vec<u8>>();
    for (policy, secret_len, nonce_len, client, server) in [
        (
            SecurityPolicy::ECC_nistP256,
            32,
            64,
            "cc5cfcfc8fe768aaa5abc05b4ec48cbea8aa38f15aa6b4607b4d40d1eb4b06203a507a4da31261490e3b4e35e85cfa02
             5d9d08982e662c19e8652711516b73d1",
            "4a06f770b9046db66301efdc996a47d7d17d08e456a51d81f43e3fcd07229d0750d782476fb5606e9843ee939bf14134
             d436b06a637d053429a229b1a810b22e",
        ),
        (
            SecurityPolicy::ECC_nistP384,
            48,
            96,
            "bfea91c5e0e8c02706f35aa5227464e720e4ff0c04c00e9bcbc75a8958b9098896f79d83e864a0c6025d44082a35b34c
             f102d4cedd5ef4b9a848387f3df7cd10b04c8f0ecb14ead31249d37627a193ef44c435059c866f318aadd032f24a1f97",
            "f7c4849f8c24af8877cc2686eab5886a29d9509e69b2cef3f77a939b399b54b41c3cdd86a881b292dd254c588f92499b
             81b7cca7005a83cd2105895825e1f27555827b1f302aebdf6298338fa650e925a9365bc951fe87a4ee5b634f471e2827",
        ),
        (
            SecurityPolicy::ECC_nistP256_AesGcm,
            32,
            64,
            "fcec258fd3752fd1ed6839eff084921f9593e2e955044c957659aacb",
            "70529af697ef69050ae0427543270c0e4b26fcf166d9ed4c7eaecfea",
        ),
    ] {
        let (client_nonce, server_nonce) = (vec![1; nonce_len], vec![2; nonce_len]);
        let made = |mode| {
            let secret = bytes(secret_len);
            let made = channel_material(policy.info(), mode, &secret, &client_nonce, &server_nonce).unwrap();
            (made.0.to_vec(), made.1.to_vec())
        };
        let both = made(MessageSecurityMode::SignAndEncrypt);
        assert_eq!(both, (hex(client), hex(server)), "{policy}");
        // The length is part of the salt: mode Sign has other, shorter key material.
        let signed = made(MessageSecurityMode::Sign);
        if policy.info().is_aead() {
            assert_eq!(signed, both, "{policy}");
        } else {
            assert_eq!(signed.0.len(), policy.info().signing_key_len, "{policy}");
            assert!(!both.0.starts_with(&signed.0), "{policy}");
        }
    }
    assert!(hkdf(SecurityPolicy::ECC_nistP256.info(), b"secret", b"salt", 255 * 32 + 1).is_err());
}

/// RFC 7748 §6.1 and RFC 5903 §8.1: the shared secrets that go into HKDF.
#[test]
fn agreements_of_rfc_7748_and_rfc_5903() {
    use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, X25519, agree};
    for (algorithm, private, peer, shared) in [
        (
            &X25519,
            "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
            "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
            "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742",
        ),
        (
            &ECDH_P256,
            "c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433",
            "04 d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf63
             56fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab",
            "d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de",
        ),
    ] {
        let private = PrivateKey::from_private_key(algorithm, &hex(private)).unwrap();
        let peer = UnparsedPublicKey::new(algorithm, hex(peer));
        let secret = agree(&private, peer, (), |secret| Ok(secret.to_vec())).unwrap();
        assert_eq!(secret, hex(shared));
    }
}
