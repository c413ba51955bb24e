//! Versions of a changed configuration (Part 14 §6.2.3.2.6, §6.3.1.1.2, §9.1.3.2).

use super::{Configuration, DataSetWriterMessage, PublishedDataSet, WriterGroup, WriterGroupMessage};
use taktwerk_schema::{ConfigurationVersionDataType, DataSetMetaDataType};
use taktwerk_types::UtcTime;

/// 2000-01-01, the start of VersionTime, in ticks of UtcTime.
const EPOCH: i64 = 125_911_584_000_000_000;
const TICKS_PER_SECOND: i64 = 10_000_000;

/// A time as VersionTime: seconds since the beginning of 2000 (Part 4 §7.43). Never 0, which means no version.
#[must_use]
pub fn version_time(time: UtcTime) -> u32 {
    let seconds = time.ticks().saturating_sub(EPOCH).max(0) / TICKS_PER_SECOND;
    u32::try_from(seconds).unwrap_or(u32::MAX).max(1)
}

/// The version of metadata after a change: a new MajorVersion if subscribers cannot use their metadata any more,
/// otherwise a new MinorVersion if fields were added at the end.
#[must_use]
pub fn next_version(
    old: &DataSetMetaDataType,
    new: &DataSetMetaDataType,
    time: u32,
) -> ConfigurationVersionDataType {
    let before = &old.configuration_version;
    let time = time.max(before.minor_version.saturating_add(1)).max(before.major_version.saturating_add(1));
    let major = ConfigurationVersionDataType { major_version: time, minor_version: time };
    let minor = ConfigurationVersionDataType { major_version: before.major_version, minor_version: time };
    // Everything except fields and version.
    let rest = |meta_data: &DataSetMetaDataType| DataSetMetaDataType {
        fields: Vec::new(),
        configuration_version: ConfigurationVersionDataType::default(),
        description: Default::default(),
        name: Default::default(),
        ..meta_data.clone()
    };
    let is_extended = new.fields.get(..old.fields.len()).is_some_and(|fields| fields == old.fields);
    if rest(old) != rest(new) || !is_extended {
        return major;
    }
    let is_same = new.fields.len() == old.fields.len()
        && (&new.name, &new.description) == (&old.name, &old.description);
    if is_same { before.clone() } else { minor }
}

/// Gives everything in `new` that differs from `old` a new version, and the configuration itself.
pub fn touch(old: &Configuration, new: &mut Configuration, time: u32) {
    let time = time.max(old.configuration_version.saturating_add(1));
    new.configuration_version = time;
    for data_set in &mut new.data_sets {
        let before = old.data_set(&data_set.name);
        let version = match before {
            Some(before) => next_version(&before.meta_data, &data_set.meta_data, time),
            None if data_set.meta_data.configuration_version.major_version != 0 => continue,
            None => ConfigurationVersionDataType { major_version: time, minor_version: time },
        };
        data_set.meta_data.configuration_version = version;
    }
    let data_sets = &new.data_sets;
    for connection in &mut new.connections {
        let Some(before) = old.connection(&connection.name) else { continue };
        for group in &mut connection.writer_groups {
            let Some(before) = before.writer_group(&group.name) else { continue };
            let is_changed = layout(before, &old.data_sets) != layout(group, data_sets);
            if let (WriterGroupMessage::Uadp(was), WriterGroupMessage::Uadp(is)) =
                (&before.message, &mut group.message)
                && is_changed
                && is.group_version != 0
                && is.group_version == was.group_version
            {
                is.group_version = time.max(was.group_version.saturating_add(1));
            }
        }
    }
}

/// The properties that the GroupVersion covers: with the same version, messages have the same layout.
#[derive(Debug, PartialEq)]
struct Layout {
    network_message: u32,
    writers: Vec<(u16, u32, u32, u16, u16, u32)>,
}

fn layout(group: &WriterGroup, data_sets: &[PublishedDataSet]) -> Layout {
    let network_message = match &group.message {
        WriterGroupMessage::Uadp(uadp) => uadp.network_message_content_mask.bits(),
        _ => 0,
    };
    let writers = group.writers.iter().map(|writer| {
        let data_set = data_sets.iter().find(|set| set.name == writer.data_set_name);
        let minor = data_set.map_or(0, |set| set.meta_data.configuration_version.minor_version);
        let fields = writer.field_content_mask.bits();
        match &writer.message {
            DataSetWriterMessage::Uadp(uadp) => (
                writer.data_set_writer_id,
                fields,
                uadp.data_set_message_content_mask.bits(),
                uadp.data_set_offset,
                uadp.configured_size,
                minor,
            ),
            _ => (writer.data_set_writer_id, fields, 0, 0, 0, minor),
        }
    });
    Layout { network_message, writers: writers.collect() }
}

#[cfg(test)]
mod tests {
    use super::super::build::field;
    use super::super::{Connection, DataSetWriter};
    use super::*;
    use crate::PublisherId;
    use taktwerk_types::BuiltInType;

    fn version(major_version: u32, minor_version: u32) -> ConfigurationVersionDataType {
        ConfigurationVersionDataType { major_version, minor_version }
    }

    #[test]
    fn version_time_counts_seconds_from_2000() {
        let at = |year, second| version_time(UtcTime::from_civil(year, 1, 1, 0, 0, second).unwrap());
        assert_eq!((at(2000, 7), at(2001, 0)), (7, 366 * 86_400));
        assert_eq!((at(1999, 0), at(2000, 0)), (1, 1), "0 is no version");
    }

    #[test]
    fn only_breaking_changes_are_major() {
        let (x, y) = (field("x", BuiltInType::Float), field("y", BuiltInType::Int32));
        let old = PublishedDataSet::new("d", vec![x.clone()]).meta_data;
        let with = |fields| DataSetMetaDataType { fields, ..old.clone() };
        assert_eq!(next_version(&old, &old, 50), version(1, 1));
        assert_eq!(next_version(&old, &with(vec![x.clone(), y.clone()]), 50), version(1, 50));
        for fields in [vec![], vec![y.clone()], vec![y, x]] {
            assert_eq!(next_version(&old, &with(fields), 50), version(50, 50));
        }
        let mut other = old.clone();
        other.namespaces.push("urn:other".into());
        assert_eq!(next_version(&old, &other, 50), version(50, 50));
        other = old.clone();
        other.description = "what it is".into();
        assert_eq!(next_version(&old, &other, 0), version(1, 2), "never back, whatever the clock says");
    }

    #[test]
    fn a_group_whose_messages_change_has_another_version() {
        let mut group = WriterGroup::periodic_fixed("g", 1, 10.0);
        if let WriterGroupMessage::Uadp(uadp) = &mut group.message {
            uadp.group_version = 3;
        }
        group.writers.push(DataSetWriter::periodic_fixed("w", 1, "d"));
        let mut connection = Connection::new("c", Some(PublisherId::Byte(1)), "opc.udp://239.0.0.1:4840");
        connection.writer_groups.push(group);
        let old = Configuration {
            data_sets: vec![PublishedDataSet::new("d", vec![field("x", BuiltInType::Float)])],
            connections: vec![connection],
            ..Configuration::default()
        };
        let group_version =
            |configuration: &Configuration| match &configuration.connections[0].writer_groups[0].message {
                WriterGroupMessage::Uadp(uadp) => uadp.group_version,
                _ => 0,
            };
        let mut new = old.clone();
        new.connections[0].writer_groups[0].publishing_interval = 20.0;
        touch(&old, &mut new, 50);
        assert_eq!((group_version(&new), new.configuration_version), (3, 50));
        // An additional field gives the data set a new MinorVersion and so another layout.
        let mut newer = new.clone();
        newer.data_sets[0].meta_data.fields.push(field("y", BuiltInType::Float));
        touch(&new, &mut newer, 40);
        assert_eq!((group_version(&newer), newer.configuration_version), (51, 51));
        assert_eq!(newer.data_sets[0].meta_data.configuration_version, version(1, 51));
    }
}
