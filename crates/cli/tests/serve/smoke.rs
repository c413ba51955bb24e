//! `serve` and every client command, with output and exit code.

use serde_json::Value;
use std::process::Output;
use std::time::Duration;
use taktwerk_lab::program::{Program, Running};

const LIMIT: Duration = Duration::from_secs(60);

fn taktwerk() -> Program {
    Program::new(env!("CARGO_BIN_EXE_taktwerk"))
}

/// A server without security by default, so that no test uses the user's certificates.
fn serve(arguments: &[&str]) -> Running {
    let mut program = taktwerk().args(["serve", "--port", "0", "--exit-with-stdin"]).args(arguments);
    if !arguments.contains(&"--policy") {
        program = program.args(["--policy", "None"]);
    }
    program.serve(LIMIT).unwrap()
}

/// Runs a client command and checks its exit code.
fn run(code: i32, arguments: &[&str]) -> Output {
    let output = taktwerk().args(arguments).run(LIMIT).unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{stdout}\n{stderr}");
    output
}

fn text(arguments: &[&str]) -> String {
    String::from_utf8(run(0, arguments).stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_slice(&run(0, &[arguments, &["--json"]].concat()).stdout).unwrap()
}

fn stderr(code: i32, arguments: &[&str]) -> String {
    String::from_utf8(run(code, arguments).stderr).unwrap()
}

/// The thumbprint of the only rejected certificate in a store.
fn refused(pki: &str) -> Option<String> {
    let mut files = std::fs::read_dir(std::path::Path::new(pki).join("rejected/certs")).ok()?;
    let name = files.next()?.ok()?.file_name().to_string_lossy().into_owned();
    name.strip_suffix(".der").map(str::to_owned)
}

#[test]
fn nodes_are_found_by_their_type() {
    let server = serve(&[]);
    let url = server.url();
    let condition = "#BrowseName like '%Level%' and EURange is not null";
    let levels = ["query", url, "AnalogItemType", "--where", condition, "--select", "#Value,EURange"];
    let found = json(&levels);
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found[0]["NodeId"], "ns=2;s=Plant/Boiler/Level");
    assert_eq!(found[0]["BrowseName"], "2:Level");
    assert!(found[0]["#Value"].is_number() && found[0]["EURange"]["Low"].is_number(), "{found}");
    assert!(text(&levels).contains("AnalogUnitRangeType"));
    // The subtype has the property, but not the type itself.
    assert_eq!(json(&["query", url, "AnalogItemType", "--exact"]), serde_json::json!([]));
    assert_eq!(json(&["query", url, "FolderType", "-n", "3"]).as_array().unwrap().len(), 3);
    let hint = "for the attribute Value of the node itself write #Value";
    assert!(stderr(0, &["query", url, "AnalogItemType", "--where", "Value > 200"]).contains(hint));
    assert!(stderr(0, &["query", url, "AnalogItemType", "--select", "Value"]).contains(hint));
    assert!(!stderr(0, &levels).contains("note"));
    assert!(stderr(2, &["query", url, "AnalogItmType"]).contains("is not a type of the specification"));
    assert!(stderr(2, &["query", url, "FolderType", "--where", "a b"]).contains("--where: cannot read"));
}

#[test]
fn files_that_exist_are_not_overwritten_without_force() {
    let server = serve(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine");
    let at = file.to_str().unwrap();
    for command in [
        &["nodeset", "export", server.url(), "/Objects/2:Plant", "--to", at][..],
        &["history", server.url(), "ns=2;s=Plant/Boiler/Level", "--svg", at],
    ] {
        std::fs::write(&file, "mine").unwrap();
        let said = stderr(2, command);
        assert!(said.contains("exists already") && said.contains("--force"), "{said}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
        run(0, &[command, &["--force"]].concat());
        assert!(std::fs::read_to_string(&file).unwrap().starts_with('<'));
    }
}

#[test]
fn client_commands() {
    let server = serve(&["--interop", "--signals", "50", "--update", "50"]);
    let url = server.url();

    let endpoints = json(&["endpoints", url]);
    assert_eq!(endpoints[0]["SecurityMode"], "None");

    let tree = text(&["browse", url, "/Objects/2:Plant", "--depth", "2"]);
    assert!(tree.contains("2:Boiler") && tree.contains("└─ "), "{tree}");
    let nodes = json(&["browse", url, "/Objects/2:Plant", "--recursive"]);
    let units =
        nodes["Nodes"].as_array().unwrap().iter().filter(|node| node["BrowseName"] == "EngineeringUnits");
    assert!(units.count() >= 30);

    let read = json(&["read", url, "ns=1;i=100000", "nsu=urn:taktwerk:interop;s=array/Int32#Value[1:2]"]);
    assert_eq!(read[0]["StatusCode"]["Symbol"], "Good");
    assert_eq!(read[1]["Value"], serde_json::json!([-1, 0]));
    assert_eq!(json(&["read", url, "/Objects/2:Plant/2:Boiler/*"]).as_array().unwrap().len(), 9);
    let recipe = json(&["read", url, "/Objects/2:Plant/2:Recipe"]);
    assert_eq!(recipe[0]["Decoded"]["Steps"][1]["Name"], "hold");
    let table = text(&["read", url, "/Objects/2:Plant/2:Boiler/*", "i=2258"]);
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    assert!(text(&["read", url, "/Objects/2:Plant/2:Mode#DataType"]).starts_with("ns=2;i=3003"));

    run(0, &["write", url, "nsu=urn:taktwerk:interop;s=array/Double", "[1.5, 2.5]"]);
    let written = json(&["read", url, "nsu=urn:taktwerk:interop;s=array/Double"]);
    assert_eq!(written[0]["Value"], serde_json::json!([1.5, 2.5]));
    run(0, &["write", url, "/Objects/2:Plant/2:Recipe", r#"{"Number": 7, "Name": "New"}"#]);
    let recipe = json(&["read", url, "/Objects/2:Plant/2:Recipe"]);
    assert_eq!(
        (&recipe[0]["Decoded"]["Number"], &recipe[0]["Decoded"]["Released"]),
        (&7.into(), &false.into())
    );

    let sum = json(&["call", url, "/Objects/2:Plant/2:Methods/2:Add", "1", "2.5"]);
    assert_eq!(sum["OutputArguments"][0]["Value"], 3.5);
    run(0, &["call", url, "/Objects/2:Plant/2:Methods/2:Wait", "20"]);

    // With -v, the steps of a connection are printed.
    for command in [&["read", url, "i=2258"][..], &["watch", url, "i=2258", "-n", "1"]] {
        let steps = stderr(0, &[command, &["-v"]].concat());
        for step in ["connecting to", "OpenSecureChannel", "CreateSession", "ActivateSession", "session up"] {
            assert!(steps.contains(step), "{command:?} {step}: {steps}");
        }
        assert!(!stderr(0, command).contains("CreateSession"));
    }

    let watched = text(&["watch", url, "ns=1;i=100001", "-I", "50", "-n", "3", "--json"]);
    let values = watched.lines().filter(|line| line.contains("SourceTimestamp")).count();
    assert!(values == 3 && watched.contains("RevisedPublishingInterval"), "{watched}");
    server.stop().unwrap();
}

#[test]
fn the_variable_names_the_server_of_every_command() {
    let server = serve(&[]);
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_taktwerk"));
        let output = command.args(arguments).env("TAKTWERK_ENDPOINT", server.url()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run(&["endpoints"]).contains("None"));
    assert!(run(&["read", "i=2259"]).contains("i=2259#Value"));
    assert!(run(&["browse", "/Objects/2:Plant"]).contains("2:Boiler"));
    assert!(run(&["write", "/Objects/2:Plant/2:TemperatureSetpoint", "60"]).contains("Good"));
    assert!(run(&["call", "/Objects/2:Plant/2:Methods/2:Add", "1", "2"]).contains('3'));
    assert!(run(&["watch", "i=2258", "-n", "1", "-I", "50", "--quiet"]).contains("i=2258"));
    assert!(run(&["bench", "read", "-n", "10", "--warmup", "0"]).contains("round trip"));
    server.stop().unwrap();
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = text(&["completions", shell]);
        assert!(["serve", "browse", "pubsub", "lab"].iter().all(|name| script.contains(name)), "{shell}");
    }
    let directory = tempfile::tempdir().unwrap();
    run(0, &["man", directory.path().to_str().unwrap()]);
    let page = std::fs::read_to_string(directory.path().join("taktwerk-read.1")).unwrap();
    assert!(page.contains("Examples") && page.contains("Private key of"), "{page}");
    assert!(directory.path().join("taktwerk-lab-reproduce.1").exists());
}

#[test]
fn failures_have_their_exit_codes_and_say_what_to_do() {
    let server = serve(&["--interop"]);
    let url = server.url();
    assert!(stderr(2, &["read", url, "nonsense"]).contains("ns=2;s=Name"));
    assert!(stderr(2, &["read", url, "/Objects/Plant"]).contains("2:Plant"));
    assert!(stderr(2, &["read", url, "i=2258#Valeu"]).contains("did you mean Value?"));
    assert!(stderr(2, &["read", url, "i=2258", "-a", "Vale"]).contains("did you mean Value?"));
    assert!(stderr(3, &["read", url, "i=84", "--policy", "Basic256Sha256"]).contains("--policy None"));
    assert!(
        stderr(2, &["call", url, "/Objects/2:Plant/2:Boiler/2:Temperature"]).contains("node class Variable")
    );
    assert!(stderr(2, &["read", url, "nsu=urn:nowhere;i=1"]).contains("urn:taktwerk:interop"));
    assert!(stderr(3, &["read", "127.0.0.1:1", "i=84"]).contains("refused"));
    assert!(stderr(2, &["read", url, "i=84", "--policy", "Basic512"]).contains("Aes256_Sha256_RsaPss"));
    assert!(stderr(2, &["read", url, "i=84", "--mode", "Sign"]).contains("--policy"));
    let best = ["read", url, "i=84", "--policy", "best", "--mode", "Sign"];
    assert!(stderr(2, &best).contains("remove --mode Sign"));
    let wrong_password = stderr(3, &["read", url, "i=2258", "-u", "user1", "-p", "wrong"]);
    assert!(wrong_password.contains("BadUserAccessDenied") && wrong_password.contains("the password"));
    run(0, &["read", url, "i=2258", "-u", "user1", "-p", "password"]);
    assert!(stderr(4, &["read", url, "i=4294967295"]).contains("BadNodeIdUnknown"));
    assert!(
        stderr(4, &["write", url, "/Objects/2:Plant/2:TemperatureSetpoint", "300"]).contains("BadOutOfRange")
    );
    assert!(
        stderr(2, &["write", url, "/Objects/2:Plant/2:TemperatureSetpoint", "warm"]).contains("is no Double")
    );
    assert!(stderr(4, &["call", url, "/Objects/2:Plant/2:Methods/2:Fail"]).contains("BadInvalidState"));
    assert!(stderr(2, &["call", url, "/Objects/2:Plant/2:Methods/2:Add", "1"]).contains("b (Double)"));
    assert!(stderr(2, &["bench", "write", url, "-d", "1"]).contains("--nodes"));
    let never = ["bench", "connect", url, "--rate", "nan", "-n", "10"];
    assert!(stderr(2, &never).contains("sessions per second"));
    assert!(stderr(6, &["bench", "read", url, "--server-pid", "4294967"]).contains("no process"));
    server.stop().unwrap();
}

#[test]
fn security() {
    let folder = |name: &str| std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("security").join(name);
    let _ = std::fs::remove_dir_all(folder(""));
    let open = |name: &str, uri: &str| {
        let settings = taktwerk_pki::CertificateSettings::new(name, uri);
        let keys = [taktwerk_pki::NewKey::Rsa2048, taktwerk_pki::NewKey::NistP256];
        taktwerk::pki::Pki::in_folder(folder(name)).settings(settings).create_missing(keys).open().unwrap()
    };
    let (own, client) = (open("server", "urn:taktwerk:demo-server"), open("client", "urn:taktwerk:client"));
    let text = |name: &str| folder(name).to_string_lossy().into_owned();
    let (server_pki, client_pki) = (text("server"), text("client"));
    let policies =
        ["Basic256Sha256", "Aes256_Sha256_RsaPss", "ECC_nistP256_AesGcm", "RSA_DH_ChaChaPoly", "None"];
    let offer = [&["--interop", "--pki", &server_pki, "--policy"][..], &policies].concat();
    let server = serve(&offer);
    let url = server.url();
    let read = |code: i32, options: &[&str]| {
        run(code, &[&["read", url, "i=2258", "--pki", &client_pki], options].concat())
    };
    let refusal = || {
        let output = read(3, &["--policy", "Basic256Sha256"]);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    // Neither trusts the other yet. The server is asked first, and reveals as little as possible.
    let refused = refusal();
    assert!(refused.contains("BadSecurityChecksFailed") && refused.contains("trust"), "{refused}");
    own.trust_those_of(&client).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let refused = refusal();
    assert!(
        refused.contains("BadCertificateUntrusted") && refused.contains("taktwerk pki trust"),
        "{refused}"
    );
    client.trust_those_of(&own).unwrap();
    for policy in policies {
        read(0, &["--policy", policy]);
        // Passwords need RSA encryption, because ephemeral keys are exchanged later.
        if !policy.starts_with("ECC") && !policy.starts_with("RSA_DH") {
            read(0, &["--policy", policy, "-u", "user1", "-p", "password"]);
            read(3, &["--policy", policy, "-u", "user1", "-p", "wrong"]);
        }
        if policy != "None" {
            read(0, &["--policy", policy, "--mode", "Sign"]);
        }
    }
    read(0, &["--policy", "best"]);
    let endpoints = json(&["endpoints", url]);
    assert_eq!(endpoints.as_array().unwrap().len(), 9, "{endpoints}");
    server.stop().unwrap();
}

#[test]
fn loads() {
    let server = serve(&["--no-plant", "--signals", "200", "--update", "50"]);
    let (url, pid) = (server.url(), server.pid().to_string());
    let short = ["-d", "0.5s", "--warmup", "0.1s", "--server-pid", &pid];
    // On a busy machine a generator may be late: exit code 5, but the document is complete.
    let bench = |arguments: &[&str]| -> Value {
        let arguments = [&["bench"], arguments, &[url, "--json"], &short].concat();
        let output = taktwerk().args(&arguments).run(LIMIT).unwrap();
        let code = output.status.code().unwrap();
        assert!(code == 0 || code == 5, "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["valid"], code == 0);
        document
    };
    for arguments in [
        &["read"][..],
        &["read", "--batch", "100", "-c", "4"],
        &["read", "--rate", "500", "-c", "3"],
        &["write"],
        &["browse"],
    ] {
        let result = bench(arguments);
        assert!(result["requests"].as_u64().unwrap() > 10, "{arguments:?}: {result}");
        assert_eq!((&result["bad"], &result["failed"]), (&0.into(), &0.into()), "{arguments:?}");
        assert!(result["latency"]["uncorrected"]["p50_us"].as_f64().unwrap() > 0.0);
        assert!(result["server"]["rss_bytes"].as_u64().unwrap() > 1_000_000);
    }
    let connect = bench(&["connect", "-c", "2"]);
    assert!(connect["sessions"].as_u64().unwrap() > 5, "{connect}");
    let subscribe = bench(&[
        "subscribe",
        "-c",
        "5",
        "--items",
        "400",
        "-I",
        "50",
        "--update",
        "50",
        "--heavy",
        "100",
        "--stall",
    ]);
    assert_eq!(subscribe["progress"]["items"], 400);
    assert_eq!(subscribe["revised"]["publishing_ms"]["max"], 50.0);
    assert!(subscribe["notifications"].as_u64().unwrap() > 1_000, "{subscribe}");
    assert!(subscribe["delivery_before_stall"]["count"].as_u64().unwrap() > 10);
    // More items in one request than the server allows. The server reports its limit.
    let many = ["subscribe", "--items", "10001", "--per-request", "20000", "-I", "250", "--sampling", "250"];
    assert_eq!(bench(&many)["progress"]["items"], 10_001);
    server.stop().unwrap();
}

#[test]
fn signals_can_contain_their_write_time() {
    for (values, tell) in [("time", true), ("count", false)] {
        let signals = ["--no-plant", "--signals", "20", "--update", "50", "--signal-values", values];
        let server = serve(&signals);
        let load =
            ["bench", "subscribe", server.url(), "-I", "50", "--update", "50", "--time-in-value", "--json"];
        let output = taktwerk().args(load).args(["-d", "0.5s", "--warmup", "0.5s"]).run(LIMIT).unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["source_timestamps_made_when_sampled"], false, "{result}");
        let count = result["delay"]["count"].as_u64().unwrap();
        if tell {
            assert!(count > 20 && result["values_without_time"] == 0, "{result}");
            assert!(result["delay"]["p50_us"].as_f64().unwrap() < 1e6, "{result}");
        } else {
            assert_eq!((count, output.status.code()), (0, Some(5)), "{result}");
        }
        server.stop().unwrap();
    }
}

#[test]
fn busy_polling_is_not_reported_as_overload() {
    let server = serve(&["--no-plant", "--interop", "--signals", "10", "--update", "50"]);
    let url = server.url();
    for load in [
        &["subscribe", "-I", "50", "--update", "50", "--items", "10"][..],
        &["roundtrip", "-I", "10"],
        &["connect"],
        &["read"],
    ] {
        let short = ["-d", "0.3s", "--warmup", "0.1s", "--busy-poll", "1s", "--json", url];
        let output = taktwerk().args(["bench"]).args(load).args(short).run(LIMIT).unwrap();
        let polling: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(!polling["invalid"].to_string().contains("of its core"), "{load:?}: {polling}");
        // The blocking driver is not affected.
        let counted = polling["generator"]["polling_s"].as_f64();
        assert!(
            if load == ["read"] { counted.is_none() } else { counted > Some(0.0) },
            "{load:?}: {polling}"
        );
    }
    assert!(stderr(2, &["bench", "probe", url, "--busy-poll", "50us"]).contains("leave it out"));
    server.stop().unwrap();
}

#[test]
fn serve_fails_with_exit_codes() {
    let server = serve(&["--no-plant"]);
    let port = server.url().rsplit(':').next().unwrap().to_owned();
    assert!(stderr(6, &["serve", "--port", &port]).contains("in use"));
    assert!(
        stderr(2, &["serve", "--port", "0", "--nodeset", "/no/such/file.xml"]).contains("/no/such/file.xml")
    );
    assert!(stderr(6, &["serve", "--port", "0", "--cpu", "900"]).contains("CPU 900"));
    server.stop().unwrap();
}

/// `pki init` creates a certificate with an ApplicationUri, and a server with that directory uses it.
#[test]
fn the_demo_server_uses_the_uri_of_its_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    run(0, &["pki", "init", "--key", "p256", "--uri", "urn:example:kiln", "--pki", &at("server")]);
    let server = serve(&["--no-plant", "--policy", "ECC_nistP256_AesGcm", "--pki", &at("server")]);
    let secured = ["--policy", "ECC_nistP256_AesGcm", "--pki", &at("client"), "--trust-on-first-use"];
    let read = ["read", server.url(), "i=2255"];
    run(3, &[&read[..], &secured].concat());
    run(0, &["pki", "trust", &refused(&at("server")).unwrap(), "--pki", &at("server")]);
    let end = std::time::Instant::now() + LIMIT;
    loop {
        let output = taktwerk().args([&read[..], &secured].concat()).run(LIMIT).unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            assert!(said.contains("urn:example:kiln"), "{said}");
            break;
        }
        assert!(std::time::Instant::now() < end, "{}", String::from_utf8_lossy(&output.stderr));
    }
    server.stop().unwrap();
    // The server has another certificate now, so this is not the first use: advice that works.
    run(0, &["pki", "init", "--key", "p256", "--uri", "urn:example:kiln", "--pki", &at("renewed")]);
    let server = serve(&["--no-plant", "--policy", "ECC_nistP256_AesGcm", "--pki", &at("renewed")]);
    let read = [&["read", server.url(), "i=2255"], &secured[..]].concat();
    run(3, &read);
    run(0, &["pki", "trust", &refused(&at("renewed")).unwrap(), "--pki", &at("renewed")]);
    let said = loop {
        let said = stderr(3, &read);
        if said.contains("this is not the first use") {
            break said;
        }
        assert!(std::time::Instant::now() < end, "{said}");
    };
    let advice = format!("trust the new one with: taktwerk pki trust --pki {}", at("client"));
    assert!(said.contains(&advice) && !said.contains("--trust-on-first-use"), "{said}");
    run(0, &["pki", "trust", &refused(&at("client")).unwrap(), "--pki", &at("client")]);
    run(0, &read);
    server.stop().unwrap();
}

/// What clients are told about this program does not depend on when and where it was built.
#[test]
fn a_server_names_its_program_and_version() {
    let server = serve(&["--no-plant"]);
    let members = ["i=2261", "i=2262", "i=2263", "i=2264", "i=2265", "i=2266"];
    let read = json(&[&["read", server.url()], &members[..]].concat());
    let text = |at: usize| read[at]["Value"].as_str().unwrap();
    assert_eq!([text(0), text(1), text(2)], ["Taktwerk", "urn:taktwerk", "Taktwerk"]);
    assert_eq!(text(3), env!("CARGO_PKG_VERSION"));
    assert!(!text(4).is_empty());
    // A development build without SOURCE_DATE_EPOCH does not know its date, and does not make one up.
    let is_dated = option_env!("SOURCE_DATE_EPOCH").is_some() || !cfg!(debug_assertions);
    assert!(is_dated || text(5).starts_with("1601-01-01"), "{read}");
    server.stop().unwrap();
}

/// Standard error of a server may be closed. A warning must not end the server then.
#[test]
fn a_server_survives_a_closed_standard_error() {
    use std::io::BufRead;
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let mut server = Command::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args(["serve", "--port", "0", "--no-plant", "--exit-with-stdin", "--pki", &at("server")])
        .args(["--policy", "None", "ECC_nistP256_AesGcm"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let url = lines.find_map(|line| line.strip_prefix("READY ").map(str::to_owned)).unwrap();
    drop((lines, server.stderr.take()));
    // The refusal causes a warning, which cannot be written.
    run(3, &["read", &url, "i=2258", "--policy", "ECC_nistP256_AesGcm", "--pki", &at("client")]);
    assert_eq!(std::fs::read_dir(folder.path().join("server/rejected/certs")).unwrap().count(), 1);
    run(0, &["read", &url, "i=2258", "--policy", "None"]);
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
}

/// The server's resource usage is in its address space, by thread, and is consistent.
#[test]
fn a_server_shows_its_own_profile() {
    let server = serve(&["--no-plant", "--signals", "2000", "--update", "5", "--profile"]);
    let number = |node: &str| {
        let read = json(&["read", server.url(), node]);
        read[0]["Value"]["Value"].as_f64().or_else(|| read[0]["Value"].as_f64())
    };
    let end = std::time::Instant::now() + LIMIT;
    let signals = loop {
        let nodes = text(&["browse", server.url(), "/Objects/1:Process", "--depth", "1"]);
        if nodes.contains("Thread signals") {
            if let Some(percent) = number("ns=1;s=process/threads/signals").filter(|percent| *percent > 0.0) {
                break percent;
            }
        }
        assert!(std::time::Instant::now() < end, "{nodes}");
        std::thread::sleep(Duration::from_millis(200));
    };
    assert!(signals <= 110.0, "{signals}");
    assert!(number("ns=1;s=process/CpuPercent").unwrap() > 0.0);
    assert!(number("ns=1;s=process/ResidentMegabytes").unwrap() > 1.0);
    assert!(number("ns=1;s=process/Threads").unwrap() >= 2.0);
}
