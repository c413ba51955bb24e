//! Groups of alarms of a configuration.

use super::history::node_id;
use super::reference::References;
use crate::failure::Failure;
use taktwerk::alarms::{Conditions, GroupKind, GroupSpec};
use taktwerk::schema::ids::object_ids;
use taktwerk_config::{AlarmGroupSection, ConfigFile};
use taktwerk_types::NodeId;
use toml::Spanned;

/// A group of a configuration.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    section: &'a AlarmGroupSection,
    spec: GroupSpec,
}

/// The groups that a configuration defines. `has_all_alarms`: a check may skip alarms, and then also the groups.
pub(super) fn define<'a>(
    file: &'a ConfigFile,
    references: &References<'_>,
    has_all_alarms: bool,
) -> Result<Vec<Wanted<'a>>, Failure> {
    let sections = file.config().alarms.group.iter().filter(|_| has_all_alarms);
    let defined = sections.map(|section| {
        let spec = group(section, references).map_err(|why| wrong(section, references, &why))?;
        Ok(spec.map(|spec| Wanted { section, spec }))
    });
    defined.filter_map(Result::transpose).collect()
}

/// Replaces groups by others. Equal ones are not touched, unless one of their members was added again. Returns whether
/// there was a change, also before an error.
pub(super) fn change(
    references: &References<'_>,
    present: &mut Vec<GroupSpec>,
    wanted: Vec<Wanted<'_>>,
) -> (bool, Result<(), Failure>) {
    let conditions = Conditions::of(references.space());
    let before = present.clone();
    let mut old = core::mem::take(present);
    old.retain(|old| {
        let stays = wanted.iter().any(|new| new.spec.id == old.id);
        if !stays {
            conditions.remove_group(&old.id);
        }
        stays
    });
    let mut done = Ok(());
    for Wanted { section, spec } in wanted {
        if present.contains(&spec) {
            continue;
        }
        if let Some(at) = old.iter().position(|old| old.id == spec.id) {
            if old.swap_remove(at) == spec && conditions.has_group(&spec) {
                present.push(spec);
                continue;
            }
            // One after the other, because what it suppresses is not suppressed in between.
            conditions.remove_group(&spec.id);
        }
        match conditions.add_group(&spec) {
            Ok(()) => present.push(spec),
            // The other groups must not be missing because of this one.
            Err(error) => done = done.and(Err(wrong(section, references, &error.to_string()))),
        }
    }
    let is_equal = before.len() == present.len() && before.iter().all(|group| present.contains(group));
    (!is_equal, done)
}

fn wrong(section: &AlarmGroupSection, references: &References<'_>, why: &str) -> Failure {
    let problem = format!("[[alarms.group]] name = \"{}\": {why}", section.name.get_ref());
    references.wrong(&section.name, problem)
}

/// The group of a section; `None` if a check cannot know its members.
fn group(section: &AlarmGroupSection, references: &References<'_>) -> Result<Option<GroupSpec>, String> {
    let namespaces = references.space().namespaces();
    // The alarms of the server's certificates, for example, exist only in the server itself.
    let is_checked = |text: &&Spanned<String>| !matches!(references.find(text.get_ref()), Ok(None));
    let ids = |texts: &[Spanned<String>]| -> Result<Vec<NodeId>, String> {
        let id = |text: &Spanned<String>| {
            let text = text.get_ref();
            node_id(text, &namespaces).ok_or_else(|| format!("{text} is not a NodeId"))
        };
        texts.iter().filter(is_checked).map(id).collect()
    };
    let kind = match (section.first_in_group, section.suppresses.is_empty()) {
        (true, false) => return Err("set either first_in_group or suppresses".to_owned()),
        (true, true) => GroupKind::FirstInGroup,
        (false, false) => GroupKind::Suppression,
        (false, true) => GroupKind::Related,
    };
    let members = ids(&section.members)?;
    if members.is_empty() && !section.members.is_empty() {
        return Ok(None);
    }
    let namespace = members.first().map_or(1, |id| id.namespace_index.max(1));
    let name = section.name.get_ref();
    let id = NodeId::string(namespace, format!("AlarmGroups/{name}"));
    let objects = NodeId::numeric(0, object_ids::OBJECTS_FOLDER);
    let suppresses = ids(&section.suppresses)?;
    Ok(Some(GroupSpec { members, suppresses, ..GroupSpec::new(id, name, objects, kind) }))
}
