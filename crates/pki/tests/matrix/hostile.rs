//! Malicious certificates: loops, forged chains, broken lengths, endless chains, names that are paths.

use crate::forge::{Authority, KEYS, Role, authority, chain, named, now, replaced, self_signed, with};
use crate::table::Expect::{ChainIncomplete, Good, Invalid, Untrusted};
use crate::table::{Case, Table};
use rcgen::{DistinguishedName, DnType, KeyIdMethod};
use taktwerk_crypto::certificate::{
    AwsLcVerifier, CHAIN_BYTES_MAX, Certificate, SIGNATURE_CHECKS_MAX, TrustList, Validation,
    ValidationOptions, ValidationRequest,
};

/// A signed by B signed by A (CVE-2022-37013), longer circles, and a self-issued certificate with a foreign signature.
#[test]
fn loops() {
    let mut table = Table::default();
    for role in Role::ALL {
        // To sign each other, each needs the other's parameters only.
        let a = Authority { params: authority("a"), key: &KEYS.root, der: vec![] };
        let b = Authority { params: authority("b"), key: &KEYS.sub, der: vec![] };
        let c = Authority { params: authority("c"), key: &KEYS.other, der: vec![] };
        let a_by_b = b.issue(&a.params, a.key);
        let b_by_a = a.issue(&b.params, b.key);
        let app = a.issue(&role.leaf(), &KEYS.leaf);
        let sent = chain(&[&app, &a_by_b, &b_by_a]);
        table.check(Case::new("A by B by A, sent", role, &sent), ChainIncomplete);
        table.check(
            Case::new("A by B by A, trusted", role, &app).trust(&a_by_b).trust(&b_by_a),
            ChainIncomplete,
        );
        let a_by_c = c.issue(&a.params, a.key);
        let c_by_b = b.issue(&c.params, c.key);
        let sent = chain(&[&app, &a_by_c, &c_by_b, &b_by_a, &a_by_b]);
        table.check(Case::new("a longer circle", role, &sent), ChainIncomplete);
        let liar = with(named("liar"), |it| it.use_authority_key_identifier_extension = false);
        let stranger = Authority { params: named("liar"), key: &KEYS.other, der: vec![] };
        let liar = stranger.issue(&liar, &KEYS.leaf);
        table.check(Case::new("self-issued, not self-signed", role, &liar).trust(&liar), Invalid);
    }
    table.finish(12);
}

/// CVE-2022-29865: names that look alike, a forged AKI serial number, and two chain builders that disagree. Here there is one
/// builder, and it compares bytes.
#[test]
fn the_three_attacks_of_cve_2022_29865() {
    let mut table = Table::default();
    for role in Role::ALL {
        let trusted = Authority::root(authority("Plant CA"), &KEYS.root);
        let case = |name: &str, sent: &[u8]| {
            Case::new(name, role, sent).trust(&trusted.der).list(&trusted.list(&[]))
        };
        // 1: an authority whose name differs only in case.
        let shouting = Authority::root(authority("PLANT CA"), &KEYS.other);
        let app = shouting.issue(&role.leaf(), &KEYS.leaf);
        table.check(case("issuer's name in another case", &app), ChainIncomplete);
        table.check(case("… with the issuer sent along", &chain(&[&app, &shouting.der])), Untrusted);
        // 2: the trusted authority's name and key identifier, but another key.
        let forged = with(authority("Plant CA"), |it| {
            let der = Certificate::from_der(&trusted.der).unwrap();
            it.key_identifier_method =
                KeyIdMethod::PreSpecified(der.subject_key_identifier().unwrap().to_vec());
        });
        let forger = Authority::root(forged, &KEYS.other);
        let app = forger
            .issue(&with(role.leaf(), |it| it.use_authority_key_identifier_extension = true), &KEYS.leaf);
        table.check(case("forged name and key identifier", &app), Invalid);
        table.check(case("… with the forger sent along", &chain(&[&app, &forger.der])), Untrusted);
        // 3: the trusted certificate sent along, as if it were the issuer.
        table.check(case("… with the trusted one sent along", &chain(&[&app, &trusted.der])), Invalid);
        let both = chain(&[&app, &trusted.der, &forger.der]);
        table.check(case("… with both sent along", &both), Untrusted);
    }
    table.finish(18);
}

#[test]
fn long_chains() {
    let mut table = Table::default();
    let keys = [&KEYS.root, &KEYS.sub, &KEYS.other];
    for role in Role::ALL {
        // The root first, each issued by the one before; the last one issues the leaf.
        let chain_of = |len: usize| {
            let mut all = vec![Authority::root(authority("ca0"), keys[0])];
            for number in 1..len - 1 {
                let next = all[number - 1].sub(authority(&format!("ca{number}")), keys[number % 3]);
                all.push(next);
            }
            let app = all[len - 2].issue(&role.leaf(), &KEYS.leaf);
            let mut sent = vec![app];
            sent.extend(all.iter().rev().map(|ca| ca.der.clone()));
            (all, sent)
        };
        for (len, expect) in [(9, Good), (10, Good), (11, Invalid), (50, Invalid)] {
            let (all, sent) = chain_of(len);
            let case = Case::new(&format!("a chain of {len}"), role, &sent.concat()).trust(&all[0].der);
            table.check(case.options(|it| it.disable_revocation_lists = true), expect);
            let from_store =
                Case::new(&format!("a chain of {len}, known"), role, &sent[0]).trust(&all[0].der);
            let from_store = all.iter().fold(from_store, |case, ca| case.issuer(&ca.der));
            let expect = if len > 10 { ChainIncomplete } else { Good };
            table.check(from_store.options(|it| it.disable_revocation_lists = true), expect);
        }
    }
    table.finish(24);
}

#[test]
fn names_that_are_paths() {
    let mut table = Table::default();
    for role in Role::ALL {
        for name in
            ["../../trusted/certs/x", "..\\..\\x", "/etc/passwd", "a\nb", "%2e%2e", "CON", "\u{202e}gpj"]
        {
            let mut distinguished = DistinguishedName::new();
            distinguished.push(DnType::CommonName, name);
            let params = with(role.leaf(), |it| it.distinguished_name = distinguished);
            let app = self_signed(&params, &KEYS.leaf);
            table.check(Case::new(name, role, &app), Untrusted);
            table.check(Case::new(name, role, &app).trust(&app), Good);
            let text = Certificate::from_der(&app).unwrap().subject_text();
            assert!(!text.contains(['\n', '\u{202e}']), "{text}");
        }
    }
    table.finish(42);
}

/// Edited bytes: none of these certificates is accepted.
#[test]
fn broken_der() {
    let mut table = Table::default();
    let app = self_signed(&Role::Client.leaf(), &KEYS.leaf);
    let (head, body) = app.split_at(4);
    let long_form = |prefix: &[u8]| [prefix, body].concat();
    let junk = |bytes: &[u8]| bytes.to_vec();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", vec![]),
        ("one byte", junk(&[0x30])),
        ("text", junk(b"-----BEGIN CERTIFICATE-----")),
        ("zeros", vec![0; 300]),
        ("an empty sequence", junk(&[0x30, 0])),
        ("length 2^32 - 1", long_form(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff])),
        ("length 2^31", long_form(&[0x30, 0x84, 0x80, 0, 0, 0])),
        ("length 2^64 - 1", long_form(&[0x30, 0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])),
        ("length of 127 bytes", long_form(&[0x30, 0xff, 1, 2])),
        ("indefinite length", [&[0x30, 0x80], body, &[0, 0]].concat()),
        ("length with a leading zero", long_form(&[0x30, 0x83, 0, head[2], head[3]])),
        ("one byte too few", app[..app.len() - 1].to_vec()),
        ("one byte too many", [&app[..], &[0]].concat()),
        ("zeros behind", [&app[..], &[0; 16]].concat()),
        ("half of it", app[..app.len() / 2].to_vec()),
        ("junk behind", [&app[..], b"junk"].concat()),
        ("another tag", [&[0x31], &app[1..]].concat()),
        ("version 1", replaced(&app, &[0xa0, 3, 2, 1, 2], &[0xa0, 3, 2, 1, 0])),
        ("version 5", replaced(&app, &[0xa0, 3, 2, 1, 2], &[0xa0, 3, 2, 1, 4])),
        ("month 13", replaced(&app, b"290101000000Z", b"291301000000Z")),
        ("a time without Z", replaced(&app, b"290101000000Z", b"2901010000000")),
        ("a URI that is not ASCII", replaced(&app, b"urn:test:peer", b"urn:t\xc3\xa9t:peer")),
        ("a zero byte in the URI", replaced(&app, b"urn:test:peer", b"urn:test\0peer")),
        ("a zero byte in the host name", replaced(&app, b"peer.example", b"peer\0example")),
        ("an even boolean", replaced(&app, &[0x55, 0x1d, 0x0f, 1, 1, 0xff], &[0x55, 0x1d, 0x0f, 1, 1, 2])),
        ("the same extension twice", replaced(&app, &[0x55, 0x1d, 0x25], &[0x55, 0x1d, 0x11])),
        ("longer than 64 KiB", app.repeat(CHAIN_BYTES_MAX / app.len() + 1)),
        ("eleven certificates", app.repeat(11)),
    ];
    for (name, sent) in &cases {
        for role in [Role::Client, Role::Server] {
            table.check(Case::new(name, role, sent).trust(&app), Invalid);
        }
    }
    table.finish(56);
}

/// The work is bounded for sent and for known certificates: many authorities of one name, all with wrong keys.
#[test]
fn many_candidates() {
    let crowd: Vec<Vec<u8>> = (0..200u8)
        .map(|number| {
            let params = with(authority("ca1"), |it| {
                it.serial_number = Some(rcgen::SerialNumber::from_slice(&[1, number]));
                it.use_authority_key_identifier_extension = false;
            });
            self_signed(&params, &KEYS.other)
        })
        .collect();
    let mut trust = TrustList::new();
    crowd.iter().for_each(|der| trust.trust(Certificate::from_der(der).unwrap()));
    let ca1 = Authority::root(authority("ca1"), &KEYS.root);
    let app = ca1.issue(
        &with(Role::Client.leaf(), |it| it.use_authority_key_identifier_extension = false),
        &KEYS.leaf,
    );
    let sent = chain(&[&app, &crowd[0], &crowd[1], &crowd[2]]);
    let validation = Validation {
        trust: &trust,
        verifier: &AwsLcVerifier,
        options: ValidationOptions::default(),
        now: now(),
        exhaustive: true,
    };
    let purpose = Role::Client.purpose();
    let report = validation.run(&sent, &ValidationRequest::new(&purpose));
    assert!(report.outcome().is_err());
    assert_eq!(report.signature_checks(), SIGNATURE_CHECKS_MAX);
}
