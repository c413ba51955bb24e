//! Parses XML into the [`NodeSet`] model.

use crate::circle;
use crate::definition::{Definition, Field};
use crate::error::{NodeSetError, Problem};
use crate::model::{Model, Node, NodeClass, NodeSet, Reference, RequiredModel, RolePermission, ValueShape};
use crate::scalar::date_time;
use crate::xml::{Element, Source, children, text};
use core::str::FromStr;
use roxmltree::Node as XmlNode;
use std::collections::BTreeMap;
use taktwerk_types::{Identifier, LocalizedText, NodeId, QualifiedName, UaString, UtcTime};

/// The namespace at index 0 of every file.
const OPC_UA: &str = "http://opcfoundation.org/UA/";

impl NodeSet {
    /// Reads a NodeSet2 file. `file` is only used in messages.
    ///
    /// # Errors
    /// The first problem, with its line.
    pub fn parse(file: &str, text: &str) -> Result<Self, NodeSetError> {
        // Some tools write a byte order mark, which the XML parser treats as text.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let source = Source::new(file, text);
        let document = source.document()?;
        let root = document.root_element();
        if root.tag_name().name() != "UANodeSet" {
            let found = root.tag_name().name().to_owned();
            return Err(source.error(root, Problem::NotANodeSet { found }));
        }
        Reader::new(&source, root)?.read(root, file, text)
    }
}

/// Longest URI of a namespace in bytes. Clients read all of them in one Variable.
const URI_LEN_MAX: usize = 1024;
/// Maximum number of models of a file, and of those that a model requires.
const MODELS_MAX: usize = 100;

/// Longest String identifier in characters, and longest Opaque identifier in bytes (Part 3 §8.2.4).
const ID_LEN_MAX: usize = 4096;
/// Longest NodeId of an alias in bytes. Each use of the alias copies it.
const ALIASED_LEN_MAX: usize = 256;

/// The URI of a namespace. With a line break, it could not be kept in a list with one URI per line.
fn checked_uri<'a>(
    source: &Source<'_>,
    node: XmlNode<'_, '_>,
    what: &str,
    uri: &'a str,
) -> Result<&'a str, NodeSetError> {
    let uri = uri.trim();
    if !uri.is_empty() && uri.len() <= URI_LEN_MAX && !uri.chars().any(char::is_control) {
        return Ok(uri);
    }
    let (what, found) = (what.to_owned(), uri.chars().take(80).collect());
    let wanted = "a URI of 1 to 1024 bytes without control characters";
    Err(source.error(node, Problem::Malformed { what, found, wanted }))
}

struct Reader<'s> {
    source: &'s Source<'s>,
    namespace_uris: Vec<String>,
    aliases: BTreeMap<String, NodeId>,
}

impl<'s> Reader<'s> {
    fn new(source: &'s Source<'s>, root: XmlNode<'_, '_>) -> Result<Self, NodeSetError> {
        let mut namespace_uris = vec![OPC_UA.to_owned()];
        for uri in children(root, "NamespaceUris").flat_map(|table| children(table, "Uri")) {
            let uri = checked_uri(source, uri, "Uri", text(uri))?;
            // Index 0 is implied, but some files list it anyway.
            if uri != OPC_UA || namespace_uris.len() > 1 {
                namespace_uris.push(uri.to_owned());
            }
        }
        let mut reader = Self { source, namespace_uris, aliases: BTreeMap::new() };
        for alias in children(root, "Aliases").flat_map(|table| children(table, "Alias")) {
            let name = reader.required(alias, "Alias")?;
            let found = text(alias);
            if found.len() > ALIASED_LEN_MAX {
                return Err(reader.too_long(alias, found, "a NodeId of at most 256 bytes for an alias"));
            }
            let id = reader.node_id(alias, found)?;
            reader.aliases.insert(name.to_owned(), id);
        }
        Ok(reader)
    }

    fn read(self, root: XmlNode<'_, '_>, file: &str, text: &str) -> Result<NodeSet, NodeSetError> {
        let mut models = Vec::new();
        for model in children(root, "Models").flat_map(|table| children(table, "Model")) {
            if models.len() == MODELS_MAX {
                return Err(self.source.error(model, Problem::TooManyModels { limit: MODELS_MAX }));
            }
            models.push(self.model(model)?);
        }
        let mut nodes = Vec::new();
        let mut lines: BTreeMap<NodeId, u32> = BTreeMap::new();
        for child in root.children().filter(XmlNode::is_element) {
            let Some(class) = self.class(child)? else { continue };
            let node = self.node(child, class)?;
            if let Some(first_line) = lines.insert(node.node_id.clone(), node.line) {
                let problem = Problem::DuplicateNode { node_id: node.node_id, first_line };
                return Err(self.source.error(child, problem));
            }
            nodes.push(node);
        }
        if let Some(node) = circle::of_subtypes(&nodes) {
            let problem = Box::new(Problem::CircularTypes { node_id: node.node_id.clone() });
            return Err(NodeSetError { file: file.to_owned(), line: node.line, problem });
        }
        let namespace_map = (0..=u16::MAX).take(self.namespace_uris.len()).collect();
        let namespace_uris = self.namespace_uris;
        Ok(NodeSet {
            file: file.to_owned(),
            namespace_uris,
            models,
            nodes,
            namespace_map,
            source: text.into(),
        })
    }

    fn model(&self, node: XmlNode<'_, '_>) -> Result<Model, NodeSetError> {
        let mut required = Vec::new();
        for entry in children(node, "RequiredModel") {
            if required.len() == MODELS_MAX {
                return Err(self.source.error(entry, Problem::TooManyModels { limit: MODELS_MAX }));
            }
            required.push(RequiredModel {
                uri: self.model_uri(entry)?,
                version: entry.attribute("Version").map(str::to_owned),
                publication_date: self.date_time(entry, "PublicationDate")?,
                line: self.source.line(entry),
            });
        }
        Ok(Model {
            uri: self.model_uri(node)?,
            version: node.attribute("Version").map(str::to_owned),
            model_version: node.attribute("ModelVersion").map(str::to_owned),
            publication_date: self.date_time(node, "PublicationDate")?,
            required,
            role_permissions: self.role_permissions(node)?,
            access_restrictions: self.number(node, "AccessRestrictions")?.unwrap_or(0),
            line: self.source.line(node),
        })
    }

    fn model_uri(&self, node: XmlNode<'_, '_>) -> Result<String, NodeSetError> {
        let uri = self.required(node, "ModelUri")?;
        checked_uri(self.source, node, "ModelUri", uri).map(str::to_owned)
    }

    fn class(&self, node: XmlNode<'_, '_>) -> Result<Option<NodeClass>, NodeSetError> {
        let is_abstract = || self.boolean(node, "IsAbstract", false);
        Ok(Some(match node.tag_name().name() {
            "UAObject" => {
                NodeClass::Object { event_notifier: self.number(node, "EventNotifier")?.unwrap_or(0) }
            }
            "UAVariable" => NodeClass::Variable {
                shape: self.shape(node)?,
                access_level: self.number(node, "AccessLevel")?.unwrap_or(1),
                minimum_sampling_interval: self.number(node, "MinimumSamplingInterval")?.unwrap_or(0.0),
                historizing: self.boolean(node, "Historizing", false)?,
                value: self.value(node),
            },
            "UAMethod" => NodeClass::Method {
                executable: self.boolean(node, "Executable", true)?,
                declaration: self.optional_id(node, "MethodDeclarationId")?,
            },
            "UAObjectType" => NodeClass::ObjectType { is_abstract: is_abstract()? },
            "UAVariableType" => NodeClass::VariableType {
                shape: self.shape(node)?,
                is_abstract: is_abstract()?,
                value: self.value(node),
            },
            "UAReferenceType" => NodeClass::ReferenceType {
                is_abstract: is_abstract()?,
                symmetric: self.boolean(node, "Symmetric", false)?,
                inverse_names: localized(node, "InverseName"),
            },
            "UADataType" => NodeClass::DataType {
                is_abstract: is_abstract()?,
                definition: children(node, "Definition").next().map(|it| self.definition(it)).transpose()?,
            },
            "UAView" => NodeClass::View {
                event_notifier: self.number(node, "EventNotifier")?.unwrap_or(0),
                contains_no_loops: self.boolean(node, "ContainsNoLoops", false)?,
            },
            _ => return Ok(None),
        }))
    }

    fn node(&self, node: XmlNode<'_, '_>, class: NodeClass) -> Result<Node, NodeSetError> {
        let id = self.required(node, "NodeId")?;
        let mut references = Vec::new();
        for reference in children(node, "References").flat_map(|list| children(list, "Reference")) {
            references.push(Reference {
                reference_type: self.node_id(reference, self.required(reference, "ReferenceType")?)?,
                is_forward: self.boolean(reference, "IsForward", true)?,
                target: self.node_id(reference, text(reference))?,
            });
        }
        Ok(Node {
            node_id: self.node_id(node, id)?,
            browse_name: self.qualified_name(node, self.required(node, "BrowseName")?)?,
            display_names: localized(node, "DisplayName"),
            descriptions: localized(node, "Description"),
            symbolic_name: node.attribute("SymbolicName").map(str::to_owned),
            parent: self.optional_id(node, "ParentNodeId")?,
            write_mask: self.number(node, "WriteMask")?.unwrap_or(0),
            user_write_mask: self.number(node, "UserWriteMask")?.unwrap_or(0),
            access_restrictions: self.number(node, "AccessRestrictions")?,
            role_permissions: self.role_permissions(node)?,
            references,
            class,
            line: self.source.line(node),
        })
    }

    fn role_permissions(&self, node: XmlNode<'_, '_>) -> Result<Vec<RolePermission>, NodeSetError> {
        children(node, "RolePermissions")
            .flat_map(|list| children(list, "RolePermission"))
            .map(|entry| {
                Ok(RolePermission {
                    role: self.node_id(entry, text(entry))?,
                    permissions: self.number(entry, "Permissions")?.unwrap_or(0),
                })
            })
            .collect()
    }

    fn shape(&self, node: XmlNode<'_, '_>) -> Result<ValueShape, NodeSetError> {
        Ok(ValueShape {
            data_type: self.data_type(node)?,
            value_rank: self.number(node, "ValueRank")?.unwrap_or(-1),
            array_dimensions: self.dimensions(node)?,
        })
    }

    fn definition(&self, node: XmlNode<'_, '_>) -> Result<Definition, NodeSetError> {
        let fields = children(node, "Field").map(|field| self.field(field)).collect::<Result<_, _>>()?;
        let name = self.qualified_name(node, node.attribute("Name").unwrap_or(""))?.name;
        Ok(Definition {
            name: name.as_str().to_owned(),
            symbolic_name: node.attribute("SymbolicName").map(str::to_owned),
            is_union: self.boolean(node, "IsUnion", false)?,
            is_option_set: self.boolean(node, "IsOptionSet", false)?,
            fields,
            line: self.source.line(node),
        })
    }

    fn field(&self, node: XmlNode<'_, '_>) -> Result<Field, NodeSetError> {
        Ok(Field {
            name: self.required(node, "Name")?.to_owned(),
            symbolic_name: node.attribute("SymbolicName").map(str::to_owned),
            display_name: localized(node, "DisplayName").into_iter().next(),
            description: localized(node, "Description").into_iter().next(),
            data_type: self.data_type(node)?,
            value_rank: self.number(node, "ValueRank")?.unwrap_or(-1),
            array_dimensions: self.dimensions(node)?,
            max_string_length: self.number(node, "MaxStringLength")?.unwrap_or(0),
            value: self.number(node, "Value")?.unwrap_or(-1),
            is_optional: self.boolean(node, "IsOptional", false)?,
            allow_sub_types: self.boolean(node, "AllowSubTypes", false)?,
            line: self.source.line(node),
        })
    }

    fn value(&self, node: XmlNode<'_, '_>) -> Option<Element> {
        let value = children(node, "Value").next()?;
        value.children().find(XmlNode::is_element).map(|inner| self.source.element(inner))
    }

    fn required<'a>(&self, node: XmlNode<'a, '_>, attribute: &'static str) -> Result<&'a str, NodeSetError> {
        node.attribute(attribute).ok_or_else(|| {
            let element = node.tag_name().name().to_owned();
            self.source.error(node, Problem::MissingAttribute { element, attribute })
        })
    }

    fn malformed(
        &self,
        node: XmlNode<'_, '_>,
        what: &str,
        found: &str,
        wanted: &'static str,
    ) -> NodeSetError {
        self.source.error(node, Problem::Malformed { what: what.to_owned(), found: found.to_owned(), wanted })
    }

    fn number<T: FromStr>(&self, node: XmlNode<'_, '_>, attribute: &str) -> Result<Option<T>, NodeSetError> {
        let Some(found) = node.attribute(attribute) else { return Ok(None) };
        let parsed = found.trim().parse().map_err(|_| {
            self.malformed(node, attribute, found, "a number in the range UANodeSet.xsd gives")
        })?;
        Ok(Some(parsed))
    }

    fn boolean(&self, node: XmlNode<'_, '_>, attribute: &str, default: bool) -> Result<bool, NodeSetError> {
        match node.attribute(attribute).map(str::trim) {
            None => Ok(default),
            Some("true" | "1") => Ok(true),
            Some("false" | "0") => Ok(false),
            Some(found) => Err(self.malformed(node, attribute, found, "true or false")),
        }
    }

    fn date_time(&self, node: XmlNode<'_, '_>, attribute: &str) -> Result<Option<UtcTime>, NodeSetError> {
        let Some(found) = node.attribute(attribute) else { return Ok(None) };
        let time = date_time(found)
            .ok_or_else(|| self.malformed(node, attribute, found, "a time such as 2024-05-06T07:08:09Z"))?;
        Ok(Some(time))
    }

    fn dimensions(&self, node: XmlNode<'_, '_>) -> Result<Vec<u32>, NodeSetError> {
        let found = node.attribute("ArrayDimensions").unwrap_or("").trim();
        if found.is_empty() {
            return Ok(Vec::new());
        }
        found
            .split(',')
            .map(|length| length.trim().parse())
            .collect::<Result<_, _>>()
            .map_err(|_| self.malformed(node, "ArrayDimensions", found, "lengths separated by commas"))
    }

    fn optional_id(&self, node: XmlNode<'_, '_>, attribute: &str) -> Result<Option<NodeId>, NodeSetError> {
        node.attribute(attribute).map(|id| self.node_id(node, id)).transpose()
    }

    fn data_type(&self, node: XmlNode<'_, '_>) -> Result<NodeId, NodeSetError> {
        // UANodeSet.xsd: without the attribute it is BaseDataType.
        Ok(self.optional_id(node, "DataType")?.unwrap_or(NodeId::numeric(0, 24)))
    }

    fn node_id(&self, node: XmlNode<'_, '_>, found: &str) -> Result<NodeId, NodeSetError> {
        let found = found.trim();
        if let Some(id) = self.aliases.get(found) {
            return Ok(id.clone());
        }
        let id: NodeId = found
            .parse()
            .map_err(|_| self.source.error(node, Problem::UnknownAlias { found: found.to_owned() }))?;
        self.check_namespace(node, id.namespace_index)?;
        let is_long = match &id.identifier {
            Identifier::String(text) => text.as_str().chars().count() > ID_LEN_MAX,
            Identifier::Opaque(bytes) => bytes.as_bytes().len() > ID_LEN_MAX,
            Identifier::Numeric(_) | Identifier::Guid(_) => false,
        };
        if is_long {
            return Err(self.too_long(node, found, "a NodeId of at most 4096 characters"));
        }
        Ok(id)
    }

    fn too_long(&self, node: XmlNode<'_, '_>, found: &str, wanted: &'static str) -> NodeSetError {
        let found: String = found.chars().take(80).collect();
        self.malformed(node, node.tag_name().name(), &found, wanted)
    }

    fn qualified_name(&self, node: XmlNode<'_, '_>, found: &str) -> Result<QualifiedName, NodeSetError> {
        let name = QualifiedName::parse(found);
        self.check_namespace(node, name.namespace_index)?;
        Ok(name)
    }

    fn check_namespace(&self, node: XmlNode<'_, '_>, index: u16) -> Result<(), NodeSetError> {
        if usize::from(index) < self.namespace_uris.len() {
            return Ok(());
        }
        let listed = self.namespace_uris.len() - 1;
        Err(self.source.error(node, Problem::NamespaceIndex { index, listed }))
    }
}

fn localized(node: XmlNode<'_, '_>, name: &'static str) -> Vec<LocalizedText> {
    children(node, name)
        .map(|entry| LocalizedText {
            locale: entry.attribute("Locale").filter(|locale| !locale.is_empty()).into(),
            text: UaString::from(text(entry)),
        })
        .filter(|entry| !entry.text.is_empty())
        .collect()
}
