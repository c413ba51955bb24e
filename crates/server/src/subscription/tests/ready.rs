//! The lists of items with something to report.

use super::*;

const SAMPLING: MonitoringMode = MonitoringMode::SAMPLING;

fn ready_len(world: &World, place: u32) -> usize {
    world.engine.subscription(place).unwrap().ready.len()
}

#[test]
fn repeatedly_enabled_items_do_not_fill_the_list() {
    let mut world = World::new(1);
    let place = world.subscribe(3_600_000.0, 1_000, 100, 0);
    let settings = || World::settings(100.0, 1);
    let ids: Vec<u32> = (0..20).map(|_| world.item(place, 0, REPORTING, settings())).collect();
    for _ in 0..200 {
        for mode in [MonitoringMode::DISABLED, REPORTING] {
            for id in &ids {
                let (index, now) = (world.engine.find_item(place, *id).unwrap(), world.now());
                world.engine.set_mode(index, mode, now, &world.space);
            }
        }
        // Those that were just enabled have a new entry each.
        assert!(ready_len(&world, place) <= 2 * 20 + 64 + 20, "{}", ready_len(&world, place));
    }
    // The same with items that are created and deleted.
    for _ in 0..500 {
        let id = world.item(place, 0, REPORTING, settings());
        let index = world.engine.find_item(place, id).unwrap();
        assert_eq!(world.engine.delete_item(index), 0);
        assert!(ready_len(&world, place) <= 2 * 21 + 64);
    }
    // Each still reports once.
    world.publish().unwrap();
    world.advance(3_600_000 * MS + MS);
    assert_eq!(world.take_values().len(), 20);
}

#[test]
fn deleting_searches_links_only_if_there_are_any() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 1_000, 100, 0);
    let ids: Vec<u32> = (0..10).map(|_| world.item(place, 0, REPORTING, World::settings(100.0, 1))).collect();
    let index = |world: &World, at: usize| world.engine.find_item(place, ids[at]).unwrap();
    let trigger = index(&world, 0);
    world.engine.set_triggering(place, trigger, &[99], &[98]);
    let last = index(&world, 9);
    assert_eq!(world.engine.delete_item(last), 0, "no link was added");
    world.engine.set_triggering(place, trigger, &[ids[1]], &[]);
    let linked = index(&world, 1);
    assert_eq!(world.engine.delete_item(linked), 8, "charged to the client");
}

#[test]
fn samples_of_an_item_with_links_are_reported_when_allowed() {
    // Because of its own mode, or because another item triggers it.
    for is_triggered in [false, true] {
        let mut world = World::new(3);
        let place = world.subscribe(100.0, 1_000, 100, 0);
        let settings = || World::settings(100.0, 1);
        let first = world.item(place, 0, REPORTING, settings());
        let second = world.item(place, 1, SAMPLING, settings());
        let third = world.item(place, 2, SAMPLING, settings());
        let [first, second_at] = [first, second].map(|id| world.engine.find_item(place, id).unwrap());
        world.engine.set_triggering(place, second_at, &[third], &[]);
        if is_triggered {
            world.engine.set_triggering(place, first, &[second], &[]);
        }
        for _ in 0..10 {
            world.publish().unwrap();
        }
        world.advance(205 * MS);
        world.take_values();
        world.set(1, 5.0);
        world.advance(200 * MS);
        world.take_values();
        if is_triggered {
            world.set(0, 1.0);
        } else {
            let now = world.now();
            world.engine.set_mode(second_at, REPORTING, now, &world.space);
        }
        world.advance(200 * MS);
        let told = world.take_values();
        assert!(told.iter().any(|(_, value, _)| *value == 5.0), "{is_triggered}: {told:?}");
    }
}

/// Many items that each trigger many others.
#[test]
fn links_are_followed_within_a_budget_until_all_are_done() {
    const TRIGGERS: usize = 200;
    const LINKED: usize = 500;
    let mut world = World::new(2);
    let place = world.subscribe(100.0, 1_000, 100, 0);
    let settings = || World::settings(100.0, 1);
    let triggers: Vec<u32> = (0..TRIGGERS).map(|_| world.item(place, 0, SAMPLING, settings())).collect();
    let linked: Vec<u32> = (0..LINKED).map(|_| world.item(place, 1, SAMPLING, settings())).collect();
    for (at, id) in triggers.iter().enumerate() {
        let index = world.engine.find_item(place, *id).unwrap();
        // Only the last one triggers the second half.
        let half = if at + 1 == TRIGGERS { &linked[LINKED / 2..] } else { &linked[..LINKED / 2] };
        let twice = [half, half].concat();
        let (added, _) = world.engine.set_triggering(place, index, &twice, &[]);
        assert!(added.iter().all(|status| status.is_good()));
        let (_, removed) = world.engine.set_triggering(place, index, &[], &[half[0], half[0]]);
        assert_eq!(removed, [StatusCode::GOOD, StatusCode::BAD_MONITORED_ITEM_ID_INVALID]);
        world.engine.set_triggering(place, index, &half[..1], &[]);
    }
    let all = TRIGGERS * LINKED / 2;
    for _ in 0..40 {
        world.publish().unwrap();
    }
    let mut told = 0;
    for round in 0..3 {
        world.set(1, f64::from(round) + 1.0);
        world.set(0, f64::from(round) + 1.0);
        let now = world.now();
        world.engine.drain_changes(now.instant);
        let mut looks = 0;
        let mut followed = 0;
        while ready_len(&world, place) > 0 && looks < 100 {
            let before = world.engine.links_followed;
            world.engine.has_notifications(place);
            let more = world.engine.links_followed - before;
            assert!(more <= 32_768 + LINKED, "{more}");
            followed += more;
            looks += 1;
            if more == 0 {
                break;
            }
        }
        assert!(looks > 2, "{looks}");
        assert_eq!(followed, all);
        world.advance(300 * MS);
        told += world.take_values().len();
    }
    assert_eq!(told, 3 * LINKED);
}
