//! The fields of an event type: the Variables that it and its supertypes declare (Part 3 §4.7.2).

use super::model::{Entry, Id, Model};
use super::{BASE_EVENT_TYPE, CONDITION_TYPE, EventTypesError, names, values};

const MANDATORY: u32 = 78;
const OPTIONAL: u32 = 80;
/// Maximum nesting of declarations; protects against circles.
const DEPTH_MAX: usize = 8;

/// A field.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    /// Its Rust name.
    pub(super) name: String,
    /// BrowseNames with namespace URIs. Empty for the ConditionId.
    pub(super) path: Vec<(String, String)>,
    /// Its Rust type.
    pub(super) value: String,
    pub(super) description: Option<String>,
}

/// The fields of a type besides those that every event has from BaseEventType; inherited ones first.
pub(super) fn of(model: &Model, id: &Id) -> Result<Vec<Field>, EventTypesError> {
    let mut ancestors = model.ancestors(id)?;
    ancestors.reverse();
    let mut fields = Vec::new();
    if ancestors.contains(&Id::ns0(CONDITION_TYPE)) {
        fields.push(Field {
            name: "condition_id".to_owned(),
            path: Vec::new(),
            value: "taktwerk::NodeId".to_owned(),
            description: Some("The condition that the event reports.".to_owned()),
        });
    }
    let mut collector = Collector { model, fields };
    for ancestor in &ancestors {
        if *ancestor == Id::ns0(BASE_EVENT_TYPE) {
            continue;
        }
        let entry = model.get(ancestor, "an event type")?;
        if ancestors.iter().position(|other| other == ancestor) > position(&ancestors, BASE_EVENT_TYPE) {
            collector.children(entry, &[], "", false)?;
        }
    }
    names::check_fields(&collector.fields)?;
    Ok(collector.fields)
}

fn position(ancestors: &[Id], number: u32) -> Option<usize> {
    ancestors.iter().position(|id| *id == Id::ns0(number))
}

struct Collector<'a> {
    model: &'a Model,
    fields: Vec<Field>,
}

impl Collector<'_> {
    fn children(
        &mut self,
        parent: &Entry,
        path: &[(String, String)],
        prefix: &str,
        is_optional: bool,
    ) -> Result<(), EventTypesError> {
        if path.len() >= DEPTH_MAX {
            return Ok(());
        }
        for id in &parent.children {
            let entry = self.model.get(id, &parent.name.1)?;
            let rule = entry.rule.as_ref().and_then(Id::number);
            if !entry.is_instance || !matches!(rule, Some(MANDATORY | OPTIONAL)) {
                continue;
            }
            let is_optional = is_optional || rule == Some(OPTIONAL);
            let path: Vec<(String, String)> = path.iter().cloned().chain([entry.name.clone()]).collect();
            let own = entry.symbolic_name.as_deref().unwrap_or(&entry.name.1);
            let name = format!("{prefix}{}", names::words(own).join("_"));
            if let Some((data_type, rank)) = &entry.value {
                let value = values::rust(self.model, data_type, *rank, &entry.name.1)?;
                let value = if is_optional { format!("Option<{value}>") } else { value };
                let description = entry.description.clone();
                let field = Field { name: names::field(&name), path: path.clone(), value, description };
                // A type may redeclare an inherited field.
                match self.fields.iter_mut().find(|known| known.path == path) {
                    Some(known) => *known = field,
                    None => self.fields.push(field),
                }
            }
            self.children(entry, &path, &format!("{name}_"), is_optional)?;
        }
        Ok(())
    }
}
