//! The server's alarms for its certificate and trust list, and who receives them.

use core::time::Duration;
use std::fs::File;
use std::path::PathBuf;
use std::time::SystemTime;
use taktwerk::pki::Pki;
use taktwerk::server::Authorization;
use taktwerk::server::authorization::IdentityRule;
use taktwerk::{Client, MessageSecurityMode, SecurityPolicy, Server};
use taktwerk_pki::{CertificateSettings, Folder as Part, Group, NewKey};

const DAY: Duration = Duration::from_secs(86_400);
/// Longer than the lifetime of any certificate in these tests.
const LONG: Duration = Duration::from_secs(86_400 * 365 * 40);
const POLICY: SecurityPolicy = SecurityPolicy::ECC_nistP256_AesGcm;

/// A directory that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("taktwerk-expiry-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn pki(&self, name: &str) -> Pki {
        let settings = CertificateSettings::new(name, &format!("urn:test:{name}"));
        let pki = Pki::in_folder(self.0.join(name)).settings(settings);
        pki.create_missing([NewKey::NistP256]).open().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Makes the trust list appear unchanged for ten days.
fn age(pki: &Pki) {
    let then = SystemTime::now() - 10 * DAY;
    for part in Part::DECIDING {
        let folder = pki.store().folder(Group::Applications, part);
        let files = std::fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        for path in files.chain([folder.clone()]).filter(|path| path.exists()) {
            File::open(path).unwrap().set_modified(then).unwrap();
        }
    }
}

fn with(mut authorization: Authorization, role: &str) -> Authorization {
    authorization.role_mut(role).unwrap().identities.push(IdentityRule::Anonymous);
    authorization
}

#[tokio::test]
async fn roles_determine_who_receives_the_alarms() {
    let folder = Folder::new("roles");
    let (ours, theirs) = (folder.pki("server"), folder.pki("client"));
    ours.trust_those_of(&theirs).unwrap();
    theirs.trust_those_of(&ours).unwrap();
    age(&ours);
    let expired = ("CertificateExpired".to_owned(), 667, "Server".to_owned());
    let outdated = ("TrustListOutOfDate".to_owned(), 667, "DefaultApplicationGroup".to_owned());
    for (authorization, expected) in [
        (Authorization::open(), vec![expired.clone()]),
        (Authorization::suggested(), Vec::new()),
        (with(Authorization::suggested(), "Operator"), vec![expired.clone()]),
        (with(Authorization::open(), "SecurityAdmin"), vec![expired.clone(), outdated]),
    ] {
        let server = Server::builder()
            .bind("127.0.0.1:0")
            .anonymous()
            .pki(&ours)
            .security(POLICY, MessageSecurityMode::SignAndEncrypt)
            .authorization(authorization)
            .certificate_alarm(LONG)
            .trust_list_alarm(DAY)
            .build()
            .unwrap();
        let running = server.spawn().unwrap();
        let client = Client::builder(&running.url()).pki(&theirs).connect().await.unwrap();
        let listed = client.conditions().list().await.unwrap_or_default();
        let mut seen: Vec<_> = listed
            .iter()
            .map(|alarm| (alarm.name.clone(), alarm.severity, alarm.source_name.clone()))
            .collect();
        seen.sort();
        assert_eq!(seen, expected);
        // The application sees both.
        assert_eq!(running.conditions().retained().len(), 2);
        client.disconnect().await;
        running.stop(Duration::from_secs(1));
    }
}

#[test]
fn changing_the_trust_list_ends_its_alarm() {
    let folder = Folder::new("update");
    let (ours, theirs) = (folder.pki("server"), folder.pki("client"));
    age(&ours);
    let builder = || Server::builder().bind("127.0.0.1:0").anonymous().pki(&ours);
    let server = builder().trust_list_alarm(20 * DAY).build().unwrap();
    // Neither the certificate nor the trust list is out of date.
    assert_eq!((server.conditions().retained().len(), server.conditions().all().len()), (0, 2));
    let server = builder().trust_list_alarm(5 * DAY).build().unwrap();
    assert_eq!(&*server.conditions().retained().remove(0).name, "TrustListOutOfDate");
    // As another process would do.
    ours.store().trust(Group::Applications, &theirs.store().own(&mut Vec::new())[0].certificate).unwrap();
    ours.validator().refresh();
    let view = server.conditions().all().into_iter().find(|view| &*view.name == "TrustListOutOfDate");
    assert!(!view.unwrap().state.active);
}

#[test]
fn servers_without_certificates_or_without_the_alarm_have_none() {
    let folder = Folder::new("none");
    let ours = folder.pki("server");
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    assert!(server.space().alarms().is_none());
    let off = Server::builder().bind("127.0.0.1:0").anonymous().pki(&ours);
    let off = off.certificate_alarm(Duration::ZERO).build().unwrap();
    assert!(off.space().alarms().is_none());
    let on = Server::builder().bind("127.0.0.1:0").anonymous().pki(&ours).build().unwrap();
    let all = on.conditions().all();
    assert_eq!((all.len(), all[0].state.active), (1, false));
}
