//! Files with several entries, as administrators copy them into the folders: chains, and revocation lists of several authorities.

use super::attacks::{Authority, authority};
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeSet;
use taktwerk::types::{Decode, DecodeLimits};
use taktwerk_crypto::certificate::{RevocationList, thumbprint};
use taktwerk_pki::{Store, thumbprint_text};

const AUTHORITIES: usize = 4;

/// The four lists in DER.
type Content = [BTreeSet<Vec<u8>>; 4];

/// A file: its directory, and the numbers of its authorities.
type Layout = (Part, Vec<usize>);

/// A change by a client: the masks of the lists that are replaced, with the authorities in each of them; or one that is removed.
#[derive(Debug, Clone)]
enum Change {
    Replace { masks: u32, lists: [Vec<usize>; 4] },
    Remove { authority: usize, is_trusted: bool },
}

fn changes() -> impl Strategy<Value = Change> {
    let list = || vec(0..AUTHORITIES, 0..4);
    prop_oneof![
        (1u32..16, [list(), list(), list(), list()])
            .prop_map(|(masks, lists)| Change::Replace { masks, lists }),
        (0..AUTHORITIES, any::<bool>())
            .prop_map(|(authority, is_trusted)| Change::Remove { authority, is_trusted }),
    ]
}

/// The certificates and revocation lists of the authorities.
struct Pool {
    certificates: Vec<Certificate>,
    lists: Vec<RevocationList>,
}

impl Pool {
    fn new() -> Self {
        let all: Vec<Authority> =
            (0..AUTHORITIES).map(|number| authority(&format!("Authority {number}"))).collect();
        Self {
            lists: all.iter().map(Authority::revocation_list).collect(),
            certificates: all.into_iter().map(|it| it.certificate).collect(),
        }
    }

    fn certificate(&self, number: usize) -> &[u8] {
        self.certificates[number].der()
    }

    fn list(&self, number: usize) -> &[u8] {
        self.lists[number].der()
    }

    fn of(&self, folder: Part, numbers: &[usize]) -> Vec<Vec<u8>> {
        let der =
            |it: &usize| if folder.holds_lists() { self.list(*it) } else { self.certificate(*it) }.to_vec();
        numbers.iter().map(der).collect()
    }

    /// Replaces all files but `keep`.
    fn lay_out(&self, store: &Store, keep: &std::path::Path, layouts: &[Layout]) {
        for folder in Part::DECIDING {
            for file in std::fs::read_dir(store.folder(Group::Applications, folder)).unwrap() {
                let path = file.unwrap().path();
                if path != keep {
                    std::fs::remove_file(path).unwrap();
                }
            }
        }
        for (number, (folder, numbers)) in layouts.iter().enumerate() {
            let kind = if folder.holds_lists() { "X509 CRL" } else { "CERTIFICATE" };
            let text: String = self.of(*folder, numbers).into_iter().map(|der| pem_of(kind, der)).collect();
            let path = store.folder(Group::Applications, *folder).join(format!("file-{number}.pem"));
            std::fs::write(path, text).unwrap();
        }
    }
}

fn pem_of(kind: &str, der: Vec<u8>) -> String {
    pem::encode(&pem::Pem::new(kind, der))
}

/// Reads the lists with Open, Read and Close.
async fn read(client: &Client) -> Content {
    let handle = call(client, LIST, OPEN, vec![1u8.into()]).await.unwrap().remove(0);
    let all = call(client, LIST, READ, vec![handle.clone(), 1_000_000i32.into()]).await.unwrap().remove(0);
    call(client, LIST, CLOSE, vec![handle]).await.unwrap();
    let all = ByteString::try_from(all).unwrap();
    let list = TrustListDataType::decode_from(all.as_bytes(), DecodeLimits::DEFAULT).unwrap();
    [list.trusted_certificates, list.trusted_crls, list.issuer_certificates, list.issuer_crls]
        .map(|of| of.into_iter().map(|der| der.as_bytes().to_vec()).collect())
}

const FOLDERS: [Part; 4] = [Part::Trusted, Part::TrustedLists, Part::Issuers, Part::IssuerLists];

/// Makes a change. Returns what the lists must be afterwards.
async fn make(client: &Client, pool: &Pool, mine: &Certificate, before: Content, change: &Change) -> Content {
    let mut after = before;
    match change {
        Change::Replace { masks, lists } => {
            let mut new: [Vec<Vec<u8>>; 4] =
                core::array::from_fn(|list| pool.of(FOLDERS[list], &lists[list]));
            new[0].push(mine.der().to_vec());
            for (list, ders) in new.iter().enumerate() {
                if masks & 1 << list != 0 {
                    after[list] = ders.iter().cloned().collect();
                }
            }
            let [trusted, trusted_crls, issuers, issuer_crls] =
                new.map(|of| of.into_iter().map(ByteString::from).collect());
            let new = TrustListDataType {
                specified_lists: *masks,
                trusted_certificates: trusted,
                trusted_crls,
                issuer_certificates: issuers,
                issuer_crls,
            };
            let handle = written(client, &new).await.unwrap();
            call(client, LIST, UPDATE, vec![handle]).await.unwrap();
            apply(client).await.unwrap();
        }
        Change::Remove { authority, is_trusted } => {
            let der = pool.certificate(*authority).to_vec();
            let name = thumbprint_text(&thumbprint(&der));
            let removed = call(client, LIST, REMOVE, vec![name.as_str().into(), (*is_trusted).into()]).await;
            let list = if *is_trusted { 0 } else { 2 };
            let expected =
                if after[list].remove(&der) { Ok(Vec::new()) } else { Err(StatusCode::BAD_INVALID_ARGUMENT) };
            assert_eq!(removed, expected);
            // With the last certificate of an authority, its revocation lists go (Part 12 §7.8.2.7).
            if removed.is_ok() && ![0, 2].iter().any(|list| after[*list].contains(&der)) {
                let revoked = pool.list(*authority);
                [1, 3].iter().for_each(|list| {
                    after[*list].remove(revoked);
                });
            }
        }
    }
    after
}

/// What a client reads after a change is exactly what it asked for, whatever the files look like.
#[test]
fn a_change_has_the_same_effect_on_all_kinds_of_files() {
    let folder = Folder::new("shared");
    let (ours, theirs) = pair(&folder);
    let pool = Pool::new();
    let mine = own(&theirs);
    let running = serve(&ours, "SecurityAdmin", true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime.block_on(connect(&running, &theirs));
    let file = format!("{}.der", thumbprint_text(&thumbprint(mine.der())));
    let keep = ours.store().folder(Group::Applications, Part::Trusted).join(file);
    assert!(keep.exists());
    let layouts = vec((select(FOLDERS.to_vec()), vec(0..AUTHORITIES, 1..=3)), 0..7);
    let config = Config { cases: 40, failure_persistence: None, ..Config::default() };
    let tested = TestRunner::new(config).run(&(layouts, vec(changes(), 1..4)), |(layouts, changes)| {
        pool.lay_out(ours.store(), &keep, &layouts);
        runtime.block_on(async {
            for change in &changes {
                let before = read(&client).await;
                let expected = make(&client, &pool, &mine, before, change).await;
                prop_assert_eq!(&read(&client).await, &expected, "{:?}", change);
            }
            Ok(())
        })
    });
    tested.unwrap();
    drop(running);
}
