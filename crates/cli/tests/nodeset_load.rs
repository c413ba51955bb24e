//! `taktwerk nodeset load` and `unload` with a server that has `[nodeset_methods]`.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod installation;

use installation::{Installation, LIMIT, nodeset};
use std::path::Path;
use taktwerk::pki::Pki;
use taktwerk_lab::program::{Program, Running};
use taktwerk_pki::{CertificateSettings, NewKey};

const POLICY: &str = "ECC_nistP256_AesGcm";

fn pki(folder: &Path, name: &str) -> Pki {
    let settings = CertificateSettings::new(name, &format!("urn:test:{name}"));
    Pki::in_folder(folder.join(name)).settings(settings).create_missing([NewKey::NistP256]).open().unwrap()
}

/// A secured server. Anonymous clients are administrators if their application is the one of the tests.
struct Site {
    installation: Installation,
}

impl Site {
    fn new() -> Self {
        let installation = Installation::new();
        let folder = installation.folder.path();
        let (ours, theirs) = (pki(folder, "server"), pki(folder, "client"));
        ours.trust_those_of(&theirs).unwrap();
        theirs.trust_those_of(&ours).unwrap();
        std::fs::create_dir(folder.join("nodesets")).unwrap();
        Self { installation }
    }

    fn file(&self, name: &str) -> String {
        self.installation.folder.path().join(name).display().to_string()
    }

    fn configure(&self, more: &str) {
        let text = format!(
            "[server]\nbind = [\"127.0.0.1:0\"]\napplication_uri = \"urn:test:server\"\n\
             [security]\npki = \"server\"\npolicies = [\"{POLICY}\"]\n[identities]\nanonymous = true\n\
             [[role]]\nname = \"ConfigureAdmin\"\nanonymous = true\n\
             [nodeset_methods]\nenabled = true\nfolder = \"nodesets\"\n{more}"
        );
        std::fs::write(self.installation.file(), text).unwrap();
    }

    fn serve(&self) -> Running {
        self.installation.serve(&[])
    }

    /// Exit code and output of a command with the secured connection.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let program = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(arguments);
        let output = program.args(["--policy", POLICY, "--pki", &self.file("client")]).run(LIMIT).unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
    }
}

#[test]
fn a_nodeset_is_loaded_kept_and_unloaded() {
    let site = Site::new();
    site.configure("");
    let file = site.file("line.xml");
    std::fs::write(&file, nodeset(&[(1, 1.5), (2, 2.5)])).unwrap();
    let server = site.serve();
    let (code, text) = site.run(&["nodeset", "load", server.url(), &file, "--check"]);
    assert!(code == 0 && text.contains("the server would load it"), "{code} {text}");
    let (code, text) = site.run(&["nodeset", "load", server.url(), &file]);
    assert!(code == 0 && text.contains("urn:line: 2 nodes added, 0 nodes deleted"), "{code} {text}");
    // A mistake is told with its place, and changes nothing.
    std::fs::write(&file, nodeset(&[(3, 3.5)]).replace("<Double", "<Dooble")).unwrap();
    for arguments in
        [&["nodeset", "load", server.url(), &file][..], &["nodeset", "load", server.url(), &file, "--check"]]
    {
        let (code, text) = site.run(arguments);
        assert!(code == 4 && text.contains("line.xml:1:"), "{code} {text}");
    }
    let (code, text) = site.run(&["nodeset", "unload", server.url(), "urn:other"]);
    assert!(code == 4 && text.contains("BadNotFound"), "{code} {text}");
    drop(server);
    // The next start has it, and so has the check of a configuration that names a node.
    site.configure("[[alarms.alarm]]\nvariable = \"nsu=urn:line;i=2\"\nhigh = 2.0\n");
    let config = site.installation.file().display().to_string();
    let check =
        Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(["config", "check", &config]).run(LIMIT).unwrap();
    assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stderr));
    let server = site.serve();
    let (code, text) = site.run(&["read", server.url(), "nsu=urn:line;i=2"]);
    assert!(code == 0 && text.contains("2.5"), "{code} {text}");
    // Without it, the server would not start again.
    let (code, text) = site.run(&["nodeset", "unload", server.url(), "urn:line"]);
    assert!(code == 4 && text.contains("refers to this namespace"), "{code} {text}");
    site.configure("");
    let (code, text) = site.run(&["nodeset", "unload", server.url(), "urn:line"]);
    assert!(code == 0 && text.contains("0 nodes added, 2 nodes deleted"), "{code} {text}");
    let (code, text) = site.run(&["read", server.url(), "nsu=urn:line;i=2"]);
    assert!(code == 4 && text.contains("BadNodeIdUnknown"), "{code} {text}");
}

#[test]
fn a_missing_folder_and_a_server_without_methods_are_named() {
    let site = Site::new();
    site.configure("");
    std::fs::remove_dir(site.file("nodesets")).unwrap();
    let config = site.installation.file().display().to_string();
    let start =
        Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(["serve", "--config", &config]).run(LIMIT).unwrap();
    let text = String::from_utf8_lossy(&start.stderr).into_owned();
    assert!(start.status.code() != Some(0) && text.contains("nodesets"), "{text}");
    let file = site.file("line.xml");
    std::fs::write(&file, nodeset(&[(1, 1.5)])).unwrap();
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("enabled = true", "enabled = false")).unwrap();
    let server = site.serve();
    let (code, text) = site.run(&["nodeset", "load", server.url(), &file]);
    assert!(code == 4 && text.contains("[nodeset_methods]"), "{code} {text}");
}
