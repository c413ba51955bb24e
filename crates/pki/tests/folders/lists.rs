//! Trust lists whose files have several entries: chains, and revocation lists in PEM.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer, KeyIdMethod,
    KeyPair, KeyUsagePurpose, SerialNumber, date_time_ymd,
};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use taktwerk_crypto::certificate::{Certificate, RevocationList, thumbprint};
use taktwerk_pki::{Folder, Group, Lists, Store, thumbprint_text};

const GROUP: Group = Group::Applications;
const AUTHORITIES: usize = 5;

/// An authority, and two revocation lists of it: an old and a new one.
struct Authority {
    certificate: Certificate,
    lists: [RevocationList; 2],
}

fn authorities() -> &'static [Authority] {
    static ALL: OnceLock<Vec<Authority>> = OnceLock::new();
    ALL.get_or_init(|| (0..AUTHORITIES).map(|number| authority(&format!("Authority {number}"))).collect())
}

fn authority(name: &str) -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, name);
    let certificate = Certificate::from_der(params.self_signed(&key).unwrap().der()).unwrap();
    let issuer = Issuer::new(params, key);
    let lists = [1, 2].map(|number| {
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020 + i32::from(number), 1, 1),
            next_update: date_time_ymd(2050, 1, 1),
            crl_number: SerialNumber::from_slice(&[number]),
            issuing_distribution_point: None,
            revoked_certs: Vec::new(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        RevocationList::from_der(list.signed_by(&issuer).unwrap().der()).unwrap()
    });
    Authority { certificate, lists }
}

fn certificate(number: usize) -> &'static Certificate {
    &authorities()[number % AUTHORITIES].certificate
}

fn revocation_list(number: usize) -> &'static RevocationList {
    &authorities()[number % AUTHORITIES].lists[number / AUTHORITIES % 2]
}

/// A file: its directory, whether it is named by the thumbprint of its first entry, and the numbers of its entries.
#[derive(Debug, Clone)]
struct Layout {
    folder: Folder,
    by_thumbprint: bool,
    entries: Vec<usize>,
}

impl Layout {
    fn write(&self, store: &Store, number: usize) {
        let (kind, ders): (_, Vec<&[u8]>) = if self.folder.holds_lists() {
            ("X509 CRL", self.entries.iter().map(|it| revocation_list(*it).der()).collect())
        } else {
            ("CERTIFICATE", self.entries.iter().map(|it| certificate(*it).der()).collect())
        };
        let name = if self.by_thumbprint {
            let extension = if self.folder.holds_lists() { "crl" } else { "der" };
            format!("{}.{extension}", thumbprint_text(&thumbprint(ders[0])))
        } else {
            format!("file-{number}.pem")
        };
        let text: String = ders.iter().map(|der| pem::encode(&pem::Pem::new(kind, *der))).collect();
        std::fs::write(store.folder(GROUP, self.folder).join(name), text).unwrap();
    }
}

fn layouts() -> impl Strategy<Value = Vec<Layout>> {
    let layout = (select(Folder::DECIDING.to_vec()), any::<bool>(), vec(0..2 * AUTHORITIES, 1..=3));
    let layout =
        layout.prop_map(|(folder, by_thumbprint, entries)| Layout { folder, by_thumbprint, entries });
    vec(layout, 0..8)
}

/// The numbers of the entries of each list.
fn wanted() -> impl Strategy<Value = Lists> {
    let certificates = || vec(0..AUTHORITIES, 0..6);
    let lists = || vec(0..2 * AUTHORITIES, 0..6);
    (certificates(), lists(), certificates(), lists()).prop_map(|(trusted, lists, issuers, issuer_lists)| {
        let certificates = |of: Vec<usize>| of.into_iter().map(|it| certificate(it).clone()).collect();
        let revoked = |of: Vec<usize>| of.into_iter().map(|it| revocation_list(it).clone()).collect();
        Lists {
            trusted: certificates(trusted),
            trusted_lists: revoked(lists),
            issuers: certificates(issuers),
            issuer_lists: revoked(issuer_lists),
        }
    })
}

/// The DER of all entries, with the list that they belong to.
fn entries(lists: &Lists) -> Vec<(u8, Vec<u8>)> {
    let certificates =
        |list: u8, of: &[Certificate]| -> Vec<_> { of.iter().map(|it| (list, it.der().to_vec())).collect() };
    let revoked = |list: u8, of: &[RevocationList]| -> Vec<_> {
        of.iter().map(|it| (list, it.der().to_vec())).collect()
    };
    [
        certificates(0, &lists.trusted),
        revoked(1, &lists.trusted_lists),
        certificates(2, &lists.issuers),
        revoked(3, &lists.issuer_lists),
    ]
    .concat()
}

fn set(lists: &Lists) -> BTreeSet<(u8, Vec<u8>)> {
    entries(lists).into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the files look like, afterwards the store has what is wanted. In between it has that, too, and all that it had
    /// before.
    #[test]
    fn a_store_has_what_is_wanted(layouts in layouts(), wanted in wanted()) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        store.create().unwrap();
        for (number, layout) in layouts.iter().enumerate() {
            layout.write(&store, number);
        }
        let before = store.lists(GROUP);
        prop_assert_eq!(entries(&before).len(), set(&before).len(), "there are no duplicates");
        store.add_lists(GROUP, &wanted).unwrap();
        let between: BTreeSet<_> = set(&before).union(&set(&wanted)).cloned().collect();
        prop_assert_eq!(set(&store.lists(GROUP)), between);
        store.replace_lists(GROUP, &wanted).unwrap();
        prop_assert_eq!(set(&store.lists(GROUP)), set(&wanted));
        // The same content needs no change.
        let fingerprint = store.fingerprint(GROUP);
        store.replace_lists(GROUP, &wanted).unwrap();
        prop_assert_eq!(store.fingerprint(GROUP), fingerprint);
    }

    /// Single certificates are added and removed without an effect on others in the same files.
    #[test]
    fn single_changes_leave_other_entries(layouts in layouts(), number in 0..AUTHORITIES, change in 0..4) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        store.create().unwrap();
        for (number, layout) in layouts.iter().enumerate() {
            layout.write(&store, number);
        }
        let mut expected = set(&store.lists(GROUP));
        let der = certificate(number).der().to_vec();
        match change {
            0 => {
                store.trust(GROUP, certificate(number)).unwrap();
                expected.insert((0, der));
            }
            1 => {
                store.add_issuer(GROUP, certificate(number)).unwrap();
                expected.insert((2, der));
            }
            2 => {
                let was_trusted = expected.remove(&(0, der));
                prop_assert_eq!(store.reject(GROUP, certificate(number)).unwrap(), was_trusted);
            }
            _ => {
                let list = revocation_list(number);
                let is_trusted = expected.contains(&(0, der));
                store.add_revocation_list(GROUP, list).unwrap();
                expected.insert((if is_trusted { 1 } else { 3 }, list.der().to_vec()));
            }
        }
        prop_assert_eq!(set(&store.lists(GROUP)), expected);
    }
}
