//! The loaded NodeSets. Every change replaces them all at once, which leaves equal nodes as they are.

use super::{Changed, Refusal};
use crate::error::BuildError;
use crate::space::now;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use taktwerk_files::PUBLIC;
use taktwerk_nodeset::NodeSet;
use taktwerk_server::AddressSpace;
use taktwerk_server::space::import::{Batch, Importer, Prepared};
use taktwerk_types::StatusCode;

/// Longest name of a file without its extension.
const NAME_LEN_MAX: usize = 200;
/// How much longer than the longest one all together may be.
const TOTAL_FACTOR: usize = 4;
/// The namespace of the specification.
const NAMESPACE_ZERO: &str = "http://opcfoundation.org/UA/";

/// A loaded NodeSet.
#[derive(Debug, Clone)]
pub(super) struct Set {
    /// The namespaces that it defines.
    uris: Vec<String>,
    /// The name of its file.
    file: String,
    text: String,
}

impl Set {
    /// Parses a NodeSet.
    fn of(file: &str, text: &str) -> Result<Self, Refusal> {
        let set = NodeSet::parse(file, text).map_err(|error| BuildError::Import(error.into()))?;
        let uris: Vec<String> = set.models.into_iter().map(|model| model.uri).collect();
        let wrong = |reason: &str| Refusal::new(StatusCode::BAD_CONFIGURATION_ERROR, reason);
        match uris.first() {
            None => Err(wrong("the NodeSet defines no model: it needs <Models> with a ModelUri")),
            Some(_) if uris.iter().any(|uri| uri == NAMESPACE_ZERO) => {
                Err(wrong("namespace 0 is part of the server and cannot be loaded"))
            }
            Some(first) => Ok(Self { file: file_name(first)?, uris: uris.clone(), text: text.to_owned() }),
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
}

fn lock(importer: &Mutex<Importer>) -> MutexGuard<'_, Importer> {
    importer.lock().unwrap_or_else(PoisonError::into_inner)
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
            let uris = set.models.into_iter().map(|model| model.uri).collect();
            self.sets.push(Set { uris, file: name, text });
        }
        Ok(())
    }

    /// Imports what was read.
    pub(super) fn import(
        &mut self,
        space: &AddressSpace,
        importer: &Mutex<Importer>,
    ) -> Result<(), BuildError> {
        if !self.sets.is_empty() {
            let imported = lock(importer).import(space, &files(&self.sets), now())?;
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
        importer: &Mutex<Importer>,
        text: &str,
        length_max: usize,
    ) -> Result<(Vec<Set>, Vec<Set>, Prepared), Refusal> {
        let set = Set::of("NodeSet", text)?;
        let (replaced, mut sets): (Vec<Set>, Vec<Set>) =
            self.sets.iter().cloned().partition(|known| known.uris.iter().any(|uri| set.defines(uri)));
        sets.push(set);
        let total: usize = sets.iter().map(|set| set.text.len()).sum();
        if total > length_max.saturating_mul(TOTAL_FACTOR) {
            let reason = format!("all loaded NodeSets together would have {total} bytes: unload some");
            return Err(Refusal::new(StatusCode::BAD_RESOURCE_UNAVAILABLE, reason));
        }
        let prepared = lock(importer).prepare(space, &files(&sets), self.batch);
        let prepared = prepared.map_err(|error| Refusal::from(BuildError::from(error)))?;
        Ok((sets, replaced, prepared))
    }

    /// Loads a NodeSet. It replaces those that define one of its namespaces.
    pub(super) fn load(
        &mut self,
        space: &AddressSpace,
        importer: &Mutex<Importer>,
        text: &str,
        (length_max, folder): (usize, Option<&Path>),
    ) -> Result<Changed, Refusal> {
        let (sets, replaced, prepared) = self.check(space, importer, text, length_max)?;
        let Some(new) = sets.last() else { return Ok(Changed::default()) };
        if let Some(folder) = folder {
            // First, so that a full disk changes nothing.
            taktwerk_files::replace(&folder.join(&new.file), text.as_bytes(), PUBLIC)
                .map_err(|error| unwritable(folder, &error))?;
            for old in replaced.iter().filter(|old| old.file != new.file) {
                delete(&folder.join(&old.file));
            }
        }
        let uris = new.uris.clone();
        Ok(self.apply(space, importer, (sets, prepared), uris))
    }

    /// Unloads the NodeSet that defines a namespace.
    pub(super) fn unload(
        &mut self,
        space: &AddressSpace,
        importer: &Mutex<Importer>,
        uri: &str,
        folder: Option<&Path>,
    ) -> Result<Changed, Refusal> {
        let (gone, sets): (Vec<Set>, Vec<Set>) =
            self.sets.iter().cloned().partition(|known| known.defines(uri));
        if gone.is_empty() {
            let reason = format!("{uri} was not loaded with LoadNodeSet");
            return Err(Refusal::new(StatusCode::BAD_NOT_FOUND, reason));
        }
        let prepared = lock(importer).prepare(space, &files(&sets), self.batch);
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
        importer: &Mutex<Importer>,
        (sets, prepared): (Vec<Set>, Prepared),
        uris: Vec<String>,
    ) -> Changed {
        let imported = lock(importer).replace(space, prepared, now());
        (self.batch, self.sets) = (Some(imported.batch), sets);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        (uris, count(imported.node_count), count(imported.deleted_count), imported.warnings)
    }
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
