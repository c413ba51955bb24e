//! The program as a gateway: generated configurations, and files with mistakes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};
use taktwerk_lab::program::Program;

const LIMIT: Duration = Duration::from_secs(60);

fn taktwerk(arguments: &[&str]) -> Output {
    Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(arguments).run(LIMIT).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// The file must be private, because its content controls the server.
fn private(path: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn generated_files_run_without_changes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let file = file.to_str().unwrap();
    // Nothing listens on that port.
    let output = taktwerk(&["config", "init", file, "--modbus", "127.0.0.1:9"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let check = taktwerk(&["config", "check", file]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check.stderr));
    assert!(text(&check.stdout).contains("1 with 1 tag"), "{}", text(&check.stdout));
    let wrong = taktwerk(&["config", "init", file, "--modbus", "127.0.0.1:9"]);
    assert!(text(&wrong.stderr).contains("exists already"));
    let wrong = folder.path().join("wrong.toml");
    let wrong = taktwerk(&["config", "init", wrong.to_str().unwrap(), "--modbus", "a b"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("\"a b\" is no address"), "{}", text(&wrong.stderr));
    // Only the port is changed, because tests run in parallel.
    let ours = std::fs::read_to_string(file).unwrap().replace("127.0.0.1:4840", "127.0.0.1:0");
    std::fs::write(file, ours).unwrap();
    let server = Program::new(env!("CARGO_BIN_EXE_taktwerk"));
    let server = server.args(["serve", "--exit-with-stdin", "--config", file]).serve(LIMIT).unwrap();
    let node = "nsu=urn:taktwerk:gateway;s=modbus-1/Holding registers";
    let begin = Instant::now();
    loop {
        let read = taktwerk(&["read", server.url(), node, "--json"]);
        let said = text(&read.stdout);
        // A client whose first connection is refused prints nothing.
        if said.contains("BadNoCommunication") || said.contains("Bad_NoCommunication") {
            break;
        }
        assert!(begin.elapsed() < LIMIT, "{said}{}", text(&read.stderr));
    }
    let browse = taktwerk(&["browse", server.url(), "/Objects/2:modbus-1"]);
    assert!(text(&browse.stdout).contains("Holding registers"), "{}", text(&browse.stdout));
    server.stop().unwrap();
}

#[test]
fn mistakes_in_sources_and_tags_are_found_before_the_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    let source = "[[source]]\nname = \"s\"\ntype = \"simulation\"\n";
    let tag = "[[tag]]\nsource = \"s\"\nname = \"a\"\n";
    for (number, (more, said)) in [
        (
            format!("{source}{tag}signl = \"sine\"\n"),
            "14: signl: there is no such setting here; did you mean `signal`?",
        ),
        (format!("{source}{tag}historize = true\n"), "set file = \"history.db\" under [history]"),
        (format!("{source}{}", tag.replace("\"s\"", "\"t\"")), "there is no source \"t\""),
    ]
    .into_iter()
    .enumerate()
    {
        let file = write(folder.path(), &format!("{number}.toml"), &format!("{BASE}{more}"));
        private(&file);
        for command in [&["config", "check", &file][..], &["serve", "--config", &file]] {
            let output = taktwerk(command);
            assert_eq!(output.status.code(), Some(2), "{more}");
            assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
        }
    }
}

#[test]
fn a_check_lists_all_errors_and_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let source = "[[source]]\nname = \"plc\"\ntype = \"modbus\"\naddress = \"127.0.0.1\"\n";
    let tag = |name: &str, more: &str| format!("[[tag]]\nsource = \"plc\"\nname = \"{name}\"\n{more}\n");
    let wrong =
        format!("{BASE}{source}{}{}", tag("a", "address = \"holdin:1\""), tag("b", "adress = \"coil:1\""));
    let wrong = write(folder.path(), "wrong.toml", &wrong);
    let check = taktwerk(&["gateway", "check", &wrong]);
    assert_eq!(check.status.code(), Some(2));
    let said = text(&check.stdout);
    // The second tag has two mistakes: an unknown setting, and no address.
    assert_eq!(said.lines().filter(|line| line.starts_with("error: ")).count(), 3, "{said}");
    assert!(said.contains("did you mean `address`?"), "{said}");
    assert!(said.contains("wrong.toml:15: address: \"holdin:1\" is no Modbus address"), "{said}");
    assert!(text(&check.stderr).contains("3 errors"), "{}", text(&check.stderr));
    let float = |at: u16| format!("address = \"holding:{at}\"\nformat = \"float32\"");
    let doubtful = format!("{BASE}{source}{}{}", tag("a", &float(0)), tag("b", &float(1)));
    let doubtful = write(folder.path(), "doubtful.toml", &doubtful);
    private(&doubtful);
    let check = taktwerk(&["gateway", "check", &doubtful, "--json"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check.stderr));
    let json: serde_json::Value = serde_json::from_slice(&check.stdout).unwrap();
    assert_eq!(json["Errors"].as_array().map(Vec::len), Some(0));
    assert_eq!(
        (json["Warnings"][0]["Line"].as_u64(), json["Warnings"][0]["Key"].as_str()),
        (Some(17), Some("address"))
    );
    assert_eq!(json["Sources"][0]["Tags"], 2);
    let unseen = "clients without a user are allowed, but they see none of the tags";
    assert_eq!(json["Warnings"].as_array().unwrap().last().unwrap()["Problem"], unseen);
    let rules = |role: &str| {
        format!(
            "[[namespace]]\nuri = \"urn:taktwerk:gateway\"\n[namespace.permissions]\n{role} = [\"Browse\", \"Read\"]\n"
        )
    };
    for (more, is_told) in [
        (rules("Operator"), true),
        (rules("Anonymous"), false),
        ("[permissions]\nunspecified = \"open\"\n".to_owned(), false),
        ("[[role]]\nname = \"Observer\"\nanonymous = true\n".to_owned(), false),
        (
            format!(
                "{}{}",
                rules("Operator"),
                tag("own", "address = \"coil:1\"\nread_roles = \"Anonymous\"")
            ),
            false,
        ),
    ] {
        let base = format!("{BASE}{source}{}{more}", tag("a", "address = \"coil:0\""));
        let file = write(folder.path(), "rules.toml", &base);
        private(&file);
        let check = taktwerk(&["gateway", "check", &file]);
        let said = text(&check.stdout);
        assert_eq!((check.status.code(), said.contains(unseen)), (Some(0), is_told), "{more}: {said}");
    }
    let secured = BASE.replace("policies = []\nnone = true\n", "");
    let file = write(
        folder.path(),
        "secured.toml",
        &format!("{secured}{source}{}", tag("a", "address = \"coil:0\"")),
    );
    private(&file);
    let said = text(&taktwerk(&["gateway", "check", &file]).stdout);
    assert!(!said.contains(unseen), "applications that the server trusts see them: {said}");
    assert_eq!(taktwerk(&["gateway", "check", &doubtful, "--strict"]).status.code(), Some(2));
    let empty = write(folder.path(), "empty.toml", BASE);
    let check = taktwerk(&["gateway", "check", &empty]);
    assert_eq!(check.status.code(), Some(2));
    assert!(text(&check.stdout).contains("there is no [[source]]"), "{}", text(&check.stdout));
}

#[test]
fn imported_files_become_a_working_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let publisher =
        r#"[{"EndpointUrl": "opc.tcp://127.0.0.1:9", "OpcNodes": [{"Id": "ns=2;s=Speed"}, {"Id": "?"}]}]"#;
    let kepware = "Tag Name,Address,Data Type,Client Access,Scan Rate\nZone.T,400001,Float,R/W,100\n";
    let publisher = write(folder.path(), "publishednodes.json", publisher);
    let kepware = write(folder.path(), "kepware.csv", kepware);
    for (from, more, tag) in
        [(&publisher, &[][..], "Speed"), (&kepware, &["--address", "127.0.0.1:9", "--name", "plc"], "T")]
    {
        let to = folder.path().join(format!("{tag}.toml")).display().to_string();
        let import = taktwerk(&[&["gateway", "import", from, "--to", &to], more].concat());
        assert_eq!(import.status.code(), Some(0), "{}", text(&import.stderr));
        let check = taktwerk(&["gateway", "check", &to]);
        assert_eq!(check.status.code(), Some(0), "{}{}", text(&check.stdout), text(&check.stderr));
        let table = folder.path().join(format!("{tag}.csv")).display().to_string();
        assert_eq!(taktwerk(&["gateway", "export", &to, "--to", &table]).status.code(), Some(0));
        let table = std::fs::read_to_string(table).unwrap();
        assert!(
            table.starts_with("source,name,path,address") && table.contains(&format!(",{tag},")),
            "{table}"
        );
        let again = taktwerk(&[&["gateway", "import", from, "--to", &to], more].concat());
        assert!(text(&again.stderr).contains("exists already"), "{}", text(&again.stderr));
    }
    let told = taktwerk(&["gateway", "import", &publisher]);
    assert!(
        text(&told.stdout).contains("[[source]]\nname = \"127.0.0.1\"\ntype = \"opcua\""),
        "{}",
        text(&told.stdout)
    );
    assert!(
        text(&told.stderr).contains("note: opc.tcp://127.0.0.1:9: ? was not imported"),
        "{}",
        text(&told.stderr)
    );
    let nowhere = taktwerk(&["gateway", "import", &kepware]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(text(&nowhere.stderr).contains("add --address"), "{}", text(&nowhere.stderr));
}

#[test]
fn a_scan_contacts_only_the_given_targets() {
    // A unit that supports no function: it exists.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 12];
            while let Ok(count @ 8..) = stream.read(&mut request) {
                let mut answer = request[..9].to_vec();
                answer[5] = 3;
                answer[7] |= 0x80;
                answer[8] = if request[6] == 3 { 1 } else { 11 };
                assert!(count >= 8 && stream.write_all(&answer).is_ok());
            }
        }
    });
    let range = format!("127.0.0.1:{port}");
    let scan = taktwerk(&["gateway", "scan", "--modbus", &range, "--units", "1-4", "--json"]);
    assert_eq!(scan.status.code(), Some(0), "{}", text(&scan.stderr));
    let json: serde_json::Value = serde_json::from_slice(&scan.stdout).unwrap();
    let units = json["Modbus"][0]["Units"].as_array().unwrap();
    assert_eq!((units.len(), &units[0]["Unit"]), (1, &serde_json::json!(3)), "{json}");
    let nobody = taktwerk(&["gateway", "scan", "--modbus", &range, "--units", "1"]);
    assert_eq!(nobody.status.code(), Some(3));
    assert!(text(&nobody.stdout).contains("no unit answers"), "{}", text(&nobody.stdout));
    assert_eq!(
        taktwerk(&["gateway", "scan"]).status.code(),
        Some(2),
        "nothing is contacted that was not named"
    );
    let server = Program::new(env!("CARGO_BIN_EXE_taktwerk"));
    let server = server.args(["serve", "--exit-with-stdin", "--port", "0"]).serve(LIMIT).unwrap();
    let scan = taktwerk(&["gateway", "scan", "--opcua", server.url()]);
    assert_eq!(scan.status.code(), Some(0), "{}", text(&scan.stderr));
    assert!(text(&scan.stdout).contains("SignAndEncrypt"), "{}", text(&scan.stdout));
    assert!(text(&scan.stdout).lines().all(|line| line.chars().count() <= 100), "{}", text(&scan.stdout));
    let browse = taktwerk(&["gateway", "browse", server.url(), "--toml"]);
    let tags = text(&browse.stdout);
    assert!(tags.contains("name = \"Temperature\"\npath = "), "{tags}");
    // What it prints can be pasted as a whole, also a second time.
    let source = format!("[[source]]\nname = \"source\"\ntype = \"opcua\"\nurl = \"{}\"\n", server.url());
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "pasted.toml", &format!("{BASE}{source}{tags}"));
    let check = taktwerk(&["gateway", "check", &file]);
    assert_eq!(check.status.code(), Some(0), "{}{}", text(&check.stdout), text(&check.stderr));
    let again = taktwerk(&["gateway", "browse", &file, "--toml"]);
    assert!(!text(&again.stdout).contains("type = "), "they are there already: {}", text(&again.stdout));
    assert!(text(&again.stderr).contains("the configuration would refuse"), "{}", text(&again.stderr));
    let table = taktwerk(&["gateway", "browse", server.url(), "--most", "20"]);
    assert!(text(&table.stdout).lines().all(|line| line.chars().count() <= 100), "{}", text(&table.stdout));
    server.stop().unwrap();
}

#[test]
fn sources_and_tags_are_applied_while_the_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let access = "[[namespace]]\nuri = \"urn:taktwerk:gateway\"\n[namespace.permissions]\nAnonymous = [\"Browse\", \"Read\"]\n";
    let source =
        "[[source]]\nname = \"s\"\ntype = \"simulation\"\ninterval = \"50 ms\"\ntags = \"tags.csv\"\n";
    let table = |rows: &str| write(folder.path(), "tags.csv", &format!("name,signal,value,units\n{rows}"));
    let configure = |more: &str| {
        let file = write(folder.path(), "server.toml", &format!("{BASE}{more}"));
        private(&file);
        file
    };
    let file = configure("");
    let server = Program::new(env!("CARGO_BIN_EXE_taktwerk"));
    let server = server.args(["serve", "--exit-with-stdin", "--config", &file]).serve(LIMIT).unwrap();
    let read = |name: &str| {
        taktwerk(&["read", server.url(), &format!("nsu=urn:taktwerk:gateway;s=s/{name}"), "--json"])
    };
    let until = |name: &str, said: &str| {
        let begin = Instant::now();
        loop {
            let output = read(name);
            let told = text(&output.stdout) + &text(&output.stderr);
            if told.contains(said) {
                return;
            }
            assert!(begin.elapsed() < LIMIT, "{name}: no {said} in {told}");
        }
    };
    let apply = || taktwerk(&["config", "apply", &file]);
    // The first source of a server that had none.
    table("A,constant,5,\n");
    configure(&format!("{access}{source}"));
    let applied = apply();
    assert!(
        text(&applied.stdout).contains("applied: namespace, source, tag"),
        "{}{}",
        text(&applied.stdout),
        text(&applied.stderr)
    );
    until("A", "5.0");
    // Only the table has changed.
    table("A,constant,5,\nB,constant,7,°C\n");
    let applied = apply();
    assert!(text(&applied.stdout).contains("applied: source, tag"), "{}", text(&applied.stdout));
    until("B", "7.0");
    until("A", "5.0");
    let same = apply();
    assert!(
        text(&same.stdout).contains("no setting that a running server can apply"),
        "{}",
        text(&same.stdout)
    );
    // A mistake changes nothing.
    table("A,constant,6,\nC,constnt,1,\n");
    let wrong = apply();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("tags.csv:3: signal: there is no"), "{}", text(&wrong.stderr));
    until("A", "5.0");
    until("B", "7.0");
    // Everything is removed again; settings that need a restart are reported.
    configure("[gateway]\nthreads = 2\n");
    let gone = apply();
    assert!(text(&gone.stdout).contains("source"), "{}{}", text(&gone.stdout), text(&gone.stderr));
    until("B", "BadNodeIdUnknown");
    server.stop().unwrap();
}

const BASE: &str = "[server]\nbind = [\"127.0.0.1:0\"]\n[security]\npolicies = []\nnone = true\n\
                    [identities]\nanonymous = true\n";

/// A counter that never returns the same number twice: it stores the number before it returns it.
const COUNTING: &str = "\
#!/bin/sh
echo $$ > pid
n=$(cat state)
while sleep 0.005; do
    n=$((n + 1))
    echo $n > state.new && mv state.new state
    echo \"{\\\"name\\\":\\\"Count\\\",\\\"value\\\":$n}\" || exit
done
";

/// A gateway with a dashboard, for crash tests.
struct Gateway {
    child: Child,
    web: String,
    /// Log lines about its destination.
    destination: String,
    _stdin: Option<ChildStdin>,
}

impl Gateway {
    fn start(file: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_taktwerk"))
            .args(["serve", "--exit-with-stdin", "--config", file])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let mut gateway = Self { web: String::new(), destination: String::new(), _stdin: stdin, child };
        let mut lines = BufReader::new(gateway.child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut said = Vec::new();
        while gateway.web.is_empty() || gateway.destination.is_empty() {
            let line = lines.next().unwrap_or_else(|| panic!("it ended: {said:#?}"));
            if let Some(url) = line.strip_prefix("dashboard: http://") {
                gateway.web = url.trim_end_matches('/').to_owned();
            }
            if line.starts_with("destination ") {
                gateway.destination = line.clone();
            }
            said.push(line);
        }
        // Reads on, so that the gateway never blocks on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        gateway
    }

    /// The number of queued values at its start.
    fn waiting(&self) -> u64 {
        match self.destination.strip_suffix(" values waiting") {
            Some(line) => line.rsplit(' ').next().unwrap().parse().unwrap(),
            None => 0,
        }
    }

    /// A metric of the destination.
    fn metric(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(&self.web).unwrap();
        let host = "Host: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(format!("GET /metrics HTTP/1.1\r\n{host}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let name = format!("taktwerk_destination_{name}{{destination=\"archive\"}} ");
        let number = answer.lines().find_map(|line| line.strip_prefix(&name));
        number.unwrap_or_else(|| panic!("no {name}: {answer}")).parse::<f64>().unwrap() as u64
    }

    fn wait(&self, what: &str, until: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !until(self) {
            assert!(begin.elapsed() < LIMIT, "{what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the program of a killed gateway has noticed that its output is closed.
fn until_the_program_ends(folder: &Path) {
    let pid = std::fs::read_to_string(folder.join("pid")).unwrap();
    let begin = Instant::now();
    // Its exit status may not have been collected.
    let is_there = |stat: String| !stat.contains(") Z ") && !stat.contains(") X ");
    while std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(is_there) {
        assert!(begin.elapsed() < LIMIT, "the program does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn state(folder: &Path) -> u64 {
    std::fs::read_to_string(folder.join("state")).unwrap().trim().parse().unwrap()
}

#[test]
fn accepted_values_survive_kills_in_order_and_arrive_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "count.sh", COUNTING);
    write(folder, "state", "0\n");
    // A file in place of the directory makes writing fail.
    let blocked = folder.join("values");
    std::fs::write(&blocked, "in the way").unwrap();
    let sections = "[web]\nbind = \"127.0.0.1:0\"\n\
        [[source]]\nname = \"counter\"\ntype = \"program\"\ncommand = [\"sh\", \"count.sh\"]\n\
        [[tag]]\nsource = \"counter\"\nname = \"Count\"\ntype = \"Int64\"\n\
        [[destination]]\nname = \"archive\"\ntype = \"file\"\nfolder = \"values\"\nflush = \"20 ms\"\n\
        retry = \"20 ms\"\nretry_max = \"100 ms\"\n";
    let file = write(folder, "gateway.toml", &format!("{BASE}{sections}"));
    private(&file);
    let check = taktwerk(&["config", "check", &file]);
    assert!(
        text(&check.stdout).lines().any(|line| line.starts_with("destinations ") && line.ends_with(" 1")),
        "{check:?}"
    );
    // Numbers that must have been accepted: (from, to) for each run of the process.
    let mut safe: Vec<(u64, u64)> = Vec::new();
    let mut waiting = 0;
    for life in 0..5 {
        let from = state(folder) + 1;
        let gateway = Gateway::start(&file);
        assert!(gateway.waiting() >= waiting, "life {life}: {} < {waiting}", gateway.waiting());
        gateway.wait("it counts", |_| state(folder) > from + 20);
        gateway.wait("the destination fails", |gateway| life == 4 || gateway.metric("errors_total") > 0);
        let to = state(folder);
        // Accepted values are these numbers, and a few states of the tag without a value.
        gateway.wait("the queue accepts", |gateway| gateway.metric("accepted_values_total") > to - from + 10);
        safe.push((from, to));
        waiting = gateway.waiting() + (to - from);
        if life == 3 {
            std::fs::remove_file(&blocked).unwrap();
        }
        if life < 4 {
            gateway.kill();
            until_the_program_ends(folder);
            continue;
        }
        gateway.wait("the queue empties", |gateway| {
            gateway.metric("sent_values_total") > waiting && gateway.metric("queued_values") < 100
        });
        assert_eq!(gateway.metric("evicted_values_total") + gateway.metric("overrun_values_total"), 0);
        gateway.kill();
    }
    let mut files: Vec<_> = std::fs::read_dir(&blocked).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let all: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    // The last line may have been truncated by the last kill.
    let lines: Vec<serde_json::Value> = all
        .split_inclusive('\n')
        .filter_map(|line| serde_json::from_str(line.strip_suffix('\n')?).ok())
        .collect();
    let keys: std::collections::BTreeSet<&str> =
        lines.iter().map(|line| line["key"].as_str().unwrap()).collect();
    assert_eq!(keys.len(), lines.len(), "a value arrived twice");
    assert!(lines.iter().all(|line| line["tag"] == "counter/Count"));
    let numbers: Vec<u64> = lines.iter().filter_map(|line| line["value"].as_u64()).collect();
    let is_next = |pair: &&[u64]| pair[0] >= pair[1];
    // A value is sent again when its status becomes Uncertain.
    let good: Vec<u64> = lines
        .iter()
        .filter(|line| line["status"] == "Good")
        .filter_map(|line| line["value"].as_u64())
        .collect();
    assert_eq!(good.windows(2).find(is_next), None, "the order is kept");
    for (from, to) in safe {
        let missing: Vec<u64> = (from..=to).filter(|number| numbers.binary_search(number).is_err()).collect();
        assert!(missing.is_empty(), "lost of {from} to {to}: {missing:?}");
    }
}

#[test]
fn the_delay_from_a_register_to_a_client_is_measured() {
    let arguments =
        "bench gateway --devices 3 --registers 130 --poll 50 -I 50 --hang 1 -d 2s --warmup 500ms --json";
    let output = taktwerk(&arguments.split(' ').collect::<Vec<_>>());
    // On a busy machine the measurement is invalid, but it is complete.
    assert!(matches!(output.status.code(), Some(0 | 5)), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["values"].as_u64().unwrap() > 390, "{report}");
    assert_eq!(report["read_per_s"], 7_800.0);
    // A change waits for the next read, and its value for the next publish: on average half an interval each.
    let mean = |name: &str| report[name]["mean_us"].as_f64().unwrap();
    assert!(mean("delay") > 10_000.0 && mean("delay_while_others_hang") > 10_000.0, "{report}");
    assert!(report["server"]["cpu_us_per_value"].as_f64().unwrap() > 0.0);
    let wrong = taktwerk(&["bench", "gateway", "--devices", "2", "--hang", "2"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("at least one of the 2 devices"), "{}", text(&wrong.stderr));
}

#[test]
fn the_delay_from_a_broker_to_a_client_is_measured() {
    let arguments = "bench gateway-mqtt --topics 50 --rate 500 -I 10 -d 2s --warmup 500ms --json";
    let output = taktwerk(&arguments.split(' ').collect::<Vec<_>>());
    if text(&output.stderr).contains("mosquitto is not installed") {
        assert!(
            std::env::var_os("TAKTWERK_TEST_MOSQUITTO").is_none_or(|wish| wish != "required"),
            "no mosquitto"
        );
        println!("skipped: there is no mosquitto");
        return;
    }
    assert!(matches!(output.status.code(), Some(0 | 5)), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |path: &str| report.pointer(path).and_then(serde_json::Value::as_f64).unwrap();
    // More than the rate at which delays are measured: the publisher sends as fast as it can.
    assert!(number("/messages_per_s") > 1_000.0, "{report}");
    assert!(number("/published_per_s") > 1_000.0, "{report}");
    // The client's values wait for the next publish, on average half an interval; those of the plain subscriber do not.
    assert!(number("/plain/count") > 500.0 && number("/delay/count") > 50.0, "{report}");
    assert!(number("/delay/mean_us") > number("/plain/mean_us"), "{report}");
    assert!(number("/server/cpu_us_per_message") > 0.0, "{report}");
}

#[test]
fn the_delay_from_servers_to_clients_is_measured() {
    let arguments = "bench gateway-opcua --servers 3 --items 60 -c 4 -I 100 -d 2s --warmup 500ms --json";
    let output = taktwerk(&arguments.split(' ').collect::<Vec<_>>());
    assert!(matches!(output.status.code(), Some(0 | 5)), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |path: &str| report.pointer(path).and_then(serde_json::Value::as_f64).unwrap();
    assert_eq!(number("/changes_per_s"), 1_800.0);
    // All four clients have received the values of all three servers at least once.
    assert!(number("/values") > 4.0 * 180.0, "{report}");
    // Two publishing intervals on the way through the gateway, one on the direct way; both take longer than 0.
    assert!(number("/delay/count") > 0.0 && number("/direct/count") > 0.0, "{report}");
    assert!(number("/delay/mean_us") > 0.0 && number("/delay/max_us") < 60e6, "{report}");
    assert!(number("/source_cpu_percent_one_client") > 0.0, "{report}");
    assert!(number("/server/cpu_us_per_value") > 0.0, "{report}");
}

/// The lines of standard error of a server until one begins with these words, and the server. Later lines are read and dropped.
fn until_told(file: &str, begin: &str) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args(["serve", "--exit-with-stdin", "--config", file])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.starts_with(begin)).expect("it ended");
    std::thread::spawn(move || lines.for_each(drop));
    (child, line)
}

#[test]
fn a_server_says_what_its_sources_add_when_they_are_connected() {
    let folder = tempfile::tempdir().unwrap();
    let source =
        "[[source]]\nname = \"up\"\ntype = \"opcua\"\nurl = \"opc.tcp://127.0.0.1:9\"\nmirror = [\"i=85\"]\n";
    let typed = "[[tag]]\nsource = \"up\"\nname = \"T\"\naddress = \"i=2258\"\ntype = \"DateTime\"\n";
    for (more, said) in [
        ("", ", the nodes of its mirror when it is connected"),
        (typed, ", 1 tag, and the nodes of its mirror when it is connected"),
    ] {
        let file = write(folder.path(), "server.toml", &format!("{BASE}{source}{more}"));
        private(&file);
        let (mut server, line) = until_told(&file, "source up: ");
        server.kill().unwrap();
        server.wait().unwrap();
        assert!(line.ends_with(said), "{line}");
    }
}

/// A restart of the dashboard could fail, and would end the sessions of its users.
#[cfg(feature = "web")]
#[test]
fn the_dashboard_goes_on_when_a_reload_brings_the_first_source() {
    let folder = tempfile::tempdir().unwrap();
    let web = "[web]\nbind = \"127.0.0.1:0\"\n";
    let configure = |more: &str| {
        let file = write(folder.path(), "server.toml", &format!("{BASE}{web}{more}"));
        private(&file);
        file
    };
    let file = configure("");
    let (mut server, line) = until_told(&file, "dashboard: ");
    let address = line.trim_start_matches("dashboard: http://").trim_end_matches('/').to_owned();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut ask = |path: &str| {
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
        let mut reader = BufReader::new(&stream);
        let (mut len, mut line) = (0, String::new());
        while reader.read_line(&mut line).unwrap() > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                len = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; len];
        reader.read_exact(&mut body).unwrap();
        text(&body)
    };
    assert!(!ask("/metrics").contains("taktwerk_source_tags"));
    configure("[[source]]\nname = \"s\"\ntype = \"simulation\"\n[[tag]]\nsource = \"s\"\nname = \"a\"\n");
    let apply = taktwerk(&["config", "apply", &file]);
    assert_eq!(apply.status.code(), Some(0), "{}", text(&apply.stderr));
    // The same connection.
    let metrics = ask("/metrics");
    assert!(metrics.contains("taktwerk_source_tags{source=\"s\"} 1"), "{metrics}");
    server.kill().unwrap();
    server.wait().unwrap();
}
