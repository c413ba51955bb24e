//! Publishes Variables of one server, and receives them into Variables of another.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use taktwerk::pubsub::config::{Configuration, DataSetReaderMessage, SubscribedDataSet, toml};
use taktwerk::pubsub::{DataSet, Publisher, Subscriber, named};
use taktwerk::schema::{FieldTargetDataType, OverrideValueHandling, TargetVariablesDataType};
use taktwerk::{RunningServer, Server, StatusCode, UtcTime, Variable, Variant};

fn server() -> RunningServer {
    Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap().spawn().unwrap()
}

/// Separate ports for concurrent tests.
fn url(number: u32) -> String {
    format!("opc.udp://239.192.7.{number}:{}", 41_000 + std::process::id() % 20_000)
}

fn until(what: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

#[test]
fn numbers_that_an_application_writes_into_the_message() {
    use taktwerk::pubsub::config::build::field;
    let fields = ["a", "b", "c"].map(|name| field(name, taktwerk::types::BuiltInType::Float));
    let mut cycle = 0u16;
    let written = DataSet::from_writer("numbers", fields, move |fields| {
        cycle = cycle.wrapping_add(1);
        fields.numbers([f32::from(cycle), 2.0, 3.0]);
    });
    let builder = Publisher::builder(&url(9))
        .publisher_id(78)
        .interface("lo")
        .interval(Duration::from_millis(2))
        .layout(taktwerk::pubsub::publisher::Layout::PeriodicFixed)
        .data_set(written);
    let theirs = Configuration::subscriber_of(&builder.configuration());
    let got: Arc<Mutex<Vec<Vec<Variant>>>> = Arc::default();
    let mine = Arc::clone(&got);
    let subscriber = Subscriber::of(theirs)
        .on_message(move |message| {
            let values = message.fields.iter().filter_map(|field| field.value.value.clone());
            mine.lock().unwrap().push(values.collect());
        })
        .start()
        .unwrap();
    let publisher = builder.start().unwrap();
    assert!(until(|| got.lock().unwrap().len() > 20));
    publisher.stop();
    let got = got.lock().unwrap();
    for (one, two) in got.iter().zip(&got[1..]) {
        assert_eq!(one[1..], [Variant::from(2.0f32), Variant::from(3.0f32)]);
        let (Variant::Float(one), Variant::Float(two)) = (&one[0], &two[0]) else { panic!("{one:?}") };
        assert!(two > one, "{one} {two}");
    }
    assert_eq!(subscriber.counters().malformed, 0);
}

#[test]
fn from_variables_to_variables() {
    let (source, target) = (server(), server());
    let speed = source.objects().variable("Speed", 0.0f64).add().unwrap();
    let state = source.objects().variable("State", "idle".to_owned()).add().unwrap();
    let plain: Variable<f64> = target.objects().variable("Speed", 0.0).add().unwrap();
    let held: Variable<String> = target.objects().variable("State", String::new()).add().unwrap();
    let builder = Publisher::builder(&url(1))
        .publisher_id(77)
        .interface("lo")
        .interval(Duration::from_millis(5))
        .data_set(DataSet::new("drive").variable("speed", &speed).variable("state", &state));
    let mut theirs = Configuration::subscriber_of(&builder.configuration());
    let field = |variable: &taktwerk::NodeId, handling| FieldTargetDataType {
        target_node_id: variable.clone(),
        attribute_id: 13,
        override_value_handling: handling,
        override_value: Variant::from("unknown"),
        ..FieldTargetDataType::default()
    };
    theirs.connections[0].reader_groups[0].readers[0].subscribed_data_set =
        SubscribedDataSet::TargetVariables(TargetVariablesDataType {
            target_variables: vec![
                field(plain.id(), OverrideValueHandling::DISABLED),
                field(held.id(), OverrideValueHandling::OVERRIDE_VALUE),
            ],
        });
    let error = Subscriber::of(theirs.clone()).start().unwrap_err().to_string();
    assert!(error.contains("space()"), "{error}");
    let subscriber = Subscriber::of(theirs).space(target.space()).start().unwrap();
    let publisher = builder.start().unwrap();
    speed.set(12.5);
    state.set("running".to_owned());
    assert!(until(|| plain.get() == Ok(12.5) && held.get().as_deref() == Ok("running")));
    // A bad value arrives as such, or is replaced by the configured substitute.
    speed.set_status(StatusCode::BAD_SENSOR_FAILURE);
    state.set_with("x".to_owned(), StatusCode::BAD_SENSOR_FAILURE, UtcTime::from_ticks(1));
    assert!(until(|| plain.get() == Err(StatusCode::BAD_SENSOR_FAILURE)));
    assert!(until(|| held.data_value().status() == StatusCode::GOOD_LOCAL_OVERRIDE));
    assert_eq!(held.get().unwrap(), "unknown");
    assert!(until(|| publisher.groups().iter().all(|(_, _, counters)| counters.cycles > 5)));
    // A silent publisher is detected after the reader's timeout.
    speed.set(1.0);
    assert!(until(|| plain.get() == Ok(1.0)));
    publisher.stop();
    assert!(until(|| plain.get() == Err(StatusCode::BAD_NO_COMMUNICATION)));
    assert_eq!(subscriber.counters().malformed, 0);
}

#[test]
fn a_subscriber_without_configuration_discovers_the_names() {
    let builder = Publisher::builder(&url(2))
        .publisher_id(5)
        .interface("lo")
        .interval(Duration::from_millis(5))
        .data_set(DataSet::from_fn(
            "pair",
            [
                taktwerk::pubsub::config::build::field("a", taktwerk::types::BuiltInType::Int32),
                taktwerk::pubsub::config::build::field("b", taktwerk::types::BuiltInType::Int32),
            ],
            |fields| {
                fields[0] = taktwerk::DataValue::new(1i32);
                fields[1] = taktwerk::DataValue::new(2i32);
            },
        ));
    let _publisher = builder.start().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let theirs = Arc::clone(&seen);
    let builder = Subscriber::builder(&url(2)).interval(Duration::from_millis(20));
    let readers = builder.configuration().connections.iter().flat_map(|connection| &connection.reader_groups);
    let reader = readers.flat_map(|group| &group.readers).next().unwrap();
    assert!(
        matches!(&reader.message, DataSetReaderMessage::Uadp(uadp) if uadp.publishing_interval == 20.0),
        "{reader:?}"
    );
    let _subscriber = builder
        .interface("lo")
        .publisher_id(5)
        .writer(1)
        .on_message(move |message| {
            let fields: Vec<_> =
                named(message).map(|(name, value)| (name.into_owned(), value.clone())).collect();
            *theirs.lock().unwrap() = fields;
        })
        .start()
        .unwrap();
    assert!(until(|| {
        let seen = seen.lock().unwrap();
        let names: Vec<_> = seen.iter().map(|(name, _)| name.as_str()).collect();
        names == ["a", "b"]
    }));
    let seen = seen.lock().unwrap();
    assert!(seen[1].1.value.as_ref().is_some_and(|value| value.same_as(&Variant::from(2i32))));
}

#[test]
fn a_configuration_file_names_the_variables() {
    let server = server();
    let level = server.objects().variable("Level", 0.0f64).add().unwrap();
    let text = format!(
        "[[data-set]]\nname = \"tank\"\nfields = [{{ name = \"level\", type = \"Double\", node = \"{}\" }}]\n\
         [[connection]]\nname = \"udp\"\npublisher-id = {{ uint16 = 9 }}\nurl = \"{}\"\ninterface = \"lo\"\n\
         [[connection.writer-group]]\nname = \"g\"\nid = 1\ninterval = 5.0\n\
         writers = [{{ name = \"w\", id = 1, data-set = \"tank\" }}]\n",
        level.id(),
        url(3)
    );
    let configuration = toml::from_toml(&text).unwrap();
    assert!(Publisher::of(configuration.clone()).start().unwrap_err().to_string().contains("space()"));
    let received = Arc::new(Mutex::new(0.0));
    let theirs = Arc::clone(&received);
    let _subscriber = Subscriber::of(Configuration::subscriber_of(&configuration))
        .on_message(move |message| {
            if let Some(Variant::Double(value)) =
                message.fields.first().and_then(|field| field.value.value.clone())
            {
                *theirs.lock().unwrap() = value;
            }
        })
        .start()
        .unwrap();
    let _publisher = Publisher::of(configuration.clone()).space(server.space()).start().unwrap();
    level.set(4.25);
    assert!(until(|| *received.lock().unwrap() == 4.25));
    let missing = text.replace(&level.id().to_string(), "ns=1;s=Nowhere");
    let error = Publisher::of(toml::from_toml(&missing).unwrap()).space(server.space()).start().unwrap_err();
    assert!(error.to_string().contains("Nowhere"), "{error}");
}
