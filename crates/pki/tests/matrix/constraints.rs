//! Constraints on authorities: path lengths, keyCertSign, and applications that issue certificates.

use crate::forge::{Authority, KEYS, Role, authority, chain, named, uri, with};
use crate::table::Expect::{Good, IssuerUseNotAllowed, PolicyCheckFailed, Untrusted};
use crate::table::{Case, Table};
use rcgen::{BasicConstraints, CidrSubnet, GeneralSubtree, IsCa, KeyUsagePurpose, NameConstraints};
use taktwerk_crypto::certificate::Step;

fn limited(name: &str, path_len: u8) -> rcgen::CertificateParams {
    with(authority(name), |it| it.is_ca = IsCa::Ca(BasicConstraints::Constrained(path_len)))
}

#[test]
fn path_lengths() {
    let mut table = Table::default();
    for role in Role::ALL {
        for (name, limit1, limit2, expect) in [
            ("1 over 0", 1, 0, Good),
            ("0 over 0", 0, 0, IssuerUseNotAllowed),
            ("0 over 5", 0, 5, IssuerUseNotAllowed),
            ("5 over 0", 5, 0, Good),
        ] {
            let ca1 = Authority::root(limited("ca1", limit1), &KEYS.root);
            let ca2 = ca1.sub(limited("ca2", limit2), &KEYS.sub);
            let app = ca2.issue(&role.leaf(), &KEYS.leaf);
            let case = || {
                let case = Case::new(&format!("pathLen {name}"), role, &app);
                case.trust(&ca1.der).issuer(&ca2.der).list(&ca1.list(&[])).list(&ca2.list(&[]))
            };
            table.check(case(), expect);
            table.check(case().options(|it| it.suppress_use_not_allowed = true), expect);
        }
        let ca = Authority::root(limited("ca1", 0), &KEYS.root);
        let app = ca.issue(&role.leaf(), &KEYS.leaf);
        table.check(Case::new("pathLen 0, no ca2", role, &app).trust(&ca.der).list(&ca.list(&[])), Good);
    }
    table.finish(27);
}

#[test]
fn who_may_issue() {
    let mut table = Table::default();
    for role in Role::ALL {
        let case = |name: &str, ca: &Authority| {
            let app = ca.issue(&role.leaf(), &KEYS.leaf);
            let case = Case::new(name, role, &app).trust(&ca.der);
            case.options(|it| it.suppress_revocation_status_unknown = true)
        };
        let no_sign = with(authority("ca1"), |it| it.key_usages = vec![KeyUsagePurpose::CrlSign]);
        let no_sign = Authority::root(no_sign, &KEYS.root);
        table.check(case("no keyCertSign", &no_sign), IssuerUseNotAllowed);
        let suppressed = case("no keyCertSign, overlooked", &no_sign);
        table.check(suppressed.options(|it| it.suppress_use_not_allowed = true), IssuerUseNotAllowed);

        let no_usage = Authority::root(with(authority("ca1"), |it| it.key_usages = vec![]), &KEYS.root);
        table.check(case("no keyUsage", &no_usage), IssuerUseNotAllowed);
        let overlooked = case("no keyUsage, overlooked", &no_usage);
        let overlooked = overlooked.options(|it| it.suppress_use_not_allowed = true);
        table.check(overlooked.overlooked(Step::Usage).overlooked(Step::FindRevocationList), Good);
        for (name, is_ca) in [("cA is false", IsCa::ExplicitNoCa), ("no basicConstraints", IsCa::NoCa)] {
            let ca = Authority::root(with(authority("ca1"), |it| it.is_ca = is_ca), &KEYS.root);
            table.check(case(name, &ca), IssuerUseNotAllowed);
            let overlooked = case(name, &ca).options(|it| it.suppress_use_not_allowed = true);
            table.check(overlooked, IssuerUseNotAllowed);
        }
        // A trusted application is not an authority, whatever its certificate says (Part 6 §6.2.2).
        let application =
            with(authority("application"), |it| it.subject_alt_names = vec![uri("urn:test:app")]);
        table.check(
            case("a trusted application as issuer", &Authority::root(application, &KEYS.root)),
            IssuerUseNotAllowed,
        );
        let constraints = NameConstraints {
            permitted_subtrees: vec![GeneralSubtree::IpAddress(CidrSubnet::V4(
                [10, 0, 0, 0],
                [255, 0, 0, 0],
            ))],
            excluded_subtrees: vec![],
        };
        let named_only = with(authority("ca1"), |it| it.name_constraints = Some(constraints));
        table.check(case("nameConstraints", &Authority::root(named_only, &KEYS.root)), IssuerUseNotAllowed);
    }
    table.finish(30);
}

/// An authority with several certificates: the chain is found through any known one.
#[test]
fn renewed_authorities() {
    let mut table = Table::default();
    for role in Role::ALL {
        let old = Authority::root(
            with(authority("ca1"), |it| it.not_after = rcgen::date_time_ymd(2029, 6, 1)),
            &KEYS.root,
        );
        let new = Authority::root(
            with(authority("ca1"), |it| it.serial_number = Some(rcgen::SerialNumber::from_slice(&[9]))),
            &KEYS.root,
        );
        let app = new.issue(&role.leaf(), &KEYS.leaf);
        let case = Case::new("old and new certificate of one key, new trusted", role, &app);
        table.check(case.issuer(&old.der).trust(&new.der).list(&new.list(&[])), Good);
        // The same name with another key: this candidate is tried and skipped.
        let other = Authority::root(authority("ca1"), &KEYS.other);
        let case = Case::new("another authority of the same name", role, &app);
        table.check(case.trust(&other.der).trust(&new.der).list(&new.list(&[])), Good);
        let case = Case::new("another authority of the same name is trusted", role, &app);
        table.check(case.trust(&other.der).issuer(&new.der).list(&new.list(&[])), Untrusted);
        // Cross-certification: two possible chains, one of which leads to a trusted authority.
        let trusted = Authority::root(authority("trusted"), &KEYS.sub);
        let cross = trusted.issue(&authority("ca1"), &KEYS.root);
        let case = Case::new("cross-certified", role, &chain(&[&app, &cross]));
        let case = case.issuer(&new.der).trust(&trusted.der);
        table.check(case.list(&new.list(&[])).list(&trusted.list(&[])), Good);
        let leaf_of_leaf = named("leaf");
        let weak = Authority::root(authority("p256"), &KEYS.root);
        let app = weak.issue(&leaf_of_leaf, &KEYS.p384);
        let case = Case::new("a P-256 authority for a P-384 key", role, &app).trust(&weak.der);
        table.check(case.list(&weak.list(&[])), PolicyCheckFailed);
    }
    table.finish(15);
}
