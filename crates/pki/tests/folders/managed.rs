//! Changes by push management in a store, also if the process is killed during a change.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use taktwerk_crypto::certificate::Certificate;
use taktwerk_pki::{CertificateSettings, Folder, Group, NewKey, PrivateKey, Store, create};

/// A directory that is removed after the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("taktwerk-managed-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn made(name: &str) -> (Certificate, PrivateKey) {
    let key = PrivateKey::generate(NewKey::NistP256).unwrap();
    (create::self_signed(&CertificateSettings::new(name, "urn:test:managed"), &key).unwrap(), key)
}

fn trusted(store: &Store) -> Vec<Certificate> {
    let entries = store.entries(Group::Applications, Folder::Trusted, &mut Vec::new());
    entries.into_iter().map(|entry| entry.certificate).collect()
}

fn replace_trusted(store: &Store, certificates: &[Certificate]) {
    let mut lists = store.lists(Group::Applications);
    lists.trusted = certificates.to_vec();
    store.replace_lists(Group::Applications, &lists).unwrap();
}

/// Replaces our certificate, as ApplyChanges does.
fn renew(store: &Store) -> Certificate {
    let before = store.own(&mut Vec::new()).into_iter().next();
    let (certificate, key) = made("Own");
    store.keep_requested_key(7, &key).unwrap();
    store.keep_own(core::slice::from_ref(&certificate), &key).unwrap();
    if let Some(before) = before {
        store.retire(&before).unwrap();
    }
    store.remove_requested_key(7, &certificate).unwrap();
    certificate
}

#[test]
fn lists_are_replaced_and_unchanged_files_not_rewritten() {
    let folder = Scratch::new("lists");
    let store = Store::at(folder.0.join("pki"));
    let [first, second, third] = ["First", "Second", "Third"].map(|name| made(name).0);
    let replace = |list: &[Certificate]| {
        replace_trusted(&store, list);
        trusted(&store)
    };
    assert_eq!(replace(core::slice::from_ref(&first)), core::slice::from_ref(&first));
    // A file name chosen by an administrator stays.
    let path = store.folder(Group::Applications, Folder::Trusted).join("boiler.der");
    std::fs::write(&path, second.der()).unwrap();
    let both = replace(&[second.clone(), third.clone(), second.clone()]);
    assert_eq!(both.len(), 2);
    assert!(both.contains(&second) && both.contains(&third) && path.exists());
    // Files that are not certificates are not touched.
    let note = store.folder(Group::Applications, Folder::Trusted).join("note.txt");
    std::fs::write(&note, "not a certificate").unwrap();
    assert!(replace(&[]).is_empty() && note.exists());
    assert!(!path.exists());
}

#[test]
fn only_one_requested_key_is_kept() {
    let folder = Scratch::new("requested");
    let store = Store::at(folder.0.join("pki"));
    let ((own, key), (other, other_key)) = (made("Own"), made("Other"));
    store.keep_requested_key(1, &other_key).unwrap();
    store.keep_requested_key(1, &key).unwrap();
    assert!(store.key_of(&other).is_none() && store.key_of(&own).is_some());
    store.check_permissions().unwrap();
    store.remove_requested_key(1, &other).unwrap();
    assert!(store.key_of(&own).is_some(), "it belongs to another certificate");
    store.remove_requested_key(2, &own).unwrap();
    assert!(store.key_of(&own).is_some(), "it is for another purpose");
    store.remove_requested_key(1, &own).unwrap();
    assert!(store.key_of(&own).is_none());
}

#[test]
fn a_certificate_that_was_put_aside_can_be_taken_back() {
    let folder = Scratch::new("back");
    let store = Store::at(folder.0.join("pki"));
    let certificate = renew(&store);
    let own = store.own(&mut Vec::new()).remove(0);
    // Nothing to do; the certificate without the key; both.
    for is_key_back in [None, Some(true), Some(false)] {
        if let Some(is_key_back) = is_key_back {
            let path = store.retire(&own).unwrap();
            assert!(store.own(&mut Vec::new()).is_empty());
            if is_key_back {
                std::fs::rename(path.with_extension("pem"), &own.key_path).unwrap();
            }
        }
        store.take_back(&own).unwrap();
        assert_eq!(store.own(&mut Vec::new()).remove(0).certificate, certificate);
    }
}

const CHILD: &str = "TAKTWERK_MANAGED_CHILD";

/// Changes the store in an endless loop, in a separate process.
#[test]
fn child() {
    let Some(root) = std::env::var_os(CHILD) else { return };
    let store = Store::at(root);
    let always =
        trusted(&store).into_iter().find(|certificate| certificate.subject_text().contains("Always"));
    let always = always.unwrap();
    for round in 0u32.. {
        renew(&store);
        println!("round {round}");
        let (new, _) = made("Sometimes");
        replace_trusted(&store, &[always.clone(), new]);
        println!("round {round}");
    }
}

/// Whenever the process is killed, there is a certificate with its key, and certificates that stay in the trust list are trusted.
#[test]
fn a_killed_process_leaves_a_certificate_and_its_trust_list() {
    let folder = Scratch::new("killed");
    let store = Store::at(folder.0.join("pki"));
    renew(&store);
    let (always, _) = made("Always");
    store.trust(Group::Applications, &always).unwrap();
    for attempt in 0..30 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "managed::child", "--nocapture"])
            .env(CHILD, store.root())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The child reports its steps; it may have begun one more.
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let rounds = lines.filter(|line| line.contains("round")).take(1 + attempt % 4).count();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(rounds, 1 + attempt % 4);
        let own = store.own(&mut Vec::new());
        assert!(own.iter().any(|own| own.key.belongs_to(&own.certificate)), "attempt {attempt}");
        store.check_permissions().unwrap();
        assert!(trusted(&store).contains(&always), "attempt {attempt}");
        assert!(trusted(&store).len() <= 3, "attempt {attempt}");
    }
    // Files left by the killed process are harmless.
    let new = renew(&store);
    assert!(store.own(&mut Vec::new()).iter().any(|own| own.certificate == new));
}
