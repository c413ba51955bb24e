//! References to missing nodes in a configuration are reported by every command that checks the file, with line, key
//! and suggestion.

use std::path::Path;
use std::process::Output;
use std::time::Duration;
use taktwerk_lab::program::Program;

const LIMIT: Duration = Duration::from_secs(60);
const BASE: &str = "[server]\nbind = [\"127.0.0.1:0\"]\nsimulated_plant = true\napplication_uri = \"urn:here\"\n\
                    [security]\npolicies = []\nnone = true\n[identities]\nanonymous = true\n\
                    [history]\nfile = \"history.db\"\n\
                    [[source]]\nname = \"s\"\ntype = \"simulation\"\n\
                    [[tag]]\nsource = \"s\"\nname = \"Level\"\npath = \"Tank\"\n";
/// Lines of the configuration.
const LINES: usize = 18;
const PLANT: &str = "nsu=urn:taktwerk:demo-plant;s=Plant";

fn write(folder: &Path, name: &str, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

fn run(arguments: &[&str]) -> Output {
    Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(arguments).run(LIMIT).unwrap()
}

fn told(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

#[test]
fn missing_nodes_are_refused_with_line_key_and_suggestion() {
    let folder = tempfile::tempdir().unwrap();
    let pubsub = |node: &str| {
        format!(
            "[[data-set]]\nname = \"d\"\n[[data-set.fields]]\nname = \"Level\"\ntype = \"Double\"\nnode = \"{node}\"\n"
        )
    };
    write(folder.path(), "wrong.toml", &pubsub("ns=2;s=Plant/Cycle"));
    write(folder.path(), "right.toml", &pubsub("i=2258"));
    let alarm = |variable: &str, more: &str| format!("[[alarms.alarm]]\nvariable = \"{variable}\"\n{more}\n");
    let tank = "nsu=urn:taktwerk:gateway;s=Tank/Level";
    let destination = "[[destination]]\nname = \"d\"\ntype = \"file\"\nfolder = \"f\"\n";
    let calculation =
        "[[source]]\nname = \"c\"\ntype = \"calculation\"\n[[tag]]\nsource = \"c\"\nname = \"x\"\n";
    for (line, more, expected) in [
        (2, alarm(&format!("{PLANT}/Cycle"), "high = 5.0"), format!("alarms.alarm.variable: this server has no node \"{PLANT}/Cycle\"; did you mean \"{PLANT}/Cycles\"?")),
        (2, alarm("nsu=urn:taktwerk:gateway;s=Tank/Levle", "high = 5.0"), format!("alarms.alarm.variable: this server has no node \"nsu=urn:taktwerk:gateway;s=Tank/Levle\"; did you mean \"{tank}\"?")),
        (2, alarm("nsu=urn:taktwerk:gatway;s=Tank/Level", "high = 5.0"), "this server has no namespace \"urn:taktwerk:gatway\"; did you mean \"urn:taktwerk:gateway\"?".to_owned()),
        (2, alarm("Tank/Level", "high = 5.0"), "alarms.alarm.variable: \"Tank/Level\" is not a NodeId; write one such as".to_owned()),
        (4, alarm(tank, &format!("high = 5.0\nsetpoint = \"{PLANT}/Cycels\"")), format!("alarms.alarm.setpoint: this server has no node \"{PLANT}/Cycels\"; did you mean")),
        (3, alarm(tank, "target = \"ns=7;s=x\"\ntolerance = 1.0"), "alarms.alarm.target: this server has no node \"ns=7;s=x\"".to_owned()),
        (4, alarm(tank, "high = 5.0\ntype = \"ns=2;i=77\""), "alarms.alarm.type: this server has no node".to_owned()),
        (2, "[[alarms.group]]\nname = \"All\"\nmembers = [\"ns=2;s=none\"]\nfirst_in_group = true\n".to_owned(), "[[alarms.group]] name = \"All\": ".to_owned()),
        (2, "[[history.record]]\nbelow = \"ns=2;s=Plannt\"\n".to_owned(), "history.record.below: this server has no node \"ns=2;s=Plannt\"".to_owned()),
        (2, "[[namespace]]\nuri = \"urn:taktwerk:gatewy\"\n".to_owned(), "[[namespace]] uri = \"urn:taktwerk:gatewy\": the server has no such namespace, so these rules would protect nothing; did you mean \"urn:taktwerk:gateway\"?".to_owned()),
        (4, format!("{calculation}expression = \"{{Tank/Levle}} * 2\"\n"), "expression: there is no tag {Tank/Levle}; did you mean {Tank/Level}?".to_owned()),
        (5, format!("{destination}tags = [\"Tank/Levle\"]\n"), "tags: there is no tag \"Tank/Levle\"; did you mean \"Tank/Level\"?".to_owned()),
        (5, format!("{destination}fields = [{{ name = \"a\", node = \"{PLANT}/Cycle\" }}]\n"), format!("node: this server has no node \"{PLANT}/Cycle\"; did you mean \"{PLANT}/Cycles\"?")),
        (0, "[pubsub]\nconfiguration = \"wrong.toml\"\n".to_owned(), "wrong.toml:6: data set \"d\" / field \"Level\": this server has no node \"ns=2;s=Plant/Cycle\"; did you mean \"ns=2;s=Plant/Cycles\"?".to_owned()),
    ] {
        let file = write(folder.path(), "server.toml", &format!("{BASE}{more}"));
        let place = if line == 0 { String::new() } else { format!("server.toml:{}: ", LINES + line) };
        for command in [["config", "check"], ["config", "apply"], ["gateway", "check"]] {
            let output = run(&[&command[..], &[&file]].concat());
            let told = told(&output);
            assert_eq!(output.status.code(), Some(2), "{command:?} {more}\n{told}");
            assert!(told.contains(&place) && told.contains(&expected), "{command:?} {more}\n{told}");
        }
        assert!(!folder.path().join("history.db").exists(), "a check writes nothing");
    }
    // The server refuses what the checks refuse.
    let elsewhere = tempfile::tempdir().unwrap();
    for (more, expected) in [
        (
            format!("{calculation}expression = \"{{Tank/Levle}} * 2\"\n"),
            "expression: there is no tag {Tank/Levle}",
        ),
        (format!("{destination}tags = [\"Tank/Levle\"]\n"), "tags: there is no tag \"Tank/Levle\""),
        (
            format!("{destination}fields = [{{ name = \"a\", node = \"{PLANT}/Cycle\" }}]\n"),
            "node: this server has no node",
        ),
    ] {
        let file = write(elsewhere.path(), "server.toml", &format!("{BASE}{more}"));
        let output = run(&["serve", "--config", &file, "--exit-with-stdin"]);
        let told = told(&output);
        assert!(output.status.code() == Some(2) && told.contains(expected), "{more}\n{told}");
    }
    // Existing nodes are accepted: those of the plant, of tags, of the server, and of options of `serve`.
    let fine = [
        alarm(&format!("{PLANT}/Cycles"), "high = 5.0\nname = \"Running\""),
        alarm(tank, &format!("high = 5.0\nsetpoint = \"{PLANT}/Cycles\"")),
        alarm("ns=1;i=100000", "high = 5.0"),
        "[[history.record]]\nbelow = \"ns=1;s=signals\"\n[[history.record]]\nbelow = \"ns=2;s=Plant\"\n"
            .to_owned(),
        "[[namespace]]\nuri = \"urn:here\"\n[pubsub]\nconfiguration = \"right.toml\"\n".to_owned(),
        format!("{calculation}expression = \"{{Tank/Level}} * 2\"\n"),
        format!(
            "{destination}tags = [\"Tank/*\", \"c/x\"]\nfields = [{{ name = \"a\", node = \"i=2258\" }}]\n"
        ),
    ];
    let file = write(folder.path(), "server.toml", &format!("{BASE}{}", fine.concat()));
    for command in [["config", "check"], ["gateway", "check"]] {
        let output = run(&[&command[..], &[&file]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    }
    // A directory of NodeSets is accepted, a missing one is not.
    std::fs::create_dir(folder.path().join("sets")).unwrap();
    for (name, code) in [("sets", 0), ("stes", 2)] {
        let text = BASE.replacen("[security]", &format!("nodesets = [\"{name}\"]\n[security]"), 1);
        let file = write(folder.path(), "server.toml", &text);
        let output = run(&["config", "check", &file]);
        assert_eq!(output.status.code(), Some(code), "{}", told(&output));
    }
    let files = ["history.db", "d.queue.db", "pki", "f"];
    assert!(files.iter().all(|name| !folder.path().join(name).exists()), "a check writes nothing");
}

/// A namespace that exists only with a setting: the check and the server agree about it, and about the indexes behind it.
#[test]
fn the_namespace_of_the_headroom_exists_with_a_calibration() {
    let folder = tempfile::tempdir().unwrap();
    let rules =
        "[[namespace]]\nuri = \"urn:taktwerk:headroom\"\n[namespace.permissions]\nAnonymous = [\"Browse\"]\n";
    let file = write(folder.path(), "server.toml", &format!("{BASE}{rules}"));
    for command in [&["config", "check", &file][..], &["serve", "--config", &file, "--exit-with-stdin"]] {
        let output = run(command);
        let told = told(&output);
        assert!(output.status.code() == Some(2) && told.contains("has no such namespace"), "{told}");
    }
    let calibration = "[headroom]\ncalibration = \"epyc-vm\"\n";
    // The plant is behind it.
    let alarm = "[[alarms.alarm]]\nvariable = \"ns=3;s=Plant/Cycles\"\nhigh = 5.0\n";
    let file = write(folder.path(), "server.toml", &format!("{BASE}{calibration}{rules}{alarm}"));
    let output = run(&["config", "check", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let server = Program::new(env!("CARGO_BIN_EXE_taktwerk"));
    let server = server.args(["serve", "--exit-with-stdin", "--config", &file]).serve(LIMIT).unwrap();
    let output = run(&["config", "apply", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    server.stop().unwrap();
}
