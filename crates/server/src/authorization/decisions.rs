//! The permissions of a session for each set of nodes.

use super::access::{AccessTable, Allowed};
use crate::callback::CallContext;
use std::sync::Arc;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_schema::{AccessRestrictionType, PermissionType};
use taktwerk_types::{NodeId, StatusCode};

/// The basis of decisions: the roles of a session and the security of its channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    /// Sorted by id.
    pub(crate) roles: Arc<[NodeId]>,
    pub(crate) mode: MessageSecurityMode,
    /// The user must change the password first (Part 18 §5.2.8): nodes without restrictions are not accessible either.
    pub(crate) is_limited: bool,
}

impl Grant {
    pub(crate) fn new(roles: impl Into<Arc<[NodeId]>>, mode: MessageSecurityMode) -> Self {
        Self { roles: roles.into(), mode, is_limited: false }
    }

    /// The grant of the caller of a Method.
    pub(crate) fn of_caller(caller: &CallContext, mode: MessageSecurityMode) -> Self {
        let is_limited = caller.user_to_change.is_some();
        Self { is_limited, ..Self::new(Arc::clone(&caller.roles), mode) }
    }
}

/// The permissions for the nodes of one set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Decision {
    /// By the roles alone.
    granted: PermissionType,
    /// Over this channel.
    effective: PermissionType,
}

/// The decisions of one grant for all sets of an address space.
#[derive(Debug)]
pub(crate) struct Decisions {
    /// The generation of the access table that the decisions are based on.
    pub(crate) generation: u64,
    pub(crate) grant: Grant,
    table: Box<[Decision]>,
}

/// Why a monitored item delivers no values to its client, in two bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u16)]
pub(crate) enum Denial {
    /// It delivers values.
    #[default]
    No = 0,
    User = 1,
    Mode = 2,
    Unknown = 3,
}

impl Denial {
    /// The denial for an item that corresponds to a status of [`Decisions::check`].
    pub(crate) fn of(result: Result<(), StatusCode>) -> Self {
        match result {
            Ok(()) => Self::No,
            Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT) => Self::Mode,
            Err(StatusCode::BAD_NODE_ID_UNKNOWN) => Self::Unknown,
            Err(_) => Self::User,
        }
    }

    /// From the two bits.
    pub(crate) const fn from_bits(bits: u16) -> Self {
        match bits & 3 {
            0 => Self::No,
            1 => Self::User,
            2 => Self::Mode,
            _ => Self::Unknown,
        }
    }

    /// The status that the client gets instead of a value.
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::No => StatusCode::GOOD,
            Self::User => StatusCode::BAD_USER_ACCESS_DENIED,
            Self::Mode => StatusCode::BAD_SECURITY_MODE_INSUFFICIENT,
            Self::Unknown => StatusCode::BAD_NODE_ID_UNKNOWN,
        }
    }
}

impl Decisions {
    /// For a session that is not activated: no permissions.
    pub(crate) fn nothing() -> Self {
        let grant = Grant::new([], MessageSecurityMode::None);
        Self { generation: 0, grant, table: Box::new([]) }
    }

    pub(crate) fn new(access: &AccessTable, grant: Grant) -> Self {
        let sets = (0..access.len()).map(|set| u16::try_from(set).unwrap_or(u16::MAX));
        let table = sets.map(|set| decide(access, set, &grant)).collect();
        Self { generation: access.generation(), grant, table }
    }

    /// For the server itself: all permissions.
    pub(crate) fn everything(access: &AccessTable) -> Self {
        let all = Decision { granted: PermissionType::ALL_BITS, effective: PermissionType::ALL_BITS };
        let grant = Grant::new([], MessageSecurityMode::SignAndEncrypt);
        Self { generation: access.generation(), grant, table: vec![all; access.len()].into() }
    }

    /// The effective permissions for the nodes of a set.
    #[inline]
    pub(crate) fn of_set(&self, set: u16) -> PermissionType {
        // A set newer than the table has no entry: no permissions until the table is rebuilt.
        self.table.get(usize::from(set)).map_or(PermissionType::EMPTY, |decision| decision.effective)
    }

    /// Whether this grant hides events of a set that `other` showed.
    pub(crate) fn hides_events_of(&self, other: &Self) -> bool {
        let receive = PermissionType::RECEIVE_EVENTS;
        (0u16..)
            .zip(&other.table)
            .any(|(set, theirs)| theirs.effective.contains(receive) && !self.of_set(set).contains(receive))
    }

    /// The permissions by roles alone for the nodes of a set.
    pub(crate) fn granted(&self, set: u16) -> PermissionType {
        self.table.get(usize::from(set)).map_or(PermissionType::EMPTY, |decision| decision.granted)
    }
}

/// Part 3 §4.9.3: the permissions of all roles together. §8.56: minus those for which the channel is not secure enough.
fn decide(access: &AccessTable, set: u16, grant: &Grant) -> Decision {
    use AccessRestrictionType as A;
    let granted = match access.allowed(set) {
        // The server itself can be seen, as Part 3 §4.9.2 suggests it for Anonymous.
        Allowed::Everything if grant.is_limited => match access.namespace(set) {
            Some(0) => PermissionType::BROWSE | PermissionType::READ,
            _ => PermissionType::EMPTY,
        },
        Allowed::Everything => PermissionType::ALL_BITS,
        Allowed::Permissions(permissions) => permissions
            .iter()
            .filter(|(role, _)| grant.roles.contains(role))
            .fold(PermissionType::EMPTY, |all, (_, permissions)| all | *permissions),
    };
    let restrictions = access.access_restrictions(set).unwrap_or_default();
    let is_weak = match grant.mode {
        MessageSecurityMode::None => restrictions.intersects(A::SIGNING_REQUIRED | A::ENCRYPTION_REQUIRED),
        MessageSecurityMode::Sign => restrictions.contains(A::ENCRYPTION_REQUIRED),
        MessageSecurityMode::SignAndEncrypt => false,
    };
    let effective = match (is_weak, restrictions.contains(A::APPLY_RESTRICTIONS_TO_BROWSE)) {
        (false, _) => granted,
        (true, false) => PermissionType(granted.0 & PermissionType::BROWSE.0),
        (true, true) => PermissionType::EMPTY,
    };
    Decision { granted, effective }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_survives_its_two_bits() {
        for denial in [Denial::No, Denial::User, Denial::Mode, Denial::Unknown] {
            assert_eq!(Denial::from_bits(denial as u16), denial);
            let result = if denial == Denial::No { Ok(()) } else { Err(denial.status()) };
            assert_eq!(Denial::of(result), denial);
        }
    }

    #[test]
    fn a_set_without_an_entry_has_no_permissions() {
        let access = AccessTable::new();
        let roles = [NodeId::numeric(0, super::super::role::well_known::SECURITY_ADMIN)];
        let decisions = Decisions::new(&access, Grant::new(roles, MessageSecurityMode::SignAndEncrypt));
        assert_eq!(decisions.of_set(access.session(true)).0 & 32, 32);
        assert_eq!(decisions.of_set(u16::MAX), PermissionType::EMPTY);
        assert_eq!(Decisions::nothing().of_set(0), PermissionType::EMPTY);
    }
}
