//! The nodes of all files, by namespace URI instead of index.

use super::{EventTypesError, text_of};
use crate::model::{Node, NodeClass, NodeSet};
use std::collections::BTreeMap;
use taktwerk_types::{Identifier, NodeId};

const UA: &str = "http://opcfoundation.org/UA/";
const HAS_SUBTYPE: u32 = 45;
const HAS_MODELLING_RULE: u32 = 37;
/// HasComponent, HasOrderedComponent, HasProperty.
const CHILDREN: [u32; 3] = [47, 49, 46];
/// Maximum length of a supertype chain; protects against circles.
const ANCESTORS_MAX: usize = 64;

/// The id of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) uri: String,
    pub(super) identifier: Identifier,
}

impl Id {
    pub(super) fn ns0(id: u32) -> Self {
        Self { uri: UA.to_owned(), identifier: Identifier::Numeric(id) }
    }

    /// The numeric id, for namespace 0.
    pub(super) fn number(&self) -> Option<u32> {
        match self.identifier {
            Identifier::Numeric(number) if self.uri == UA => Some(number),
            _ => None,
        }
    }
}

/// The data needed of a node.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Entry {
    /// Its BrowseName, with the URI of its namespace.
    pub(super) name: (String, String),
    pub(super) symbolic_name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) is_object_type: bool,
    pub(super) is_abstract: bool,
    /// Whether it is an Object or Variable.
    pub(super) is_instance: bool,
    /// DataType and ValueRank of a Variable.
    pub(super) value: Option<(Id, i32)>,
    pub(super) supertype: Option<Id>,
    pub(super) rule: Option<Id>,
    pub(super) children: Vec<Id>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    entries: BTreeMap<Id, Entry>,
}

impl Model {
    pub(super) fn add(&mut self, set: &NodeSet) {
        let uri = |index: u16| set.namespace_uris.get(usize::from(index)).cloned().unwrap_or_default();
        let id = |node: &NodeId| Id { uri: uri(node.namespace_index), identifier: node.identifier.clone() };
        for node in &set.nodes {
            let this = id(&node.node_id);
            let name = (uri(node.browse_name.namespace_index), node.browse_name.name.as_str().to_owned());
            let entry = self.entries.entry(this.clone()).or_default();
            *entry = Entry {
                name,
                symbolic_name: node.symbolic_name.clone(),
                description: description(node),
                // Keep references that other nodes have added before.
                supertype: entry.supertype.take(),
                children: core::mem::take(&mut entry.children),
                ..of_class(&node.class, &id)
            };
            for reference in &node.references {
                let target = id(&reference.target);
                let kind = id(&reference.reference_type).number();
                let (from, to) = if reference.is_forward { (&this, target) } else { (&target, this.clone()) };
                self.refer(from, kind, to);
            }
        }
    }

    fn refer(&mut self, from: &Id, kind: Option<u32>, to: Id) {
        match kind {
            Some(HAS_SUBTYPE) => self.entries.entry(to).or_default().supertype = Some(from.clone()),
            Some(HAS_MODELLING_RULE) => self.entries.entry(from.clone()).or_default().rule = Some(to),
            Some(kind) if CHILDREN.contains(&kind) => {
                let children = &mut self.entries.entry(from.clone()).or_default().children;
                if !children.contains(&to) {
                    children.push(to);
                }
            }
            _ => {}
        }
    }

    #[cfg(feature = "schema")]
    pub(super) fn add_namespace_zero(&mut self) {
        use taktwerk_schema::NodeClass as Class;
        for node in taktwerk_schema::ns0::Ns0::get().nodes() {
            let value = node.data_type().filter(|_| node.class() == Class::VARIABLE);
            let this = Id::ns0(node.id());
            let entry = Entry {
                name: (UA.to_owned(), node.browse_name().to_owned()),
                description: node.description().map(str::to_owned),
                is_object_type: node.class() == Class::OBJECT_TYPE,
                is_abstract: node.is_abstract(),
                is_instance: matches!(node.class(), Class::OBJECT | Class::VARIABLE),
                value: value.map(|data_type| (Id::ns0(data_type), node.value_rank())),
                ..Entry::default()
            };
            let known = self.entries.remove(&this).unwrap_or_default();
            let entry =
                Entry { supertype: known.supertype, children: known.children, rule: known.rule, ..entry };
            self.entries.insert(this.clone(), entry);
            for reference in node.references().filter(|reference| reference.is_forward) {
                self.refer(&this, Some(reference.reference_type), Id::ns0(reference.target));
            }
            if let Some(supertype) = node.supertype() {
                self.refer(&Id::ns0(supertype), Some(HAS_SUBTYPE), this);
            }
        }
    }

    pub(super) fn get(&self, id: &Id, of: &str) -> Result<&Entry, EventTypesError> {
        // Nodes that are only referred to have no name.
        self.entries.get(id).filter(|entry| !entry.name.1.is_empty()).ok_or_else(|| {
            EventTypesError::Missing { of: of.to_owned(), id: text_of(&id.identifier), uri: id.uri.clone() }
        })
    }

    pub(super) fn object_types<'a>(&'a self, uri: &'a str) -> impl Iterator<Item = &'a Id> {
        self.entries.iter().filter(move |(id, entry)| id.uri == uri && entry.is_object_type).map(|(id, _)| id)
    }

    /// A type and its supertypes.
    pub(super) fn ancestors(&self, id: &Id) -> Result<Vec<Id>, EventTypesError> {
        let mut found = Vec::new();
        let mut next = Some(id.clone());
        let mut of = String::from("an event type");
        while let Some(id) = next.filter(|_| found.len() < ANCESTORS_MAX) {
            let entry = self.get(&id, &of)?;
            of.clone_from(&entry.name.1);
            next = entry.supertype.clone();
            found.push(id);
        }
        Ok(found)
    }
}

fn of_class(class: &NodeClass, id: &dyn Fn(&NodeId) -> Id) -> Entry {
    match class {
        NodeClass::Object { .. } => Entry { is_instance: true, ..Entry::default() },
        NodeClass::Variable { shape, .. } => Entry {
            is_instance: true,
            value: Some((id(&shape.data_type), shape.value_rank)),
            ..Entry::default()
        },
        NodeClass::ObjectType { is_abstract } => {
            Entry { is_object_type: true, is_abstract: *is_abstract, ..Entry::default() }
        }
        NodeClass::DataType { is_abstract, .. } => Entry { is_abstract: *is_abstract, ..Entry::default() },
        _ => Entry::default(),
    }
}

/// The first non-empty description.
fn description(node: &Node) -> Option<String> {
    let texts = node.descriptions.iter().map(|text| text.text.as_str().trim());
    texts.filter(|text| !text.is_empty()).map(str::to_owned).next()
}
