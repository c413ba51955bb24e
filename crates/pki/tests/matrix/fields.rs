//! The certificate's own fields: validity, names, uses, keys and hashes.

use crate::forge::{Authority, HOST, KEYS, Role, URI, authority, dns, extension, self_signed, uri, with};
use crate::table::Expect::{
    Good, HostNameInvalid, Invalid, IssuerTimeInvalid, PolicyCheckFailed, TimeInvalid, UriInvalid,
    UseNotAllowed,
};
use crate::table::{Case, Expect, Table};
use rcgen::{BasicConstraints, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose, SanType, date_time_ymd};
use taktwerk_crypto::SecurityPolicy;
use taktwerk_crypto::certificate::Step;

#[test]
fn validity() {
    let ca1 = Authority::root(authority("ca1"), &KEYS.root);
    let expired = |params| with(params, |it| it.not_after = date_time_ymd(2029, 12, 31));
    let early = |params| with(params, |it| it.not_before = date_time_ymd(2030, 1, 2));
    let mut table = Table::default();
    for role in Role::ALL {
        for (name, params) in [("appTE", expired(role.leaf())), ("appTV", early(role.leaf()))] {
            let app = self_signed(&params, &KEYS.leaf);
            let case = |name: &str| Case::new(name, role, &app).trust(&app);
            table.check(case(name), TimeInvalid);
            let overlooked = case(&format!("{name}, overlooked"))
                .options(|it| it.suppress_certificate_expired = true)
                .overlooked(Step::ValidityPeriod);
            table.check(overlooked, Good);
            let other = case(&format!("{name}, another thing overlooked"))
                .options(|it| it.suppress_issuer_certificate_expired = true);
            table.check(other, TimeInvalid);
            // Trust is checked first: a stranger does not learn that the certificate has expired.
            table.check(Case::new(&format!("{name}, unknown"), role, &app), Expect::Untrusted);
        }
        for (name, params) in [("ca1TE", expired(authority("ca1"))), ("ca1TV", early(authority("ca1")))] {
            let ca = Authority::root(params, &KEYS.root);
            let app = ca.issue(&role.leaf(), &KEYS.leaf);
            let case = |name: &str| Case::new(name, role, &app).trust(&ca.der).list(&ca.list(&[]));
            table.check(case(&format!("{name}_appT")), IssuerTimeInvalid);
            let overlooked = case(&format!("{name}_appT, overlooked"))
                .options(|it| it.suppress_issuer_certificate_expired = true)
                .overlooked(Step::ValidityPeriod);
            table.check(overlooked, Good);
        }
        let exact = with(role.leaf(), |it| {
            it.not_before = date_time_ymd(2030, 1, 1);
            it.not_after = date_time_ymd(2030, 1, 1);
        });
        let app = ca1.issue(&exact, &KEYS.leaf);
        table
            .check(Case::new("valid for this second", role, &app).trust(&ca1.der).list(&ca1.list(&[])), Good);
    }
    table.finish(39);
}

#[test]
fn host_names() {
    let server = |names: Vec<SanType>| {
        let names = [vec![uri(URI)], names].concat();
        self_signed(&with(Role::Server.leaf(), |it| it.subject_alt_names = names), &KEYS.leaf)
    };
    let mut table = Table::default();
    for (name, names, expect) in [
        ("the name", vec![dns(HOST)], Good),
        ("in capitals", vec![dns("PEER.Example")], Good),
        ("the second name", vec![dns("a.example"), dns(HOST)], Good),
        ("TSincorrect: another name", vec![dns("other.example")], HostNameInvalid),
        ("no name at all", vec![], HostNameInvalid),
        ("a longer name", vec![dns("peer.example.org")], HostNameInvalid),
        ("a part of the name", vec![dns("example")], HostNameInvalid),
        ("a wildcard", vec![dns("*.example")], HostNameInvalid),
        ("only an address", vec![SanType::IpAddress([10, 0, 0, 1].into())], HostNameInvalid),
        ("an empty name", vec![dns("")], HostNameInvalid),
    ] {
        let app = server(names);
        table.check(Case::new(name, Role::Server, &app).trust(&app), expect);
        // Servers do not check host names of clients.
        table.check(Case::new(name, Role::Client, &app).trust(&app), Good);
        if expect == HostNameInvalid {
            let overlooked = Case::new(&format!("{name}, overlooked"), Role::Server, &app)
                .trust(&app)
                .options(|it| it.suppress_host_name_invalid = true)
                .overlooked(Step::HostName);
            table.check(overlooked, Good);
        }
    }
    table.finish(26);
}

#[test]
fn addresses() {
    use taktwerk_crypto::certificate::{Certificate, names_host};
    let names = vec![
        uri(URI),
        SanType::IpAddress([10, 0, 0, 1].into()),
        SanType::IpAddress("fe80::1".parse().unwrap()),
        dns("peer.example."),
        dns("10.0.0.2"),
    ];
    let der = self_signed(&with(Role::Server.leaf(), |it| it.subject_alt_names = names), &KEYS.leaf);
    let certificate = Certificate::from_der(&der).unwrap();
    for host in
        ["10.0.0.1", "fe80::1", "[fe80::1]", "fe80:0:0::0001", "peer.example", "PEER.EXAMPLE.", "10.0.0.2"]
    {
        assert!(names_host(&certificate, host), "TSip {host}");
    }
    for host in ["10.0.0.3", "", ".", "[]", "fe80::2", "peer", "xpeer.example", "10.0.0.1.", "[10.0.0.1"] {
        assert!(!names_host(&certificate, host), "{host}");
    }
}

#[test]
fn application_uris() {
    let app = |uris: &[&str]| {
        let names = uris.iter().map(|text| uri(text)).chain([dns(HOST)]).collect();
        self_signed(&with(Role::Client.leaf(), |it| it.subject_alt_names = names), &KEYS.leaf)
    };
    let mut table = Table::default();
    for role in [Role::Client, Role::Server] {
        for (name, uris, expect) in [
            ("the ApplicationUri", &[URI][..], Good),
            ("TSuri: another one", &["urn:test:other"], UriInvalid),
            ("one in which it is contained", &["urn:test:peer2"], UriInvalid),
            ("a part of it", &["urn:test"], UriInvalid),
            ("in capitals", &["URN:TEST:PEER"], UriInvalid),
            ("with a slash behind", &["urn:test:peer/"], UriInvalid),
            ("none", &[], UriInvalid),
            ("two", &[URI, "urn:test:other"], UriInvalid),
            ("two, the right one last", &["urn:test:other", URI], UriInvalid),
            ("twice the same", &[URI, URI], UriInvalid),
            ("an empty one", &[""], UriInvalid),
        ] {
            let der = app(uris);
            table.check(Case::new(name, role, &der).trust(&der), expect);
            let suppressed = Case::new(&format!("{name}, everything overlooked"), role, &der).trust(&der);
            table.check(suppressed.options(|it| it.suppress_host_name_invalid = true), expect);
            // Before CreateSession the expected URI is not known, but there must be one.
            let unknown = Case::new(&format!("{name}, not known yet"), role, &der).trust(&der).uri(None);
            table.check(unknown, if uris.len() == 1 { Good } else { UriInvalid });
        }
    }
    table.finish(66);
}

#[test]
fn uses() {
    use KeyUsagePurpose::{ContentCommitment, DataEncipherment, DigitalSignature, KeyEncipherment};
    let mut table = Table::default();
    let rsa = &KEYS.rsa2048;
    let all = [DigitalSignature, ContentCommitment, KeyEncipherment, DataEncipherment];
    for role in [Role::Server, Role::Client] {
        for missing in all {
            let usages = all.iter().copied().filter(|usage| *usage != missing).collect();
            let app = self_signed(&with(role.rsa_leaf(), |it| it.key_usages = usages), rsa);
            let case = || Case::new(&format!("RSA without {missing:?}"), role, &app).trust(&app);
            table.check(case(), UseNotAllowed);
            // rcgen marks keyUsage critical, so it is mandatory.
            table.check(case().options(|it| it.suppress_use_not_allowed = true), UseNotAllowed);
        }
        let app = self_signed(&with(role.leaf(), |it| it.key_usages = vec![ContentCommitment]), &KEYS.leaf);
        table.check(Case::new("ECC without digitalSignature", role, &app).trust(&app), UseNotAllowed);
        let app = self_signed(&with(role.leaf(), |it| it.key_usages = vec![]), &KEYS.leaf);
        table.check(Case::new("without keyUsage", role, &app).trust(&app), UseNotAllowed);
        let overlooked = Case::new("without keyUsage, overlooked", role, &app).trust(&app);
        let overlooked = overlooked.options(|it| it.suppress_use_not_allowed = true).overlooked(Step::Usage);
        table.check(overlooked, Good);
        let app = self_signed(&with(role.leaf(), |it| it.extended_key_usages = vec![]), &KEYS.leaf);
        table.check(Case::new("without extendedKeyUsage", role, &app).trust(&app), UseNotAllowed);
        for (name, usage, expect) in [
            ("only clientAuth", ExtendedKeyUsagePurpose::ClientAuth, (UseNotAllowed, Good)),
            ("only serverAuth", ExtendedKeyUsagePurpose::ServerAuth, (Good, UseNotAllowed)),
            (
                "only emailProtection",
                ExtendedKeyUsagePurpose::EmailProtection,
                (UseNotAllowed, UseNotAllowed),
            ),
        ] {
            let app = self_signed(&with(role.leaf(), |it| it.extended_key_usages = vec![usage]), &KEYS.leaf);
            let expect = if role == Role::Server { expect.0 } else { expect.1 };
            table.check(Case::new(name, role, &app).trust(&app), expect);
        }
    }
    for role in Role::ALL {
        let ca1 = Authority::root(authority("ca1"), &KEYS.root);
        let as_authority = with(role.leaf(), |it| it.is_ca = IsCa::Ca(BasicConstraints::Constrained(0)));
        let app = ca1.issue(&as_authority, &KEYS.leaf);
        let case =
            Case::new("an issued one marked as authority", role, &app).trust(&ca1.der).list(&ca1.list(&[]));
        table.check(case, UseNotAllowed);
        let app = self_signed(&as_authority, &KEYS.leaf);
        table.check(Case::new("a self-signed one marked as authority", role, &app).trust(&app), Good);
        let unknown = extension(&[1, 3, 6, 1, 4, 1, 99999, 1], true, &[5, 0]);
        let app = self_signed(&with(role.leaf(), |it| it.custom_extensions = vec![unknown]), &KEYS.leaf);
        let case = || Case::new("an unknown critical extension", role, &app).trust(&app);
        table.check(case(), UseNotAllowed);
        table.check(case().options(|it| it.suppress_use_not_allowed = true), UseNotAllowed);
        let harmless = extension(&[1, 3, 6, 1, 4, 1, 99999, 1], false, &[5, 0]);
        let app = self_signed(&with(role.leaf(), |it| it.custom_extensions = vec![harmless]), &KEYS.leaf);
        table.check(Case::new("an unknown extension", role, &app).trust(&app), Good);
    }
    let app = self_signed(&with(Role::User.leaf(), |it| it.key_usages = vec![KeyEncipherment]), &KEYS.leaf);
    table.check(Case::new("a user who may not sign", Role::User, &app).trust(&app), UseNotAllowed);
    // Certificates created by `openssl req -x509`.
    let plain = with(Role::User.leaf(), |it| {
        it.key_usages = vec![];
        it.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    });
    let app = self_signed(&plain, &KEYS.leaf);
    table.check(Case::new("a user without keyUsage", Role::User, &app).trust(&app), Good);
    table.check(Case::new("a stranger without keyUsage", Role::User, &app), Expect::Untrusted);
    table.finish(46);
}

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("fixtures/", $name, ".der")).as_slice()
    };
}

#[test]
fn keys_and_hashes() {
    use SecurityPolicy as Policy;
    let mut table = Table::default();
    for role in [Role::Server, Role::Client] {
        for (name, der) in [
            ("Sha1_1024", fixture!("sha1_1024")),
            ("Sha1_2048", fixture!("sha1_2048")),
            ("Sha256_1024", fixture!("sha256_1024")),
            ("Sha256_8192", fixture!("sha256_8192")),
        ] {
            let case = |name: &str| Case::new(name, role, der).trust(der);
            table.check(case(name), PolicyCheckFailed);
            let overlooked = case(&format!("{name}, overlooked"));
            let overlooked = overlooked.options(|it| it.suppress_policy_check_failed = true);
            table.check(overlooked.overlooked(Step::SecurityPolicy), Good);
        }
        for (name, der) in [
            ("MD5", fixture!("md5_2048")),
            ("brainpool, which the library does not carry", fixture!("brainpool")),
            ("Ed448, which the library does not carry", fixture!("ed448")),
            ("a curve by explicit parameters (CVE-2020-0601)", fixture!("explicit_curve")),
            ("P-521", fixture!("p521")),
        ] {
            let case = || Case::new(name, role, der).trust(der);
            table.check(case(), PolicyCheckFailed);
            table.check(case().options(|it| it.suppress_policy_check_failed = true), PolicyCheckFailed);
        }
        let pss = fixture!("pss_2048");
        table.check(Case::new("PSS signature", role, pss).trust(pss), Good);
        let rsa = |key| self_signed(&role.rsa_leaf(), key);
        for (name, app) in [
            ("Sha256_2048", rsa(&KEYS.rsa2048)),
            ("Sha256_3072", rsa(&KEYS.rsa3072)),
            ("Sha256_4096", rsa(&KEYS.rsa4096)),
        ] {
            let case = |policy| Case::new(name, role, &app).trust(&app).policy(policy);
            table.check(case(Policy::Basic256Sha256), Good);
            table.check(case(Policy::Aes256_Sha256_RsaPss), Good);
            table.check(case(Policy::RSA_DH_AesGcm), Good);
            table.check(case(Policy::ECC_nistP256), PolicyCheckFailed);
            // Deprecated policy, limited to short keys.
            let expect = if name == "Sha256_2048" { Good } else { PolicyCheckFailed };
            table.check(case(Policy::Basic256), expect);
        }
        let ecc = |key| self_signed(&role.leaf(), key);
        let p256 = ecc(&KEYS.leaf);
        let p384 = ecc(&KEYS.p384);
        let ed25519 = ecc(&KEYS.ed25519);
        for (name, app, policy, expect) in [
            ("P-256", &p256, Policy::ECC_nistP256_AesGcm, Good),
            ("P-256 for P-384", &p256, Policy::ECC_nistP384_AesGcm, PolicyCheckFailed),
            ("P-256 for brainpool", &p256, Policy::ECC_brainpoolP256r1, PolicyCheckFailed),
            ("P-256 for RSA", &p256, Policy::Basic256Sha256, PolicyCheckFailed),
            ("P-384", &p384, Policy::ECC_nistP384, Good),
            ("P-384 for P-256", &p384, Policy::ECC_nistP256, PolicyCheckFailed),
            ("Ed25519", &ed25519, Policy::ECC_curve25519_ChaChaPoly, Good),
            ("Ed25519 for P-256", &ed25519, Policy::ECC_nistP256, PolicyCheckFailed),
        ] {
            table.check(Case::new(name, role, app).trust(app).policy(policy), expect);
        }
        let weak = Authority::root(authority("weak"), &KEYS.rsa2048);
        let app = weak.issue(&role.rsa_leaf(), &KEYS.rsa4096);
        let case = Case::new("a 2048-bit authority for a 4096-bit key", role, &app);
        table.check(case.trust(&weak.der).list(&weak.list(&[])), PolicyCheckFailed);
    }
    // A user's key may be of another kind than that of the channel's policy.
    let user = self_signed(&Role::User.leaf(), &KEYS.leaf);
    let case = Case::new("a user's P-256 key on an RSA channel", Role::User, &user);
    table.check(case.trust(&user).policy(Policy::Basic256Sha256), Good);
    table.finish(86);
}

#[test]
fn altered_certificates() {
    let mut table = Table::default();
    let ca1 = Authority::root(authority("ca1"), &KEYS.root);
    for role in Role::ALL {
        let app = ca1.issue(&role.leaf(), &KEYS.leaf);
        let known = |case: Case| case.trust(&ca1.der).list(&ca1.list(&[]));
        let mut altered = app.clone();
        *altered.last_mut().unwrap() ^= 1;
        table.check(known(Case::new("the signature altered", role, &altered)), Invalid);
        let altered = crate::forge::replaced(&app, b"peer\x31", b"peex\x31");
        table.check(known(Case::new("the name altered", role, &altered)), Invalid);
        let own = self_signed(&role.leaf(), &KEYS.leaf);
        let mut altered = own.clone();
        *altered.last_mut().unwrap() ^= 1;
        table.check(Case::new("self-signed, altered", role, &altered).trust(&altered), Invalid);
        table.check(
            Case::new("self-signed, altered, the right one trusted", role, &altered).trust(&own),
            Invalid,
        );
        let impostor = Authority::root(authority("ca1"), &KEYS.other);
        let forged = impostor
            .issue(&with(role.leaf(), |it| it.use_authority_key_identifier_extension = false), &KEYS.leaf);
        table.check(known(Case::new("by an impostor of ca1", role, &forged)), Invalid);
    }
    table.finish(15);
}
