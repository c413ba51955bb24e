//! A gateway that reads files of other programs.

use crate::stand::{MS, Stand};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use taktwerk_gateway::GatewayConfig;
use taktwerk_types::{StatusCode, UtcTime};
use tokio::time::sleep;

const SOURCE: &str = "deadline = \"5 s\"\nretry = \"20 ms\"\nretry_max = \"20 ms\"\n";

async fn until_said(stand: &Stand, source: &str, said: &str) {
    for _ in 0..1000 {
        if stand.source(source).statistics.last_error.is_some_and(|error| error.contains(said)) {
            return;
        }
        sleep(10 * MS).await;
    }
    panic!("{said}: {:?}", stand.source(source));
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_files_become_values_and_errors_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    let rows = folder.path().join("rows.csv");
    fs::write(&rows, "time,T\n1700000000,1\n1700000001,2\n").unwrap();
    let text = format!(
        "[[source]]\nname = \"f\"\ntype = \"file\"\nfile = {path:?}\ninterval = \"20 ms\"\nsize_max = 100\nlost_after = \"1 s\"\n{SOURCE}\
         [[tag]]\nsource = \"f\"\nname = \"T\"\njson = \"$.t\"\n\
         [[tag]]\nsource = \"f\"\nname = \"No\"\njson = \"$.no\"\n\
         [[source]]\nname = \"r\"\ntype = \"file\"\nfile = {rows:?}\ninterval = \"20 ms\"\n{SOURCE}\
         [[tag]]\nsource = \"r\"\nname = \"T\"\ntime = \"time\"\n\
         [[source]]\nname = \"old\"\ntype = \"file\"\nfile = {rows:?}\ninterval = \"20 ms\"\nunchanged_max = \"1 ms\"\nlost_after = \"200 ms\"\n{SOURCE}\
         [[tag]]\nsource = \"old\"\nname = \"T\"\n",
    );
    let stand = Stand::new(&text).await;
    until_said(&stand, "f", "no such file").await;
    fs::write(&path, r#"{"t":21.5}"#).unwrap();
    stand.value("f/T", 21.5).await;
    stand.until("f/No", |value| value.status() == StatusCode::BAD_NO_DATA).await;
    stand.value("r/T", 2.0).await;
    assert_eq!(stand.read("r/T").await.source_timestamp, UtcTime::parse("2023-11-14T22:13:21Z"));
    stand.until("old/T", |value| value.status() == StatusCode::BAD_NO_COMMUNICATION).await;
    // Atomically replaced files.
    let next = folder.path().join("next");
    fs::write(&next, r#"{"t":3}"#).unwrap();
    fs::rename(&next, &path).unwrap();
    stand.value("f/T", 3.0).await;
    fs::write(&path, r#"{"t":"#).unwrap();
    until_said(&stand, "f", "is no JSON").await;
    fs::write(&path, "x".repeat(101)).unwrap();
    until_said(&stand, "f", "more than 100 bytes").await;
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    until_said(&stand, "f", "not a regular file").await;
    stand.until("f/T", |value| value.status() == StatusCode::BAD_NO_COMMUNICATION).await;
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn appended_lines_become_values_through_rotation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.log");
    append(&path, "T=1\n");
    let text = format!(
        "[[source]]\nname = \"l\"\ntype = \"log\"\nfile = {path:?}\ncheck_every = \"20 ms\"\nline_max = 40\nlost_after = \"300 ms\"\n{SOURCE}\
         [[tag]]\nsource = \"l\"\nname = \"T\"\npattern = 'T=(?<value>\\S+)'\n\
         [[tag]]\nsource = \"l\"\nname = \"State\"\npattern = 'state (\\w+)'\ntype = \"String\"\n",
    );
    let stand = Stand::new(&text).await;
    // Existing lines are not read.
    stand.until("l/T", |value| value.status() == StatusCode::BAD_WAITING_FOR_INITIAL_DATA).await;
    while !stand.source("l").statistics.is_connected {
        sleep(10 * MS).await;
    }
    append(&path, "state on\nnothing\nT=21.5\n");
    stand.value("l/T", 21.5).await;
    stand.value("l/State", "on").await;
    append(&path, &format!("{}\nT=22", "x".repeat(50)));
    while stand.source("l").statistics.dropped < 2 {
        sleep(10 * MS).await;
    }
    fs::rename(&path, folder.path().join("machine.log.1")).unwrap();
    append(&path, "state off\n");
    stand.value("l/State", "off").await;
    stand.value("l/T", 22.0).await;
    assert_eq!(stand.source("l").statistics.dropped, 2, "a line of nobody, and one that is too long");
    fs::remove_file(&path).unwrap();
    stand.until("l/T", |value| value.status() == StatusCode::BAD_NO_COMMUNICATION).await;
    append(&path, "T=23\n");
    stand.value("l/T", 23.0).await;
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_written_during_a_change_of_settings_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.log");
    append(&path, "T=1\n");
    let text = |more: &str| {
        format!(
            "[[source]]\nname = \"l\"\ntype = \"log\"\nfile = {path:?}\ncheck_every = \"1 h\"\n{more}{SOURCE}\
             [[tag]]\nsource = \"l\"\nname = \"T\"\npattern = 'T=(?<value>\\S+)'\n"
        )
    };
    let mut stand = Stand::new(&text("")).await;
    while !stand.source("l").statistics.is_connected {
        sleep(10 * MS).await;
    }
    append(&path, "T=2\n");
    let config = GatewayConfig::parse(Path::new("g.toml"), &text("line_max = 50\n")).unwrap().unwrap();
    let applied = tokio::task::block_in_place(|| stand.gateway.apply(config)).unwrap();
    assert_eq!(applied.changed, ["l"]);
    stand.value("l/T", 2.0).await;
    stand.end().await;
}

#[test]
fn mistakes_of_files_are_found_before_they_run() {
    let check = |settings: &str| {
        let text = format!("[[source]]\nname = \"f\"\n{settings}");
        GatewayConfig::parse(Path::new("g.toml"), &text).map(|_| ()).unwrap_err().to_string()
    };
    for (settings, said) in [
        ("type = \"file\"\n", "file is missing"),
        ("type = \"file\"\nfile = \"a\"\ndelimiter = \";\"\n", "delimiter is for CSV"),
        ("type = \"log\"\nfile = \"a\"\nfrom = \"ent\"\n", "did you mean \"end\"?"),
        ("type = \"log\"\nfile = \"a.csv\"\ncolumns = \"a\"\n", "g.toml:5: columns: this is no list"),
        (
            "type = \"file\"\nfile = \"a\"\n[[tag]]\nsource = \"f\"\nname = \"T\"\naccess = \"read-write\"\n",
            "cannot be written",
        ),
    ] {
        let error = check(settings);
        assert!(error.contains(said), "{error}");
    }
}
