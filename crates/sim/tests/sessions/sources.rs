//! Polled sources, some of which hang.

use crate::common::*;
use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use core::task::Poll;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_server::callback::{SourceRead, ValueSource};
use taktwerk_server::source::group::{GroupSpec, ReadMany, Readings};
use taktwerk_sim::plant::{monitor, variable_id};
use taktwerk_sim::subscriber::Received;
use taktwerk_sim::{ClientId, EffectTime, Path, Route};
use taktwerk_types::{DataValue, Instant, StatusCode};

const VARIABLES: u32 = 20;
/// Every second variable has its own source; the others are in groups of five.
const GROUP: u32 = 5;
const INTERVAL: Duration = Duration::from_millis(200);
const DEADLINE: Duration = Duration::from_millis(500);

/// Counts up, or hangs.
#[derive(Debug, Default)]
struct Device {
    hangs: Arc<AtomicBool>,
    count: Arc<AtomicI64>,
}

impl Device {
    fn value(&self) -> impl Future<Output = i64> + Send + use<> {
        let (hangs, count) = (Arc::clone(&self.hangs), Arc::clone(&self.count));
        poll_fn(move |_| match hangs.load(Ordering::Relaxed) {
            true => Poll::Pending,
            false => Poll::Ready(count.fetch_add(1, Ordering::Relaxed)),
        })
    }
}

impl ValueSource for Device {
    fn read(&self) -> SourceRead {
        let value = self.value();
        SourceRead::Later(Box::pin(async move { DataValue::new(value.await) }))
    }

    fn deadline(&self) -> Duration {
        DEADLINE
    }
}

/// A server with ten variables that have their own sources and two groups of five, and one client that monitors all.
/// Returns the devices of the first variable and of the first group.
fn site(seed: u64) -> (Site, ClientId, [Arc<AtomicBool>; 2]) {
    let mut site = Site::new(seed, VARIABLES);
    let takes = EffectTime::Between(millis(seed % 7), millis(10 + seed % 80));
    site.world.server_mut(site.server).effect_time = takes;
    let space = Arc::clone(site.world.server(site.server).shard().unwrap().shared().space());
    let mut devices = Vec::new();
    for number in 0..VARIABLES / 2 {
        let device = Arc::new(Device::default());
        devices.push(Arc::clone(&device.hangs));
        space.set_source(&variable_id(number), device).unwrap();
    }
    let mut groups = Vec::new();
    for members in site.variables[VARIABLES as usize / 2..].chunks(GROUP as usize) {
        let device = Device::default();
        groups.push(Arc::clone(&device.hangs));
        let read = ReadMany::Later(Box::new(move |mut readings: Readings| {
            let value = device.value();
            Box::pin(async move {
                let value = value.await;
                (0..readings.len()).for_each(|position| readings.set(position, value));
                Ok(readings)
            })
        }));
        let spec =
            GroupSpec { deadline: DEADLINE, ..GroupSpec::new("device", members.to_vec(), INTERVAL, read) };
        let _source = space.sources().add(spec);
    }
    let items = (0..VARIABLES).map(|number| {
        let mut item = monitor(number, 100);
        item.requested_parameters.sampling_interval = 200.0;
        item
    });
    let subscriber = subscription(200.0, items.collect());
    let client = site.client(Route::symmetric(Path::IDEAL.with_delay(millis(1))), subscriber);
    site.until_up(client);
    (site, client, [Arc::clone(&devices[0]), Arc::clone(&groups[0])])
}

fn since(site: &Site, client: ClientId, number: u32, from: Instant) -> Vec<Received> {
    site.app(client).values_of(number).iter().filter(|received| received.at >= from).cloned().collect()
}

/// For every seed: hanging sources lose their values step by step and get them back; all others stay in time.
#[test]
fn a_hanging_device_affects_only_its_own_values() {
    for_seeds(10, |seed| {
        let (mut site, client, hangs) = site(seed);
        site.run(secs(5) + millis(seed * 13 % 200));
        let start = site.world.now().instant;
        hangs.iter().for_each(|hangs| hangs.store(true, Ordering::Relaxed));
        site.run(secs(10));
        let end = site.world.now().instant;
        hangs.iter().for_each(|hangs| hangs.store(false, Ordering::Relaxed));
        site.run(secs(5));
        for number in 0..VARIABLES {
            let values = since(&site, client, number, start + millis(300));
            let is_hanging = number == 0 || (VARIABLES / 2..VARIABLES / 2 + GROUP).contains(&number);
            let statuses: Vec<_> = values.iter().map(|received| received.value.status()).collect();
            if !is_hanging {
                assert!(values.len() > 30 && statuses.iter().all(|status| status.is_good()), "{number}");
                let gap = values.windows(2).map(|pair| pair[1].at.since(pair[0].at)).max().unwrap();
                assert!(gap <= millis(800), "{number}: {gap:?}");
                continue;
            }
            let uncertain =
                statuses.iter().position(|status| *status == StatusCode::UNCERTAIN_LAST_USABLE_VALUE);
            let bad = statuses.iter().position(|status| *status == StatusCode::BAD_NO_COMMUNICATION);
            let (uncertain, bad) = (uncertain.unwrap(), bad.unwrap());
            assert!(uncertain < bad, "{number}: {statuses:?}");
            assert!(values[uncertain].value.value.is_some(), "the last value must be kept");
            assert!(values[uncertain].at <= start + DEADLINE + secs(1), "{number}: {:?}", values[uncertain]);
            assert!(values[bad].at <= start + DEADLINE * 3 + secs(1), "{number}: {:?}", values[bad]);
            assert!(statuses.last().unwrap().is_good(), "{number}: {statuses:?}");
            let back = values.iter().find(|received| received.at >= end && received.value.status().is_good());
            assert!(back.unwrap().at <= end + secs(2), "{number}");
        }
    });
}
