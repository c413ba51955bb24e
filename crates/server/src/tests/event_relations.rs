//! InView and RelatedTo in the where clauses of event filters (Part 4 §7.7.3, §7.22.3), against an evaluator that
//! follows a plain list of references.

use super::events::{create, filter, item, next, parameters, subscription};
use super::*;
use crate::NewEvent;
use crate::authorization::{Decisions, Grant};
use crate::event::filter::EventFilter;
use crate::query::around::EventSurroundings;
use crate::space::NodeSpec;
use crate::space::build::Under;
use crate::space::node::NodeKind;
use proptest::prelude::*;
use schema::ids::{object_ids, object_type_ids, reference_type_ids as r};
use schema::{
    AttributeOperand, ContentFilter, ContentFilterElement, ContentFilterElementResult, ElementOperand,
    EventFilterResult, FilterOperator as Op, LiteralOperand,
};
use std::collections::BTreeSet;
use taktwerk_types::{ExtensionObject, QualifiedName, Variant};

const fn id(number: u32) -> NodeId {
    NodeId::numeric(1, number)
}

const SERVER: NodeId = NodeId::numeric(0, object_ids::SERVER);
/// A type, another one, and a subtype of the other one.
const TYPES: [NodeId; 3] = [id(10), id(11), id(12)];
/// A reference type, another one, and a subtype of the other one.
const REFERENCES: [NodeId; 3] = [id(1), id(2), id(3)];
/// The objects are from here on, the Views from 50 on.
const OBJECT: u32 = 100;
const VIEW: u32 = 50;

/// References between the nodes.
#[derive(Debug, Clone)]
struct World {
    /// The type of each object.
    kinds: Vec<usize>,
    /// Source, reference type, target.
    references: Vec<(usize, usize, usize)>,
    /// View and organized object.
    views: Vec<(usize, usize)>,
}

impl World {
    fn build(&self, space: &AddressSpace) {
        let add = |spec: NodeSpec, parent: NodeId, reference: u32, kind: Option<&NodeId>| {
            let under = Under {
                parent: &parent,
                reference_type: &NodeId::numeric(0, reference),
                type_definition: kind,
            };
            space.add_node(spec, under, UtcTime::NULL).unwrap();
        };
        let name = |text: &str| QualifiedName::new(1, text);
        let with = |node: &NodeId, kind| NodeSpec::with_kind(node.clone(), name(&node.to_string()), kind);
        let [one, two, sub] = &REFERENCES;
        let hierarchical = NodeId::numeric(0, r::HIERARCHICAL_REFERENCES);
        for (node, parent) in [(one, &hierarchical), (two, &hierarchical), (sub, two)] {
            add(with(node, NodeKind::ReferenceType(Box::default())), parent.clone(), r::HAS_SUBTYPE, None);
        }
        let [one, two, sub] = &TYPES;
        let base = NodeId::numeric(0, object_type_ids::BASE_OBJECT_TYPE);
        for (node, parent) in [(one, &base), (two, &base), (sub, two)] {
            add(
                with(node, NodeKind::ObjectType { is_abstract: false }),
                parent.clone(),
                r::HAS_SUBTYPE,
                None,
            );
        }
        for (at, kind) in self.kinds.iter().enumerate() {
            let node = id(OBJECT + at as u32);
            let spec = NodeSpec::object(node.clone(), name(&node.to_string()));
            add(spec, NodeId::numeric(0, object_ids::OBJECTS_FOLDER), r::ORGANIZES, Some(&TYPES[*kind]));
        }
        for view in 0..2 {
            let kind = NodeKind::View { event_notifier: 0, contains_no_loops: false };
            let parent = NodeId::numeric(0, object_ids::VIEWS_FOLDER);
            add(with(&id(VIEW + view), kind), parent, r::ORGANIZES, None);
        }
        let object = |at: usize| id(OBJECT + at as u32);
        for (from, kind, to) in &self.references {
            space.add_reference(&object(*from), &REFERENCES[*kind], &object(*to)).unwrap();
        }
        for (view, at) in &self.views {
            let organizes = NodeId::numeric(0, r::ORGANIZES);
            space.add_reference(&id(VIEW + *view as u32), &organizes, &object(*at)).unwrap();
        }
    }

    fn is_a(&self, object: usize, kind: usize, with_subtypes: bool) -> bool {
        self.kinds[object] == kind || (with_subtypes && kind == 1 && self.kinds[object] == 2)
    }

    /// The targets of an object's references with a type, with or without subtypes.
    fn targets(&self, from: usize, kind: usize, with_subtypes: bool) -> BTreeSet<usize> {
        let fits = |other: usize| other == kind || (with_subtypes && kind == 1 && other == 2);
        self.references.iter().filter(|it| it.0 == from && fits(it.1)).map(|it| it.2).collect()
    }

    fn is_in_view(&self, view: usize, object: usize) -> bool {
        let mut reached: BTreeSet<usize> =
            self.views.iter().filter(|it| it.0 == view).map(|it| it.1).collect();
        loop {
            let more: BTreeSet<usize> = self
                .references
                .iter()
                .filter(|it| reached.contains(&it.0))
                .map(|it| it.2)
                .chain(reached.iter().copied())
                .collect();
            if more == reached {
                return reached.contains(&object);
            }
            reached = more;
        }
    }
}

/// An element of a filter.
#[derive(Debug, Clone)]
enum Spec {
    Related {
        source: usize,
        target: Result<usize, usize>,
        reference: usize,
        hops: usize,
        flags: Option<(bool, bool)>,
    },
    InView(usize),
    And(usize, usize),
    Or(usize, usize),
    Not(usize),
}

fn literal(value: impl Into<Variant>) -> ExtensionObject {
    ExtensionObject::new(&LiteralOperand { value: value.into() })
}

fn element(index: usize) -> ExtensionObject {
    ExtensionObject::new(&ElementOperand { index: index as u32 })
}

fn row(filter_operator: Op, filter_operands: Vec<ExtensionObject>) -> ContentFilterElement {
    ContentFilterElement { filter_operator, filter_operands }
}

impl Spec {
    fn to_wire(&self) -> ContentFilterElement {
        match self {
            Self::Related { source, target, reference, hops, flags } => {
                let target = match target {
                    Ok(kind) => literal(TYPES[*kind].clone()),
                    Err(at) => element(*at),
                };
                let mut operands = vec![
                    literal(TYPES[*source].clone()),
                    target,
                    literal(REFERENCES[*reference].clone()),
                    literal(*hops as u32),
                ];
                if let Some((types, references)) = flags {
                    operands.extend([literal(*types), literal(*references)]);
                }
                row(Op::RELATED_TO, operands)
            }
            Self::InView(view) => row(Op::IN_VIEW, vec![literal(id(VIEW + *view as u32))]),
            Self::And(one, other) => row(Op::AND, vec![element(*one), element(*other)]),
            Self::Or(one, other) => row(Op::OR, vec![element(*one), element(*other)]),
            Self::Not(one) => row(Op::NOT, vec![element(*one)]),
        }
    }

    /// Whether it holds for an object.
    fn holds(&self, world: &World, all: &[Self], object: usize) -> bool {
        match self {
            Self::Related { source, target, reference, hops, flags } => {
                let (types, references) = flags.unwrap_or((true, true));
                let step = |level: &BTreeSet<usize>| -> BTreeSet<usize> {
                    level.iter().flat_map(|at| world.targets(*at, *reference, references)).collect()
                };
                let mut level = BTreeSet::from([object]);
                let mut reached = BTreeSet::new();
                for _ in 0..if *hops == 0 { 20 } else { *hops } {
                    level = step(&level);
                    reached.extend(level.iter().copied());
                }
                let ends = if *hops == 0 { reached } else { level };
                world.is_a(object, *source, types)
                    && ends.into_iter().any(|end| match target {
                        Ok(kind) => world.is_a(end, *kind, types),
                        Err(at) => all[*at].holds(world, all, end),
                    })
            }
            Self::InView(view) => world.is_in_view(*view, object),
            Self::And(one, other) => {
                all[*one].holds(world, all, object) && all[*other].holds(world, all, object)
            }
            Self::Or(one, other) => {
                all[*one].holds(world, all, object) || all[*other].holds(world, all, object)
            }
            Self::Not(one) => !all[*one].holds(world, all, object),
        }
    }
}

fn any_world() -> impl Strategy<Value = World> {
    (2usize..7).prop_flat_map(|count| {
        let references = proptest::collection::btree_set((0..count, 0usize..3, 0..count), 0..12);
        let views = proptest::collection::btree_set((0usize..2, 0..count), 0..4);
        (proptest::collection::vec(0usize..3, count), references, views).prop_map(
            |(kinds, references, views)| World {
                kinds,
                references: references.into_iter().collect(),
                views: views.into_iter().collect(),
            },
        )
    })
}

fn any_spec(at: usize, count: usize) -> BoxedStrategy<Spec> {
    let related = |target: BoxedStrategy<Result<usize, usize>>| {
        let flags = proptest::option::of((any::<bool>(), any::<bool>()));
        (0usize..3, target, 0usize..3, 0usize..4, flags).prop_map(
            |(source, target, reference, hops, flags)| Spec::Related {
                source,
                target,
                reference,
                hops,
                flags,
            },
        )
    };
    let kind = (0usize..3).prop_map(Ok).boxed();
    let view = (0usize..2).prop_map(Spec::InView);
    let later = at + 1..count;
    if later.is_empty() {
        return prop_oneof![related(kind), view].boxed();
    }
    let target = prop_oneof![kind, later.clone().prop_map(Err)].boxed();
    prop_oneof![
        3 => related(target),
        1 => view,
        1 => (later.clone(), later.clone()).prop_map(|(one, other)| Spec::And(one, other)),
        1 => (later.clone(), later.clone()).prop_map(|(one, other)| Spec::Or(one, other)),
        1 => later.prop_map(Spec::Not),
    ]
    .boxed()
}

fn any_specs() -> impl Strategy<Value = Vec<Spec>> {
    (1usize..5).prop_flat_map(|count| (0..count).map(|at| any_spec(at, count)).collect::<Vec<_>>())
}

type Compiled = Result<EventFilter, (StatusCode, Option<EventFilterResult>)>;

fn compile(space: &AddressSpace, elements: Vec<ContentFilterElement>) -> Compiled {
    let wire = schema::EventFilter { where_clause: ContentFilter { elements }, ..filter(&["Severity"]) };
    let limits = crate::Limits::default();
    let range = |text: &str| limits.index_range(text);
    EventFilter::compile(&wire, &*space.read(), limits.event_filter(), &range).map(|(filter, _)| filter)
}

fn results(compiled: Compiled) -> Vec<ContentFilterElementResult> {
    let (status, result) = compiled.unwrap_err();
    assert_eq!(status, StatusCode::BAD_EVENT_FILTER_INVALID);
    result.unwrap().where_clause_result.element_results
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn relations_and_views_of_the_source_agree_with_the_naive_evaluator(
        world in any_world(),
        specs in any_specs(),
    ) {
        let space = AddressSpace::new(1, 16, APPLICATION);
        world.build(&space);
        let grant = Grant::new([], taktwerk_crypto::MessageSecurityMode::None);
        let decisions = Decisions::new(space.read().access(), grant);
        let now = Now { instant: Instant::ZERO, utc: UtcTime::NULL };
        let compiled = compile(&space, specs.iter().map(Spec::to_wire).collect());
        // The target of a relation is a type or a relation.
        let is_relation = |at: &usize| matches!(specs[*at], Spec::Related { .. });
        let wrong = specs.iter().position(|spec| {
            matches!(spec, Spec::Related { target: Err(at), .. } if !is_relation(at))
        });
        if let Some(wrong) = wrong {
            let result = &results(compiled)[wrong];
            prop_assert_eq!(result.status_code, StatusCode::BAD_FILTER_OPERAND_INVALID);
            prop_assert_eq!(result.operand_status_codes[1], StatusCode::BAD_FILTER_ELEMENT_INVALID);
            return Ok(());
        }
        let compiled = compiled.unwrap();
        for object in 0..world.kinds.len() {
            let source = id(OBJECT + object as u32);
            let new = NewEvent::new(NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE), source);
            let event = space.shared_event(new, UtcTime::NULL);
            let around = EventSurroundings::new(&space, &decisions, now);
            let expected = specs[0].holds(&world, &specs, object);
            prop_assert_eq!(compiled.passes(&event, &around), expected, "object {}", object);
        }
    }
}

fn line() -> World {
    World { kinds: vec![0, 1, 2], references: vec![(0, 2, 1), (1, 0, 2)], views: vec![(0, 0)] }
}

#[test]
fn errors_are_reported_for_each_operand() {
    let space = AddressSpace::new(1, 16, APPLICATION);
    line().build(&space);
    let operands = || {
        vec![
            literal(TYPES[0].clone()),
            literal(TYPES[1].clone()),
            literal(REFERENCES[0].clone()),
            literal(1u32),
        ]
    };
    let of = |element| results(compile(&space, vec![element])).remove(0);
    let related = |change: &dyn Fn(&mut Vec<ExtensionObject>)| {
        let mut operands = operands();
        change(&mut operands);
        let result = of(row(Op::RELATED_TO, operands));
        (result.status_code, result.operand_status_codes)
    };
    let mismatch = StatusCode::BAD_FILTER_OPERAND_COUNT_MISMATCH;
    assert_eq!(related(&|operands| drop(operands.pop())), (mismatch, vec![]));
    assert_eq!(
        related(&|operands| operands.extend([literal(true), literal(true), literal(true)])),
        (mismatch, vec![])
    );
    let invalid = StatusCode::BAD_FILTER_OPERAND_INVALID;
    let by_name = ExtensionObject::new(&AttributeOperand {
        node_id: TYPES[0].clone(),
        attribute_id: 1,
        ..Default::default()
    });
    for (at, operand, status) in [
        // §7.22.3: an AttributeOperand may not be used in an EventFilter.
        (0, by_name.clone(), invalid),
        (0, literal(NodeId::NULL), StatusCode::BAD_NODE_ID_INVALID),
        (0, literal(id(999)), StatusCode::BAD_NODE_ID_UNKNOWN),
        (1, literal(REFERENCES[0].clone()), StatusCode::BAD_NOT_TYPE_DEFINITION),
        (1, literal(5u32), invalid),
        (2, literal(TYPES[0].clone()), StatusCode::BAD_REFERENCE_TYPE_ID_INVALID),
        (3, literal("many"), invalid),
        (3, literal(65u32), StatusCode::BAD_QUERY_TOO_COMPLEX),
    ] {
        let (element, statuses) = related(&|operands| operands[at] = operand.clone());
        let mut expected = vec![StatusCode::GOOD; 4];
        expected[at] = status;
        assert_eq!((element, statuses), (invalid, expected));
    }
    assert_eq!(related(&|operands| operands[1] = element(7)).0, StatusCode::BAD_FILTER_ELEMENT_INVALID);
    let in_view = |operands: Vec<ExtensionObject>| {
        let result = of(row(Op::IN_VIEW, operands));
        (result.status_code, result.operand_status_codes)
    };
    assert_eq!(in_view(vec![]), (mismatch, vec![]));
    assert_eq!(in_view(vec![by_name]), (invalid, vec![invalid]));
    assert_eq!(in_view(vec![literal("V")]), (invalid, vec![StatusCode::BAD_FILTER_LITERAL_INVALID]));
    // §7.7.3: a node that is not a View gives false, not an error.
    assert!(compile(&space, vec![row(Op::IN_VIEW, vec![literal(TYPES[0].clone())])]).is_ok());
    // A relation that refers to itself.
    let looped = row(Op::RELATED_TO, {
        let mut operands = operands();
        operands[1] = element(0);
        operands
    });
    let (status, _) = compile(&space, vec![looped]).unwrap_err();
    assert_eq!(status, StatusCode::BAD_EVENT_FILTER_INVALID);
}

#[test]
fn clients_receive_the_events_of_a_view() {
    let mut server = Server::new();
    line().build(&server.space);
    let mut client = server.session();
    let subscription_id = subscription(&mut client, &mut server);
    let elements = vec![Spec::InView(0).to_wire()];
    let wanted = schema::EventFilter { where_clause: ContentFilter { elements }, ..filter(&["SourceNode"]) };
    let result = create(&mut client, &mut server, subscription_id, item(SERVER, parameters(&wanted, 0)));
    assert_eq!(result.status_code, StatusCode::GOOD);
    let raise = |server: &Server, source: NodeId| {
        let event = NewEvent::new(NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE), source);
        server.space.raise(event, server.now.utc);
    };
    let sources = [id(OBJECT), SERVER, id(OBJECT + 2), id(4711)];
    sources.iter().for_each(|source| raise(&server, source.clone()));
    let told: Vec<Variant> =
        next(&mut client, &mut server).into_iter().map(|(_, mut fields)| fields.remove(0)).collect();
    assert_eq!(told, [Variant::from(id(OBJECT)), Variant::from(id(OBJECT + 2))]);
    // The View is deleted and added again with other nodes.
    server.space.delete_node(&id(VIEW)).unwrap();
    raise(&server, id(OBJECT));
    assert!(next(&mut client, &mut server).is_empty());
}

#[test]
fn costly_relations_use_a_bounded_turn() {
    // Every object refers to every other one.
    const COUNT: usize = 60;
    let all = (0..COUNT).flat_map(|from| (0..COUNT).map(move |to| (from, 0, to)));
    let world = World { kinds: vec![0; COUNT], references: all.collect(), views: Vec::new() };
    let mut server = Server::new();
    world.build(&server.space);
    let mut client = server.session();
    let subscription_id = subscription(&mut client, &mut server);
    // Each hop examines 3 600 references; no object has the last type.
    let related = Spec::Related { source: 0, target: Ok(2), reference: 0, hops: 3, flags: None }.to_wire();
    let wanted = schema::EventFilter {
        where_clause: ContentFilter { elements: vec![related] },
        ..filter(&["Severity"])
    };
    for _ in 0..50 {
        let result = create(&mut client, &mut server, subscription_id, item(SERVER, parameters(&wanted, 0)));
        assert_eq!(result.status_code, StatusCode::GOOD);
    }
    let event = NewEvent::new(NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE), id(OBJECT));
    server.space.raise(event, server.now.utc);
    let end = server.now.instant + Duration::from_millis(300);
    let (mut most, mut sum) = (0, 0);
    server.shard.take_work();
    while let Some((at, _)) = server.shard.poll_timeout().filter(|(at, _)| *at <= end) {
        server.now.instant = at.max(server.now.instant);
        server.shard.timer(server.now);
        let asked = server.shard.take_work().items_walked;
        (most, sum) = (most.max(asked), sum + asked);
    }
    // An evaluation with thousands of references uses up a whole turn.
    assert_eq!((most, sum), (1, 50));
}
