//! The continuation points of HistoryRead (Part 4 §7.9). They belong to a session; jobs on worker threads create them.

use super::read::Position;
use super::store::NodeKey;
use crate::account::{Account, Category, Charge};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taktwerk_types::StatusCode;

/// Where to continue reading a Variable's history. It holds no resources of the store.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub(crate) node: NodeKey,
    pub(crate) position: Position,
}

/// The continuation points of one session.
#[derive(Debug)]
pub(crate) struct HistoryPoints(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    /// Oldest first.
    points: VecDeque<(u64, Point)>,
    next: u64,
    charge: Charge,
}

/// Marks the points that existed when a request began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun(u64);

/// Size of a point with the lists of its details, in bytes; [`Position::extra`] is added.
const POINT: usize = size_of::<(u64, Point)>() + 128;

impl HistoryPoints {
    /// For the session with the account.
    pub(crate) fn new(account: &Arc<Account>) -> Self {
        let charge = account.nothing(Category::Sessions);
        Self(Mutex::new(Kept { points: VecDeque::new(), next: 1, charge }))
    }

    /// Begins a request. Points that exist now may be freed for the request's own points.
    pub(crate) fn begin(&self) -> Begun {
        Begun(self.lock().next)
    }

    /// Stores a point of a request. Points of earlier requests are freed for it if necessary, the oldest first (Part 4
    /// §7.9).
    ///
    /// # Errors
    /// Bad_NoContinuationPoints if the request has `max` points already, or memory is exhausted.
    pub(crate) fn keep(&self, point: Point, max: usize, begun: Begun) -> Result<[u8; 8], StatusCode> {
        let mut kept = self.lock();
        let full = StatusCode::BAD_NO_CONTINUATION_POINTS;
        loop {
            let bytes = kept.bytes() + POINT + point.position.extra();
            if kept.points.len() < max && kept.charge.resize(bytes).is_ok() {
                break;
            }
            if !kept.free_one_before(begun) {
                return Err(full);
            }
        }
        let id = kept.next;
        kept.next += 1;
        kept.points.push_back((id, point));
        Ok(id.to_le_bytes())
    }

    /// Removes and returns a point.
    ///
    /// # Errors
    /// Bad_ContinuationPointInvalid if the Variable has no point with that id.
    pub(crate) fn take(&self, id: &[u8], node: &NodeKey) -> Result<Position, StatusCode> {
        let invalid = StatusCode::BAD_CONTINUATION_POINT_INVALID;
        let id = u64::from_le_bytes(id.try_into().map_err(|_| invalid)?);
        let mut kept = self.lock();
        let is_it = |(known, point): &(u64, Point)| *known == id && point.node == *node;
        let at = kept.points.iter().position(is_it).ok_or(invalid)?;
        let (_, point) = kept.points.remove(at).ok_or(invalid)?;
        let bytes = kept.bytes();
        // A reduction cannot fail.
        kept.charge.resize_anyway(bytes);
        Ok(point.position)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Frees the oldest point of earlier requests. `false`: there is none.
    fn free_one_before(&mut self, begun: Begun) -> bool {
        let is_free = self.points.front().is_some_and(|(id, _)| *id < begun.0);
        if is_free {
            self.points.pop_front();
            let bytes = self.bytes();
            self.charge.resize_anyway(bytes);
        }
        is_free
    }

    fn bytes(&self) -> usize {
        self.points.iter().map(|(_, point)| POINT + point.position.extra()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::read::RawPosition;
    use super::*;

    #[test]
    fn points_are_bounded_charged_and_belong_to_a_variable() {
        let account = Account::server(crate::Limits::default().maxima());
        let points = HistoryPoints::new(&account);
        let (one, other): (NodeKey, NodeKey) = ("one".into(), "other".into());
        let point = || Point { node: NodeKey::clone(&one), position: Position::Raw(RawPosition::default()) };
        let begun = points.begin();
        let keep = |begun| points.keep(point(), 2, begun);
        let first = keep(begun).unwrap();
        let second = keep(begun).unwrap();
        assert_eq!(keep(begun).unwrap_err(), StatusCode::BAD_NO_CONTINUATION_POINTS);
        assert!(account.bytes() >= 2 * POINT);
        assert!(points.take(&first, &other).is_err() && points.take(b"short", &one).is_err());
        assert!(points.take(&first, &one).is_ok() && points.take(&first, &one).is_err());
        // A new request frees points of earlier ones, the oldest first, and never its own.
        let third = keep(begun).unwrap();
        let begun = points.begin();
        let fourth = keep(begun).unwrap();
        assert!(points.take(&second, &one).is_err());
        let fifth = keep(begun).unwrap();
        assert!(points.take(&third, &one).is_err());
        assert_eq!(keep(begun).unwrap_err(), StatusCode::BAD_NO_CONTINUATION_POINTS);
        assert!(points.take(&fourth, &one).is_ok() && points.take(&fifth, &one).is_ok());
        assert_eq!(account.bytes(), 0);
    }
}
