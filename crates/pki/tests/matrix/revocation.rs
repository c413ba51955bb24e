//! Revocation lists: search, validity and effect.

use crate::forge::{Authority, KEYS, Role, authority, with};
use crate::table::Expect::{
    Good, IssuerRevocationUnknown, IssuerRevoked, RevocationUnknown, Revoked, TimeInvalid,
};
use crate::table::{Case, Table};
use rcgen::{KeyUsagePurpose, SerialNumber, date_time_ymd};
use taktwerk_crypto::certificate::Step;

/// The serial number of every leaf, and of ca2.
const LEAF: &[u8] = &[0x11, 0x22];
const CA2: &[u8] = &[0x33];

#[test]
fn revoked() {
    let mut table = Table::default();
    for role in Role::ALL {
        let ca1 = Authority::root(authority("ca1"), &KEYS.root);
        let ca2 = with(authority("ca2"), |it| it.serial_number = Some(SerialNumber::from_slice(CA2)));
        let ca2 = ca1.sub(ca2, &KEYS.sub);
        let app1 = ca1.issue(&role.leaf(), &KEYS.leaf);
        let app2 = ca2.issue(&role.leaf(), &KEYS.leaf);
        let one = |name: &str| Case::new(name, role, &app1).trust(&ca1.der);
        let two = |name: &str| Case::new(name, role, &app2).trust(&ca1.der).issuer(&ca2.der);
        table.check(one("ca1TC_appTR").trust(&app1).list(&ca1.list(&[LEAF])), Revoked);
        table.check(one("ca1TC_appUR").list(&ca1.list(&[LEAF])), Revoked);
        table.check(one("another one is revoked").list(&ca1.list(&[&[0x11, 0x23], &[0x11], &[0x22]])), Good);
        table.check(one("many are revoked").list(&ca1.list(&[&[1], &[0x7f, 1], LEAF, &[2, 2, 2]])), Revoked);
        table.check(two("ca1TC_ca2IC_appTR").list(&ca1.list(&[])).list(&ca2.list(&[LEAF])), Revoked);
        table.check(two("ca1TC_ca2TR_appT").list(&ca1.list(&[CA2])).list(&ca2.list(&[])), IssuerRevoked);
        table.check(two("both revoked").list(&ca1.list(&[CA2])).list(&ca2.list(&[LEAF])), Revoked);
        // The same serial number at another authority is another certificate.
        table.check(two("its number revoked by ca1").list(&ca1.list(&[LEAF])).list(&ca2.list(&[])), Good);
        let everything = one("ca1TC_appTR, everything overlooked").list(&ca1.list(&[LEAF])).options(|it| {
            it.suppress_revocation_status_unknown = true;
            it.suppress_issuer_revocation_status_unknown = true;
            it.suppress_use_not_allowed = true;
            it.disable_revocation_lists = true;
        });
        table.check(everything, Revoked);
        // The first failing step decides: the validity period is checked before revocation.
        let expired =
            ca1.issue(&with(role.leaf(), |it| it.not_after = date_time_ymd(2029, 7, 1)), &KEYS.leaf);
        let case = Case::new("expired and revoked", role, &expired).trust(&ca1.der).list(&ca1.list(&[LEAF]));
        table.check(case, TimeInvalid);
    }
    table.finish(30);
}

#[test]
fn invalid_lists_are_ignored() {
    let mut table = Table::default();
    for role in Role::ALL {
        let ca1 = Authority::root(authority("ca1"), &KEYS.root);
        let app = ca1.issue(&role.leaf(), &KEYS.leaf);
        let case = |name: &str| Case::new(name, role, &app).trust(&ca1.der);
        table.check(case("outdated").list(&ca1.list_of(&[], 2028, 2029)), RevocationUnknown);
        table.check(case("outdated, but it knew").list(&ca1.list_of(&[LEAF], 2028, 2029)), RevocationUnknown);
        let overlooked = case("outdated, but it knew; overlooked").list(&ca1.list_of(&[LEAF], 2028, 2029));
        let overlooked = overlooked.options(|it| it.suppress_revocation_status_unknown = true);
        table.check(overlooked.overlooked(Step::FindRevocationList), Revoked);
        table.check(case("from the future").list(&ca1.list_of(&[], 2031, 2032)), RevocationUnknown);
        let both = case("outdated and current").list(&ca1.list_of(&[], 2028, 2029)).list(&ca1.list(&[]));
        table.check(both, Good);
        let impostor = Authority::root(authority("ca1"), &KEYS.other);
        table.check(case("by an impostor").list(&impostor.list(&[])), RevocationUnknown);
        table.check(case("by an impostor, to harm").list(&impostor.list(&[LEAF])).list(&ca1.list(&[])), Good);
        let mut forged = ca1.list(&[]);
        *forged.last_mut().unwrap() ^= 1;
        table.check(case("altered").list(&forged), RevocationUnknown);
        let stranger = Authority::root(authority("stranger"), &KEYS.other);
        table.check(case("of somebody else").list(&stranger.list(&[])), RevocationUnknown);
        let no_lists = with(authority("ca1"), |it| it.key_usages = vec![KeyUsagePurpose::KeyCertSign]);
        let no_lists = Authority::root(no_lists, &KEYS.root);
        let app = no_lists.issue(&role.leaf(), &KEYS.leaf);
        let case = Case::new("by one who may not", role, &app).trust(&no_lists.der).list(&ca1.list(&[]));
        table.check(case, RevocationUnknown);
    }
    table.finish(30);
}

#[test]
fn unknown_revocation_may_be_overlooked() {
    let mut table = Table::default();
    for role in Role::ALL {
        let ca1 = Authority::root(authority("ca1"), &KEYS.root);
        let ca2 = ca1.sub(authority("ca2"), &KEYS.sub);
        let app = ca2.issue(&role.leaf(), &KEYS.leaf);
        let case = |name: &str| Case::new(name, role, &app).trust(&ca1.der).issuer(&ca2.der);
        let leaf_only = case("no lists, the leaf's overlooked");
        let leaf_only = leaf_only.options(|it| it.suppress_revocation_status_unknown = true);
        table.check(leaf_only.overlooked(Step::FindRevocationList), IssuerRevocationUnknown);
        let both = case("no lists, both overlooked").options(|it| {
            it.suppress_revocation_status_unknown = true;
            it.suppress_issuer_revocation_status_unknown = true;
        });
        table.check(both.overlooked(Step::FindRevocationList).overlooked(Step::FindRevocationList), Good);
        let disabled = case("no lists wanted").options(|it| it.disable_revocation_lists = true);
        table.check(disabled, Good);
    }
    table.finish(9);
}
