//! Keep-alives, their supervision, and the end of subscriptions and sessions that receive no requests.

use crate::common::*;
use taktwerk_client::{Event, SubscriptionEvent, SubscriptionParams};
use taktwerk_sim::plant::monitor;
use taktwerk_sim::{ClientId, Path, Route, Subscriber};
use taktwerk_types::StatusCode;

/// Publishing every 100 ms, a keep-alive every second, a lifetime of 6 s.
fn site(timeout_ms: f64) -> (Site, ClientId) {
    let mut site = Site::new(1, 1);
    let params = SubscriptionParams {
        publishing_interval_ms: 100.0,
        keep_alive_count: 10,
        lifetime_count: 60,
        ..SubscriptionParams::default()
    };
    let subscriber = Subscriber::new(params, vec![monitor(0, 1)]);
    let client = site.client_with(Route::symmetric(Path::LAN.with_delay(millis(5))), subscriber, |config| {
        config.session_timeout_ms = timeout_ms;
    });
    site.until_up(client);
    site.run(secs(1));
    (site, client)
}

fn times(site: &Site, client: ClientId, what: impl Fn(&SubscriptionEvent) -> bool) -> Vec<u64> {
    let start = 1_000_000_000;
    let wanted = |event: &Event| matches!(event, Event::Subscription(_, event) if what(event));
    let events = site.app(client).events.iter().filter(|happened| wanted(&happened.event));
    events.map(|happened| (happened.at.as_nanos() - start) / 1_000_000).collect()
}

#[test]
fn a_quiet_subscription_sends_keep_alives() {
    let (mut site, client) = site(60_000.0);
    site.run(secs(600));
    let times = times(&site, client, |event| *event == SubscriptionEvent::KeepAlive);
    assert!(times.len() >= 598, "{}", times.len());
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 1000), "{times:?}");
    assert_eq!(site.app(client).count(|event| matches!(event, Event::ConnectionLost { .. })), 0);
}

#[test]
fn silence_is_detected_and_the_connection_is_closed() {
    let (mut site, client) = site(60_000.0);
    let before = site.world.now().instant;
    site.world.partition(client);
    site.until("the client notices", secs(60), |world| {
        let app = &world.client(client).application;
        app.count_subscription(|event| *event == SubscriptionEvent::Inactive) == 1
    });
    // One keep-alive interval plus some tolerance.
    let noticed = site.world.now().instant.since(before);
    assert!(noticed < millis(3000), "{noticed:?}");
    site.until("the client gives up", secs(60), |world| !world.client(client).client().is_up());
    site.world.heal(client);
    site.until_up(client);
    site.write(0, 5);
    site.run(secs(2));
    assert_eq!(numbers(site.app(client), 0), [0, 5]);
}

#[test]
fn a_short_stall_is_reported_and_has_no_other_effect() {
    let (mut site, client) = site(60_000.0);
    site.world.partition(client);
    site.run(millis(4000));
    site.world.heal(client);
    site.run(secs(30));
    let app = site.app(client);
    assert_eq!(app.count_subscription(|event| *event == SubscriptionEvent::Inactive), 1);
    assert_eq!(app.count_subscription(|event| *event == SubscriptionEvent::Active), 1);
    assert_eq!(app.count(|event| matches!(event, Event::ConnectionLost { .. })), 0);
}

#[test]
fn a_lifetime_without_requests_ends_the_subscription() {
    let (mut site, client) = site(3_600_000.0);
    site.world.partition(client);
    site.run(secs(100));
    site.world.heal(client);
    site.until_up(client);
    site.run(secs(3));
    let app = site.app(client);
    let recreated = |status| app.count_subscription(|event| *event == SubscriptionEvent::Recreating(status));
    assert_eq!(
        recreated(StatusCode::BAD_SUBSCRIPTION_ID_INVALID) + recreated(StatusCode::BAD_TIMEOUT),
        1,
        "{:?}",
        app.events
    );
    assert_eq!(app.count_subscription(|event| matches!(event, SubscriptionEvent::Created { .. })), 2);
    site.write(0, 7);
    site.run(secs(1));
    assert_eq!(numbers(site.app(client), 0).last(), Some(&7));
}

#[test]
fn a_session_without_requests_ends() {
    let (mut site, client) = site(5_000.0);
    // The client keeps it alive while nothing else happens.
    site.run(secs(300));
    assert_eq!(site.world.server(site.server).shard().unwrap().session_count(), 1);
    site.world.partition(client);
    site.run(secs(20));
    assert_eq!(site.world.server(site.server).shard().unwrap().session_count(), 0);
}
