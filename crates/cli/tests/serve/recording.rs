//! `--allow-key-log`: captures can be decrypted with the key log, and nothing is recorded without the option.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use taktwerk::pki::Pki;
use taktwerk_crypto::{PayloadKeys, SecurityPolicy};
use taktwerk_lab::program::Program;

const BINARY: &str = env!("CARGO_BIN_EXE_taktwerk");
const LIMIT: Duration = Duration::from_secs(120);

fn pki(folder: &Path, name: &str, uri: &str) -> Pki {
    let settings = taktwerk_pki::CertificateSettings::new(name, uri);
    let keys = [taktwerk_pki::NewKey::Rsa2048];
    Pki::in_folder(folder.join(name)).settings(settings).create_missing(keys).open().unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

/// The data in both directions by connection; IPv4 only.
fn conversations(path: &Path) -> BTreeMap<u16, [Vec<u8>; 2]> {
    let bytes = std::fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let mut at = 24;
    let mut all: BTreeMap<u16, [Vec<u8>; 2]> = BTreeMap::new();
    let mut server = None;
    while at < bytes.len() {
        let packet = &bytes[at + 16..at + 16 + word(at + 8)];
        at += 16 + packet.len();
        let tcp = &packet[34..];
        let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let server = *server.get_or_insert(port(2));
        let (client, side) = if port(2) == server { (port(0), 0) } else { (port(2), 1) };
        all.entry(client).or_default()[side].extend_from_slice(&tcp[20..]);
    }
    all
}

/// The bodies of MSG chunks, decrypted with the keys of a key log.
fn decrypt(stream: &[u8], side: &str, keys: &BTreeMap<String, String>, provider: &Pki) -> Vec<Vec<u8>> {
    let mut rest = stream;
    let mut messages = Vec::new();
    while let Some((head, _)) = rest.split_first_chunk::<8>() {
        let len = u32::from_le_bytes(head[4..].try_into().unwrap()) as usize;
        let chunk = &rest[..len];
        rest = &rest[len..];
        if &chunk[..3] != b"MSG" {
            continue;
        }
        let number = |at: usize| u32::from_le_bytes(chunk[at..at + 4].try_into().unwrap());
        let of = |what: &str| &keys[&format!("{side}_{what}_{}_{}", number(8), number(12))];
        let mut payload = chunk[16..].to_vec();
        let (key, iv) = (hex(of("key")), hex(of("iv")));
        let keys = PayloadKeys { encrypting_key: &key, iv: &iv };
        provider.provider().decrypt_payload(SecurityPolicy::Basic256Sha256, keys, &[], &mut payload).unwrap();
        let signed = payload.len() - of("siglen").parse::<usize>().unwrap();
        let padding = usize::from(payload[signed - 1]);
        messages.push(payload[8..signed - 1 - padding].to_vec());
    }
    messages
}

fn keys(path: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| line.split_once(": ").unwrap()).map(|(a, b)| (a.into(), b.into())).collect()
}

#[test]
fn captures_are_decryptable_and_only_written_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (own, other) =
        (pki(folder, "server", "urn:taktwerk:demo-server"), pki(folder, "client", "urn:taktwerk:client"));
    own.trust_those_of(&other).unwrap();
    other.trust_those_of(&own).unwrap();
    let file = |name: &str| folder.join(name);
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let (server_pki, client_pki) = (text(file("server")), text(file("client")));
    let server = Program::new("/usr/bin/env")
        .arg(format!("OPCUA_KEYLOGFILE={}", text(file("server.keys"))))
        .arg(format!("OPCUA_PCAP_FILE={}", text(file("server.pcap"))))
        .args([BINARY, "serve", "--port", "0", "--exit-with-stdin", "--interop", "--allow-key-log"])
        .args(["--pki", &server_pki, "--policy", "Basic256Sha256"])
        .serve(LIMIT)
        .unwrap();
    let read = |name: &str, options: &[&str]| -> Output {
        let mut command = Command::new(BINARY);
        command.env("OPCUA_KEYLOGFILE", file(&format!("{name}.keys")));
        command.env("OPCUA_PCAP_FILE", file(&format!("{name}.pcap")));
        let secret = ["-u", "user1", "-p", "password"];
        let plain = ["--policy", "Basic256Sha256", "--pki", &client_pki];
        command
            .args(["read", server.url(), "i=2258"])
            .args(plain)
            .args(secret)
            .args(options)
            .output()
            .unwrap()
    };
    let output = read("unasked", &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!file("unasked.keys").exists() && !file("unasked.pcap").exists());
    let output = read("client", &["--allow-key-log"]);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stderr).contains("WARNING"));
    let without =
        Command::new(BINARY).args(["read", server.url(), "i=2258", "--allow-key-log"]).output().unwrap();
    assert_eq!(without.status.code(), Some(2), "nowhere to write");
    server.stop().unwrap();
    for name in ["client", "server"] {
        let keys = keys(&file(&format!("{name}.keys")));
        assert!(keys.len().is_multiple_of(6) && !keys.is_empty());
        let mut requests = Vec::new();
        let mut responses = Vec::new();
        for [to_server, to_client] in conversations(&file(&format!("{name}.pcap"))).values() {
            assert!(to_server.starts_with(b"HELF") && to_client.starts_with(b"ACKF"));
            if to_server.windows(14).any(|window| window == b"Basic256Sha256") {
                requests.extend(decrypt(to_server, "client", &keys, &own));
                responses.extend(decrypt(to_client, "server", &keys, &own));
            }
        }
        let type_id = |message: &Vec<u8>| u16::from_le_bytes([message[2], message[3]]);
        // CreateSession, ActivateSession, Read and their responses, by encoding id.
        for wanted in [461, 467, 631] {
            assert!(requests.iter().any(|message| type_id(message) == wanted), "{name} {wanted}");
            assert!(responses.iter().any(|message| type_id(message) == wanted + 3), "{name} {wanted}");
        }
    }
}
