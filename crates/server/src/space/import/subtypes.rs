//! The types of NodeSets derive from one type each, and not from themselves, also together with the types of the server.
//! HasSubtype is a HasChild Reference, and those have no loops (Part 3 §7.5): clients and filters follow supertypes.

use super::ImportError;
use crate::space::AddressSpace;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_nodeset::{NodeSet, NodeSetError, Problem};
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_types::NodeId;

/// A supertype that a file defines, and the place.
struct Supertype<'a> {
    id: &'a NodeId,
    file: &'a str,
    line: u32,
}

impl Supertype<'_> {
    fn wrong(&self, problem: Problem) -> ImportError {
        NodeSetError { file: self.file.to_owned(), line: self.line, problem: Box::new(problem) }.into()
    }
}

/// Checks files that have the namespace indexes of the server.
pub(super) fn check(space: &AddressSpace, sets: &[NodeSet]) -> Result<(), ImportError> {
    // The lock is short: a waiting writer would block other readers.
    let present = |id: &NodeId| {
        let nodes = space.read();
        let ix = nodes.resolve(id.as_ref())?;
        Some(nodes.supertype(ix).map(|supertype| nodes.id_of(supertype)))
    };
    let own: BTreeSet<&NodeId> = sets.iter().flat_map(|set| &set.nodes).map(|node| &node.node_id).collect();
    let has_subtype = NodeId::numeric(0, reference_type_ids::HAS_SUBTYPE);
    let mut defined: BTreeMap<&NodeId, Supertype<'_>> = BTreeMap::new();
    for (set, node) in sets.iter().flat_map(|set| set.nodes.iter().map(move |node| (set, node))) {
        for reference in node.references.iter().filter(|one| one.reference_type == has_subtype) {
            let (subtype, id) = match reference.is_forward {
                true => (&reference.target, &node.node_id),
                false => (&node.node_id, &reference.target),
            };
            let supertype = Supertype { id, file: &set.file, line: node.line };
            let other = match defined.get(subtype) {
                Some(known) => Some(known.id.clone()),
                None if own.contains(subtype) => None,
                None => present(subtype).and_then(|supertype| {
                    // Types of namespace 0 without a supertype are the roots of all types.
                    supertype.or_else(|| (subtype.namespace_index == 0).then_some(NodeId::NULL))
                }),
            };
            if other.is_some_and(|other| other != *id) {
                let (node_id, supertype_id) = (subtype.clone(), id.clone());
                return Err(supertype.wrong(Problem::SecondSupertype { node_id, supertype: supertype_id }));
            }
            defined.insert(subtype, supertype);
        }
    }
    let mut checked: BTreeSet<NodeId> = BTreeSet::new();
    for (subtype, supertype) in &defined {
        let mut path = BTreeSet::new();
        let mut id = (*subtype).clone();
        while !checked.contains(&id) {
            if !path.insert(id.clone()) {
                return Err(supertype.wrong(Problem::CircularTypes { node_id: id }));
            }
            let next = match defined.get(&id) {
                Some(next) => Some(next.id.clone()),
                None if own.contains(&id) => None,
                None => present(&id).flatten(),
            };
            let Some(next) = next else { break };
            id = next;
        }
        checked.extend(path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Importer;
    use super::*;
    use taktwerk_nodeset::TypeDictionary;
    use taktwerk_types::UtcTime;

    /// A NodeSet with one ObjectType. Its supertype may be of another namespace.
    fn file(uri: &str, other: &str, supertype: &str) -> Vec<(String, String)> {
        let text = format!(
            "<UANodeSet xmlns=\"http://opcfoundation.org/UA/2011/03/UANodeSet.xsd\">\n\
             <NamespaceUris><Uri>{uri}</Uri><Uri>{other}</Uri></NamespaceUris>\n\
             <Models><Model ModelUri=\"{uri}\"/></Models>\n\
             <UAObjectType NodeId=\"ns=1;i=1\" BrowseName=\"1:Type\"><References>\
             <Reference ReferenceType=\"i=45\" IsForward=\"false\">{supertype}</Reference></References></UAObjectType>\
             </UANodeSet>"
        );
        vec![(format!("{uri}.xml"), text)]
    }

    /// The other half of the circle is in the address space, and not in the files.
    #[test]
    fn a_circle_of_types_through_another_import_is_refused() {
        let space = AddressSpace::new(1, 16, "urn:test");
        let mut importer = Importer::new(TypeDictionary::default());
        let base = importer.import(&space, &file("urn:a", "urn:b", "i=58"), UtcTime::NULL).unwrap().batch;
        importer.import(&space, &file("urn:b", "urn:a", "ns=2;i=1"), UtcTime::NULL).unwrap();
        let circle = file("urn:a", "urn:b", "ns=2;i=1");
        let told = importer.prepare(&space, &circle, Some(base)).unwrap_err().to_string();
        assert!(told.starts_with("urn:a.xml:4: ") && told.contains("derives from itself"), "{told}");
        importer.prepare(&space, &file("urn:a", "urn:b", "i=61"), Some(base)).unwrap();
    }
}
