//! Clients that disconnect while they connect.

use crate::common::{Site, millis, secs};
use core::time::Duration;
use std::sync::Arc;
use taktwerk_model::HostProfile;
use taktwerk_sim::{Costs, Path, Route, Subscriber};

/// Found by the campaign: on a slow machine, answers to the handshake wait for the client's thread
/// together with the request to disconnect. The client handled the answers and was connected for ever.
#[test]
fn a_client_that_disconnects_while_it_connects_leaves_nothing_behind() {
    let mut profile = HostProfile::free(1);
    for name in ["receive", "send", "turn"] {
        profile.client.insert(name.into(), 1e6);
    }
    let costs = Arc::new(Costs::new(&profile).unwrap());
    for step in 0..80 {
        let mut site = Site::new(1, 1);
        let machine = site.world.add_machine(Arc::clone(&costs));
        let thread = site.world.add_client_thread(machine);
        let route = Route::symmetric(Path::LAN.with_delay(millis(1)));
        let client = site.client(route, Subscriber::default());
        site.world.place_client(client, thread);
        site.run(Duration::from_micros(400) * step);
        site.world.with_client(client, |client, _, now| client.disconnect(now.instant));
        site.run(secs(10));
        assert_eq!(site.world.client(client).link(), None, "step {step}");
        let left = |site: &Site| {
            let shard = site.world.server(site.server).shard().unwrap();
            (shard.connection_count(), shard.session_count())
        };
        assert_eq!(left(&site).0, 0, "step {step}");
        // A session that was not activated ends with its timeout.
        site.run(secs(300));
        assert_eq!(left(&site), (0, 0), "step {step}");
    }
}
