//! Changes that cannot be written.

use super::attacks::{fitting, list_of};
use super::*;
use taktwerk_pki::thumbprint_text;

/// Where a file of the store would be, something stands that cannot be replaced.
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
async fn what_cannot_be_written_whole_is_taken_back_and_can_be_applied_later() {
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
    let folders = [
        (ours.store().folder(Group::Applications, Part::Trusted), &second),
        (folder.0.join("server/own/certs"), &certificate),
    ];
    for (at, of) in folders {
        let place = in_the_way(at.join(file_of(of)));
        for _ in 0..2 {
            assert_eq!(apply(&client).await, Err(StatusCode::BAD_RESOURCE_UNAVAILABLE));
            assert_eq!((own(&ours), trusted(&ours), keys(&folder)), before, "{}", place.display());
        }
        std::fs::remove_dir_all(place).unwrap();
    }
    apply(&client).await.unwrap();
    assert_eq!((own(&ours), trusted(&ours).len()), (certificate, 3));
}
