//! The loaded NodeSets. Every change replaces them all at once, which leaves equal nodes as they are.

use super::{Changed, NodeSetMethods, Refusal};
use crate::error::BuildError;
use crate::space::now;
use std::path::{Path, PathBuf};
use taktwerk_files::PUBLIC;
use taktwerk_nodeset::NodeSet;
use taktwerk_server::AddressSpace;
use taktwerk_server::space::import::{Batch, Importer, Prepared};
use taktwerk_types::{NodeId, StatusCode};

/// Longest name of a file without its extension.
const NAME_LEN_MAX: usize = 200;
/// How much longer than the longest one all together may be.
const TOTAL_FACTOR: usize = 4;
/// The file with the namespaces in the order of their indexes, so that these are the same after a restart.
const NAMESPACES: &str = "namespaces.txt";
/// Longest such file in bytes.
const NAMESPACES_LEN_MAX: u64 = 16 << 20;
/// The namespace of the specification.
const NAMESPACE_ZERO: &str = "http://opcfoundation.org/UA/";

/// A loaded NodeSet.
#[derive(Debug, Clone)]
pub(super) struct Set {
    /// The namespaces that it defines.
    uris: Vec<String>,
    /// All namespaces that it uses, without namespace 0.
    namespaces: Vec<String>,
    /// The name of its file.
    file: String,
    text: String,
}

impl Set {
    /// Parses a NodeSet.
    fn of(file: &str, text: &str) -> Result<Self, Refusal> {
        let set = NodeSet::parse(file, text).map_err(|error| BuildError::Import(error.into()))?;
        let namespaces: Vec<String> = set.namespace_uris.into_iter().skip(1).collect();
        let uris: Vec<String> = set.models.into_iter().map(|model| model.uri).collect();
        let wrong = |reason: &str| Refusal::new(StatusCode::BAD_CONFIGURATION_ERROR, reason);
        match uris.first() {
            None => Err(wrong("the NodeSet defines no model: it needs <Models> with a ModelUri")),
            Some(_) if uris.iter().any(|uri| uri == NAMESPACE_ZERO) => {
                Err(wrong("namespace 0 is part of the server and cannot be loaded"))
            }
            Some(_) if uris.iter().chain(&namespaces).any(|uri| uri.chars().any(char::is_control)) => {
                Err(wrong("the URI of a namespace has a control character"))
            }
            Some(first) => {
                Ok(Self { file: file_name(first)?, uris: uris.clone(), namespaces, text: text.to_owned() })
            }
        }
    }

    fn defines(&self, uri: &str) -> bool {
        self.uris.iter().any(|known| known == uri)
    }
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

/// The loaded NodeSets.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    batch: Option<Batch>,
    sets: Vec<Set>,
    /// The namespaces of all sets that were ever loaded, in the order of their indexes.
    namespaces: Vec<String>,
}

/// Adds the missing ones.
fn add_missing(all: &mut Vec<String>, more: &[String]) {
    for uri in more {
        if !all.contains(uri) {
            all.push(uri.clone());
        }
    }
}

fn files(sets: &[Set]) -> Vec<(String, String)> {
    sets.iter().map(|set| (set.file.clone(), set.text.clone())).collect()
}

impl Loaded {
    /// Reads the files of a folder.
    pub(super) fn read(&mut self, folder: &Path) -> Result<(), BuildError> {
        let failed = |path: &Path, source| BuildError::File { path: path.to_owned(), source };
        let entries = std::fs::read_dir(folder).map_err(|error| failed(folder, error))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        let list = folder.join(NAMESPACES);
        match taktwerk_files::read_text(&list, NAMESPACES_LEN_MAX) {
            Ok(text) => self.namespaces.extend(text.lines().map(str::to_owned)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&list, error)),
        }
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_xml = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xml"));
            // Programs create hidden files while they write.
            if !is_xml || name.starts_with('.') {
                continue;
            }
            let text = taktwerk_files::read_text(&path, super::super::import::NODESET_LEN_MAX)
                .map_err(|error| failed(&path, error))?;
            let set = NodeSet::parse(&path.display().to_string(), &text)
                .map_err(|error| BuildError::Import(error.into()))?;
            let namespaces: Vec<String> = set.namespace_uris.into_iter().skip(1).collect();
            let uris = set.models.into_iter().map(|model| model.uri).collect();
            add_missing(&mut self.namespaces, &namespaces);
            self.sets.push(Set { uris, namespaces, file: name, text });
        }
        self.skip_replaced();
        Ok(())
    }

    /// If the program ended while it replaced a file by one with another name, both are there. The newer one has the name of
    /// its namespace.
    fn skip_replaced(&mut self) {
        let is_own = |set: &Set| {
            let name = set.uris.first().and_then(|uri| file_name(uri).ok());
            name.is_some_and(|name| name == set.file)
        };
        let own: Vec<Set> = self.sets.iter().filter(|set| is_own(set)).cloned().collect();
        self.sets.retain(|set| {
            let newer = own.iter().find(|own| set.uris.iter().any(|uri| own.defines(uri)));
            let Some(newer) = newer.filter(|_| !is_own(set)) else { return true };
            let (file, newer) = (&set.file, &newer.file);
            tracing::warn!(file, newer, "skipped a NodeSet that another one has replaced: delete its file");
            false
        });
    }

    /// A namespace of a NodeSet that others use: the server, its configuration, or other servers that it mirrors. Default
    /// permissions of the NodeSet would apply to their nodes.
    fn foreign<'a>(&self, set: &'a Set, space: &AddressSpace, importer: &Importer) -> Option<&'a String> {
        set.uris.iter().find(|uri| {
            let is_loaded = self.sets.iter().any(|known| known.defines(uri));
            !is_loaded && space.namespace_index(uri).is_some() && !importer.has_registered(uri)
        })
    }

    /// Imports what was read.
    pub(super) fn import(&mut self, space: &AddressSpace, importer: &mut Importer) -> Result<(), BuildError> {
        for uri in &self.namespaces {
            importer.add_namespace(space, uri);
        }
        if !self.sets.is_empty() {
            let imported = importer.import(space, &files(&self.sets), now())?;
            super::super::import::warn(&imported);
            self.batch = Some(imported.batch);
        }
        Ok(())
    }

    /// The namespaces that are loaded.
    pub(super) fn namespaces(&self) -> Vec<String> {
        let mut all: Vec<String> = self.sets.iter().flat_map(|set| set.uris.clone()).collect();
        all.sort();
        all
    }

    /// All namespaces of the NodeSet that defines one.
    pub(super) fn with(&self, uri: &str) -> Vec<String> {
        self.sets.iter().filter(|set| set.defines(uri)).flat_map(|set| set.uris.clone()).collect()
    }

    /// Checks a NodeSet. Returns all that would be loaded, those that it replaces, and what is prepared.
    pub(super) fn check(
        &self,
        space: &AddressSpace,
        importer: &mut Importer,
        text: &str,
        settings: &NodeSetMethods,
    ) -> Result<(Vec<Set>, Vec<Set>, Prepared), Refusal> {
        let set = Set::of("NodeSet", text)?;
        if let Some(uri) = self.foreign(&set, space, importer) {
            let reason =
                format!("the namespace {uri} has other nodes: define the model in a namespace of its own");
            return Err(Refusal::new(StatusCode::BAD_CONFIGURATION_ERROR, reason));
        }
        let (replaced, mut sets): (Vec<Set>, Vec<Set>) =
            self.sets.iter().cloned().partition(|known| known.uris.iter().any(|uri| set.defines(uri)));
        let kept = |what: &str| {
            let reason = format!("the configuration refers to {what}, which would be missing");
            Refusal::new(StatusCode::BAD_INVALID_STATE, reason)
        };
        let mut gone = replaced.iter().flat_map(|old| &old.uris).filter(|uri| !set.defines(uri));
        if let Some(uri) = gone.find(|uri| (settings.keeps)(uri)) {
            return Err(kept(uri));
        }
        sets.push(set);
        let total: usize = sets.iter().map(|set| set.text.len()).sum();
        if total > settings.length_max.saturating_mul(TOTAL_FACTOR) {
            let reason = format!("all loaded NodeSets together would have {total} bytes: unload some");
            return Err(Refusal::new(StatusCode::BAD_RESOURCE_UNAVAILABLE, reason));
        }
        let prepared = importer.prepare(space, &files(&sets), self.batch);
        let prepared = prepared.map_err(|error| Refusal::from(BuildError::from(error)))?;
        let known = space.namespaces();
        let missing = importer
            .removed(&prepared)
            .filter_map(|id| named(id, &known))
            .find(|node| (settings.keeps)(node));
        match missing {
            Some(node) => Err(kept(&node)),
            None => Ok((sets, replaced, prepared)),
        }
    }

    /// Loads a NodeSet. It replaces those that define one of its namespaces.
    pub(super) fn load(
        &mut self,
        space: &AddressSpace,
        importer: &mut Importer,
        text: &str,
        settings: &NodeSetMethods,
    ) -> Result<Changed, Refusal> {
        let (sets, replaced, prepared) = self.check(space, importer, text, settings)?;
        let Some(new) = sets.last() else { return Ok(Changed::default()) };
        let mut namespaces = self.namespaces.clone();
        add_missing(&mut namespaces, &new.namespaces);
        if let Some(folder) = &settings.folder {
            // First, so that a full disk changes nothing.
            if namespaces != self.namespaces {
                let text: String = namespaces.iter().flat_map(|uri| [uri.as_str(), "\n"]).collect();
                taktwerk_files::replace(&folder.join(NAMESPACES), text.as_bytes(), PUBLIC)
                    .map_err(|error| unwritable(folder, &error))?;
            }
            taktwerk_files::replace(&folder.join(&new.file), text.as_bytes(), PUBLIC)
                .map_err(|error| unwritable(folder, &error))?;
            for old in replaced.iter().filter(|old| old.file != new.file) {
                delete(&folder.join(&old.file));
            }
        }
        let uris = new.uris.clone();
        self.namespaces = namespaces;
        Ok(self.apply(space, importer, (sets, prepared), uris))
    }

    /// Unloads the NodeSet that defines a namespace.
    pub(super) fn unload(
        &mut self,
        space: &AddressSpace,
        importer: &mut Importer,
        uri: &str,
        folder: Option<&Path>,
    ) -> Result<Changed, Refusal> {
        let (gone, sets): (Vec<Set>, Vec<Set>) =
            self.sets.iter().cloned().partition(|known| known.defines(uri));
        if gone.is_empty() {
            let reason = format!("{uri} was not loaded with LoadNodeSet");
            return Err(Refusal::new(StatusCode::BAD_NOT_FOUND, reason));
        }
        let prepared = importer.prepare(space, &files(&sets), self.batch);
        let prepared = prepared.map_err(|error| Refusal::from(BuildError::from(error)))?;
        if let Some(folder) = folder {
            for set in &gone {
                let path = folder.join(&set.file);
                taktwerk_files::remove(&path).map_err(|error| unwritable(&path, &error))?;
            }
        }
        let uris = gone.into_iter().flat_map(|set| set.uris).collect();
        Ok(self.apply(space, importer, (sets, prepared), uris))
    }

    fn apply(
        &mut self,
        space: &AddressSpace,
        importer: &mut Importer,
        (sets, prepared): (Vec<Set>, Prepared),
        uris: Vec<String>,
    ) -> Changed {
        let imported = importer.replace(space, prepared, now());
        (self.batch, self.sets) = (Some(imported.batch), sets);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        (uris, count(imported.node_count), count(imported.deleted_count), imported.warnings)
    }
}

/// `nsu=URI;i=1`: a node as configurations name it.
fn named(id: &NodeId, namespaces: &[String]) -> Option<String> {
    let uri = namespaces.get(usize::from(id.namespace_index))?;
    let text = id.to_string();
    let identifier = text.split_once(';').map_or(text.as_str(), |(_, identifier)| identifier);
    Some(format!("nsu={uri};{identifier}"))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Refusal {
    let reason = format!("{}: {error}", path.display());
    Refusal::new(StatusCode::BAD_RESOURCE_UNAVAILABLE, reason)
}

/// Deletes the file of a NodeSet that another one replaces.
fn delete(path: &Path) {
    if let Err(error) = taktwerk_files::remove(path) {
        tracing::error!(%error, file = %path.display(), "cannot delete the file of a replaced NodeSet: delete it by hand");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
