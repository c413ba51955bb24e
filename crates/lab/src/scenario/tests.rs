use super::*;
use std::time::Duration;
use taktwerk_load::Specification;
use taktwerk_load::mqtt::Qos;
use taktwerk_load::specification::{Content, Mqtt, MqttPattern, PubSub, PubSubPattern};

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

/// The same text as a fan, which has no items.
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
    let Specification::Subscribe(load) = conditions[2].load() else { panic!("another load") };
    assert_eq!((load.common.clients, load.items, load.steady), (10, Some(1_000), true));
    assert_eq!((load.common.warmup, load.common.duration), (Duration::from_secs(2), Duration::from_secs(10)));
    let interval = Duration::from_millis(100);
    assert_eq!((load.interval, load.update, load.sampling), (interval, Some(interval), None));
    assert_eq!(scenario.thresholds[0].below, Some(150_000.0));
}

#[test]
fn loads_use_the_tags_of_adapters_unless_there_are_signals() {
    let with = |server: &str| {
        let table = format!(
            "name = \"x\"\nload = {{ kind = \"subscribe\", items = 30 }}\nserver = {{ adapters = \"2:15:20\", {server} }}"
        );
        Scenario::parse(&table, "x.toml").unwrap().conditions().remove(0)
    };
    let update = |condition: &Condition| match condition.load() {
        Specification::Subscribe(load) => load.update,
        _ => panic!("another load"),
    };
    let tags = with("threads = 1");
    assert_eq!((tags.signals(), update(&tags)), (0, Some(Duration::from_millis(20))));
    let signals = with("signals = 7, update_ms = 50");
    assert_eq!((signals.signals(), update(&signals)), (7, Some(Duration::from_millis(50))));
    assert_eq!(tags.factors()["adapters"], "2:15:20");
    assert!(!tags.factors().contains_key("update_ms"), "no thread of the server sets values");
}

#[test]
fn servers_of_the_laboratory_can_be_isolated() {
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
fn brokers_have_a_qos_and_two_kinds_of_load() {
    assert_eq!(broker("mosquitto-qos2"), Some(("mosquitto", 2)));
    assert_eq!((broker("mosquitto"), broker("mosquitto-qos3"), broker("own")), (None, None, None));
    assert_eq!(broker("embedded-uadp-qos1"), Some((EMBEDDED, 1)));
    let uadp = ["embedded-uadp-qos1", "embedded-qos1", "own-uadp", "uadp-udp"].map(is_uadp);
    assert_eq!(uadp, [true, false, false, false]);
    let text = TEXT.replace("\"own\"", "\"mosquitto-qos1\"");
    let error = Scenario::parse(&text, "x.toml").unwrap_err().to_string();
    assert!(error.contains("roundtrip"), "{error}");
    let scenario = Scenario::parse(&as_fan(&text), "x.toml").unwrap();
    let fan = Mqtt {
        pattern: MqttPattern::Fan,
        qos: Qos::AtLeastOnce,
        warmup: Duration::from_secs(2),
        ..Mqtt::default()
    };
    assert_eq!(scenario.conditions()[0].load(), Specification::Mqtt(fan.clone()));
    let pubsub = as_fan(&text).replace("mosquitto-qos1", "embedded-uadp-qos0");
    let scenario = Scenario::parse(&pubsub, "x.toml").unwrap();
    let fan = Mqtt { qos: Qos::AtMostOnce, message: Content::Uadp, ..fan };
    assert_eq!(scenario.conditions()[0].load(), Specification::Mqtt(fan));
}

#[test]
fn the_server_of_a_fan_does_not_change_values() {
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
    let cycles = PubSub {
        signals: 1_000,
        rounds: 1,
        update: Some(Duration::from_millis(30)),
        no_bare: true,
        ..PubSub::default()
    };
    assert_eq!(scenario.conditions()[0].load(), Specification::PubSub(cycles));
    // With a peer's publisher, the load is only a subscriber.
    scenario.stacks = vec!["open62541".into()];
    let listen = PubSub { pattern: PubSubPattern::Listen, ..PubSub::default() };
    assert_eq!(scenario.conditions()[0].load(), Specification::PubSub(listen));
}

#[test]
fn messages_without_a_broker_have_no_server() {
    let text = TEXT.replace("\"own\"", "\"uadp-udp\"");
    assert!(Scenario::parse(&text, "x.toml").is_err());
    let text = as_fan(&text);
    let scenario = Scenario::parse(&text, "x.toml").unwrap();
    let fan = PubSub {
        pattern: PubSubPattern::Fan,
        clients: 10,
        warmup: Duration::from_secs(2),
        ..PubSub::default()
    };
    assert_eq!(scenario.conditions()[2].load(), Specification::PubSub(fan));
    let linked = text.replace("[load]", "link = \"wan-oregon\"\n[load]");
    assert!(Scenario::parse(&linked, "x.toml").unwrap_err().to_string().contains("link"));
}

#[test]
fn mistakes_are_reported_with_their_key() {
    let error = Scenario::parse(&TEXT.replace("items", "itmes"), "x.toml").unwrap_err().to_string();
    assert!(error.contains("itmes") && error.contains("items") && error.starts_with("x.toml:7: "), "{error}");
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
fn scenarios_round_trip_through_toml() {
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
