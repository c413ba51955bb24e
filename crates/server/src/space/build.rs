//! Building the address space from an application: nodes with parents, values, callbacks, instances of types.
//!
//! All functions here take the time as argument and lock the structure for one call.

use super::NodeIx;
use super::data_type::built_in;
use super::error::NodeError;
use super::instance::{Walk, Wanted, add_members};
use super::node::NodeKind;
use super::nodes::Nodes;
use super::spec::NodeSpec;
use super::{AddressSpace, VariableHandle};
use crate::account::Account;
use crate::authorization::Access;
use crate::callback::{MethodHandler, ValueSource, WriteHandler};
use std::sync::Arc;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{AccessLevelType, NodeClass};
use taktwerk_types::{BuiltInType, NodeId, QualifiedName, UtcTime, Variant};

/// Nodes added per lock, so that waiting readers get their turn: takes some hundred microseconds.
const NODES_PER_LOCK: usize = 128;

/// The parent and type of a new node.
#[derive(Debug, Clone, Copy)]
pub struct Under<'a> {
    /// The parent node.
    pub parent: &'a NodeId,
    /// The ReferenceType from the parent, by its id in namespace 0 or elsewhere.
    pub reference_type: &'a NodeId,
    /// The ObjectType or VariableType; `None` for classes without one.
    pub type_definition: Option<&'a NodeId>,
}

/// DataType, ValueRank and ArrayDimensions for a value (Part 3 §5.6.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueShape {
    /// The DataType.
    pub data_type: NodeId,
    /// −1 for a scalar, otherwise the number of dimensions.
    pub value_rank: i32,
    /// The length of each dimension; 0 means any length. Empty for a scalar.
    pub array_dimensions: Vec<u32>,
}

impl ValueShape {
    /// A scalar of a built-in type.
    #[must_use]
    pub fn scalar(kind: BuiltInType) -> Self {
        Self {
            data_type: NodeId::numeric(0, u32::from(kind.number())),
            value_rank: -1,
            array_dimensions: Vec::new(),
        }
    }

    /// An array of a built-in type, of any length.
    #[must_use]
    pub fn array(kind: BuiltInType) -> Self {
        Self { value_rank: 1, array_dimensions: vec![0], ..Self::scalar(kind) }
    }
}

impl AddressSpace {
    /// The index of a namespace, which is registered if it is new.
    pub fn add_namespace(&self, uri: &str) -> u16 {
        self.write().add_namespace(uri)
    }

    /// The NamespaceArray.
    #[must_use]
    pub fn namespaces(&self) -> Vec<String> {
        self.read().namespaces().to_vec()
    }

    /// Number of registered namespaces.
    #[must_use]
    pub fn namespace_count(&self) -> usize {
        self.read().namespaces().len()
    }

    /// The index of a registered namespace.
    #[must_use]
    pub fn namespace_index(&self, uri: &str) -> Option<u16> {
        let position = self.read().namespaces().iter().position(|known| known == uri)?;
        u16::try_from(position).ok()
    }

    /// Whether a node with that id exists.
    #[must_use]
    pub fn contains(&self, id: &NodeId) -> bool {
        self.read().resolve(id.as_ref()).is_some()
    }

    /// Number of nodes, including namespace 0.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.read().len()
    }

    /// The NodeClass of a node.
    #[must_use]
    pub fn node_class(&self, id: &NodeId) -> Option<NodeClass> {
        let nodes = self.read();
        let ix = nodes.resolve(id.as_ref())?;
        nodes.view(ix).map(|node| node.class())
    }

    /// The child with a name, by a hierarchical reference of `parent`.
    #[must_use]
    pub fn child(&self, parent: &NodeId, name: &QualifiedName) -> Option<NodeId> {
        let nodes = self.read();
        let child = nodes.child(nodes.resolve(parent.as_ref())?, name)?;
        Some(nodes.id_of(child))
    }

    /// The DataType, rank and dimensions of a value. The DataType of a structure is found through its encoding's node.
    #[must_use]
    pub fn shape_of(&self, value: &Variant) -> ValueShape {
        let nodes = self.read();
        let Some(kind) = value.built_in_type() else {
            return ValueShape { value_rank: -2, ..ValueShape::scalar(BuiltInType::Variant) };
        };
        let mut shape = ValueShape::scalar(kind);
        if let Some(array) = value.as_array() {
            shape.array_dimensions = array.shape();
            shape.value_rank = i32::try_from(shape.array_dimensions.len()).unwrap_or(1);
            if shape.value_rank == 1 {
                // The length of one-dimensional arrays may change.
                shape.array_dimensions = vec![0];
            }
        }
        if let Some(data_type) = structure_type(&nodes, value) {
            shape.data_type = data_type;
        }
        shape
    }

    /// The declared DataType, rank and dimensions of a Variable, and the built-in type of its values; `None` for nodes
    /// that are not Variables. For an abstract DataType the built-in type is Variant.
    #[must_use]
    pub fn declared_shape(&self, id: &NodeId) -> Option<(ValueShape, BuiltInType)> {
        let nodes = self.read();
        let view = nodes.view(nodes.resolve(id.as_ref())?)?;
        if view.class() != NodeClass::VARIABLE {
            return None;
        }
        let data_type = view.data_type()?;
        let kind = nodes.resolve(data_type.as_ref()).and_then(|ix| built_in(&nodes, ix));
        let shape = ValueShape {
            data_type,
            value_rank: view.value_rank()?,
            array_dimensions: view.array_dimensions().unwrap_or_default(),
        };
        Some((shape, kind.unwrap_or(BuiltInType::Variant)))
    }

    /// The type of an Object or a Variable.
    #[must_use]
    pub fn type_definition(&self, id: &NodeId) -> Option<NodeId> {
        let nodes = self.read();
        let ix = nodes.resolve(id.as_ref())?;
        nodes.forward_target(ix, reference_type_ids::HAS_TYPE_DEFINITION).map(|kind| nodes.id_of(kind))
    }

    /// Adds a node under a parent.
    ///
    /// # Errors
    /// The id is in use, or parent, reference type, type or namespace do not exist. Nothing is added then.
    pub fn add_node(&self, spec: NodeSpec, under: Under<'_>, now: UtcTime) -> Result<(), NodeError> {
        add_under(&mut self.write(), spec, under, None, now)?;
        self.raise_model_changes(now);
        Ok(())
    }

    /// Adds an instance of a type without any reference to it. Clients cannot browse to it, but can use its id if they
    /// receive it, for example for temporary files (Part 20 §4.4.1).
    ///
    /// # Errors
    /// The id is in use, or type or namespace do not exist.
    pub fn add_unreferenced(
        &self,
        spec: NodeSpec,
        type_definition: &NodeId,
        now: UtcTime,
    ) -> Result<(), NodeError> {
        let mut nodes = self.write();
        let kind = nodes.find(type_definition)?;
        let ix = nodes.add(spec, now)?;
        nodes.add_reference(ix, NodeIx::ns0(reference_type_ids::HAS_TYPE_DEFINITION), kind, false)
    }

    /// Adds many nodes under the same parent, for example 100 000 variables. They are added in batches: services
    /// continue in between and see the nodes added so far.
    ///
    /// # Errors
    /// As [`Self::add_node`]; the nodes before the failed one stay.
    pub fn add_nodes(
        &self,
        specs: impl IntoIterator<Item = NodeSpec>,
        under: Under<'_>,
        now: UtcTime,
    ) -> Result<(), NodeError> {
        let mut specs = specs.into_iter().peekable();
        while specs.peek().is_some() {
            let batch: Vec<NodeSpec> = specs.by_ref().take(NODES_PER_LOCK).collect();
            let mut nodes = self.write();
            for spec in batch {
                add_under(&mut nodes, spec, under, None, now)?;
            }
            drop(nodes);
            self.raise_model_changes(now);
            self.yield_to_readers();
        }
        Ok(())
    }

    /// Adds a reference and its inverse.
    ///
    /// # Errors
    /// One of the nodes does not exist, the type is not a ReferenceType, or the reference exists.
    pub fn add_reference(
        &self,
        source: &NodeId,
        reference_type: &NodeId,
        target: &NodeId,
    ) -> Result<(), NodeError> {
        let mut nodes = self.write();
        let from = nodes.find(source)?;
        let kind = nodes.find(reference_type)?;
        let to = nodes.find(target)?;
        if nodes.has_reference(from, kind, to) {
            return Err(NodeError::ReferenceExists(source.clone(), target.clone()));
        }
        let inverse = wants_inverse(kind);
        nodes.add_reference(from, kind, to, inverse)
    }

    /// Deletes a node with its references; its children stay.
    ///
    /// # Errors
    /// It does not exist or belongs to namespace 0.
    pub fn delete_node(&self, id: &NodeId) -> Result<(), NodeError> {
        let mut nodes = self.write();
        let ix = nodes.find(id)?;
        nodes.delete(ix).map(drop)
    }

    /// Deletes many nodes with their references, in batches between which services continue. Children of the nodes
    /// stay. Missing nodes and those of namespace 0 are skipped. Returns how many were deleted.
    pub fn delete_nodes(&self, ids: &[NodeId]) -> usize {
        let mut count = 0;
        for part in ids.chunks(NODES_PER_LOCK) {
            let mut nodes = self.write();
            let mut found: Vec<NodeIx> = part.iter().filter_map(|id| nodes.find(id).ok()).collect();
            found.retain(|ix| ix.index >= NodeIx::DYNAMIC);
            found.sort_unstable();
            found.dedup();
            if nodes.delete_all(&found).is_ok() {
                count += found.len();
            }
            drop(nodes);
            self.yield_to_readers();
        }
        count
    }

    /// A handle to a Variable's value. For a Variable of namespace 0, the first handle creates a live value.
    ///
    /// # Errors
    /// The Variable does not exist.
    pub fn variable(&self, id: &NodeId) -> Result<VariableHandle, NodeError> {
        {
            // Most Variables have a slot, and a missing one may be looked for often: do not stop readers for that.
            let nodes = self.read();
            let ix = nodes.find(id)?;
            if let Some(slot) = nodes.slot_handle(ix) {
                return Ok(VariableHandle::new(slot));
            }
        }
        let mut nodes = self.write();
        let ix = nodes.find(id)?;
        let is_variable = nodes.view(ix).is_some_and(|node| node.class() == NodeClass::VARIABLE);
        let slot = match nodes.slot_handle(ix) {
            Some(slot) => Some(slot),
            None => is_variable.then(|| id.ns0()).flatten().map(|number| nodes.ns0_slot(number)),
        };
        slot.map(VariableHandle::new).ok_or_else(|| NodeError::Unknown(id.clone()))
    }

    /// Sets a callback that provides a Variable's value from now on.
    ///
    /// # Errors
    /// The Variable does not exist.
    pub fn set_source(&self, id: &NodeId, source: Arc<dyn ValueSource>) -> Result<(), NodeError> {
        let source = self.sources().guard(source);
        let mut nodes = self.write();
        let ix = nodes.find(id)?;
        match (id.ns0(), nodes.variable_extra_mut(ix)) {
            (_, Some(extra)) => extra.source = Some(source),
            (Some(number), None) => nodes.set_ns0_source(number, source),
            (None, None) => return Err(NodeError::Unknown(id.clone())),
        }
        drop(nodes);
        self.sample_recorded(id);
        Ok(())
    }

    /// Sets a callback that decides on clients' writes to a Variable, and makes it writable. Variables of the static
    /// namespace 0 are writable only where the specification says so.
    ///
    /// # Errors
    /// The Variable does not exist.
    pub fn set_write_handler(&self, id: &NodeId, handler: Arc<dyn WriteHandler>) -> Result<(), NodeError> {
        let mut nodes = self.write();
        let ix = nodes.find(id)?;
        if let Some(number) = id.ns0() {
            if nodes.view(ix).is_none_or(|view| view.class() != NodeClass::VARIABLE) {
                return Err(NodeError::Unknown(id.clone()));
            }
            nodes.set_ns0_writer(number, handler);
            return Ok(());
        }
        let variable = nodes.variable_mut(ix).ok_or_else(|| NodeError::Unknown(id.clone()))?;
        variable.access_level |= AccessLevelType::CURRENT_WRITE.0;
        if let Some(extra) = nodes.variable_extra_mut(ix) {
            extra.on_write = Some(handler);
        }
        Ok(())
    }

    /// Changes the AccessLevel bits of a Variable.
    ///
    /// # Errors
    /// The Variable does not exist outside the static namespace 0.
    pub fn set_access_level(&self, id: &NodeId, access_level: AccessLevelType) -> Result<(), NodeError> {
        let mut nodes = self.write();
        let ix = nodes.find(id)?;
        let variable = nodes.variable_mut(ix).ok_or_else(|| NodeError::Unknown(id.clone()))?;
        variable.access_level = access_level.0;
        Ok(())
    }

    /// Changes the access rights of a node at any time. Sessions and monitored items follow at once. The empty
    /// [`Access`] leaves the decision to the node's namespace.
    ///
    /// # Errors
    /// The node does not exist, or there are more than 65 534 different sets of permissions.
    pub fn set_access(&self, id: &NodeId, access: Access) -> Result<(), NodeError> {
        let mut nodes = self.write();
        let ix = nodes.find(id)?;
        nodes.set_access(ix, access)
    }

    /// Changes the access rights of nodes in a namespace that have none of their own (DefaultRolePermissions and
    /// DefaultAccessRestrictions, Part 5 §6.3.13). The server's configuration takes precedence.
    pub fn set_namespace_access(&self, index: u16, access: Access) {
        self.write().set_namespace_access(index, access);
    }

    /// Implements a Method.
    ///
    /// # Errors
    /// The Method does not exist.
    pub fn set_method(&self, id: &NodeId, implementation: Arc<dyn MethodHandler>) -> Result<(), NodeError> {
        let mut nodes = self.write();
        let ix = nodes.find(id)?;
        if nodes.view(ix).is_none_or(|node| node.class() != NodeClass::METHOD) {
            return Err(NodeError::Unknown(id.clone()));
        }
        match nodes.dynamic_mut(ix) {
            Some(node) => {
                node.kind = NodeKind::Method { executable: true };
                node.extra.get_or_insert_default().handler = Some(implementation);
            }
            None => nodes.set_ns0_method(ix.index, implementation),
        }
        Ok(())
    }

    /// Sets whether a Method can be called now (its Executable Attribute). It keeps its implementation.
    ///
    /// # Errors
    /// The Method does not exist or belongs to namespace 0.
    pub fn set_executable(&self, id: &NodeId, executable: bool) -> Result<(), NodeError> {
        let mut nodes = self.write();
        let ix = nodes.find(id)?;
        match nodes.dynamic_mut(ix).map(|node| &mut node.kind) {
            Some(NodeKind::Method { executable: now }) => *now = executable,
            Some(_) => return Err(NodeError::Unknown(id.clone())),
            None => return Err(NodeError::Static(id.clone())),
        }
        Ok(())
    }

    /// Adds an instance of an ObjectType or VariableType with all its mandatory children, and the optional ones whose
    /// browse path is in `optional` (`"Identification/SerialNumber"`: names without namespace, starting at the
    /// instance). Returns the ids of all nodes with their paths; the instance itself has the empty path.
    ///
    /// The ids of children are made from their parent's id and their name.
    ///
    /// # Errors
    /// As [`Self::add_node`]; or the type is abstract or not a type. Nothing is added then.
    pub fn add_instance(
        &self,
        spec: NodeSpec,
        under: Under<'_>,
        optional: &[&str],
        now: UtcTime,
    ) -> Result<Vec<(String, NodeId)>, NodeError> {
        let wanted = Wanted { optional, owner: None, now };
        let added = add_instance(&mut self.write(), spec, under, wanted, &mut Walk::unlimited())?;
        self.raise_model_changes(now);
        Ok(added.into_iter().map(|(path, id, _)| (path, id)).collect())
    }
}

/// [`AddressSpace::add_instance`] for a space that is already locked.
pub(crate) fn add_instance(
    nodes: &mut Nodes,
    spec: NodeSpec,
    under: Under<'_>,
    wanted: Wanted<'_>,
    walk: &mut Walk,
) -> Result<Vec<(String, NodeId, NodeIx)>, NodeError> {
    let type_id = under.type_definition.ok_or(NodeError::Unknown(NodeId::NULL))?;
    let type_ix = nodes.find(type_id)?;
    let instance_id = spec.id.clone();
    let mut added = Vec::new();
    let root = add_under(nodes, spec, under, wanted.owner, wanted.now)?;
    added.push((String::new(), instance_id, root));
    if let Err(error) = add_members(nodes, ("", root), &[type_ix], wanted, &mut added, walk) {
        nodes.note_added(root);
        for (_, _, ix) in added.into_iter().rev() {
            // They were just added, so this cannot fail.
            let _ = nodes.delete(ix);
        }
        return Err(error);
    }
    for (_, _, ix) in &added {
        nodes.note_added(*ix);
    }
    Ok(added)
}

/// Inverse references of types and modelling rules would accumulate one entry per instance.
pub(crate) fn wants_inverse(reference_type: NodeIx) -> bool {
    reference_type != NodeIx::ns0(reference_type_ids::HAS_TYPE_DEFINITION)
        && reference_type != NodeIx::ns0(reference_type_ids::HAS_MODELLING_RULE)
}

/// The DataType of a structure or of the first element of an array of structures.
fn structure_type(nodes: &Nodes, value: &Variant) -> Option<NodeId> {
    let encoding = match value {
        Variant::ExtensionObject(object) => &object.type_id,
        Variant::Array(array) => match &array.values {
            taktwerk_types::ArrayValues::ExtensionObject(objects) => &objects.first()?.type_id,
            _ => return None,
        },
        _ => return None,
    };
    let ix = nodes.resolve(encoding.as_ref())?;
    let mut found = None;
    nodes.references(ix, |reference| {
        if !reference.is_forward && reference.reference_type == NodeIx::ns0(reference_type_ids::HAS_ENCODING)
        {
            found = Some(reference.target);
        }
        found.is_none()
    });
    found.map(|ix| nodes.id_of(ix))
}

pub(crate) fn add_under(
    nodes: &mut Nodes,
    spec: NodeSpec,
    under: Under<'_>,
    owner: Option<&Arc<Account>>,
    now: UtcTime,
) -> Result<NodeIx, NodeError> {
    // All lookups come before any change.
    let parent = nodes.find(under.parent)?;
    let reference_type = nodes.find(under.reference_type)?;
    if nodes.view(reference_type).is_none_or(|node| node.class() != NodeClass::REFERENCE_TYPE) {
        return Err(NodeError::ReferenceType(under.reference_type.clone()));
    }
    let type_definition = under.type_definition.map(|id| nodes.find(id)).transpose()?;
    let ix = nodes.add_owned(spec, owner, now)?;
    nodes.add_reference(parent, reference_type, ix, true)?;
    if let Some(type_definition) = type_definition {
        let kind = NodeIx::ns0(reference_type_ids::HAS_TYPE_DEFINITION);
        nodes.add_reference(ix, kind, type_definition, false)?;
    }
    Ok(ix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_schema::ids::object_ids;
    use taktwerk_schema::ids::{object_type_ids, variable_type_ids};
    use taktwerk_types::StatusCode;

    const NOW: UtcTime = UtcTime::from_ticks(133_000_000_000_000_000);

    fn objects() -> NodeId {
        NodeId::numeric(0, object_ids::OBJECTS_FOLDER)
    }

    fn space() -> AddressSpace {
        AddressSpace::new(1, 16, "urn:test")
    }

    fn under<'a>(parent: &'a NodeId, reference_type: &'a NodeId, kind: &'a NodeId) -> Under<'a> {
        Under { parent, reference_type, type_definition: Some(kind) }
    }

    #[test]
    fn many_nodes_are_deleted_with_all_references_to_them() {
        let space = space();
        space.add_namespace("urn:plant");
        let (organizes, property) = (
            NodeId::numeric(0, reference_type_ids::ORGANIZES),
            NodeId::numeric(0, reference_type_ids::HAS_PROPERTY),
        );
        let (folder_type, base) = (
            NodeId::numeric(0, object_type_ids::FOLDER_TYPE),
            NodeId::numeric(0, variable_type_ids::BASE_DATA_VARIABLE_TYPE),
        );
        let folder = NodeId::string(2, "folder");
        let spec = NodeSpec::object(folder.clone(), QualifiedName::new(2, "folder"));
        space.add_node(spec, under(&objects(), &organizes, &folder_type), NOW).unwrap();
        let before = space.read().len();
        let mut all = Vec::new();
        for number in 0..300 {
            let id = NodeId::string(2, format!("v{number}"));
            let name = QualifiedName::new(2, format!("v{number}"));
            let spec = NodeSpec::variable(id.clone(), name, NodeId::NULL, Some(1.5.into()));
            space.add_node(spec, under(&folder, &organizes, &base), NOW).unwrap();
            let child = NodeId::string(2, format!("v{number}/p"));
            let spec =
                NodeSpec::variable(child.clone(), QualifiedName::new(2, "p"), NodeId::NULL, Some(1.5.into()));
            space.add_node(spec, under(&id, &property, &base), NOW).unwrap();
            all.extend([id, child]);
        }
        let stays = all.split_off(598);
        // Duplicates, one that does not exist, and one of namespace 0.
        let wanted = [&all[..], &all[..2], &[NodeId::string(2, "none"), objects()]].concat();
        assert_eq!(space.delete_nodes(&wanted), 598);
        assert_eq!(space.read().len(), before + 2);
        let references = |id: &NodeId| {
            let nodes = space.read();
            let mut count = 0;
            nodes.references(nodes.find(id).unwrap(), |_| {
                count += 1;
                true
            });
            count
        };
        // Its type, Objects, and the remaining variable with its own three.
        assert_eq!((references(&folder), references(&stays[0])), (3, 3));
        assert_eq!(space.delete_nodes(&stays), 2);
        assert_eq!((space.read().len(), references(&folder)), (before, 2));
    }

    #[test]
    fn a_variable_is_added_found_and_set() {
        let space = space();
        let namespace = space.add_namespace("urn:plant");
        assert_eq!((namespace, space.add_namespace("urn:plant")), (2, 2));
        let id = NodeId::string(namespace, "Speed");
        let spec =
            NodeSpec::variable(id.clone(), QualifiedName::new(2, "Speed"), NodeId::NULL, Some(1.5.into()))
                .shape(space.shape_of(&1.5.into()));
        let (organizes, base) = (
            NodeId::numeric(0, reference_type_ids::ORGANIZES),
            NodeId::numeric(0, variable_type_ids::BASE_DATA_VARIABLE_TYPE),
        );
        let objects = objects();
        space.add_node(spec, under(&objects, &organizes, &base), NOW).unwrap();
        assert_eq!(space.child(&objects, &QualifiedName::new(2, "Speed")), Some(id.clone()));
        let handle = space.variable(&id).unwrap();
        handle.set_at(2.5, NOW);
        assert_eq!(handle.get().value, Some(2.5.into()));
        let again = NodeSpec::object(id.clone(), QualifiedName::new(2, "Speed"));
        assert_eq!(
            space.add_node(again, under(&objects, &organizes, &base), NOW),
            Err(NodeError::IdExists(id.clone()))
        );
        space.delete_node(&id).unwrap();
        assert!(!space.contains(&id));
        assert_eq!(handle.get().status(), StatusCode::BAD_NODE_ID_UNKNOWN);
        assert!(handle.is_deleted() && space.variable(&id).is_err());
        // The id is used again, by another Variable with its own handles.
        let spec =
            NodeSpec::variable(id.clone(), QualifiedName::new(2, "Speed"), NodeId::NULL, Some(7.5.into()));
        space.add_node(spec, under(&objects, &organizes, &base), NOW).unwrap();
        assert!(handle.is_deleted() && !space.variable(&id).unwrap().is_deleted());
    }

    #[test]
    fn shapes_follow_values() {
        let space = space();
        assert_eq!(space.shape_of(&1i32.into()), ValueShape::scalar(BuiltInType::Int32));
        assert_eq!(space.shape_of(&vec![1u8].into()), ValueShape::array(BuiltInType::Byte));
        let matrix = Variant::matrix(vec![0.0f32; 6], vec![2, 3]).unwrap();
        let shape = space.shape_of(&matrix);
        assert_eq!((shape.value_rank, shape.array_dimensions), (2, vec![2, 3]));
        let range = Variant::from_structure(&taktwerk_schema::Range { low: 0.0, high: 1.0 });
        assert_eq!(space.shape_of(&range).data_type.ns0(), Some(884));
        assert_eq!(space.shape_of(&Variant::Empty).value_rank, -2);
    }

    #[test]
    fn an_instance_has_its_mandatory_children_and_the_chosen_optional_ones() {
        let space = space();
        let id = NodeId::string(1, "Level");
        let spec =
            NodeSpec::variable(id.clone(), QualifiedName::new(1, "Level"), NodeId::NULL, Some(1.0.into()))
                .shape(ValueShape::scalar(BuiltInType::Double));
        let objects = objects();
        let component = NodeId::numeric(0, reference_type_ids::HAS_COMPONENT);
        let kind = NodeId::numeric(0, variable_type_ids::ANALOG_ITEM_TYPE);
        let added =
            space.add_instance(spec, under(&objects, &component, &kind), &["EngineeringUnits"], NOW).unwrap();
        let paths: Vec<&str> = added.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["", "EURange", "EngineeringUnits"]);
        assert_eq!(
            space.child(&id, &QualifiedName::new(0, "EURange")),
            Some(NodeId::string(1, "Level/EURange"))
        );
        let folder = NodeId::numeric(0, object_type_ids::FOLDER_TYPE);
        let empty = NodeSpec::object(NodeId::numeric(1, 7), QualifiedName::new(1, "Folder"));
        assert_eq!(
            space.add_instance(empty, under(&objects, &component, &folder), &[], NOW).unwrap().len(),
            1
        );
    }
}
