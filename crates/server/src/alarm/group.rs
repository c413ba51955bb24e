//! Groups of alarms (Part 9 §5.8.3, §5.8.4): which members are active, and which was first.

use std::collections::BTreeSet;
use taktwerk_types::NodeId;

/// The purpose of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKind {
    /// Groups related alarms (AlarmGroupType, §5.8.3).
    Related,
    /// Also shows which of its alarms was active first (FirstInGroup and FirstInGroupFlag, §5.8.2).
    FirstInGroup,
    /// Suppresses other alarms while one of its members is active (AlarmSuppressionGroupType, §5.8.4).
    Suppression,
}

/// The definition of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSpec {
    /// The NodeId of its Object.
    pub id: NodeId,
    /// Its name.
    pub name: Box<str>,
    /// The Object that organizes it.
    pub parent: NodeId,
    /// Its purpose.
    pub kind: GroupKind,
    /// ConditionIds of its members. Suppression groups can also have Boolean Variables: true means active (§5.8.4).
    pub members: Vec<NodeId>,
    /// ConditionIds of the alarms that it suppresses (HasAlarmSuppressionGroup, §5.4.4).
    pub suppresses: Vec<NodeId>,
}

impl GroupSpec {
    /// A group without members.
    #[must_use]
    pub fn new(id: NodeId, name: &str, parent: NodeId, kind: GroupKind) -> Self {
        Self { id, name: name.into(), parent, kind, members: Vec::new(), suppresses: Vec::new() }
    }
}

/// A member of a group, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Member {
    /// An alarm.
    Alarm(u32),
    /// A Boolean Variable.
    Variable(u32),
}

/// How a change of a member affects its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupChange {
    /// Nothing.
    None,
    /// The first member became active, so the group is active.
    Activated,
    /// No member is active any more. The first member loses its FirstInGroupFlag.
    Deactivated {
        /// The member that was first.
        first: Member,
    },
}

/// The state machine of a group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Group {
    active: BTreeSet<Member>,
    first: Option<Member>,
}

impl Group {
    /// Whether a member is active (§3.1.6).
    #[must_use]
    pub fn is_active(&self) -> bool {
        !self.active.is_empty()
    }

    /// The member that was active first (§5.8.2, FirstInGroupFlag). It stays first as long as any member is active,
    /// because it shows the likely cause.
    #[must_use]
    pub fn first(&self) -> Option<Member> {
        self.first
    }

    /// Updates whether a member is active.
    pub fn member(&mut self, member: Member, is_active: bool) -> GroupChange {
        if is_active {
            self.active.insert(member);
            if self.first.is_none() {
                self.first = Some(member);
                return GroupChange::Activated;
            }
        } else if self.active.remove(&member) && self.active.is_empty() {
            return self.first.take().map_or(GroupChange::None, |first| GroupChange::Deactivated { first });
        }
        GroupChange::None
    }

    /// Removes a member, whose number may be that of another one later. If it was first, an active member replaces it.
    /// Returns that one.
    pub fn forget(&mut self, member: Member) -> Option<Member> {
        self.active.remove(&member);
        if self.first != Some(member) {
            return None;
        }
        self.first = self.active.first().copied();
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_member_stays_first_until_all_are_inactive() {
        let (a, b, c) = (Member::Alarm(1), Member::Alarm(2), Member::Variable(1));
        let mut group = Group::default();
        assert_eq!(group.member(a, false), GroupChange::None);
        assert_eq!(group.member(b, true), GroupChange::Activated);
        assert_eq!(group.member(b, true), GroupChange::None);
        assert_eq!(group.member(c, true), GroupChange::None);
        assert_eq!(group.member(b, false), GroupChange::None);
        assert!(group.is_active() && group.first() == Some(b));
        assert_eq!(group.member(c, false), GroupChange::Deactivated { first: b });
        assert_eq!(group.member(c, false), GroupChange::None);
        assert!(!group.is_active() && group.first().is_none());
        assert_eq!(group.member(a, true), GroupChange::Activated);
    }
}
