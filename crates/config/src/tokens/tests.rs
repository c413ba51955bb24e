use super::*;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{EncodingKey, Header};
use proptest::prelude::*;
use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256, SigningKey,
};
use serde_json::json;
use std::path::Path;
use std::sync::LazyLock;
use taktwerk_crypto::Secret;

const ISSUER: &str = "https://login.example.com";
const AUDIENCE: &str = "urn:example:server";
const NOW_S: u64 = 1_800_000_000;

struct Pair {
    pair: KeyPair,
    pem: String,
}

fn pair(algorithm: &'static rcgen::SignatureAlgorithm) -> Pair {
    let pair = KeyPair::generate_for(algorithm).unwrap();
    let pem = pair.public_key_pem();
    Pair { pair, pem }
}

static P256: LazyLock<Pair> = LazyLock::new(|| pair(&PKCS_ECDSA_P256_SHA256));
static P384: LazyLock<Pair> = LazyLock::new(|| pair(&PKCS_ECDSA_P384_SHA384));
static ED: LazyLock<Pair> = LazyLock::new(|| pair(&PKCS_ED25519));
static RSA: LazyLock<Pair> = LazyLock::new(|| pair(&PKCS_RSA_SHA256));
static STRANGER: LazyLock<Pair> = LazyLock::new(|| pair(&PKCS_ECDSA_P256_SHA256));

fn now() -> UtcTime {
    UtcTime::from_unix(Duration::from_secs(NOW_S))
}

fn keys(text: &str) -> Result<TokenKeys, KeysError> {
    TokenKeys::parse(Path::new("keys"), text)
}

fn all_keys() -> TokenKeys {
    keys(&[&*P256.pem, &P384.pem, &ED.pem, &RSA.pem].concat()).unwrap()
}

fn authority() -> TokenAuthority {
    TokenAuthority::new(JwtSettings::new(ISSUER, AUDIENCE), all_keys())
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "olaf", "exp": NOW_S + 600, "iat": NOW_S - 5, "nbf": NOW_S - 5,
        "roles": ["operators"], "groups": ["shift-1", "shift-2"],
    })
}

/// The claims with one changed; null removes it.
fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    let object = claims.as_object_mut().unwrap();
    object.remove(name);
    if !value.is_null() {
        object.insert(name.to_owned(), value);
    }
    claims
}

fn part(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A token signed with the P-256 key, with any header and claims.
fn signed(header: &Value, claims: &Value) -> String {
    let message = format!("{}.{}", part(header.to_string()), part(claims.to_string()));
    let key = EncodingKey::from_ec_der(&P256.pair.serialize_der());
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &key, Algorithm::ES256).unwrap();
    format!("{message}.{signature}")
}

fn token(claims: &Value) -> String {
    signed(&json!({ "alg": "ES256", "typ": "JWT" }), claims)
}

fn refused(token: &str) -> TokenRefusal {
    authority().check(token.as_bytes(), now()).expect_err(token)
}

#[test]
fn tokens_of_every_kind_of_key_are_accepted() {
    let encode =
        |algorithm, key: &EncodingKey| jsonwebtoken::encode(&Header::new(algorithm), &claims(), key).unwrap();
    let rsa = {
        let message = format!("{}.{}", part(r#"{"alg":"RS256"}"#), part(claims().to_string()));
        format!("{message}.{}", part(RSA.pair.sign(message.as_bytes()).unwrap()))
    };
    for token in [
        encode(Algorithm::ES256, &EncodingKey::from_ec_der(&P256.pair.serialize_der())),
        encode(Algorithm::ES384, &EncodingKey::from_ec_der(&P384.pair.serialize_der())),
        encode(Algorithm::EdDSA, &EncodingKey::from_ed_der(&ED.pair.serialize_der())),
        rsa,
    ] {
        let user = authority().check(token.as_bytes(), now()).unwrap();
        assert_eq!((&*user.user_id, &*user.roles), ("olaf", &["operators".into()][..]));
        assert_eq!(user.groups, ["shift-1".into(), "shift-2".into()]);
        assert_eq!(user.expires, UtcTime::from_unix(Duration::from_secs(NOW_S + 600)));
    }
}

#[test]
fn the_token_cannot_choose_the_algorithm() {
    let claims = part(claims().to_string());
    // Unsigned tokens.
    for header in [r#"{"alg":"none"}"#, r#"{"alg":"None"}"#, r#"{"alg":""}"#, r"{}"] {
        for signature in ["", "AA"] {
            assert_eq!(refused(&format!("{}.{claims}.{signature}", part(header))), TokenRefusal::Malformed);
        }
    }
    // The public key used as the secret of an HMAC.
    for secret in [P256.pem.as_bytes(), RSA.pem.as_bytes(), P256.pair.public_key_raw(), b""] {
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            let key = EncodingKey::from_secret(secret);
            let token = jsonwebtoken::encode(&Header::new(algorithm), &self::claims(), &key).unwrap();
            assert_eq!(refused(&token), TokenRefusal::Algorithm);
        }
    }
    // Another algorithm than the one used for the signature.
    for name in ["ES384", "EdDSA", "RS256", "PS512"] {
        assert_eq!(
            refused(&signed(&json!({ "alg": name }), &self::claims())),
            TokenRefusal::Signature,
            "{name}"
        );
    }
    let mut settings = JwtSettings::new(ISSUER, AUDIENCE);
    settings.algorithms = vec![TokenAlgorithm::Rs256];
    let strict = TokenAuthority::new(settings, all_keys());
    assert_eq!(strict.check(token(&self::claims()).as_bytes(), now()), Err(TokenRefusal::Algorithm));
}

#[test]
fn keys_come_from_files_and_not_from_tokens() {
    let key = EncodingKey::from_ec_der(&STRANGER.pair.serialize_der());
    let raw = STRANGER.pair.public_key_raw().to_vec();
    let own = json!({ "kty": "EC", "crv": "P-256", "x": part(&raw[1..33]), "y": part(&raw[33..]) });
    let sign = |header: Value| {
        let message = format!("{}.{}", part(header.to_string()), part(claims().to_string()));
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &key, Algorithm::ES256).unwrap();
        refused(&format!("{message}.{signature}"))
    };
    assert_eq!(sign(json!({ "alg": "ES256" })), TokenRefusal::Signature);
    assert_eq!(sign(json!({ "alg": "ES256", "jwk": own })), TokenRefusal::Signature);
    assert_eq!(
        sign(json!({ "alg": "ES256", "jku": "https://attacker.example.com/keys" })),
        TokenRefusal::Signature
    );
    assert_eq!(
        sign(json!({ "alg": "ES256", "x5u": "file:///etc/passwd", "kid": "../../x" })),
        TokenRefusal::Signature
    );
    // If keys have ids, only the named key is tried.
    let raw = P256.pair.public_key_raw().to_vec();
    let set = json!({ "keys": [
        { "kty": "EC", "crv": "P-256", "kid": "one", "use": "sig", "x": part(&raw[1..33]), "y": part(&raw[33..]) },
        { "kty": "oct", "k": "c2VjcmV0" }, { "kty": "RSA", "use": "enc", "n": "AQAB", "e": "AQAB" },
    ]});
    let named = TokenAuthority::new(JwtSettings::new(ISSUER, AUDIENCE), keys(&set.to_string()).unwrap());
    let check = |kid: Value| {
        let header =
            if kid.is_null() { json!({ "alg": "ES256" }) } else { json!({ "alg": "ES256", "kid": kid }) };
        named.check(signed(&header, &claims()).as_bytes(), now()).map(|user| user.user_id)
    };
    assert_eq!(check("one".into()), Ok("olaf".into()));
    assert_eq!(check(Value::Null), Ok("olaf".into()));
    assert_eq!(check("two".into()), Err(TokenRefusal::NoKey));
    // A key with `alg` or `use` is used for nothing else.
    let only = |algorithm: &str| {
        let raw = P256.pair.public_key_raw().to_vec();
        let key = json!({ "kty": "EC", "crv": "P-256", "alg": algorithm, "x": part(&raw[1..33]), "y": part(&raw[33..]) });
        keys(&json!({ "keys": [key] }).to_string())
    };
    assert!(only("ES256").is_ok());
    assert!(matches!(only("ECDH-ES"), Err(KeysError::None)));
}

#[test]
fn files_without_usable_keys_are_refused() {
    let content = |text: &str| keys(text).unwrap_err().to_string();
    assert!(content("").contains("neither a JSON Web Key Set nor PEM"));
    assert!(content("{\"keys\":[]}").contains("no public key"));
    assert!(content("{\"keys\":[{\"kty\":\"oct\",\"k\":\"c2VjcmV0\"}]}").contains("no public key"));
    assert!(content("{\"keys\":7}").contains("invalid type"));
    assert!(content(&P256.pair.serialize_pem()).contains("belongs to the authorization service alone"));
    let short = json!({ "keys": [{ "kty": "RSA", "n": part([0xff; 128]), "e": "AQAB" }] });
    assert!(content(&short.to_string()).contains("1024 bits"));
    let cut = json!({ "keys": [{ "kty": "EC", "crv": "P-256", "x": part([1; 31]), "y": part([1; 32]) }] });
    assert!(content(&cut.to_string()).contains("32 bytes"));
    assert!(matches!(keys(&P256.pem.repeat(17)), Err(KeysError::TooMany)));
    let certificate = rcgen::CertificateParams::default().self_signed(&P256.pair).unwrap();
    let by_certificate =
        TokenAuthority::new(JwtSettings::new(ISSUER, AUDIENCE), keys(&certificate.pem()).unwrap());
    assert!(by_certificate.check(token(&claims()).as_bytes(), now()).is_ok());
}

#[test]
fn claims_are_validated() {
    use TokenRefusal as R;
    let check = |name: &'static str, value: Value| refused(&token(&with(name, value)));
    for wrong in [json!("https://login.example.com/"), json!("x")] {
        assert_eq!(check("iss", wrong), R::Issuer);
    }
    for wrong in [Value::Null, json!([ISSUER]), json!(1)] {
        assert_eq!(check("iss", wrong), R::Claim("iss"));
    }
    for wrong in [
        json!("urn:example:server2"),
        json!("urn:example"),
        json!([]),
        json!([["urn:example:server"]]),
        json!(""),
    ] {
        assert_eq!(check("aud", wrong), R::Audience);
    }
    for wrong in [Value::Null, json!({ "urn:example:server": 1 }), json!(true)] {
        assert_eq!(check("aud", wrong), R::Claim("aud"));
    }
    for wrong in [Value::Null, json!("1800000600"), json!(-1), json!([NOW_S + 600]), json!(true)] {
        // The library rejects some of them while parsing.
        assert!(matches!(check("exp", wrong), R::Claim("exp") | R::Malformed));
    }
    for over in [json!(0), json!(NOW_S - 30), json!(NOW_S as f64 - 30.5)] {
        assert_eq!(check("exp", over), R::Expired);
    }
    assert_eq!(check("nbf", json!(NOW_S + 31)), R::NotYet);
    assert!(matches!(check("nbf", json!("soon")), R::Claim("nbf") | R::Malformed));
    assert_eq!(check("iat", json!(NOW_S + 3600)), R::NotYet);
    for wrong in [Value::Null, json!(""), json!(7), json!("a\nb"), json!("x".repeat(257))] {
        assert_eq!(check("sub", wrong), R::Claim("sub"));
    }
    for wrong in [json!([1]), json!({ "admin": true }), json!([""]), json!(vec!["r"; 257]), json!(1)] {
        assert_eq!(check("roles", wrong.clone()), R::Claim("roles"));
        assert_eq!(check("groups", wrong), R::Claim("groups"));
    }
}

#[test]
fn tolerated_variants_are_accepted() {
    let check = |name: &'static str, value: Value| {
        authority().check(token(&with(name, value)).as_bytes(), now()).unwrap()
    };
    check("aud", json!(["urn:other", AUDIENCE]));
    check("exp", json!(NOW_S as f64 + 0.5));
    check("exp", json!(NOW_S - 29));
    assert_eq!(check("exp", json!(1e300)).expires.ticks() / 10_000_000, 265_046_774_399);
    check("nbf", json!(NOW_S + 30));
    check("nbf", Value::Null);
    assert!(check("roles", Value::Null).roles.is_empty());
    assert_eq!(check("roles", json!("operators")).roles, ["operators".into()]);
    let mut settings = JwtSettings::new(ISSUER, AUDIENCE);
    settings.roles_claim = "realm.access.roles".to_owned();
    let nested = TokenAuthority::new(settings, all_keys());
    let claims = with("realm", json!({ "access": { "roles": ["operators"] } }));
    let user = nested.check(token(&claims).as_bytes(), now()).unwrap();
    assert_eq!(user.roles, ["operators".into()]);
}

#[test]
fn malformed_tokens_are_refused() {
    use TokenRefusal as R;
    let good = token(&claims());
    let parts: Vec<&str> = good.split('.').collect();
    for wrong in [
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        parts[..2].join("."),
        parts[1..].join("."),
        format!("e30.{good}"),
        format!(" {good}"),
        "{}".to_owned(),
        "\u{0}".repeat(100),
    ] {
        let refusal = refused(&wrong);
        assert!(matches!(refusal, R::Malformed | R::Signature), "{wrong}: {refusal}");
    }
    assert_eq!(refused(&format!("{}.{}.", parts[0], parts[1])), R::Signature);
    assert_eq!(refused(&format!("{good}{}", "A".repeat(TOKEN_LEN_MAX))), R::TooLong);
    for header in [json!({ "alg": "ES256", "crit": ["exp"] }), json!({ "alg": "ES256", "zip": "DEF" })] {
        assert_eq!(refused(&signed(&header, &claims())), R::Critical);
    }
    // Signed, but without claims.
    assert_eq!(refused(&token(&json!([1, 2]))), R::Malformed);
    assert_eq!(refused(&token(&json!({}))), R::Claim("iss"));
    // The deepest nesting that fits into a token.
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let message = format!("{}.{}", part(r#"{"alg":"ES256"}"#), part(format!("{{\"iss\":{deep}}}")));
    let key = EncodingKey::from_ec_der(&P256.pair.serialize_der());
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &key, Algorithm::ES256).unwrap();
    assert_eq!(refused(&format!("{message}.{signature}")), R::Malformed);
}

#[test]
fn keys_are_read_again_when_their_file_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.pem");
    std::fs::write(&path, &STRANGER.pem).unwrap();
    let authority = TokenAuthority::open(JwtSettings::new(ISSUER, AUDIENCE), vec![path.clone()]).unwrap();
    let check = || authority.check(token(&claims()).as_bytes(), now()).is_ok();
    assert!(!check() && !authority.reload().unwrap());
    std::fs::write(&path, &P256.pem).unwrap();
    let later = SystemTime::now() + Duration::from_secs(5);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
    assert!(authority.reload().unwrap() && check());
    std::fs::write(&path, "nonsense").unwrap();
    let later = later + Duration::from_secs(5);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
    assert!(authority.reload().is_err());
    assert!(!authority.reload().unwrap() && check(), "a mistake is reported once, and the keys stay");
}

#[test]
fn the_verifier_accepts_only_tokens_and_returns_their_expiry() {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let mut claims = claims();
    for (claim, at) in [("exp", seconds + 600), ("iat", seconds), ("nbf", seconds)] {
        claims[claim] = at.into();
    }
    let verifier = JwtVerifier::new(Arc::new(authority()));
    let verify = |credential| match verifier.verify(credential) {
        Verification::Blocking(run) => run(),
        Verification::Now(verdict) => verdict,
        _ => panic!("nothing here takes a future"),
    };
    let issued = |token: &str| Credential::IssuedToken { token: Secret::new(token.into()) };
    let accepted = verify(issued(&token(&claims))).unwrap();
    assert_eq!(accepted.user_id.as_deref(), Some("olaf"));
    assert_eq!(accepted.valid_until, Some(UtcTime::from_unix(Duration::from_secs(seconds + 630))));
    assert_eq!(verify(issued("x")), Err(StatusCode::BAD_IDENTITY_TOKEN_REJECTED));
    let password =
        Credential::Password { user_name: "olaf".into(), password: Secret::new(token(&claims).into()) };
    assert_eq!(verify(password), Err(StatusCode::BAD_USER_ACCESS_DENIED));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_tokens_are_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let good = token(&claims()).into_bytes();
        let mut bad = good.clone();
        let at = at.index(bad.len());
        bad[at] = byte;
        // The unused bits of the last digit must be zero.
        prop_assert_eq!(authority().check(&bad, now()).is_ok(), bad == good);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(authority().check(&bytes, now()).is_err());
    }
}
