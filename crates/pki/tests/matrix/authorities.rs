//! Combinations of trust: the application, its authorities, and their revocation lists.

use crate::forge::{Authority, KEYS, Role, authority, chain, self_signed};
use crate::table::Expect::{ChainIncomplete, Good, IssuerRevocationUnknown, RevocationUnknown, Untrusted};
use crate::table::{Case, Expect, Table};

/// How an authority is known.
const KNOWN: [&str; 5] = ["T", "I", "U", "TC", "IC"];

fn known(case: Case, how: &str, of: &Authority) -> Case {
    let case = match how.chars().next() {
        Some('T') => case.trust(&of.der),
        Some('I') => case.issuer(&of.der),
        _ => case,
    };
    if how.ends_with('C') { case.list(&of.list(&[])) } else { case }
}

#[test]
fn two_authorities() {
    const CI: Expect = ChainIncomplete;
    const RU: Expect = RevocationUnknown;
    const IU: Expect = IssuerRevocationUnknown;
    const UT: Expect = Untrusted;
    // Rows: ca1 is T, I, U, TC, IC. Columns: ca2 likewise.
    let app_trusted = [
        [RU, RU, CI, IU, IU],
        [RU, RU, CI, IU, IU],
        [CI, CI, CI, CI, CI],
        [RU, RU, CI, Good, Good],
        [RU, RU, CI, Good, Good],
    ];
    let app_unknown = [
        [RU, RU, CI, IU, IU],
        [RU, UT, CI, IU, UT],
        [CI, CI, CI, CI, CI],
        [RU, RU, CI, Good, Good],
        [RU, UT, CI, Good, UT],
    ];
    let ca1 = Authority::root(authority("ca1"), &KEYS.root);
    let ca2 = ca1.sub(authority("ca2"), &KEYS.sub);
    let mut table = Table::default();
    for role in Role::ALL {
        let app = ca2.issue(&role.leaf(), &KEYS.leaf);
        for (row, how1) in KNOWN.into_iter().enumerate() {
            for (column, how2) in KNOWN.into_iter().enumerate() {
                let case = |app_how| {
                    let case = Case::new(&format!("ca1{how1}_ca2{how2}_app{app_how}"), role, &app);
                    known(known(case, how1, &ca1), how2, &ca2)
                };
                table.check(case("T").trust(&app), app_trusted[row][column]);
                table.check(case("U"), app_unknown[row][column]);
            }
        }
    }
    table.finish(150);
}

#[test]
fn one_authority() {
    let ca1 = Authority::root(authority("ca1"), &KEYS.root);
    let expected = [
        ("T", RevocationUnknown, RevocationUnknown),
        ("I", RevocationUnknown, Untrusted),
        ("U", ChainIncomplete, ChainIncomplete),
        ("TC", Good, Good),
        ("IC", Good, Untrusted),
    ];
    let mut table = Table::default();
    for role in Role::ALL {
        let app = ca1.issue(&role.leaf(), &KEYS.leaf);
        for (how, trusted, unknown) in expected {
            let case = |app_how| known(Case::new(&format!("ca1{how}_app{app_how}"), role, &app), how, &ca1);
            table.check(case("T").trust(&app), trusted);
            table.check(case("U"), unknown);
        }
    }
    table.finish(30);
}

#[test]
fn no_authority() {
    let mut table = Table::default();
    for role in Role::ALL {
        let app = self_signed(&role.leaf(), &KEYS.leaf);
        table.check(Case::new("appT", role, &app).trust(&app), Good);
        table.check(Case::new("appU", role, &app), Untrusted);
        table.check(Case::new("appI", role, &app).issuer(&app), Untrusted);
        let twin = self_signed(&role.leaf(), &KEYS.other);
        table.check(Case::new("appU, one of the same name trusted", role, &app).trust(&twin), Untrusted);
    }
    table.finish(12);
}

/// Issuers sent by the peer complete the chain, and give no trust.
#[test]
fn chains_that_are_sent() {
    let ca1 = Authority::root(authority("ca1"), &KEYS.root);
    let ca2 = ca1.sub(authority("ca2"), &KEYS.sub);
    let mut table = Table::default();
    for role in Role::ALL {
        let app = ca2.issue(&role.leaf(), &KEYS.leaf);
        let lists = |case: Case| case.list(&ca1.list(&[])).list(&ca2.list(&[]));
        let case = |name: &str, sent: &[&[u8]]| lists(Case::new(name, role, &chain(sent)));
        let whole = [app.as_slice(), &ca2.der, &ca1.der];
        table.check(case("all sent, nothing known", &whole), Untrusted);
        table.check(case("all sent, root trusted", &whole).trust(&ca1.der), Good);
        table.check(case("all sent, root an issuer", &whole).issuer(&ca1.der), Untrusted);
        table.check(case("all sent, middle trusted", &whole).trust(&ca2.der), Good);
        table.check(case("all sent, app trusted", &whole).trust(&app), Good);
        table.check(case("middle sent, root trusted", &[&app, &ca2.der]).trust(&ca1.der), Good);
        table.check(case("root sent, middle missing", &[&app, &ca1.der]).trust(&ca1.der), ChainIncomplete);
        table.check(case("sent in disorder", &[&app, &ca1.der, &ca2.der]).trust(&ca1.der), Good);
        table.check(case("sent twice", &[&app, &ca2.der, &ca2.der, &ca1.der]).trust(&ca1.der), Good);
        let stranger = Authority::root(authority("stranger"), &KEYS.other);
        table.check(
            case("a trusted stranger sent along", &[&app, &stranger.der]).trust(&stranger.der),
            ChainIncomplete,
        );
    }
    table.finish(30);
}
