//! Writes nodes of a server as a NodeSet2 file (Part 6 Annex F), which [`NodeSet::parse`](crate::NodeSet::parse) can
//! read.
//!
//! The caller collects the nodes, from an address space or over a connection. Structures are written as ByteStrings with
//! the id of their binary encoding (Part 6 §5.3.1.16); NodeIds within them keep the server's namespace indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use taktwerk_schema::{EnumDefinition, ReferenceDescription, StructureDefinition, StructureType};
use taktwerk_types::node_id::base64;
use taktwerk_types::{
    ArrayValues, ExpandedNodeId, ExtensionObject, ExtensionObjectBody, LocalizedText, NodeId, QualifiedName,
    UtcTime, Variant,
};

/// Ids of the attributes (Part 6 Annex A) in [`ExportNode::attributes`].
pub mod attribute {
    #![allow(missing_docs)] // the names are the specification's
    pub const IS_ABSTRACT: u32 = 8;
    pub const SYMMETRIC: u32 = 9;
    pub const INVERSE_NAME: u32 = 10;
    pub const CONTAINS_NO_LOOPS: u32 = 11;
    pub const EVENT_NOTIFIER: u32 = 12;
    pub const VALUE: u32 = 13;
    pub const DATA_TYPE: u32 = 14;
    pub const VALUE_RANK: u32 = 15;
    pub const ARRAY_DIMENSIONS: u32 = 16;
    pub const ACCESS_LEVEL: u32 = 17;
    pub const MINIMUM_SAMPLING_INTERVAL: u32 = 19;
    pub const HISTORIZING: u32 = 20;
    pub const EXECUTABLE: u32 = 21;
    pub const DATA_TYPE_DEFINITION: u32 = 23;

    /// All of them.
    pub const ALL: [u32; 14] = [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 23];
}

/// One node of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportNode {
    /// Its id, with the server's namespace index.
    pub node_id: NodeId,
    /// The number of its NodeClass (Part 3 §8.29).
    pub node_class: i32,
    /// Its BrowseName.
    pub browse_name: QualifiedName,
    /// Its DisplayName.
    pub display_name: LocalizedText,
    /// Its Description; null if it has none.
    pub description: LocalizedText,
    /// The class-specific attributes, by their ids.
    pub attributes: BTreeMap<u32, Variant>,
    /// Its references in both directions.
    pub references: Vec<ExportReference>,
}

impl ExportNode {
    /// From read and browsed data: `attributes` by their ids, including NodeClass, BrowseName, DisplayName and
    /// Description (2 to 5). `None` without a NodeClass: the node does not exist any more.
    #[must_use]
    pub fn of_client(
        node_id: NodeId,
        mut attributes: BTreeMap<u32, Variant>,
        references: impl IntoIterator<Item = ReferenceDescription>,
        is_hierarchical: impl Fn(&NodeId) -> bool,
    ) -> Option<Self> {
        let Some(Variant::Int32(node_class)) = attributes.remove(&2) else { return None };
        let browse_name = match attributes.remove(&3) {
            Some(Variant::QualifiedName(name)) => *name,
            _ => QualifiedName::default(),
        };
        let mut text = |attribute: u32| match attributes.remove(&attribute) {
            Some(Variant::LocalizedText(text)) => *text,
            _ => LocalizedText::default(),
        };
        let (display_name, description) = (text(4), text(5));
        let reference = |reference: ReferenceDescription| ExportReference {
            is_hierarchical: is_hierarchical(&reference.reference_type_id),
            reference_type: reference.reference_type_id,
            is_forward: reference.is_forward,
            target: reference.node_id,
        };
        let references = references.into_iter().map(reference).collect();
        Some(Self { node_id, node_class, browse_name, display_name, description, attributes, references })
    }
}

/// A reference of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportReference {
    /// The ReferenceType.
    pub reference_type: NodeId,
    /// Whether the ReferenceType is hierarchical.
    pub is_hierarchical: bool,
    /// Whether it points from the node to the target.
    pub is_forward: bool,
    /// The other end.
    pub target: ExpandedNodeId,
}

/// An exported file, and what readers of it get wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The file.
    pub text: String,
    /// Nodes with a NodeId that readers read as another one: their own, or one in a reference or a value. It ends with white
    /// space, which readers remove, or has characters that XML does not allow. The same holds for the URI of its namespace, or
    /// of the one of their BrowseName.
    pub changed_ids: Vec<NodeId>,
    /// Nodes with a name, description or value that has U+FFFD in place of characters that XML does not allow.
    pub changed_texts: Vec<NodeId>,
}

/// Marks an id that readers change, until the node is complete. Written XML has no such characters.
const CHANGED_ID: char = '\u{1}';
/// Stands for a character that XML does not allow, until the node is complete.
const CHANGED_TEXT: char = '\0';

/// Writes a NodeSet2 file. `namespaces` is the server's NamespaceArray; `time` becomes the models' PublicationDate.
///
/// References to nodes outside `nodes` are kept if the importing server is likely to have the other end: types,
/// modelling rules, and parents of exported nodes. Nodes of namespace 0 are not written.
#[must_use]
pub fn export(namespaces: &[String], nodes: &[ExportNode], time: UtcTime) -> Exported {
    let mut exporter = Exporter::new(namespaces, nodes);
    exporter.out.push_str("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    exporter.out.push_str("<UANodeSet xmlns=\"http://opcfoundation.org/UA/2011/03/UANodeSet.xsd\">\n");
    exporter.head(time);
    for node in nodes.iter().filter(|node| node.node_id.namespace_index != 0) {
        exporter.node(node);
    }
    exporter.out.push_str("</UANodeSet>\n");
    let Exporter { out: text, changed_ids, changed_texts, .. } = exporter;
    Exported { text: text.replace(CHANGED_TEXT, "\u{fffd}"), changed_ids, changed_texts }
}

struct Exporter<'a> {
    namespaces: &'a [String],
    nodes: &'a [ExportNode],
    exported: BTreeSet<&'a NodeId>,
    /// The file's index for each of the server's namespaces in use.
    indexes: BTreeMap<u16, u16>,
    /// The server's namespaces with a URI that readers change, so that they change all NodeIds in them.
    changed_namespaces: BTreeSet<u16>,
    out: String,
    changed_ids: Vec<NodeId>,
    changed_texts: Vec<NodeId>,
}

impl<'a> Exporter<'a> {
    fn new(namespaces: &'a [String], nodes: &'a [ExportNode]) -> Self {
        let exported = nodes.iter().map(|node| &node.node_id).filter(|id| id.namespace_index != 0).collect();
        let mut exporter = Self {
            namespaces,
            nodes,
            exported,
            indexes: BTreeMap::new(),
            changed_namespaces: BTreeSet::new(),
            out: String::new(),
            changed_ids: Vec::new(),
            changed_texts: Vec::new(),
        };
        let mut used = BTreeSet::new();
        for node in nodes.iter().filter(|node| node.node_id.namespace_index != 0) {
            used.extend([node.node_id.namespace_index, node.browse_name.namespace_index]);
            for reference in exporter.kept(node) {
                used.extend([
                    reference.reference_type.namespace_index,
                    reference.target.node_id.namespace_index,
                ]);
            }
            for value in node.attributes.values() {
                collect(value, &mut used);
            }
        }
        used.remove(&0);
        let is_changed = |index: &u16| {
            let uri = namespaces.get(usize::from(*index)).map_or("", String::as_str);
            uri.trim() != uri || uri.contains(char::is_control) || escape(uri).contains(CHANGED_TEXT)
        };
        exporter.changed_namespaces = used.iter().copied().filter(is_changed).collect();
        let numbered = used.into_iter().zip(1..);
        exporter.indexes = core::iter::once((0, 0)).chain(numbered).collect();
        exporter
    }

    /// The references to write at a node, each once.
    fn kept<'b>(&self, node: &'b ExportNode) -> impl Iterator<Item = &'b ExportReference> {
        node.references.iter().filter(|reference| {
            let Some(target) = reference.target.local() else { return false };
            if self.exported.contains(target) {
                return reference.is_forward;
            }
            reference.is_forward != reference.is_hierarchical
        })
    }

    fn head(&mut self, time: UtcTime) {
        let uri = |index: u16| self.namespaces.get(usize::from(index)).map_or("", String::as_str);
        let uris: Vec<(u16, &str)> =
            self.indexes.keys().filter(|index| **index != 0).map(|index| (*index, uri(*index))).collect();
        let mut out = String::from("  <NamespaceUris>\n");
        for (_, uri) in &uris {
            let _ = writeln!(out, "    <Uri>{}</Uri>", escape(uri));
        }
        out.push_str("  </NamespaceUris>\n  <Models>\n");
        let with_nodes: BTreeSet<u16> = self.exported.iter().map(|id| id.namespace_index).collect();
        for (index, uri) in uris.iter().filter(|(index, _)| with_nodes.contains(index)) {
            let _ = writeln!(out, "    <Model ModelUri=\"{}\" PublicationDate=\"{time}\">", escape(uri));
            out.push_str("      <RequiredModel ModelUri=\"http://opcfoundation.org/UA/\"/>\n");
            for (other, uri) in &uris {
                // Models of one file that require each other would be circular.
                if other != index && !with_nodes.contains(other) {
                    let _ = writeln!(out, "      <RequiredModel ModelUri=\"{}\"/>", escape(uri));
                }
            }
            out.push_str("    </Model>\n");
        }
        out.push_str("  </Models>\n");
        self.out.push_str(&out);
    }

    fn index(&self, server: u16) -> u16 {
        self.indexes.get(&server).copied().unwrap_or(server)
    }

    fn id(&self, id: &NodeId) -> String {
        let mapped =
            NodeId { namespace_index: self.index(id.namespace_index), identifier: id.identifier.clone() };
        let mut id_text = escape_id(&mapped.to_string());
        if self.changed_namespaces.contains(&id.namespace_index) {
            id_text.push(CHANGED_ID);
        }
        id_text
    }

    fn name(&self, name: &QualifiedName) -> String {
        match self.index(name.namespace_index) {
            0 => escape(name.name.as_str()),
            index => format!("{index}:{}", escape(name.name.as_str())),
        }
    }

    fn node(&mut self, node: &ExportNode) {
        use attribute as a;
        let element = match node.node_class {
            1 => "UAObject",
            2 => "UAVariable",
            4 => "UAMethod",
            8 => "UAObjectType",
            16 => "UAVariableType",
            32 => "UAReferenceType",
            64 => "UADataType",
            128 => "UAView",
            _ => return,
        };
        let mut head = format!(
            "  <{element} NodeId=\"{}\" BrowseName=\"{}\"",
            self.id(&node.node_id),
            self.name(&node.browse_name)
        );
        let parent = node.references.iter().find(|reference| {
            reference.is_hierarchical && !reference.is_forward && reference.target.local().is_some()
        });
        if let (1 | 2 | 4, Some(parent)) = (node.node_class, parent) {
            let _ = write!(head, " ParentNodeId=\"{}\"", self.id(&parent.target.node_id));
        }
        let flag = |attribute: u32, name: &str, default: bool, head: &mut String| {
            if let Some(Variant::Boolean(value)) = node.attributes.get(&attribute)
                && *value != default
            {
                let _ = write!(head, " {name}=\"{value}\"");
            }
        };
        flag(a::IS_ABSTRACT, "IsAbstract", false, &mut head);
        flag(a::SYMMETRIC, "Symmetric", false, &mut head);
        flag(a::CONTAINS_NO_LOOPS, "ContainsNoLoops", false, &mut head);
        flag(a::HISTORIZING, "Historizing", false, &mut head);
        flag(a::EXECUTABLE, "Executable", true, &mut head);
        if let Some(Variant::Byte(bits @ 1..)) = node.attributes.get(&a::EVENT_NOTIFIER) {
            let _ = write!(head, " EventNotifier=\"{bits}\"");
        }
        if let Some(Variant::NodeId(data_type)) = node.attributes.get(&a::DATA_TYPE) {
            let _ = write!(head, " DataType=\"{}\"", self.id(data_type));
        }
        if let Some(Variant::Int32(rank)) = node.attributes.get(&a::VALUE_RANK)
            && *rank != -1
        {
            let _ = write!(head, " ValueRank=\"{rank}\"");
        }
        if let Some(Variant::Array(array)) = node.attributes.get(&a::ARRAY_DIMENSIONS)
            && let ArrayValues::UInt32(lengths) = &array.values
            && !lengths.is_empty()
        {
            let lengths: Vec<String> = lengths.iter().map(u32::to_string).collect();
            let _ = write!(head, " ArrayDimensions=\"{}\"", lengths.join(","));
        }
        if let Some(Variant::Byte(level)) = node.attributes.get(&a::ACCESS_LEVEL)
            && *level != 1
        {
            let _ = write!(head, " AccessLevel=\"{level}\"");
        }
        if let Some(Variant::Double(interval)) = node.attributes.get(&a::MINIMUM_SAMPLING_INTERVAL)
            && *interval != 0.0
        {
            let _ = write!(head, " MinimumSamplingInterval=\"{interval}\"");
        }
        head.push_str(">\n");
        head.push_str(&text("DisplayName", &node.display_name));
        if !node.description.text.is_null() {
            head.push_str(&text("Description", &node.description));
        }
        head.push_str("    <References>\n");
        for reference in self.kept(node) {
            let direction = if reference.is_forward { "" } else { " IsForward=\"false\"" };
            let _ = writeln!(
                head,
                "      <Reference ReferenceType=\"{}\"{direction}>{}</Reference>",
                self.id(&reference.reference_type),
                self.id(&reference.target.node_id)
            );
        }
        head.push_str("    </References>\n");
        if let Some(Variant::LocalizedText(inverse)) = node.attributes.get(&a::INVERSE_NAME)
            && !inverse.text.is_null()
        {
            head.push_str(&text("InverseName", inverse));
        }
        if let Some(Variant::ExtensionObject(definition)) = node.attributes.get(&a::DATA_TYPE_DEFINITION) {
            self.definition(node, definition, &mut head);
        }
        if let (2 | 16, Some(value)) = (node.node_class, node.attributes.get(&a::VALUE)) {
            self.value(value, &mut head);
        }
        let _ = writeln!(head, "  </{element}>");
        if self.changed_namespaces.contains(&node.browse_name.namespace_index) {
            head.push(CHANGED_ID);
        }
        for (mark, changed) in [(CHANGED_ID, &mut self.changed_ids), (CHANGED_TEXT, &mut self.changed_texts)]
        {
            if head.contains(mark) {
                changed.push(node.node_id.clone());
            }
        }
        head.retain(|char| char != CHANGED_ID);
        self.out.push_str(&head);
    }

    fn definition(&self, node: &ExportNode, definition: &ExtensionObject, out: &mut String) {
        let name = self.name(&node.browse_name);
        if let Ok(structure) = definition.decode::<StructureDefinition>() {
            let is_union = matches!(
                structure.structure_type,
                StructureType::UNION | StructureType::UNION_WITH_SUBTYPED_VALUES
            );
            let has_subtypes = matches!(
                structure.structure_type,
                StructureType::STRUCTURE_WITH_SUBTYPED_VALUES | StructureType::UNION_WITH_SUBTYPED_VALUES
            );
            let union = if is_union { " IsUnion=\"true\"" } else { "" };
            let _ = writeln!(out, "    <Definition Name=\"{name}\"{union}>");
            let inherited = self.inherited_fields(node);
            for field in structure.fields.iter().skip(inherited) {
                let _ = write!(
                    out,
                    "      <Field Name=\"{}\" DataType=\"{}\"",
                    escape(field.name.as_str()),
                    self.id(&field.data_type)
                );
                if field.value_rank != -1 {
                    let _ = write!(out, " ValueRank=\"{}\"", field.value_rank);
                }
                if field.max_string_length != 0 {
                    let _ = write!(out, " MaxStringLength=\"{}\"", field.max_string_length);
                }
                if field.is_optional {
                    out.push_str(if has_subtypes {
                        " AllowSubTypes=\"true\""
                    } else {
                        " IsOptional=\"true\""
                    });
                }
                out.push_str("/>\n");
            }
            out.push_str("    </Definition>\n");
        } else if let Ok(enumeration) = definition.decode::<EnumDefinition>() {
            let _ = writeln!(out, "    <Definition Name=\"{name}\">");
            for field in &enumeration.fields {
                let _ = writeln!(
                    out,
                    "      <Field Name=\"{}\" Value=\"{}\"/>",
                    escape(field.name.as_str()),
                    field.value
                );
            }
            out.push_str("    </Definition>\n");
        }
    }

    /// Number of fields that a structure inherits: the attribute lists them first, but a file omits them. Unknown if
    /// the supertype is not exported.
    fn inherited_fields(&self, node: &ExportNode) -> usize {
        let supertype = node.references.iter().find(|reference| {
            !reference.is_forward
                && reference.reference_type == NodeId::numeric(0, 45)
                && reference.target.local().is_some()
        });
        let known = supertype
            .and_then(|supertype| self.nodes.iter().find(|node| node.node_id == supertype.target.node_id));
        match known.and_then(|known| known.attributes.get(&attribute::DATA_TYPE_DEFINITION)) {
            Some(Variant::ExtensionObject(definition)) => {
                definition.decode::<StructureDefinition>().map_or(0, |structure| structure.fields.len())
            }
            _ => 0,
        }
    }

    fn value(&self, value: &Variant, out: &mut String) {
        let mut content = String::new();
        if self.variant(value, &mut content).is_some() && !content.is_empty() {
            let _ = writeln!(
                out,
                "    <Value xmlns:uax=\"http://opcfoundation.org/UA/2008/02/Types.xsd\">{content}</Value>"
            );
        }
    }

    /// The content of `<Value>`; `None` if XML cannot represent it.
    fn variant(&self, value: &Variant, out: &mut String) -> Option<()> {
        let Some(array) = value.as_array() else {
            if value.is_empty() {
                return Some(());
            }
            let kind = value.built_in_type()?.to_string();
            return self.scalar(value, &kind, out);
        };
        let kind = array.values.element_type().to_string();
        let mut elements = String::new();
        for at in 0..array.values.len() {
            let element = element(&array.values, at)?;
            if kind == "Variant" {
                elements.push_str("<uax:Variant>");
                if !element.is_empty() {
                    elements.push_str("<uax:Value>");
                    self.variant(&element, &mut elements)?;
                    elements.push_str("</uax:Value>");
                }
                elements.push_str("</uax:Variant>");
            } else {
                self.scalar(&element, &kind, &mut elements)?;
            }
        }
        if array.dimensions.is_empty() {
            let _ = write!(out, "<uax:ListOf{kind}>{elements}</uax:ListOf{kind}>");
        } else {
            out.push_str("<uax:Matrix><uax:Dimensions>");
            for length in &array.dimensions {
                let _ = write!(out, "<uax:Int32>{length}</uax:Int32>");
            }
            let _ = write!(out, "</uax:Dimensions><uax:Elements>{elements}</uax:Elements></uax:Matrix>");
        }
        Some(())
    }

    fn scalar(&self, value: &Variant, kind: &str, out: &mut String) -> Option<()> {
        let content = match value {
            Variant::Boolean(value) => value.to_string(),
            Variant::SByte(value) => value.to_string(),
            Variant::Byte(value) => value.to_string(),
            Variant::Int16(value) => value.to_string(),
            Variant::UInt16(value) => value.to_string(),
            Variant::Int32(value) => value.to_string(),
            Variant::UInt32(value) => value.to_string(),
            Variant::Int64(value) => value.to_string(),
            Variant::UInt64(value) => value.to_string(),
            Variant::Float(value) => float(f64::from(*value), value.to_string()),
            Variant::Double(value) => float(*value, value.to_string()),
            Variant::String(value) => escape(value.as_str()),
            Variant::DateTime(value) => value.to_string(),
            Variant::Guid(value) => format!("<uax:String>{value}</uax:String>"),
            Variant::ByteString(value) => base64(value.as_bytes()),
            Variant::NodeId(id) => format!("<uax:Identifier>{}</uax:Identifier>", self.id(id)),
            Variant::ExpandedNodeId(id) => match id.local() {
                Some(id) => format!("<uax:Identifier>{}</uax:Identifier>", self.id(id)),
                None => format!("<uax:Identifier>{}</uax:Identifier>", escape_id(&id.to_string())),
            },
            Variant::StatusCode(status) => format!("<uax:Code>{}</uax:Code>", status.0),
            Variant::QualifiedName(name) => format!(
                "<uax:NamespaceIndex>{}</uax:NamespaceIndex><uax:Name>{}</uax:Name>",
                self.index(name.namespace_index),
                escape(name.name.as_str())
            ),
            Variant::LocalizedText(text) => {
                let mut parts = String::new();
                if !text.locale.is_null() {
                    let _ = write!(parts, "<uax:Locale>{}</uax:Locale>", escape(text.locale.as_str()));
                }
                if !text.text.is_null() {
                    let _ = write!(parts, "<uax:Text>{}</uax:Text>", escape(text.text.as_str()));
                }
                parts
            }
            Variant::ExtensionObject(object) => {
                let id = self.id(&object.type_id);
                let body = match &object.body {
                    ExtensionObjectBody::None => String::new(),
                    ExtensionObjectBody::Binary(bytes) => format!(
                        "<uax:Body><uax:ByteString>{}</uax:ByteString></uax:Body>",
                        base64(bytes.as_bytes())
                    ),
                    _ => return None,
                };
                format!("<uax:TypeId><uax:Identifier>{id}</uax:Identifier></uax:TypeId>{body}")
            }
            _ => return None,
        };
        let _ = write!(out, "<uax:{kind}>{content}</uax:{kind}>");
        Some(())
    }
}

/// One element of an array; `None` for DataValues and DiagnosticInfos, which model Variables do not contain.
fn element(values: &ArrayValues, at: usize) -> Option<Variant> {
    macro_rules! element {
        ($($kind:ident)*) => {
            match values {
                $(ArrayValues::$kind(values) => values.get(at).cloned().map(Variant::from),)*
                _ => None,
            }
        };
    }
    element!(
        Boolean SByte Byte Int16 UInt16 Int32 UInt32 Int64 UInt64 Float Double String DateTime Guid ByteString
        XmlElement NodeId ExpandedNodeId StatusCode QualifiedName LocalizedText ExtensionObject Variant
    )
}

/// Collects the namespaces of ids and names in a value.
fn collect(value: &Variant, used: &mut BTreeSet<u16>) {
    match value {
        Variant::NodeId(id) => {
            used.insert(id.namespace_index);
        }
        Variant::ExpandedNodeId(id) => {
            used.extend(id.local().map(|id| id.namespace_index));
        }
        Variant::QualifiedName(name) => {
            used.insert(name.namespace_index);
        }
        Variant::ExtensionObject(object) => {
            used.insert(object.type_id.namespace_index);
            if let Ok(structure) = object.decode::<StructureDefinition>() {
                used.extend(structure.fields.iter().map(|field| field.data_type.namespace_index));
            }
        }
        Variant::Array(array) => {
            for at in 0..array.values.len() {
                if let Some(element) = element(&array.values, at) {
                    collect(&element, used);
                }
            }
        }
        _ => {}
    }
}

fn text(element: &str, text: &LocalizedText) -> String {
    let locale = match text.locale.as_str() {
        "" => String::new(),
        locale => format!(" Locale=\"{}\"", escape(locale)),
    };
    format!("    <{element}{locale}>{}</{element}>\n", escape(text.text.as_str()))
}

/// XML Schema has its own names for special values.
fn float(value: f64, text: String) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "INF".to_owned() } else { "-INF".to_owned() }
    } else {
        text
    }
}

/// Escapes a NodeId, and marks it if readers get another one.
fn escape_id(id: &str) -> String {
    let mut out = escape(id);
    if id.ends_with(char::is_whitespace) || out.contains(CHANGED_TEXT) {
        out = out.replace(CHANGED_TEXT, "\u{fffd}");
        out.push(CHANGED_ID);
    }
    out
}

/// Escapes text for elements and attributes. Characters that XML does not allow become [`CHANGED_TEXT`].
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\t' => out.push_str("&#9;"),
            '\0'..'\u{20}' | '\u{fffe}' | '\u{ffff}' => out.push(CHANGED_TEXT),
            char => out.push(char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NodeClass, NodeSet, TypeDictionary};

    fn node(id: NodeId, node_class: i32, name: &str) -> ExportNode {
        ExportNode {
            node_id: id,
            node_class,
            browse_name: QualifiedName::new(3, name),
            display_name: LocalizedText::from_text(name),
            description: LocalizedText::default(),
            attributes: BTreeMap::new(),
            references: Vec::new(),
        }
    }

    fn reference(kind: u32, is_hierarchical: bool, is_forward: bool, target: NodeId) -> ExportReference {
        ExportReference {
            reference_type: NodeId::numeric(0, kind),
            is_hierarchical,
            is_forward,
            target: target.into(),
        }
    }

    /// An exported value is read back with the same content, under the file's own indexes.
    fn round_trip(value: Variant) -> Option<Variant> {
        let data_type = u32::from(value.built_in_type().unwrap().number());
        let mut variable = node(NodeId::string(3, "v<&>\""), 2, "a \"name\" & <more>");
        variable.attributes.insert(attribute::VALUE, value);
        variable.attributes.insert(attribute::DATA_TYPE, NodeId::numeric(0, data_type).into());
        variable.references = vec![
            reference(47, true, false, NodeId::numeric(0, 85)),
            reference(40, false, true, NodeId::numeric(0, 63)),
        ];
        let namespaces = ["http://opcfoundation.org/UA/", "urn:a", "urn:b", "urn:c"].map(str::to_owned);
        let exported = export(&namespaces, &[variable], UtcTime::from_ticks(133_000_000_000_000_000));
        assert_eq!((exported.changed_ids, exported.changed_texts), (vec![], vec![]));
        let mut set = NodeSet::parse("test.xml", &exported.text).unwrap();
        assert_eq!(set.nodes[0].browse_name.name.as_str(), "a \"name\" & <more>");
        assert_eq!(set.nodes[0].references.len(), 2);
        // Map back to the indexes of the original server.
        set.remap(|uri| namespaces.iter().position(|known| known == uri).map(|at| at as u16)).unwrap();
        assert_eq!(set.nodes[0].node_id, NodeId::string(3, "v<&>\""));
        set.value(&set.nodes[0], &TypeDictionary::namespace_zero()).unwrap()
    }

    #[test]
    fn values_survive() {
        let range = taktwerk_schema::Range { low: -1.5, high: 1e300 };
        for value in [
            Variant::from(true),
            (-5i8).into(),
            200u8.into(),
            i64::MIN.into(),
            u64::MAX.into(),
            0.1f32.into(),
            f64::NEG_INFINITY.into(),
            "line\nbreak <&> \u{e4}".into(),
            UtcTime::parse("2026-01-02T03:04:05.678Z").unwrap().into(),
            NodeId::string(2, "x").into(),
            QualifiedName::new(1, "q").into(),
            LocalizedText { locale: "de".into(), text: "Wert".into() }.into(),
            Variant::from_structure(&range),
            vec![1.5f64, 2.5].into(),
            vec![Variant::from(1i32), Variant::from("two")].into(),
            Variant::matrix(vec![1i32, 2, 3, 4, 5, 6], vec![2, 3]).unwrap(),
        ] {
            assert_eq!(round_trip(value.clone()), Some(value));
        }
    }

    #[test]
    fn references_are_written_once_and_to_known_nodes() {
        let (parent, child) = (NodeId::numeric(3, 1), NodeId::numeric(3, 2));
        let mut one = node(parent.clone(), 1, "one");
        one.references = vec![
            reference(35, true, false, NodeId::numeric(0, 85)),
            reference(40, false, true, NodeId::numeric(0, 61)),
            reference(47, true, true, child.clone()),
            // A child that is not exported.
            reference(47, true, true, NodeId::numeric(3, 9)),
        ];
        let mut two = node(child, 1, "two");
        two.references =
            vec![reference(47, true, false, parent), reference(40, false, true, NodeId::numeric(0, 58))];
        let namespaces = ["http://opcfoundation.org/UA/", "urn:a", "urn:b", "urn:c"].map(str::to_owned);
        let text = export(&namespaces, &[one, two], UtcTime::NULL).text;
        let set = NodeSet::parse("test.xml", &text).unwrap();
        assert_eq!(set.namespace_uris, ["http://opcfoundation.org/UA/", "urn:c"]);
        assert_eq!(set.models.len(), 1);
        let counts: Vec<usize> = set.nodes.iter().map(|node| node.references.len()).collect();
        assert_eq!(counts, [3, 1]);
        assert!(matches!(set.nodes[0].class, NodeClass::Object { event_notifier: 0 }));
    }

    /// Either a reader gets the same namespaces, or all nodes that use a changed one are named.
    #[test]
    fn uris_that_xml_changes_are_named() {
        for uri in ["urn:b c", "urn:b", "urn:\u{1}", " urn:b", "urn:b\n", "urn:a\tb", "urn:\u{ffff}"] {
            let namespaces = ["http://opcfoundation.org/UA/", "urn:a", uri].map(str::to_owned);
            let (own, other) = (NodeId::numeric(2, 1), NodeId::numeric(1, 2));
            let of = |id: NodeId, namespace_index: u16| {
                let mut node = node(id, 1, "name");
                node.browse_name.namespace_index = namespace_index;
                node
            };
            let (parent, mut child, named) =
                (of(own.clone(), 1), of(other.clone(), 1), of(NodeId::numeric(1, 3), 2));
            child.references = vec![reference(47, true, false, own.clone())];
            let exported = export(&namespaces, &[parent, child, named], UtcTime::NULL);
            let set = NodeSet::parse("test.xml", &exported.text);
            let is_same = set.is_ok_and(|set| set.namespace_uris.iter().any(|read| read == uri));
            let changed = [own, other, NodeId::numeric(1, 3)];
            assert_eq!(exported.changed_ids, if is_same { &[][..] } else { &changed }, "{uri:?}");
        }
    }

    /// Either a reader gets the same ids and names, or the node is named.
    #[test]
    fn texts_that_xml_changes_are_named() {
        let namespaces = ["http://opcfoundation.org/UA/", "urn:a", "urn:b", "urn:c"].map(str::to_owned);
        for text in [
            "a\tb",
            "a\r\nb",
            " a  b",
            "a\u{a0}b",
            "a\u{fffd}",
            "a\u{1}b",
            "a\u{0}",
            "a ",
            "a\n",
            "a\u{a0}",
            "\u{ffff}",
        ] {
            let id = NodeId::string(3, text);
            let mut child = node(NodeId::numeric(3, 1), 1, "child");
            child.references = vec![reference(47, true, false, id.clone())];
            let mut valued = node(NodeId::numeric(3, 2), 2, "valued");
            valued.attributes.insert(attribute::VALUE, id.clone().into());
            valued.attributes.insert(attribute::DATA_TYPE, NodeId::numeric(0, 17).into());
            let nodes = [node(id.clone(), 1, "parent"), child, valued, node(NodeId::numeric(3, 3), 1, text)];
            let exported = export(&namespaces, &nodes, UtcTime::NULL);
            let set = NodeSet::parse("test.xml", &exported.text).unwrap();
            let value = set.value(&set.nodes[2], &TypeDictionary::namespace_zero()).unwrap();
            let read = [
                set.nodes[0].node_id == NodeId::string(1, text),
                value == Some(NodeId::string(1, text).into()),
            ];
            let is_same = !exported.changed_ids.contains(&id);
            assert_eq!(read, [is_same; 2], "{text:?}");
            let named = [id, NodeId::numeric(3, 1), NodeId::numeric(3, 2)];
            assert_eq!(exported.changed_ids, if is_same { &[][..] } else { &named }, "{text:?}");
            let has_name = set.nodes[3].browse_name.name.as_str() == text;
            assert_eq!(exported.changed_texts.is_empty(), has_name, "{text:?}");
            assert_eq!(exported.changed_texts.contains(&NodeId::numeric(3, 3)), !has_name, "{text:?}");
        }
    }
}
