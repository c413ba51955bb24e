//! `taktwerk watch` during restarts of its server, and messages about untrusted certificates.

use crate::following::{BINARY, POLICY, Running, pki, renew};
use std::process::{Command, Output};
use std::time::Duration;
use taktwerk::pki::Pki;
use taktwerk::{MessageSecurityMode, RunningServer, Server};

/// CurrentTime of the server.
const TIME: &str = "i=2258";

fn serve(pki: &Pki, address: &str) -> RunningServer {
    let builder = Server::builder().bind(address).anonymous().pki(pki);
    builder.security(POLICY, MessageSecurityMode::SignAndEncrypt).build().unwrap().spawn().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn watch_continues_after_a_restart_or_a_new_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (pki(folder.path(), "server"), pki(folder.path(), "client"));
    ours.trust_those_of(&theirs).unwrap();
    theirs.trust_those_of(&ours).unwrap();
    let running = serve(&ours, "127.0.0.1:0");
    let url = running.url();
    let place = folder.path().join("client").display().to_string();
    let watch = Running::start(&[
        "watch",
        &url,
        TIME,
        "-I",
        "50",
        "--policy",
        "ECC_nistP256_AesGcm",
        "--pki",
        &place,
    ]);
    watch.until(TIME);
    watch.until(TIME);
    // The server is restarted.
    running.stop(Duration::from_millis(100));
    watch.until("connection lost");
    let running = serve(&ours, url.trim_start_matches("opc.tcp://"));
    watch.until("it is created again");
    watch.until("  i=2258  ");
    // The server gets another certificate, which the user has to trust.
    renew(folder.path(), "server");
    let told = watch.until("cannot connect");
    assert!(told.contains("taktwerk pki trust"), "{told}");
    theirs.trust_those_of(&ours).unwrap();
    watch.until("connected again");
    watch.until("  i=2258  ");
    drop(running);
}

/// A repeated refusal counts once, although it is repeated with each new subscription.
#[test]
fn a_repeated_refusal_does_not_end_other_items() {
    let start = |address: &str| Server::builder().bind(address).anonymous().build().unwrap().spawn().unwrap();
    let mut running = start("127.0.0.1:0");
    let url = running.url();
    let watch = Running::start(&["watch", &url, TIME, "i=99999999", "-I", "50"]);
    watch.until("  i=2258  ");
    for _ in 0..2 {
        running.stop(Duration::from_millis(100));
        watch.until("connection lost");
        running = start(url.trim_start_matches("opc.tcp://"));
        watch.until("BadNodeIdUnknown");
        watch.until("  i=2258  ");
        watch.until("  i=2258  ");
    }
    drop(running);
}

fn read(url: &str, place: &str, more: &[&str]) -> Output {
    let arguments = ["read", url, TIME, "--policy", "ECC_nistP256_AesGcm", "--pki", place];
    Command::new(BINARY).args(arguments).args(more).output().unwrap()
}

/// The error message is sufficient: the log must not repeat it.
#[test]
fn an_untrusted_certificate_causes_one_message() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (pki(folder.path(), "server"), pki(folder.path(), "client"));
    ours.trust_those_of(&theirs).unwrap();
    let running = serve(&ours, "127.0.0.1:0");
    let place = folder.path().join("client").display().to_string();
    // The first connection creates the client's certificate and reports that.
    read(&running.url(), &place, &[]);
    let refused = read(&running.url(), &place, &[]);
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{told}");
    assert!(told.contains("taktwerk pki trust") && told.starts_with("error: "), "{told}");
    assert!(!told.contains("WARN") && told.lines().count() == 1, "{told}");
    // With -v, details are logged.
    let told = text(&read(&running.url(), &place, &["-v"]).stderr);
    assert!(told.contains("INFO") && told.contains("a certificate was rejected"), "{told}");
}
