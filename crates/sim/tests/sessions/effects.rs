//! Slow work delays nothing else.

use crate::common::*;
use core::future::poll_fn;
use core::sync::atomic::{AtomicI64, Ordering};
use core::task::Poll;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_client::{ClientError, RequestHandle};
use taktwerk_schema::{ReadRequest, ReadResponse};
use taktwerk_server::callback::{SourceRead, ValueSource};
use taktwerk_sim::plant::{monitor, value_of, variable_id};
use taktwerk_sim::{ClientId, EffectTime, Path, Route, Subscriber};
use taktwerk_types::{DataValue, StatusCode};

/// Counts how often it was read.
#[derive(Debug, Default)]
struct Device {
    asked: AtomicI64,
    is_future: bool,
}

impl ValueSource for Device {
    fn read(&self) -> SourceRead {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        if !self.is_future {
            return SourceRead::Blocking(Box::new(move || DataValue::new(number)));
        }
        // Ready when polled for the tenth time.
        let mut asked = 0;
        SourceRead::Later(Box::pin(poll_fn(move |_| {
            asked += 1;
            if asked < 10 { Poll::Pending } else { Poll::Ready(DataValue::new(number)) }
        })))
    }
}

/// A server whose variable 0 is on a slow device.
fn site(takes: Duration, is_future: bool) -> (Site, ClientId, Arc<Device>) {
    let mut site = Site::new(1, 2);
    let device = Arc::new(Device { is_future, ..Device::default() });
    let shard = site.world.server(site.server).shard().unwrap();
    shard.shared().space().set_source(&variable_id(0), Arc::clone(&device) as Arc<dyn ValueSource>).unwrap();
    let server = site.server;
    site.world.server_mut(server).effect_time = EffectTime::Between(takes, takes);
    let client = site.client(Route::symmetric(Path::IDEAL.with_delay(millis(1))), Subscriber::default());
    site.until_up(client);
    (site, client, device)
}

fn read(site: &mut Site, client: ClientId, variable: u32) -> RequestHandle {
    let nodes_to_read = vec![value_of(variable)];
    site.world.request(client, ReadRequest { nodes_to_read, ..ReadRequest::default() }).unwrap()
}

/// Milliseconds until the answer, and the answer.
fn answer(site: &mut Site, client: ClientId, handle: RequestHandle) -> (u64, Result<DataValue, ClientError>) {
    let start = site.world.now().instant;
    site.until("the answer", secs(100), |world| {
        world.client(client).application.responses.iter().any(|response| response.1 == handle)
    });
    let took = site.world.now().instant.since(start).as_millis() as u64;
    let responses = &mut site.world.client_mut(client).application.responses;
    let at = responses.iter().position(|response| response.1 == handle).unwrap();
    let (_, _, result) = responses.swap_remove(at);
    let value =
        result.and_then(|reply| reply.decode::<ReadResponse>()).map(|response| response.results[0].clone());
    (took, value)
}

#[test]
fn a_slow_device_delays_no_other_request() {
    for is_future in [false, true] {
        let (mut site, client, _) = site(millis(300), is_future);
        let slow = read(&mut site, client, 0);
        let quick = read(&mut site, client, 1);
        assert_eq!(answer(&mut site, client, quick).0, 2);
        let (took, value) = answer(&mut site, client, slow);
        // After its time has elapsed, a future is polled every millisecond.
        assert_eq!(took, 300 + if is_future { 9 } else { 0 });
        assert_eq!(value.unwrap().value, Some(0i64.into()));
    }
}

#[test]
fn a_device_that_takes_too_long_times_out() {
    let (mut site, client, _) = site(secs(60), false);
    let slow = read(&mut site, client, 0);
    // The server's time limit for the device is five seconds.
    let (took, value) = answer(&mut site, client, slow);
    assert!((5_000..=5_003).contains(&took), "{took}");
    assert_eq!(value.unwrap().status(), StatusCode::BAD_NO_COMMUNICATION);
    // After that, no request waits for it.
    let slow = read(&mut site, client, 0);
    let (took, value) = answer(&mut site, client, slow);
    assert_eq!((took, value.unwrap().status()), (2, StatusCode::BAD_NO_COMMUNICATION));
    // The result arrives when no request waits for it any more.
    site.run(secs(100));
    assert!(site.world.client(client).client().is_up());
}

#[test]
fn results_for_disconnected_clients_are_dropped() {
    let (mut site, client, _) = site(millis(500), false);
    for round in 0..4 {
        read(&mut site, client, 0);
        site.run(millis(100));
        match round {
            0 => site.world.cut(client),
            1 => site.restart(),
            2 => site.world.partition(client),
            _ => site.world.with_client(client, |client, _, now| client.disconnect(now.instant)),
        }
        site.run(secs(2));
        site.world.heal(client);
        site.run(secs(60));
        assert_eq!(site.world.client(client).waiting(), 0);
    }
}

#[test]
fn a_device_is_read_again_only_after_it_has_answered() {
    let (mut site, client, device) = site(millis(250), false);
    let mut item = monitor(0, 10);
    item.requested_parameters.sampling_interval = 100.0;
    site.world.with_client(client, |client, _, now| {
        let params =
            taktwerk_client::SubscriptionParams { publishing_interval_ms: 100.0, ..Default::default() };
        let subscription = client.create_subscription(params, now.instant);
        client.add_items(subscription, [item], now.instant).unwrap();
    });
    site.run(secs(30));
    // Sampled every 300 ms: at the ticks in between it is busy.
    let asked = device.asked.load(Ordering::Relaxed);
    assert!((95..=105).contains(&asked), "{asked}");
    let seen = site.app(client).values_of(0).len() as i64;
    assert!(seen >= asked - 5, "{seen} of {asked}");
}
