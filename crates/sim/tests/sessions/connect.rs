//! Connecting over all kinds of paths.

use crate::common::*;
use taktwerk_client::Event;
use taktwerk_sim::{Path, Route, Subscriber};

#[test]
fn connecting_takes_as_many_round_trips_as_messages() {
    // TCP, Hello, OpenSecureChannel, GetEndpoints, CreateSession, ActivateSession, Read of the limits.
    for delay_ms in [0, 1, 10, 300] {
        let mut site = Site::new(1, 0);
        let route = Route::symmetric(Path::IDEAL.with_delay(millis(delay_ms)));
        let start = site.world.now().instant;
        let client = site.client(route, Subscriber::default());
        site.until_up(client);
        assert_eq!(site.world.now().instant.since(start), millis(7 * 2 * delay_ms));
        assert_eq!(site.app(client).count(|event| matches!(event, Event::Connected(_))), 1);
        assert_eq!(site.world.unanswered(client), []);
    }
}

#[test]
fn connecting_over_bad_paths_takes_longer_but_ends() {
    for_seeds(50, |seed| {
        let mut site = Site::new(seed, 0);
        let path = Path {
            jitter: millis(200),
            loss_ppm: 150_000,
            rate: Some(64_000),
            segment_len: 200,
            ..Path::IDEAL.with_delay(millis(100))
        };
        let client = site.client(Route::symmetric(path), Subscriber::default());
        site.until_up(client);
        assert_eq!(site.world.unanswered(client), []);
    });
}

#[test]
fn clients_connect_to_a_server_that_starts_later() {
    let mut site = Site::new(1, 0);
    site.world.crash(site.server);
    let client = site.client(Route::default(), Subscriber::default());
    site.run(secs(20));
    assert!(site.app(client).count(|event| matches!(event, Event::ConnectFailed { .. })) > 4);
    site.restart();
    site.until_up(client);
    assert_eq!(site.app(client).count(|event| matches!(event, Event::Connected(_))), 1);
}

#[test]
fn a_thousand_clients_connect_at_once() {
    // The last tenth of the sessions is reserved for peers with trusted certificates.
    let mut site = Site::with(1, 0, |config| config.limits.sessions_max = 1_200);
    let route = Route::symmetric(Path::LAN);
    let clients: Vec<_> = (0..1000).map(|_| site.client(route, Subscriber::default())).collect();
    site.run(secs(5));
    for client in clients {
        assert!(site.world.client(client).client().is_up());
    }
    let shard = site.world.server(site.server).shard().unwrap();
    assert_eq!((shard.session_count(), shard.connection_count()), (1000, 1000));
}
