//! The load order of files.

use crate::error::{NodeSetError, Problem};
use crate::model::{Model, NodeSet};
use std::collections::{BTreeMap, BTreeSet};

/// The indexes of `sets`, ordered so that every model comes after those it requires. `present` are the models that the
/// server already has, at least that of OPC UA itself.
///
/// # Errors
/// A required model is in neither list, two files define the same model, or models require each other.
pub fn order_by_dependencies(sets: &[NodeSet], present: &[&str]) -> Result<Vec<usize>, NodeSetError> {
    let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, set) in sets.iter().enumerate() {
        for model in &set.models {
            if let Some(other) = owners.insert(&model.uri, index) {
                let other = sets.get(other).map(|set| set.file.clone()).unwrap_or_default();
                return Err(error(
                    set,
                    model.line,
                    Problem::DuplicateModel { model: model.uri.clone(), other },
                ));
            }
        }
    }
    let mut needs: Vec<BTreeSet<usize>> = Vec::with_capacity(sets.len());
    for (index, set) in sets.iter().enumerate() {
        let mut on = BTreeSet::new();
        for (model, required) in
            set.models.iter().flat_map(|model| model.required.iter().map(move |r| (model, r)))
        {
            match owners.get(required.uri.as_str()) {
                Some(owner) if *owner == index => {}
                Some(owner) => {
                    on.insert(*owner);
                }
                None if present.contains(&required.uri.as_str()) => {}
                None => {
                    let version = required.version.as_ref().map(|version| format!(" (version {version})"));
                    let problem = Problem::MissingModel {
                        model: model.uri.clone(),
                        required: required.uri.clone(),
                        version: version.unwrap_or_default(),
                    };
                    return Err(error(set, required.line, problem));
                }
            }
        }
        needs.push(on);
    }
    topological(sets, &needs)
}

fn topological(sets: &[NodeSet], needs: &[BTreeSet<usize>]) -> Result<Vec<usize>, NodeSetError> {
    let mut order = Vec::with_capacity(sets.len());
    let mut done = BTreeSet::new();
    while order.len() < sets.len() {
        let ready = needs.iter().enumerate().find(|(index, on)| !done.contains(index) && on.is_subset(&done));
        let Some((index, _)) = ready else {
            let open =
                || sets.iter().enumerate().filter(|(index, _)| !done.contains(index)).map(|(_, set)| set);
            let names = open().flat_map(|set| &set.models).map(|model| model.uri.as_str());
            let problem = Problem::CircularModels(names.collect::<Vec<_>>().join(", "));
            let first = open().next();
            return Err(NodeSetError {
                file: first.map(|set| set.file.clone()).unwrap_or_default(),
                line: first.and_then(|set| set.models.first()).map_or(1, |model| model.line),
                problem: Box::new(problem),
            });
        };
        done.insert(index);
        order.push(index);
    }
    Ok(order)
}

/// Requirements that only an older publication meets. They deserve a warning only: published models often require a
/// newer patch of another model than they need.
#[must_use]
pub fn outdated_models(sets: &[NodeSet], present: &[Model]) -> Vec<NodeSetError> {
    let all: BTreeMap<&str, &Model> = sets
        .iter()
        .flat_map(|set| &set.models)
        .chain(present)
        .map(|model| (model.uri.as_str(), model))
        .collect();
    let mut outdated = Vec::new();
    for set in sets {
        for (model, required) in
            set.models.iter().flat_map(|model| model.required.iter().map(move |r| (model, r)))
        {
            let found = all.get(required.uri.as_str()).and_then(|model| model.publication_date);
            if let (Some(found), Some(wanted)) = (found, required.publication_date)
                && found < wanted
            {
                let problem = Problem::OutdatedModel {
                    model: model.uri.clone(),
                    required: required.uri.clone(),
                    wanted: wanted.to_string(),
                    found: found.to_string(),
                };
                outdated.push(error(set, required.line, problem));
            }
        }
    }
    outdated
}

fn error(set: &NodeSet, line: u32, problem: Problem) -> NodeSetError {
    NodeSetError { file: set.file.clone(), line, problem: Box::new(problem) }
}
