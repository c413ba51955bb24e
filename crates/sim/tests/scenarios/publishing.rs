//! Results for a plant with given subscription settings.

use core::time::Duration;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_sim::publishing::{PublishRequests, Settings, Setup, Signals, SimulateError, simulate};

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn setup(link: &str) -> Setup {
    let signals = |period| Signals { count: 5, period: millis(period), value_len: 4 };
    let setup = Setup::new(link.parse().unwrap(), vec![signals(5), signals(10), signals(15)]);
    Setup { measured: Duration::from_secs(3), ..setup }
}

#[test]
fn every_value_arrives_and_delay_grows_with_the_interval() {
    let setup = setup("ppp-2m,busy=30%");
    let outcomes = [10, 50, 200].map(|interval| simulate(&setup, &Settings::new(millis(interval))).unwrap());
    for outcome in &outcomes {
        assert_eq!(outcome.lost(), 0);
        for (group, per_second) in outcome.groups.iter().zip([200u64, 100, 67]) {
            let wanted = per_second * 3 * 5;
            assert!(group.written.abs_diff(wanted) <= 15, "{} written", group.written);
            assert_eq!(group.values.count(), group.written);
            assert!(group.message_min <= group.message_mean && group.message_mean <= group.message_max);
        }
        assert!(outcome.down.utilisation.unwrap() > 0.3 && outcome.down.utilisation.unwrap() < 1.0);
    }
    assert!(outcomes.windows(2).all(|pair| pair[0].values.mean() < pair[1].values.mean()));
    assert!(outcomes.windows(2).all(|pair| pair[0].up.bits_per_second > pair[1].up.bits_per_second));
    assert!((outcomes[1].publishing_interval - 0.05).abs() < 1e-9);
}

#[test]
fn equal_input_gives_equal_output_and_security_costs_bandwidth() {
    let setup = setup("ppp-5m");
    let plain = Settings::new(millis(20));
    let one = simulate(&setup, &plain).unwrap();
    assert_eq!(one, simulate(&setup, &plain).unwrap());
    let security = (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt);
    let secured = simulate(&setup, &Settings { security, ..plain }).unwrap();
    assert!(secured.down.bits_per_second > one.down.bits_per_second);
    assert!(secured.session_up > one.session_up);
}

#[test]
fn invalid_settings_are_refused_by_name() {
    let good = setup("ppp-2m");
    let settings = Settings::new(millis(20));
    let key = |setup: &Setup, settings: &Settings| match simulate(setup, settings) {
        Err(SimulateError::Invalid { key, .. }) => key,
        other => panic!("{other:?}"),
    };
    assert_eq!(key(&Setup { signals: vec![], ..good.clone() }, &settings), "signals");
    let fast = Signals { count: 1, period: Duration::ZERO, value_len: 4 };
    assert_eq!(key(&Setup { signals: vec![fast], ..good.clone() }, &settings), "signals.period");
    assert_eq!(key(&Setup { measured: Duration::ZERO, ..good.clone() }, &settings), "measured");
    assert_eq!(key(&good, &Settings::new(Duration::ZERO)), "publishing_interval");
    assert_eq!(key(&good, &Settings { queue_size: Some(0), ..settings.clone() }), "queue_size");
    let none = Settings { publish_requests: PublishRequests::AtMost(0), ..settings };
    assert_eq!(key(&good, &none), "publish_requests");
}

#[test]
fn a_client_that_publishes_by_its_clock_gets_every_value_and_sends_too_many_requests() {
    let setup = setup("ppp-2m");
    let settings = Settings::new(millis(40));
    let own = simulate(&setup, &settings).unwrap();
    let clock = Settings { publish_requests: PublishRequests::Every { percent: 80 }, ..settings.clone() };
    let outcome = simulate(&Setup { measured: Duration::from_secs(20), ..setup.clone() }, &clock).unwrap();
    assert_eq!(outcome.lost(), 0);
    // One in five requests is too many: 6.25 per second, for 26 s and before.
    assert!((150..=200).contains(&outcome.refused), "{}", outcome.refused);
    assert!(outcome.up.bits_per_second > own.up.bits_per_second * 1.1);
    assert!((outcome.publishing_interval - 0.04).abs() < 1e-9);
    // With fewer requests than messages, values wait longer and longer as soon as the requests sent in advance are used
    // up.
    let setup = Setup { warmup: Duration::from_secs(20), ..setup };
    let rare = Settings { publish_requests: PublishRequests::Every { percent: 200 }, ..settings.clone() };
    assert!(simulate(&setup, &rare).unwrap().values.mean() > own.values.mean() * 2.0);
    let none = Settings { publish_requests: PublishRequests::Every { percent: 0 }, ..settings };
    assert!(matches!(simulate(&setup, &none), Err(SimulateError::Invalid { key: "publish_requests", .. })));
}

#[test]
fn processors_are_busy_and_add_to_the_delay() {
    let setup = setup("ppp-2m");
    let settings = Settings::new(millis(40));
    let free = simulate(&setup, &settings).unwrap();
    assert_eq!((free.server.cpu, free.client.cpu), (None, None));
    let mut profile = taktwerk_model::HostProfile::free(1);
    profile.server.insert("publish_responses".into(), 4e6);
    profile.client.insert("responses".into(), 2e6);
    let slow = Setup { server: Some(profile.clone()), client: Some(profile), ..setup };
    let slow = simulate(&slow, &settings).unwrap();
    // 4 ms and 2 ms in every 40 ms.
    assert!((0.095..0.105).contains(&slow.server.cpu.unwrap()), "{slow:?}");
    assert!((0.045..0.055).contains(&slow.client.cpu.unwrap()), "{slow:?}");
    assert!(slow.values.mean() > free.values.mean() + 4e6);
}
