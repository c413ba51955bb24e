//! What a session may do with each set of nodes.

use super::access::{AccessTable, Allowed};
use crate::callback::CallContext;
use std::sync::Arc;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_schema::{AccessRestrictionType, PermissionType};
use taktwerk_types::{NodeId, StatusCode};

/// What decides: the roles of a session and how its messages are secured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    /// In the order of their ids.
    pub(crate) roles: Arc<[NodeId]>,
    pub(crate) mode: MessageSecurityMode,
    /// The user has to change the password (Part 18 §5.2.8): what nobody has restricted is not for this session.
    pub(crate) is_limited: bool,
}

impl Grant {
    pub(crate) fn new(roles: impl Into<Arc<[NodeId]>>, mode: MessageSecurityMode) -> Self {
        Self { roles: roles.into(), mode, is_limited: false }
    }

    /// The grant of whoever calls a Method.
    pub(crate) fn of_caller(caller: &CallContext, mode: MessageSecurityMode) -> Self {
        let is_limited = caller.user_to_change.is_some();
        Self { is_limited, ..Self::new(Arc::clone(&caller.roles), mode) }
    }
}

/// What may be done with the nodes of one set.
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
    /// What the table of sets was like when they were made.
    pub(crate) generation: u64,
    pub(crate) grant: Grant,
    table: Box<[Decision]>,
}

/// Why a monitored item has no values for its client, in two bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u16)]
pub(crate) enum Denial {
    /// It has.
    #[default]
    No = 0,
    User = 1,
    Mode = 2,
    Unknown = 3,
}

impl Denial {
    /// What a status of [`Decisions::check`] means for an item.
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

    /// What the client is told instead of a value.
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
    /// Of a session that is not activated: nothing.
    pub(crate) fn nothing() -> Self {
        let grant = Grant::new([], MessageSecurityMode::None);
        Self { generation: 0, grant, table: Box::new([]) }
    }

    pub(crate) fn new(access: &AccessTable, grant: Grant) -> Self {
        let sets = (0..access.len()).map(|set| u16::try_from(set).unwrap_or(u16::MAX));
        let table = sets.map(|set| decide(access, set, &grant)).collect();
        Self { generation: access.generation(), grant, table }
    }

    /// Of the server itself: everything.
    pub(crate) fn everything(access: &AccessTable) -> Self {
        let all = Decision { granted: PermissionType::ALL_BITS, effective: PermissionType::ALL_BITS };
        let grant = Grant::new([], MessageSecurityMode::SignAndEncrypt);
        Self { generation: access.generation(), grant, table: vec![all; access.len()].into() }
    }

    /// What may be done with the nodes of a set.
    #[inline]
    pub(crate) fn of_set(&self, set: u16) -> PermissionType {
        // A set that came after the table has no entry: nobody may do anything until the table is made anew.
        self.table.get(usize::from(set)).map_or(PermissionType::EMPTY, |decision| decision.effective)
    }

    /// Whether events of some set are not for this grant that were for another one.
    pub(crate) fn hides_events_of(&self, other: &Self) -> bool {
        let receive = PermissionType::RECEIVE_EVENTS;
        (0u16..)
            .zip(&other.table)
            .any(|(set, theirs)| theirs.effective.contains(receive) && !self.of_set(set).contains(receive))
    }

    /// What the roles alone allow with the nodes of a set.
    pub(crate) fn granted(&self, set: u16) -> PermissionType {
        self.table.get(usize::from(set)).map_or(PermissionType::EMPTY, |decision| decision.granted)
    }
}

/// Part 3 §4.9.3: the permissions of all roles together; §8.56: without those that the channel is too weak for.
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
    fn a_set_without_an_entry_is_for_nobody() {
        let access = AccessTable::new();
        let roles = [NodeId::numeric(0, super::super::role::well_known::SECURITY_ADMIN)];
        let decisions = Decisions::new(&access, Grant::new(roles, MessageSecurityMode::SignAndEncrypt));
        assert_eq!(decisions.of_set(access.session(true)).0 & 32, 32);
        assert_eq!(decisions.of_set(u16::MAX), PermissionType::EMPTY);
        assert_eq!(Decisions::nothing().of_set(0), PermissionType::EMPTY);
    }
}
