//! The age of values when they reach their clients, from the write to the application over a real protocol.

use crate::common::*;
use core::time::Duration;
use taktwerk_crypto::{Entropy, SeededEntropy};
use taktwerk_sim::plant::monitor;
use taktwerk_sim::{ClientId, Path, Route};

/// One-way delay of the path.
const WAY: Duration = Duration::from_millis(5);
/// Number of bursts until the phase is found.
const LEARNT: usize = 20;

/// Clients that connect one after the other, each with one item of a burst that is written every `period`, up to
/// `jitter` early or late.
fn play(
    seed: u64,
    clients: u32,
    queue: u32,
    period: Duration,
    jitter: Duration,
    bursts: u64,
) -> (Site, Vec<ClientId>) {
    let mut site = Site::new(seed, clients);
    let mut entropy = SeededEntropy::new(seed);
    let mut members = Vec::new();
    for number in 0..clients {
        site.run(Duration::from_micros(entropy.below(70_000)));
        let route = Route::symmetric(Path::LAN.with_delay(WAY));
        members.push(site.client(route, subscription(100.0, vec![monitor(number, queue)])));
    }
    site.run(secs(1));
    let start = site.world.now().instant;
    for burst in 0..bursts {
        let at = start
            + period * burst as u32
            + Duration::from_micros(entropy.below(1 + jitter.as_micros() as u64));
        site.run(at.since(site.world.now().instant));
        for variable in 0..clients as usize {
            // The value contains the time of its write.
            site.write(variable, i64::try_from(site.world.now().instant.as_nanos()).unwrap());
        }
    }
    site.run(secs(1));
    (site, members)
}

/// The age of each value on arrival, after the phase was found.
fn delays(site: &Site, client: ClientId, handle: u32) -> Vec<Duration> {
    let values = site.app(client).values_of(handle).iter().skip(1 + LEARNT);
    values.map(|received| Duration::from_nanos(received.at.as_nanos() - number_of(received))).collect()
}

fn number_of(received: &taktwerk_sim::subscriber::Received) -> u64 {
    let value = i64::try_from(received.value.value.clone().unwrap()).unwrap();
    u64::try_from(value).unwrap()
}

#[test]
fn values_of_steady_writers_reach_all_clients_without_delay() {
    for_seeds(20, |seed| {
        for queue in [1, 10] {
            let (site, clients) = play(seed, 5, queue, millis(100), Duration::ZERO, 100);
            for (number, client) in clients.into_iter().enumerate() {
                let delays = delays(&site, client, number as u32);
                // The first bursts may have been overwritten while the phase was being determined.
                assert!(delays.len() >= 100 - LEARNT - 4, "{}", delays.len());
                let worst = delays.iter().max().unwrap();
                assert!(*worst < WAY + millis(2), "{worst:?}");
            }
        }
    });
}

#[test]
fn jitter_and_drift_lose_nothing_and_add_only_their_variation() {
    for_seeds(10, |seed| {
        for (period_us, jitter_ms) in [(100_000, 3), (100_010, 0), (99_990, 1), (100_000, 12)] {
            let bursts = 400;
            let (site, clients) =
                play(seed, 2, 1, Duration::from_micros(period_us), millis(jitter_ms), bursts);
            for (number, client) in clients.into_iter().enumerate() {
                let delays = delays(&site, client, number as u32);
                assert!(
                    delays.len() as u64 >= bursts - LEARNT as u64 - 5,
                    "{period_us} {jitter_ms}: {}",
                    delays.len()
                );
                let mean = delays.iter().sum::<Duration>() / delays.len() as u32;
                assert!(mean < WAY + millis(3 + jitter_ms), "{period_us} {jitter_ms}: {mean:?}");
            }
        }
    });
}
