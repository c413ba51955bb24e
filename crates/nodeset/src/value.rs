//! Converts XML values (Part 6 §5.3) to the binary encoding, and from there to Variants. The same code handles values,
//! structure bodies and nested values.

use crate::budget::Budget;
use crate::definition::Field;
use crate::dictionary::{DataTypeKind, StructureLayout, TypeDictionary};
use crate::error::{NodeSetError, Problem};
use crate::model::{Node, NodeSet};
use crate::scalar::{boolean, date_time, float};
use crate::xml::Element;
use core::str::FromStr;
use taktwerk_types::codec::{encode_len, encode_sized};
use taktwerk_types::node_id::unbase64;
use taktwerk_types::variant::{ARRAY_BIT, DIMENSIONS_BIT};
use taktwerk_types::{
    BuiltInType, ByteString, DataValue, Decode, DecodeLimits, DiagnosticInfo, Encode, ExpandedNodeId, Guid,
    LocalizedText, NodeId, QualifiedName, StatusCode, UaString, Variant, XmlElement,
};

/// Maximum nesting of structure types when defaults are written for omitted fields.
const DEFAULT_DEPTH_MAX: usize = 32;

impl NodeSet {
    /// The value of a Variable or VariableType, with ids in the server's namespace indexes.
    ///
    /// # Errors
    /// The value is malformed or a type is unknown; the line is that of the offending element.
    pub fn value(&self, node: &Node, types: &TypeDictionary) -> Result<Option<Variant>, NodeSetError> {
        self.value_within(node, types, &Budget::of(core::slice::from_ref(self)))
    }

    /// [`Self::value`] for many nodes, whose omitted fields take bytes of the budget.
    ///
    /// # Errors
    /// As [`Self::value`], or [`Problem::TooLarge`].
    pub fn value_within(
        &self,
        node: &Node,
        types: &TypeDictionary,
        budget: &Budget,
    ) -> Result<Option<Variant>, NodeSetError> {
        let Some(element) = node.class.value() else { return Ok(None) };
        let writer = Writer { set: self, types, budget };
        let mut bytes = Vec::new();
        writer.variant_content(element, &mut bytes)?;
        let variant = Variant::decode_from(&bytes, DecodeLimits::DEFAULT);
        variant.map(Some).map_err(|error| writer.value_error(element, error.to_string()))
    }
}

struct Writer<'a> {
    set: &'a NodeSet,
    types: &'a TypeDictionary,
    budget: &'a Budget,
}

/// What a field may take whose XML is omitted: its value, and its definition while the value is written.
const FIELD_LEN: usize = 16;

type Written = Result<(), NodeSetError>;

impl Writer<'_> {
    fn error(&self, element: &Element, problem: Problem) -> NodeSetError {
        NodeSetError { file: self.set.file.clone(), line: element.line, problem: Box::new(problem) }
    }

    fn value_error(&self, element: &Element, reason: impl Into<String>) -> NodeSetError {
        self.error(element, Problem::Value(reason.into()))
    }

    fn malformed(&self, element: &Element, wanted: &'static str) -> NodeSetError {
        let what = format!("<{}>", element.name);
        self.error(element, Problem::Malformed { what, found: element.text.to_string(), wanted })
    }

    fn number<T: FromStr>(&self, element: &Element, wanted: &'static str) -> Result<T, NodeSetError> {
        element.text.trim().parse().map_err(|_| self.malformed(element, wanted))
    }

    /// The content of `<Value>`: an encoded Variant with its type byte.
    fn variant_content(&self, element: &Element, out: &mut Vec<u8>) -> Written {
        if &*element.name == "Matrix" {
            return self.matrix(element, out);
        }
        if let Some(kind) = element.name.strip_prefix("ListOf").and_then(built_in) {
            out.push(kind.number() | ARRAY_BIT);
            return self.list(element, out, &mut |child, out| self.built_in(kind, child, out));
        }
        match built_in(&element.name) {
            // A Variant in a Variant is only allowed in arrays.
            Some(BuiltInType::Variant) => self.built_in(BuiltInType::Variant, element, out),
            Some(kind) => {
                out.push(kind.number());
                self.built_in(kind, element, out)
            }
            None => Err(self.value_error(
                element,
                format!("<{}> is not a built-in type; write e.g. <Double> or <ListOfInt32>", element.name),
            )),
        }
    }

    fn matrix(&self, element: &Element, out: &mut Vec<u8>) -> Written {
        let elements = element.child("Elements").filter(|elements| !elements.children.is_empty());
        let Some(elements) = elements else {
            return Err(self.value_error(element, "<Matrix> has no <Elements>; leave <Value> out instead"));
        };
        let first = elements.children.first().and_then(|child| built_in(&child.name));
        let kind = first.ok_or_else(|| self.value_error(elements, "the elements are of no built-in type"))?;
        out.push(kind.number() | ARRAY_BIT | DIMENSIONS_BIT);
        self.list(elements, out, &mut |child, out| self.built_in(kind, child, out))?;
        match element.child("Dimensions") {
            Some(dimensions) => {
                self.list(dimensions, out, &mut |child, out| self.built_in(BuiltInType::Int32, child, out))
            }
            None => Err(self.value_error(element, "<Matrix> has no <Dimensions>")),
        }
    }

    fn list(
        &self,
        element: &Element,
        out: &mut Vec<u8>,
        write: &mut dyn FnMut(&Element, &mut Vec<u8>) -> Written,
    ) -> Written {
        encode_len(element.children.len(), out);
        element.children.iter().try_for_each(|child| write(child, out))
    }

    /// A value of a built-in type without its type byte.
    fn built_in(&self, kind: BuiltInType, element: &Element, out: &mut Vec<u8>) -> Written {
        match kind {
            BuiltInType::Boolean => boolean(element.text.trim())
                .ok_or_else(|| self.malformed(element, "true or false"))?
                .encode(out),
            BuiltInType::SByte => self.number::<i8>(element, "a whole number from -128 to 127")?.encode(out),
            BuiltInType::Byte => self.number::<u8>(element, "a whole number from 0 to 255")?.encode(out),
            BuiltInType::Int16 => self.number::<i16>(element, "a whole number of 16 bits")?.encode(out),
            BuiltInType::UInt16 => {
                self.number::<u16>(element, "a whole number of 16 bits without sign")?.encode(out);
            }
            BuiltInType::Int32 => self.number::<i32>(element, "a whole number of 32 bits")?.encode(out),
            BuiltInType::UInt32 => {
                self.number::<u32>(element, "a whole number of 32 bits without sign")?.encode(out);
            }
            BuiltInType::Int64 => self.number::<i64>(element, "a whole number of 64 bits")?.encode(out),
            BuiltInType::UInt64 => {
                self.number::<u64>(element, "a whole number of 64 bits without sign")?.encode(out);
            }
            BuiltInType::Float => {
                let value = float(element.text.trim()).ok_or_else(|| self.malformed(element, "a number"))?;
                #[allow(clippy::cast_possible_truncation)] // XML Schema rounds to the nearest float too
                (value as f32).encode(out);
            }
            BuiltInType::Double => {
                float(element.text.trim()).ok_or_else(|| self.malformed(element, "a number"))?.encode(out);
            }
            BuiltInType::String => UaString::from(&*element.text).encode(out),
            BuiltInType::DateTime => date_time(&element.text)
                .ok_or_else(|| self.malformed(element, "a time such as 2024-05-06T07:08:09Z"))?
                .encode(out),
            BuiltInType::Guid => self.guid(element)?.encode(out),
            BuiltInType::ByteString => self.byte_string(element)?.encode(out),
            BuiltInType::XmlElement => {
                let inner = self.set.source.get(element.inner.clone()).unwrap_or("");
                XmlElement::from(inner.trim()).encode(out);
            }
            BuiltInType::NodeId => self.node_id(element)?.encode(out),
            BuiltInType::ExpandedNodeId => self.expanded_node_id(element)?.encode(out),
            BuiltInType::StatusCode => {
                let code = match element.child("Code") {
                    Some(code) => self.number::<u32>(code, "a whole number of 32 bits without sign")?,
                    None => 0,
                };
                StatusCode(code).encode(out);
            }
            BuiltInType::QualifiedName => self.qualified_name(element)?.encode(out),
            BuiltInType::LocalizedText => {
                let part = |name| element.child_text(name).filter(|text| !text.is_empty());
                LocalizedText { locale: part("Locale").into(), text: part("Text").into() }.encode(out);
            }
            BuiltInType::ExtensionObject => self.extension_object(element, out)?,
            BuiltInType::DataValue => self.data_value(element)?.encode(out),
            BuiltInType::Variant => match element.child("Value").and_then(|value| value.children.first()) {
                Some(content) => self.variant_content(content, out)?,
                None => out.push(0),
            },
            BuiltInType::DiagnosticInfo => self.diagnostic_info(element)?.encode(out),
        }
        Ok(())
    }

    fn guid(&self, element: &Element) -> Result<Guid, NodeSetError> {
        let text = element.child_text("String").unwrap_or(&element.text).trim();
        if text.is_empty() {
            return Ok(Guid::NULL);
        }
        text.parse().map_err(|_| self.malformed(element, "72962b91-fa75-4ae6-8d28-b404dc7daf63"))
    }

    fn byte_string(&self, element: &Element) -> Result<ByteString, NodeSetError> {
        let bytes = unbase64(&element.text).ok_or_else(|| self.malformed(element, "base64"))?;
        Ok(bytes.into())
    }

    /// The server's index of a namespace index of the file.
    fn namespace(&self, element: &Element, index: u16) -> Result<u16, NodeSetError> {
        self.set.namespace_map.get(usize::from(index)).copied().ok_or_else(|| {
            let listed = self.set.namespace_uris.len().saturating_sub(1);
            self.error(element, Problem::NamespaceIndex { index, listed })
        })
    }

    fn node_id(&self, element: &Element) -> Result<NodeId, NodeSetError> {
        let id = self.expanded_node_id(element)?;
        if id.server_index != 0 || !id.namespace_uri.is_null() {
            return Err(self.malformed(element, "a NodeId of this file's namespaces, such as ns=1;i=5"));
        }
        Ok(id.node_id)
    }

    fn expanded_node_id(&self, element: &Element) -> Result<ExpandedNodeId, NodeSetError> {
        let text = element.child_text("Identifier").unwrap_or(&element.text).trim();
        if text.is_empty() {
            return Ok(ExpandedNodeId::default());
        }
        let wanted = "a NodeId such as i=85 or ns=1;s=Name";
        let mut id: ExpandedNodeId = text.parse().map_err(|_| self.malformed(element, wanted))?;
        let uri = id.namespace_uri.as_deref().map(str::to_owned);
        if let Some(uri) = uri {
            // A namespace of the file has an index in the server.
            if let Some(at) = self.set.namespace_uris.iter().position(|known| *known == uri) {
                id.namespace_uri = UaString::NULL;
                id.node_id.namespace_index = self.set.namespace_map.get(at).copied().unwrap_or(0);
            }
        } else if id.server_index == 0 {
            id.node_id.namespace_index = self.namespace(element, id.node_id.namespace_index)?;
        }
        Ok(id)
    }

    fn qualified_name(&self, element: &Element) -> Result<QualifiedName, NodeSetError> {
        let index = match element.child("NamespaceIndex") {
            Some(index) => self.number(index, "a namespace index")?,
            None => 0,
        };
        let name = element.child_text("Name").filter(|name| !name.is_empty());
        Ok(QualifiedName { namespace_index: self.namespace(element, index)?, name: name.into() })
    }

    fn data_value(&self, element: &Element) -> Result<DataValue, NodeSetError> {
        let read = |name: &str, kind: BuiltInType| -> Result<Option<Variant>, NodeSetError> {
            let Some(child) = element.child(name) else { return Ok(None) };
            let mut bytes = Vec::new();
            if kind != BuiltInType::Variant {
                bytes.push(kind.number());
            }
            match (kind, child.children.first()) {
                (BuiltInType::Variant, Some(content)) => self.variant_content(content, &mut bytes)?,
                (BuiltInType::Variant, None) => bytes.push(0),
                _ => self.built_in(kind, child, &mut bytes)?,
            }
            let value = Variant::decode_from(&bytes, DecodeLimits::DEFAULT);
            value.map(Some).map_err(|error| self.value_error(child, error.to_string()))
        };
        Ok(DataValue {
            value: read("Value", BuiltInType::Variant)?,
            status: read("StatusCode", BuiltInType::StatusCode)?.and_then(|value| value.try_into().ok()),
            source_timestamp: read("SourceTimestamp", BuiltInType::DateTime)?
                .and_then(|it| it.try_into().ok()),
            server_timestamp: read("ServerTimestamp", BuiltInType::DateTime)?
                .and_then(|it| it.try_into().ok()),
            source_picoseconds: read("SourcePicoseconds", BuiltInType::UInt16)?
                .and_then(|it| it.try_into().ok()),
            server_picoseconds: read("ServerPicoseconds", BuiltInType::UInt16)?
                .and_then(|it| it.try_into().ok()),
        })
    }

    fn diagnostic_info(&self, element: &Element) -> Result<DiagnosticInfo, NodeSetError> {
        let index = |name: &str| match element.child(name) {
            Some(child) => self.number(child, "a whole number of 32 bits").map(Some),
            None => Ok(None),
        };
        let code = element.child("InnerStatusCode").and_then(|child| child.child("Code"));
        let inner =
            element.child("InnerDiagnosticInfo").map(|child| self.diagnostic_info(child)).transpose()?;
        Ok(DiagnosticInfo {
            symbolic_id: index("SymbolicId")?,
            namespace_uri: index("NamespaceUri")?,
            locale: index("Locale")?,
            localized_text: index("LocalizedText")?,
            additional_info: element.child_text("AdditionalInfo").map(UaString::from),
            inner_status_code: match code {
                Some(code) => Some(StatusCode(self.number(code, "a whole number of 32 bits without sign")?)),
                None => None,
            },
            inner_diagnostic_info: inner.map(Box::new),
        })
    }

    fn extension_object(&self, element: &Element, out: &mut Vec<u8>) -> Written {
        let type_id = match element.child("TypeId") {
            Some(type_id) => self.node_id(type_id)?,
            None => NodeId::NULL,
        };
        let content = element.child("Body").and_then(|body| body.children.first());
        let Some(content) = content else {
            type_id.encode(out);
            out.push(0);
            return Ok(());
        };
        if &*content.name == "ByteString" {
            type_id.encode(out);
            out.push(1);
            return self.built_in(BuiltInType::ByteString, content, out);
        }
        let unknown = || self.error(element, Problem::UnknownDataType { node_id: type_id.clone() });
        let data_type = self.types.by_encoding(&type_id).ok_or_else(unknown)?;
        let entry = self.types.get(data_type).ok_or_else(unknown)?;
        let binary = entry.binary_encoding.as_ref().ok_or_else(|| {
            let reason = "has no Default Binary encoding".to_owned();
            self.error(element, Problem::BadDataType { node_id: data_type.clone(), reason })
        })?;
        let layout = self.types.layout(data_type).map_err(|problem| self.error(element, problem))?;
        self.charge(element, &layout)?;
        binary.encode(out);
        out.push(1);
        let mut result = Ok(());
        encode_sized(out, |out| result = self.structure(&layout, content, out));
        result
    }

    fn structure(&self, layout: &StructureLayout, element: &Element, out: &mut Vec<u8>) -> Written {
        for child in &element.children {
            let known = layout.fields.iter().any(|field| *field.name == *child.name)
                || layout.is_union && &*child.name == "SwitchField"
                || layout.has_optional_fields && &*child.name == "EncodingMask";
            if !known {
                let names: Vec<&str> = layout.fields.iter().map(|field| field.name.as_str()).collect();
                let reason = format!(
                    "{} has no field <{}>; its fields are {}",
                    layout.name,
                    child.name,
                    names.join(", ")
                );
                return Err(self.value_error(child, reason));
            }
        }
        if layout.is_union {
            return self.union(layout, element, out);
        }
        if layout.has_optional_fields {
            let optional = layout.fields.iter().filter(|field| field.is_optional);
            let mask = optional.enumerate().fold(0u32, |mask, (bit, field)| {
                let present = u32::from(element.child(&field.name).is_some());
                mask | present.checked_shl(u32::try_from(bit).unwrap_or(u32::MAX)).unwrap_or(0)
            });
            mask.encode(out);
        }
        layout.fields.iter().try_for_each(|field| match element.child(&field.name) {
            Some(child) => self.field(field, child, out),
            None if field.is_optional => Ok(()),
            None => self.default_field(element, field, out, 0),
        })
    }

    fn union(&self, layout: &StructureLayout, element: &Element, out: &mut Vec<u8>) -> Written {
        let chosen = layout
            .fields
            .iter()
            .zip(1u32..)
            .find_map(|(field, switch)| Some((field, switch, element.child(&field.name)?)));
        match chosen {
            None => {
                0u32.encode(out);
                Ok(())
            }
            Some((field, switch, child)) => {
                switch.encode(out);
                self.field(field, child, out)
            }
        }
    }

    fn kind(&self, element: &Element, field: &Field) -> Result<DataTypeKind, NodeSetError> {
        let kind = self.types.field_kind(field).map_err(|problem| self.error(element, problem))?;
        if let DataTypeKind::Structure(layout) = &kind {
            self.charge(element, layout)?;
        }
        Ok(kind)
    }

    fn charge(&self, element: &Element, layout: &StructureLayout) -> Written {
        let len = (layout.fields.len() + 1) * FIELD_LEN;
        self.budget.charge(len).map_err(|problem| self.error(element, problem))
    }

    fn field(&self, field: &Field, element: &Element, out: &mut Vec<u8>) -> Written {
        let kind = self.kind(element, field)?;
        let mut one = |element: &Element, out: &mut Vec<u8>| self.typed(field, &kind, element, out);
        match field.value_rank {
            rank if rank > 1 => {
                // Part 6 §5.2.5: the dimensions, then the elements without a count.
                let dimensions = element.child("Dimensions").map_or(&[][..], |it| &it.children);
                encode_len(dimensions.len(), out);
                for length in dimensions {
                    self.built_in(BuiltInType::Int32, length, out)?;
                }
                let elements = element.child("Elements").map_or(&[][..], |it| &it.children);
                elements.iter().try_for_each(|child| one(child, out))
            }
            rank if rank >= 0 => self.list(element, out, &mut one),
            _ => one(element, out),
        }
    }

    fn typed(&self, field: &Field, kind: &DataTypeKind, element: &Element, out: &mut Vec<u8>) -> Written {
        match kind {
            DataTypeKind::BuiltIn(kind) => self.built_in(*kind, element, out),
            DataTypeKind::Structure(layout) => self.structure(layout, element, out),
            DataTypeKind::Enumeration => {
                let text = element.text.trim();
                // Part 6 §5.3.1.14: written as Name_Value; a plain number or name is accepted, too.
                let number = text.rsplit('_').next().and_then(|number| number.parse::<i32>().ok());
                let by_name = || {
                    let definition = self.types.get(&field.data_type)?.definition.as_ref()?;
                    let field = definition.fields.iter().find(|field| field.name == text)?;
                    i32::try_from(field.value).ok()
                };
                let number = number.or_else(by_name);
                number
                    .ok_or_else(|| self.malformed(element, "an enumeration value such as Red_1"))?
                    .encode(out);
                Ok(())
            }
        }
    }

    /// The default of a field that the XML omits.
    fn default_field(&self, element: &Element, field: &Field, out: &mut Vec<u8>, depth: usize) -> Written {
        if field.value_rank >= 0 {
            encode_len(0, out);
            return Ok(());
        }
        if depth > DEFAULT_DEPTH_MAX {
            let reason = "contains itself".to_owned();
            return Err(
                self.error(element, Problem::BadDataType { node_id: field.data_type.clone(), reason })
            );
        }
        match self.kind(element, field)? {
            DataTypeKind::BuiltIn(kind) => default_built_in(kind, out),
            DataTypeKind::Enumeration => 0i32.encode(out),
            DataTypeKind::Structure(layout) if layout.is_union => 0u32.encode(out),
            DataTypeKind::Structure(layout) => {
                if layout.has_optional_fields {
                    0u32.encode(out);
                }
                for inner in layout.fields.iter().filter(|inner| !inner.is_optional) {
                    self.default_field(element, inner, out, depth + 1)?;
                }
            }
        }
        Ok(())
    }
}

fn default_built_in(kind: BuiltInType, out: &mut Vec<u8>) {
    match kind {
        BuiltInType::Boolean | BuiltInType::SByte | BuiltInType::Byte => out.push(0),
        BuiltInType::Int16 | BuiltInType::UInt16 => 0u16.encode(out),
        BuiltInType::Int32 | BuiltInType::UInt32 | BuiltInType::Float | BuiltInType::StatusCode => {
            0u32.encode(out)
        }
        BuiltInType::Int64 | BuiltInType::UInt64 | BuiltInType::Double | BuiltInType::DateTime => {
            0u64.encode(out)
        }
        BuiltInType::String | BuiltInType::ByteString | BuiltInType::XmlElement => UaString::NULL.encode(out),
        BuiltInType::Guid => Guid::NULL.encode(out),
        BuiltInType::NodeId | BuiltInType::ExpandedNodeId => NodeId::NULL.encode(out),
        BuiltInType::QualifiedName => QualifiedName::default().encode(out),
        BuiltInType::LocalizedText
        | BuiltInType::DataValue
        | BuiltInType::Variant
        | BuiltInType::DiagnosticInfo => {
            out.push(0);
        }
        BuiltInType::ExtensionObject => taktwerk_types::ExtensionObject::NULL.encode(out),
    }
}

fn built_in(name: &str) -> Option<BuiltInType> {
    BuiltInType::ALL.into_iter().find(|kind| format!("{kind:?}") == name)
}
