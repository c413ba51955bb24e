//! For any references of an update, a valid configuration stays valid or unchanged.

use proptest::collection::vec;
use proptest::prelude::*;
use taktwerk_pubsub::PublisherId;
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::reserve::Reservations;
use taktwerk_pubsub::config::update::{Context, Update, update};
use taktwerk_pubsub::config::version::touch;
use taktwerk_pubsub::config::{
    Configuration, Connection, DataSetReader, DataSetWriter, Element, PublishedDataSet, ReaderGroup,
    WriterGroup, binary_file, validate,
};
use taktwerk_schema::{
    PubSubConfigurationRefDataType, PubSubConfigurationRefMask as Mask, SecurityGroupDataType,
    StandaloneSubscribedDataSetDataType,
};
use taktwerk_types::{BuiltInType, NodeId, StatusCode};

/// Few names and ids, so that they collide; the first is empty.
const NAMES: [&str; 4] = ["", "a", "b", "WriterGroup1"];
const IDS: [u16; 4] = [0, 1, 0x8000, 0x8001];
const URLS: [&str; 3] = ["opc.udp://239.0.0.1:4840", "opc.udp://239.0.0.2:4840", ""];

fn name() -> impl Strategy<Value = String> {
    proptest::sample::select(&NAMES[..]).prop_map(str::to_owned)
}

fn id() -> impl Strategy<Value = u16> {
    proptest::sample::select(&IDS[..])
}

fn writer() -> impl Strategy<Value = DataSetWriter> {
    (name(), id(), name(), any::<bool>()).prop_map(|(name, id, data_set, is_fixed)| {
        let make = if is_fixed { DataSetWriter::periodic_fixed } else { DataSetWriter::dynamic };
        make(&name, id, &data_set)
    })
}

fn writer_group() -> impl Strategy<Value = WriterGroup> {
    let interval = prop_oneof![9 => Just(10.0), 1 => Just(-1.0)];
    (name(), id(), interval, any::<bool>(), vec(writer(), 0..3)).prop_map(
        |(name, id, interval, is_fixed, writers)| {
            let make = if is_fixed { WriterGroup::periodic_fixed } else { WriterGroup::dynamic };
            WriterGroup { writers, ..make(&name, id, interval) }
        },
    )
}

fn reader_group() -> impl Strategy<Value = ReaderGroup> {
    let reader = name().prop_map(|name| DataSetReader { name, ..DataSetReader::default() });
    (name(), vec(reader, 0..3)).prop_map(|(name, readers)| ReaderGroup::new(&name, readers))
}

fn connection() -> impl Strategy<Value = Connection> {
    let publisher_id = proptest::option::of((1u16..3).prop_map(PublisherId::UInt16));
    let url = proptest::sample::select(&URLS[..]);
    (name(), publisher_id, url, vec(writer_group(), 0..3), vec(reader_group(), 0..2)).prop_map(
        |(name, publisher_id, url, writer_groups, reader_groups)| Connection {
            writer_groups,
            reader_groups,
            ..Connection::new(&name, publisher_id, url)
        },
    )
}

fn configuration() -> impl Strategy<Value = Configuration> {
    let data_set = (name(), vec(proptest::sample::select(&["x", "y", ""][..]), 0..3));
    let data_set = data_set.prop_map(|(name, fields)| {
        PublishedDataSet::new(&name, fields.iter().map(|name| field(name, BuiltInType::Float)).collect())
    });
    let subscribed = name().prop_map(|name| StandaloneSubscribedDataSetDataType {
        name: name.into(),
        ..StandaloneSubscribedDataSetDataType::default()
    });
    let security = (name(), any::<bool>()).prop_map(|(name, is_known)| SecurityGroupDataType {
        name: name.into(),
        key_lifetime: 3_600_000.0,
        security_policy_uri: if is_known {
            "http://opcfoundation.org/UA/SecurityPolicy#PubSub-Aes256-CTR".into()
        } else {
            "".into()
        },
        ..SecurityGroupDataType::default()
    });
    (vec(data_set, 0..3), vec(connection(), 0..3), vec(subscribed, 0..3), vec(security, 0..3)).prop_map(
        |(data_sets, connections, subscribed_data_sets, security_groups)| Configuration {
            enabled: true,
            data_sets,
            connections,
            subscribed_data_sets,
            security_groups,
            ..Configuration::default()
        },
    )
}

fn reference() -> impl Strategy<Value = PubSubConfigurationRefDataType> {
    let operations = [
        Mask::ELEMENT_ADD,
        Mask::ELEMENT_ADD,
        Mask::ELEMENT_MATCH,
        Mask::ELEMENT_ADD | Mask::ELEMENT_MATCH,
        Mask::ELEMENT_MODIFY,
        Mask::ELEMENT_REMOVE,
        Mask::default(),
    ];
    let subjects = [
        Mask::REFERENCE_PUB_DATASET,
        Mask::REFERENCE_SUB_DATASET,
        Mask::REFERENCE_SECURITY_GROUP,
        Mask::REFERENCE_CONNECTION,
        Mask::REFERENCE_WRITER_GROUP,
        Mask::REFERENCE_READER_GROUP,
        Mask::REFERENCE_WRITER,
        Mask::REFERENCE_READER,
        Mask::REFERENCE_PUSH_TARGET,
    ];
    let (operations, subjects) =
        (proptest::sample::select(operations.to_vec()), proptest::sample::select(subjects.to_vec()));
    (operations, subjects, 0u16..3, 0u16..3, 0u16..3).prop_map(
        |(operation, subject, connection_index, group_index, element_index)| PubSubConfigurationRefDataType {
            configuration_mask: operation | subject,
            element_index,
            connection_index,
            group_index,
        },
    )
}

/// Invariants of every update.
fn check(
    before: &Configuration,
    references: &[PubSubConfigurationRefDataType],
    complete: bool,
    update: &Update,
) -> Result<(), TestCaseError> {
    let after = &update.configuration;
    prop_assert_eq!(update.results.len(), references.len());
    prop_assert_eq!(update.elements.len(), references.len());
    prop_assert_eq!(validate(after), []);
    if !update.is_changed || (complete && update.results.iter().any(|status| status.is_bad())) {
        prop_assert_eq!(after, before);
        prop_assert!(!update.is_changed && update.values.is_empty());
        prop_assert!(update.elements.iter().all(Option::is_none));
    }
    for (element, status) in update.elements.iter().zip(&update.results) {
        let Some(element) = element else { continue };
        prop_assert!(!status.is_bad());
        prop_assert!(!element.name().is_empty());
        let is_there = match element {
            Element::DataSet { name } => after.data_set(name).is_some(),
            Element::SubscribedDataSet { name } => {
                after.subscribed_data_sets.iter().any(|set| set.name.as_str() == name)
            }
            Element::SecurityGroup { name } => {
                after.security_groups.iter().any(|group| group.name.as_str() == name)
            }
            _ => element.component(after).is_some(),
        };
        prop_assert!(is_there, "{:?} is not there", element);
    }
    for value in &update.values {
        let at = references.iter().position(|reference| *reference == value.configuration_element);
        prop_assert!(at.is_some() && !value.name.is_empty());
    }
    // Ambiguous elements were refused.
    let mut names: Vec<_> = after.subscribed_data_sets.iter().map(|set| set.name.as_str()).collect();
    names.sort_unstable();
    prop_assert!(names.windows(2).all(|two| two[0] != two[1]));
    let written = binary_file::write(after);
    let read = binary_file::read(&written);
    prop_assert_eq!(read.as_ref(), Ok(after));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_valid_configuration_stays_valid(
        updates in vec((configuration(), vec(reference(), 1..12), any::<bool>()), 1..5),
        permits_security in any::<bool>(),
    ) {
        let mut current = Configuration { enabled: true, ..Configuration::default() };
        let mut reservations = Reservations::default();
        reservations.reserve(&NodeId::numeric(1, 99), &current, 1, 1).unwrap();
        for (written, references, complete) in updates {
            let context = Context {
                session: &NodeId::numeric(1, 1),
                reservations: &reservations,
                default_publisher_id: &|_| PublisherId::UInt64(77),
                permits_security,
            };
            let mut update = update(&current, &written, &references, complete, &context);
            check(&current, &references, complete, &update)?;
            let is_security = |reference: &PubSubConfigurationRefDataType| {
                reference.configuration_mask.contains(Mask::REFERENCE_SECURITY_GROUP)
            };
            // Keys need permission.
            for (reference, status) in references.iter().zip(&update.results) {
                prop_assert!(permits_security || !is_security(reference) || *status != StatusCode::GOOD);
            }
            // Ids reserved by others are not used.
            let groups = update.configuration.connections.iter().flat_map(|one| &one.writer_groups);
            prop_assert!(groups.clone().all(|group| group.writer_group_id != 0x8000));
            let mut writers = groups.flat_map(|group| &group.writers);
            prop_assert!(writers.all(|writer| writer.data_set_writer_id != 0x8000));
            touch(&current, &mut update.configuration, 900);
            prop_assert!(update.configuration.configuration_version >= current.configuration_version);
            current = update.configuration;
        }
    }
}
