//! The connection is cut after each single byte between the first message and the first value.

use crate::common::*;
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

/// The number of bytes that each side sends until the first value has arrived and is acknowledged.
fn bytes_until_published(side: Side) -> u64 {
    let mut site = Site::new(1, 1);
    let client = site.client(route(), subscriber());
    until_values(&mut site, client, 1);
    site.run(millis(200));
    let link = site.world.client(client).link().unwrap();
    site.world.network().traffic(End { link, side }).stream_bytes
}

/// One world with a client per byte: the clients connect one after the other and leave when they have received the
/// values.
fn cut_at_every_byte(side: Side) {
    let mut site = Site::new(2, 1);
    let total = bytes_until_published(side);
    assert!(total > 1000, "{total}");
    for byte in 0..total {
        let client = site.client(route(), subscriber());
        site.world.client_mut(client).cut_next = Some((side, byte));
        until_values(&mut site, client, 1);
        // Besides the first value, values written now must arrive too, exactly once.
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
    // Sessions and subscriptions left over from the cuts end by themselves.
    site.run(secs(400));
    let shard = site.world.server(site.server).shard().unwrap();
    assert_eq!((shard.session_count(), shard.connection_count()), (0, 0));
}

#[test]
fn cuts_at_every_byte_from_the_client() {
    cut_at_every_byte(Side::Client);
}

#[test]
fn cuts_at_every_byte_from_the_server() {
    cut_at_every_byte(Side::Server);
}
