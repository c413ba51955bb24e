//! Continuation points (Part 4 §7.9): where an operation continues whose results did not fit into one response.

use crate::account::{Account, Category, Charge, allocation};
use crate::query::QueryPoint;
use crate::space::NodeIx;
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_types::StatusCode;

/// Where an operation continues. It owns all its data, so it stays valid whatever other clients do.
#[derive(Debug)]
pub(crate) enum Point {
    /// A Browse or BrowseNext operation.
    Browse(BrowsePoint),
    /// A Query.
    Query(Box<QueryPoint>),
}

/// The service that a continuation point belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PointKind {
    Browse,
    Query,
}

impl Point {
    fn kind(&self) -> PointKind {
        match self {
            Self::Browse(_) => PointKind::Browse,
            Self::Query(_) => PointKind::Query,
        }
    }
}

/// A Browse operation with further results.
#[derive(Debug, Clone)]
pub(crate) struct BrowsePoint {
    pub(crate) node: NodeIx,
    /// The View being browsed; `None` is the whole address space.
    pub(crate) view: Option<NodeIx>,
    /// `None` is any ReferenceType.
    pub(crate) reference_type: Option<NodeIx>,
    pub(crate) include_subtypes: bool,
    pub(crate) forward: bool,
    pub(crate) inverse: bool,
    pub(crate) class_mask: u32,
    pub(crate) result_mask: u32,
    /// Maximum number of references per result.
    pub(crate) count_max: usize,
    /// Number of the node's references already processed. If references are deleted in the meantime, one can be missed,
    /// as the specification allows.
    pub(crate) position: usize,
}

/// The continuation points of one session. Uses no memory until there is one.
#[derive(Debug)]
pub(crate) struct Points {
    kept: Option<Box<Kept>>,
    charge: Charge,
}

#[derive(Debug, Default)]
struct Kept {
    /// Oldest first.
    points: VecDeque<(u64, Point)>,
    next: u64,
    /// The first id of the current request.
    request_start: u64,
}

impl Points {
    /// For the session with the account.
    pub(crate) fn new(account: &Arc<Account>) -> Self {
        Self { kept: None, charge: account.nothing(Category::Sessions) }
    }

    /// Begins a request. Earlier points may be freed for the request's own (Part 4 §7.9).
    pub(crate) fn begin_request(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.request_start = kept.next;
        }
    }

    /// Stores a point.
    ///
    /// # Errors
    /// Bad_NoContinuationPoints if the current request has used all of them, or memory is exhausted.
    pub(crate) fn keep(&mut self, point: Point, max: usize) -> Result<[u8; 8], StatusCode> {
        let bytes = allocation(size_of::<Kept>()) + allocation(max * size_of::<(u64, Point)>());
        self.charge.resize(bytes).map_err(|_| StatusCode::BAD_NO_CONTINUATION_POINTS)?;
        let kept = self.kept.get_or_insert_default();
        kept.points.reserve_exact(max.saturating_sub(kept.points.len()));
        while kept.points.len() >= max {
            match kept.points.front() {
                Some((id, _)) if *id < kept.request_start => kept.points.pop_front(),
                _ => return Err(StatusCode::BAD_NO_CONTINUATION_POINTS),
            };
        }
        let id = kept.next;
        kept.next += 1;
        kept.points.push_back((id, point));
        Ok(id.to_le_bytes())
    }

    /// Removes and returns a point of a kind.
    ///
    /// # Errors
    /// Bad_ContinuationPointInvalid if it does not exist or belongs to another service.
    pub(crate) fn take(&mut self, id: &[u8], kind: PointKind) -> Result<Point, StatusCode> {
        let invalid = StatusCode::BAD_CONTINUATION_POINT_INVALID;
        let id = u64::from_le_bytes(id.try_into().map_err(|_| invalid)?);
        let kept = self.kept.as_deref_mut().ok_or(invalid)?;
        let is_it = |(known, point): &(u64, Point)| *known == id && point.kind() == kind;
        let at = kept.points.iter().position(is_it).ok_or(invalid)?;
        kept.points.remove(at).map(|(_, point)| point).ok_or(invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point() -> Point {
        Point::Browse(BrowsePoint {
            node: NodeIx::ns0(84),
            view: None,
            reference_type: None,
            include_subtypes: false,
            forward: true,
            inverse: false,
            class_mask: 0,
            result_mask: 0,
            count_max: 1,
            position: 0,
        })
    }

    #[test]
    fn points_of_earlier_requests_are_freed_but_not_the_own() {
        let mut all = Points::new(&Account::server(crate::Limits::default().maxima()));
        all.begin_request();
        let first = all.keep(point(), 2).unwrap();
        let second = all.keep(point(), 2).unwrap();
        assert_eq!(all.keep(point(), 2).unwrap_err(), StatusCode::BAD_NO_CONTINUATION_POINTS);
        all.begin_request();
        let third = all.keep(point(), 2).unwrap();
        assert!(all.take(&first, PointKind::Browse).is_err());
        assert!(all.take(&second, PointKind::Query).is_err(), "the attempt does not remove it");
        assert!(all.take(&second, PointKind::Browse).is_ok());
        assert!(all.take(&second, PointKind::Browse).is_err());
        assert!(all.take(&third, PointKind::Browse).is_ok());
        assert!(all.take(b"short", PointKind::Browse).is_err());
    }
}
