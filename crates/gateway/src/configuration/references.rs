//! Checks references between parts of a configuration: tags in expressions and destinations, variables in the fields of
//! destinations. A dangling reference is a mistake, because it would give Bad values or none at all.

use super::{GatewayConfig, TagConfig};
use crate::destination::nodes::NodeField;
use crate::fields::Mistake;
use crate::source::Placement;
use std::collections::BTreeSet;
use std::path::Path;
use taktwerk_types::ExpandedNodeId;

/// References to tags that do not exist; `path` is the file of the destinations. Returns nothing if a source adds variables on
/// its own, because their names are not known yet.
#[must_use]
pub fn mistakes(path: &Path, config: &GatewayConfig) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    if finds_variables(config) {
        return mistakes;
    }
    let names: BTreeSet<String> =
        config.sources.iter().flat_map(|source| &source.tags).map(|it| it.tag.full_name()).collect();
    let near = |wanted: &str| taktwerk_config::nearest(wanted, names.iter().map(String::as_str));
    for source in &config.sources {
        for (position, it) in source.tags.iter().enumerate() {
            for input in source.adapter.inputs(position).iter().filter(|input| !names.contains(*input)) {
                let hint = match near(input) {
                    Some(near) => format!("did you mean {{{near}}}?"),
                    None => "write path and name of a tag in the braces".to_owned(),
                };
                let (key, problem) = ("expression".to_owned(), format!("there is no tag {{{input}}}"));
                mistakes.push(Mistake { path: it.path.clone(), line: it.line, key, problem, hint });
            }
        }
    }
    for settings in config.destinations.iter().map(|destination| &destination.settings) {
        for pattern in settings.include.iter().filter(|pattern| pattern.is_name()) {
            if names.iter().any(|name| pattern.matches(name)) {
                continue;
            }
            let hint = match near(pattern.text()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => "write path and name of a tag, or a pattern such as \"Line 1/**\"".to_owned(),
            };
            let (line, key) = (settings.tags_line, "tags".to_owned());
            let problem = format!("there is no tag {:?}", pattern.text());
            mistakes.push(Mistake { path: path.to_owned(), line, key, problem, hint });
        }
    }
    mistakes
}

/// Patterns of destinations that match no tag. Only warnings, because tags may be added later.
pub(crate) fn unmatched(path: &Path, config: &GatewayConfig, warnings: &mut Vec<Mistake>) {
    if finds_variables(config) {
        return;
    }
    let names: Vec<String> =
        config.sources.iter().flat_map(|source| &source.tags).map(|it| it.tag.full_name()).collect();
    for settings in config.destinations.iter().map(|destination| &destination.settings) {
        let patterns = settings.include.iter().filter(|pattern| !pattern.is_name());
        for pattern in patterns.filter(|pattern| !names.iter().any(|name| pattern.matches(name))) {
            warnings.push(Mistake {
                path: path.to_owned(),
                line: settings.tags_line,
                key: "tags".to_owned(),
                problem: format!("no tag matches {:?}", pattern.text()),
                hint: "* is any text within a level, ** any text".to_owned(),
            });
        }
    }
}

/// The variables of destinations that must exist when the gateway starts. Those of sources that add variables on their
/// own may appear later.
#[must_use]
pub fn required_nodes(config: &GatewayConfig) -> Vec<NodeField> {
    let later = finds_variables(config).then_some(config.namespace.as_str());
    let fields = config.destinations.iter().flat_map(|destination| &destination.settings.nodes);
    fields.filter(|field| later != Some(field.node.namespace_uri.as_str())).cloned().collect()
}

/// The variables of destinations that the server does not have. `find` returns the problem of a node and a hint.
pub fn missing_nodes(
    path: &Path,
    required: &[NodeField],
    mut find: impl FnMut(&ExpandedNodeId) -> Option<(String, String)>,
) -> Vec<Mistake> {
    required
        .iter()
        .filter_map(|field| {
            let (problem, hint) = find(&field.node)?;
            Some(Mistake { path: path.to_owned(), line: field.line, key: "node".to_owned(), problem, hint })
        })
        .collect()
}

/// Whether any source adds variables on its own.
fn finds_variables(config: &GatewayConfig) -> bool {
    let finds_itself = |it: &TagConfig| !matches!(it.placement, Placement::Variable(_));
    config.sources.iter().any(|it| it.adapter.finds_variables() || it.tags.iter().any(finds_itself))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let (_, mistakes) = GatewayConfig::examine(Path::new("g.toml"), text);
        mistakes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn references_to_missing_tags_are_mistakes() {
        let text = "[[source]]\nname = \"s\"\ntype = \"simulation\"\n[[tag]]\nsource = \"s\"\nname = \"Level\"\n\
                    [[source]]\nname = \"c\"\ntype = \"calculation\"\n\
                    [[tag]]\nsource = \"c\"\nname = \"a\"\nexpression = \"{s/Level} * 2\"\n\
                    [[tag]]\nsource = \"c\"\nname = \"b\"\nexpression = \"{s/Levle} + {c/a}\"\n\
                    [[destination]]\nname = \"d\"\ntype = \"file\"\nfolder = \"f\"\n\
                    tags = [\"s/Level\", \"s/Lvel\", \"s/**\", \"x/**\"]\n";
        assert_eq!(
            told(text),
            [
                "g.toml:14: expression: there is no tag {s/Levle}; did you mean {s/Level}?",
                "g.toml:22: tags: there is no tag \"s/Lvel\"; did you mean \"s/Level\"?",
            ]
        );
        // The variables of a mirror are not known yet.
        let mirror =
            "[[source]]\nname = \"m\"\ntype = \"opcua\"\nurl = \"opc.tcp://a\"\nmirror = [\"i=85\"]\n";
        assert_eq!(told(&format!("{text}{mirror}")), Vec::<String>::new());
        // A pattern may be meant for tags that are added later.
        let config = GatewayConfig::parse(
            Path::new("g.toml"),
            &text.replace("s/Levle", "s/Level").replace("\"s/Lvel\", ", ""),
        );
        let config = config.unwrap().unwrap();
        let warnings = crate::review::review(Path::new("g.toml"), &config);
        let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            ["g.toml:22: tags: no tag matches \"x/**\"; * is any text within a level, ** any text"]
        );
    }

    #[test]
    fn missing_nodes_of_destinations_are_reported_with_their_line() {
        let text = "[[destination]]\nname = \"d\"\ntype = \"file\"\nfolder = \"f\"\n\
                    fields = [\n{ name = \"a\", node = \"ns=2;s=a\" },\n{ name = \"b\", node = \"ns=2;s=b\" },\n]\n";
        let path = Path::new("g.toml");
        let config = GatewayConfig::parse(path, text).unwrap().unwrap();
        let found = missing_nodes(path, &required_nodes(&config), |node| {
            (node.to_string() == "ns=2;s=b").then(|| ("there is none".to_owned(), "write a".to_owned()))
        });
        assert_eq!(found[0].to_string(), "g.toml:7: node: there is none; write a");
        assert_eq!(found.len(), 1);
    }
}
