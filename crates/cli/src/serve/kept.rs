//! Namespaces and nodes that a configuration names, and that loaded NodeSets must keep: without them, the server would not
//! start again.

use super::configured::pubsub_files;
use std::path::Path;
use taktwerk::server::NodeSetRemoval;
use taktwerk_config::ConfigFile;
use toml::{Table, Value};

/// Sections that name nodes of other servers.
const OTHERS: [&str; 2] = ["source", "tag"];

/// Fails if the configuration file, as it is now, names something that a change removes.
pub(super) fn check(path: &Path, removal: &NodeSetRemoval<'_>) -> Result<(), String> {
    let file = ConfigFile::load(path)
        .map_err(|error| format!("cannot check what the configuration needs; correct it first: {error}"))?;
    let removed = |what: &str| {
        format!(
            "the configuration refers to {what}, which would be missing or different: remove these settings first"
        )
    };
    let uris = file.config().namespace.iter().map(|section| section.uri.get_ref());
    if let Some(uri) = uris.into_iter().find(|uri| removal.has_namespace(uri)) {
        return Err(removed(uri));
    }
    let settings: Table = file.text().parse().map_err(|error: toml::de::Error| error.to_string())?;
    let own = settings.iter().filter(|(section, _)| !OTHERS.contains(&section.as_str()));
    if let Some(node) = own.into_iter().find_map(|(_, value)| node_in(value, removal)) {
        return Err(removed(node));
    }
    let is_kept = |written: &str| match removal.has_node(written) {
        true => Err((format!("{written} would be missing"), "remove it first".to_owned())),
        false => Ok(()),
    };
    pubsub_files(&file).check_nodes(is_kept).map_err(|failure| failure.to_string())
}

/// The first setting that names a removed node.
fn node_in<'a>(value: &'a Value, removal: &NodeSetRemoval<'_>) -> Option<&'a str> {
    match value {
        Value::String(text) => removal.has_node(text).then_some(text),
        Value::Array(all) => all.iter().find_map(|value| node_in(value, removal)),
        Value::Table(all) => all.values().find_map(|value| node_in(value, removal)),
        _ => None,
    }
}
