//! NodeIds in a configuration. Unknown ones are reported with line and key, and with a suggestion.

use super::history::node_id;
use super::plant;
use crate::failure::Failure;
use std::cell::OnceCell;
use std::sync::Arc;
use taktwerk_config::{ConfigFile, nearest};
use taktwerk_schema::ids::object_ids;
use taktwerk_server::AddressSpace;
use taktwerk_types::{Identifier, NodeId};
use toml::Spanned;

/// The server's own namespace. Options of `serve`, such as --signals, add nodes there that a check does not know.
const OWN: u16 = 1;

/// Finds the nodes that a configuration refers to.
pub(super) struct References<'a> {
    file: &'a ConfigFile,
    space: &'a Arc<AddressSpace>,
    is_check: bool,
    /// The address space of the running server that the file is checked for.
    running: Option<&'a AddressSpace>,
    /// The variables, for suggestions.
    variables: OnceCell<Vec<NodeId>>,
}

impl<'a> References<'a> {
    /// For a server that is started, or runs.
    pub(super) fn new(file: &'a ConfigFile, space: &'a Arc<AddressSpace>) -> Self {
        Self { file, space, is_check: false, running: None, variables: OnceCell::new() }
    }

    /// For a server that exists only to check the file. `running` is the address space of the server that the file is
    /// for, if it runs.
    pub(super) fn of_check(
        file: &'a ConfigFile,
        space: &'a Arc<AddressSpace>,
        running: Option<&'a AddressSpace>,
    ) -> Self {
        Self { is_check: true, running, ..Self::new(file, space) }
    }

    /// The address space.
    pub(super) fn space(&self) -> &'a Arc<AddressSpace> {
        self.space
    }

    /// Whether the server exists only to check the file.
    pub(super) fn is_check(&self) -> bool {
        self.is_check
    }

    /// An error at a text of the file.
    pub(super) fn wrong(&self, at: &Spanned<String>, problem: impl Into<String>) -> Failure {
        Failure::Usage(self.file.mistake(at.span().start, problem, "").to_string())
    }

    /// The node with this NodeId; `None` if it may exist with other options.
    pub(super) fn node(&self, key: &str, text: &Spanned<String>) -> Result<Option<NodeId>, Failure> {
        let written = text.get_ref();
        match self.find(written) {
            Ok(found) => Ok(found),
            Err((problem, hint)) => {
                let problem = format!("{key}: {problem}");
                Err(Failure::Usage(self.file.mistake(text.span().start, problem, hint).to_string()))
            }
        }
    }

    /// The node with this NodeId, or an error and a suggestion.
    pub(super) fn find(&self, written: &str) -> Result<Option<NodeId>, (String, String)> {
        let space = self.space;
        let namespaces = space.namespaces();
        let Some(id) = node_id(written, &namespaces) else { return Err(invalid_id(written, &namespaces)) };
        if space.contains(&id) {
            return Ok(Some(id));
        }
        let is_there = || self.running.is_none_or(|running| running.contains(&id));
        if self.is_check && id.namespace_index == OWN && is_there() {
            return Ok(None);
        }
        // No suggestion for numeric identifiers, because similar numbers have unrelated meanings.
        if !matches!(id.identifier, Identifier::String(_)) {
            let hint = "`taktwerk browse` shows the nodes of a server; those of a NodeSet need its file in `nodesets`";
            return Err((format!("this server has no node {written:?}"), hint.to_owned()));
        }
        let variables = self.variables.get_or_init(|| {
            space.variables_below(&NodeId::numeric(0, object_ids::OBJECTS_FOLDER)).unwrap_or_default()
        });
        // In the notation of the file: with the URI or the index of the namespace.
        let prefix = match written.split_once(';') {
            Some((prefix, _)) if prefix.starts_with("nsu=") => Some(prefix),
            _ => None,
        };
        let same = variables.iter().filter(|one| one.namespace_index == id.namespace_index);
        let shown: Vec<String> = same
            .map(|one| {
                let local = one.to_string();
                match (prefix, local.split_once(';')) {
                    (Some(prefix), Some((_, identifier))) => format!("{prefix};{identifier}"),
                    _ => local,
                }
            })
            .collect();
        let hint = match nearest(written, shown.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near:?}?"),
            None => "`taktwerk browse` shows the variables of a server".to_owned(),
        };
        Err((format!("this server has no node {written:?}"), hint))
    }
}

/// The error for a text that is not a NodeId of a server with these namespaces.
fn invalid_id(written: &str, namespaces: &[String]) -> (String, String) {
    let uri = written.strip_prefix("nsu=").and_then(|rest| rest.split_once(';')).map(|(uri, _)| uri);
    match uri.filter(|uri| !namespaces.iter().any(|known| known == uri)) {
        Some(uri) => {
            let hint = match nearest(uri, namespaces.iter().map(String::as_str)) {
                _ if uri == plant::NAMESPACE => plant::MISSING.to_owned(),
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("it has {}", namespaces.join(", ")),
            };
            (format!("this server has no namespace {uri:?}"), hint)
        }
        None => (
            format!("{written:?} is not a NodeId"),
            "write one such as nsu=urn:plant;s=Boiler or ns=2;i=5; `taktwerk browse` shows them".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use taktwerk::Server;

    #[test]
    fn unknown_nodes_are_reported_with_a_suggestion() {
        let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        server.namespace("urn:plant").variable("Boiler/Temperature", 1.5).add().unwrap();
        let text = "[security]\nnone = true\n[identities]\nanonymous = true\n";
        let file = ConfigFile::parse(Path::new("s.toml"), text).unwrap();
        let space = server.space();
        let (started, check) = (References::new(&file, space), References::of_check(&file, space, None));
        let told = |of: &References<'_>, written: &str| match of.find(written) {
            Ok(found) => format!("{found:?}"),
            Err((problem, hint)) => format!("{problem}; {hint}"),
        };
        assert!(check.find("nsu=urn:plant;s=Boiler/Temperature").unwrap().is_some());
        assert_eq!(
            told(&check, "nsu=urn:plant;s=Boiler/Temprature"),
            "this server has no node \"nsu=urn:plant;s=Boiler/Temprature\"; did you mean \
             \"nsu=urn:plant;s=Boiler/Temperature\"?"
        );
        assert!(
            told(&check, "ns=2;s=Boiler/Temprature").ends_with("did you mean \"ns=2;s=Boiler/Temperature\"?")
        );
        assert!(told(&check, "ns=2;s=x").ends_with("`taktwerk browse` shows the variables of a server"));
        assert!(told(&check, "ns=2;i=7").contains("need its file in `nodesets`"));
        assert_eq!(
            told(&check, "nsu=urn:plnt;s=x"),
            "this server has no namespace \"urn:plnt\"; did you mean \"urn:plant\"?"
        );
        assert!(told(&check, "Boiler").starts_with("\"Boiler\" is not a NodeId; write one such as"));
        // `serve --signals` adds nodes there.
        assert_eq!(told(&check, "ns=1;i=100000"), "None");
        assert!(told(&started, "ns=1;i=100000").starts_with("this server has no node"));
        let running = References::of_check(&file, space, Some(&**space));
        assert!(told(&running, "ns=1;i=100000").starts_with("this server has no node"));
    }
}
