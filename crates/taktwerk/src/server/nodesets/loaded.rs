//! The loaded NodeSets. Every change replaces them all at once, which leaves equal nodes as they are.

use super::set::{Set, without_replaced};
use super::{Changed, NodeSetMethods, NodeSetRemoval, Refusal};
use crate::error::BuildError;
use crate::space::now;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use taktwerk_files::PUBLIC;
use taktwerk_server::AddressSpace;
use taktwerk_server::space::import::{Batch, Imported, Importer, Prepared};
use taktwerk_types::StatusCode;

/// How much longer than the longest one all together may be.
const TOTAL_FACTOR: usize = 4;
/// The file with the namespaces in the order of their indexes, so that these are the same after a restart.
const NAMESPACES: &str = "namespaces.txt";
/// Longest such file in bytes. Clients read all namespaces in one Variable.
const NAMESPACES_LEN_MAX: usize = 1 << 20;
/// Maximum number of models of all loaded NodeSets. Each new one is compared with all.
const MODELS_MAX: usize = 1_000;

/// Maximum number of warnings in a response.
const WARNINGS_MAX: usize = 100;

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
        match taktwerk_files::read_text(&list, NAMESPACES_LEN_MAX as u64) {
            Ok(text) => self.namespaces.extend(text.lines().map(str::to_owned)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&list, error)),
        }
        let mut sets = Vec::new();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_xml = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xml"));
            // Programs create hidden files while they write.
            if !is_xml || name.starts_with('.') {
                continue;
            }
            let text = taktwerk_files::read_text(&path, super::super::import::NODESET_LEN_MAX)
                .map_err(|error| failed(&path, error))?;
            let written = std::fs::metadata(&path).and_then(|metadata| metadata.modified());
            let set = Set::parse(&path.display().to_string(), name, text)?;
            add_missing(&mut self.namespaces, &set.namespaces);
            // Without times of files, the name decides.
            sets.push((set, written.unwrap_or(SystemTime::UNIX_EPOCH)));
        }
        self.sets = without_replaced(sets);
        Ok(())
    }

    /// All namespaces if these sets are loaded, of which only the last one is new.
    fn namespaces_with(&self, sets: &[Set]) -> Vec<String> {
        let mut all = self.namespaces.clone();
        if let Some(new) = sets.last() {
            add_missing(&mut all, &new.namespaces);
        }
        all
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

    /// Checks a NodeSet. Returns all that would be loaded, those that it replaces, and what is prepared.
    pub(super) fn check(
        &self,
        space: &AddressSpace,
        importer: &Importer,
        text: &str,
        settings: &NodeSetMethods,
    ) -> Result<(Vec<Set>, Vec<Set>, Prepared), Refusal> {
        let set = Set::of_client(text)?;
        let reserved = settings.reserved.iter().find(|uri| set.defines(uri));
        if let Some(uri) = reserved.or_else(|| self.foreign(&set, space, importer)) {
            let reason = format!(
                "the namespace {uri} is used by the server or its configuration: define the model in a namespace of its \
                 own"
            );
            return Err(Refusal::new(StatusCode::BAD_CONFIGURATION_ERROR, reason));
        }
        let (replaced, mut sets): (Vec<Set>, Vec<Set>) =
            self.sets.iter().cloned().partition(|known| set.replaces(known));
        sets.push(set);
        let total: usize = sets.iter().map(|set| set.text.len()).sum();
        if total > settings.length_max.saturating_mul(TOTAL_FACTOR) {
            let reason = format!("all loaded NodeSets together would have {total} bytes: unload some");
            return Err(Refusal::new(StatusCode::BAD_RESOURCE_UNAVAILABLE, reason));
        }
        if sets.iter().map(|set| set.uris.len()).sum::<usize>() > MODELS_MAX {
            let reason =
                format!("all loaded NodeSets together would have more than {MODELS_MAX} models: unload some");
            return Err(Refusal::new(StatusCode::BAD_RESOURCE_UNAVAILABLE, reason));
        }
        let namespaces = self.namespaces_with(&sets);
        if namespaces.iter().map(|uri| uri.len() + 1).sum::<usize>() > NAMESPACES_LEN_MAX {
            let reason = format!(
                "the URIs of all namespaces together would have more than {NAMESPACES_LEN_MAX} bytes: remove those that \
                 no node uses from <NamespaceUris>"
            );
            return Err(Refusal::new(StatusCode::BAD_RESOURCE_UNAVAILABLE, reason));
        }
        let prepared = self.prepare(space, importer, &sets, settings)?;
        Ok((sets, replaced, prepared))
    }

    /// Prepares the change to other sets, if the application does not need what they lack.
    fn prepare(
        &self,
        space: &AddressSpace,
        importer: &Importer,
        sets: &[Set],
        settings: &NodeSetMethods,
    ) -> Result<Prepared, Refusal> {
        let prepared = importer.prepare(space, &files(sets), self.batch);
        let prepared = prepared.map_err(|error| Refusal::from(BuildError::from(error)))?;
        let is_gone = |uri: &&str| !sets.iter().any(|set| set.defines(uri));
        let known = self.sets.iter().flat_map(|set| &set.uris).map(String::as_str);
        let namespaces = known.filter(is_gone).collect();
        let nodes = importer.removed(space, &prepared).into_iter().collect();
        let removal = NodeSetRemoval { space, namespaces, nodes };
        if !removal.is_empty() {
            (settings.keep)(&removal)
                .map_err(|reason| Refusal::new(StatusCode::BAD_INVALID_STATE, reason))?;
        }
        Ok(prepared)
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
        let namespaces = self.namespaces_with(&sets);
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
        settings: &NodeSetMethods,
    ) -> Result<Changed, Refusal> {
        let (gone, sets): (Vec<Set>, Vec<Set>) =
            self.sets.iter().cloned().partition(|known| known.defines(uri));
        if gone.is_empty() {
            let reason = format!("{uri} was not loaded with LoadNodeSet");
            return Err(Refusal::new(StatusCode::BAD_NOT_FOUND, reason));
        }
        let prepared = self.prepare(space, importer, &sets, settings)?;
        if let Some(folder) = &settings.folder {
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
        (uris, count(imported.node_count), count(imported.deleted_count), shortened(&imported))
    }
}

/// Warnings that fit into a response.
fn shortened(imported: &Imported) -> Vec<String> {
    let warnings = &imported.warnings;
    let first = warnings.iter().take(WARNINGS_MAX).map(|warning| warning.chars().take(500).collect());
    let more = warnings.len().saturating_sub(WARNINGS_MAX) + imported.more_warnings;
    first.chain((more > 0).then(|| format!("and {more} more"))).collect()
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
