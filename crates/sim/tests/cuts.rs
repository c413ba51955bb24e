//! The connection is cut after every single byte of the way from the first message to the first value.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::*;
use taktwerk_client::{Event, SubscriptionEvent};
use taktwerk_sim::network::End;
use taktwerk_sim::plant::monitor;
use taktwerk_sim::{ClientId, Path, Route, Side};

fn route() -> Route {
    Route::symmetric(Path::LAN.with_delay(millis(1)))
}

fn subscriber() -> taktwerk_sim::Subscriber {
    subscription(50.0, vec![monitor(0, 10)])
}

fn until_values(site: &mut Site, client: ClientId, count: usize) {
    site.until("values are delivered", secs(200), |world| {
        world.client(client).application.values_of(0).len() >= count
    });
}

/// How many bytes each side sends until the first value is there and acknowledged.
fn bytes_until_published(side: Side) -> u64 {
    let mut site = Site::new(1, 1);
    let client = site.client(route(), subscriber());
    until_values(&mut site, client, 1);
    site.run(millis(200));
    let link = site.world.client(client).link().unwrap();
    site.world.network().traffic(End { link, side }).stream_bytes
}

/// One world, a client per byte: they come one after the other and leave when they have got what they wanted.
fn cut_at_every_byte(side: Side) {
    let mut site = Site::new(2, 1);
    let total = bytes_until_published(side);
    assert!(total > 1000, "{total}");
    for byte in 0..total {
        let client = site.client(route(), subscriber());
        site.world.client_mut(client).cut_next = Some((side, byte));
        until_values(&mut site, client, 1);
        // Not only the first value: what is written now comes as well, and once.
        site.run(millis(100));
        let value = i64::try_from(byte).unwrap() + 1;
        site.write(0, value);
        site.run(millis(400));
        let app = site.app(client);
        let seen = numbers(app, 0);
        assert_eq!(seen.iter().filter(|seen| **seen == value).count(), 1, "{side:?} {byte}: {seen:?}");
        assert_eq!(app.count(|event| matches!(event, Event::Connected(_))), 1, "{side:?} {byte}");
        let lost = app.count_subscription(|event| matches!(event, SubscriptionEvent::DataLost { .. }));
        assert_eq!(lost, 0, "{side:?} {byte}: {:?}", app.events);
        let was_cut =
            app.count(|event| matches!(event, Event::ConnectFailed { .. } | Event::ConnectionLost { .. }));
        assert_eq!(was_cut, 1, "{side:?} {byte}: {:?}", app.events);
        site.world.with_client(client, |client, _, now| client.disconnect(now.instant));
        site.run(millis(50));
        assert_eq!(site.world.client(client).link(), None);
    }
    // Sessions and subscriptions that the cuts left behind end by themselves.
    site.run(secs(400));
    let shard = site.world.server(site.server).shard().unwrap();
    assert_eq!((shard.session_count(), shard.connection_count()), (0, 0));
}

#[test]
fn what_the_client_sends() {
    cut_at_every_byte(Side::Client);
}

#[test]
fn what_the_server_sends() {
    cut_at_every_byte(Side::Server);
}
