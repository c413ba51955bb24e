//! The nodes around an event, for InView and RelatedTo in EventFilters.

use super::{Access, references, subject};
use crate::authorization::Decisions;
use crate::content_filter::relation::Relation;
use crate::event::filter::Around;
use crate::now::Now;
use crate::space::AddressSpace;
use core::cell::Cell;
use taktwerk_schema::PermissionType;
use taktwerk_types::NodeId;

/// Maximum number of references followed to decide on one event for one item; beyond, the result is unknown. Takes some
/// hundred microseconds.
const FOLLOWED_MAX: i64 = 10_000;
/// Maximum number of characters compared to decide on one event for one item; beyond, the result is unknown. Takes some
/// hundred microseconds.
const COMPARED_MAX: usize = 50_000;

/// A client's view of the address space around the events that it may receive.
pub(crate) struct EventSurroundings<'a> {
    space: &'a AddressSpace,
    decisions: &'a Decisions,
    now: Now,
    followed: Cell<i64>,
    /// Characters compared for the present event.
    compared: Cell<usize>,
}

impl<'a> EventSurroundings<'a> {
    pub(crate) fn new(space: &'a AddressSpace, decisions: &'a Decisions, now: Now) -> Self {
        Self { space, decisions, now, followed: Cell::new(0), compared: Cell::new(0) }
    }

    /// Number of references followed so far, or of what takes as long.
    pub(crate) fn followed(&self) -> usize {
        usize::try_from(self.followed.get()).unwrap_or(usize::MAX)
    }
}

impl Around for EventSurroundings<'_> {
    fn is_related(&self, relations: &[Relation], number: usize, source: &NodeId) -> Option<bool> {
        let nodes = self.space.read();
        let from = nodes.resolve(source.as_ref())?;
        let access = Access::new(&nodes, self.decisions, self.now, &self.followed, FOLLOWED_MAX);
        subject::is_related(relations, access, number, from).ok()
    }

    fn is_in_view(&self, view: &NodeId, source: &NodeId) -> Option<bool> {
        let nodes = self.space.read();
        let source = nodes.resolve(source.as_ref())?;
        let is_view =
            |ix| nodes.view(ix).is_some_and(|node| node.class() == taktwerk_schema::NodeClass::VIEW);
        let view = nodes.resolve(view.as_ref()).filter(|ix| is_view(*ix));
        // Nodes that the client cannot browse are treated as missing.
        let Some(view) = view.filter(|ix| self.decisions.allows(&nodes, *ix, PermissionType::BROWSE)) else {
            return Some(false);
        };
        let left = FOLLOWED_MAX - self.followed.get();
        let (is_in_view, followed) = nodes.is_in_view_within(view, source, left);
        self.followed.set(self.followed.get().saturating_add(followed));
        is_in_view
    }

    fn begin(&self) {
        self.compared.set(0);
    }

    fn spend(&self, steps: usize) -> bool {
        let compared = self.compared.get().saturating_add(steps);
        self.compared.set(compared);
        self.followed.set(self.followed.get().saturating_add(references(steps)));
        compared <= COMPARED_MAX
    }

    fn left(&self) -> usize {
        COMPARED_MAX.saturating_sub(self.compared.get())
    }
}
