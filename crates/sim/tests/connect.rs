//! Connecting, over all kinds of paths.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::*;
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
