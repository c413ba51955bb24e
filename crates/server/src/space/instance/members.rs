//! The members that types declare for their instances (InstanceDeclarations, Part 3 §6.2.6), and the cost of collecting
//! them.

use crate::space::NodeIx;
use crate::space::error::NodeError;
use crate::space::nodes::Nodes;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use taktwerk_schema::ids::{object_ids, reference_type_ids};
use taktwerk_types::QualifiedName;

/// Maximum number of references and members that are looked at for one operation of a client, with [`text_cost`] for what is
/// copied: the nodes are locked meanwhile.
const CLIENT_LOOKED_AT_MAX: usize = 500_000;

/// The cost of copying a text, in references: names have up to 512 bytes.
pub(super) const fn text_cost(len: usize) -> usize {
    len / 64
}

/// A member of an instance, collected from its types.
pub(super) struct Member {
    pub(super) declaration: NodeIx,
    /// Declarations of the same name that it overrides; their children are inherited.
    pub(super) overridden: Vec<NodeIx>,
    pub(super) reference_type: NodeIx,
    pub(super) name: QualifiedName,
    pub(super) is_mandatory: bool,
}

/// What the references of one node declare.
struct Declared {
    supertype: Option<NodeIx>,
    interfaces: Vec<NodeIx>,
    members: Vec<Declaration>,
    /// The cost of collecting them once.
    cost: usize,
}

struct Declaration {
    node: NodeIx,
    reference_type: NodeIx,
    name: QualifiedName,
    is_mandatory: bool,
}

/// One operation's walk through the members of types: what it has looked at, and what it need not look at again.
pub(crate) struct Walk {
    looked_at: usize,
    max: usize,
    declared: BTreeMap<NodeIx, Rc<Declared>>,
    entered: BTreeSet<(NodeIx, Vec<NodeIx>)>,
}

impl Walk {
    /// A walk for an operation of a client.
    pub(crate) fn of_client() -> Self {
        Self::up_to(CLIENT_LOOKED_AT_MAX)
    }

    /// A walk for the application.
    pub(crate) fn unlimited() -> Self {
        Self::up_to(usize::MAX)
    }

    pub(crate) fn up_to(max: usize) -> Self {
        Self { looked_at: 0, max, declared: BTreeMap::new(), entered: BTreeSet::new() }
    }

    /// Number of references and members looked at.
    pub(crate) fn looked_at(&self) -> usize {
        self.looked_at
    }

    /// Forgets which nodes were entered.
    pub(super) fn start(&mut self) {
        self.entered.clear();
    }

    /// Whether the members of these sources were not yet compared with this node.
    pub(super) fn enters(&mut self, node: NodeIx, sources: &[NodeIx]) -> bool {
        self.entered.insert((node, sources.to_vec()))
    }

    /// Counts what is looked at.
    ///
    /// # Errors
    /// The limit of the walk.
    pub(super) fn look(&mut self, count: usize) -> Result<(), NodeError> {
        self.looked_at = self.looked_at.saturating_add(count);
        if self.looked_at > self.max { Err(NodeError::InstanceTooLarge(self.max)) } else { Ok(()) }
    }

    /// What a node declares. Its references are looked at once.
    fn declared(&mut self, nodes: &Nodes, ix: NodeIx) -> Result<Rc<Declared>, NodeError> {
        if let Some(known) = self.declared.get(&ix) {
            return Ok(Rc::clone(known));
        }
        let mut declared = Declared { supertype: None, interfaces: Vec::new(), members: Vec::new(), cost: 0 };
        let mut result = self.look(nodes.reference_count(ix));
        nodes.references(ix, |reference| {
            if result.is_err() {
                return false;
            }
            let kind = reference.reference_type;
            if kind == NodeIx::ns0(reference_type_ids::HAS_SUBTYPE) {
                if !reference.is_forward && declared.supertype.is_none() {
                    declared.supertype = Some(reference.target);
                }
            } else if reference.is_forward {
                if nodes.is_subtype(kind, NodeIx::ns0(reference_type_ids::HAS_INTERFACE)) {
                    declared.interfaces.push(reference.target);
                } else if nodes.is_subtype(kind, NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES)) {
                    result = self.look(nodes.reference_count(reference.target));
                    declared.members.extend(declaration(nodes, kind, reference.target));
                }
            }
            true
        });
        result?;
        let names = declared.members.iter().map(|member| 1 + text_cost(member.name.name.as_str().len()));
        declared.cost = 1 + declared.interfaces.len() + names.sum::<usize>();
        let declared = Rc::new(declared);
        self.declared.insert(ix, Rc::clone(&declared));
        Ok(declared)
    }

    /// What each source and its supertypes declare, then the interfaces of all of them (Part 3 §4.10).
    fn with_supertypes(&mut self, nodes: &Nodes, sources: &[NodeIx]) -> Result<Vec<Rc<Declared>>, NodeError> {
        let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
        let mut sources = sources.to_vec();
        while !sources.is_empty() {
            let mut interfaces = Vec::new();
            for source in sources {
                let mut next = Some(source);
                while let Some(ix) = next.filter(|ix| seen.insert(*ix)) {
                    let declared = self.declared(nodes, ix)?;
                    self.look(declared.cost)?;
                    next = declared.supertype;
                    interfaces.extend_from_slice(&declared.interfaces);
                    all.push(declared);
                }
            }
            sources = interfaces;
        }
        Ok(all)
    }
}

/// A child of a declaration or type, if a ModellingRule makes it a member of instances.
fn declaration(nodes: &Nodes, reference_type: NodeIx, child: NodeIx) -> Option<Declaration> {
    let mandatory = NodeIx::ns0(object_ids::MODELLING_RULE_MANDATORY);
    let optional = NodeIx::ns0(object_ids::MODELLING_RULE_OPTIONAL);
    let rule = nodes.forward_target(child, reference_type_ids::HAS_MODELLING_RULE)?;
    if rule != mandatory && rule != optional {
        return None;
    }
    let name = nodes.view(child)?.browse_name();
    Some(Declaration { node: child, reference_type, name, is_mandatory: rule == mandatory })
}

/// The members of declarations and types. Earlier sources override later ones by BrowseName (Part 3 §6.3.3.3).
///
/// # Errors
/// The limit of the walk.
pub(super) fn members(nodes: &Nodes, sources: &[NodeIx], walk: &mut Walk) -> Result<Vec<Member>, NodeError> {
    let mut names = BTreeMap::new();
    let mut found: Vec<Member> = Vec::new();
    let all = walk.with_supertypes(nodes, sources)?;
    for declaration in all.iter().flat_map(|declared| &declared.members) {
        let known = *names.entry(&declaration.name).or_insert(found.len());
        if let Some(known) = found.get_mut(known) {
            known.overridden.push(declaration.node);
            continue;
        }
        found.push(Member {
            declaration: declaration.node,
            overridden: Vec::new(),
            reference_type: declaration.reference_type,
            name: declaration.name.clone(),
            is_mandatory: declaration.is_mandatory,
        });
    }
    Ok(found)
}

/// The nodes that declare the members of a member: its declaration, that one's type, and the declarations it overrides.
pub(super) fn sources_of(nodes: &Nodes, member: &Member) -> Vec<NodeIx> {
    let kind = nodes.forward_target(member.declaration, reference_type_ids::HAS_TYPE_DEFINITION);
    core::iter::once(member.declaration).chain(kind).chain(member.overridden.iter().copied()).collect()
}

/// Whether instances of a type have mandatory members.
///
/// # Errors
/// The limit of the walk.
pub(crate) fn has_mandatory_members(
    nodes: &Nodes,
    type_definition: NodeIx,
    walk: &mut Walk,
) -> Result<bool, NodeError> {
    Ok(members(nodes, &[type_definition], walk)?.iter().any(|member| member.is_mandatory))
}
