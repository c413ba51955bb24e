//! Namespace 0 as a blob. `crates/schema/src/ns0.rs` documents and reads its format.

use super::output::Output;
use super::types::number;
use crate::Failure;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_nodeset::model::ValueShape;
use taktwerk_nodeset::{Node, NodeClass, NodeSet, TypeDictionary};
use taktwerk_types::{Encode, LocalizedText, NodeId};

/// The first bytes of the blob: a name and the version of the format.
const MAGIC: &[u8; 8] = b"TWNS0\0\0\x01";
const HAS_TYPE_DEFINITION: u32 = 40;
const HAS_SUBTYPE: u32 = 45;
const DATA_TYPE_DICTIONARY_TYPE: u16 = 72;

/// Writes the blob.
pub(crate) fn generate(set: &NodeSet, types: &TypeDictionary, output: &mut Output) -> Result<(), Failure> {
    let mut nodes: BTreeMap<u16, &Node> = BTreeMap::new();
    for node in &set.nodes {
        nodes.insert(small(&node.node_id)?, node);
    }
    let references = references(&nodes)?;
    let mut strings = Strings::default();
    let mut extras = Extras::default();
    let (mut records, mut reference_bytes, mut reference_types) = (Vec::new(), Vec::new(), Vec::new());
    let mut first_reference = 0u32;
    for (id, node) in &nodes {
        let own = references.get(id).cloned().unwrap_or_default();
        record(*id, node, set, types, &own, first_reference, (&mut strings, &mut extras), &mut records)?;
        for (reference_type, is_inverse, target) in own {
            let at = match reference_types.iter().position(|known| *known == reference_type) {
                Some(at) => at,
                None => {
                    reference_types.push(reference_type);
                    reference_types.len() - 1
                }
            };
            let at =
                u8::try_from(at).ok().filter(|at| *at < 128).ok_or("more than 128 reference types in use")?;
            reference_bytes.push(at | if is_inverse { 128 } else { 0 });
            reference_bytes.extend_from_slice(&target.to_le_bytes());
            first_reference += 1;
        }
    }
    let index_len = nodes.keys().last().map_or(0, |last| u32::from(*last) + 1);
    let mut index = vec![0u8; index_len as usize * 2];
    for (ordinal, id) in (1u16..).zip(nodes.keys()) {
        let at = usize::from(*id) * 2;
        if let Some(slot) = index.get_mut(at..at + 2) {
            slot.copy_from_slice(&ordinal.to_le_bytes());
        }
    }
    let type_bytes = reference_types.iter().flat_map(|id| id.to_le_bytes()).collect();
    let (string_offsets, string_bytes) = strings.finish();
    let sections = [index, records, reference_bytes, type_bytes, string_offsets, string_bytes, extras.bytes];
    output.binary("crates/schema/src/generated/ns0.bin", join(&sections)?);
    Ok(())
}

fn join(sections: &[Vec<u8>]) -> Result<Vec<u8>, Failure> {
    let mut blob = MAGIC.to_vec();
    for section in sections {
        blob.extend_from_slice(&u32::try_from(section.len()).map_err(|_| "section too long")?.to_le_bytes());
    }
    sections.iter().for_each(|section| blob.extend_from_slice(section));
    Ok(blob)
}

fn small(id: &NodeId) -> Result<u16, Failure> {
    u16::try_from(number(id)?)
        .map_err(|_| format!("{id} does not fit 16 bits: the blob's format must change"))
}

/// Type, direction (inverse is true) and target of every reference of a node, in both directions.
type References = BTreeMap<u16, BTreeSet<(u16, bool, u16)>>;

/// In the file, each reference is listed at one end or both; here it is listed once at both ends.
fn references(nodes: &BTreeMap<u16, &Node>) -> Result<References, Failure> {
    let mut all = References::new();
    let mut dangling = BTreeSet::new();
    for (id, node) in nodes {
        for reference in &node.references {
            let (kind, target) = (small(&reference.reference_type)?, small(&reference.target)?);
            if !nodes.contains_key(&target) || !nodes.contains_key(&kind) {
                dangling.insert((*id, kind, target));
                continue;
            }
            all.entry(*id).or_default().insert((kind, !reference.is_forward, target));
            all.entry(target).or_default().insert((kind, reference.is_forward, *id));
        }
    }
    if !dangling.is_empty() {
        println!(
            "left out {} references to nodes that the NodeSet does not have: {dangling:?}",
            dangling.len()
        );
    }
    Ok(all)
}

#[allow(clippy::too_many_arguments)] // one row of a table, filled in one place
fn record(
    id: u16,
    node: &Node,
    set: &NodeSet,
    types: &TypeDictionary,
    references: &BTreeSet<(u16, bool, u16)>,
    first_reference: u32,
    (strings, extras): (&mut Strings, &mut Extras),
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    let name = node.browse_name.name.as_str();
    let display_name = first(&node.display_names).unwrap_or(name);
    if node.write_mask != 0 || node.user_write_mask != 0 || node.browse_name.namespace_index != 0 {
        return Err(format!(
            "{name}: the blob has no column for write masks and namespaces; extend its format"
        ));
    }
    let type_of = |kind: u32, inverse: bool| {
        references
            .iter()
            .find(|entry| u32::from(entry.0) == kind && entry.1 == inverse)
            .map_or(0, |entry| entry.2)
    };
    let mut row = Row::default();
    let mut extra = Vec::new();
    match &node.class {
        NodeClass::Object { event_notifier } => {
            row.type_id = type_of(HAS_TYPE_DEFINITION, false);
            row.access = *event_notifier;
        }
        NodeClass::View { event_notifier, contains_no_loops } => {
            row.access = *event_notifier;
            row.class_bit(*contains_no_loops);
        }
        NodeClass::Variable { shape, access_level, minimum_sampling_interval, historizing, .. } => {
            row.type_id = type_of(HAS_TYPE_DEFINITION, false);
            row.access = u8::try_from(*access_level).map_err(|_| format!("{name}: AccessLevelEx bits"))?;
            row.class_bit(*historizing);
            row.shape(shape, &mut extra)?;
            if *minimum_sampling_interval != 0.0 {
                row.flags |= 1 << 3;
                minimum_sampling_interval.encode(&mut extra);
            }
        }
        NodeClass::VariableType { shape, is_abstract, .. } => {
            row.supertype(type_of(HAS_SUBTYPE, true), *is_abstract);
            row.shape(shape, &mut extra)?;
        }
        NodeClass::Method { executable, .. } => row.class_bit(*executable),
        NodeClass::ObjectType { is_abstract } | NodeClass::DataType { is_abstract, .. } => {
            row.supertype(type_of(HAS_SUBTYPE, true), *is_abstract);
        }
        NodeClass::ReferenceType { is_abstract, symmetric, inverse_names } => {
            row.supertype(type_of(HAS_SUBTYPE, true), *is_abstract);
            row.class_bit(*symmetric);
            row.data_type = strings.add(first(inverse_names).unwrap_or(""))?;
        }
    }
    // The two type dictionaries of namespace 0 (deprecated since 1.04) would be two thirds of the blob, so their nodes
    // are included without values.
    let is_dictionary =
        matches!(node.class, NodeClass::Variable { .. }) && row.type_id == DATA_TYPE_DICTIONARY_TYPE;
    let value =
        if is_dictionary { None } else { set.value(node, types).map_err(|error| error.to_string())? };
    if let Some(value) = value {
        row.flags |= 1 << 4;
        sized(&value.encode_to_vec(), &mut extra)?;
    }
    let definition =
        types.definition_attribute(&node.node_id).map_err(|problem| format!("{name}: {problem}"))?;
    if let (Some(definition), NodeClass::DataType { .. }) = (definition, &node.class) {
        row.flags |= 1 << 5;
        sized(&definition.encode_to_vec(), &mut extra)?;
    }
    if !node.role_permissions.is_empty() {
        row.flags |= 1 << 6;
        extra.push(u8::try_from(node.role_permissions.len()).map_err(|_| format!("{name}: too many roles"))?);
        for permission in &node.role_permissions {
            small(&permission.role)?.encode(&mut extra);
            permission.permissions.encode(&mut extra);
        }
    }
    if let Some(restrictions) = node.access_restrictions {
        row.flags |= 1 << 7;
        restrictions.encode(&mut extra);
    }
    id.encode(out);
    out.extend_from_slice(&[node.class.number(), row.flags, row.value_rank.to_le_bytes()[0], row.access]);
    strings.add(name)?.encode(out);
    strings.add(display_name)?.encode(out);
    strings.add(first(&node.descriptions).unwrap_or(""))?.encode(out);
    row.type_id.encode(out);
    row.data_type.encode(out);
    first_reference.encode(out);
    extras.add(extra)?.encode(out);
    Ok(())
}

fn first(texts: &[LocalizedText]) -> Option<&str> {
    texts.first().map(|text| text.text.as_str())
}

fn sized(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
    u32::try_from(bytes.len()).map_err(|_| "value too long")?.encode(out);
    out.extend_from_slice(bytes);
    Ok(())
}

/// The columns of a node's record that depend on its class.
#[derive(Default)]
struct Row {
    flags: u8,
    value_rank: i8,
    access: u8,
    type_id: u16,
    data_type: u16,
}

impl Row {
    fn class_bit(&mut self, set: bool) {
        self.flags |= u8::from(set) << 1;
    }

    fn supertype(&mut self, id: u16, is_abstract: bool) {
        self.type_id = id;
        self.flags |= u8::from(is_abstract);
    }

    fn shape(&mut self, shape: &ValueShape, extra: &mut Vec<u8>) -> Result<(), Failure> {
        self.data_type = small(&shape.data_type)?;
        self.value_rank = i8::try_from(shape.value_rank).map_err(|_| "a ValueRank beyond 127")?;
        if !shape.array_dimensions.is_empty() {
            self.flags |= 1 << 2;
            extra.push(u8::try_from(shape.array_dimensions.len()).map_err(|_| "too many dimensions")?);
            shape.array_dimensions.iter().for_each(|length| length.encode(extra));
        }
        Ok(())
    }
}

/// The string table: each text once; number 0 is the empty text.
struct Strings {
    numbers: BTreeMap<String, u16>,
    texts: Vec<String>,
}

impl Default for Strings {
    fn default() -> Self {
        Self { numbers: [(String::new(), 0)].into(), texts: vec![String::new()] }
    }
}

impl Strings {
    fn add(&mut self, text: &str) -> Result<u16, Failure> {
        if let Some(number) = self.numbers.get(text) {
            return Ok(*number);
        }
        let number = u16::try_from(self.texts.len()).map_err(|_| "more than 65535 strings")?;
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        Ok(number)
    }

    fn finish(self) -> (Vec<u8>, Vec<u8>) {
        let (mut offsets, mut bytes) = (Vec::new(), Vec::new());
        for text in &self.texts {
            u32::try_from(bytes.len()).unwrap_or(u32::MAX).encode(&mut offsets);
            bytes.extend_from_slice(text.as_bytes());
        }
        u32::try_from(bytes.len()).unwrap_or(u32::MAX).encode(&mut offsets);
        (offsets, bytes)
    }
}

/// The attributes that only some nodes have; equal extras are stored once.
#[derive(Default)]
struct Extras {
    offsets: BTreeMap<Vec<u8>, u32>,
    bytes: Vec<u8>,
}

impl Extras {
    fn add(&mut self, extra: Vec<u8>) -> Result<u32, Failure> {
        if extra.is_empty() {
            return Ok(0);
        }
        if let Some(offset) = self.offsets.get(&extra) {
            return Ok(*offset);
        }
        let offset = u32::try_from(self.bytes.len()).map_err(|_| "extras too long")?;
        self.bytes.extend_from_slice(&extra);
        self.offsets.insert(extra, offset);
        Ok(offset)
    }
}
