//! Messages of other stacks, recorded from the network (`udp_peer --hex`, `interop/pubsub.sh`).

use crate::common::{Got, at};
use crate::peers;
use std::collections::BTreeMap;
use std::sync::Arc;
use taktwerk_crypto::PubSubSecurityPolicy;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_pubsub::config::Configuration;
use taktwerk_pubsub::uadp::{DataSetMessageKind, SecurityMode};
use taktwerk_pubsub::{Subscriber, SubscriberOptions};
use taktwerk_types::Variant;

/// Lines of layout, mode, policy and datagram; each publisher counts from 1.
fn check(text: &str) -> usize {
    let mut runs: BTreeMap<[&str; 3], Vec<Vec<u8>>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [layout, mode, policy, digits] = words[..] else { panic!("{line:?}") };
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        runs.entry([layout, mode, policy])
            .or_default()
            .push((0..digits.len()).step_by(2).map(byte).collect());
    }
    for ([layout, mode, policy], datagrams) in &runs {
        let mode = match *mode {
            "none" => SecurityMode::None,
            "sign" => SecurityMode::Sign,
            _ => SecurityMode::SignAndEncrypt,
        };
        let policy = match *policy {
            "aes128" => PubSubSecurityPolicy::Aes128Ctr,
            _ => PubSubSecurityPolicy::Aes256Ctr,
        };
        let publishing = peers::configuration("opc.udp://127.0.0.1:4840", layout, mode, 10.0);
        let configuration = Configuration::subscriber_of(&publishing);
        let provider = Arc::new(AwsPubSubProvider);
        let mut receiving = Subscriber::new(configuration, SubscriberOptions::default(), provider).unwrap();
        let mut got = Got::default();
        receiving.start(at(0), &mut got);
        if mode != SecurityMode::None {
            receiving.set_keys("group", Ok(&peers::keys(policy)), at(0)).unwrap();
        }
        for (number, datagram) in (1u32..).zip(datagrams) {
            // A changed secured message is refused; the unchanged one is accepted once.
            if mode != SecurityMode::None {
                for place in 0..datagram.len() {
                    let mut forged = datagram.clone();
                    forged[place] ^= 4;
                    receiving.receive(0, &mut forged, at(1), &mut got);
                }
            }
            assert_eq!(got.messages.len() as u32, number - 1);
            receiving.receive(0, &mut datagram.clone(), at(1), &mut got);
            receiving.receive(0, &mut datagram.clone(), at(1), &mut got);
            assert_eq!(got.messages.len() as u32, number, "{layout} {mode:?}: {:?}", got.events);
            let message = got.messages.last().unwrap();
            assert!(matches!(message.kind, DataSetMessageKind::KeyFrame | DataSetMessageKind::DeltaFrame));
            let expected: [Variant; 4] = [
                number.into(),
                (f64::from(number) + 0.5).into(),
                (number % 2 == 1).into(),
                format!("t{number}").into(),
            ];
            let values: Vec<_> =
                message.fields.iter().map(|field| field.value.value.clone().unwrap()).collect();
            assert_eq!(values, expected, "{layout} {mode:?}");
        }
    }
    runs.len()
}

#[test]
fn open62541() {
    assert_eq!(check(include_str!("../vectors/open62541.txt")), 12);
}

#[test]
fn asyncua() {
    assert_eq!(check(include_str!("../vectors/asyncua.txt")), 2);
}
