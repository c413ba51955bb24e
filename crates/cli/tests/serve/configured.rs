//! The program with a configuration file and users: logins, permissions and audit.

use std::path::Path;
use std::process::Output;
use std::time::Duration;
use taktwerk_lab::program::{Program, Running};

const LIMIT: Duration = Duration::from_secs(120);
/// Must not appear in any file, log or output.
const CANARY: &str = "canary-7f3a";

fn taktwerk(arguments: &[&str]) -> Output {
    Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(arguments).run(LIMIT).unwrap()
}

/// Runs a command, checks its exit code, and returns standard output and error.
fn run(code: i32, arguments: &[&str]) -> (String, String) {
    let output = taktwerk(arguments);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{stdout}\n{stderr}");
    assert!(!stdout.contains(CANARY) && !stderr.contains(CANARY), "{arguments:?}\n{stdout}\n{stderr}");
    (stdout.into_owned(), stderr.into_owned())
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn serve(config: &str) -> Running {
    let program = Program::new(env!("CARGO_BIN_EXE_taktwerk"));
    program.args(["serve", "--exit-with-stdin", "--config", config]).serve(LIMIT).unwrap()
}

/// The thumbprint of the only rejected certificate in a store.
fn refused(pki: &str) -> Option<String> {
    let mut files = std::fs::read_dir(std::path::Path::new(pki).join("rejected/certs")).ok()?;
    let name = files.next()?.ok()?.file_name().to_string_lossy().into_owned();
    name.strip_suffix(".der").map(str::to_owned)
}

#[test]
fn configurations_are_created_checked_and_refused_with_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.toml");
    let path = path.to_str().unwrap();
    let (next, _) = run(0, &["config", "init", path]);
    assert!(next.contains("taktwerk user add"), "{next}");
    assert!(run(2, &["config", "init", path]).1.contains("exists already"));
    let (table, warnings) = run(0, &["config", "check", path]);
    assert!(table.contains("127.0.0.1:4840 (only this machine)"), "{table}");
    assert!(warnings.contains("there are no users yet"), "{warnings}");
    let (json, _) = run(0, &["config", "check", path, "--json"]);
    let check: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&check["SecurityPolicyNone"], &check["Anonymous"]), (&false.into(), &false.into()), "{json}");
    assert_eq!(check["Modes"], serde_json::json!(["SignAndEncrypt"]));
    assert!(table.lines().all(|line| line.chars().count() <= 100));
    let text = std::fs::read_to_string(path).unwrap().replace("threads = 1", "treads = 1");
    let line = 1 + text.lines().position(|line| line == "treads = 1").unwrap();
    let wrong = write(folder.path(), "wrong.toml", &text);
    let (_, error) = run(2, &["config", "check", &wrong]);
    assert!(error.contains(&format!("wrong.toml:{line}: unknown field `treads`")), "{error}");
    assert!(run(2, &["serve", "--config", &wrong]).1.contains("unknown field"));
    let missing = folder.path().join("no.toml");
    assert!(run(2, &["serve", "--config", missing.to_str().unwrap()]).1.contains("taktwerk config init"));
}

#[test]
fn non_loopback_addresses_need_a_configuration_or_policy() {
    let (_, error) = run(2, &["serve", "--bind", "0.0.0.0", "--port", "0"]);
    assert!(error.contains("taktwerk config init"), "{error}");
}

/// Settings without effect are refused.
#[test]
fn settings_without_effect_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = "[server]\nbind = [\"127.0.0.1:0\"]\n[security]\npolicies = []\nnone = true\n[identities]\nanonymous = true\n";
    let config = write(folder.path(), "server.toml", server);
    for option in [["--policy", "None"], ["--pki", "other"]] {
        let (_, error) = run(2, &[&["serve", "--config", &config][..], &option].concat());
        assert!(error.contains(option[0]), "{error}");
    }
    let rules = format!(
        "{server}[[namespace]]\nuri = \"urn:example:typo\"\nrestrictions = [\"EncryptionRequired\"]\n"
    );
    let config = write(folder.path(), "typo.toml", &rules);
    let (_, error) = run(2, &["serve", "--config", &config]);
    assert!(error.contains("urn:example:typo") && error.contains("would protect nothing"), "{error}");
}

/// A check finds what would keep a server from starting.
#[test]
fn checks_read_the_files_of_a_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let base = "[server]\nbind = [\"127.0.0.1:0\"]\n[security]\npolicies = []\nnone = true\n[identities]\nanonymous = true\n";
    write(folder.path(), "line.toml", "enabled = true\n");
    write(folder.path(), "broken.toml", "enabled = \n");
    for (number, (section, said)) in [
        ("clear_passwords = true\n[identities.jwt]\nissuer = \"https://i\"\naudience = \"urn:s\"\nkeys = [\"no.json\"]\n", "no.json"),
        ("[audit]\nfile = \"logs/audit.jsonl\"\n", "does not exist"),
        ("[pubsub]\nconfiguration = \"no.toml\"\n", "no.toml"),
        ("[pubsub]\nconfiguration = \"broken.toml\"\n", "broken.toml"),
        ("[pubsub]\nconfiguration = \"line.toml\"\nkeys = [\"no.keys\"]\n", "no.keys"),
        ("[pubsub]\nsave_to = \"kept/line.bin\"\n", "does not exist"),
        ("[[files]]\nname = \"Recipes\"\nfolder = \"recipes\"\n", "the directory"),
        ("[headroom]\ncalibration = \"nix\"\n", "toml:9: headroom.calibration: cannot read nix"),
        ("[headroom]\n\nadmit = \"headroom\"\n", "toml:10: headroom.admit: it needs a calibration"),
        (
            "[headroom]\ncalibration = \"epyc-vm\"\nlimit = 80\n",
            "toml:10: headroom.limit: 80 is not a share above 0 and up to 1; write 0.8 for 80 %",
        ),
        ("[history]\nfile = \"kept/values.db\"\n", "toml:9: history.file: the directory"),
        ("[history]\nevents = true\n", "toml:9: history.events: it needs a history store"),
        ("[alarms]\nmetrics_minutes = 0\n", "toml:9: alarms.metrics_minutes: 0 minutes"),
        ("[alarms]\ntrust_list_update = -1\n", "toml:9: alarms.trust_list_update: "),
        ("[[namespace]]\nuri = \"urn:taktwerk:demo-plant\"\n", "simulated_plant = true"),
        ("[durable_subscriptions]\nwrite_interval = 0\n", "write_interval is 0"),
    ]
    .into_iter()
    .enumerate()
    {
        let config = write(folder.path(), &format!("{number}.toml"), &format!("{base}{section}"));
        let output = taktwerk(&["config", "check", &config]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        // Invalid or unreadable files.
        assert!(matches!(output.status.code(), Some(2 | 6)), "{section}: {error}");
        assert!(error.contains(said), "{section}: {error}");
    }
    let right =
        write(folder.path(), "right.toml", &format!("{base}[pubsub]\nconfiguration = \"line.toml\"\n"));
    assert!(run(0, &["config", "check", &right]).0.contains("PubSub"));
}

/// What a server can start with, but hardly means.
#[test]
fn checks_warn_of_unknown_users_and_missing_secrets_and_list_all_parts() {
    let folder = tempfile::tempdir().unwrap();
    let base = "[server]\nbind = [\"127.0.0.1:0\"]\n[security]\npolicies = []\nnone = true\n[identities]\nanonymous = true\n";
    let more = "[history]\nfile = \"values.db\"\n[[role]]\nname = \"Operator\"\nusers = [\"nemo\"]\n\
                [[source]]\nname = \"plc\"\ntype = \"opcua\"\nurl = \"opc.tcp://127.0.0.1:4841\"\nuser = \"a\"\nsecurity = \"best\"\npki = \"p\"\npassword_file = \"plc.password\"\n";
    let config = write(folder.path(), "server.toml", &format!("{base}{more}"));
    let (table, warnings) = run(0, &["config", "check", &config]);
    assert!(table.contains("values.db"), "{table}");
    let parts = [
        "history",
        "alarms",
        "durable subscriptions",
        "shared folders",
        "NodeManagement",
        "push management",
        "dashboard",
    ];
    for part in parts {
        assert!(table.lines().any(|line| line.starts_with(part)), "{part}: {table}");
    }
    assert!(warnings.contains("\"nemo\""), "{warnings}");
    let line = 1 + std::fs::read_to_string(&config)
        .unwrap()
        .lines()
        .position(|line| line.contains("plc.password"))
        .unwrap();
    let said = format!("server.toml:{line}: password_file: there is no file plc.password");
    assert!(warnings.contains(&said), "{warnings}");
    let (check, _) = run(0, &["gateway", "check", &config]);
    assert!(check.contains(&said), "{check}");
    let missing = folder.path().join("no/server.toml");
    let (_, error) = run(2, &["config", "init", missing.to_str().unwrap()]);
    assert!(error.contains("create it first"), "{error}");
}

#[test]
fn users_are_stored_in_a_private_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let password = write(folder.path(), "password", &format!("{CANARY}\n"));
    let users = folder.path().join("users.toml");
    let file = ["--file", users.to_str().unwrap()];
    let with = |arguments: &[&str]| {
        [arguments, &file].concat().iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()
    };
    let user = |code, arguments: &[&str]| {
        let all = with(arguments);
        run(code, &all.iter().map(String::as_str).collect::<Vec<_>>())
    };
    user(0, &["user", "add", "olaf", "--role", "Operator", "--password-file", &password]);
    user(2, &["user", "add", "olaf", "--password-file", &password]);
    assert!(user(2, &["user", "add", "otto"]).1.contains("--password-file"));
    assert_eq!(std::fs::metadata(&users).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!std::fs::read_to_string(&users).unwrap().contains(CANARY));
    assert!(user(0, &["user", "list"]).0.contains("Operator"));
    user(0, &["user", "role", "olaf", "Observer", "Engineer"]);
    let (json, _) = user(0, &["user", "list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(list, serde_json::json!([{ "Name": "olaf", "Roles": ["Observer", "Engineer"] }]));
    user(0, &["user", "passwd", "olaf", "--password-file", &password]);
    user(0, &["user", "remove", "olaf"]);
    assert!(user(2, &["user", "remove", "olaf"]).1.contains("no user"));
}

#[test]
fn a_token_of_an_authorization_service_opens_a_session_with_its_roles() {
    use jsonwebtoken::{Algorithm, EncodingKey, Header};
    let folder = tempfile::tempdir().unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    write(folder.path(), "keys.pem", &key.public_key_pem());
    let config = write(
        folder.path(),
        "server.toml",
        "[server]\nbind = [\"127.0.0.1:0\"]\nsimulated_plant = true\napplication_uri = \"urn:test:plant\"\n\
         [security]\npolicies = []\nnone = true\n[identities]\nclear_passwords = true\n\
         [identities.jwt]\nissuer = \"https://login\"\nkeys = [\"keys.pem\"]\n\
         [[role]]\nname = \"Operator\"\ntoken_roles = [\"operators\"]\n\
         [[role]]\nname = \"Observer\"\ntoken_groups = [\"shift-1\"]\n[audit]\nfile = \"audit.jsonl\"\n",
    );
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let token = |name: &str, audience: &str, claim: &str, value: &str| {
        let claims = serde_json::json!({
            "iss": "https://login", "aud": audience, "sub": name, "exp": now + 600, claim: [value],
        });
        let key = EncodingKey::from_ec_der(&key.serialize_der());
        let token = jsonwebtoken::encode(&Header::new(Algorithm::ES256), &claims, &key).unwrap();
        write(folder.path(), name, &format!("{token}\n"))
    };
    let operator = token("olaf", "urn:test:plant", "roles", "operators");
    let observer = token("otto", "urn:test:plant", "groups", "shift-1");
    let foreign = token("udo", "urn:test:other", "roles", "operators");
    let server = serve(&config);
    let url = server.url().to_owned();
    let node = "/Objects/2:Plant/2:TemperatureSetpoint";
    let write_it = ["write", url.as_str(), &format!("{node}=61"), "--token-file"];
    run(0, &[&write_it[..], &[operator.as_str()]].concat());
    run(4, &[&write_it[..], &[observer.as_str()]].concat());
    run(0, &["read", &url, node, "--token-file", &observer]);
    run(3, &["read", &url, node, "--token-file", &foreign]);
    run(3, &["read", &url, node]);
    drop(server);
    let audit = std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
    let secret = std::fs::read_to_string(&operator).unwrap();
    assert!(audit.contains("olaf") && !audit.contains(secret.trim()), "{audit}");
}

#[test]
fn a_configured_server_authenticates_and_audits_users() {
    let folder = tempfile::tempdir().unwrap();
    let password = write(folder.path(), "password", CANARY);
    let wrong = write(folder.path(), "wrong", "canary-wrong");
    let users = folder.path().join("users.toml");
    let users = users.to_str().unwrap();
    let add = |name, role| {
        run(0, &["user", "add", name, "--role", role, "--password-file", &password, "--file", users]);
    };
    add("olaf", "Operator");
    add("otto", "Observer");
    let config = write(
        folder.path(),
        "server.toml",
        "[server]\nbind = [\"127.0.0.1:0\"]\nsimulated_plant = true\n[security]\npolicies = []\nnone = true\n\
         [identities]\nanonymous = true\nusers_file = \"users.toml\"\nclear_passwords = true\n\
         [audit]\nfile = \"audit.jsonl\"\n",
    );
    let server = serve(&config);
    let url = server.url().to_owned();
    let node = "/Objects/2:Plant/2:TemperatureSetpoint";
    let as_user = |code, name: &str, password: &str, arguments: &[&str]| {
        let user = ["-u", name, "--password-file", password, "--allow-plaintext-password"];
        run(code, &[arguments, &user].concat())
    };
    let write_it = ["write", url.as_str(), &format!("{node}=61")];
    as_user(0, "olaf", &password, &write_it);
    as_user(4, "otto", &password, &write_it);
    as_user(0, "otto", &password, &["read", &url, node]);
    as_user(3, "olaf", &wrong, &["read", &url, node]);
    as_user(3, "nobody", &password, &["read", &url, node]);
    // Anonymous sees the server, but not the plant.
    run(0, &["read", &url, "i=2258"]);
    let (_, hidden) = run(4, &["read", &url, "ns=2;s=Plant/TemperatureSetpoint"]);
    assert!(!hidden.contains("Denied"), "{hidden}");
    // The running server applies changes.
    run(0, &["user", "role", "otto", "Operator", "--file", users]);
    let deadline = std::time::Instant::now() + LIMIT;
    loop {
        let user = ["-u", "otto", "--password-file", &password, "--allow-plaintext-password"];
        if taktwerk(&[&write_it[..], &user].concat()).status.code() == Some(0) {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "the server does not look at its users again");
    }
    drop(server);
    let audit = std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
    let records: Vec<serde_json::Value> =
        audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!audit.contains("canary"), "{audit}");
    let is_write = |record: &&serde_json::Value| record["EventType"] == "AuditWriteUpdateEventType";
    let written = records.iter().find(is_write).unwrap();
    assert_eq!((&written["ClientUserId"], &written["NewValue"]), (&"olaf".into(), &"61".into()), "{written}");
    assert!(records.iter().filter(is_write).any(|record| record["Status"] == false));
}

#[test]
fn a_configured_server_accepts_only_trusted_clients() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let password = write(folder.path(), "password", CANARY);
    let config = at("server.toml");
    run(0, &["config", "init", &config]);
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text
        .replace("bind = [\"127.0.0.1:4840\"]", "bind = [\"127.0.0.1:0\"]")
        .replace("# certificates = false", "certificates = true")
        + "\n[[role]]\nname = \"Operator\"\nsubjects = ['CN=\"Clara\"/O=\"Example\"']\n";
    std::fs::write(&config, text).unwrap();
    let users = at("users.toml");
    run(0, &["user", "add", "olaf", "--role", "Operator", "--password-file", &password, "--file", &users]);
    let (server_pki, client_pki, clara, carl) = (at("pki"), at("client"), at("clara"), at("carl"));
    for (name, pki) in [("Clara", &clara), ("Carl", &carl)] {
        run(0, &["pki", "init", "--pki", pki, "--name", name, "--organization", "Example"]);
    }
    let file = |pki: &str, part: &str| {
        let entry = std::fs::read_dir(Path::new(pki).join(part)).unwrap().next().unwrap().unwrap();
        entry.path().display().to_string()
    };

    let server = serve(&config);
    let url = server.url().to_owned();
    let (listed, _) = run(0, &["endpoints", &url, "--json"]);
    let listed: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap();
    assert!(!listed.is_empty());
    for endpoint in &listed {
        assert_eq!(endpoint["SecurityMode"], "SignAndEncrypt", "{endpoint}");
    }
    let node = "ns=2;s=Plant/TemperatureSetpoint";
    // Each policy has its own certificates to trust. This one's key is also used by the users below.
    let secured = ["--policy", "Aes256_Sha256_RsaPss", "--pki", client_pki.as_str()];
    let olaf = ["-u", "olaf", "--password-file", password.as_str()];
    let read = ["read", url.as_str(), node];
    // Server and client are strangers until each is trusted explicitly. The server rejects first.
    run(3, &[&read[..], &secured, &olaf].concat());
    run(0, &["pki", "trust", &refused(&server_pki).unwrap(), "--pki", &server_pki]);
    let until = |what: &str, is_done: &dyn Fn() -> bool| {
        let deadline = std::time::Instant::now() + LIMIT;
        while !is_done() {
            assert!(std::time::Instant::now() < deadline, "{what}");
        }
    };
    until("the server does not look at its trust list again", &|| {
        assert_eq!(taktwerk(&[&read[..], &secured, &olaf].concat()).status.code(), Some(3));
        refused(&client_pki).is_some_and(|thumbprint| {
            taktwerk(&["pki", "trust", &thumbprint, "--pki", &client_pki]).status.code() == Some(0)
        })
    });
    run(0, &[&read[..], &secured, &olaf].concat());
    // Access without security or without a user is refused.
    run(3, &["read", &url, node, "--policy", "None"]);
    run(3, &[&read[..], &secured].concat());

    let set = format!("{node}=63");
    let write_it = ["write", url.as_str(), set.as_str()];
    run(0, &[&write_it[..], &secured, &olaf].concat());
    let as_user = |code, pki: &str, arguments: &[&str]| {
        let (certificate, key) = (file(pki, "own/certs"), file(pki, "own/private"));
        let user = ["--user-cert", certificate.as_str(), "--user-key", key.as_str()];
        run(code, &[arguments, &secured, &user].concat())
    };
    as_user(3, &clara, &read);
    // Clara is trusted last: when the server has noticed that, Carl is trusted too.
    for user in [&carl, &clara] {
        run(0, &["pki", "import", "--users", "--pki", &server_pki, &file(user, "own/certs")]);
    }
    until("Clara is trusted and named, and not let in", &|| {
        let (certificate, key) = (file(&clara, "own/certs"), file(&clara, "own/private"));
        let user = ["--user-cert", certificate.as_str(), "--user-key", key.as_str()];
        taktwerk(&[&write_it[..], &secured, &user].concat()).status.code() == Some(0)
    });
    // Carl is a user too, but has no role with write permission.
    as_user(0, &carl, &read);
    as_user(4, &carl, &write_it);
}

#[test]
fn pubsub_changes_by_clients_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "line.toml",
        "[[data-set]]\nname = \"time\"\n\
         fields = [{ name = \"now\", type = \"DateTime\", node = \"i=2258\" }]\n\
         [[connection]]\nname = \"udp\"\npublisher-id = { uint16 = 7 }\nurl = \"opc.udp://127.0.0.1:9\"\n\
         [[connection.writer-group]]\nname = \"fast\"\nid = 1\ninterval = 100.0\n\
         writers = [{ name = \"w\", id = 1, data-set = \"time\" }]\n",
    );
    let config = write(
        folder.path(),
        "server.toml",
        "[server]\nbind = [\"127.0.0.1:0\"]\n[security]\npolicies = []\nnone = true\n[identities]\nanonymous = true\n\
         [[role]]\nname = \"ConfigureAdmin\"\nanonymous = true\n\
         [pubsub]\nconfiguration = \"line.toml\"\nsave_to = \"pubsub.uabinary\"\n",
    );
    let state = "ns=1;s=PubSub/udp/fast/Status/State";
    let shown = |url: &str, node: &str| {
        let (json, _) = run(0, &["read", url, node, "--json"]);
        serde_json::from_str::<serde_json::Value>(&json).unwrap()[0]["Value"].clone()
    };
    let server = serve(&config);
    let url = server.url().to_owned();
    assert_eq!(shown(&url, "ns=1;s=PubSub/udp/fast/PublishingInterval"), 100.0);
    assert_ne!(shown(&url, state), 0, "it is enabled");
    run(0, &["call", &url, "ns=1;s=PubSub/udp/fast/Status/Disable"]);
    assert_eq!(shown(&url, state), 0);
    drop(server);
    let saved = taktwerk::pubsub_model::load(folder.path().join("pubsub.uabinary")).unwrap().unwrap();
    assert!(!saved.connections[0].writer_groups[0].enabled);
    let server = serve(&config);
    assert_eq!(shown(server.url(), state), 0, "it was disabled");
    drop(server);
    // Invalid configurations are refused with a reason.
    write(
        folder.path(),
        "line.toml",
        "[[data-set]]\nname = \"none\"\nfields = [{ name = \"x\", type = \"Float\" }]\n",
    );
    std::fs::remove_file(folder.path().join("pubsub.uabinary")).unwrap();
    let (_, error) = run(2, &["serve", "--config", &config]);
    assert!(error.contains("data set \"none\" name no Variables"), "{error}");
}

#[test]
fn clients_read_and_write_shared_files() {
    let folder = tempfile::tempdir().unwrap();
    let recipes = folder.path().join("recipes");
    std::fs::create_dir(&recipes).unwrap();
    std::fs::write(recipes.join("bread.txt"), "flour").unwrap();
    let base = "[server]\nbind = [\"127.0.0.1:0\"]\n[security]\npolicies = []\nnone = true\n[identities]\nanonymous = true\n\
                [permissions]\nunspecified = \"open\"\n[[files]]\nname = \"Recipes\"\n";
    let missing = write(folder.path(), "missing.toml", &format!("{base}folder = \"nowhere\"\n"));
    let (_, error) = run(2, &["serve", "--config", &missing]);
    assert!(error.contains("Recipes") && error.contains("create the directory"), "{error}");
    let config = write(
        folder.path(),
        "server.toml",
        &format!("{base}folder = \"recipes\"\nwrite = [\"Anonymous\"]\n"),
    );
    let server = serve(&config);
    let url = server.url().to_owned();
    let (size, _) = run(0, &["read", &url, "/Objects/1:Recipes/1:bread.txt/0:Size"]);
    assert!(size.contains('5'), "{size}");
    // New files in the directory are visible without a restart.
    std::fs::write(recipes.join("cake.txt"), "sugar").unwrap();
    let deadline = std::time::Instant::now() + LIMIT;
    while taktwerk(&["read", &url, "/Objects/1:Recipes/1:cake.txt/0:Size"]).status.code() != Some(0) {
        assert!(std::time::Instant::now() < deadline, "the server does not look at the folder again");
        std::thread::sleep(Duration::from_millis(100));
    }
    let (created, _) = run(0, &["call", &url, "i=13387", "-o", "/Objects/1:Recipes", "sweet"]);
    assert!(created.contains("Recipes/sweet") && recipes.join("sweet").is_dir(), "{created}");
}
