//! The simulator itself: its reproducibility and its reports.

use crate::common::*;
use taktwerk_sim::plant::monitor;
use taktwerk_sim::{Broken, Path, Route};

fn busy_site(seed: u64) -> Site {
    let mut site = Site::new(seed, 3);
    let path = Path { jitter: millis(20), loss_ppm: 20_000, ..Path::LAN.with_delay(millis(10)) };
    for _ in 0..3 {
        let items = (0..3).map(|number| monitor(number, 5)).collect();
        site.client(Route::symmetric(path), subscription(100.0, items));
    }
    let variable = site.variables[1].clone();
    let mut value = 0;
    site.world.every(millis(37), move |world| {
        value += 1i64;
        variable.set_at(value, world.now().utc);
        value < 500
    });
    site
}

#[test]
fn equal_seeds_repeat_a_run_and_different_seeds_differ() {
    let run = |seed| {
        let mut site = busy_site(seed);
        site.run(secs(30));
        (site.world.events(), site.world.now())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_broken_promise_ends_the_run_at_its_time() {
    let mut site = busy_site(1);
    let variable = site.variables[1].clone();
    site.world.promise(move |_| match variable.get().value {
        Some(value) if value == 100i64.into() => Err("it must not count to a hundred".to_owned()),
        _ => Ok(()),
    });
    let violation = site.world.run_for(secs(60)).unwrap_err();
    assert_eq!(violation.what, Broken::Scenario("it must not count to a hundred".to_owned()));
    assert_eq!(violation.at.as_nanos(), 1_000_000_000 + 100 * 37_000_000);
    assert!(violation.to_string().contains("4.7s"), "{violation}");
}
