//! A loaded NodeSet and its file.

use super::Refusal;
use crate::error::BuildError;
use std::time::SystemTime;
use taktwerk_nodeset::NodeSet;
use taktwerk_types::StatusCode;

/// Longest name of a file without its extension.
const NAME_LEN_MAX: usize = 200;
/// The namespace of the specification.
const NAMESPACE_ZERO: &str = "http://opcfoundation.org/UA/";

/// A loaded NodeSet.
#[derive(Debug, Clone)]
pub(super) struct Set {
    /// The namespaces that it defines.
    pub(super) uris: Vec<String>,
    /// All namespaces that it uses, without namespace 0.
    pub(super) namespaces: Vec<String>,
    /// The name of its file.
    pub(super) file: String,
    pub(super) text: String,
}

impl Set {
    /// Parses a NodeSet. Errors name it as `path`; `file` is the name of its file in the folder.
    pub(super) fn parse(path: &str, file: String, text: String) -> Result<Self, BuildError> {
        let set = NodeSet::parse(path, &text).map_err(|error| BuildError::Import(error.into()))?;
        let namespaces = set.namespace_uris.into_iter().skip(1).collect();
        let uris = set.models.into_iter().map(|model| model.uri).collect();
        Ok(Self { uris, namespaces, file, text })
    }

    /// Parses a NodeSet of a client. Its file gets the name of its first namespace.
    pub(super) fn of_client(text: &str) -> Result<Self, Refusal> {
        let set = Self::parse("NodeSet", String::new(), text.to_owned())?;
        let wrong = |reason: &str| Refusal::new(StatusCode::BAD_CONFIGURATION_ERROR, reason);
        match set.uris.first() {
            None => Err(wrong("the NodeSet defines no model: it needs <Models> with a ModelUri")),
            Some(_) if set.defines(NAMESPACE_ZERO) => {
                Err(wrong("namespace 0 is part of the server and cannot be loaded"))
            }
            // Its namespace would not be registered, and belong to whoever registers it.
            Some(_) if set.uris.iter().any(|uri| !set.namespaces.contains(uri)) => {
                Err(wrong("a model is not in <NamespaceUris>: add its URI"))
            }
            Some(first) => Ok(Self { file: file_name(first)?, ..set }),
        }
    }

    pub(super) fn defines(&self, uri: &str) -> bool {
        self.uris.iter().any(|known| known == uri)
    }

    /// Whether both define the same namespace: one replaces the other.
    pub(super) fn replaces(&self, other: &Self) -> bool {
        self.uris.iter().any(|uri| other.defines(uri))
    }

    /// Whether its file has the name that the server would give it.
    fn is_own(&self) -> bool {
        let name = self.uris.first().and_then(|uri| file_name(uri).ok());
        name.is_some_and(|name| name == self.file)
    }
}

/// Leaves out the sets that others have replaced; each has the time when its file was written. If the program ends while it
/// replaces a file by one with another name, or cannot delete the old one, both are there. The newest one that the server
/// itself has written counts.
pub(super) fn without_replaced(sets: Vec<(Set, SystemTime)>) -> Vec<Set> {
    let rank = |(set, written): &(Set, SystemTime)| (set.is_own(), *written, set.file.clone());
    let newer = |one: &(Set, SystemTime)| {
        let newer = sets.iter().find(|other| other.0.replaces(&one.0) && rank(other) > rank(one));
        newer.map(|(set, _)| set.file.clone())
    };
    let newer: Vec<Option<String>> = sets.iter().map(newer).collect();
    let used = sets.into_iter().zip(newer).filter_map(|((set, _), newer)| {
        let Some(newer) = newer else { return Some(set) };
        let file = set.file;
        tracing::warn!(file, newer, "skipped a NodeSet that another one has replaced: delete its file");
        None
    });
    used.collect()
}

/// The file name for a namespace. Different namespaces have different names.
fn file_name(uri: &str) -> Result<String, Refusal> {
    use core::fmt::Write;
    let mut name = String::new();
    for byte in uri.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            // A name must not begin with a dot: such files are hidden.
            b'.' if !name.is_empty() => name.push('.'),
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(name, "%{byte:02X}");
            }
        }
    }
    if name.len() > NAME_LEN_MAX {
        let reason = format!("the namespace {uri} is too long for the name of a file");
        return Err(Refusal::new(StatusCode::BAD_OUT_OF_RANGE, reason));
    }
    Ok(format!("{name}.xml"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn file_names_are_unique_and_harmless() {
        let name = |uri: &str| file_name(uri).map_err(|refusal| refusal.status);
        assert_eq!(name("urn:line").unwrap(), "urn%3Aline.xml");
        assert_eq!(name("http://example.com/UA/").unwrap(), "http%3A%2F%2Fexample.com%2FUA%2F.xml");
        for (one, other) in [("a%3A", "a:"), ("a/b", "a_b"), (".", "%2E")] {
            assert_ne!(name(one).unwrap(), name(other).unwrap());
        }
        for uri in ["../../etc/passwd", ".hidden", "..", "a\0b", "ü/ß"] {
            let name = name(uri).unwrap();
            assert!(!name.contains(['/', '\0']) && !name.starts_with('.'), "{name}");
        }
        assert_eq!(name(&"x".repeat(300)), Err(StatusCode::BAD_OUT_OF_RANGE));
    }

    /// The files that are used of some with these models and times.
    fn used(files: &[(&str, &[&str], u64)]) -> Vec<String> {
        let set = |(file, uris, written): &(&str, &[&str], u64)| {
            let uris: Vec<String> = uris.iter().map(|uri| (*uri).to_owned()).collect();
            let (namespaces, text) = (uris.clone(), String::new());
            let set = Set { uris, namespaces, file: (*file).to_owned(), text };
            (set, UNIX_EPOCH + Duration::from_secs(*written))
        };
        without_replaced(files.iter().map(set).collect()).into_iter().map(|set| set.file).collect()
    }

    /// One is left of files with the same model: otherwise the server would not start.
    #[test]
    fn of_files_with_a_model_the_newest_that_the_server_wrote_counts() {
        assert_eq!(used(&[("a.xml", &["a", "b"], 1), ("b.xml", &["b"], 2)]), ["b.xml"]);
        assert_eq!(used(&[("a.xml", &["a"], 2), ("b.xml", &["b", "a"], 1)]), ["a.xml"]);
        assert_eq!(used(&[("a.xml", &["a"], 1), ("b.xml", &["b"], 1), ("c.xml", &["c"], 2)]).len(), 3);
        // Files that the server has not written.
        assert_eq!(used(&[("a.xml", &["a"], 1), ("mine.xml", &["a"], 2)]), ["a.xml"]);
        assert_eq!(used(&[("x.xml", &["a"], 2), ("y.xml", &["a"], 1)]), ["x.xml"]);
        assert_eq!(used(&[("x.xml", &["a"], 1), ("y.xml", &["a"], 1)]), ["y.xml"]);
        // The first one was replaced by the second one, and that by the third one.
        assert_eq!(
            used(&[("a.xml", &["a", "b"], 1), ("b.xml", &["b", "c"], 2), ("c.xml", &["c"], 3)]),
            ["c.xml"]
        );
    }
}
