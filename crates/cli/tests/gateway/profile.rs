//! `serve --profile`: resource usage of source programs and of additional processes.

use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use taktwerk_lab::program::Program;

const LIMIT: Duration = Duration::from_secs(60);
const BINARY: &str = env!("CARGO_BIN_EXE_taktwerk");
/// A busy loop.
const ADAPTER: &str = "#!/bin/sh\necho $$ > pid\necho '{\"id\":0,\"value\":1}'\nwhile :; do :; done\n";

/// A process that is killed with the test.
struct Sleeping(Child);

impl Drop for Sleeping {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The values of nodes and their common timestamp; `None` if one is missing or timestamps differ.
fn figures(url: &str, nodes: &[String]) -> Option<Vec<f64>> {
    let read = Program::new(BINARY).args(["read", url]).args(nodes).arg("--json").run(LIMIT).unwrap();
    let all: Vec<Value> = serde_json::from_slice(&read.stdout).ok()?;
    let time = all.first()?["SourceTimestamp"].clone();
    let number = |one: &Value| one["Value"]["Value"].as_f64().or_else(|| one["Value"].as_f64());
    all.iter().map(|one| number(one).filter(|_| one["SourceTimestamp"] == time)).collect()
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

#[test]
fn programs_and_named_processes_are_shown_with_the_sum() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "adapter.sh", ADAPTER);
    // A name that no other process has. The kernel keeps its first 15 characters.
    let name = format!("vpn-{}", std::process::id());
    let vpn = folder.path().join(&name);
    std::fs::copy("/bin/sleep", &vpn).unwrap();
    let vpn = Sleeping(Command::new(&vpn).arg("297").stdin(Stdio::null()).spawn().unwrap());
    let config = write(
        folder.path(),
        "server.toml",
        "[server]\nbind = [\"127.0.0.1:0\"]\n[security]\npolicies = []\nnone = true\n[identities]\nanonymous = true\n\
         [permissions]\nunspecified = \"open\"\n\
         [[source]]\nname = \"machine\"\ntype = \"program\"\ncommand = [\"sh\", \"adapter.sh\"]\n\
         [[tag]]\nsource = \"machine\"\nname = \"Load\"\ntype = \"Double\"\n",
    );
    let server = Program::new(BINARY)
        .args(["serve", "--exit-with-stdin", "--quiet", "--config", &config])
        .args(["--profile", "--profile-process", &name])
        .serve(LIMIT)
        .unwrap();
    let url = server.url();
    let of = |object: &str| format!("ns=1;s=process/{object}");
    let (program, process) = ("Program machine", format!("Process {name}"));
    let cpu = [of("CpuPercent"), of(&format!("{program}/CpuPercent")), of(&format!("{process}/CpuPercent"))];
    let sums = [&cpu[..], &[of("Total/CpuPercent"), of(&format!("{program}/ResidentMegabytes"))]].concat();
    let all = [&sums[..], &[of(&format!("{process}/ResidentMegabytes"))]].concat();
    let until = |what: &str, is_so: &dyn Fn(&[f64]) -> bool| -> Vec<f64> {
        let end = Instant::now() + LIMIT;
        loop {
            let found = figures(url, &all);
            if let Some(found) = found.as_ref().filter(|found| is_so(found)) {
                return found.clone();
            }
            assert!(Instant::now() < end, "{what}: {found:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    // The program is busy, as far as other programs on this machine allow.
    let found = until("the program uses no CPU", &|found| found[1] > 5.0 && found[5] > 0.1);
    let [own, program, process, total, memory, of_process] = found[..] else { panic!("{found:?}") };
    assert!((total - own - program - process).abs() < 1e-6, "the sum is of all: {found:?}");
    assert!(process < program && memory > 0.1 && of_process > 0.1, "{found:?}");
    // A process that has ended uses nothing, but its object stays.
    drop(vpn);
    let found = until("the process is gone", &|found| found[5] == 0.0 && found[1] > 1.0);
    assert_eq!(found[2], 0.0, "{found:?}");
    server.stop().unwrap();
    // The program ends with the server.
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    let end = Instant::now() + LIMIT;
    while Path::new("/proc").join(pid.trim()).exists() {
        assert!(Instant::now() < end, "the program does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
}
