//! Continuation points (Part 4 §7.9): where a Browse goes on.

use crate::account::{Account, Category, Charge, allocation};
use crate::space::NodeIx;
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_types::StatusCode;

/// A Browse operation that has more to give.
#[derive(Debug, Clone)]
pub(crate) struct Continuation {
    pub(crate) node: NodeIx,
    /// `None` is every ReferenceType.
    pub(crate) reference_type: Option<NodeIx>,
    pub(crate) include_subtypes: bool,
    pub(crate) forward: bool,
    pub(crate) inverse: bool,
    pub(crate) class_mask: u32,
    pub(crate) result_mask: u32,
    /// References at a time.
    pub(crate) count_max: usize,
    /// How many of the node's references are done. When nodes are deleted meanwhile a reference can be missed, as
    /// the specification allows.
    pub(crate) position: usize,
}

/// The continuation points of one session; no memory until there is one.
#[derive(Debug)]
pub(crate) struct Continuations {
    waiting: Option<Box<Waiting>>,
    charge: Charge,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Oldest first.
    points: VecDeque<(u64, Continuation)>,
    next: u64,
    /// The first id of the request under way.
    request_start: u64,
}

impl Continuations {
    /// For the session that has the account.
    pub(crate) fn new(account: &Arc<Account>) -> Self {
        Self { waiting: None, charge: account.nothing(Category::Sessions) }
    }

    /// Notes the start of a request: points from before it may give way to its own (Part 4 §7.9).
    pub(crate) fn begin_request(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.request_start = waiting.next;
        }
    }

    /// Keeps a point.
    ///
    /// # Errors
    /// Bad_NoContinuationPoints if the request under way alone has taken all of them, or if there is no memory for them.
    pub(crate) fn keep(&mut self, continuation: Continuation, max: usize) -> Result<[u8; 8], StatusCode> {
        let bytes = allocation(size_of::<Waiting>()) + allocation(max * size_of::<(u64, Continuation)>());
        self.charge.resize(bytes).map_err(|_| StatusCode::BAD_NO_CONTINUATION_POINTS)?;
        let waiting = self.waiting.get_or_insert_default();
        waiting.points.reserve_exact(max.saturating_sub(waiting.points.len()));
        while waiting.points.len() >= max {
            match waiting.points.front() {
                Some((id, _)) if *id < waiting.request_start => waiting.points.pop_front(),
                _ => return Err(StatusCode::BAD_NO_CONTINUATION_POINTS),
            };
        }
        let id = waiting.next;
        waiting.next += 1;
        waiting.points.push_back((id, continuation));
        Ok(id.to_le_bytes())
    }

    /// Takes a point out.
    ///
    /// # Errors
    /// Bad_ContinuationPointInvalid if it is not there.
    pub(crate) fn take(&mut self, id: &[u8]) -> Result<Continuation, StatusCode> {
        let invalid = StatusCode::BAD_CONTINUATION_POINT_INVALID;
        let id = u64::from_le_bytes(id.try_into().map_err(|_| invalid)?);
        let waiting = self.waiting.as_deref_mut().ok_or(invalid)?;
        let at = waiting.points.iter().position(|(known, _)| *known == id).ok_or(invalid)?;
        waiting.points.remove(at).map(|(_, continuation)| continuation).ok_or(invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point() -> Continuation {
        Continuation {
            node: NodeIx::ns0(84),
            reference_type: None,
            include_subtypes: false,
            forward: true,
            inverse: false,
            class_mask: 0,
            result_mask: 0,
            count_max: 1,
            position: 0,
        }
    }

    #[test]
    fn earlier_requests_give_way_and_the_own_does_not() {
        let mut all = Continuations::new(&Account::server(crate::Limits::default().maxima()));
        all.begin_request();
        let first = all.keep(point(), 2).unwrap();
        let second = all.keep(point(), 2).unwrap();
        assert_eq!(all.keep(point(), 2), Err(StatusCode::BAD_NO_CONTINUATION_POINTS));
        all.begin_request();
        let third = all.keep(point(), 2).unwrap();
        assert!(all.take(&first).is_err());
        assert!(all.take(&second).is_ok());
        assert!(all.take(&second).is_err());
        assert!(all.take(&third).is_ok());
        assert!(all.take(b"short").is_err());
    }
}
