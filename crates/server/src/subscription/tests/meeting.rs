//! Clients begin when they begin; their cycles come together all the same.

use super::*;
use proptest::prelude::*;

/// When in their interval of 100 ms the subscriptions publish, each once.
fn phases(world: &World, places: &[u32]) -> Vec<u64> {
    let phase = |place: &u32| world.engine.subscription(*place).unwrap().next_publish.as_nanos() % (100 * MS);
    let mut phases: Vec<_> = places.iter().map(phase).collect();
    phases.sort_unstable();
    phases.dedup();
    phases
}

/// Runs for `cycles` of the source, which writes every 100 ms.
fn run(world: &mut World, cycles: usize) {
    for cycle in 0..cycles {
        world.advance(100 * MS);
        world.set(0, 1.0 + cycle as f64 + world.now as f64);
        while world.engine.queues[0].as_ref().is_some_and(|queue| queue.requests.len() < 10) {
            world.publish().unwrap();
        }
        world.take_values();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn cycles_of_one_interval_come_together(waits in prop::collection::vec(0u64..100, 2..9)) {
        let mut world = World::new(1);
        let mut places = Vec::new();
        for wait in &waits {
            world.advance(wait * MS);
            let place = world.subscribe(100.0, 3_000, 10, 0);
            world.item(place, 0, REPORTING, World::settings(100.0, 1));
            places.push(place);
        }
        for _ in 0..10 {
            world.publish().unwrap();
        }
        run(&mut world, 200);
        let together = phases(&world, &places);
        prop_assert_eq!(together.len(), 1, "{:?}", together);
        // And stay where they are.
        run(&mut world, 200);
        prop_assert_eq!(phases(&world, &places), together);
        // Whoever comes later joins them, whoever goes leaves nothing behind.
        let place = world.subscribe(100.0, 3_000, 10, 0);
        world.item(place, 0, REPORTING, World::settings(100.0, 1));
        places.push(place);
        run(&mut world, 200);
        prop_assert_eq!(phases(&world, &places).len(), 1);
        for place in places {
            world.engine.remove(place);
        }
        prop_assert!(world.engine.meetings.is_empty());
    }
}
