//! docs/pubsub-configuration.md documents exactly the existing keys.

#![cfg(feature = "serde")]

use std::path::Path;
use taktwerk_pubsub::config::toml::from_toml;
use taktwerk_pubsub::config::{TRANSPORT_MQTT_JSON, validate};

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The TOML blocks that are PubSub configurations.
fn examples(page: &str) -> Vec<&str> {
    let blocks = page.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap());
    blocks.filter(|block| block.contains("[[connection]]")).collect()
}

#[test]
fn the_examples_are_configurations() {
    for name in ["pubsub-configuration.md", "reference/pubsub-actions.md"] {
        let page = page(name);
        let examples = examples(&page);
        assert!(!examples.is_empty(), "{name}");
        for example in examples {
            let configuration =
                from_toml(example).unwrap_or_else(|error| panic!("{name}: {error}\n{example}"));
            assert_eq!(validate(&configuration), [], "{name}");
        }
    }
    let page = page("pubsub-configuration.md");
    let first = from_toml(examples(&page)[0]).unwrap();
    assert_eq!(first.connections[1].transport_profile_uri, TRANSPORT_MQTT_JSON);
}

/// The keys that the parser knows at a place, from its error for an unknown key.
fn known(place: &str) -> Vec<String> {
    let error = from_toml(&place.replace('?', "bogus = 1")).unwrap_err().to_string();
    let (_, list) = error.split_once("unknown field `bogus`, expected").unwrap_or_else(|| panic!("{error}"));
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The keys of the table that follows some words of the page.
fn documented(page: &str, after: &str) -> Vec<String> {
    let (_, rest) = page.split_once(after).unwrap_or_else(|| panic!("{after}"));
    let rows =
        rest.lines().skip_while(|line| !line.starts_with("| `")).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.split('`').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn every_key_is_documented() {
    let page = page("pubsub-configuration.md");
    let set = "[[data-set]]\nname = \"d\"\n";
    let connection = "[[connection]]\nname = \"c\"\nurl = \"opc.udp://b\"\n";
    let group = format!("{connection}[[connection.writer-group]]\nname = \"g\"\ninterval = 1.0\n");
    let readers = format!("{connection}[[connection.reader-group]]\nname = \"g\"\n");
    let places = [
        ("\n## The file\n", "?".to_owned()),
        ("\n## `[[security-group]]`\n", "[[security-group]]\n?".to_owned()),
        ("\n## `[[data-set]]`\n", format!("{set}?")),
        ("\nA field (", format!("{set}fields = [{{ ? }}]")),
        ("\nAn Action:\n", format!("{set}actions = [{{ ? }}]")),
        ("\n## `[[connection]]`\n", format!("{connection}?")),
        ("\n## `[[connection.writer-group]]`\n", format!("{group}?")),
        ("\n`security`, also of", format!("{group}security = {{ ? }}")),
        ("\nA DataSetWriter (", format!("{group}writers = [{{ ? }}]")),
        ("\n## `[[connection.reader-group]]`\n", format!("{readers}?")),
        ("\nA DataSetReader (", format!("{readers}readers = [{{ ? }}]")),
    ];
    for (after, place) in places {
        assert_eq!(documented(&page, after), known(&place), "{after}");
    }
}
