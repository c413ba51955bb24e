//! The namespaces of files that are not imported yet: those that the server does not have get provisional indexes. So
//! files that are only checked, or refused, leave no namespaces behind.

use super::{AddressSpace, Batch, ImportError, Importer, Prepared, replace, spec_of};
use std::collections::BTreeMap;
use taktwerk_nodeset::{Budget, NodeSet, NodeSetError, Problem};

/// Most namespaces of a server that imports files. Each one takes a permission set and a place in the NamespaceArray, and
/// none is ever removed.
const NAMESPACES_MAX: usize = 10_000;
/// Most namespaces of a file. The largest companion specifications have about 20.
const FILE_NAMESPACES_MAX: usize = 100;

/// The indexes of all namespaces.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    by_uri: BTreeMap<String, u16>,
    count: usize,
    /// Those with provisional indexes, in their order.
    new: Vec<String>,
}

impl Indexes {
    pub(super) fn of(space: &AddressSpace) -> Self {
        let namespaces = space.namespaces();
        let count = namespaces.len();
        let numbered = namespaces.into_iter().zip(0..=u16::MAX);
        Self { by_uri: numbered.collect(), count, new: Vec::new() }
    }

    /// Gives the namespaces of a file indexes.
    pub(super) fn add(&mut self, set: &NodeSet) -> Result<(), NodeSetError> {
        let too_many = |limit: usize| {
            let problem = Box::new(Problem::TooManyNamespaces { limit });
            NodeSetError { file: set.file.clone(), line: 1, problem }
        };
        // Its table also lists namespace 0.
        if set.namespace_uris.len() > FILE_NAMESPACES_MAX + 1 {
            return Err(too_many(FILE_NAMESPACES_MAX));
        }
        for uri in &set.namespace_uris {
            if self.by_uri.contains_key(uri) {
                continue;
            }
            let next = u16::try_from(self.count).ok().filter(|_| self.count < NAMESPACES_MAX);
            let next = next.ok_or_else(|| too_many(NAMESPACES_MAX))?;
            self.by_uri.insert(uri.clone(), next);
            self.new.push(uri.clone());
            self.count += 1;
        }
        Ok(())
    }

    /// Number of namespaces that the server does not have.
    pub(super) fn new_count(&self) -> usize {
        self.new.len()
    }

    pub(super) fn get(&self, uri: &str) -> Option<u16> {
        self.by_uri.get(uri).copied()
    }
}

impl Importer {
    /// Registers the namespaces of prepared files, as [`Importer::replace`] does. They stay registered.
    pub fn register(&mut self, space: &AddressSpace, prepared: &mut Prepared) {
        let mut has_moved = false;
        for uri in core::mem::take(&mut prepared.indexes.new) {
            let index = self.add_namespace(space, &uri);
            has_moved |= prepared.indexes.by_uri.insert(uri, index) != Some(index);
        }
        if has_moved {
            self.move_indexes(prepared);
        }
    }

    /// Registers a namespace of files that were imported before a restart, or are imported later. Returns its index.
    pub fn add_namespace(&mut self, space: &AddressSpace, uri: &str) -> u16 {
        let mut nodes = space.write();
        let count = nodes.namespaces().len();
        let index = nodes.add_namespace(uri);
        if nodes.namespaces().len() > count {
            self.registered.insert(uri.to_owned());
        }
        index
    }

    /// Whether a namespace was registered for imported files, and not by the application.
    #[must_use]
    pub fn has_registered(&self, uri: &str) -> bool {
        self.registered.contains(uri)
    }

    /// Reserves a namespace for nodes of the application: files that define it are refused from now on. Their default
    /// permissions would apply to the application's nodes. `coming` is what is imported next.
    ///
    /// # Errors
    /// [`ImportError::Defined`] if an imported file or `coming` defines it. Nothing is reserved then.
    pub fn reserve(&mut self, uri: &str, coming: Option<&Prepared>) -> Result<(), ImportError> {
        let instead = coming.and_then(|prepared| prepared.instead);
        let staying = self.loaded.iter().enumerate().filter(|(at, _)| Some(Batch(*at)) != instead);
        let coming = coming.into_iter().flat_map(|prepared| &prepared.sets).flat_map(|set| &set.models);
        if staying.flat_map(|(_, loaded)| &loaded.models).chain(coming).any(|model| model.uri == uri) {
            return Err(ImportError::Defined { uri: uri.to_owned() });
        }
        self.reserved.insert(uri.to_owned());
        Ok(())
    }

    /// Fails if a file defines a reserved namespace.
    pub(super) fn check_reserved(&self, set: &NodeSet) -> Result<(), ImportError> {
        match set.models.iter().find(|model| self.reserved.contains(&model.uri)) {
            None => Ok(()),
            Some(model) => {
                let (file, line, uri) = (set.file.clone(), model.line, model.uri.clone());
                Err(ImportError::Reserved { file, line, uri })
            }
        }
    }

    /// Other namespaces were registered after the files had been read.
    fn move_indexes(&self, prepared: &mut Prepared) {
        let Prepared { sets, specs, types, imported, indexes, instead, .. } = prepared;
        *types = self.types_without(*instead);
        for set in sets.iter_mut() {
            // All its namespaces have indexes.
            let _ = set.remap(|uri| indexes.get(uri));
            types.add(set);
        }
        for (index, uri) in &mut imported.namespaces {
            *index = indexes.get(uri).unwrap_or_default();
        }
        specs.clear();
        let budget = Budget::of(sets);
        for set in sets.iter() {
            for node in &set.nodes {
                match spec_of(set, node, types, &budget) {
                    Ok(spec) => specs.push((replace::Fingerprint::of(&spec), spec)),
                    Err(error) => imported.warn(|| format!("{error}; the node is skipped")),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_nodeset::TypeDictionary;
    use taktwerk_types::{NodeId, UtcTime};

    const NOW: UtcTime = UtcTime::NULL;

    /// A NodeSet with a folder, and with other namespaces before its own one.
    fn file(uri: &str, others: &[&str], model: &str) -> Vec<(String, String)> {
        let uris: String = others.iter().map(|uri| format!("<Uri>{uri}</Uri>")).collect();
        let index = others.len() + 1;
        let text = format!(
            "<UANodeSet xmlns=\"http://opcfoundation.org/UA/2011/03/UANodeSet.xsd\">\
             <NamespaceUris>{uris}<Uri>{uri}</Uri></NamespaceUris>\
             <Models><Model ModelUri=\"{uri}\">{model}</Model></Models>\
             <UAObject NodeId=\"ns={index};i=1\" BrowseName=\"{index}:Folder\"><References>\
             <Reference ReferenceType=\"i=35\" IsForward=\"false\">i=85</Reference>\
             <Reference ReferenceType=\"i=40\">i=61</Reference></References></UAObject></UANodeSet>"
        );
        vec![(format!("{uri}.xml"), text)]
    }

    fn space() -> (AddressSpace, Importer) {
        (AddressSpace::new(1, 16, "urn:test"), Importer::new(TypeDictionary::default()))
    }

    #[test]
    fn files_that_are_not_imported_register_nothing() {
        let (space, mut importer) = space();
        let before = (space.namespaces(), space.read().access().len());
        let now = |space: &AddressSpace| (space.namespaces(), space.read().access().len());
        let prepared = importer.prepare(&space, &file("urn:a", &["urn:b"], ""), None).unwrap();
        assert_eq!(now(&space), before);
        let missing = file("urn:c", &[], "<RequiredModel ModelUri=\"urn:missing\"/>");
        importer.prepare(&space, &missing, None).unwrap_err();
        assert_eq!(now(&space), before);
        let imported = importer.replace(&space, prepared, NOW);
        assert_eq!((imported.node_count, imported.namespaces), (1, vec![(3, "urn:a".to_owned())]));
        assert_eq!(space.namespaces()[2..], ["urn:b", "urn:a"]);
        assert!(space.contains(&NodeId::numeric(3, 1)));
        let has = |uri: &str| importer.has_registered(uri);
        assert!(has("urn:a") && has("urn:b") && !has("urn:test") && !has("urn:c"));
    }

    /// The application may register namespaces between reading and importing.
    #[test]
    fn indexes_that_are_taken_meanwhile_are_replaced() {
        let (space, mut importer) = space();
        let prepared = importer.prepare(&space, &file("urn:a", &["urn:b"], ""), None).unwrap();
        for uri in ["urn:other", "urn:a"] {
            space.add_namespace(uri);
        }
        let imported = importer.replace(&space, prepared, NOW);
        assert_eq!((imported.node_count, imported.warnings), (1, Vec::new()));
        assert_eq!(imported.namespaces, [(3, "urn:a".to_owned())]);
        assert_eq!(space.namespaces()[2..], ["urn:other", "urn:a", "urn:b"]);
        assert!(space.contains(&NodeId::numeric(3, 1)) && !space.contains(&NodeId::numeric(2, 1)));
        assert!(!importer.has_registered("urn:a") && importer.has_registered("urn:b"));
        // The same file again changes nothing.
        let again = importer.prepare(&space, &file("urn:a", &["urn:b"], ""), Some(imported.batch)).unwrap();
        let again = importer.replace(&space, again, NOW);
        assert_eq!((again.node_count, again.deleted_count), (0, 0));
    }

    #[test]
    fn a_reserved_namespace_and_a_model_exclude_each_other() {
        let (space, mut importer) = space();
        let batch = importer.import(&space, &file("urn:a", &["urn:used"], ""), NOW).unwrap().batch;
        let defined = |uri: &str| Err(ImportError::Defined { uri: uri.to_owned() });
        assert_eq!(importer.reserve("urn:a", None), defined("urn:a"));
        // Files may use a namespace without defining it.
        assert_eq!(importer.reserve("urn:used", None), Ok(()));
        let coming = importer.prepare(&space, &file("urn:b", &[], ""), Some(batch)).unwrap();
        assert_eq!(importer.reserve("urn:b", Some(&coming)), defined("urn:b"));
        // Its file is about to be replaced.
        assert_eq!(importer.reserve("urn:a", Some(&coming)), Ok(()));
        importer.replace(&space, coming, NOW);
        for uri in ["urn:a", "urn:used"] {
            let reserved = ImportError::Reserved { file: format!("{uri}.xml"), line: 1, uri: uri.to_owned() };
            assert_eq!(importer.prepare(&space, &file(uri, &[], ""), None).unwrap_err(), reserved);
            assert_eq!(importer.import(&space, &file(uri, &[], ""), NOW).unwrap_err(), reserved);
        }
        importer.import(&space, &file("urn:c", &["urn:a"], ""), NOW).unwrap();
    }

    #[test]
    fn namespaces_are_limited() {
        let (space, mut importer) = space();
        let many: Vec<String> = (0..10_000).map(|number| format!("urn:{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let refused = importer.prepare(&space, &file("urn:a", &many[..100], ""), None).unwrap_err();
        assert!(matches!(refused, ImportError::File(_)) && refused.to_string().contains("100 namespaces"));
        assert_eq!(space.namespace_count(), 2);
        // All files of a server together.
        let mut refused = None;
        for (number, some) in many.chunks(90).enumerate() {
            match importer.prepare(&space, &file(&format!("urn:model:{number}"), some, ""), None) {
                Ok(mut prepared) => importer.register(&space, &mut prepared),
                Err(error) => refused = Some(error.to_string()),
            }
        }
        assert!(refused.is_some_and(|why| why.contains("10000 namespaces")));
        assert!(space.namespace_count() <= 10_000);
    }

    /// What a model grants ends with the file that grants it.
    #[test]
    fn default_permissions_end_with_their_file() {
        let permissions =
            "<RolePermissions><RolePermission Permissions=\"1\">i=15644</RolePermission></RolePermissions>";
        let (with, without) = (file("urn:a", &[], permissions), file("urn:a", &[], ""));
        let (space, mut importer) = space();
        let mut replace = |batch: Option<Batch>, files: &[(String, String)]| {
            let prepared = importer.prepare(&space, files, batch).unwrap();
            let imported = importer.replace(&space, prepared, NOW);
            let nodes = space.read();
            let access = nodes.access();
            (imported.batch, access.role_permissions(access.silent(2)).map(<[_]>::len))
        };
        let (batch, granted) = replace(None, &with);
        assert_eq!(granted, Some(1));
        assert_eq!(replace(Some(batch), &without).1, None);
        assert_eq!(replace(Some(batch), &with).1, Some(1));
        assert_eq!(replace(Some(batch), &[]).1, None);
    }

    /// Its id was used by another node after the file had been read.
    #[test]
    fn a_node_of_somebody_else_stays() {
        use crate::space::NodeSpec;
        use crate::space::build::Under;
        use taktwerk_types::QualifiedName;
        let (space, mut importer) = space();
        let index = space.add_namespace("urn:a");
        let prepared = importer.prepare(&space, &file("urn:a", &[], ""), None).unwrap();
        let id = NodeId::numeric(index, 1);
        let (objects, organizes) = (NodeId::numeric(0, 85), NodeId::numeric(0, 35));
        let under = Under { parent: &objects, reference_type: &organizes, type_definition: None };
        space.add_node(NodeSpec::object(id.clone(), QualifiedName::new(1, "Other")), under, NOW).unwrap();
        let imported = importer.replace(&space, prepared, NOW);
        assert_eq!((imported.node_count, imported.warnings.len()), (0, 1));
        let nothing = importer.prepare(&space, &[], Some(imported.batch)).unwrap();
        assert_eq!(importer.replace(&space, nothing, NOW).deleted_count, 0);
        assert!(space.contains(&id));
    }
}
