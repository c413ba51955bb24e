//! The order of Part 4 §6.7: the session is reactivated, subscriptions are transferred, and only what the server has
//! lost is created again.

use crate::common::*;
use taktwerk_client::{Event, Restored, SubscriptionEvent};
use taktwerk_crypto::{Entropy, SeededEntropy};
use taktwerk_sim::plant::monitor;
use taktwerk_sim::{ClientId, Path, Route, Side};

fn site() -> (Site, ClientId) {
    let mut site = Site::new(1, 1);
    let client = site.client(
        Route::symmetric(Path::LAN.with_delay(millis(2))),
        lasting_subscription(100.0, vec![monitor(0, 100)]),
    );
    site.until_up(client);
    site.run(secs(1));
    (site, client)
}

fn restored(site: &Site, client: ClientId, how: Restored) -> usize {
    site.app(client).count(|event| matches!(event, Event::Restored(restored, _) if *restored == how))
}

/// Writes increasing numbers every 30 ms.
fn write_for(site: &mut Site, from: i64, count: i64) {
    for value in from..from + count {
        site.write(0, value);
        site.run(millis(30));
    }
}

/// Waits until the client has been up for some time: it backs off from connections that are lost early.
fn last(site: &mut Site, client: ClientId) {
    site.until_up(client);
    site.run(secs(11));
}

#[test]
fn the_session_continues_after_a_cut() {
    let (mut site, client) = site();
    for cut in 0..20 {
        write_for(&mut site, 1 + cut * 10, 5);
        site.world.cut(client);
        write_for(&mut site, 6 + cut * 10, 5);
        last(&mut site, client);
    }
    assert_eq!(restored(&site, client, Restored::SameSession), 20);
    let app = site.app(client);
    assert_eq!(numbers(app, 0), (0..=200).collect::<Vec<_>>());
    assert_eq!(app.count_subscription(|event| *event == SubscriptionEvent::Kept), 20);
    let sequence_numbers: Vec<u32> = (1..=app.sequence_numbers.len() as u32).collect();
    assert_eq!(app.sequence_numbers, sequence_numbers);
}

#[test]
fn the_subscription_is_transferred_when_the_session_is_gone() {
    let (mut site, client) = site();
    site.world.partition(client);
    // The session times out after 60 s; the client detects the silence much earlier and fails to reconnect.
    site.run(secs(90));
    assert_eq!(site.world.server(site.server).shard().unwrap().session_count(), 0);
    write_for(&mut site, 1, 10);
    site.world.heal(client);
    site.until_up(client);
    site.run(secs(3));
    assert_eq!(restored(&site, client, Restored::NewSession), 1);
    let app = site.app(client);
    assert_eq!(
        app.count_subscription(|event| *event == SubscriptionEvent::Transferred),
        1,
        "{:?}",
        app.events
    );
    assert_eq!(numbers(app, 0), (0..=10).collect::<Vec<_>>());
}

#[test]
fn everything_is_created_again_after_a_server_restart() {
    let (mut site, client) = site();
    write_for(&mut site, 1, 10);
    site.run(secs(1));
    site.restart();
    site.write(0, 50);
    site.until("the client notices", secs(10), |world| !world.client(client).client().is_up());
    site.until_up(client);
    site.run(secs(1));
    write_for(&mut site, 51, 10);
    site.run(secs(1));
    let app = site.app(client);
    assert_eq!(restored(&site, client, Restored::NewSession), 1);
    assert_eq!(app.count_subscription(|event| matches!(event, SubscriptionEvent::Recreating(_))), 1);
    assert_eq!(numbers(app, 0), (0..=10).chain(50..=60).collect::<Vec<_>>());
}

#[test]
fn clients_reconnect_after_a_long_server_outage() {
    let (mut site, client) = site();
    site.world.crash(site.server);
    site.run(secs(600));
    let attempts = site.app(client).count(|event| matches!(event, Event::ConnectFailed { .. }));
    // Delays double, up to 30 s.
    assert!((20..60).contains(&attempts), "{attempts}");
    site.restart();
    site.until_up(client);
    assert_eq!(restored(&site, client, Restored::NewSession), 1);
}

/// Cuts during Publish responses, with so few values in between that the retransmission queue holds all of them.
#[test]
fn republish_recovers_everything_in_the_retransmission_queue() {
    for_seeds(20, |seed| {
        let mut entropy = SeededEntropy::new(seed);
        let mut site = Site::new(seed, 1);
        let path = Path { jitter: millis(30), ..Path::LAN.with_delay(millis(40)) };
        let client = site.client(Route::symmetric(path), lasting_subscription(50.0, vec![monitor(0, 1000)]));
        site.until("the first value", secs(60), |world| {
            !world.client(client).application.values_of(0).is_empty()
        });
        let mut value = 0;
        for _ in 0..30 {
            for _ in 0..entropy.below(10) {
                value += 1;
                site.write(0, value);
                site.run(millis(entropy.below(60)));
            }
            let side = if entropy.below(4) == 0 { Side::Client } else { Side::Server };
            site.world.cut_at_byte(client, side, entropy.below(400));
            site.run(millis(100 + entropy.below(1500)));
            last(&mut site, client);
        }
        let app = site.app(client);
        assert_eq!(numbers(app, 0), (0..=value).collect::<Vec<_>>(), "{:#?}", app.events);
        assert_eq!(app.count_subscription(|event| matches!(event, SubscriptionEvent::DataLost { .. })), 0);
        assert!(restored(&site, client, Restored::SameSession) > 10);
    });
}

#[test]
fn losses_beyond_the_retransmission_queue_are_reported() {
    let mut site = Site::with(1, 1, |config| config.limits.subscriptions.retransmission_len_max = 3);
    let client = site.client(Route::symmetric(Path::LAN), subscription(50.0, vec![monitor(0, 1)]));
    site.until_up(client);
    site.run(secs(1));
    // The connection fails silently; the server keeps sending until it has no more requests to answer.
    let mut value = 0;
    for _ in 0..4 {
        site.world.partition(client);
        for _ in 0..20 {
            value += 1;
            site.write(0, value);
            site.run(millis(50));
        }
        site.world.cut(client);
        site.world.heal(client);
        site.until_up(client);
        site.run(secs(2));
    }
    let app = site.app(client);
    let seen = numbers(app, 0);
    assert_eq!(seen.last(), Some(&value));
    assert!(seen.windows(2).all(|pair| pair[0] <= pair[1]), "{seen:?}");
}
