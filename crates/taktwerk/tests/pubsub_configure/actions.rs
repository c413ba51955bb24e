//! Responders of Actions follow the configuration while the server runs.

use super::*;
use std::sync::atomic::{AtomicU32, Ordering};
use taktwerk::pubsub::config::DataSetSource;
use taktwerk::pubsub::{ActionRequestor, ActionResponders};
use taktwerk_schema::{
    ActionMethodDataType, ActionTargetDataType, DataSetMetaDataType, PublishedActionMethodDataType,
};

/// A configuration that publishes a Method at an address.
fn publishing(url: &str, method: &NodeId) -> Configuration {
    let mut set = PublishedDataSet::new("scale", vec![field("scaled", BuiltInType::Double)]);
    let target = ActionTargetDataType { action_target_id: 1, name: "it".into(), ..Default::default() };
    set.source = DataSetSource::ActionMethods(Box::new(PublishedActionMethodDataType {
        request_data_set_meta_data: DataSetMetaDataType {
            name: "scale".into(),
            fields: vec![field("value", BuiltInType::Double)],
            ..Default::default()
        },
        action_targets: vec![target],
        action_methods: vec![ActionMethodDataType {
            object_id: ns0(object_ids::OBJECTS_FOLDER),
            method_id: method.clone(),
        }],
    }));
    let mut group = WriterGroup::dynamic("actions", 1, 10.0);
    group.writers.push(DataSetWriter::dynamic("scale", 1, "scale"));
    let mut connection = Connection::new("udp", Some(PublisherId::UInt16(7)), url);
    connection.writer_groups.push(group);
    Configuration { data_sets: vec![set], connections: vec![connection], ..empty() }
}

#[tokio::test]
async fn actions_follow_the_configuration() {
    let setup = setup(empty()).await;
    let space = setup.running.space();
    let scale = |name: &str, factor: f64| {
        let objects = setup.running.objects();
        let method = objects.method(name).inputs(["value"]).outputs(["scaled"]);
        method.handler(move |_, (value,): (f64,)| Ok((value * factor,))).unwrap().id().clone()
    };
    let (double, triple) = (scale("Double", 2.0), scale("Triple", 3.0));
    let careful = Arc::new(ActionResponders::builder(space).start(&empty()).unwrap());
    setup.model.attach_responders(&careful);
    let begun = Arc::new(AtomicU32::new(0));
    let (url, here) = (free_url(), free_url());
    let requestor = ActionRequestor::builder(&url, 9)
        .response_address(&here)
        .allow_unsecured()
        .interval(Duration::from_millis(10))
        .start()
        .unwrap();
    let ask = |patience| requestor.invoke(7, 1, 1, vec![5.0.into()], Duration::from_millis(patience));

    // A change that is not permitted is rejected completely.
    let wanted = publishing(&url, &double);
    let refused = setup.model.change(|configuration| *configuration = wanted.clone());
    assert_eq!(refused, Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT));
    assert!(careful.is_empty() && setup.model.configuration().connections.is_empty());
    assert_eq!(ask(200), Err(StatusCode::BAD_TIMEOUT));

    // A client adds them with the configuration file.
    let responders = ActionResponders::builder(space).allow_unsecured(true);
    let responders = Arc::new(responders.start(&empty()).unwrap());
    setup.model.attach_responders(&responders);
    let file = ns0(object_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION);
    let open = method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_OPEN;
    let write = method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_WRITE;
    let update = method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_CLOSE_AND_UPDATE;
    let kinds = [
        Mask::REFERENCE_PUB_DATASET,
        Mask::REFERENCE_CONNECTION,
        Mask::REFERENCE_WRITER_GROUP,
        Mask::REFERENCE_WRITER,
    ];
    let references = kinds.map(|kind| PubSubConfigurationRefDataType {
        configuration_mask: Mask::ELEMENT_ADD | kind,
        ..PubSubConfigurationRefDataType::default()
    });
    let handle = setup.call(&file, open, vec![6u8.into()]).await.unwrap()[0].clone();
    let bytes = ByteString::from(binary_file::write(&wanted));
    setup.call(&file, write, vec![handle.clone(), bytes.into()]).await.unwrap();
    let inputs = vec![handle, true.into(), Variant::from_structures(&references)];
    let outputs = setup.call(&file, update, inputs).await.unwrap();
    assert_eq!(outputs[0], true.into(), "{outputs:?}");
    assert_eq!(responders.len(), 1);
    assert_eq!(ask(20_000), Ok(vec![10.0.into()]));

    // The responder continues through unrelated changes, and with another Method after a related one.
    setup.model.change(|configuration| configuration.connections[0].writer_groups[0].priority = 3).unwrap();
    setup.model.change(|configuration| *configuration = publishing(&url, &triple)).unwrap();
    assert_eq!(ask(20_000), Ok(vec![15.0.into()]));

    // Methods disable and enable it.
    let switch = async |what: &str| {
        let status = "ns=1;s=PubSub/udp/actions/Status";
        setup.client.call::<(), ()>(status, format!("{status}/{what}").as_str(), ()).await.unwrap();
    };
    switch("Disable").await;
    assert!(responders.is_empty());
    assert_eq!(ask(200), Err(StatusCode::BAD_TIMEOUT));
    switch("Enable").await;
    assert_eq!(ask(20_000), Ok(vec![15.0.into()]));

    // A responder that cannot start changes nothing.
    let mut elsewhere = publishing("opc.udp://192.0.2.1:4840", &double);
    elsewhere.connections[0].network_interface = "none-of-ours".into();
    assert!(setup.model.change(|configuration| *configuration = elsewhere).is_err());
    assert_eq!(ask(20_000), Ok(vec![15.0.into()]));

    // A request that is being executed while the settings change is answered, and executed once.
    let slow = {
        let counter = Arc::clone(&begun);
        let method = setup.running.objects().method("Slow").inputs(["value"]).outputs(["scaled"]);
        let made = method.handler(move |_, (value,): (f64,)| {
            counter.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(400));
            Ok((value * 4.0,))
        });
        made.unwrap().id().clone()
    };
    setup.model.change(|configuration| *configuration = publishing(&url, &slow)).unwrap();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| ask(20_000));
        while begun.load(Ordering::SeqCst) == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut other = publishing(&url, &slow);
        other.connections[0].writer_groups[0].publishing_interval = 20.0;
        setup.model.change(|configuration| *configuration = other).unwrap();
        assert_eq!(asked.join().unwrap(), Ok(vec![20.0.into()]));
    });
    assert_eq!(begun.load(Ordering::SeqCst), 1);

    // After removal, nothing answers.
    setup.model.change(|configuration| configuration.connections.clear()).unwrap();
    assert!(responders.is_empty());
    assert_eq!(ask(200), Err(StatusCode::BAD_TIMEOUT));
    setup.end().await;
}

/// Enabled elements that cannot be answered are in Error, and the others run.
#[tokio::test]
async fn actions_that_cannot_be_answered_are_in_error() {
    let setup = setup(empty()).await;
    let space = setup.running.space();
    let method = setup.running.objects().method("Double").inputs(["value"]).outputs(["scaled"]);
    let method = method.handler(move |_, (value,): (f64,)| Ok((value * 2.0,))).unwrap().id().clone();
    // Message security is missing, which is detected when it is enabled.
    let responders = Arc::new(ActionResponders::builder(space).start(&empty()).unwrap());
    setup.model.attach_responders(&responders);
    let mut configuration = publishing(&free_url(), &method);
    configuration.connections[0].writer_groups[0].enabled = false;
    setup.model.change(|old| *old = configuration).unwrap();
    let group = GroupIndex { connection: 0, group: 0 };
    let writer = Component::DataSetWriter { group, writer: 0 };
    let group_status = "ns=1;s=PubSub/udp/actions/Status";
    let writer_status = "ns=1;s=PubSub/udp/actions/scale/Status";
    let switch = async |status: &str, what: &str| {
        let called = setup.client.call::<(), ()>(status, format!("{status}/{what}").as_str(), ()).await;
        called.map_err(|error| error.status())
    };
    // Enabling returns the reason, for the group and the writer. They are enabled all the same.
    let why = Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
    assert_eq!(switch(group_status, "Enable").await, why);
    assert_eq!(switch(group_status, "Enable").await, Err(StatusCode::BAD_INVALID_STATE));
    assert!(setup.model.configuration().connections[0].writer_groups[0].enabled);
    assert!(responders.is_empty());
    // The sending engine reports when its group runs.
    until("the writer is in Error", || setup.model.state(writer) == PubSubState::ERROR).await;
    assert!(setup.model.counters(writer).error >= 1);
    let shown: i32 = setup.client.read_value("ns=1;s=PubSub/udp/actions/scale/Status/State").await.unwrap();
    assert_eq!(shown, PubSubState::ERROR.0);
    // Disabled it has no error; enabled again it has.
    switch(writer_status, "Disable").await.unwrap();
    assert_eq!(setup.model.state(writer), PubSubState::DISABLED);
    assert_eq!(switch(writer_status, "Enable").await, why);
    assert_eq!(setup.model.state(writer), PubSubState::ERROR);
    // Below a disabled element nothing must be answered, so nothing is missing.
    switch(writer_status, "Disable").await.unwrap();
    switch(group_status, "Disable").await.unwrap();
    switch(writer_status, "Enable").await.unwrap();
    assert_eq!(setup.model.state(writer), PubSubState::PAUSED);
    assert_eq!(switch("ns=1;s=PubSub/udp/Status", "Disable").await, Ok(()));
    switch(group_status, "Enable").await.unwrap();
    // Enabling another element is not affected.
    let other = Connection::new("other", Some(PublisherId::UInt16(8)), &free_url());
    setup.model.change(|configuration| configuration.connections.push(other)).unwrap();
    switch("ns=1;s=PubSub/other/Status", "Disable").await.unwrap();
    assert_eq!(switch("ns=1;s=PubSub/udp/Status", "Enable").await, why);
    assert_eq!(switch("ns=1;s=PubSub/other/Status", "Enable").await, Ok(()));
    // As above: its group is operational when the engine reports it.
    until("the writer is in Error again", || setup.model.state(writer) == PubSubState::ERROR).await;
    // With responders that are permitted, it runs.
    let responders = ActionResponders::builder(space).allow_unsecured(true);
    let responders = Arc::new(responders.start(&empty()).unwrap());
    setup.model.attach_responders(&responders);
    switch(writer_status, "Disable").await.unwrap();
    switch(writer_status, "Enable").await.unwrap();
    assert_eq!((responders.len(), setup.model.state(writer)), (1, PubSubState::OPERATIONAL));
    setup.end().await;
}
