//! Subtrees whose Variables are recorded, and the ends of histories.

mod changing;

use super::*;
use crate::alarm::{ConditionSpec, Kind};
use crate::history::{HistoryValue, MemoryStore};
use crate::recorder::{Recorded, Recorder};
use crate::space::NodeSpec;
use crate::space::build::Under;
use std::sync::Arc;
use taktwerk_schema::ids::{object_ids, object_type_ids};
use taktwerk_types::{QualifiedName, StatusCode, Variant};

const ROOT: NodeId = NodeId::numeric(1, 1);
const OBJECTS: NodeId = NodeId::numeric(0, object_ids::OBJECTS_FOLDER);

fn time(millis: i64) -> UtcTime {
    UtcTime::from_ticks(1_000_000_000 + millis * 10_000)
}

fn add(space: &AddressSpace, number: u32, parent: &NodeId, is_variable: bool, kind: u32) -> NodeId {
    let id = NodeId::numeric(1, number);
    let name = QualifiedName::new(1, format!("n{number}"));
    let spec = if is_variable {
        NodeSpec::variable(id.clone(), name, 11u32.into(), Some(f64::from(number).into()))
    } else {
        NodeSpec::object(id.clone(), name)
    };
    let folder = NodeId::numeric(0, object_type_ids::FOLDER_TYPE);
    let type_definition = (!is_variable).then_some(&folder);
    let under = Under { parent, reference_type: &NodeId::numeric(0, kind), type_definition };
    space.add_node(spec, under, time(0)).unwrap();
    id
}

fn folder(space: &AddressSpace, number: u32, parent: &NodeId) -> NodeId {
    add(space, number, parent, false, reference_type_ids::ORGANIZES)
}

fn variable(space: &AddressSpace, number: u32, parent: &NodeId) -> NodeId {
    add(space, number, parent, true, reference_type_ids::HAS_COMPONENT)
}

/// A space in which everything below [`ROOT`] is recorded, with one Variable.
fn recorded() -> (Arc<AddressSpace>, Recorder) {
    let space = Arc::new(AddressSpace::with_recorder(1, 16, 64, "urn:test"));
    let recorder = Recorder::new(&space).unwrap();
    space.set_history_store(Arc::new(MemoryStore::new(10)));
    folder(&space, 1, &OBJECTS);
    variable(&space, 2, &ROOT);
    let rule = Rule { on_change: true, ..Rule::default() };
    assert_eq!(space.historize_below(&ROOT, true, rule, time(0)).unwrap(), 1);
    (space, recorder)
}

fn take(recorder: &mut Recorder, at: i64) -> Vec<(String, HistoryValue)> {
    let mut out = Vec::new();
    recorder.take(time(at), &mut out, || ());
    out.into_iter().map(|Recorded { node, value, .. }| (node.to_string(), value)).collect()
}

#[test]
fn variables_that_are_added_later_are_recorded() {
    let (space, mut recorder) = recorded();
    let inner = folder(&space, 3, &ROOT);
    let added = variable(&space, 4, &inner);
    let (property, beside) =
        (add(&space, 5, &ROOT, true, reference_type_ids::HAS_PROPERTY), variable(&space, 6, &OBJECTS));
    assert!(space.has_history(&added) && !space.has_history(&property) && !space.has_history(&beside));
    assert_eq!(take(&mut recorder, 0).len(), 2, "their present values");
    let handle = space.variable(&added).unwrap();
    [5.0, 5.0, 6.0].iter().zip(1..).for_each(|(value, at)| handle.set_at(*value, time(at)));
    let values: Vec<_> =
        take(&mut recorder, 5).into_iter().map(|(node, value)| (node, value.value)).collect();
    let node = || "nsu=urn:test;i=4".to_owned();
    let expected: [(String, Variant); 2] = [(node(), 5.0.into()), (node(), 6.0.into())];
    assert_eq!(values, expected, "by the rule of the subtree");
    // A whole tree from elsewhere. Its cycle ends, and a history of its own stays.
    let other = folder(&space, 7, &OBJECTS);
    let (far, own) = (variable(&space, 8, &folder(&space, 9, &other)), variable(&space, 10, &other));
    space.historize(&own, false, Rule::default(), time(0)).unwrap();
    let organizes = NodeId::numeric(0, reference_type_ids::ORGANIZES);
    space.add_reference(&NodeId::numeric(1, 9), &organizes, &other).unwrap();
    space.add_reference(&ROOT, &organizes, &other).unwrap();
    take(&mut recorder, 6);
    assert!(space.has_history(&far), "the recorder's driver finds what no operation has examined");
    let nodes = space.read();
    let rule_of = |id: &NodeId| nodes.history(nodes.find(id).unwrap()).unwrap().rule.on_change;
    assert_eq!((rule_of(&far), rule_of(&own)), (true, false));
}

#[test]
fn many_nodes_are_examined_in_steps() {
    let (space, mut recorder) = recorded();
    let other = folder(&space, 3, &OBJECTS);
    let all: Vec<NodeId> = (100..400).map(|number| variable(&space, number, &other)).collect();
    let organizes = NodeId::numeric(0, reference_type_ids::ORGANIZES);
    space.add_reference(&ROOT, &organizes, &other).unwrap();
    space.raise_model_changes(time(0));
    let count = || all.iter().filter(|id| space.has_history(id)).count();
    assert_eq!(count(), AT_ONCE - 1, "a client's turn examines only some nodes, the folder first");
    space.raise_model_changes(time(0));
    assert_eq!(count(), 2 * AT_ONCE - 1);
    assert_eq!(take(&mut recorder, 0).len(), 1 + all.len());
    assert_eq!(count(), all.len());
}

#[test]
fn conditions_are_not_recorded() {
    let (space, mut recorder) = recorded();
    let spec = ConditionSpec::new(NodeId::string(1, "leak"), "Leak", ROOT, Kind::Set);
    space.add_condition(spec, time(0)).unwrap();
    let acked = NodeId::string(1, "leak/AckedState");
    assert!(space.contains(&acked), "its nodes are below the recorded one");
    assert_eq!(take(&mut recorder, 0).len(), 1);
    assert!(!space.has_history(&acked));
    assert_eq!(space.historize_below(&ROOT, true, Rule::default(), time(0)).unwrap(), 1);
}

#[test]
fn a_variable_and_a_root_that_are_added_again_are_recorded_again() {
    let (space, mut recorder) = recorded();
    let id = NodeId::numeric(1, 2);
    let free = space.slots().free_slots();
    for round in 1..20 {
        space.variable(&id).unwrap().set_at(f64::from(round) + 0.5, time(1));
        space.delete_node(&id).unwrap();
        if round % 2 == 0 {
            space.delete_node(&ROOT).unwrap();
            folder(&space, 1, &OBJECTS);
        }
        variable(&space, 2, &ROOT);
        assert!(space.has_history(&id));
        let values: Vec<_> = take(&mut recorder, 2).into_iter().map(|(_, value)| value.value).collect();
        let expected: [Variant; 2] = [2.0.into(), (f64::from(round) + 0.5).into()];
        assert!(values.iter().all(|value| expected.contains(value)), "{values:?}");
        assert!(expected.iter().all(|value| values.contains(value)), "{values:?}");
        assert_eq!((recorder.variables(), recorder.lost()), (1, 0));
    }
    assert_eq!(space.slots().free_slots(), free + 1, "no slot of a deleted Variable is kept");
    assert!(take(&mut recorder, 5_000).is_empty(), "its history has not ended");
}

#[test]
fn the_history_of_a_deleted_variable_ends_once() {
    let (space, mut recorder) = recorded();
    let id = NodeId::numeric(1, 2);
    take(&mut recorder, 0);
    space.variable(&id).unwrap().set_at(7.0, time(1));
    space.delete_node(&id).unwrap();
    let last: Vec<_> = take(&mut recorder, 10).into_iter().map(|(_, value)| value.value).collect();
    assert_eq!(last, [7.0.into()], "a value that the recorder had not copied is not lost");
    assert_eq!(recorder.variables(), 0);
    assert!(take(&mut recorder, 900).is_empty(), "it may be added again");
    let end = take(&mut recorder, 1_100);
    let [(node, value)] = end.as_slice() else { panic!("{end:?}") };
    assert_eq!((node.as_str(), value.source), ("nsu=urn:test;i=2", time(10)));
    assert_eq!(value.status, StatusCode::BAD_NODE_ID_UNKNOWN);
    assert!(take(&mut recorder, 9_000).is_empty());
}

/// A change of the subtrees and the examination of added nodes can both end the rule of a Variable.
#[test]
fn a_rule_that_ends_twice_leaves_the_own_history_as_it_is() {
    let (space, mut recorder) = recorded();
    let own = variable(&space, 3, &OBJECTS);
    space.historize(&own, true, Rule::default(), time(0)).unwrap();
    space.historize_below(&own, false, Rule { on_change: true, ..Rule::default() }, time(1)).unwrap();
    let ix = space.read().find(&own).unwrap();
    assert!(space.read().is_ruled(ix));
    for _ in 0..2 {
        space.end_rule(&own, ix, time(2));
        assert!(space.has_history(&own) && !space.read().is_ruled(ix));
        // The recorder gets the order to stop.
        take(&mut recorder, 3);
    }
    space.variable(&own).unwrap().set_at(7.0, time(4));
    let taken = take(&mut recorder, 5);
    assert!(taken.iter().any(|(_, value)| value.value == 7.0.into()), "{taken:?}");
}
