//! RolePermissions and AccessRestrictions: of nodes, of namespaces, and their defaults.
//!
//! Thousands of nodes share a few combinations. Each combination in use is a *set* with a number, and each node stores
//! the number of its set.

use super::{Authorization, Unspecified};
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use taktwerk_schema::ids::variable_ids;
use taktwerk_schema::ns0::Ns0;
use taktwerk_schema::{AccessRestrictionType, PermissionType};
use taktwerk_types::NodeId;

/// Access rights that a node or a namespace specifies. `None` leaves the decision to the namespace or the server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Access {
    /// Permissions by role (Part 3 §5.2.9). Roles that are not listed have none.
    pub role_permissions: Option<Vec<(NodeId, PermissionType)>>,
    /// Requirements on the channel (Part 3 §5.2.11).
    pub access_restrictions: Option<AccessRestrictionType>,
}

impl Access {
    /// Creates permissions for roles.
    #[must_use]
    pub fn roles(permissions: impl Into<Vec<(NodeId, PermissionType)>>) -> Self {
        Self { role_permissions: Some(permissions.into()), access_restrictions: None }
    }

    /// Adds restrictions on the channel.
    #[must_use]
    pub fn restricted(mut self, restrictions: AccessRestrictionType) -> Self {
        self.access_restrictions = Some(restrictions);
        self
    }

    fn is_silent(&self) -> bool {
        *self == Self::default()
    }
}

/// The applicable permissions, after all defaults.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Allowed<'a> {
    Everything,
    Permissions(&'a [(NodeId, PermissionType)]),
}

/// Maximum number of sets: their numbers have two bytes.
const SETS_MAX: usize = u16::MAX as usize;

/// The sets of an address space.
#[derive(Debug, Clone)]
pub(crate) struct AccessTable {
    /// The namespace, and the rights that its nodes specify.
    sets: Vec<(u16, Access)>,
    by_content: BTreeMap<(u16, Access), u16>,
    /// By namespace: the set of nodes that specify nothing.
    silent: Vec<u16>,
    /// Rights of namespaces, by index: from their NodeSets or builders, then from the configuration.
    namespaces: Vec<(Access, Access)>,
    /// Static nodes that specify rights of their own.
    ns0: BTreeMap<u32, u16>,
    unspecified: Unspecified,
    configured: BTreeMap<String, Access>,
    /// Incremented by every change of access rights.
    generation: Arc<AtomicU64>,
}

impl AccessTable {
    /// Only the rights of namespace 0.
    pub(crate) fn new() -> Self {
        static NAMESPACE_ZERO: OnceLock<AccessTable> = OnceLock::new();
        let table = NAMESPACE_ZERO.get_or_init(Self::namespace_zero);
        Self { generation: Arc::new(AtomicU64::new(table.generation())), ..table.clone() }
    }

    /// Incremented by every change of access rights. Can be read without a lock.
    pub(crate) fn shared_generation(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.generation)
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Marks that a node belongs to another set now.
    pub(crate) fn touch(&self) {
        self.changed();
    }

    fn changed(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn namespace_zero() -> Self {
        let mut table = Self {
            sets: Vec::new(),
            by_content: BTreeMap::new(),
            silent: Vec::new(),
            namespaces: Vec::new(),
            ns0: BTreeMap::new(),
            unspecified: Unspecified::Open,
            configured: BTreeMap::new(),
            generation: Arc::new(AtomicU64::new(1)),
        };
        table.add_namespace("http://opcfoundation.org/UA/");
        for node in Ns0::get().nodes() {
            let extras = node.extras();
            let permissions: Vec<_> = extras
                .role_permissions()
                .map(|(role, bits)| (NodeId::numeric(0, role), PermissionType(bits)))
                .collect();
            let access = Access {
                role_permissions: (!permissions.is_empty()).then_some(permissions),
                access_restrictions: extras.access_restrictions.map(AccessRestrictionType),
            };
            // The specification's own nodes stay far below the limit.
            if let (false, Some(set)) = (access.is_silent(), table.intern(0, access)) {
                table.ns0.insert(node.id(), set);
            }
        }
        table
    }

    /// Adds a namespace, which gets the next index.
    pub(crate) fn add_namespace(&mut self, uri: &str) {
        let index = u16::try_from(self.namespaces.len()).unwrap_or(u16::MAX);
        let configured = self.configured.get(uri).cloned().unwrap_or_default();
        self.namespaces.push((Access::default(), configured));
        // If no number is left, use 0, the set of namespace 0. Any other number would be a set of some other namespace.
        let set = self.intern(index, Access::default()).unwrap_or(0);
        self.silent.push(set);
    }

    /// Applies the configuration. `uris` is the NamespaceArray.
    pub(crate) fn configure(&mut self, authorization: &Authorization, uris: &[String]) {
        self.unspecified = authorization.unspecified.clone();
        self.configured = authorization.namespaces.clone();
        for (uri, (_, configured)) in uris.iter().zip(&mut self.namespaces) {
            *configured = self.configured.get(uri).cloned().unwrap_or_default();
        }
        self.changed();
    }

    /// Sets the rights of a namespace. Those in the configuration take precedence.
    pub(crate) fn set_namespace(&mut self, index: u16, access: Access) {
        if let Some((own, _)) = self.namespaces.get_mut(usize::from(index)) {
            *own = access;
            self.changed();
        }
    }

    /// The number of the set for nodes of a namespace with these rights. `None` if there are too many sets.
    pub(crate) fn intern(&mut self, namespace: u16, access: Access) -> Option<u16> {
        let key = (namespace, access);
        if let Some(set) = self.by_content.get(&key) {
            return Some(*set);
        }
        let set = u16::try_from(self.sets.len()).ok().filter(|set| usize::from(*set) < SETS_MAX)?;
        self.sets.push(key.clone());
        self.by_content.insert(key, set);
        self.changed();
        Some(set)
    }

    /// Whether [`Self::intern`] needs no new number for these rights.
    pub(crate) fn knows(&self, namespace: u16, access: &Access) -> bool {
        self.by_content.contains_key(&(namespace, access.clone()))
    }

    /// How many sets can be added.
    pub(crate) fn room(&self) -> usize {
        SETS_MAX - self.sets.len()
    }

    /// The set of nodes of a namespace that specify nothing.
    pub(crate) fn silent(&self, namespace: u16) -> u16 {
        self.silent.get(usize::from(namespace)).copied().unwrap_or(u16::MAX)
    }

    /// The set of a node of the static namespace 0.
    #[inline]
    pub(crate) fn ns0(&self, id: u32) -> u16 {
        self.ns0.get(&id).copied().unwrap_or(0)
    }

    /// Changes the set of a node of the static namespace 0.
    pub(crate) fn set_ns0(&mut self, id: u32, set: u16) {
        self.ns0.insert(id, set);
        self.changed();
    }

    /// The set of the diagnostics nodes of sessions. Nodes that show how a session is secured have a separate set. The
    /// rights are those of the arrays of all sessions.
    pub(crate) fn session(&self, is_confidential: bool) -> u16 {
        use variable_ids as v;
        self.ns0(if is_confidential {
            v::SERVER_SERVER_DIAGNOSTICS_SESSIONS_DIAGNOSTICS_SUMMARY_SESSION_SECURITY_DIAGNOSTICS_ARRAY
        } else {
            v::SERVER_SERVER_DIAGNOSTICS_SESSIONS_DIAGNOSTICS_SUMMARY_SESSION_DIAGNOSTICS_ARRAY
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    /// The namespace of a set's nodes.
    pub(crate) fn namespace(&self, set: u16) -> Option<u16> {
        self.sets.get(usize::from(set)).map(|(namespace, _)| *namespace)
    }

    /// The rights that the nodes of a set specify themselves.
    pub(crate) fn own(&self, set: u16) -> Option<&Access> {
        self.sets.get(usize::from(set)).map(|(_, access)| access)
    }

    /// The RolePermissions of a set's nodes: their own or their namespace's. `None` if neither specifies any.
    pub(crate) fn role_permissions(&self, set: u16) -> Option<&[(NodeId, PermissionType)]> {
        let (namespace, access) = self.sets.get(usize::from(set))?;
        let (own, configured) = self.namespaces.get(usize::from(*namespace))?;
        [access, configured, own].into_iter().find_map(|access| access.role_permissions.as_deref())
    }

    /// The AccessRestrictions of a set's nodes: their own or their namespace's. `None` if neither specifies any.
    pub(crate) fn access_restrictions(&self, set: u16) -> Option<AccessRestrictionType> {
        let (namespace, access) = self.sets.get(usize::from(set))?;
        let (own, configured) = self.namespaces.get(usize::from(*namespace))?;
        [access, configured, own].into_iter().find_map(|access| access.access_restrictions)
    }

    /// The applicable permissions of a set's nodes.
    pub(crate) fn allowed(&self, set: u16) -> Allowed<'_> {
        if let Some(permissions) = self.role_permissions(set) {
            return Allowed::Permissions(permissions);
        }
        match (&self.unspecified, self.namespace(set)) {
            (_, None) => Allowed::Permissions(&[]),
            (Unspecified::Open, _) => Allowed::Everything,
            (Unspecified::Permissions { namespace_zero, .. }, Some(0)) => {
                Allowed::Permissions(namespace_zero)
            }
            (Unspecified::Permissions { others, .. }, _) => Allowed::Permissions(others),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observer(permissions: PermissionType) -> Access {
        Access::roles([(NodeId::numeric(0, super::super::role::well_known::OBSERVER), permissions)])
    }

    #[test]
    fn node_rights_take_precedence_over_configuration_and_nodeset() {
        let mut table = AccessTable::new();
        table.add_namespace("urn:a");
        let silent = table.silent(1);
        let own = table.intern(1, observer(PermissionType::CALL)).unwrap();
        assert!(matches!(table.allowed(silent), Allowed::Everything));
        table.set_namespace(1, observer(PermissionType::READ));
        assert_eq!(table.role_permissions(silent).unwrap()[0].1, PermissionType::READ);
        let mut authorization = Authorization::suggested();
        authorization.namespaces.insert("urn:a".into(), observer(PermissionType::WRITE));
        let before = table.generation();
        table.configure(&authorization, &["http://opcfoundation.org/UA/".into(), "urn:a".into()]);
        assert!(table.generation() > before);
        assert_eq!(table.role_permissions(silent).unwrap()[0].1, PermissionType::WRITE);
        assert_eq!(table.role_permissions(own).unwrap()[0].1, PermissionType::CALL);
        assert_eq!(table.intern(1, observer(PermissionType::CALL)), Some(own));
    }

    #[test]
    fn namespace_zero_has_the_permissions_of_the_specification() {
        use super::super::role::well_known;
        let table = AccessTable::new();
        let secret = table.session(true);
        assert_eq!(table.access_restrictions(secret), Some(AccessRestrictionType(3)));
        let roles: Vec<_> =
            table.role_permissions(secret).unwrap().iter().map(|(role, _)| role.ns0()).collect();
        assert_eq!(roles, [Some(well_known::SECURITY_ADMIN)]);
        assert_eq!(table.own(table.silent(0)), Some(&Access::default()));
    }
}
