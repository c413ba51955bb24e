//! The roles that may use a tag.

use crate::fields::{Fields, Mistake};
use taktwerk_schema::PermissionType;
use taktwerk_server::authorization::{Access, role::well_known};
use taktwerk_types::NodeId;

/// The roles that may use a tag. Without any, the permissions of its namespace apply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TagRoles {
    /// Roles with all access that the tag allows.
    full: Vec<String>,
    /// Roles with read access.
    read: Vec<String>,
}

impl TagRoles {
    /// Takes the settings `roles` and `read_roles`.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields) -> Result<Self, Mistake> {
        let full = names(fields.texts("roles")?);
        Ok(Self { full, read: names(fields.texts("read_roles")?) })
    }

    /// Why the roles are wrong. `own` are the roles that the file adds to the standard ones.
    #[must_use]
    pub fn problem(&self, own: &[String]) -> Option<(String, String)> {
        let known = || well_known::ALL.iter().map(|(name, _)| *name).chain(own.iter().map(String::as_str));
        let wrong = self.full.iter().chain(&self.read).find(|name| !known().any(|known| known == *name))?;
        let hint = match taktwerk_config::nearest(wrong, known()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => "add a [[role]] with this name".to_owned(),
        };
        Some((format!("there is no role {wrong:?}"), hint))
    }

    /// The permissions of the tag's nodes. Roles that are not listed have none.
    #[must_use]
    pub fn access(&self, is_writable: bool) -> Access {
        if self.full.is_empty() && self.read.is_empty() {
            return Access::default();
        }
        let read = PermissionType::BROWSE
            | PermissionType::READ
            | PermissionType::READ_HISTORY
            | PermissionType::RECEIVE_EVENTS;
        let call = read | PermissionType::CALL;
        let full = if is_writable { call | PermissionType::WRITE } else { call };
        let all = |roles: &[String], permissions| {
            roles.iter().map(move |role| (id(role), permissions)).collect::<Vec<_>>()
        };
        // A role in both lists has full access.
        let rest: Vec<String> = self.read.iter().filter(|role| !self.full.contains(role)).cloned().collect();
        Access::roles([all(&self.full, full), all(&rest, read)].concat())
    }
}

/// Names in a list, or separated in a table cell.
fn names(texts: Option<Vec<String>>) -> Vec<String> {
    let texts = texts.unwrap_or_default();
    let parts = texts.iter().flat_map(|text| text.split([',', ';']));
    parts.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn id(role: &str) -> NodeId {
    let known = well_known::ALL.iter().find(|(name, _)| *name == role);
    known.map_or_else(|| taktwerk_config::role_id(role), |(_, id)| NodeId::numeric(0, *id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Sections;
    use std::path::Path;

    #[test]
    fn roles_become_permissions() {
        let take = |text: &str| {
            let text = format!("[[tag]]\n{text}");
            TagRoles::take(&mut Sections::parse(Path::new("g.toml"), &text).unwrap().tags.remove(0)).unwrap()
        };
        assert_eq!(take("").access(true), Access::default());
        let roles = take("roles = [\"Operator\", \"Shift\"]\nread_roles = \"Observer; Operator\"\n");
        assert_eq!(roles.problem(&["Shift".to_owned()]), None);
        let (problem, _) = roles.problem(&[]).unwrap();
        assert!(problem.contains("there is no role \"Shift\""), "{problem}");
        let permissions = roles.access(true).role_permissions.unwrap();
        let of = |role: &str| {
            let found: Vec<_> = permissions.iter().filter(|(known, _)| *known == id(role)).collect();
            assert_eq!(found.len(), 1, "{role}: {permissions:?}");
            found[0].1
        };
        let writes = |role| of(role).0 & PermissionType::WRITE.0 != 0;
        assert!(writes("Operator") && writes("Shift") && !writes("Observer"));
        assert_ne!(of("Observer").0 & PermissionType::READ.0, 0);
        let read_only = roles.access(false).role_permissions.unwrap();
        assert!(read_only.iter().all(|(_, permissions)| permissions.0 & PermissionType::WRITE.0 == 0));
        let wrong = take("roles = \"Opertor\"\n").problem(&[]).unwrap();
        assert_eq!(wrong.1, "did you mean \"Operator\"?");
    }
}
