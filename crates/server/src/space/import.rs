//! Importing NodeSets at run time: companion specifications and user models.
//!
//! All files are read and all values decoded before anything is added, so a file with an error leaves the address space
//! unchanged. `replace`: replacing imported files while clients are connected. `changes`: which nodes that changes. An
//! import at the start takes the same way, so that it accepts what a change has accepted.

mod changes;
mod namespaces;
mod replace;
mod subtypes;

pub use replace::Prepared;

use super::AddressSpace;
use super::NodeIx;
use super::build::ValueShape;
use super::error::NodeError;
use super::node::{DataTypeNode, NodeKind, ReferenceTypeNode, VariableTypeNode};
use super::nodes::Nodes;
use super::spec::NodeSpec;
use crate::authorization::Access;
use namespaces::Indexes;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_nodeset::{
    Budget, Model, NodeClass, NodeSet, NodeSetError, Problem, RolePermission, TypeDictionary,
    order_by_dependencies, outdated_models,
};
use taktwerk_schema::{AccessLevelType, AccessRestrictionType, PermissionType};
use taktwerk_types::{ExtensionObjectBody, LocalizedText, NodeId, StatusCode, UtcTime, Variant};

/// The namespace of the specification, which every server has.
const NAMESPACE_ZERO: &str = "http://opcfoundation.org/UA/";

/// Why files were not imported. Nothing of them was added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file has an error, or a required model is missing.
    #[error(transparent)]
    File(#[from] NodeSetError),
    /// A node of a file does not fit the address space.
    #[error("{file}:{line}: {source}")]
    Node {
        /// The file name given by the caller.
        file: String,
        /// The line number, starting at 1.
        line: u32,
        /// The error.
        source: NodeError,
    },
    /// A model has a namespace that the application needs for itself.
    #[error(
        "{file}:{line}: the namespace {uri} is used by the server or its configuration: define the model in a namespace of \
         its own"
    )]
    Reserved {
        /// The file name given by the caller.
        file: String,
        /// The line number, starting at 1.
        line: u32,
        /// The namespace.
        uri: String,
    },
    /// The application needs a namespace for itself, and an imported model has it.
    #[error("an imported NodeSet defines the namespace {uri}: use another namespace, or unload the NodeSet")]
    Defined {
        /// The namespace.
        uri: String,
    },
}

impl ImportError {
    /// The matching status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::File(_) | Self::Reserved { .. } | Self::Defined { .. } => {
                StatusCode::BAD_CONFIGURATION_ERROR
            }
            Self::Node { source, .. } => source.status(),
        }
    }
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// Identifies the import for [`Importer::prepare`], which replaces it.
    pub batch: Batch,
    /// Number of added nodes.
    pub node_count: usize,
    /// Number of deleted nodes: those removed or changed since the earlier files.
    pub deleted_count: usize,
    /// The namespaces of the models with their indexes in the server, in loading order.
    pub namespaces: Vec<(u16, String)>,
    /// The first harmless irregularities: `file:line: what`.
    pub warnings: Vec<String>,
    /// Number of further ones.
    pub more_warnings: usize,
}

/// Most warnings of an import that are kept. Each reference of a file may cause one with two long ids.
const WARNINGS_MAX: usize = 1_000;

impl Imported {
    fn warn(&mut self, warning: impl FnOnce() -> String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(warning());
        } else {
            self.more_warnings += 1;
        }
    }
}

/// Imports NodeSet files in batches; knows the data types of earlier ones.
#[derive(Debug)]
pub struct Importer {
    types: TypeDictionary,
    /// The nodes of each import.
    loaded: Vec<replace::Loaded>,
    /// Number of changes, so that what was prepared before one is recognized.
    generation: u64,
    /// The namespaces that were registered for imported files.
    registered: BTreeSet<String>,
    /// The namespaces that files cannot define.
    reserved: BTreeSet<String>,
}

/// One import of an [`Importer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Batch(usize);

impl Importer {
    /// Creates an importer that knows the data types of namespace 0.
    #[must_use]
    pub fn new(namespace_zero: TypeDictionary) -> Self {
        let (registered, reserved) = Default::default();
        Self { types: namespace_zero, loaded: Vec::new(), generation: 0, registered, reserved }
    }

    /// The data types of namespace 0 and of everything imported so far.
    #[must_use]
    pub fn types(&self) -> &TypeDictionary {
        &self.types
    }

    /// Adds the nodes of files, given as names and texts, in any order. Nodes whose id something else takes at the same time
    /// are skipped with a warning.
    ///
    /// # Errors
    /// [`ImportError`]. The address space is then unchanged, except for registered namespaces.
    pub fn import(
        &mut self,
        space: &AddressSpace,
        files: &[(String, String)],
        now: UtcTime,
    ) -> Result<Imported, ImportError> {
        let prepared = self.prepare(space, files, None)?;
        Ok(self.replace(space, prepared, now))
    }

    /// The data types of all imports but one.
    fn types_without(&self, instead: Option<Batch>) -> TypeDictionary {
        let mut types = self.types.clone();
        if let Some(old) = instead.and_then(|batch| self.loaded.get(batch.0)) {
            types.remove(|id| old.nodes.contains_key(id));
        }
        types
    }

    /// Parses files to be imported. The nodes of the import `instead` are treated as absent.
    fn read(
        &self,
        space: &AddressSpace,
        files: &[(String, String)],
        instead: Option<Batch>,
    ) -> Result<Prepared, ImportError> {
        let mut sets = Vec::with_capacity(files.len());
        for (name, text) in files {
            let set = NodeSet::parse(name, text)?;
            self.check_reserved(&set)?;
            // Every server has namespace 0, so including its file is not an error.
            if !set.models.iter().any(|model| model.uri == NAMESPACE_ZERO) {
                sets.push(set);
            }
        }
        let others = self.loaded.iter().enumerate().filter(|(at, _)| Some(Batch(*at)) != instead);
        let models: Vec<_> = others.flat_map(|(_, loaded)| loaded.models.iter().cloned()).collect();
        let present: Vec<&str> =
            core::iter::once(NAMESPACE_ZERO).chain(models.iter().map(|model| model.uri.as_str())).collect();
        let order = order_by_dependencies(&sets, &present)?;
        let mut imported = Imported {
            warnings: outdated_models(&sets, &models).iter().map(ToString::to_string).collect(),
            ..Imported::default()
        };
        let mut places: Vec<Option<NodeSet>> = sets.into_iter().map(Some).collect();
        let mut sets: Vec<NodeSet> =
            order.into_iter().filter_map(|at| places.get_mut(at).and_then(Option::take)).collect();

        let mut types = self.types_without(instead);
        let mut indexes = Indexes::of(space);
        for set in &mut sets {
            indexes.add(set)?;
            set.remap(|uri| indexes.get(uri))?;
            if let Some(node) = set.nodes.iter().find(|node| node.node_id.is_null()) {
                let (what, found) = ("NodeId".to_owned(), node.node_id.to_string());
                let wanted = "an id that is not null, such as ns=1;i=5";
                return Err(at(set, node.line, Problem::Malformed { what, found, wanted }).into());
            }
            types.add(set);
            for model in &set.models {
                let index = indexes.get(&model.uri).unwrap_or_default();
                imported.namespaces.push((index, model.uri.clone()));
            }
        }
        subtypes::check(space, &sets)?;
        let budget = Budget::of(&sets);
        let mut specs = Vec::new();
        for set in &sets {
            for node in &set.nodes {
                let spec = spec_of(set, node, &types, &budget)?;
                specs.push((replace::Fingerprint::of(&spec), spec));
            }
        }

        replace::check_required(&models, &sets)?;
        Ok(Prepared { sets, specs, types, imported, indexes, instead, generation: self.generation })
    }
}

/// Sets the default permissions of models. Those that `before` set and that are not set any more end.
fn set_defaults(nodes: &mut Nodes, sets: &[NodeSet], before: &[Model]) {
    let defaults = |model: &Model| {
        let restrictions = Some(model.access_restrictions).filter(|bits| *bits != 0);
        access_of(&model.role_permissions, restrictions)
    };
    let is_set = |model: &&Model| defaults(model) != Access::default();
    let ended = before.iter().filter(is_set).map(|model| (&model.uri, Access::default()));
    let models = sets.iter().flat_map(|set| &set.models).filter(is_set);
    let mut wanted: BTreeMap<&String, Access> = ended.collect();
    wanted.extend(models.map(|model| (&model.uri, defaults(model))));
    for (uri, access) in wanted {
        if let Some(index) = nodes.namespaces().iter().position(|known| known == uri) {
            nodes.set_namespace_access(u16::try_from(index).unwrap_or(u16::MAX), access);
        }
    }
}

fn spec_of(
    set: &NodeSet,
    node: &taktwerk_nodeset::Node,
    types: &TypeDictionary,
    budget: &Budget,
) -> Result<NodeSpec, NodeSetError> {
    let (id, name) = (node.node_id.clone(), node.browse_name.clone());
    let value = set.value_within(node, types, budget)?;
    let mut spec = match &node.class {
        NodeClass::Object { event_notifier } => NodeSpec::object(id, name).event_notifier(*event_notifier),
        NodeClass::Variable { shape, access_level, minimum_sampling_interval, historizing, .. } => {
            variable_spec(
                NodeSpec::variable(id, name, NodeId::NULL, value.or_else(|| no_value(shape))),
                shape,
                *access_level,
            )
            .minimum_sampling_interval(*minimum_sampling_interval as f32)
            .historizing(*historizing)
        }
        NodeClass::Method { executable, .. } => {
            NodeSpec::with_kind(id, name, NodeKind::Method { executable: *executable })
        }
        NodeClass::ObjectType { is_abstract } => {
            NodeSpec::with_kind(id, name, NodeKind::ObjectType { is_abstract: *is_abstract })
        }
        NodeClass::VariableType { shape, is_abstract, .. } => {
            let kind = NodeKind::VariableType(Box::new(VariableTypeNode {
                data_type: 0,
                value_rank: shape.value_rank,
                array_dimensions: shape.array_dimensions.clone(),
                is_abstract: *is_abstract,
                value: None,
            }));
            NodeSpec { data_type: shape.data_type.clone(), value, ..NodeSpec::with_kind(id, name, kind) }
        }
        NodeClass::ReferenceType { is_abstract, symmetric, inverse_names } => {
            let kind = NodeKind::ReferenceType(Box::new(ReferenceTypeNode {
                is_abstract: *is_abstract,
                symmetric: *symmetric,
                inverse_name: preferred(inverse_names).unwrap_or_default(),
            }));
            NodeSpec::with_kind(id, name, kind)
        }
        NodeClass::DataType { is_abstract, .. } => {
            let wrong = |problem| at(set, node.line, problem);
            let definition = types.definition_attribute(&id).map_err(wrong)?;
            if let Some(ExtensionObjectBody::Binary(bytes)) = definition.as_ref().map(|it| &it.body) {
                budget.charge(bytes.as_bytes().len()).map_err(wrong)?;
            }
            let kind = NodeKind::DataType(Box::new(DataTypeNode { is_abstract: *is_abstract, definition }));
            NodeSpec::with_kind(id, name, kind)
        }
        NodeClass::View { event_notifier, contains_no_loops } => NodeSpec::with_kind(
            id,
            name,
            NodeKind::View { event_notifier: *event_notifier, contains_no_loops: *contains_no_loops },
        ),
    };
    if let Some(text) = preferred(&node.display_names) {
        // Without a DisplayName, a node shows the text of its BrowseName.
        if !text.locale.is_null() || text.text != node.browse_name.name {
            spec = spec.display_name(text);
        }
    }
    if let Some(text) = preferred(&node.descriptions) {
        spec = spec.description(text);
    }
    Ok(spec.access(access_of(&node.role_permissions, node.access_restrictions)))
}

/// Permissions and restrictions in the form of the address space; an empty list specifies nothing.
fn access_of(permissions: &[RolePermission], restrictions: Option<u16>) -> Access {
    let permissions: Vec<_> =
        permissions.iter().map(|entry| (entry.role.clone(), PermissionType(entry.permissions))).collect();
    Access {
        role_permissions: (!permissions.is_empty()).then_some(permissions),
        access_restrictions: restrictions.map(AccessRestrictionType),
    }
}

fn at(set: &NodeSet, line: u32, problem: Problem) -> NodeSetError {
    NodeSetError { file: set.file.clone(), line, problem: Box::new(problem) }
}

fn variable_spec(spec: NodeSpec, shape: &taktwerk_nodeset::model::ValueShape, access_level: u32) -> NodeSpec {
    spec.shape(ValueShape {
        data_type: shape.data_type.clone(),
        value_rank: shape.value_rank,
        array_dimensions: shape.array_dimensions.clone(),
    })
    .access_level(AccessLevelType((access_level & 0xff) as u8))
}

/// The value of a Variable without one in its file: null. Arrays are empty instead, because many clients treat a null
/// array as an error.
fn no_value(shape: &taktwerk_nodeset::model::ValueShape) -> Option<Variant> {
    let number = u8::try_from(shape.data_type.ns0()?).ok()?;
    let kind = taktwerk_types::BuiltInType::from_number(number)?;
    (shape.value_rank == 1 && kind != taktwerk_types::BuiltInType::Variant).then(|| {
        let values = taktwerk_types::ArrayValues::empty(kind);
        Variant::Array(Box::new(taktwerk_types::Array { values, dimensions: Vec::new() }))
    })
}

/// The text without locale, otherwise the English one, otherwise the first.
fn preferred(texts: &[LocalizedText]) -> Option<LocalizedText> {
    let rank = |text: &&LocalizedText| match text.locale.as_str() {
        "" => 0,
        locale if locale.starts_with("en") => 1,
        _ => 2,
    };
    texts.iter().min_by_key(rank).cloned()
}

/// Source, ReferenceType and target.
type Triple = (NodeIx, NodeIx, NodeIx);

/// The references of one node of a file.
fn references_of(
    nodes: &Nodes,
    (at, set): (usize, &NodeSet),
    node: &taktwerk_nodeset::Node,
    seen: &mut BTreeMap<Triple, (usize, u32)>,
    imported: &mut Imported,
) {
    let Some(own) = nodes.resolve(node.node_id.as_ref()) else { return };
    for reference in &node.references {
        let other = nodes.resolve(reference.target.as_ref());
        let kind = nodes.resolve(reference.reference_type.as_ref());
        let (Some(other), Some(kind)) = (other, kind) else {
            let missing = if kind.is_none() { &reference.reference_type } else { &reference.target };
            imported.warn(|| {
                format!(
                    "{}:{}: {} refers to {missing}, which is in no loaded model; the reference is skipped",
                    set.file, node.line, node.node_id
                )
            });
            continue;
        };
        let (from, to) = if reference.is_forward { (own, other) } else { (other, own) };
        seen.entry((from, kind, to)).or_insert((at, node.line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::QualifiedName;

    const MODEL: &str = r#"<?xml version="1.0"?>
<UANodeSet xmlns="http://opcfoundation.org/UA/2011/03/UANodeSet.xsd">
  <NamespaceUris><Uri>urn:pumps</Uri></NamespaceUris>
  <Models><Model ModelUri="urn:pumps"><RequiredModel ModelUri="http://opcfoundation.org/UA/"/></Model></Models>
  <UAObjectType NodeId="ns=1;i=1" BrowseName="1:PumpType"><DisplayName>PumpType</DisplayName>
    <References><Reference ReferenceType="i=45" IsForward="false">i=58</Reference></References></UAObjectType>
  <UAVariable NodeId="ns=1;i=2" BrowseName="1:Speed" DataType="i=11" AccessLevel="3">
    <DisplayName>Speed</DisplayName>
    <References>
      <Reference ReferenceType="i=47" IsForward="false">ns=1;i=1</Reference>
      <Reference ReferenceType="i=40">i=63</Reference>
      <Reference ReferenceType="i=37">i=78</Reference>
    </References>
    <Value><Double xmlns="http://opcfoundation.org/UA/2008/02/Types.xsd">12.5</Double></Value></UAVariable>
</UANodeSet>"#;

    fn import(text: &str) -> (AddressSpace, Result<Imported, ImportError>) {
        let space = AddressSpace::new(1, 16, "urn:test");
        let mut importer = Importer::new(TypeDictionary::default());
        let files = [("pumps.xml".to_owned(), text.to_owned())];
        let result = importer.import(&space, &files, UtcTime::from_ticks(1));
        (space, result)
    }

    #[test]
    fn nodes_references_and_values_arrive_under_the_servers_indexes() {
        let (space, result) = import(MODEL);
        let imported = result.unwrap();
        assert_eq!(imported.node_count, 2);
        assert_eq!(imported.namespaces, [(2, "urn:pumps".to_owned())]);
        assert_eq!(imported.warnings, [""; 0]);
        let kind = NodeId::numeric(2, 1);
        let speed = space.child(&kind, &QualifiedName::new(2, "Speed")).unwrap();
        assert_eq!(speed, NodeId::numeric(2, 2));
        assert_eq!(space.variable(&speed).unwrap().get().value, Some(12.5.into()));
    }

    #[test]
    fn an_import_that_fails_adds_nothing_and_says_where() {
        let (space, result) = import(&MODEL.replace("12.5", "fast"));
        let text = result.unwrap_err().to_string();
        assert!(text.starts_with("pumps.xml:14: "), "{text}");
        assert!(!space.contains(&NodeId::numeric(2, 1)));
        let (_, result) = import(&MODEL.replace("http://opcfoundation.org/UA/\"/>", "urn:gone\"/>"));
        assert!(result.unwrap_err().to_string().contains("urn:gone"));
    }

    /// The NodeSet of its supertype was missing.
    #[test]
    fn a_type_without_a_supertype_can_get_one() {
        let space = AddressSpace::new(1, 16, "urn:test");
        let mut importer = Importer::new(TypeDictionary::default());
        let files = |text: String| vec![("a.xml".to_owned(), text)];
        let missing = MODEL.replace(">i=58<", ">i=99999<");
        assert_eq!(importer.import(&space, &files(missing), UtcTime::NULL).unwrap().warnings.len(), 1);
        let above = |uri: &str| {
            let model = format!(
                "<Uri>{uri}</Uri><Uri>urn:pumps</Uri></NamespaceUris><Models><Model ModelUri=\"{uri}\"/></Models>"
            );
            files(format!(
                "<UANodeSet><NamespaceUris>{model}<UAObjectType NodeId=\"ns=1;i=9\" BrowseName=\"1:Any\"><References>\
                 <Reference ReferenceType=\"i=45\">ns=2;i=1</Reference></References></UAObjectType></UANodeSet>"
            ))
        };
        importer.import(&space, &above("urn:a"), UtcTime::NULL).unwrap();
        let refused = importer.import(&space, &above("urn:b"), UtcTime::NULL).unwrap_err().to_string();
        assert!(refused.contains("another supertype"), "{refused}");
    }

    /// Each data type would repeat the fields of its supertypes.
    #[test]
    fn data_types_that_inherit_many_fields_are_refused() {
        let subtypes = |count: u32| {
            let kind = |id: u32, base: &str, fields: &str| {
                format!(
                    "<UADataType NodeId=\"ns=1;i={id}\" BrowseName=\"1:T{id}\"><References><Reference ReferenceType=\"i=45\" \
                     IsForward=\"false\">{base}</Reference></References><Definition Name=\"T\">{fields}</Definition></UADataType>"
                )
            };
            let fields: String =
                (0..1000).map(|at| format!("<Field Name=\"F{at}\" DataType=\"i=6\"/>")).collect();
            let all: String = (1001..1001 + count).map(|id| kind(id, "ns=1;i=1000", "")).collect();
            let all = kind(1000, "i=22", &fields) + &all;
            MODEL.replace("</UANodeSet>", &format!("{all}</UANodeSet>"))
        };
        import(&subtypes(10)).1.unwrap();
        let refused = import(&subtypes(500)).1.unwrap_err().to_string();
        assert!(refused.contains("would take more than"), "{refused}");
    }

    /// A file may have a warning for each of its references.
    #[test]
    fn the_first_warnings_are_kept() {
        let missing = "<Reference ReferenceType=\"i=35\">ns=1;i=99</Reference>".repeat(1100);
        let (_, result) = import(&MODEL.replacen("</References>", &format!("{missing}</References>"), 1));
        let imported = result.unwrap();
        assert_eq!((imported.warnings.len(), imported.more_warnings), (1000, 100));
    }

    #[test]
    fn references_to_missing_nodes_cause_warnings() {
        let (_, result) = import(&MODEL.replace(">i=63<", ">ns=1;i=99<"));
        let warnings = result.unwrap().warnings;
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with("pumps.xml:7: "), "{}", warnings[0]);
    }
}
