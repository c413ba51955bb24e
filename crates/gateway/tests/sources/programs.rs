//! A gateway with programs as sources: the samples of the documentation, and programs that misbehave.

use crate::stand::{MS, Stand};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};
use taktwerk_types::{DataValue, StatusCode, UtcTime};
use tokio::time::sleep;

/// The directory of the samples.
fn samples() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").display().to_string()
}

fn source(name: &str, command: &[&str], more: &str) -> String {
    format!(
        "[[source]]\nname = \"{name}\"\ntype = \"program\"\ncommand = {command:?}\nretry = \"50 ms\"\nretry_max = \"100 ms\"\n\
         interval = \"100 ms\"\nstale_after = \"1 s\"\nlost_after = \"3 s\"\n{more}\n"
    )
}

fn tag(source: &str, name: &str, more: &str) -> String {
    format!("[[tag]]\nsource = \"{source}\"\nname = \"{name}\"\n{more}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_samples_of_the_documentation_work() {
    let (python, shell) = (samples() + "/adapter.py", samples() + "/adapter.sh");
    let stand = Stand::new(
        &[
            source("py", &["python3", &python], ""),
            tag("py", "Load", "access = \"read-write\""),
            source("sh", &["sh", &shell], ""),
            tag("sh", "Count", "type = \"UInt32\""),
            tag("sh", "State", "type = \"String\""),
        ]
        .concat(),
    )
    .await;
    stand.until("sh/Count", |value| value.value.as_ref().and_then(|it| it.as_f64()) > Some(2.0)).await;
    stand.value("sh/State", "running").await;
    stand.until("sh/State", |value| value.status().is_uncertain()).await;
    stand.until("py/Load", |value| value.status() == StatusCode::GOOD).await;
    stand.write("py/Load", 1000.0).await.unwrap();
    stand.until("py/Load", |value| value.value.as_ref().and_then(|it| it.as_f64()) > Some(1000.0)).await;
    assert_eq!(stand.source("py").statistics.writes, 1);
    stand.end().await;
}

/// The Go compiler, also where `PATH` does not have it.
fn go() -> Option<&'static str> {
    let starts =
        |go: &&str| Command::new(go).arg("version").output().is_ok_and(|output| output.status.success());
    ["go", "/usr/local/go/bin/go"].into_iter().find(starts)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_in_go_works() {
    let Some(go) = go() else {
        println!("skipped: there is no Go compiler (Debian package golang-go)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("adapter").display().to_string();
    let mut build = Command::new(go);
    build.args(["build", "-o", &program, "adapter.go"]).current_dir(samples());
    // Without a network and a home directory, too.
    let cache = folder.path().join("cache");
    build.env("GOCACHE", &cache).env("GOTOOLCHAIN", "local").env("GO111MODULE", "off");
    let output = build.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = source("go", &[&program], "") + &tag("go", "Load", "access = \"read-write\"");
    let stand = Stand::new(&text).await;
    let load = stand.until("go/Load", |value| value.status() == StatusCode::GOOD).await;
    let (source, server) = (load.source_timestamp.unwrap(), load.server_timestamp.unwrap());
    assert!(source < server, "the time is that of the program");
    stand.write("go/Load", 1000.0).await.unwrap();
    stand.until("go/Load", |value| value.value.as_ref().and_then(|it| it.as_f64()) > Some(1000.0)).await;
    let counted = stand.source("go").statistics;
    assert_eq!((counted.writes, counted.invalid), (1, 0));
    stand.end().await;
}

/// Child processes of a program do not outlive the gateway, whether the program exits or is killed.
#[tokio::test(flavor = "multi_thread")]
async fn child_processes_of_a_program_are_killed_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let script = |name: &str, end: &str| {
        let file = path(name).display().to_string();
        format!(
            "sleep 1000 >/dev/null 2>&1 & echo $! >> {file}; echo '{{\"name\":\"V\",\"value\":1}}'; {end}"
        )
    };
    let stand = Stand::new(
        &[
            source("stays", &["sh", "-c", &script("stays", "sleep 1000")], ""),
            tag("stays", "V", ""),
            source("goes", &["sh", "-c", &script("goes", "sleep 0.2")], ""),
            tag("goes", "V", ""),
        ]
        .concat(),
    )
    .await;
    stand.until("stays/V", |value| value.status() == StatusCode::GOOD).await;
    let started = |name: &str| -> Vec<u32> {
        let text = std::fs::read_to_string(path(name)).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    while started("goes").len() < 3 {
        sleep(20 * MS).await;
    }
    stand.end().await;
    let all = [started("stays"), started("goes")].concat();
    assert!(all.len() >= 4, "{all:?}");
    let is_running = |id: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // A process that has exited but was not waited for is a zombie.
        status.contains("(sleep)") && !status.contains(") Z")
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while all.iter().any(is_running) {
        assert!(
            Instant::now() < deadline,
            "{:?}",
            all.iter().filter(|id| is_running(id)).collect::<Vec<_>>()
        );
        sleep(20 * MS).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_speak_cbor() {
    // {"id": 0, "value": 7}, then invalid CBOR. The first byte of the gateway's message belongs to the length prefix, hence 0.
    let script = r"printf '\000\000\000\014\242\142id\000\145value\007\000\000\000\001\377'; head -c 4 | od -An -tu1 >&2; \
                   printf '\000\000\000\016\242\142id\001\145value\102\000\377'; exec sleep 1000";
    let stand = Stand::new(
        &[
            source("c", &["sh", "-c", script], "format = \"cbor\""),
            tag("c", "Number", "type = \"UInt16\""),
            tag("c", "Bytes", "type = \"ByteString\""),
        ]
        .concat(),
    )
    .await;
    stand.value("c/Number", 7u16).await;
    stand.value("c/Bytes", taktwerk_types::ByteString::from(vec![0, 255])).await;
    assert_eq!(stand.source("c").statistics.invalid, 1);
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faulty_programs_are_restarted_and_affect_only_themselves() {
    let run = |name: &str, script: &str, more: &str| {
        source(name, &["sh", "-c", script], more) + &tag(name, "v", "")
    };
    let stand = Stand::new(
        &[
            run("once", "echo '{\"id\":0,\"value\":1}'; exit 3", ""),
            run("hung", "echo '{\"id\":0,\"value\":1}'; exec sleep 1000", "silence_max = \"300 ms\""),
            run(
                "noise",
                "while :; do echo nonsense; echo '{\"id\":99,\"value\":1}'; echo '[1]'; sleep 0.05; done",
                "",
            ),
            run("endless", "tr '\\\\0' x < /dev/zero", ""),
            run("none", "exec /does/not/exist", ""),
            run("text", "while sleep 0.05; do echo '{\"id\":0,\"value\":\"x\"}'; done", ""),
            source("missing", &["/does/not/exist"], ""),
            tag("missing", "v", ""),
            source("ok", &["sh", "-c", "while sleep 0.05; do echo '{\"id\":0,\"value\":7}'; done"], ""),
            tag("ok", "v", ""),
        ]
        .concat(),
    )
    .await;
    stand.value("ok/v", 7.0).await;
    stand.until("text/v", |value| value.status() == StatusCode::BAD_TYPE_MISMATCH).await;
    let wait = async |name: &str, said: &str| {
        for _ in 0..1000 {
            let counted = stand.source(name).statistics;
            if counted.errors > 1 && counted.last_error.as_ref().is_some_and(|error| error.contains(said)) {
                return;
            }
            sleep(10 * MS).await;
        }
        panic!("{:?}", stand.source(name));
    };
    wait("once", "has ended with exit status: 3").await;
    wait("hung", "did not answer within 300ms").await;
    wait("noise", "is not JSON").await;
    wait("endless", "a line of more than 1048576 bytes").await;
    wait("none", "has ended with exit status: 127").await;
    wait("missing", "cannot connect to /does/not/exist: no such file or directory").await;
    assert!(stand.source("noise").statistics.invalid > 3);
    assert!(stand.source("once").statistics.connections > 1);
    let before = stand.source("ok").statistics;
    sleep(Duration::from_secs(1)).await;
    let after = stand.source("ok").statistics;
    assert!(after.answers - before.answers >= 8 && after.missed == 0, "{before:?} {after:?}");
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flooding_program_is_limited_and_others_continue() {
    let limits = "values_per_second_max = 1000\nmemory_max = 268435456\ncpu_max = 0.5";
    let stand = Stand::new(
        &[
            source("flood", &["yes", "{\"id\":0,\"value\":1}"], limits),
            tag("flood", "v", ""),
            // Messages without readings are not answers.
            source("empty", &["sh", "-c", "echo '[]'"], ""),
            tag("empty", "v", ""),
            "[[source]]\nname = \"sim\"\ntype = \"simulation\"\ninterval = \"20 ms\"\n".to_owned(),
            tag("sim", "v", ""),
        ]
        .concat(),
    )
    .await;
    // It runs with or without the permission to limit it. Values beyond the rate limit are replaced by newer ones.
    let began = Instant::now();
    while stand.source("flood").statistics.replaced < 10_000 {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", stand.source("flood"));
        sleep(10 * MS).await;
    }
    let before = stand.source("sim").statistics.values;
    stand.until_values("sim", before as u32 + 50).await;
    let flood = stand.source("flood").statistics;
    assert!(flood.is_connected && flood.values < flood.replaced && flood.dropped == 0, "{flood:?}");
    while stand.source("empty").statistics.connections < 2 {
        sleep(10 * MS).await;
    }
    assert_eq!(stand.source("empty").statistics.answers, 0);
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_times_become_source_timestamps_if_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.csv");
    std::fs::write(&file, "t,a\n2019-07-03T12:00:00Z,1\n2019-07-03T12:00:00.5Z,2\n,3\n").unwrap();
    let source = |name: &str, more: &str| {
        format!(
            "[[source]]\nname = \"{name}\"\ntype = \"replay\"\nfile = {:?}\nrepeat = false\nstale_after = \"1 min\"\n\
             interval = \"10 ms\"\n{more}\n[[tag]]\nsource = \"{name}\"\nname = \"a\"\n",
            file.display().to_string()
        )
    };
    let with_time = "time_column = \"t\"";
    let text = source("now", with_time) + &source("then", &format!("{with_time}\ntimestamps = \"recorded\""));
    let before = UtcTime::from_unix(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap());
    let stand = Stand::new(&text).await;
    let last = |value: &DataValue| value.value == Some(3.0.into());
    let now = stand.until("now/a", last).await.source_timestamp.unwrap();
    assert!(now >= before, "{now}");
    // A row without a time belongs to the one before it.
    let then = stand.until("then/a", last).await;
    assert_eq!(then.source_timestamp, UtcTime::parse("2019-07-03T12:00:00.5Z"));
    assert!(then.server_timestamp.unwrap() >= before, "the server has received it now");
    stand.end().await;
    let wrong = source("then", "timestamps = \"recorded\"");
    let refused = taktwerk_gateway::GatewayConfig::parse(Path::new("g.toml"), &wrong).map(drop);
    assert!(format!("{refused:?}").contains("need a column with the times"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_are_calculated_from_others_and_recordings_are_played() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.csv");
    std::fs::write(&file, "t,a,b\n0.1,1,on\n0.2,2,off\n0.25,,on\n0.3,x,on\n").unwrap();
    let text = format!(
        "[[source]]\nname = \"r\"\ntype = \"replay\"\nfile = {:?}\ntime_column = \"t\"\nspeed = 0.5\nrepeat = false\n\
         stale_after = \"1 min\"\n[[tag]]\nsource = \"r\"\nname = \"A\"\ncolumn = \"a\"\n\
         [[tag]]\nsource = \"r\"\nname = \"b\"\ntype = \"Boolean\"\n\
         [[source]]\nname = \"s\"\ntype = \"simulation\"\ninterval = \"50 ms\"\n\
         [[tag]]\nsource = \"s\"\nname = \"x\"\npath = \"Line 1\"\nsignal = \"constant\"\nvalue = 20.0\naccess = \"read-write\"\n\
         [[source]]\nname = \"c\"\ntype = \"calculation\"\ninterval = \"50 ms\"\n\
         [[tag]]\nsource = \"c\"\nname = \"F\"\nexpression = \"{{Line 1/x}} * 1.8 + 32\"\n\
         [[tag]]\nsource = \"c\"\nname = \"Hot\"\ntype = \"Boolean\"\nexpression = \"{{c/F}} > 100\"\n",
        file.display().to_string()
    );
    let wrong = format!("{text}[[tag]]\nsource = \"c\"\nname = \"No\"\nexpression = \"{{Line 2/x}} + 1\"\n");
    let refused = taktwerk_gateway::GatewayConfig::parse(std::path::Path::new("g.toml"), &wrong).map(drop);
    assert!(format!("{refused:?}").contains("there is no tag {Line 2/x}"), "{refused:?}");
    let stand = Stand::new(&text).await;
    stand.value("c/F", 68.0).await;
    stand.value("c/Hot", false).await;
    stand.write("Line 1/x", 50.0).await.unwrap();
    stand.value("c/F", 122.0).await;
    stand.value("c/Hot", true).await;
    stand.until("r/A", |value| value.status() == StatusCode::BAD_TYPE_MISMATCH).await;
    stand.value("r/b", true).await;
    assert_eq!(stand.source("r").statistics.requests, 4);
    stand.end().await;
}
