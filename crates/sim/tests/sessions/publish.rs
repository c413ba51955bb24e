//! Many publishing cycles: every message arrives once and in order, with every value at its item.

use crate::common::*;
use core::time::Duration;
use taktwerk_crypto::{Entropy, SeededEntropy};
use taktwerk_sim::plant::monitor;
use taktwerk_sim::{Path, Route};

const CYCLES: u64 = 10_000;
const VARIABLES: u32 = 10;

/// Random writes for [`CYCLES`] cycles of 100 ms; returns the values written to each variable.
fn write_at_random(site: &mut Site, entropy: &mut SeededEntropy) -> Vec<Vec<i64>> {
    let mut written = vec![vec![0i64]; VARIABLES as usize];
    let end = site.world.now().instant + millis(100) * CYCLES as u32;
    while site.world.now().instant < end {
        site.run(Duration::from_micros(entropy.below(150_000)));
        for _ in 0..=entropy.below(3) {
            let variable = entropy.below(u64::from(VARIABLES)) as usize;
            let value = written[variable].last().unwrap() + 1;
            site.write(variable, value);
            written[variable].push(value);
        }
    }
    site.run(secs(2));
    written
}

#[test]
fn ten_thousand_cycles_with_random_writes() {
    for queue_size in [1, 100] {
        let mut site = Site::new(3, VARIABLES);
        let items = (0..VARIABLES).map(|number| monitor(number, queue_size)).collect();
        let path = Path { jitter: millis(20), ..Path::LAN.with_delay(millis(5)) };
        let client = site.client(Route::symmetric(path), subscription(100.0, items));
        site.until_up(client);
        let mut entropy = SeededEntropy::new(4);
        let written = write_at_random(&mut site, &mut entropy);
        let app = site.app(client);
        let messages = app.sequence_numbers.len() as u32;
        assert!(u64::from(messages) > CYCLES * 8 / 10, "{messages}");
        assert_eq!(app.sequence_numbers, (1..=messages).collect::<Vec<_>>());
        for (handle, written) in (0..).zip(&written) {
            let seen = numbers(app, handle);
            if queue_size > 1 {
                assert_eq!(&seen, written);
            } else {
                // The newest value of each cycle: increasing, and the last one has arrived.
                assert!(seen.windows(2).all(|pair| pair[0] < pair[1]));
                assert_eq!(seen.last(), written.last());
            }
        }
        let unanswered = site.world.unanswered(client);
        assert!(
            unanswered.iter().all(|request| request.type_id == taktwerk_sim::wire_check::PUBLISH_REQUEST)
        );
    }
}
