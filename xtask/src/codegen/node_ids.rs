//! The published numeric ids: lists of `Name = number`, one per node class.

use crate::Failure;
use std::collections::BTreeMap;

/// Name to id, by list (`DataTypeIds`, `ObjectIds`, …).
pub(crate) type NodeIds = BTreeMap<String, BTreeMap<String, u32>>;

/// Reads the lists.
pub(crate) fn parse(published: &str) -> Result<NodeIds, Failure> {
    let mut lists = NodeIds::new();
    for block in published.split("export enum ").skip(1) {
        let (name, rest) = block.split_once('{').ok_or("node id list: a block without {")?;
        let (body, _) = rest.split_once('}').ok_or("node id list: a block without }")?;
        let list = lists.entry(name.trim().to_owned()).or_default();
        for line in body.lines() {
            let Some((name, rest)) = line.split_once('=') else { continue };
            let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
            let id = digits.parse().map_err(|_| format!("node id list: {line:?} has no number"))?;
            list.insert(name.trim().to_owned(), id);
        }
    }
    if lists.get("DataTypeIds").is_none_or(BTreeMap::is_empty) {
        return Err("node id list: no DataTypeIds; its format has changed".to_owned());
    }
    Ok(lists)
}
