//! Other subtrees and rules while Variables are written.

use super::*;

fn rule(deadband: f64) -> Rule {
    Rule { deadband, ..Rule::default() }
}

fn below(root: &NodeId, deadband: f64) -> RecordedSubtree {
    RecordedSubtree { root: root.clone(), writable: false, rule: rule(deadband) }
}

/// Objects 1 and 2 with the Variables 11 and 12, 21; 2 is below 1.
fn plant() -> (Arc<AddressSpace>, Recorder) {
    let space = Arc::new(AddressSpace::with_recorder(1, 16, 64, "urn:test"));
    let recorder = Recorder::new(&space).unwrap();
    space.set_history_store(Arc::new(MemoryStore::new(10)));
    folder(&space, 1, &OBJECTS);
    folder(&space, 2, &ROOT);
    variable(&space, 11, &ROOT);
    variable(&space, 12, &ROOT);
    variable(&space, 21, &NodeId::numeric(1, 2));
    (space, recorder)
}

const INNER: NodeId = NodeId::numeric(1, 2);

fn write(space: &AddressSpace, number: u32, value: f64, at: i64) {
    space.variable(&NodeId::numeric(1, number)).unwrap().set_at(value, time(at));
}

/// The recorded values as (Variable, time, value).
fn values(recorder: &mut Recorder, at: i64) -> Vec<(u32, i64, Option<f64>)> {
    let number = |node: &str| node.strip_prefix("nsu=urn:test;i=").unwrap().parse().unwrap();
    let millis = |value: &HistoryValue| (value.source.ticks() - time(0).ticks()) / 10_000;
    let all = take(recorder, at);
    all.iter().map(|(node, value)| (number(node), millis(value), value.value.as_f64())).collect()
}

fn is_recorded(space: &AddressSpace, number: u32) -> bool {
    let nodes = space.read();
    let ix = nodes.find(&NodeId::numeric(1, number)).unwrap();
    nodes.dynamic(ix).unwrap().variable_extra().is_some_and(|extra| extra.historizing)
}

fn change(space: &AddressSpace, before: &[NodeId], after: &[RecordedSubtree]) -> [usize; 3] {
    change_at(space, before, after, 0)
}

fn change_at(space: &AddressSpace, before: &[NodeId], after: &[RecordedSubtree], at: i64) -> [usize; 3] {
    let changes = space.change_recorded(before, after, time(at)).unwrap();
    [changes.started, changes.changed, changes.stopped]
}

#[test]
fn unchanged_subtrees_have_no_gap_and_the_others_follow() {
    let (space, mut recorder) = plant();
    assert_eq!(change(&space, &[], &[below(&ROOT, 0.0)]), [3, 0, 0]);
    assert_eq!(values(&mut recorder, 1).len(), 3, "their present values");
    // The inner subtree gets a rule of its own. A write of an unchanged Variable is neither lost nor repeated.
    write(&space, 11, 1.0, 2);
    write(&space, 21, 1.0, 2);
    let both = [below(&ROOT, 0.0), below(&INNER, 5.0)];
    assert_eq!(change(&space, &[ROOT], &both), [0, 1, 0]);
    for number in [11, 21] {
        write(&space, number, 3.0, 3);
        write(&space, number, 9.0, 4);
    }
    let mut found = values(&mut recorder, 5);
    found.sort_by_key(|one| (one.0, one.1));
    let of = |number: u32, at: i64, value: f64| (number, at, Some(value));
    assert_eq!(found, [of(11, 2, 1.0), of(11, 3, 3.0), of(11, 4, 9.0), of(21, 2, 1.0), of(21, 4, 9.0)]);
    // The same again changes nothing.
    assert_eq!(change(&space, &[ROOT, INNER], &both), [0, 0, 0]);
    // The outer one goes: the inner one stays as it is.
    assert_eq!(change(&space, &[ROOT, INNER], &both[1..]), [0, 0, 2]);
    assert_eq!([11, 12, 21].map(|number| is_recorded(&space, number)), [false, false, true]);
    write(&space, 21, 50.0, 6);
    let found = values(&mut recorder, 7);
    assert!(found.contains(&(21, 6, Some(50.0))), "{found:?}");
    // Nodes that are added below the former one are not recorded.
    variable(&space, 13, &ROOT);
    variable(&space, 22, &INNER);
    assert!(!space.has_history(&NodeId::numeric(1, 13)) && is_recorded(&space, 22));
    // The inner one goes: its Variable would be recorded by the outer rule.
    assert_eq!(change(&space, &[INNER], &[below(&ROOT, 0.0)]), [3, 2, 0]);
}

#[test]
fn a_stopped_history_says_so_and_can_continue() {
    let (space, mut recorder) = plant();
    let id = NodeId::numeric(1, 11);
    change(&space, &[], &[below(&id, 0.0)]);
    write(&space, 11, 1.0, 1);
    values(&mut recorder, 2);
    // Written before the end, and not taken yet.
    write(&space, 11, 2.0, 3);
    assert_eq!(change(&space, std::slice::from_ref(&id), &[]), [0, 0, 1]);
    let out = take(&mut recorder, 5);
    let [last, end] = out.as_slice() else { panic!("{out:?}") };
    assert_eq!((last.1.value.as_f64(), last.1.status), (Some(2.0), StatusCode::GOOD));
    assert_eq!((end.1.source, end.1.status), (time(5), StatusCode::BAD_DATA_LOST));
    write(&space, 11, 3.0, 6);
    assert!(values(&mut recorder, 7).is_empty());
    assert_eq!((recorder.variables(), recorder.lost()), (0, 0));
    assert!(space.has_history(&id), "clients can read it");
    // It continues with the present value, which is known from now on.
    assert_eq!(change(&space, &[], &[below(&id, 0.0)]), [1, 0, 0]);
    assert_eq!(values(&mut recorder, 9), [(11, 6, Some(3.0))]);
    change(&space, std::slice::from_ref(&id), &[]);
    assert_eq!(values(&mut recorder, 20), [(11, 20, None)]);
    change_at(&space, &[], &[below(&id, 0.0)], 25);
    assert_eq!(values(&mut recorder, 30), [(11, 25, Some(3.0))]);
    // Stopped and started at once: nothing is missing.
    change(&space, std::slice::from_ref(&id), &[]);
    change(&space, &[], &[below(&id, 0.0)]);
    write(&space, 11, 4.0, 31);
    assert_eq!(values(&mut recorder, 32), [(11, 31, Some(4.0))]);
}

#[test]
fn histories_of_the_application_come_back() {
    let (space, mut recorder) = plant();
    let id = NodeId::numeric(1, 11);
    space.historize(&id, true, rule(7.0), time(0)).unwrap();
    assert_eq!(change(&space, &[], &[below(&ROOT, 0.0)]), [3, 0, 0]);
    // One that is given later stays.
    let later = NodeId::numeric(1, 12);
    space.historize(&later, false, rule(8.0), time(0)).unwrap();
    let rule_of = |id: &NodeId| {
        let nodes = space.read();
        nodes.history(nodes.find(id).unwrap()).unwrap().rule.deadband
    };
    assert_eq!((rule_of(&id), rule_of(&later)), (0.0, 8.0));
    assert_eq!(change(&space, &[ROOT], &[below(&ROOT, 1.0)]), [0, 2, 0]);
    values(&mut recorder, 1);
    assert_eq!(change(&space, &[ROOT], &[]), [0, 0, 2]);
    assert_eq!((rule_of(&id), rule_of(&later)), (7.0, 8.0));
    assert_eq!([11, 12, 21].map(|number| is_recorded(&space, number)), [true, true, false]);
    write(&space, 11, 100.0, 2);
    write(&space, 12, 100.0, 2);
    let mut found = values(&mut recorder, 3);
    found.sort_by_key(|one| one.0);
    assert_eq!(found, [(11, 2, Some(100.0)), (12, 2, Some(100.0)), (21, 3, None)]);
}

#[test]
fn a_missing_node_changes_nothing() {
    let (space, _recorder) = plant();
    let missing = NodeId::numeric(1, 99);
    change(&space, &[], &[below(&INNER, 0.0)]);
    let after = [below(&ROOT, 0.0), below(&missing, 0.0)];
    assert!(space.change_recorded(&[INNER], &after, time(0)).is_err());
    assert_eq!([11, 21].map(|number| is_recorded(&space, number)), [false, true]);
    // A known one may come back.
    space.delete_tree(&INNER, time(0));
    assert_eq!(change(&space, &[INNER], &[below(&INNER, 0.0)]), [0, 0, 0]);
    folder(&space, 2, &ROOT);
    variable(&space, 23, &INNER);
    assert!(is_recorded(&space, 23));
}

/// The recorder takes the order some hundred milliseconds later.
#[test]
fn a_write_after_the_start_stays_the_last_value() {
    let (space, mut recorder) = plant();
    let id = NodeId::numeric(1, 11);
    change(&space, &[], &[below(&id, 0.0)]);
    write(&space, 11, 3.0, 1);
    values(&mut recorder, 2);
    change(&space, std::slice::from_ref(&id), &[]);
    assert_eq!(values(&mut recorder, 10), [(11, 10, None)]);
    change_at(&space, &[], &[below(&id, 0.0)], 20);
    write(&space, 11, 4.0, 25);
    assert_eq!(values(&mut recorder, 30), [(11, 20, Some(3.0)), (11, 25, Some(4.0))]);
}

/// Between taking nodes and recording them, other subtrees may be set: rules have other numbers then.
#[test]
fn nodes_that_are_examined_meanwhile_follow_other_subtrees() {
    for is_kept in [false, true] {
        let (space, mut recorder) = plant();
        change(&space, &[], &[below(&INNER, 1.0)]);
        let other = folder(&space, 3, &OBJECTS);
        let (child, deeper) = (variable(&space, 31, &other), folder(&space, 4, &other));
        variable(&space, 41, &deeper);
        let mut taken = Vec::new();
        {
            let mut nodes = space.write();
            let [inner, other] = [&INNER, &other].map(|id| nodes.find(id).unwrap());
            nodes.add_reference(inner, NodeIx::ns0(reference_type_ids::ORGANIZES), other, true).unwrap();
            taken.extend(nodes.take_candidates(NODES_PER_LOCK));
            let mut next = Vec::new();
            super::super::below(&nodes, other, &mut |target| next.push((target, 0)));
            nodes.recorded.candidates.append(&mut next);
            taken.extend(nodes.take_candidates(NODES_PER_LOCK));
        }
        assert_eq!(taken.iter().map(|some| some.nodes.len()).collect::<Vec<_>>(), [1, 2]);
        let after = if is_kept { below(&INNER, 2.0) } else { below(&NodeId::numeric(1, 12), 2.0) };
        change(&space, &[INNER], &[after]);
        taken.into_iter().for_each(|some| space.examine(some, time(1)));
        take(&mut recorder, 1);
        take(&mut recorder, 2);
        for number in [31, 41] {
            assert_eq!(is_recorded(&space, number), is_kept, "{number}");
        }
        if is_kept {
            let nodes = space.read();
            let rule = nodes.history(nodes.find(&child).unwrap()).unwrap().rule;
            assert_eq!(rule.deadband, 2.0);
        }
    }
}
