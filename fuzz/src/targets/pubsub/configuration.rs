//! Configurations: the standard file and TOML, and engines created from them.

use super::plant::at;
use crate::input::Input;
use std::sync::Arc;
use taktwerk_crypto::SeededEntropy;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_pubsub::config::{Configuration, binary_file, toml, validate};
use taktwerk_pubsub::security::ReplayFloor;
use taktwerk_pubsub::{DataSetMessage, Publisher, PublisherOptions, Subscriber, SubscriberOptions, Transmit};
use taktwerk_types::DataValue;

/// Reads a file, writes it again, and runs the configuration briefly.
pub fn run(data: &[u8]) {
    // The other kind of file that PubSub reads.
    if let Ok(floor) = ReplayFloor::decode(data) {
        assert_eq!(ReplayFloor::decode(&floor.encode()), Ok(floor));
    }
    let mut input = Input::new(data);
    let configuration = if input.flag() {
        let Ok(text) = core::str::from_utf8(input.rest()) else { return };
        let Ok(configuration) = toml::from_toml(text) else { return };
        if let Ok(text) = toml::to_toml(&configuration) {
            assert_eq!(toml::from_toml(&text).as_ref(), Ok(&configuration));
        }
        configuration
    } else {
        let Ok(configuration) = binary_file::read(input.rest()) else { return };
        let file = binary_file::write(&configuration);
        let again = binary_file::read(&file).expect("what was written can be read");
        assert_eq!(file, binary_file::write(&again));
        configuration
    };
    start(configuration);
}

/// A configuration without problems can run.
fn start(configuration: Configuration) {
    let problems = validate(&configuration);
    let provider = Arc::new(AwsPubSubProvider);
    let entropy = Box::new(SeededEntropy::new(1));
    let subscriber = Subscriber::new(configuration.clone(), SubscriberOptions::default(), provider.clone());
    let publisher = Publisher::new(configuration, PublisherOptions::default(), provider, entropy);
    if !problems.is_empty() {
        assert!(publisher.is_err() && subscriber.is_err());
        return;
    }
    let mut out = Transmit::new();
    let mut values = |_: usize, _: &mut [DataValue]| {};
    if let Ok(mut publisher) = publisher {
        publisher.start(at(1).instant, at(1));
        for millis in [1, 2, 1000] {
            out.clear();
            publisher.poll(at(millis), &mut values, &mut out);
        }
    }
    let mut sink = |_: &DataSetMessage<'_>| {};
    let mut subscriber = subscriber.expect("it has no problems");
    subscriber.start(at(1), &mut sink);
    subscriber.poll(at(1000), &mut sink, &mut out);
}
