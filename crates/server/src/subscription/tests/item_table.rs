//! The item table, after few and very many items.

use super::*;
use proptest::prelude::*;

#[test]
fn the_table_shrinks_after_very_many_items() {
    let mut world = World::new(1);
    let keeper = world.subscribe(100.0, 3_000, 10, 0);
    let kept = world.item(keeper, 0, REPORTING, World::settings(100.0, 1));
    for _ in 0..3 {
        let place = world.subscribe(100.0, 3_000, 10, 0);
        for _ in 0..20_000 {
            world.item(place, 0, REPORTING, World::settings(100.0, 1));
        }
        assert_eq!(world.engine.item_count(), 20_001);
        world.engine.remove(place, &mut world.out);
        assert_eq!(world.engine.item_count(), 1);
        assert!(world.engine.items.capacity() <= 8_192, "{}", world.engine.items.capacity());
        assert!(world.engine.free_items.capacity() <= 65_536, "{}", world.engine.free_items.capacity());
    }
    assert_eq!(world.engine.find_item(keeper, kept), Ok(kept - 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// However subscriptions are created and deleted, no two items share an index.
    #[test]
    fn every_item_has_its_own_index(steps in prop::collection::vec((0usize..4, 1usize..40), 1..40)) {
        let mut world = World::new(1);
        let mut places: Vec<Option<u32>> = vec![None; 4];
        let mut expected = [0usize; 4];
        for (who, count) in steps {
            match places[who].take() {
                Some(place) => {
                    world.engine.remove(place, &mut world.out);
                    expected[who] = 0;
                }
                None => {
                    let place = world.subscribe(100.0, 3_000, 10, 0);
                    for _ in 0..count {
                        world.item(place, 0, REPORTING, World::settings(100.0, 1));
                    }
                    places[who] = Some(place);
                    expected[who] = count;
                }
            }
            let mut seen = std::collections::BTreeSet::new();
            for (place, count) in places.iter().zip(expected) {
                let Some(place) = place else { continue };
                let subscription = world.engine.subscription(*place).unwrap();
                prop_assert_eq!(subscription.items.len(), count);
                for index in &subscription.items {
                    prop_assert!(seen.insert(*index), "{} twice", index);
                    prop_assert_eq!(world.engine.find_item(*place, index + 1), Ok(*index));
                }
            }
            prop_assert_eq!(world.engine.item_count(), seen.len());
        }
    }
}
