//! Groups points into as few read requests as the protocol allows.

use super::address::{BITS_MAX, Point, REGISTERS_MAX, Table};

/// A read request and the points that it covers.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The unit.
    pub unit: u8,
    /// The table.
    pub table: Table,
    /// The first register or bit.
    pub first: u16,
    /// The number of registers or bits.
    pub count: u16,
    /// Indexes of the points.
    pub points: Vec<usize>,
}

/// Limits of a request.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Most registers per request.
    pub registers: u16,
    /// Most unneeded registers or bits between two points of a request.
    pub gap: u16,
}

/// Groups points into requests. Points are joined in order of address as long as they fit, which gives the minimum number of
/// requests.
#[must_use]
pub fn plan(points: &[Point], bounds: Bounds) -> Vec<Request> {
    let all = (0..points.len()).collect::<Vec<_>>();
    group(points, all, bounds)
}

fn group(points: &[Point], mut members: Vec<usize>, bounds: Bounds) -> Vec<Request> {
    let key = |index: &usize| points.get(*index).map(|point| (point.unit, point.table, point.first));
    members.sort_by_key(key);
    let mut requests: Vec<Request> = Vec::new();
    for index in members {
        let Some(point) = points.get(index) else { continue };
        let most = if point.table.is_bits() { BITS_MAX } else { bounds.registers.min(REGISTERS_MAX) };
        if let Some(last) = requests.last_mut() {
            let last_end = u32::from(last.first) + u32::from(last.count);
            let end = point.end().max(last_end);
            let count = end - u32::from(last.first);
            let is_near = u32::from(point.first) <= last_end + u32::from(bounds.gap);
            if last.unit == point.unit && last.table == point.table && is_near && count <= u32::from(most) {
                last.count = count as u16;
                last.points.push(index);
                continue;
            }
        }
        let Point { unit, table, first, .. } = *point;
        requests.push(Request { unit, table, first, count: point.width(), points: vec![index] });
    }
    requests
}

/// Splits a request that the device has rejected: first at its gaps, then into halves. `None` if it has only one point.
#[must_use]
pub fn split(request: &Request, points: &[Point], bounds: Bounds) -> Option<Vec<Request>> {
    if request.points.len() < 2 {
        return None;
    }
    let without_gaps = group(points, request.points.clone(), Bounds { gap: 0, ..bounds });
    if without_gaps.len() > 1 {
        return Some(without_gaps);
    }
    let (left, right) = request.points.split_at(request.points.len() / 2);
    let mut halves = group(points, left.to_vec(), bounds);
    halves.extend(group(points, right.to_vec(), bounds));
    Some(halves)
}

#[cfg(test)]
mod tests {
    use super::super::address::{Format, Order};
    use super::*;
    use taktwerk_types::BuiltInType;

    fn at(unit: u8, table: Table, first: u16, width: u16) -> Point {
        let format = Format::Number(BuiltInType::UInt16);
        let count = (width > 1).then_some(width);
        Point { unit, table, first, format, bit: 0, count, word_order: Order::Big, byte_order: Order::Big }
    }

    const BOUNDS: Bounds = Bounds { registers: 125, gap: 16 };

    #[test]
    fn neighbours_share_a_request_and_limits_hold() {
        let points: Vec<Point> = (0..200).rev().map(|first| at(1, Table::Holding, first, 1)).collect();
        let requests = plan(&points, BOUNDS);
        assert_eq!(requests.iter().map(|request| request.count).collect::<Vec<_>>(), [125, 75]);
        let points = [
            at(1, Table::Holding, 0, 1),
            at(1, Table::Holding, 17, 1),
            at(1, Table::Holding, 35, 1),
            at(2, Table::Holding, 1, 1),
            at(1, Table::Input, 1, 1),
            // Within another point.
            at(1, Table::Holding, 10, 3),
        ];
        let mut spans: Vec<_> =
            plan(&points, BOUNDS).iter().map(|it| (it.unit, it.table, it.first, it.count)).collect();
        spans.sort();
        assert_eq!(
            spans,
            [
                (1, Table::Input, 1, 1),
                (1, Table::Holding, 0, 18),
                (1, Table::Holding, 35, 1),
                (2, Table::Holding, 1, 1)
            ]
        );
    }

    #[test]
    fn every_point_is_in_exactly_one_request_that_contains_it() {
        // Many layouts, from a mixed counter.
        let mut state = 1u64;
        let mut next = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        for _ in 0..200 {
            let points: Vec<Point> = (0..next(60) + 1)
                .map(|_| at(next(2) as u8, Table::Holding, next(400) as u16, next(30) as u16 + 1))
                .collect();
            let bounds = Bounds { registers: next(95) as u16 + 30, gap: next(40) as u16 };
            let mut requests = plan(&points, bounds);
            for _ in 0..8 {
                let mut seen: Vec<usize> =
                    requests.iter().flat_map(|request| request.points.clone()).collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..points.len()).collect::<Vec<_>>());
                for request in &requests {
                    assert!(request.count <= bounds.registers);
                    for index in &request.points {
                        let point = &points[*index];
                        assert!(point.unit == request.unit && point.first >= request.first);
                        assert!(point.end() <= u32::from(request.first) + u32::from(request.count));
                    }
                }
                // For a device that rejects everything, requests become ever smaller.
                requests = requests
                    .iter()
                    .flat_map(|request| {
                        split(request, &points, bounds).unwrap_or_else(|| vec![request.clone()])
                    })
                    .collect();
            }
            assert!(requests.iter().all(|request| request.points.len() == 1));
        }
    }
}
