//! A candidate in the filter: its attributes, and those of nodes that a RelatedTo leads to.
//!
//! A RelatedTo holds if it leads to at least one node. Operands that name this node's type, or the alias of the
//! RelatedTo, refer to the node. So a candidate passes if the filter is true for one choice of such nodes.

use super::plan::{Field, Plan};
use super::{Access, data};
use crate::content_filter::Evaluate;
use crate::content_filter::relation::{Relation, Target};
use crate::space::NodeIx;
use std::borrow::Cow;
use std::collections::BTreeSet;
use taktwerk_schema::PermissionType;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_types::{StatusCode, Variant};

/// Maximum number of choices of related nodes for one candidate; beyond: Bad_QueryTooComplex.
const CHOICES_MAX: usize = 1024;

/// A node that a relation leads to.
#[derive(Debug, Clone, Copy)]
struct Bound {
    /// The number of the relation.
    relation: usize,
    node: NodeIx,
}

/// One way to satisfy a relation and the relations nested in it.
type Chain = Vec<Bound>;

/// A candidate with a choice of related nodes.
struct Subject<'a> {
    plan: &'a Plan,
    access: Access<'a>,
    candidate: NodeIx,
    kind: NodeIx,
    bound: &'a [Bound],
}

/// Whether a candidate passes the filter.
///
/// # Errors
/// Bad_QueryTooComplex
pub(super) fn passes(
    plan: &Plan,
    access: Access<'_>,
    candidate: NodeIx,
    kind: NodeIx,
) -> Result<bool, StatusCode> {
    let mut choices: Vec<Vec<Chain>> = Vec::new();
    let mut count = 1usize;
    for (number, relation) in plan.operands.relations.iter().enumerate() {
        if relation.is_nested {
            continue;
        }
        let mut chains = chains(&plan.operands.relations, access, number, relation, candidate)?;
        if chains.is_empty() {
            // It does not hold: no node is bound.
            chains.push(Vec::new());
        }
        count = count.saturating_mul(chains.len());
        choices.push(chains);
    }
    if count > CHOICES_MAX {
        return Err(StatusCode::BAD_QUERY_TOO_COMPLEX);
    }
    for number in 0..count {
        let mut rest = number;
        let mut bound = Vec::new();
        for chains in &choices {
            bound.extend(chains.get(rest % chains.len()).into_iter().flatten().copied());
            rest /= chains.len();
        }
        let subject = Subject { plan, access, candidate, kind, bound: &bound };
        let is_passed = plan.filter.passes(&subject);
        if access.is_exhausted() {
            return Err(StatusCode::BAD_QUERY_TOO_COMPLEX);
        }
        if is_passed {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a relation holds for a node.
///
/// # Errors
/// Bad_QueryTooComplex if a limit is exceeded.
pub(crate) fn is_related(
    relations: &[Relation],
    access: Access<'_>,
    number: usize,
    from: NodeIx,
) -> Result<bool, StatusCode> {
    let Some(relation) = relations.get(number) else { return Ok(false) };
    if !is_instance(access, from, relation.source, relation.include_subtypes) {
        return Ok(false);
    }
    for node in targets(access, relation, from)? {
        let holds = match relation.target {
            Target::Type(kind) => is_instance(access, node, kind, relation.include_subtypes),
            Target::Element(element) => {
                let nested = relations.iter().position(|nested| nested.element == element);
                // Elements never form a loop, so the recursion ends.
                is_related(relations, access, nested.ok_or(StatusCode::BAD_INTERNAL_ERROR)?, node)?
            }
        };
        if access.is_exhausted() {
            return Err(StatusCode::BAD_QUERY_TOO_COMPLEX);
        }
        if holds {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The ways to satisfy a relation from a node.
fn chains(
    relations: &[Relation],
    access: Access<'_>,
    number: usize,
    relation: &Relation,
    from: NodeIx,
) -> Result<Vec<Chain>, StatusCode> {
    if !is_instance(access, from, relation.source, relation.include_subtypes) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for node in targets(access, relation, from)? {
        let bound = Bound { relation: number, node };
        match relation.target {
            Target::Type(kind) if is_instance(access, node, kind, relation.include_subtypes) => {
                found.push(vec![bound]);
            }
            Target::Type(_) => {}
            Target::Element(element) => {
                let mut nested = relations.iter().enumerate();
                let nested = nested.find(|(_, nested)| nested.element == element);
                // Elements never form a loop, so the recursion ends.
                let (number, nested) = nested.ok_or(StatusCode::BAD_INTERNAL_ERROR)?;
                for mut chain in chains(relations, access, number, nested, node)? {
                    chain.insert(0, bound);
                    found.push(chain);
                }
            }
        }
        if found.len() > CHOICES_MAX || access.is_exhausted() {
            return Err(StatusCode::BAD_QUERY_TOO_COMPLEX);
        }
    }
    Ok(found)
}

/// The nodes at the end of a relation's hops (Part 4 §7.7.3): exactly `hops` away, or all reachable ones.
fn targets(access: Access<'_>, relation: &Relation, from: NodeIx) -> Result<Vec<NodeIx>, StatusCode> {
    let mut level = vec![from];
    let mut reached = BTreeSet::new();
    let mut hop = 0;
    while !level.is_empty() && (relation.hops == 0 || hop < relation.hops) {
        let mut next = BTreeSet::new();
        for node in level {
            related(access, relation, node, |target| {
                if relation.hops > 0 || reached.insert(target) {
                    next.insert(target);
                }
            });
            if access.is_exhausted() {
                return Err(StatusCode::BAD_QUERY_TOO_COMPLEX);
            }
        }
        level = next.into_iter().collect();
        hop += 1;
    }
    Ok(if relation.hops == 0 { reached.into_iter().collect() } else { level })
}

/// Calls `each` with the nodes that a relation's references lead to.
fn related(access: Access<'_>, relation: &Relation, node: NodeIx, mut each: impl FnMut(NodeIx)) {
    let Access { nodes, decisions, .. } = access;
    nodes.references(node, |reference| {
        access.follow(1);
        let is_kind = if relation.include_reference_subtypes {
            nodes.is_subtype(reference.reference_type, relation.reference_type)
        } else {
            reference.reference_type == relation.reference_type
        };
        // Nodes that the session cannot browse are treated as missing.
        if is_kind
            && reference.is_forward
            && decisions.allows(nodes, reference.target, PermissionType::BROWSE)
        {
            each(reference.target);
        }
        !access.is_exhausted()
    });
}

/// Whether a node is an instance of a type, or of one of its subtypes.
fn is_instance(access: Access<'_>, node: NodeIx, kind: NodeIx, include_subtypes: bool) -> bool {
    let Access { nodes, .. } = access;
    access.follow(1);
    match nodes.forward_target(node, reference_type_ids::HAS_TYPE_DEFINITION) {
        Some(own) if include_subtypes => nodes.is_subtype(own, kind),
        Some(own) => own == kind,
        None => false,
    }
}

impl Subject<'_> {
    fn relation(&self, bound: &Bound) -> Option<&Relation> {
        self.plan.operands.relations.get(bound.relation)
    }

    /// The node whose attribute an operand names.
    fn node(&self, field: &Field) -> Option<NodeIx> {
        if !field.alias.is_empty() {
            let is_it =
                |bound: &&Bound| self.relation(bound).is_some_and(|relation| relation.alias == field.alias);
            if let Some(bound) = self.bound.iter().find(is_it) {
                return Some(bound.node);
            }
        }
        if self.access.nodes.is_subtype(self.kind, field.kind) {
            return Some(self.candidate);
        }
        let is_it = |bound: &&Bound| is_instance(self.access, bound.node, field.kind, true);
        self.bound.iter().find(is_it).map(|bound| bound.node)
    }
}

impl Evaluate<NodeIx> for Subject<'_> {
    fn field(&self, number: u32) -> Cow<'_, Variant> {
        let value = || {
            let field = self.plan.operands.fields.get(number as usize)?;
            let start = self.node(field)?;
            let found = data::follow(self.access, start, &field.data.path).ok()?;
            // An unreadable value is null, like a missing one, so that a filter cannot reveal values.
            data::read(self.access, *found.first()?, field.data.attribute_id, field.data.range.as_ref()).ok()
        };
        Cow::Owned(value().unwrap_or_default())
    }

    fn is_of_type(&self, kind: &NodeIx) -> bool {
        self.access.nodes.is_subtype(self.kind, *kind)
    }

    fn is_related(&self, number: u32) -> Option<bool> {
        Some(self.bound.iter().any(|bound| bound.relation == number as usize))
    }

    fn is_in_view(&self, number: u32) -> Option<bool> {
        let view = self.plan.operands.views.get(number as usize)?;
        let (is_in_view, followed) = self.access.nodes.is_in_view(*view, self.candidate);
        self.access.follow(followed);
        Some(is_in_view)
    }

    fn spend(&self, steps: usize) -> bool {
        self.access.follow(super::references(steps));
        !self.access.is_exhausted()
    }

    fn left(&self) -> usize {
        self.access.left()
    }
}
