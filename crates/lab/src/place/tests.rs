use super::*;
use crate::scenario::{LoadSpec, Scenario};

#[test]
fn missing_peers_and_failing_loads_are_errors() {
    let place = Place::new("/bin/sh".into(), "/no/such/peers".into());
    assert_eq!(place.stacks(), ["own"]);
    let mut scenario = Scenario::new("x", LoadSpec::new(Kind::Read));
    scenario.stacks = vec!["milo".into()];
    let condition = scenario.conditions().remove(0);
    let error = place.measure("", &condition, 0).unwrap_err().to_string();
    assert!(error.contains("milo") && error.contains("not installed"), "{error}");
    scenario.load.kind = Kind::Roundtrip;
    scenario.stacks = vec!["embedded-qos0".into()];
    let error = place.check(&scenario.conditions()[0]).unwrap_err().to_string();
    assert!(error.contains("default features"), "{error}");
    assert!(place.brokers().is_empty() || place.brokers() == ["mosquitto"]);
    scenario.load.kind = Kind::Read;
    scenario.link = Some("moon".into());
    let error = place.measure("", &scenario.conditions()[0], 0).unwrap_err().to_string();
    assert!(error.contains("moon") && error.contains("wan-tokyo"), "{error}");
    scenario.link = None;
    scenario.stacks = vec!["opc.tcp://127.0.0.1:1".into()];
    // The shell does not know the command bench, and fails with a message.
    let error = place.measure("", &scenario.conditions()[0], 0).unwrap_err();
    assert!(matches!(error, PlaceError::Load { .. }), "{error}");
}

#[test]
fn missing_publishers_are_found_before_measuring() {
    let peers = tempfile::tempdir().unwrap();
    let place = Place::new("/bin/true".into(), peers.path().into());
    let mut load = LoadSpec::new(Kind::PubSub);
    load.items = Some(1.into());
    let mut scenario = Scenario::new("x", load);
    let check = |scenario: &Scenario| {
        let condition = scenario.conditions().remove(0);
        let told = place.check(&condition).map_err(|error| error.to_string());
        // Without the check, measuring returns the same error.
        if let Err(told) = &told {
            assert_eq!(place.measure("", &condition, 0).unwrap_err().to_string(), *told);
        }
        told
    };
    assert!(check(&scenario).is_ok(), "our own");
    scenario.stacks = vec!["milo".into()];
    assert!(check(&scenario).unwrap_err().contains("no publisher of \"milo\""));
    scenario.stacks = vec!["opc.tcp://127.0.0.1:1".into()];
    assert!(check(&scenario).unwrap_err().contains("no publisher of"));
    // Installed by a version without a publisher.
    scenario.stacks = vec!["open62541".into()];
    assert!(check(&scenario).unwrap_err().contains("lab peers install open62541"));
    let programs = peers.path().join("open62541/bin");
    std::fs::create_dir_all(&programs).unwrap();
    std::fs::write(programs.join("o6-publisher"), "").unwrap();
    assert!(check(&scenario).is_ok());
    scenario.load.items = Some(1_000.into());
    assert!(check(&scenario).unwrap_err().contains("load.items = 1"));
}

#[test]
fn the_load_runs_on_the_requested_cpus() {
    let mut place = Place::new("/bin/true".into(), "/no/such/peers".into());
    place.allowed = vec![0, 1, 2];
    let cpus = |condition, server: Option<&str>, load: Option<&str>| {
        let mut scenario = Scenario::new("x", LoadSpec::new(Kind::Read));
        scenario.cpu.condition = condition;
        (scenario.cpu.server, scenario.cpu.load) = (server.map(str::to_owned), load.map(str::to_owned));
        let condition = scenario.conditions().remove(0);
        let servers = place.wanted(&condition)?.cpus;
        place.load_cpus(&condition, &servers).map(|list| list.to_string())
    };
    let (isolated, same) = (CpuCondition::Isolated, CpuCondition::Same);
    assert_eq!(cpus(isolated, None, None).unwrap(), "1");
    assert_eq!(cpus(isolated, Some("1"), None).unwrap(), "0");
    assert_eq!(cpus(isolated, Some("0,1"), None).unwrap(), "2");
    assert_eq!(cpus(same, Some("1"), None).unwrap(), "1");
    assert_eq!(cpus(same, Some("1"), Some("1-2")).unwrap(), "1-2");
    for (kind, server, load) in [(isolated, "0-2", None), (isolated, "1", Some("1")), (same, "1", Some("2"))]
    {
        let error = cpus(kind, Some(server), load).unwrap_err().to_string();
        assert!(error.contains(kind.name()) && error.contains("cpu.server"), "{error}");
    }
}

#[test]
fn cpu_conditions_are_set_or_refused_with_a_reason() {
    let place = Place::new("/bin/true".into(), "/no/such/peers".into());
    let mut scenario = Scenario::new("x", LoadSpec::new(Kind::Read));
    assert!(place.check_cpu(&scenario.conditions()[0]).is_ok());
    scenario.cpu.governor = Some("warp".into());
    let refused = place.check_cpu(&scenario.conditions()[0]).unwrap_err();
    assert!(matches!(refused, PlaceError::Conditions(_)) && refused.to_string().contains("governor"));
}
