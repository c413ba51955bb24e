//! A client that stops reading does not affect others.

use crate::common::*;
use std::collections::BTreeMap;
use taktwerk_client::Event;
use taktwerk_schema::ReadRequest;
use taktwerk_sim::plant::{monitor, value_of};
use taktwerk_sim::{ClientId, Path, Route};
use taktwerk_types::Instant;

const CLIENTS: usize = 20;
const ITEMS: u32 = 20;
const SECONDS: i64 = 30;
/// The client that stops reading, and when it stops.
const SLOW: usize = 7;
const STOPS_AFTER: i64 = 5;

/// When each client received which message.
type Deliveries = BTreeMap<ClientId, Vec<(Instant, u32)>>;

/// Publishes to all clients. Paths have no randomness, so that runs can be compared.
fn run(stops: bool) -> (Site, Vec<ClientId>, Deliveries) {
    let mut site = Site::with(1, ITEMS, |config| {
        config.limits.send_budget = 16 << 10;
        config.limits.blocked_timeout = 5_000.0;
    });
    let server = site.server;
    site.world.server_mut(server).response_len_max = 32 << 10;
    let path = Path { send_buffer: 8 << 10, receive_buffer: 8 << 10, ..Path::LAN.with_delay(millis(3)) };
    let items = || (0..ITEMS).map(|number| monitor(number, 1)).collect();
    let clients: Vec<ClientId> =
        (0..CLIENTS).map(|_| site.client(Route::symmetric(path), subscription(100.0, items()))).collect();
    let mut closed_after = None;
    for second in 0..SECONDS {
        for tenth in 0..10 {
            for variable in 0..ITEMS as usize {
                site.write(variable, second * 10 + tenth);
            }
            site.run(millis(100));
        }
        let connections = site.world.server(server).shard().unwrap().connection_count();
        if connections < CLIENTS {
            closed_after.get_or_insert(second - STOPS_AFTER);
        }
        if stops && second == STOPS_AFTER {
            site.world.set_reads(clients[SLOW], false);
            // 2 MB of responses that it does not read.
            for _ in 0..100 {
                let nodes_to_read = vec![value_of(0); 1000];
                let read = ReadRequest { nodes_to_read, ..ReadRequest::default() };
                site.world.request(clients[SLOW], read).unwrap();
            }
        }
    }
    // The server disconnects it after it has been blocked for 5 s.
    assert!(
        if stops { matches!(closed_after, Some(5..=6)) } else { closed_after.is_none() },
        "{closed_after:?}"
    );
    let deliveries = clients.iter().map(|id| {
        let received = site.app(*id).values_of(0).iter();
        (*id, received.map(|received| (received.at, received.sequence_number)).collect())
    });
    let deliveries = deliveries.collect();
    (site, clients, deliveries)
}

#[test]
fn other_clients_are_not_affected() {
    let (_, _, calm) = run(false);
    let (mut site, clients, disturbed) = run(true);
    let slow = clients[SLOW];
    for id in clients.iter().filter(|id| **id != slow) {
        assert!(calm[id].len() > 280, "{}", calm[id].len());
        assert_eq!(calm[id], disturbed[id], "{id:?}");
    }
    assert!(disturbed[&slow].len() < 70, "{}", disturbed[&slow].len());
    // It can reconnect.
    site.world.set_reads(slow, true);
    site.until("the slow client is back", secs(60), |world| {
        let app = &world.client(slow).application;
        app.count(|event| matches!(event, Event::Restored(..))) == 1
    });
    site.write(0, -1);
    site.run(secs(2));
    assert_eq!(numbers(site.app(slow), 0).last(), Some(&-1));
}
