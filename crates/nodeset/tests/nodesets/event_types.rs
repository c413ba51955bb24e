//! The generator of typed events. The tests of `taktwerk` compile its output.

use std::path::PathBuf;
use taktwerk_nodeset::NodeSet;
use taktwerk_nodeset::event_types::{EventTypes, EventTypesError};

const PUMPS: &str = "urn:example:pumps";

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../taktwerk/tests/typed_events").join(name)
}

fn node_set(change: impl Fn(String) -> String) -> NodeSet {
    let text = std::fs::read_to_string(file("pumps.NodeSet2.xml")).unwrap();
    NodeSet::parse("pumps", &change(text)).unwrap()
}

#[test]
fn a_node_set_becomes_the_source_that_is_compiled() {
    let mut types = EventTypes::new();
    types.add(&node_set(|text| text));
    // The order does not matter.
    types.add_namespace_zero();
    let source = types.generate(PUMPS).unwrap();
    let golden = file("pump_events.rs");
    if std::env::var_os("TAKTWERK_WRITE_GOLDEN").is_some() {
        std::fs::write(&golden, &source).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap();
    assert_eq!(source, expected, "run this test with TAKTWERK_WRITE_GOLDEN=1 to update the file");
}

#[test]
fn missing_and_colliding_types_are_reported() {
    let mut types = EventTypes::new();
    types.add(&node_set(|text| text));
    let error = types.generate(PUMPS).unwrap_err();
    assert!(matches!(&error, EventTypesError::Missing { id, .. } if id == "i=2041"), "{error}");
    types.add_namespace_zero();
    assert_eq!(types.generate("urn:other"), Err(EventTypesError::None { uri: "urn:other".into() }));
    let mut types = EventTypes::new();
    types.add_namespace_zero();
    types.add(&node_set(|text| text.replace("1:Speeds", "1:reason")));
    let error = types.generate(PUMPS).unwrap_err();
    assert!(matches!(&error, EventTypesError::SameName { name, .. } if name == "reason"), "{error}");
}

#[test]
fn text_of_the_file_is_escaped() {
    let mut types = EventTypes::new();
    types.add_namespace_zero();
    let evil = r#"1:Quote&quot;, &quot;)] } fn main() {} //"#;
    types.add(&node_set(|text| text.replace("1:Speeds", evil).replace("A pump has", "A pump\n*/ has")));
    let source = types.generate(PUMPS).unwrap();
    assert!(
        source.contains(
            r#"quote_fn_main: Vec<f64> = [("urn:example:pumps", "Quote\", \")] } fn main() {} //")]"#
        )
    );
    assert!(source.contains("/// A pump */ has stopped."));
}
