//! Namespaces and nodes: where children are added.

use super::{MethodBuilder, ObjectBuilder, Space, Variable, VariableBuilder, now, ns0};
use crate::error::BuildError;
use crate::value::{Initial, Value};
use std::sync::Arc;
use taktwerk_schema::ids::{object_ids, reference_type_ids, variable_type_ids};
use taktwerk_server::space::build::Under;
use taktwerk_server::space::{AddressSpace, NodeSpec};
use taktwerk_types::{Identifier, LocalizedText, NodeId, QualifiedName};

/// A namespace of a server. Nodes are added to it below the Objects folder, or below other nodes.
#[derive(Debug, Clone)]
pub struct Namespace {
    space: Space,
    index: u16,
}

impl Namespace {
    pub(crate) fn new(space: Space, uri: &str) -> Self {
        let index = space.add_namespace(uri);
        Self { space, index }
    }

    /// Its index in the server's NamespaceArray.
    #[must_use]
    pub fn index(&self) -> u16 {
        self.index
    }

    /// The server's address space, for functions that the builders do not offer.
    #[must_use]
    pub fn space(&self) -> &Arc<AddressSpace> {
        &self.space
    }

    /// The Objects folder, with children in this namespace.
    pub fn objects(&self) -> Node {
        Node { space: self.space.clone(), id: ns0(object_ids::OBJECTS_FOLDER), namespace: self.index }
    }

    /// A node of the server, to which children in this namespace can be added. Also for types and instances of imported NodeSets.
    ///
    /// # Errors
    /// The node does not exist.
    pub fn node(&self, id: impl Into<NodeId>) -> Result<Node, BuildError> {
        let id = id.into();
        if !self.space.contains(&id) {
            return Err(taktwerk_server::space::NodeError::Unknown(id).into());
        }
        Ok(Node { space: self.space.clone(), id, namespace: self.index })
    }

    /// Deletes nodes of any namespace but 0. For large folders this is much faster than deleting nodes one by one. Their children
    /// stay, but become unreachable. Returns the number of deleted nodes; nodes that were already deleted do not count.
    pub fn delete_nodes<'a>(&self, nodes: impl IntoIterator<Item = &'a Node>) -> usize {
        let ids: Vec<NodeId> = nodes.into_iter().map(|node| node.id.clone()).collect();
        self.space.delete_nodes(&ids)
    }

    /// Adds a folder under Objects.
    ///
    /// # Errors
    /// As [`Node::folder`].
    pub fn folder(&self, name: &str) -> Result<Node, BuildError> {
        self.objects().folder(name)
    }

    /// Begins an object under Objects.
    pub fn object(&self, name: &str) -> ObjectBuilder {
        self.objects().object(name)
    }

    /// Begins a variable under Objects.
    pub fn variable<I: Initial>(&self, name: &str, initial: I) -> VariableBuilder<I::Value> {
        self.objects().variable(name, initial)
    }
}

/// A node to which children can be added. Cheap to clone.
///
/// By default, children get string ids made of the path (`ns=2;s=Plant/Boiler/Temperature`), so that ids are stable across
/// restarts.
#[derive(Debug, Clone)]
pub struct Node {
    pub(crate) space: Space,
    pub(crate) id: NodeId,
    /// The namespace of new children.
    pub(crate) namespace: u16,
}

impl Node {
    /// The node's id.
    #[must_use]
    pub fn id(&self) -> &NodeId {
        &self.id
    }

    /// Adds a folder.
    ///
    /// # Errors
    /// The id is taken: usually because the parent has a child of that name.
    pub fn folder(&self, name: &str) -> Result<Self, BuildError> {
        self.object(name).of_type(ns0(taktwerk_schema::ids::object_type_ids::FOLDER_TYPE)).organized().add()
    }

    /// Begins an object.
    pub fn object(&self, name: &str) -> ObjectBuilder {
        ObjectBuilder::new(self.clone(), name)
    }

    /// Begins a variable with an initial value. DataType, ValueRank and ArrayDimensions follow from the value.
    pub fn variable<I: Initial>(&self, name: &str, initial: I) -> VariableBuilder<I::Value> {
        VariableBuilder::new(self.clone(), name, Some(initial.into_value()))
    }

    /// Begins a variable of a type without an initial value: clients see Bad_WaitingForInitialData until one is set.
    pub fn variable_of<T: Value>(&self, name: &str) -> VariableBuilder<T> {
        VariableBuilder::new(self.clone(), name, None)
    }

    /// Adds a property.
    ///
    /// # Errors
    /// The id is taken: usually because the node has a child of that name.
    pub fn property<I: Initial>(&self, name: &str, value: I) -> Result<Variable<I::Value>, BuildError> {
        self.variable(name, value).into_property().add()
    }

    /// Begins a method.
    pub fn method(&self, name: &str) -> MethodBuilder {
        MethodBuilder::new(self.clone(), name)
    }

    /// The child with a BrowseName in the node's own namespace.
    ///
    /// # Errors
    /// There is no such child.
    pub fn child(&self, name: &str) -> Result<Self, BuildError> {
        self.child_named(&QualifiedName::new(self.namespace, name))
    }

    /// The child with a BrowseName in any namespace.
    ///
    /// # Errors
    /// There is no such child.
    pub fn child_named(&self, name: &QualifiedName) -> Result<Self, BuildError> {
        let id = self.space.child(&self.id, name);
        let id =
            id.ok_or_else(|| taktwerk_server::space::NodeError::Unknown(self.child_id(&name.to_string())))?;
        Ok(Self { space: self.space.clone(), id, namespace: self.namespace })
    }

    /// A handle to this node's value, if it is a Variable.
    ///
    /// # Errors
    /// The node is not a Variable.
    pub fn as_variable<T: Value>(&self) -> Result<Variable<T>, BuildError> {
        Ok(Variable::new(self.clone(), self.space.variable(&self.id)?))
    }

    /// Adds a reference from this node to another.
    ///
    /// # Errors
    /// The reference exists already, or `reference_type` is not a ReferenceType.
    pub fn refers_to(&self, reference_type: impl Into<NodeId>, target: &Self) -> Result<(), BuildError> {
        Ok(self.space.add_reference(&self.id, &reference_type.into(), &target.id)?)
    }

    /// Deletes the node. Its children stay, but become unreachable.
    ///
    /// # Errors
    /// The node was already deleted, or belongs to namespace 0.
    pub fn delete(self) -> Result<(), BuildError> {
        Ok(self.space.delete_node(&self.id)?)
    }

    /// The default id of a child.
    pub(crate) fn child_id(&self, name: &str) -> NodeId {
        let text = match &self.id.identifier {
            // Children of nodes in namespace 0 begin a new path.
            _ if self.id.namespace_index == 0 => name.to_owned(),
            Identifier::String(own) => format!("{}/{name}", own.as_str()),
            Identifier::Numeric(own) => format!("{own}/{name}"),
            _ => format!("{}/{name}", self.id),
        };
        NodeId::string(self.namespace, text)
    }

    pub(crate) fn child_name(&self, name: &str) -> QualifiedName {
        QualifiedName::new(self.namespace, name)
    }

    /// Adds a node below this one.
    pub(crate) fn add(
        &self,
        spec: NodeSpec,
        reference_type: u32,
        type_definition: Option<&NodeId>,
    ) -> Result<(), BuildError> {
        let reference_type = &ns0(reference_type);
        let under = Under { parent: &self.id, reference_type, type_definition };
        Ok(self.space.add_node(spec, under, now())?)
    }

    /// Adds an instance of a type below this node, with the requested optional members.
    pub(crate) fn add_instance(
        &self,
        spec: NodeSpec,
        reference_type: u32,
        type_id: &NodeId,
        optional: &[String],
    ) -> Result<(), BuildError> {
        let reference_type = &ns0(reference_type);
        let under = Under { parent: &self.id, reference_type, type_definition: Some(type_id) };
        let paths: Vec<&str> = optional.iter().map(String::as_str).collect();
        let added = self.space.add_instance(spec, under, &paths, now())?;
        let Some(path) = optional.iter().find(|path| !added.iter().any(|(known, _)| known == *path)) else {
            return Ok(());
        };
        for (_, id) in added.iter().rev() {
            self.space.delete_node(id)?;
        }
        Err(BuildError::NoMember { type_id: type_id.clone(), path: path.clone() })
    }

    /// Adds a standard property of namespace 0, such as EURange.
    pub(crate) fn standard_property(&self, name: &str, value: impl Value) -> Result<(), BuildError> {
        let value = value.into_variant();
        let shape = self.space.shape_of(&value);
        let spec =
            NodeSpec::variable(self.child_id(name), QualifiedName::new(0, name), NodeId::NULL, Some(value));
        let kind = ns0(variable_type_ids::PROPERTY_TYPE);
        self.add(spec.shape(shape), reference_type_ids::HAS_PROPERTY, Some(&kind))
    }
}

/// Optional attributes common to all nodes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    pub(crate) id: Option<NodeId>,
    pub(crate) browse_name: Option<QualifiedName>,
    pub(crate) display_name: Option<LocalizedText>,
    pub(crate) description: Option<LocalizedText>,
}

impl Texts {
    pub(crate) fn apply(self, mut spec: NodeSpec) -> NodeSpec {
        if let Some(text) = self.display_name {
            spec = spec.display_name(text);
        }
        if let Some(text) = self.description {
            spec = spec.description(text);
        }
        spec
    }
}

/// The setters that all builders share.
macro_rules! common_setters {
    () => {
        /// Sets another id than the one made of the path.
        pub fn node_id(mut self, id: impl Into<NodeId>) -> Self {
            self.texts.id = Some(id.into());
            self
        }

        /// Sets another BrowseName than the name in the parent's namespace, such as that of a member of a type.
        pub fn browse_name(mut self, name: impl Into<QualifiedName>) -> Self {
            self.texts.browse_name = Some(name.into());
            self
        }

        /// The name for display, if it differs from the BrowseName.
        pub fn display_name(mut self, text: impl Into<LocalizedText>) -> Self {
            self.texts.display_name = Some(text.into());
            self
        }

        /// The description for display.
        pub fn description(mut self, text: impl Into<LocalizedText>) -> Self {
            self.texts.description = Some(text.into());
            self
        }
    };
}
pub(crate) use common_setters;
