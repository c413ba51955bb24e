//! Changes that cannot be written.

use super::attacks::{fitting, list_of};
use super::audit::Records;
use super::*;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use taktwerk_pki::thumbprint_text;

/// Blocks the path of a file in the store with something that cannot be replaced.
fn in_the_way(place: PathBuf) -> PathBuf {
    std::fs::create_dir_all(place.join("something")).unwrap();
    place
}

fn file_of(certificate: &Certificate) -> String {
    format!("{}.der", thumbprint_text(&taktwerk_crypto::certificate::thumbprint(certificate.der())))
}

/// The keys in `own/private`.
fn keys(folder: &Folder) -> usize {
    std::fs::read_dir(folder.0.join("server/own/private")).unwrap().count()
}

#[tokio::test]
async fn a_failed_write_is_reverted_and_can_be_applied_later() {
    let folder = Folder::new("full-disk");
    let (ours, theirs) = pair(&folder);
    let [first, second] = ["first", "second"].map(|name| own(&folder.pki(name)));
    let running = serve(&ours, "SecurityAdmin", true);
    let client = connect(&running, &theirs).await;
    let (certificate, key) = fitting();
    let before = (own(&ours), trusted(&ours), keys(&folder));
    // Replaces the only trusted certificate's file by two more, and the server's certificate.
    let handle = written(&client, &list_of(&[&own(&theirs), &first, &second])).await.unwrap();
    call(&client, LIST, UPDATE, vec![handle]).await.unwrap();
    send(&client, certificate.der(), &[], key.pem().as_bytes()).await.unwrap();
    let own_folder = folder.0.join("server/own");
    let places = [
        ours.store().folder(Group::Applications, Part::Trusted).join(file_of(&second)),
        own_folder.join("certs").join(file_of(&certificate)),
        // The old certificate and its key cannot be put aside.
        own_folder.join("previous").join(file_of(&before.0)),
        own_folder.join("previous").join(file_of(&before.0)).with_extension("pem"),
    ];
    for place in places {
        let place = in_the_way(place);
        for _ in 0..2 {
            assert_eq!(apply(&client).await, Err(StatusCode::BAD_RESOURCE_UNAVAILABLE));
            assert_eq!((own(&ours), trusted(&ours), keys(&folder)), before, "{}", place.display());
        }
        std::fs::remove_dir_all(place).unwrap();
    }
    apply(&client).await.unwrap();
    assert_eq!((own(&ours), trusted(&ours).len()), (certificate, 3));
}

/// A process whose open files cannot be removed, not even by root: `/proc/<id>/fd` is a directory with a link to each of them.
struct Holder(Child);

impl Holder {
    /// A directory whose only certificate cannot be removed.
    fn of(certificate: &Certificate, folder: &Folder) -> (Self, PathBuf) {
        let file = folder.0.join("held.der");
        std::fs::write(&file, certificate.der()).unwrap();
        let mut command = Command::new("sleep");
        command.arg("600").stdin(std::fs::File::open(file).unwrap());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let files = PathBuf::from(format!("/proc/{}/fd", child.id()));
        (Self(child), files)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server whose trust list has an issuer that cannot be removed, and the client's own and another certificate in one file.
struct Stuck {
    folder: Folder,
    ours: Pki,
    client: Client,
    running: RunningServer,
    records: Arc<Records>,
    certificates: [Certificate; 3],
    holder: Option<Holder>,
}

impl Stuck {
    async fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let (ours, theirs) = pair(&folder);
        let [issuer, old] = ["issuer", "old"].map(|name| own(&folder.pki(name)));
        let (holder, files) = Holder::of(&issuer, &folder);
        let issuers = ours.store().folder(Group::Applications, Part::Issuers);
        std::fs::remove_dir(&issuers).unwrap();
        std::os::unix::fs::symlink(files, &issuers).unwrap();
        let file = ours.store().folder(Group::Applications, Part::Trusted).join("old.der");
        std::fs::write(file, old.der()).unwrap();
        let (running, records) = audit::serve_audited(&ours);
        let client = connect(&running, &theirs).await;
        let certificates = [own(&theirs), old, issuer];
        Self { folder, ours, client, running, records, certificates, holder: Some(holder) }
    }

    /// Trusted certificates and issuers.
    fn lists(&self) -> [Vec<Certificate>; 2] {
        let lists = self.ours.store().lists(Group::Applications);
        let sorted = |mut list: Vec<Certificate>| {
            list.sort_by_key(|certificate| certificate.der().to_vec());
            list
        };
        [sorted(lists.trusted), sorted(lists.issuers)]
    }

    /// Sends a trust list with a new certificate in place of the old one and of the issuer.
    async fn replace(&self) -> Certificate {
        let new = own(&self.folder.pki("new"));
        let list = TrustListDataType { specified_lists: 5, ..list_of(&[&self.certificates[0], &new]) };
        let handle = written(&self.client, &list).await.unwrap();
        call(&self.client, LIST, UPDATE, vec![handle]).await.unwrap();
        new
    }

    /// Allows to remove the issuer.
    fn release(&mut self) {
        self.holder = None;
        let issuers = self.ours.store().folder(Group::Applications, Part::Issuers);
        std::fs::remove_file(&issuers).unwrap();
        std::fs::create_dir(&issuers).unwrap();
        std::fs::write(issuers.join("issuer.der"), self.certificates[2].der()).unwrap();
    }
}

const UPDATED: &str = "TrustListUpdatedAuditEventType";

#[tokio::test]
async fn a_failed_removal_is_reverted_and_can_be_applied_later() {
    let mut stuck = Stuck::new("failed-removal").await;
    let (certificate, key) = fitting();
    let before = (own(&stuck.ours), stuck.lists(), keys(&stuck.folder));
    let new = stuck.replace().await;
    send(&stuck.client, certificate.der(), &[], key.pem().as_bytes()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(apply(&stuck.client).await, Err(StatusCode::BAD_RESOURCE_UNAVAILABLE));
        assert_eq!((own(&stuck.ours), stuck.lists(), keys(&stuck.folder)), before);
    }
    assert!(!stuck.records.types().contains(&UPDATED), "nothing has changed");
    cancel(&stuck.client).await.unwrap();
    assert_eq!((own(&stuck.ours), stuck.lists(), keys(&stuck.folder)), before);
    assert!(!stuck.records.types().contains(&UPDATED));
    // Without the obstacle, the same changes are made.
    stuck.release();
    assert_eq!(stuck.replace().await, new);
    apply(&stuck.client).await.unwrap();
    assert!(stuck.records.types().contains(&UPDATED));
    let [trusted, issuers] = stuck.lists();
    assert!(trusted.contains(&new) && !trusted.contains(&stuck.certificates[1]) && issuers.is_empty());
    drop(stuck.running);
}

/// A change that can neither be completed nor reverted is recorded, even if the transaction is cancelled.
#[tokio::test]
async fn what_cannot_be_reverted_is_recorded_at_once() {
    let stuck = Stuck::new("half-removal").await;
    // The file `old.der` is removed, and cannot be restored.
    let trusted = stuck.ours.store().folder(Group::Applications, Part::Trusted);
    in_the_way(trusted.join(file_of(&stuck.certificates[1])));
    let before = stuck.lists();
    stuck.replace().await;
    assert_eq!(apply(&stuck.client).await, Err(StatusCode::BAD_RESOURCE_UNAVAILABLE));
    let mut expected = before;
    expected[0].retain(|certificate| *certificate != stuck.certificates[1]);
    assert_eq!(stuck.lists(), expected, "the new certificate is not trusted");
    assert!(stuck.records.types().contains(&UPDATED));
    cancel(&stuck.client).await.unwrap();
    let recorded = stuck.records.types().into_iter().filter(|name| *name == UPDATED).count();
    assert_eq!(recorded, 1);
    drop(stuck.running);
}

/// RemoveCertificate changes the files at once.
#[tokio::test]
async fn a_certificate_that_cannot_be_removed_is_an_error_without_a_record() {
    let stuck = Stuck::new("one-removal").await;
    let issuer = thumbprint_text(&taktwerk_crypto::certificate::thumbprint(stuck.certificates[2].der()));
    let before = stuck.lists();
    let removed = call(&stuck.client, LIST, REMOVE, vec![issuer.as_str().into(), false.into()]).await;
    assert_eq!(removed, Err(StatusCode::BAD_RESOURCE_UNAVAILABLE));
    assert_eq!(stuck.lists(), before);
    assert!(!stuck.records.types().contains(&UPDATED), "nothing has changed");
    drop(stuck.running);
}
