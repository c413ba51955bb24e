use super::*;

const TEXT: &str = r#"
    name = "x"
    stacks = ["own", "open62541"]
    [load]
    kind = "subscribe"
    clients = [1, 10]
    items = 1000
    publishing_ms = 100.0
    [[threshold]]
    metric = "delivery.p99_us"
    below = 150000
"#;

/// The same as a fan, which has no items.
fn as_fan(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("items"));
    lines.collect::<Vec<_>>().join("\n").replace("\"subscribe\"", "\"fan\"")
}

#[test]
fn lists_are_measured_one_by_one() {
    let scenario = Scenario::parse(TEXT, "x.toml").unwrap();
    let conditions = scenario.conditions();
    assert_eq!(conditions.len(), 4);
    assert_eq!((conditions[0].clients, conditions[1].stack.as_str()), (1, "open62541"));
    assert_eq!(conditions[3].signals(), 1000);
    let arguments = conditions[2].arguments().join(" ");
    assert_eq!(
        arguments,
        "subscribe -c 10 --warmup 2000ms -d 10000ms --items 1000 -I 100 --update 100 --steady"
    );
    assert_eq!(scenario.thresholds[0].below, Some(150_000.0));
}

#[test]
fn servers_of_the_laboratory_can_have_a_cpu_without_anybody_else() {
    let can = |stack: &str, kind: Kind, condition: CpuCondition| {
        let mut scenario = Scenario::new("x", LoadSpec::new(kind));
        scenario.stacks = vec![stack.to_owned()];
        scenario.cpu.condition = condition;
        scenario.conditions()[0].can_isolate()
    };
    assert!(can("own", Kind::Read, CpuCondition::Isolated));
    assert!(
        !can("own", Kind::Read, CpuCondition::Shared) && !can("own", Kind::PubSub, CpuCondition::Isolated)
    );
    assert!(!can("opc.tcp://plc", Kind::Read, CpuCondition::Isolated));
}

#[test]
fn cpu_conditions_distinguish_loads() {
    let text = format!("{TEXT}\n[cpu]\nisolate = true\nclass = \"rr:7\"\ngovernor = \"performance\"");
    let scenario = Scenario::parse(&text, "x.toml").unwrap();
    let factors = scenario.conditions()[0].factors();
    let factor = |name: &str| factors.get(name).map(String::as_str);
    assert_eq!((factor("isolate"), factor("class")), (Some("yes"), Some("rr:7")));
    assert_eq!(factor("governor"), Some("performance"));
    assert!(!Scenario::parse(TEXT, "x.toml").unwrap().conditions()[0].factors().contains_key("isolate"));
}

#[test]
fn brokers_have_a_quality_of_service_and_two_kinds_of_load() {
    assert_eq!(broker("mosquitto-qos2"), Some(("mosquitto", 2)));
    assert_eq!((broker("mosquitto"), broker("mosquitto-qos3"), broker("own")), (None, None, None));
    assert_eq!(broker("embedded-uadp-qos1"), Some((EMBEDDED, 1)));
    let uadp = ["embedded-uadp-qos1", "embedded-qos1", "own-uadp", "uadp-udp"].map(is_uadp);
    assert_eq!(uadp, [true, false, false, false]);
    let text = TEXT.replace("\"own\"", "\"mosquitto-qos1\"");
    let error = Scenario::parse(&text, "x.toml").unwrap_err().to_string();
    assert!(error.contains("roundtrip"), "{error}");
    let scenario = Scenario::parse(&as_fan(&text), "x.toml").unwrap();
    assert_eq!(
        scenario.conditions()[0].arguments().join(" "),
        "mqtt --pattern fan --qos 1 --payload 16 -c 1 --warmup 2000ms -d 10000ms"
    );
    let pubsub = as_fan(&text).replace("mosquitto-qos1", "embedded-uadp-qos0");
    let scenario = Scenario::parse(&pubsub, "x.toml").unwrap();
    assert_eq!(
        scenario.conditions()[0].arguments().join(" "),
        "mqtt --pattern fan --qos 0 --message uadp --payload 16 -c 1 --warmup 2000ms -d 10000ms"
    );
}

#[test]
fn the_server_of_a_fan_leaves_the_values_to_the_clients() {
    let scenario = Scenario::parse(TEXT, "x.toml").unwrap();
    assert!(scenario.conditions().iter().all(|one| one.server.update_ms == 100.0));
    let fan = Scenario::parse(&as_fan(TEXT), "x.toml").unwrap();
    assert!(fan.conditions().iter().all(|one| one.server.update_ms == 0.0));
}

#[test]
fn publishers_have_options_of_their_own() {
    let mut load = LoadSpec::new(Kind::PubSub);
    (load.items, load.publishing_ms) = (Some(1000.into()), Some(100.0.into()));
    let mut scenario = Scenario::new("x", load);
    scenario.server.update_ms = 30.0;
    let arguments = scenario.conditions()[0].arguments().join(" ");
    assert_eq!(arguments, "pubsub --signals 1000 -I 100 -d 10000ms --rounds 1 --update 30 --no-bare");
    // To a peer's publisher there is only to listen.
    scenario.stacks = vec!["open62541".into()];
    let arguments = scenario.conditions()[0].arguments().join(" ");
    assert_eq!(arguments, "pubsub --pattern listen -I 100 -d 10000ms");
}

#[test]
fn messages_without_a_broker_have_no_server() {
    let text = TEXT.replace("\"own\"", "\"uadp-udp\"");
    assert!(Scenario::parse(&text, "x.toml").is_err());
    let text = as_fan(&text);
    let scenario = Scenario::parse(&text, "x.toml").unwrap();
    assert_eq!(
        scenario.conditions()[2].arguments().join(" "),
        "pubsub --pattern fan --payload 16 -c 10 --warmup 2000ms -d 10000ms"
    );
    let linked = text.replace("[load]", "link = \"wan-oregon\"\n[load]");
    assert!(Scenario::parse(&linked, "x.toml").unwrap_err().to_string().contains("link"));
}

#[test]
fn mistakes_are_named() {
    let error = Scenario::parse(&TEXT.replace("items", "itmes"), "x.toml").unwrap_err().to_string();
    assert!(error.contains("itmes") && error.contains("items") && error.contains("line 7"), "{error}");
    let error = Scenario::parse(&TEXT.replace("[1, 10]", "0"), "x.toml").unwrap_err().to_string();
    assert!(error.contains("must not be 0"), "{error}");
    let error = Scenario::parse(&TEXT.replace("below = 150000", ""), "x.toml").unwrap_err();
    assert!(error.to_string().contains("below or above"));
    assert!(Scenario::parse(&TEXT.replace("subscribe", "subscribing"), "x.toml").is_err());
    for (cpu, why) in [
        ("class = \"fast\"", "fifo:PRIORITY"),
        ("server = \"a\"", "list of CPUs"),
        ("isolate = true\ncondition = \"shared\"", "leave one out"),
    ] {
        let error = Scenario::parse(&format!("{TEXT}\n[cpu]\n{cpu}"), "x.toml").unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let foreign = TEXT.replace("\"own\"", "\"opc.tcp://plc\"") + "\n[cpu]\nclass = \"fifo:1\"";
    let error = Scenario::parse(&foreign, "x.toml").unwrap_err().to_string();
    assert!(error.contains("that the laboratory starts"), "{error}");
}

#[test]
fn a_scenario_survives_being_written() {
    let scenario = Scenario::parse(TEXT, "x.toml").unwrap();
    let text = toml::to_string(&scenario).unwrap();
    assert_eq!(Scenario::parse(&text, "again").unwrap(), scenario);
}

#[test]
fn the_scenarios_of_the_documentation_can_be_measured() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lab/scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let scenario = Scenario::parse(&text, &path.display().to_string());
        assert!(scenario.is_ok(), "{}", scenario.unwrap_err());
        count += 1;
    }
    assert!(count >= 5, "{count}");
}
