//! A source that writes in place sends the same bytes as one that is sampled.

use crate::common::{at, configuration, publisher};
use proptest::prelude::*;
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{Configuration, DataSetSource, DataSetWriter, WriterGroup};
use taktwerk_pubsub::{FieldWriter, InPlace, Now, Transmit, Values};
use taktwerk_schema::DataSetFieldContentMask;
use taktwerk_types::{BuiltInType, DataValue, StatusCode, Variant};

/// Provides the values of a cycle in one of two ways.
#[derive(Default)]
struct Source {
    values: Vec<DataValue>,
    in_place: bool,
    /// Omits the last field, which is not allowed.
    short: bool,
    sampled: usize,
    written: usize,
}

impl Values for Source {
    fn sample(&mut self, _: usize, fields: &mut [DataValue], _: Now) -> bool {
        self.sampled += 1;
        fields.clone_from_slice(&self.values);
        true
    }

    fn write(&mut self, _: usize, fields: &mut FieldWriter<'_>, _: Now) -> InPlace {
        if !self.in_place {
            return InPlace::NotOffered;
        }
        self.written += 1;
        assert_eq!(fields.remaining(), self.values.len());
        let count = self.values.len() - usize::from(self.short);
        self.values.iter().take(count).for_each(|value| fields.value(value));
        assert_eq!(fields.position(), count);
        InPlace::Written
    }
}

fn cycle(publisher: &mut taktwerk_pubsub::Publisher, now: Now, source: &mut Source) -> Vec<Vec<u8>> {
    let mut out = Transmit::new();
    publisher.poll(now, source, &mut out);
    out.iter().map(|datagram| datagram.bytes.to_vec()).collect()
}

fn value() -> impl Strategy<Value = DataValue> {
    let status = prop_oneof![
        3 => Just(None),
        1 => Just(Some(StatusCode::UNCERTAIN)),
        1 => Just(Some(StatusCode::BAD_NOT_CONNECTED)),
    ];
    let value = prop_oneof![
        3 => any::<f32>().prop_map(Variant::from),
        1 => any::<i32>().prop_map(Variant::from),
        1 => Just(Variant::Empty),
    ];
    (value, status).prop_map(|(value, status)| DataValue { status, ..DataValue::new(value) })
}

fn values() -> impl Strategy<Value = Vec<DataValue>> {
    (value(), "[a-z]{0,9}", any::<u16>())
        .prop_map(|(float, text, number)| vec![float, DataValue::new(text), DataValue::new(number)])
}

fn layouts() -> Vec<Configuration> {
    let mut with_status = configuration(WriterGroup::dynamic("g", 1, 10.0), 1, DataSetWriter::dynamic);
    with_status.connections[0].writer_groups[0].writers[0].field_content_mask =
        DataSetFieldContentMask::STATUS_CODE;
    vec![
        configuration(WriterGroup::dynamic("g", 1, 10.0), 1, DataSetWriter::dynamic),
        configuration(WriterGroup::periodic_fixed("g", 1, 10.0), 1, DataSetWriter::periodic_fixed),
        with_status,
    ]
}

proptest! {
    #[test]
    fn both_ways_send_the_same(cycles in proptest::collection::vec(values(), 1..8)) {
        for configuration in layouts() {
            let (mut one, mut two) = (publisher(configuration.clone()), publisher(configuration));
            let (mut sampled, mut written) = (Source::default(), Source { in_place: true, ..Source::default() });
            one.start(at(0).instant, at(0));
            two.start(at(0).instant, at(0));
            for (number, values) in cycles.iter().enumerate() {
                let now = at(number as u64 * 10);
                sampled.values.clone_from(values);
                written.values.clone_from(values);
                let expected = cycle(&mut one, now, &mut sampled);
                prop_assert_eq!(expected.len(), 1);
                prop_assert_eq!(cycle(&mut two, now, &mut written), expected);
            }
            // The first message has to be laid out, and all with a changed field size.
            prop_assert_eq!(written.written, cycles.len() - 1);
            prop_assert!(written.sampled >= 1);
        }
    }
}

#[test]
fn incomplete_writes_are_sampled() {
    let configuration =
        configuration(WriterGroup::periodic_fixed("g", 1, 10.0), 1, DataSetWriter::periodic_fixed);
    let mut publisher = publisher(configuration);
    let values = vec![DataValue::new(1.5f32), DataValue::new("a"), DataValue::new(7u16)];
    let mut source = Source { values, in_place: true, short: true, ..Source::default() };
    publisher.start(at(0).instant, at(0));
    for number in 0..3 {
        assert_eq!(cycle(&mut publisher, at(number * 10), &mut source).len(), 1);
    }
    assert_eq!((source.written, source.sampled), (2, 3));
}

/// Delta frames compare with the values sent last, so they are always sampled.
#[test]
fn delta_frames_are_sampled() {
    let mut configuration = configuration(WriterGroup::dynamic("g", 1, 10.0), 1, DataSetWriter::dynamic);
    configuration.connections[0].writer_groups[0].writers[0].key_frame_count = 3;
    let mut publisher = publisher(configuration);
    let values = vec![DataValue::new(1.5f32), DataValue::new("a"), DataValue::new(7u16)];
    let mut source = Source { values, in_place: true, ..Source::default() };
    publisher.start(at(0).instant, at(0));
    (0..5).for_each(|number| drop(cycle(&mut publisher, at(number * 10), &mut source)));
    assert_eq!((source.written, source.sampled), (0, 5));
}

/// Numbers of several types, in runs and alone, and one that does not fit.
struct Numbers(f32);

impl Values for Numbers {
    fn sample(&mut self, _: usize, fields: &mut [DataValue], _: Now) -> bool {
        self.put(&mut FieldWriter::values(fields));
        true
    }

    fn write(&mut self, _: usize, fields: &mut FieldWriter<'_>, _: Now) -> InPlace {
        self.put(fields);
        InPlace::Written
    }
}

impl Numbers {
    fn put(&mut self, fields: &mut FieldWriter<'_>) {
        fields.numbers([self.0, self.0 + 1.0, self.0 + 2.0]);
        fields.number(self.0 > 3.0);
        fields.numbers([1u8, 2]);
        // The first two match the fields; the third does not.
        fields.numbers([-5i64, -6, -7]);
    }
}

/// Variants of numbers, including fields that were bad before.
#[test]
fn numbers_as_variants() {
    let mut configuration = configuration(WriterGroup::dynamic("g", 1, 10.0), 1, DataSetWriter::dynamic);
    configuration.data_sets[0].meta_data.fields =
        ["a", "b", "c"].map(|name| field(name, BuiltInType::Float)).to_vec();
    let (mut one, mut two) = (publisher(configuration.clone()), publisher(configuration));
    one.start(at(0).instant, at(0));
    two.start(at(0).instant, at(0));
    let mut first = Source { values: vec![DataValue::from_status(StatusCode::BAD); 3], ..Source::default() };
    assert_eq!(cycle(&mut one, at(0), &mut first), cycle(&mut two, at(0), &mut first));
    first.values = [0.5f32, 1.5, 2.5].map(DataValue::new).to_vec();
    let expected = cycle(&mut one, at(10), &mut first);
    struct Floats;
    impl Values for Floats {
        fn sample(&mut self, _: usize, _: &mut [DataValue], _: Now) -> bool {
            panic!("nothing has another size")
        }

        fn write(&mut self, _: usize, fields: &mut FieldWriter<'_>, _: Now) -> InPlace {
            fields.numbers([0.5f32, 1.5, 2.5]);
            InPlace::Written
        }
    }
    let mut out = Transmit::new();
    two.poll(at(10), &mut Floats, &mut out);
    assert_eq!(out.iter().map(|datagram| datagram.bytes.to_vec()).collect::<Vec<_>>(), expected);
}

#[test]
fn numbers_are_at_their_offsets() {
    let kinds = [
        BuiltInType::Float,
        BuiltInType::Float,
        BuiltInType::Float,
        BuiltInType::Boolean,
        BuiltInType::Byte,
        BuiltInType::Byte,
        BuiltInType::Int64,
        BuiltInType::Int64,
        BuiltInType::UInt16,
    ];
    let mut configuration =
        configuration(WriterGroup::periodic_fixed("g", 1, 10.0), 1, DataSetWriter::periodic_fixed);
    configuration.data_sets[0].meta_data.fields =
        kinds.iter().enumerate().map(|(at, kind)| field(&format!("f{at}"), *kind)).collect();
    configuration.data_sets[0].source = DataSetSource::Custom { cyclic: true };
    let mut publisher = publisher(configuration);
    publisher.start(at(0).instant, at(0));
    let mut source = Numbers(0.5);
    let mut last = Vec::new();
    for number in 0..3u8 {
        source.0 = 1.5 * f32::from(number + 1);
        let mut out = Transmit::new();
        publisher.poll(at(u64::from(number) * 10), &mut source, &mut out);
        last = out.iter().map(|datagram| datagram.bytes.to_vec()).next().unwrap();
    }
    let mut expected = Vec::new();
    [4.5f32, 5.5, 6.5].iter().for_each(|value| expected.extend_from_slice(&value.to_le_bytes()));
    expected.extend_from_slice(&[1, 1, 2]);
    [-5i64, -6].iter().for_each(|value| expected.extend_from_slice(&value.to_le_bytes()));
    expected.extend_from_slice(&[0, 0]);
    assert!(last.ends_with(&expected), "{last:?} does not end with {expected:?}");
}
