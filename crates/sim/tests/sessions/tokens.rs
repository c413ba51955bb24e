//! Security tokens renewed for hours under traffic: nothing is lost or late.

use crate::common::*;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_channel::ChannelConfig;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_crypto_dummy::DummyProvider;
use taktwerk_schema::{ReadRequest, ReadResponse};
use taktwerk_server::EndpointConfig;
use taktwerk_sim::plant::{monitor, url, value_of};
use taktwerk_sim::{ClientId, EffectTime, Path, Route};

/// Requests per second, in addition to publishing.
const RATE: u64 = 2;

fn path() -> Path {
    Path { jitter: millis(40), ..Path::LAN.with_delay(millis(60)) }
}

/// Reads and publishes for `hours` and returns how often tokens were requested.
fn traffic(site: &mut Site, client: ClientId, hours: u64) -> u32 {
    site.until_up(client);
    let seconds = hours * 3600;
    for second in 0..seconds {
        for _ in 0..RATE {
            let read = ReadRequest { nodes_to_read: vec![value_of(0)], ..ReadRequest::default() };
            site.world.request(client, read).unwrap();
            site.run(Duration::from_secs(1) / RATE as u32);
        }
        site.write(0, 1 + second as i64);
    }
    site.run(secs(5));
    assert_eq!(site.world.client(client).waiting(), 0);
    let app = &mut site.world.client_mut(client).application;
    assert_eq!(app.events.len(), 3, "connected, subscription, items: {:?}", app.events);
    let responses = core::mem::take(&mut app.responses);
    assert_eq!(responses.len() as u64, seconds * RATE);
    assert!(responses.into_iter().all(|(_, _, reply)| reply.unwrap().decode::<ReadResponse>().is_ok()));
    assert_eq!(numbers(app, 0), (0..=seconds as i64).collect::<Vec<_>>());
    site.world.opens(client)
}

#[test]
fn without_security() {
    let mut site = Site::new(1, 1);
    let subscriber = subscription(500.0, vec![monitor(0, 10)]);
    let client =
        site.client_with(Route::symmetric(path()), subscriber, |config| config.token_lifetime_ms = 20_000);
    // Requested at three quarters of the lifetime: every 15 s.
    assert!((1190..=1210).contains(&traffic(&mut site, client, 5)), "{}", site.world.opens(client));
}

#[test]
fn with_security_and_slow_signatures() {
    let mut site = Site::with(2, 1, |config| {
        config.provider = Arc::new(DummyProvider::new("server", 2048));
        config.application_uri = "urn:dummy:server".to_owned();
        let mut endpoint = EndpointConfig::unsecured(&url(SERVER));
        endpoint.policy = SecurityPolicy::Basic256Sha256;
        endpoint.mode = MessageSecurityMode::SignAndEncrypt;
        config.endpoints = vec![endpoint];
    });
    let slow = EffectTime::Between(millis(20), millis(900));
    site.world.server_mut(site.server).effect_time = slow;
    let subscriber = subscription(500.0, vec![monitor(0, 10)]);
    let utc_origin = site.world.utc_origin();
    let client = site.client_with(Route::symmetric(path()), subscriber, |config| {
        let provider = Arc::new(DummyProvider::new("client", 2048));
        config.channel = Arc::new(ChannelConfig { provider, utc_origin, ..ChannelConfig::default() });
        config.token_lifetime_ms = 20_000;
    });
    site.world.client_mut(client).effect_time = slow;
    assert!((230..=245).contains(&traffic(&mut site, client, 1)), "{}", site.world.opens(client));
}
