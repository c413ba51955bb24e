//! Small plants.

use core::time::Duration;
use taktwerk_sim::scenario::pubsub::{
    Broker, BrokerLimits, Encoding, PubSub, Publishers, Quality, SecurityMode, Subscribers, Transport,
};
use taktwerk_sim::scenario::{Lines, Link, Outcome, Scenario, Signals, run};

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) fn signals(count: u32, period: u64, value_len: usize) -> Signals {
    Signals { count, period: ms(period), value_len }
}

/// Two publishers of ten signals.
pub(crate) fn publishers(name: &str, transport: Transport) -> Publishers {
    Publishers {
        name: name.into(),
        count: 2,
        link: Some(0),
        host: None,
        transport,
        encoding: Encoding::Uadp,
        publishing_interval: ms(50),
        keep_alive_time: None,
        key_frame_count: 1,
        fields: None,
        security: SecurityMode::None,
        key_lifetime: secs(3600),
        signals: vec![signals(10, 100, 8)],
    }
}

/// Two subscribers.
pub(crate) fn subscribers(name: &str, publishers: Vec<usize>) -> Subscribers {
    Subscribers {
        name: name.into(),
        count: 2,
        publishers,
        link: Some(0),
        host: None,
        quality: None,
        timeout: None,
    }
}

fn plant(transport: Transport, brokers: Vec<Broker>) -> Scenario {
    Scenario {
        hosts: vec![],
        links: vec![Link {
            name: "line".into(),
            profile: "rate=10mbit,delay=5ms".parse().unwrap(),
            is_half_duplex: false,
            lines: Lines::One,
        }],
        servers: vec![],
        clients: vec![],
        pubsub: PubSub {
            brokers,
            publishers: vec![publishers("line", transport)],
            subscribers: vec![subscribers("scada", vec![0])],
        },
        authorities: vec![],
        faults: vec![],
        warmup: secs(1),
        measured: secs(10),
        settle: secs(60),
    }
}

/// Over UDP.
pub(crate) fn udp() -> Scenario {
    plant(Transport::Multicast, vec![])
}

/// Over a broker.
pub(crate) fn mqtt(quality: Quality) -> Scenario {
    let broker =
        Broker { name: "broker".into(), host: None, limits: BrokerLimits::default(), keep_alive: secs(10) };
    plant(Transport::Broker(0, quality), vec![broker])
}

pub(crate) fn simulate(scenario: &Scenario, seed: u64) -> Outcome {
    run(scenario, seed, &mut |_| true).unwrap()
}
