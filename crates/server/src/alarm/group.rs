//! Groups of alarms (Part 9 §5.8.3, §5.8.4): which members are active, and which one was first.

use std::collections::BTreeSet;
use taktwerk_types::NodeId;

/// What a group is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKind {
    /// It says which alarms belong together (AlarmGroupType, §5.8.3).
    Related,
    /// It also says which of its alarms was active first (FirstInGroup and FirstInGroupFlag, §5.8.2).
    FirstInGroup,
    /// As long as one of its members is active, other alarms are suppressed (AlarmSuppressionGroupType, §5.8.4).
    Suppression,
}

/// What a group is to be.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSpec {
    /// The NodeId of its Object.
    pub id: NodeId,
    /// What it is called.
    pub name: Box<str>,
    /// The Object that organizes it.
    pub parent: NodeId,
    /// What it is for.
    pub kind: GroupKind,
    /// ConditionIds of its members. Groups that suppress also have Boolean Variables: true is active (§5.8.4).
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

/// What a change of a member does to its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupChange {
    /// Nothing.
    None,
    /// The member is the first one that is active: the group is active from now on.
    Activated,
    /// No member is active any more. The one that had been first is first no longer.
    Deactivated {
        /// Which one that was.
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

    /// The member that was active first (§5.8.2, FirstInGroupFlag). It stays the first one as long as any member is active:
    /// it shows where the trouble began.
    #[must_use]
    pub fn first(&self) -> Option<Member> {
        self.first
    }

    /// A member is active or not.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_one_stays_first_until_all_are_inactive() {
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
