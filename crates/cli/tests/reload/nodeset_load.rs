//! `taktwerk nodeset load` and `unload` with a server that has `[nodeset_methods]`.

use crate::installation::{self, Installation, LIMIT, nodeset};
use std::path::Path;
use taktwerk::pki::Pki;
use taktwerk_lab::program::{Program, Running};
use taktwerk_pki::{CertificateSettings, NewKey};

const POLICY: &str = "ECC_nistP256_AesGcm";

fn pki(folder: &Path, name: &str) -> Pki {
    let settings = CertificateSettings::new(name, &format!("urn:test:{name}"));
    Pki::in_folder(folder.join(name)).settings(settings).create_missing([NewKey::NistP256]).open().unwrap()
}

/// A secured server. Anonymous clients are administrators if their application is the one of the tests.
struct Site {
    installation: Installation,
}

impl Site {
    fn new() -> Self {
        let installation = Installation::new();
        let folder = installation.folder.path();
        let (ours, theirs) = (pki(folder, "server"), pki(folder, "client"));
        ours.trust_those_of(&theirs).unwrap();
        theirs.trust_those_of(&ours).unwrap();
        std::fs::create_dir(folder.join("nodesets")).unwrap();
        Self { installation }
    }

    fn file(&self, name: &str) -> String {
        self.installation.folder.path().join(name).display().to_string()
    }

    fn configure(&self, more: &str) {
        let text = format!(
            "[server]\nbind = [\"127.0.0.1:0\"]\napplication_uri = \"urn:test:server\"\n\
             [security]\npki = \"server\"\npolicies = [\"{POLICY}\"]\n[identities]\nanonymous = true\n\
             [[role]]\nname = \"ConfigureAdmin\"\nanonymous = true\n\
             [nodeset_methods]\nenabled = true\nfolder = \"nodesets\"\n{more}"
        );
        std::fs::write(self.installation.file(), text).unwrap();
    }

    fn serve(&self) -> Running {
        self.installation.serve(&[])
    }

    /// Exit code and output of a command with the secured connection.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let program = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(arguments);
        let output = program.args(["--policy", POLICY, "--pki", &self.file("client")]).run(LIMIT).unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
    }
}

#[test]
fn a_nodeset_is_loaded_kept_and_unloaded() {
    let site = Site::new();
    site.configure("");
    let file = site.file("line.xml");
    std::fs::write(&file, nodeset(&[(1, 1.5), (2, 2.5)])).unwrap();
    let server = site.serve();
    let (code, text) = site.run(&["nodeset", "load", server.url(), &file, "--check"]);
    assert!(code == 0 && text.contains("the server would load it"), "{code} {text}");
    let (code, text) = site.run(&["nodeset", "load", server.url(), &file]);
    assert!(code == 0 && text.contains("urn:line: 2 nodes added, 0 nodes deleted"), "{code} {text}");
    // A mistake is told with its place, and changes nothing.
    std::fs::write(&file, nodeset(&[(3, 3.5)]).replace("<Double", "<Dooble")).unwrap();
    for arguments in
        [&["nodeset", "load", server.url(), &file][..], &["nodeset", "load", server.url(), &file, "--check"]]
    {
        let (code, text) = site.run(arguments);
        assert!(code == 4 && text.contains("line.xml:1:"), "{code} {text}");
    }
    let (code, text) = site.run(&["nodeset", "unload", server.url(), "urn:other"]);
    assert!(code == 4 && text.contains("BadNotFound"), "{code} {text}");
    drop(server);
    // The next start has it, and so has the check of a configuration that names a node.
    site.configure("[[alarms.alarm]]\nvariable = \"nsu=urn:line;i=2\"\nhigh = 2.0\n");
    let config = site.installation.file().display().to_string();
    let check =
        Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(["config", "check", &config]).run(LIMIT).unwrap();
    assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stderr));
    let server = site.serve();
    let (code, text) = site.run(&["read", server.url(), "nsu=urn:line;i=2"]);
    assert!(code == 0 && text.contains("2.5"), "{code} {text}");
    // Without it, the server would not start again.
    let (code, text) = site.run(&["nodeset", "unload", server.url(), "urn:line"]);
    assert!(code == 4 && text.contains("refers to nodes of this namespace"), "{code} {text}");
    site.configure("");
    let (code, text) = site.run(&["nodeset", "unload", server.url(), "urn:line"]);
    assert!(code == 0 && text.contains("0 nodes added, 2 nodes deleted"), "{code} {text}");
    let (code, text) = site.run(&["read", server.url(), "nsu=urn:line;i=2"]);
    assert!(code == 4 && text.contains("BadNodeIdUnknown"), "{code} {text}");
}

#[test]
fn a_missing_folder_and_a_server_without_methods_are_named() {
    let site = Site::new();
    site.configure("");
    std::fs::remove_dir(site.file("nodesets")).unwrap();
    let config = site.installation.file().display().to_string();
    let start =
        Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(["serve", "--config", &config]).run(LIMIT).unwrap();
    let text = String::from_utf8_lossy(&start.stderr).into_owned();
    assert!(start.status.code() != Some(0) && text.contains("nodesets"), "{text}");
    let file = site.file("line.xml");
    std::fs::write(&file, nodeset(&[(1, 1.5)])).unwrap();
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("enabled = true", "enabled = false")).unwrap();
    let server = site.serve();
    let (code, text) = site.run(&["nodeset", "load", server.url(), &file]);
    assert!(code == 4 && text.contains("[nodeset_methods]"), "{code} {text}");
}

/// `nodeset` with another namespace.
fn other(uri: &str, variables: &[(u32, f64)]) -> String {
    nodeset(variables).replace("urn:line", uri)
}

#[test]
fn namespaces_have_the_same_indexes_after_a_restart() {
    let site = Site::new();
    let tags = "[[source]]\nname = \"sim\"\ntype = \"simulation\"\n\
                [[tag]]\nname = \"T\"\nsource = \"sim\"\n";
    site.configure(tags);
    let write = |name: &str, text: String| {
        let file = site.file(name);
        std::fs::write(&file, text).unwrap();
        file
    };
    let namespaces = |url: &str| {
        let (code, text) = site.run(&["read", url, "i=2255", "--json"]);
        assert_eq!(code, 0, "{text}");
        text.split_once("\"Value\": [").unwrap().1.split_once(']').unwrap().0.to_owned()
    };
    let server = site.serve();
    // The second one comes first by its name.
    for (name, uri) in [("line.xml", "urn:line"), ("axis.xml", "urn:axis")] {
        let (code, text) =
            site.run(&["nodeset", "load", server.url(), &write(name, other(uri, &[(1, 1.5)]))]);
        assert_eq!(code, 0, "{text}");
    }
    let before = namespaces(server.url());
    assert!(before.find("urn:line").unwrap() < before.find("urn:axis").unwrap(), "{before}");
    drop(server);
    let server = site.serve();
    assert_eq!(namespaces(server.url()), before);
    // The indexes of others stay when one is unloaded.
    let (code, text) = site.run(&["nodeset", "unload", server.url(), "urn:line"]);
    assert_eq!(code, 0, "{text}");
    drop(server);
    let server = site.serve();
    assert_eq!(namespaces(server.url()), before);
    // A changed rule is examined in an address space with the same indexes.
    let index = before.matches("urn:").count();
    let axis = format!("[[alarms.alarm]]\nvariable = \"ns={index};i=1\"\nhigh = 2.0\n");
    site.configure(&format!("{tags}{axis}"));
    let config = site.installation.file().display().to_string();
    let apply =
        Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(["config", "apply", &config]).run(LIMIT).unwrap();
    let said = [apply.stdout, apply.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("applied: alarms.alarm"), "{said} {before} {index}");
}

#[test]
fn a_newer_nodeset_has_what_the_configuration_names() {
    let site = Site::new();
    site.configure("");
    let file = site.file("line.xml");
    let server = site.serve();
    let load = |text: String| {
        std::fs::write(&file, text).unwrap();
        site.run(&["nodeset", "load", server.url(), &file])
    };
    let both = nodeset(&[(1, 1.5), (12, 2.5)]);
    let both = both.replace("</Uri>", "</Uri><Uri>urn:axis</Uri>");
    let both = both.replace("</Models>", "<Model ModelUri=\"urn:axis\"/></Models>");
    let (code, text) = load(both);
    assert_eq!(code, 0, "{text}");
    let alarm = |variable: &str| format!("[[alarms.alarm]]\nvariable = \"{variable}\"\nhigh = 2.0\n");
    site.configure(&alarm("nsu=urn:line;i=12"));
    // i=1 is not the beginning of i=12, and urn:axis is not named.
    let (code, text) = load(nodeset(&[(12, 2.5)]));
    assert_eq!(code, 0, "{text}");
    // Nodes are also named with indexes, or only by a PubSub configuration.
    let (_, text) = site.run(&["read", server.url(), "i=2255", "--json"]);
    let (before, _) = text.split_once("urn:line").unwrap();
    let index = before.split_once("\"Value\": [").unwrap().1.matches(',').count();
    let named = format!("ns={index};i=12");
    let field = format!(
        "[[data-set]]\nname = \"d\"\n[[data-set.fields]]\nname = \"x\"\ntype = \"Double\"\nnode = \"{named}\"\n"
    );
    std::fs::write(site.file("pubsub.toml"), field).unwrap();
    let published = "[pubsub]\nconfiguration = \"pubsub.toml\"\n";
    for (more, name) in [
        (alarm("nsu=urn:line;i=12"), "nsu=urn:line;i=12"),
        (alarm(&named), &named),
        (published.to_owned(), "pubsub.toml:6: data set"),
        ("[[alarms.alarm]]\n".to_owned(), "cannot check"),
    ] {
        site.configure(&more);
        let (code, text) = load(nodeset(&[(1, 2.5)]));
        assert!(code == 4 && text.contains(name), "{more}: {text}");
        let (code, text) = site.run(&["nodeset", "unload", server.url(), "urn:line"]);
        assert!(code == 4 && text.contains("refers to nodes of this namespace"), "{more}: {text}");
    }
    // Tags name nodes of other servers.
    site.configure(&format!(
        "# nsu=urn:line;i=12\n[[source]]\nname = \"s\"\ntype = \"opcua\"\nurl = \"opc.tcp://a\"\n\
         [[tag]]\nsource = \"s\"\nname = \"t\"\nnode = \"{named}\"\n"
    ));
    let (code, text) = load(nodeset(&[(1, 2.5)]));
    assert_eq!(code, 0, "{text}");
    site.configure("[[namespace]]\nuri = \"urn:axis\"\n");
    let (code, text) = load(other("urn:axis", &[(1, 1.5)]));
    assert_eq!(code, 0, "{text}");
    let two = nodeset(&[(1, 1.5)]).replace("</Models>", "<Model ModelUri=\"urn:axis\"/></Models>");
    let (code, text) = load(two.replace("</Uri>", "</Uri><Uri>urn:axis</Uri>"));
    assert_eq!(code, 0, "{text}");
    let (code, text) = load(nodeset(&[(1, 1.5)]));
    assert!(code == 4 && text.contains("refers to urn:axis"), "{text}");
}

#[test]
fn files_that_require_a_loaded_nodeset_are_refused_at_a_reload() {
    let site = Site::new();
    site.configure("");
    let line = site.file("line.xml");
    std::fs::write(&line, nodeset(&[(1, 1.5)])).unwrap();
    let required = "<Model ModelUri=\"urn:axis\"><RequiredModel ModelUri=\"urn:line\"/></Model>";
    let axis = other("urn:axis", &[(1, 1.5)]).replace("<Model ModelUri=\"urn:axis\"/>", required);
    std::fs::write(site.file("axis.xml"), axis).unwrap();
    let server = site.serve();
    let (code, text) = site.run(&["nodeset", "load", server.url(), &line]);
    assert_eq!(code, 0, "{text}");
    let config = site.installation.file();
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("[server]\n", "[server]\nnodesets = [\"axis.xml\"]\n")).unwrap();
    let config = config.display().to_string();
    let apply =
        Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(["config", "apply", &config]).run(LIMIT).unwrap();
    let said = String::from_utf8_lossy(&apply.stderr).into_owned();
    assert!(apply.status.code() != Some(0) && said.contains("urn:line"), "{said}");
    let (code, text) = site.run(&["read", server.url(), "nsu=urn:axis;i=1"]);
    assert!(code != 0 && text.contains("no namespace urn:axis"), "{code} {text}");
}

/// The default permissions of a NodeSet would apply to the tags.
#[cfg(feature = "gateway")]
#[test]
fn the_namespace_of_tags_that_a_reload_brings_and_nodesets_exclude_each_other() {
    const TAGS: &str =
        "[[source]]\nname = \"sim\"\ntype = \"simulation\"\n[[tag]]\nname = \"T\"\nsource = \"sim\"\n";
    let site = Site::new();
    // Without a folder, only the running server knows the loaded NodeSets.
    let configure = |more: &str| {
        site.configure(more);
        let text = std::fs::read_to_string(site.installation.file()).unwrap();
        std::fs::write(site.installation.file(), text.replace("folder = \"nodesets\"\n", "")).unwrap();
    };
    configure("");
    let line = site.file("line.xml");
    let load = |url: &str, uri: &str| {
        std::fs::write(&line, other(uri, &[(1, 1.5)])).unwrap();
        site.run(&["nodeset", "load", url, &line])
    };
    let with = |uri: &str| configure(&format!("[gateway]\nnamespace = \"{uri}\"\n{TAGS}"));
    let apply = || installation::apply(&site.installation.file());
    let server = site.serve();
    let url = server.url();
    let (code, text) = load(url, "urn:line");
    assert_eq!(code, 0, "{text}");
    let refused = |(code, text): (i32, String)| {
        assert!(
            code == 2 && text.contains("[gateway] namespace") && text.contains("urn:line"),
            "{code} {text}"
        );
        let (code, text) = site.run(&["read", url, "nsu=urn:line;s=sim/T"]);
        assert!(code == 4 && text.contains("BadNodeIdUnknown"), "{code} {text}");
    };
    with("urn:line");
    refused(apply());
    // A namespace of NodeSet files that come with the same reload.
    with("urn:file");
    std::fs::write(site.file("file.xml"), other("urn:file", &[(1, 1.5)])).unwrap();
    let text = std::fs::read_to_string(site.installation.file()).unwrap();
    let text = text.replace("[server]\n", "[server]\nnodesets = [\"file.xml\"]\n");
    std::fs::write(site.installation.file(), text).unwrap();
    let (code, text) = apply();
    assert!(code == 2 && text.contains("urn:file"), "{code} {text}");
    // The first tags.
    with("urn:tags");
    let (code, text) = apply();
    assert!(code == 0 && text.contains("applied: source, tag"), "{code} {text}");
    let refuses = |uri: &str| {
        let (code, text) = load(url, uri);
        assert!(code == 4 && text.contains("used by the server or its configuration"), "{code} {text}");
    };
    refuses("urn:tags");
    // Another namespace, which the tags have after a restart.
    with("urn:line");
    refused(apply());
    with("urn:later");
    let (code, text) = apply();
    assert!(code == 0 && text.contains("waiting for a restart: gateway"), "{code} {text}");
    refuses("urn:later");
    drop(server);
    // A folder that keeps them.
    site.configure("");
    let server = site.serve();
    let (code, text) = load(server.url(), "urn:line");
    assert_eq!(code, 0, "{text}");
    drop(server);
    site.configure(&format!("[gateway]\nnamespace = \"urn:line\"\n{TAGS}"));
    let file = site.installation.file().display().to_string();
    for command in [&["config", "check", &file][..], &["serve", "--config", &file]] {
        let (code, text) = installation::run(command);
        assert!(code == 2 && text.contains("the namespace urn:line is used by the server"), "{code} {text}");
    }
}

/// Newer files in which something that the configuration names is not as before. The server starts again in any case.
#[test]
fn a_server_starts_again_with_its_rules_and_a_newer_nodeset() {
    let node = |tag: &str, id: &str, name: &str, attributes: &str, references: &[(&str, &str)]| {
        let references: String = references
            .iter()
            .map(|(kind, target)| {
                let is_forward = *kind == "i=40";
                format!("<Reference ReferenceType=\"{kind}\" IsForward=\"{is_forward}\">{target}</Reference>")
            })
            .collect();
        format!(
            "<{tag} NodeId=\"ns=1;i={id}\" BrowseName=\"1:{name}\" {attributes}><References>{references}</References></{tag}>"
        )
    };
    let variable = |id, kind: &str| {
        let data_type = format!("DataType=\"{kind}\"");
        node("UAVariable", id, &format!("V{id}"), &data_type, &[("i=35", "i=85"), ("i=40", "i=63")])
    };
    let typed = |base: &str| node("UAObjectType", "10", "OwnAlarmType", "", &[("i=45", base)]);
    let cause = |name: &str, kind: &str| {
        let data_type = format!("DataType=\"{kind}\"");
        node(
            "UAVariable",
            "11",
            name,
            &data_type,
            &[("i=46", "ns=1;i=10"), ("i=40", "i=68"), ("i=37", "i=78")],
        )
    };
    let instance = |kind: &str| node("UAObject", "12", "Alarm", "", &[("i=47", "ns=1;i=2"), ("i=40", kind)]);
    let file =
        |nodes: &[String]| nodeset(&[]).replace("</UANodeSet>", &format!("{}</UANodeSet>", nodes.concat()));
    let alarm =
        |more: &str| format!("[[alarms.alarm]]\nvariable = \"nsu=urn:line;i=2\"\nname = \"A\"\n{more}\n");
    let group = "[[alarms.group]]\nname = \"G\"\nmembers = [\"nsu=urn:line;i=1\"]\nsuppresses = [\"nsu=urn:line;s=2/A\"]\n";
    let group = alarm("high = 2.0") + group;
    let own_type = alarm("high = 2.0\ntype = \"nsu=urn:line;i=10\"");
    let fields = alarm("high = 2.0\ntype = \"nsu=urn:line;i=10\"\nfields = { Cause = \"leak\" }");
    let bound = alarm("high = 2.0\ninstance = \"nsu=urn:line;i=12\"").replace("name = \"A\"\n", "");
    let (boolean, double, level) = ("i=1", "i=11", "i=9482");
    let v2 = || variable("2", double);
    let text = |name: &str| cause(name, "i=12");
    let cases = [
        (&group, [variable("1", boolean), v2()].to_vec(), [variable("1", double), v2()].to_vec()),
        (&alarm("normal = true"), [variable("2", boolean)].to_vec(), [variable("2", "i=6")].to_vec()),
        (&own_type, [v2(), typed(level)].to_vec(), [v2(), typed("i=58")].to_vec()),
        (&fields, [v2(), typed(level), text("Cause")].to_vec(), [v2(), typed(level)].to_vec()),
        (&fields, [v2(), typed(level), text("Cause")].to_vec(), [v2(), typed(level), text("Why")].to_vec()),
        (
            &fields,
            [v2(), typed(level), text("Cause")].to_vec(),
            [v2(), typed(level), cause("Cause", "i=6")].to_vec(),
        ),
        (&bound, [v2(), instance(level)].to_vec(), [v2(), instance("i=61")].to_vec()),
    ];
    for (rules, before, after) in cases {
        let site = Site::new();
        site.configure(rules);
        std::fs::write(site.file("nodesets/urn%3Aline.xml"), file(&before)).unwrap();
        let server = site.serve();
        let newer = site.file("line.xml");
        std::fs::write(&newer, file(&after)).unwrap();
        let (code, text) = site.run(&["nodeset", "load", server.url(), &newer]);
        assert!(
            code == 4 && text.contains("the configuration refers to nsu=urn:line;i="),
            "{rules}{code} {text}"
        );
        // Other changes are possible.
        let added = [before, vec![variable("5", double)]].concat();
        std::fs::write(&newer, file(&added)).unwrap();
        let (code, text) = site.run(&["nodeset", "load", server.url(), &newer]);
        assert!(code == 0 && text.contains("1 node added"), "{rules}{code} {text}");
        drop(server);
        drop(site.serve());
    }
}

/// The rehearsal of a reload has no certificate.
#[test]
fn groups_with_alarms_of_the_server_itself_do_not_prevent_a_reload() {
    let site = Site::new();
    let rules = |member: &str, more: &str| {
        let group = format!("[[alarms.group]]\nname = \"Security\"\nmembers = [\"{member}\"{more}]\n");
        format!("[[alarms.alarm]]\nvariable = \"nsu=urn:line;i=1\"\nhigh = 2.0\nname = \"A\"\n{group}")
    };
    std::fs::write(site.file("nodesets/urn%3Aline.xml"), nodeset(&[(1, 1.5)])).unwrap();
    let own = "ns=1;s=CertificateExpired";
    site.configure(&rules(own, ""));
    let server = site.serve();
    let config = site.installation.file().display().to_string();
    for (text, code, said) in [
        (rules(own, ", \"nsu=urn:line;s=1/A\""), 0, "applied: alarms.group"),
        (rules(own, ", \"nsu=urn:line;s=1/B\""), 2, "1/B is not an alarm"),
        (rules("ns=1;s=CertificateExpird", ""), 2, "ns=1;s=CertificateExpird is not an alarm"),
        (rules("nsu=urn:line;s=1/A", ""), 0, "applied: alarms.group"),
        (rules(own, ""), 0, "applied: alarms.group"),
    ] {
        site.configure(&text);
        let (found, told) = installation::run(&["config", "apply", &config]);
        assert!(found == code && told.contains(said), "{text}{found} {told}");
    }
    drop(server);
}
