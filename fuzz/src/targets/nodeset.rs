//! NodeSet2 files.

use taktwerk_nodeset::{NodeSet, TypeDictionary, order_by_dependencies};

/// A file with its types and values, as a server imports it.
pub fn xml(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let Ok(mut set) = NodeSet::parse("fuzz.xml", text) else { return };
    let _ = order_by_dependencies(core::slice::from_ref(&set), &["http://opcfoundation.org/UA/"]);
    if set.remap(|uri| u16::try_from(uri.len()).ok()).is_err() {
        return;
    }
    let mut types = TypeDictionary::default();
    types.add(&set);
    for node in &set.nodes {
        let _ = set.value(node, &types);
        let _ = types.definition_attribute(&node.node_id);
    }
}
