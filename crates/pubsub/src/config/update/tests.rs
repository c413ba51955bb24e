use super::super::build::field;
use super::super::version::touch;
use super::super::{DataSetReader, DataSetWriter, ReaderGroup, WriterGroup};
use super::*;
use taktwerk_schema::PubSubConfigurationRefDataType;
use taktwerk_types::BuiltInType;

const ADD: Mask = Mask::ELEMENT_ADD;
const MODIFY: Mask = Mask::ELEMENT_MODIFY;
const REMOVE: Mask = Mask::ELEMENT_REMOVE;

fn current() -> Configuration {
    let mut group = WriterGroup::periodic_fixed("fast", 1, 10.0);
    group.writers.push(DataSetWriter::periodic_fixed("w", 1, "d"));
    let mut connection = Connection::new("udp", Some(PublisherId::UInt16(1)), "opc.udp://239.0.0.1:4840");
    connection.writer_groups.push(group);
    Configuration {
        enabled: true,
        data_sets: vec![PublishedDataSet::new("d", vec![field("x", BuiltInType::Float)])],
        connections: vec![connection],
        ..Configuration::default()
    }
}

fn reference(mask: Mask, connection: u16, group: u16, element: u16) -> PubSubConfigurationRefDataType {
    PubSubConfigurationRefDataType {
        configuration_mask: mask,
        element_index: element,
        connection_index: connection,
        group_index: group,
    }
}

fn run(
    current: &Configuration,
    written: &Configuration,
    references: &[PubSubConfigurationRefDataType],
    complete: bool,
) -> Update {
    let mut reservations = Reservations::default();
    reservations.reserve(&NodeId::numeric(1, 99), current, 1, 1).unwrap();
    let context = Context {
        session: &NodeId::numeric(1, 1),
        reservations: &reservations,
        default_publisher_id: &|_| PublisherId::UInt64(77),
        permits_security: false,
    };
    update(current, written, references, complete, &context)
}

/// A configuration to add, with names and ids left to the server.
fn nameless() -> Configuration {
    let mut group = WriterGroup::dynamic("", 0, 50.0);
    group.writers.push(DataSetWriter::dynamic("", 0, "e"));
    let mut connection = Connection::new("", None, "opc.udp://239.0.0.2:4840");
    connection.writer_groups.push(group);
    connection.reader_groups.push(ReaderGroup::new("", vec![DataSetReader::default()]));
    Configuration {
        data_sets: vec![PublishedDataSet::new("e", vec![field("y", BuiltInType::Int32)])],
        connections: vec![connection],
        ..Configuration::default()
    }
}

#[test]
fn elements_are_added_with_names_and_ids_whatever_the_order_of_the_references() {
    let references = [
        reference(ADD | Mask::REFERENCE_WRITER, 0, 0, 0),
        reference(ADD | Mask::REFERENCE_READER, 0, 0, 0),
        reference(ADD | Mask::REFERENCE_WRITER_GROUP, 0, 0, 0),
        reference(ADD | Mask::REFERENCE_READER_GROUP, 0, 0, 0),
        reference(ADD | Mask::REFERENCE_CONNECTION, 0, 0, 0),
        reference(ADD | Mask::REFERENCE_PUB_DATASET, 0, 0, 0),
    ];
    let update = run(&current(), &nameless(), &references, true);
    assert_eq!(update.results, [StatusCode::GOOD; 6]);
    assert!(update.is_changed);
    assert_eq!(validate(&update.configuration), []);
    let connection = &update.configuration.connections[1];
    assert_eq!(
        (connection.name.as_str(), &connection.publisher_id),
        ("Connection1", &Some(PublisherId::UInt64(77)))
    );
    let group = &connection.writer_groups[0];
    // 0x8000 is reserved by another session.
    assert_eq!((group.name.as_str(), group.writer_group_id), ("WriterGroup1", 0x8001));
    assert_eq!(
        (group.writers[0].name.as_str(), group.writers[0].data_set_writer_id),
        ("DataSetWriter1", 0x8001)
    );
    assert_eq!(connection.reader_groups[0].readers[0].name, "DataSetReader1");
    let told: Vec<_> =
        update.values.iter().map(|value| (value.name.as_str(), value.identifier.clone())).collect();
    let expected = [
        ("DataSetWriter1", Variant::from(0x8001u16)),
        ("DataSetReader1", Variant::Empty),
        ("WriterGroup1", 0x8001u16.into()),
        ("ReaderGroup1", Variant::Empty),
        ("Connection1", 77u64.into()),
    ];
    assert_eq!(told, expected);
    assert_eq!(update.elements[5], Some(Element::DataSet { name: "e".into() }));
    for element in update.elements.iter().take(5).flatten() {
        let component = element.component(&update.configuration).unwrap();
        assert_eq!(Element::of(component, &update.configuration).as_ref(), Some(element));
    }
}

#[test]
fn parents_are_found_by_name_and_unreferenced_children_stay() {
    let mut written = current();
    written.connections[0].writer_groups[0].publishing_interval = 20.0;
    written.connections[0].writer_groups[0].writers.push(DataSetWriter::periodic_fixed("w2", 2, "d"));
    let modify = reference(MODIFY | Mask::REFERENCE_WRITER_GROUP, 0, 0, 0);
    let update = run(&current(), &written, std::slice::from_ref(&modify), true);
    let group = &update.configuration.connections[0].writer_groups[0];
    assert_eq!((group.publishing_interval, group.writers.len()), (20.0, 1), "the new writer was not named");
    let add = reference(ADD | Mask::REFERENCE_WRITER, 0, 0, 1);
    let update = run(&update.configuration, &written, &[add], true);
    assert_eq!(update.configuration.connections[0].writer_groups[0].writers.len(), 2);
    // A missing element cannot be changed.
    written.connections[0].name = "other".into();
    assert_eq!(run(&current(), &written, &[modify], true).results, [StatusCode::BAD_NOT_FOUND]);
}

#[test]
fn one_failure_discards_all_only_if_complete() {
    let mut written = nameless();
    written.connections[0].url.clear();
    let references = [
        reference(ADD | Mask::REFERENCE_PUB_DATASET, 0, 0, 0),
        reference(ADD | Mask::REFERENCE_CONNECTION, 0, 0, 0),
        reference(ADD | Mask::REFERENCE_WRITER_GROUP, 0, 0, 0),
        reference(ADD | MODIFY | Mask::REFERENCE_PUB_DATASET, 0, 0, 0),
        reference(ADD | Mask::REFERENCE_PUB_DATASET | Mask::REFERENCE_CONNECTION, 0, 0, 0),
        reference(ADD | Mask::REFERENCE_PUB_DATASET, 0, 0, 9),
        reference(ADD | Mask::REFERENCE_SECURITY_GROUP, 0, 0, 0),
    ];
    let invalid = StatusCode::BAD_INVALID_ARGUMENT;
    let expected = [
        StatusCode::GOOD,
        invalid,
        StatusCode::BAD_NOT_FOUND,
        invalid,
        invalid,
        invalid,
        StatusCode::BAD_USER_ACCESS_DENIED,
    ];
    let some = run(&current(), &written, &references, false);
    assert_eq!(some.results, expected);
    assert!(some.is_changed && some.configuration.data_sets.len() == 2);
    let none = run(&current(), &written, &references, true);
    assert_eq!((none.configuration, none.is_changed, none.results), (current(), false, expected.to_vec()));
    // A writer without its data set, next to a valid one.
    let mut written = current();
    written.connections[0].writer_groups[0].writers[0].data_set_name = "none".into();
    written.connections[0].writer_groups[0].writers[0].name = "w2".into();
    written.connections[0].writer_groups[0].writers[0].data_set_writer_id = 2;
    written.data_sets[0].name = "e".into();
    let references = [
        reference(ADD | Mask::REFERENCE_WRITER, 0, 0, 0),
        reference(ADD | Mask::REFERENCE_PUB_DATASET, 0, 0, 0),
    ];
    assert_eq!(run(&current(), &written, &references, false).results, [invalid, StatusCode::GOOD]);
}

#[test]
fn removals_come_first_and_take_writers_along() {
    let mut written = current();
    written.data_sets[0].meta_data.fields.push(field("z", BuiltInType::Double));
    let remove = reference(REMOVE | Mask::REFERENCE_PUB_DATASET, 0, 0, 0);
    let gone = run(&current(), &written, std::slice::from_ref(&remove), true);
    assert!(gone.configuration.data_sets.is_empty());
    assert!(gone.configuration.connections[0].writer_groups[0].writers.is_empty());
    // Its writers stay when it is replaced.
    let add = reference(ADD | Mask::REFERENCE_PUB_DATASET, 0, 0, 0);
    let mut replaced = run(&current(), &written, &[add, remove], true);
    assert_eq!(replaced.results, [StatusCode::GOOD; 2]);
    assert_eq!(replaced.configuration.connections[0].writer_groups[0].writers.len(), 1);
    touch(&current(), &mut replaced.configuration, 900);
    assert_eq!(replaced.configuration.data_sets[0].meta_data.configuration_version.minor_version, 900);
    assert_eq!(replaced.configuration.data_sets[0].meta_data.configuration_version.major_version, 1);
}

#[test]
fn a_matching_parent_is_used_or_added() {
    let mut written = nameless();
    written.connections[0].url = "opc.udp://239.0.0.1:4840".into();
    let only = reference(Mask::ELEMENT_MATCH | Mask::REFERENCE_CONNECTION, 0, 0, 0);
    let or_add = reference(ADD | Mask::ELEMENT_MATCH | Mask::REFERENCE_CONNECTION, 0, 0, 0);
    let group = reference(ADD | Mask::REFERENCE_WRITER_GROUP, 0, 0, 0);
    let update = run(&current(), &written, &[only.clone(), group.clone()], true);
    assert_eq!(update.results, [StatusCode::GOOD; 2]);
    assert_eq!(update.values[0].name.as_str(), "udp");
    assert_eq!(update.configuration.connections[0].writer_groups.len(), 2);
    written.connections[0].url = "opc.udp://239.0.0.9:4840".into();
    assert_eq!(
        run(&current(), &written, std::slice::from_ref(&only), true).results,
        [StatusCode::BAD_NO_MATCH]
    );
    let update = run(&current(), &written, &[or_add, group], true);
    assert_eq!((update.configuration.connections.len(), update.values[0].name.as_str()), (2, "Connection1"));
    // Names and ids are not compared, so they must be missing; groups with a GroupHeader cannot be shared.
    assert_eq!(run(&current(), &current(), &[only], true).results, [StatusCode::BAD_INVALID_ARGUMENT]);
    let match_group = reference(Mask::ELEMENT_MATCH | Mask::REFERENCE_WRITER_GROUP, 0, 0, 0);
    let mut written = current();
    written.connections[0].writer_groups[0].name.clear();
    written.connections[0].writer_groups[0].writer_group_id = 0;
    assert_eq!(run(&current(), &written, &[match_group], true).results, [StatusCode::BAD_INVALID_STATE]);
}
