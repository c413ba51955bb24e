//! The data set of a destination: its fields in the order of their first values, and their last values for key frames.

use super::super::block::Record;
use std::collections::HashMap;
use std::sync::Arc;
use taktwerk::pubsub::config::version::version_time;
use taktwerk_schema::{ConfigurationVersionDataType, DataSetMetaDataType, FieldMetaData};
use taktwerk_types::{BuiltInType, Guid, NodeId, StatusCode, UtcTime, Variant};

/// Most fields of a data set: field indexes have 16 bits.
const FIELDS_MAX: usize = u16::MAX as usize;

/// The last sent value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Last {
    pub(super) value: Variant,
    pub(super) status: StatusCode,
    pub(super) time: UtcTime,
}

impl Last {
    fn of(record: &Record) -> Self {
        Self { value: record.value.clone(), status: record.status, time: record.time }
    }
}

/// A field.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) tag: Arc<str>,
    /// The type of its values, and whether they are arrays; `None` until a value with a type has arrived.
    kind: Option<(BuiltInType, bool)>,
    pub(super) last: Option<Last>,
}

/// The fields, and the state of announcements.
#[derive(Debug, Default)]
pub(super) struct DataSet {
    pub(super) fields: Vec<Field>,
    index: HashMap<Arc<str>, u16>,
    /// The version. Larger than any version of an earlier run.
    version: ConfigurationVersionDataType,
    is_announced: bool,
    /// The version has changed in the current batch.
    is_changed: bool,
    /// The metadata are announced in the current batch.
    is_announcing: bool,
    /// Every so many DataSetMessages one is a key frame; 0 means never.
    key_frame_count: u32,
    /// DataSetMessages since the last key frame.
    since_key_frame: u32,
    /// The state of the current batch's fields before it, restored if the batch must be sent again.
    before: Vec<(u16, Option<Last>)>,
}

impl DataSet {
    pub(super) fn new(key_frame_count: u32) -> Self {
        Self { key_frame_count, ..Self::default() }
    }

    /// Begins a batch. Reverts the changes of an unconfirmed one.
    pub(super) fn begin(&mut self) {
        while let Some((index, last)) = self.before.pop() {
            if let Some(field) = self.fields.get_mut(usize::from(index)) {
                field.last = last;
            }
        }
        (self.is_announcing, self.is_changed) = (false, false);
    }

    /// Confirms the batch.
    pub(super) fn commit(&mut self) {
        self.is_changed = false;
        self.before.clear();
        self.is_announced |= core::mem::take(&mut self.is_announcing);
    }

    /// The broker may have lost the metadata: announce them again.
    pub(super) fn forget_announcement(&mut self) {
        self.is_announced = false;
    }

    pub(super) fn is_announced(&self) -> bool {
        self.is_announced
    }

    pub(super) fn version(&self) -> ConfigurationVersionDataType {
        self.version.clone()
    }

    fn change(&mut self, is_major: bool, now: UtcTime) {
        // Nothing of a batch is sent before all its fields are known, so one version is enough. One version per field would run
        // ahead of the clock, and a later run could use the same versions for other fields.
        if !core::mem::replace(&mut self.is_changed, true) {
            self.version.minor_version = version_time(now).max(self.version.minor_version.saturating_add(1));
        }
        if is_major || self.version.major_version == 0 {
            self.version.major_version = self.version.minor_version;
        }
        self.is_announced = false;
    }

    /// The index of a record's field. A new tag appends a field; another type changes its field (Part 14 §6.2.3.2). `None` if the
    /// data set is full.
    pub(super) fn index_of(&mut self, record: &Record, now: UtcTime) -> Option<u16> {
        let kind = record.value.built_in_type().map(|kind| (kind, record.value.as_array().is_some()));
        let Some(index) = self.index.get(&record.tag).copied() else {
            if self.fields.len() >= FIELDS_MAX {
                return None;
            }
            let index = self.fields.len() as u16;
            self.fields.push(Field { tag: Arc::clone(&record.tag), kind, last: None });
            self.index.insert(Arc::clone(&record.tag), index);
            self.change(false, now);
            return Some(index);
        };
        if let Some(field) = self.fields.get_mut(usize::from(index))
            && kind.is_some()
            && field.kind != kind
        {
            field.kind = kind;
            self.change(true, now);
        }
        Some(index)
    }

    /// Records the values of the next DataSetMessage. Returns whether it is a key frame.
    pub(super) fn take(&mut self, records: &[(u16, &Record)]) -> bool {
        if self.key_frame_count == 0 {
            return false;
        }
        for (index, record) in records {
            if let Some(field) = self.fields.get_mut(usize::from(*index)) {
                self.before.push((*index, field.last.replace(Last::of(record))));
            }
        }
        self.since_key_frame += 1;
        let is_key_frame = self.since_key_frame >= self.key_frame_count;
        if is_key_frame {
            self.since_key_frame = 0;
        }
        is_key_frame
    }

    /// The metadata to announce in this batch.
    pub(super) fn announce(&mut self, name: &str) -> DataSetMetaDataType {
        self.is_announcing = true;
        let fields = self.fields.iter().enumerate().map(|(index, field)| {
            let (kind, rank) = match field.kind {
                Some((kind, is_array)) => (kind.number(), if is_array { 1 } else { -1 }),
                // Any type (BaseDataType, Any): no value has arrived yet.
                None => (BuiltInType::Variant.number(), -2),
            };
            FieldMetaData {
                name: (&*field.tag).into(),
                built_in_type: kind,
                data_type: NodeId::numeric(0, u32::from(kind)),
                value_rank: rank,
                data_set_field_id: field_id(index),
                ..FieldMetaData::default()
            }
        });
        DataSetMetaDataType {
            name: name.into(),
            fields: fields.collect(),
            configuration_version: self.version(),
            ..DataSetMetaDataType::default()
        }
    }
}

/// A field id that is equal in all versions of a run's metadata.
fn field_id(index: usize) -> Guid {
    Guid::from_bytes((index as u128 + 1).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(tag: &str, value: Variant) -> Record {
        let (time, status) = (UtcTime::from_ticks(1), StatusCode::GOOD);
        Record { number: 1, tag: tag.into(), value, status, time, received: time }
    }

    fn now(seconds: u64) -> UtcTime {
        UtcTime::from_unix(core::time::Duration::from_secs(946_684_800 + seconds))
    }

    #[test]
    fn a_new_tag_is_a_minor_change_and_another_type_a_major_one() {
        let mut set = DataSet::default();
        let version = |set: &DataSet| (set.version.major_version, set.version.minor_version);
        assert_eq!(set.index_of(&record("a", 1.5.into()), now(100)), Some(0));
        assert_eq!(version(&set), (100, 100));
        set.commit();
        assert!(!set.is_announced());
        set.announce("d");
        set.commit();
        assert!(set.is_announced());
        assert_eq!(set.index_of(&record("b", Variant::Empty), now(100)), Some(1));
        assert_eq!((version(&set), set.is_announced()), ((100, 101), false));
        set.announce("d");
        set.commit();
        // An empty value does not determine the type.
        set.index_of(&record("a", Variant::Empty), now(200));
        assert_eq!((version(&set), set.is_announced()), ((100, 101), true));
        set.index_of(&record("b", vec![true].into()), now(200));
        assert_eq!(version(&set), (200, 200));
        let meta_data = set.announce("d");
        let shown: Vec<_> = meta_data
            .fields
            .iter()
            .map(|field| (field.name.as_str(), field.built_in_type, field.value_rank))
            .collect();
        assert_eq!(shown, [("a", 11, -1), ("b", 1, 1)]);
        assert_ne!(meta_data.fields[0].data_set_field_id, meta_data.fields[1].data_set_field_id);
    }

    #[test]
    fn versions_do_not_run_ahead_of_the_clock() {
        let mut set = DataSet::default();
        set.begin();
        for number in 0..1000 {
            set.index_of(&record(&format!("t{number}"), 1.into()), now(100));
        }
        assert_eq!((set.version.major_version, set.version.minor_version), (100, 100));
        // Parts may have been sent: the next attempt has another version if there are more fields.
        set.begin();
        set.index_of(&record("another", 1.into()), now(100));
        assert_eq!((set.version.major_version, set.version.minor_version), (100, 101));
    }

    #[test]
    fn values_of_a_batch_that_was_not_confirmed_are_undone() {
        let mut set = DataSet::new(2);
        let (old, new) = (record("a", 1.into()), record("a", 2.into()));
        set.index_of(&old, now(1));
        assert!(!set.take(&[(0, &old)]));
        set.commit();
        set.begin();
        assert!(set.take(&[(0, &new)]), "every second message is a key frame");
        assert_eq!(set.fields[0].last.as_ref().unwrap().value, 2.into());
        set.begin();
        assert_eq!(set.fields[0].last.as_ref().unwrap().value, 1.into());
    }

    #[test]
    fn the_number_of_fields_is_limited_by_their_index() {
        let mut set = DataSet::default();
        for number in 0..FIELDS_MAX {
            assert_eq!(set.index_of(&record(&number.to_string(), 1.into()), now(1)), Some(number as u16));
        }
        assert_eq!(set.index_of(&record("one more", 1.into()), now(1)), None);
    }
}
