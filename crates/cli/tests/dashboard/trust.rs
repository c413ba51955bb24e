//! The dashboard reaches its own server whatever happens to certificates and trust lists.

#![cfg(feature = "web")]

use crate::lines;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use taktwerk::Client;
use taktwerk::pki::Pki;
use taktwerk::schema::TrustListDataType;
use taktwerk::schema::ids::{method_ids as m, object_ids as o};
use taktwerk::types::{ByteString, Encode};
use taktwerk::{NodeId, Variant};
use taktwerk_pki::{CertificateSettings, NewKey};

const BINARY: &str = env!("CARGO_BIN_EXE_taktwerk");
const PASSWORD: &str = "a long password";
const LIMIT: Duration = Duration::from_secs(60);

/// A server that ends with the test.
struct Server {
    child: Child,
    folder: tempfile::TempDir,
    url: String,
    web: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(folder: &Path, arguments: &[&str]) {
    let output = Command::new(BINARY).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A server with secured connections only. `prepare` gets the folder before it starts.
fn start(prepare: impl FnOnce(&Path)) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("password"), format!("{PASSWORD}\n")).unwrap();
    let add = [
        "user",
        "add",
        "olga",
        "--role",
        "SecurityAdmin",
        "--file",
        "users.toml",
        "--password-file",
        "password",
    ];
    command(at, &add);
    let text = "[server]\nbind = [\"127.0.0.1:0\"]\n[security]\npki = \"pki\"\npush_management = true\n\
                [identities]\nusers_file = \"users.toml\"\n[permissions]\nunspecified = \"open\"\n\
                [web]\nbind = \"127.0.0.1:0\"\n";
    std::fs::write(at.join("server.toml"), text).unwrap();
    prepare(at);
    let mut child = Command::new(BINARY)
        .args(["serve", "--exit-with-stdin", "--config", "server.toml"])
        .current_dir(at)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = lines::of(&mut child);
    let (mut url, mut web) = (None, None);
    while url.is_none() || web.is_none() {
        let line = lines.recv_timeout(LIMIT).unwrap();
        url = line.strip_prefix("READY ").map(str::to_owned).or(url);
        let address =
            line.strip_prefix("dashboard: http://").map(|rest| rest.trim_end_matches('/').to_owned());
        web = address.or(web);
    }
    Server { child, folder, url: url.unwrap(), web: web.unwrap() }
}

impl Server {
    fn pki(&self) -> PathBuf {
        self.folder.path().join("pki")
    }

    /// Sends a request. Returns status, head and body.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.web).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}");
        let request =
            format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body.to_owned())
    }

    /// Logs on. Returns the cookie.
    fn log_on(&self) -> Result<String, String> {
        let body = format!("{{\"user\":\"olga\",\"password\":\"{PASSWORD}\"}}");
        let (status, head, body) = self.ask("POST", "/api/login", "", &body);
        if status != 200 {
            return Err(format!("{status} {body}"));
        }
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        Ok(cookie.split(';').next().unwrap().to_owned())
    }

    fn browse(&self, cookie: &str) -> (u16, String) {
        let (status, _, body) = self.ask("GET", "/api/browse", &format!("Cookie: {cookie}\r\n"), "");
        (status, body)
    }

    /// Existing sessions reconnect, and new logins work.
    fn still_works(&self, cookie: &str) {
        let end = Instant::now() + LIMIT;
        while self.browse(cookie).0 != 200 {
            assert!(Instant::now() < end, "the session does not come back: {:?}", self.browse(cookie));
            std::thread::sleep(Duration::from_millis(100));
        }
        self.log_on().unwrap();
        let (status, _, body) = self.ask("GET", "/readyz", "", "");
        assert_eq!((status, body.as_str()), (200, "ready\n"));
    }
}

/// The certificates in a directory.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn the_dashboard_follows_each_renewal_of_the_servers_certificate() {
    let server = start(|_| {});
    let cookie = server.log_on().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let offered = || {
        let endpoints = runtime.block_on(Client::endpoints(&server.url)).unwrap();
        endpoints.iter().map(|it| it.server_certificate.as_bytes().to_vec()).max().unwrap()
    };
    for _ in 0..2 {
        let before = offered();
        command(server.folder.path(), &["pki", "init", "--renew", "--pki", "pki"]);
        let end = Instant::now() + LIMIT;
        // Also at the moment of the change.
        while offered() == before {
            assert!(Instant::now() < end, "the server uses the old certificate");
            server.log_on().unwrap();
            // Used last, so that it is not the one that is replaced if the user has too many.
            let (status, body) = server.browse(&cookie);
            assert_ne!(status, 401, "{body}");
        }
        server.still_works(&cookie);
    }
}

#[test]
fn the_dashboard_works_with_an_empty_trust_list() {
    let administrator = |folder: &Path| {
        Pki::in_folder(folder.join("gds"))
            .settings(CertificateSettings::new("gds", "urn:test:gds"))
            .create_missing([NewKey::Rsa2048, NewKey::NistP256])
            .open()
            .unwrap()
    };
    let server = start(|folder| {
        command(folder, &["pki", "init", "--pki", "pki"]);
        let gds = administrator(folder);
        for own in gds.store().own(&mut Vec::new()) {
            let path = own.path.display().to_string();
            command(folder, &["pki", "trust", &path, "--pki", "pki"]);
        }
    });
    let gds = administrator(server.folder.path());
    let cookie = server.log_on().unwrap();
    let trusted = || files(&server.pki().join("trusted/certs"));
    assert_eq!(trusted().len(), 2, "only those of the administrator: {:?}", trusted());
    assert!(!server.folder.path().join("pki-dashboard").exists());
    // As a Global Discovery Server does it.
    for path in files(&server.pki().join("own/certs")) {
        let bytes = std::fs::read(path).unwrap();
        let certificate = taktwerk_pki::first_certificate(&bytes).unwrap();
        gds.store().trust(taktwerk_pki::Group::Applications, &certificate).unwrap();
    }
    gds.validator().refresh();
    let own = gds.store().own(&mut Vec::new());
    let trusted_certificates: Vec<ByteString> =
        own.iter().map(|own| own.certificate.der().to_vec().into()).collect();
    let list =
        TrustListDataType { specified_lists: 15, trusted_certificates, ..TrustListDataType::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::builder(&server.url).pki(&gds).user("olga", PASSWORD).connect().await.unwrap();
        let call = async |object: u32, method: u32, inputs: Vec<Variant>| {
            let (object, method) = (NodeId::numeric(0, object), NodeId::numeric(0, method));
            client.call_variants(object, method, inputs).await.unwrap()
        };
        let of_list = o::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST;
        let open = m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST_OPEN;
        let write = m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST_WRITE;
        let update =
            m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST_CLOSE_AND_UPDATE;
        let handle = call(of_list, open, vec![6u8.into()]).await.remove(0);
        let bytes = ByteString::from(list.encode_to_vec());
        call(of_list, write, vec![handle.clone(), bytes.into()]).await;
        call(of_list, update, vec![handle]).await;
        call(o::SERVER_CONFIGURATION, m::SERVER_CONFIGURATION_APPLY_CHANGES, Vec::new()).await;
    });
    server.still_works(&cookie);
    // With an empty trust list, the administrator is refused, but the dashboard works.
    trusted().iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let end = Instant::now() + LIMIT;
    let connects =
        || runtime.block_on(Client::builder(&server.url).pki(&gds).user("olga", PASSWORD).connect()).is_ok();
    while connects() {
        assert!(Instant::now() < end, "the list is not read again");
        std::thread::sleep(Duration::from_millis(100));
    }
    server.still_works(&cookie);
}
