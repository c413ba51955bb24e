//! Tests of the catalogue, and of installation without network access.

use super::*;
use std::fs;

fn place(name: &str) -> PathBuf {
    let place = std::env::temp_dir().join(format!("peers-test-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).unwrap();
    place
}

#[test]
fn names_are_unique_and_versions_pinned_in_the_sources() {
    for (index, peer) in PEERS.iter().enumerate() {
        assert_eq!(find(peer.name), Some(peer));
        assert!(PEERS.iter().skip(index + 1).all(|other| other.name != peer.name));
        assert!(!peer.licence.is_empty() && !peer.registry.is_empty());
    }
    assert_eq!(find("kepware"), None);
    let text = |path: &str| sources::all().iter().find(|it| it.0 == path).map(|it| it.1).unwrap();
    for (path, name) in [
        ("asyncua/requirements.txt", "asyncua"),
        ("python-opcua/requirements.txt", "python-opcua"),
        ("milo/pom.xml", "milo"),
        ("node-opcua/package.json", "node-opcua"),
        ("gopcua/go.mod", "gopcua"),
        ("async-opcua/Cargo.toml", "async-opcua"),
        ("rumqttd/Cargo.toml", "rumqttd"),
        ("asyncua-pymodbus/requirements.txt", "asyncua-pymodbus"),
        ("node-red/package.json", "node-red"),
    ] {
        let version = find(name).unwrap().version;
        assert!(text(path).contains(version), "{path} does not pin {version}");
    }
}

#[test]
fn start_time_grows_with_variables_up_to_the_timeout() {
    for peer in &PEERS {
        let [none, few, many] = [0, 1_000, u32::MAX].map(|variables| peer.starts_in(variables));
        assert!(none <= few && few <= many && many <= LIMIT, "{}", peer.name);
        assert!(peer.role == Role::Mqtt || few < LIMIT, "{} with a thousand variables", peer.name);
    }
    let starts = |name: &str, variables| find(name).unwrap().starts_in(variables).as_secs_f64();
    assert!(starts("milo", 100) > starts("open62541", 100));
    // Measured points, interpolation between them, and extrapolation of the last segment.
    assert_eq!([0, 5_000].map(|variables| starts("node-opcua", variables)), [3.4, 4.8]);
    assert!(
        (starts("node-opcua", 2_500) - 4.1).abs() < 1e-9 && (starts("node-opcua", 10_000) - 6.2).abs() < 1e-9
    );
    assert_eq!(find("asyncua").unwrap().starts_in(20_000), LIMIT);
}

#[test]
fn missing_peers_name_the_command_that_installs_them() {
    let place = place("state");
    for peer in &PEERS {
        match state(peer, &place) {
            State::Installed { .. } => assert_eq!(peer.name, "mosquitto"),
            State::NotInstalled { command } => {
                assert!(command.ends_with(&format!("install {}", peer.name)), "{command}");
            }
            State::Missing { tools, command } => assert!(!tools.is_empty() && command.contains("install")),
            State::Outdated { .. } => panic!("{} in an empty folder", peer.name),
        }
    }
    let gopcua = find("gopcua").unwrap();
    fs::create_dir_all(place.join("gopcua")).unwrap();
    fs::write(place.join("gopcua/lab-stamp"), "0.7.0 1234\n").unwrap();
    assert!(!matches!(state(gopcua, &place), State::Installed { .. } | State::NotInstalled { .. }));
    let error = start(gopcua, &place, &PeerOptions::default()).unwrap_err();
    assert!(error.to_string().contains("gopcua is not installed"), "{error}");
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn fingerprints_differ() {
    let prints: Vec<u64> = ["asyncua", "milo", "gopcua"].map(sources::fingerprint).to_vec();
    assert!(prints[0] != prints[1] && prints[1] != prints[2]);
    assert_eq!(prints[0], sources::fingerprint("asyncua"));
}

#[test]
fn sources_are_the_files_of_the_checkout() {
    let interop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop");
    assert_eq!(sources::all().len(), include_str!("sources.txt").lines().count());
    for (path, text) in sources::all() {
        assert_eq!(fs::read_to_string(interop.join(path)).unwrap(), *text, "{path}");
    }
}
