//! The configuration as TOML.
//!
//! ```toml
//! [[data-set]]
//! name = "plant"
//! fields = [{ name = "temperature", type = "Float" }, { name = "state", type = "String", max-length = 16 }]
//!
//! [[connection]]
//! name = "udp"
//! publisher-id = { uint16 = 2234 }
//! url = "opc.udp://239.0.0.1:4840"
//!
//! [[connection.writer-group]]
//! name = "fast"
//! id = 1
//! interval = 10.0
//! layout = "periodic-fixed"
//! writers = [{ name = "plant", id = 1, data-set = "plant" }]
//! ```
//!
//! A data set with `actions` publishes Actions (Part 14 §5.4.3): `request` are the fields of requests, `fields` those
//! of responses. Actions with `object` and `method` are Methods of a server:
//!
//! ```toml
//! [[data-set]]
//! name = "boiler"
//! request = [{ name = "setpoint", type = "Double" }]
//! fields = [{ name = "before", type = "Double" }]
//! actions = [{ id = 1, name = "heat", object = "ns=2;s=Boiler", method = "ns=2;s=Heat" }]
//! ```
//!
//! TOML covers the common settings. [`to_toml`] refuses a configuration with settings that TOML cannot express; use the
//! binary file for these.

mod read;
mod shape;
mod write;

pub use read::{from_toml, from_toml_with};
pub use write::to_toml;

/// Why text is not a valid configuration, or a configuration cannot be written as text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TomlError {
    /// The text is not valid TOML, or has an unknown key.
    #[error("{0}")]
    Text(String),
    /// An invalid value.
    #[error("{element}: {reason}")]
    Value {
        /// The element.
        element: String,
        /// What is wrong with it.
        reason: String,
    },
    /// TOML cannot express all settings.
    #[error("the configuration has settings that TOML cannot express: write the binary file")]
    NotExpressible,
}

impl TomlError {
    fn value(element: impl Into<String>, reason: impl ToString) -> Self {
        Self::Value { element: element.into(), reason: reason.to_string() }
    }
}

type Result<T> = core::result::Result<T, TomlError>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Configuration, DataSetSource};
    use crate::publisher_id::PublisherId;

    /// Methods of a server, and Actions of an application.
    const ACTIONS: &str = r#"
[[data-set]]
name = "boiler"
request = [{ name = "setpoint", type = "Double" }]
fields = [{ name = "before", type = "Double" }, { name = "note", type = "String", max-length = 20 }]
actions = [
    { id = 1, name = "boiler 1", object = "ns=2;s=Boiler1", method = "ns=2;s=Heat" },
    { id = 2, description = "the other one", object = "ns=2;s=Boiler2", method = "ns=2;s=Heat" },
]

[[data-set]]
name = "own"
actions = [{ id = 1 }]

[[connection]]
name = "udp"
publisher-id = { uint16 = 7 }
url = "opc.udp://239.0.0.1:4840"

[[connection.writer-group]]
name = "actions"
id = 1
interval = 50.0
writers = [{ name = "boiler", id = 1, data-set = "boiler", field-content = 0 }]
"#;

    #[test]
    fn actions_in_text() {
        let configuration = from_toml(ACTIONS).unwrap();
        assert_eq!(super::super::validate(&configuration), []);
        let DataSetSource::ActionMethods(of) = &configuration.data_sets[0].source else { panic!() };
        assert_eq!((of.action_targets.len(), of.action_methods.len()), (2, 2));
        assert_eq!(of.action_methods[1].object_id, "ns=2;s=Boiler2".parse().unwrap());
        assert_eq!(of.request_data_set_meta_data.fields.len(), 1);
        assert_eq!(of.request_data_set_meta_data.name, configuration.data_sets[0].meta_data.name);
        assert!(matches!(configuration.data_sets[1].source, DataSetSource::Actions(_)));
        let text = to_toml(&configuration).unwrap();
        assert_eq!(from_toml(&text).unwrap(), configuration, "{text}");
    }

    const TEXT: &str = r#"
key-services = ["opc.tcp://sks:4840"]

[[security-group]]
id = "plant"
key-lifetime = 3600000.0
policy = "PubSub-Aes256-CTR"
future-keys = 5

[[data-set]]
name = "plant"
fields = [
    { name = "temperature", type = "Float", node = "ns=2;s=T", sampling = 10.0 },
    { name = "state", type = "String", max-length = 16, node = "ns=2;s=S", promoted = true },
]

[[connection]]
name = "udp"
publisher-id = { uint16 = 2234 }
url = "opc.udp://239.0.0.1:4840"
announce-every = 5

[[connection.writer-group]]
name = "fast"
id = 1
interval = 10.0
layout = "periodic-fixed"
security = { mode = "SignAndEncrypt", group = "plant" }
publishing-offsets = [1.0, 2.0]
repeat = 2
repeat-delay = 3.0
writers = [{ name = "plant", id = 1, data-set = "plant", configured-size = 100 }]

[[connection]]
name = "mqtt"
publisher-id = { string = "p" }
url = "mqtt://localhost:1883"

[[connection.writer-group]]
name = "json"
interval = 1000.0
layout = "json"
writers = [{ name = "plant", id = 1, data-set = "plant", metadata-interval = 5000.0 }]

[[connection.reader-group]]
name = "in"
readers = [
    { name = "r", publisher-id = { byte = 7 }, writer-id = 3, timeout = 500.0, layout = "json" },
    { name = "s", writer-id = 4, fields = [{ name = "x", type = "Int32", node = "ns=1;i=5" }] },
]
"#;

    #[test]
    fn text_to_configuration_and_back() {
        let configuration = from_toml(TEXT).unwrap();
        assert_eq!(super::super::validate(&configuration), []);
        assert_eq!(configuration.connections[0].publisher_id, Some(PublisherId::UInt16(2234)));
        assert_eq!(configuration.connections[0].announces_every(), 5);
        assert_eq!(configuration.connections[1].transport_profile_uri, super::super::TRANSPORT_MQTT_JSON);
        let text = to_toml(&configuration).unwrap();
        assert_eq!(from_toml(&text).unwrap(), configuration);
        let schema = Configuration::from_schema(&configuration.to_schema()).unwrap();
        assert_eq!(schema, configuration);
    }

    /// The configuration that a publisher writes for its subscribers.
    #[test]
    fn the_other_side_of_a_publisher_in_text() {
        let mut publisher = from_toml(TEXT).unwrap();
        let group = &mut publisher.connections[0].writer_groups[0];
        group.writers[0].key_frame_count = 7;
        let mut dynamic = super::super::WriterGroup::dynamic("slow", 2, 500.0);
        let mut writer = super::super::DataSetWriter::dynamic("w", 2, "loose");
        writer.field_content_mask = taktwerk_schema::DataSetFieldContentMask::STATUS_CODE;
        dynamic.writers.push(writer);
        publisher.connections[0].writer_groups.push(dynamic);
        let mut loose = publisher.data_sets[0].clone();
        loose.name = "loose".to_owned();
        loose.meta_data.name = "loose".into();
        loose.meta_data.fields[0].data_type = taktwerk_types::NodeId::numeric(0, 290);
        loose.meta_data.fields[1].value_rank = -3;
        publisher.data_sets.push(loose);
        let theirs = Configuration::subscriber_of(&publisher);
        assert_eq!(super::super::validate(&theirs), []);
        let text = to_toml(&theirs).unwrap();
        assert_eq!(from_toml(&text).unwrap(), theirs, "{text}");
    }

    #[test]
    fn mistakes_are_told() {
        for (text, expected) in [
            ("bogus = 1", "unknown field `bogus`"),
            (
                "[[data-set]]\nname = \"d\"\nactions = [{ id = 1, method = \"i=1\" }]",
                "give each action an object and a method",
            ),
            (
                "[[data-set]]\nname = \"d\"\nrequest = [{ name = \"x\", type = \"Byte\" }]",
                "request is for actions",
            ),
            ("[[data-set]]\nname = \"d\"\nfields = [{ name = \"x\", type = \"Flaot\" }]", "Flaot"),
            ("[[security-group]]\nid = \"g\"\nkey-lifetime = 1.0\npolicy = \"None\"", "PubSub-Aes128-CTR"),
            (
                "[[data-set]]\nname = \"d\"\nfields = [{ name = \"x\", type = \"Byte\", node = \"x\" }]",
                "not a NodeId",
            ),
            (
                "[[connection]]\nname = \"m\"\nurl = \"mqtt+json://b\"\n[[connection.writer-group]]\nname = \"g\"\n\
                 interval = 1.0\nlayout = \"dynamic\"",
                "the URL says JSON",
            ),
            (
                "[[connection]]\nname = \"m\"\nurl = \"opc.udp://b\"\n[[connection.writer-group]]\nname = \"g\"\n\
                 interval = 1.0\nlayout = \"json\"",
                "JSON is for brokers",
            ),
            (
                "[[connection]]\nname = \"m\"\nurl = \"mqtt://b\"\n[[connection.reader-group]]\nname = \"g\"\n\
                 readers = [{ name = \"a\", layout = \"json\" }, { name = \"b\", layout = \"periodic-fixed\" }]",
                "give it a connection of its own",
            ),
            (
                "[[connection]]\nname = \"m\"\nurl = \"mqtt://u@b\"\npassword-file = \"x\"",
                "files are not read here",
            ),
            (
                "[[connection]]\nname = \"m\"\nurl = \"mqtt://b\"\nannounce-every = 1",
                "a broker retains what was announced",
            ),
            (
                "[[connection]]\nname = \"m\"\nurl = \"mqtt://b\"\n[[connection.writer-group]]\nname = \"g\"\n\
                 interval = 1.0\nrepeat = 1",
                "repeat is for datagrams",
            ),
            (
                "[[connection]]\nname = \"m\"\nurl = \"opc.udp://b\"\n[[connection.writer-group]]\nname = \"g\"\n\
                 interval = 1.0\nwriters = [{ name = \"w\", id = 1, metadata-interval = 1.0 }]",
                "metadata-interval is for brokers",
            ),
        ] {
            let error = from_toml(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    /// The URL determines the mapping; nothing else has to repeat it.
    #[test]
    fn a_url_that_says_json_makes_everything_json() {
        let text = r#"
[[connection]]
name = "mqtt"
publisher-id = { uint16 = 7 }
url = "mqtt+json://127.0.0.1"
[[connection.writer-group]]
name = "v"
id = 1
interval = 200.0
writers = [{ name = "w", id = 1 }]
[[connection.reader-group]]
name = "in"
readers = [{ name = "r", writer-id = 4 }]
"#;
        let configuration = from_toml(text).unwrap();
        assert_eq!(super::super::validate(&configuration), []);
        let connection = &configuration.connections[0];
        assert_eq!(connection.transport_profile_uri, super::super::TRANSPORT_MQTT_JSON);
        let group = &connection.writer_groups[0];
        assert!(matches!(group.message, super::super::WriterGroupMessage::Json(_)));
        assert!(matches!(group.writers[0].message, super::super::DataSetWriterMessage::Json(_)));
        let reader = &connection.reader_groups[0].readers[0];
        assert!(matches!(reader.message, super::super::DataSetReaderMessage::Json(_)));
        let again = to_toml(&configuration).unwrap();
        assert_eq!(from_toml(&again).unwrap(), configuration, "{again}");
        // A configuration from the binary file or from a program.
        let mut mixed = configuration;
        mixed.connections[0].writer_groups[0].message = super::super::WriterGroupMessage::default();
        let problems = format!("{:?}", super::super::validate(&mixed));
        assert!(problems.contains("the connection is for JSON"), "{problems}");
    }

    #[test]
    fn passwords_from_files() {
        let text = |url: &str| {
            format!("[[connection]]\nname = \"m\"\nurl = \"{url}\"\npassword-file = \"broker.password\"\n")
        };
        let read = |path: &str| match path {
            "broker.password" => Ok("top:secret\nmore".to_owned()),
            _ => Err("no such file".to_owned()),
        };
        let configuration = from_toml_with(&text("mqtts://me@broker:1"), read).unwrap();
        assert_eq!(configuration.connections[0].url, "mqtts://me:top:secret@broker:1");
        for (url, expected) in
            [("mqtts://broker", "names no user"), ("mqtts://me:x@broker", "has a password")]
        {
            let error = from_toml_with(&text(url), read).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let missing = |_: &str| Err("cannot read it".to_owned());
        let error = from_toml_with(&text("mqtts://me@broker"), missing).unwrap_err().to_string();
        assert!(error.contains("cannot read it"), "{error}");
    }

    #[test]
    fn inexpressible_configurations_are_refused() {
        let mut configuration = from_toml(TEXT).unwrap();
        configuration.connections[0].properties.push(Default::default());
        assert_eq!(to_toml(&configuration), Err(TomlError::NotExpressible));
    }
}
