//! Warnings about the tags of a line: overlapping registers, intervals that are too short.

use super::Modbus;
use super::address::{Format, Point};
use super::link::Way;
use super::plan::{Request, plan};
use crate::settings::SourceSettings;
use crate::source::Advice;
use core::time::Duration;

/// Few devices answer faster.
const ANSWER_MIN: Duration = Duration::from_millis(2);
/// Least turnaround time of a device on a serial line.
const TURNAROUND: Duration = Duration::from_millis(5);

pub(super) fn review(modbus: &Modbus, settings: &SourceSettings, names: &[String]) -> Vec<Advice> {
    let mut advice = overlaps(&modbus.points, names);
    let requests = plan(&modbus.points, modbus.bounds);
    if let Some(interval) = settings.interval
        && let Some((problem, hint)) = too_short(interval, &modbus.way, &requests)
    {
        advice.push(Advice { position: None, key: "interval", problem, hint: hint.to_owned() });
    }
    if let Some((problem, hint)) = blocks(modbus, settings) {
        advice.push(Advice { position: None, key: "deadline", problem, hint: hint.to_owned() });
    }
    advice
}

/// A unit of a serial line that does not answer keeps the others waiting for `deadline`, and for as long until the line rests.
fn blocks(modbus: &Modbus, settings: &SourceSettings) -> Option<(String, &'static str)> {
    let mut units = modbus.points.iter().map(|point| point.unit);
    let first = units.next()?;
    let takes = settings.deadline * 2;
    let stale_after = settings.stale_after.or(settings.interval.map(|every| every * 2))?;
    let is_meant =
        matches!(modbus.way, Way::Serial(_)) && takes > stale_after && units.any(|unit| unit != first);
    is_meant.then(|| {
        let problem = format!(
            "a unit that does not answer keeps the others waiting for {takes:?}, and their values become uncertain after \
             {stale_after:?}"
        );
        (problem, "set deadline to the time of the slowest answer, such as \"500 ms\", or a longer stale_after")
    })
}

fn too_short(interval: Duration, way: &Way, requests: &[Request]) -> Option<(String, &'static str)> {
    let count = u32::try_from(requests.len()).unwrap_or(u32::MAX).max(1);
    match way {
        Way::Serial(line) => {
            let takes: Duration = requests.iter().map(|request| on_the_line(request, line.baud)).sum();
            let takes = Duration::from_millis(takes.as_millis() as u64);
            (takes > interval).then(|| {
                let problem = format!(
                    "reading all tags takes about {takes:?} at {} baud, and the interval is {interval:?}",
                    line.baud
                );
                (problem, "use a longer interval or a higher baud rate")
            })
        }
        Way::Tcp(..) | Way::RtuOverTcp(..) => {
            let each = interval / count;
            (each < ANSWER_MIN).then(|| {
                let problem = format!("{count} requests in {interval:?} leave {each:?} for each");
                (problem, "use a longer interval, or a larger max_gap for fewer requests")
            })
        }
    }
}

/// Transmission time of a request and its answer on a serial line: characters have 11 bits, and frames are separated by 3.5
/// characters (Modbus over Serial Line §2.5.1).
fn on_the_line(request: &Request, baud: u32) -> Duration {
    let data = if request.table.is_bits() { request.count.div_ceil(8) } else { request.count * 2 };
    let characters = 8.0 + 5.0 + f64::from(data) + 7.0;
    Duration::from_secs_f64(characters * 11.0 / f64::from(baud.max(1))) + TURNAROUND
}

/// Points that share registers in an unusual way. Usual are a word with its bits, and an array with its elements.
fn overlaps(points: &[Point], names: &[String]) -> Vec<Advice> {
    let mut order: Vec<(usize, &Point)> = points.iter().enumerate().collect();
    order.sort_by_key(|(index, point)| (point.unit, point.table, point.first, *index));
    let mut advice = Vec::new();
    let mut before: Option<(usize, &Point)> = None;
    let mut seen: Option<(usize, &Point)> = None;
    for (index, point) in order {
        let is_same_place = |other: &Point| (other.unit, other.table) == (point.unit, point.table);
        let name = |index: usize| names.get(index).map(String::as_str).unwrap_or_default();
        let twin = seen.filter(|(_, other)| {
            is_same_place(other)
                && (other.first, other.format, other.bit, other.count)
                    == (point.first, point.format, point.bit, point.count)
        });
        let overlapped = before.filter(|(_, other)| {
            is_same_place(other) && u32::from(point.first) < other.end() && !is_usual(other, point)
        });
        if let Some((other, _)) = twin {
            advice.push(Advice {
                position: Some(index),
                key: "address",
                problem: format!("reads the same as {}", name(other)),
                hint: "remove one of them".to_owned(),
            });
        } else if let Some((other, its)) = overlapped {
            advice.push(Advice {
                position: Some(index),
                key: "address",
                problem: format!("{} overlaps {} ({})", span(point), name(other), span(its)),
                hint: "check the addresses and formats".to_owned(),
            });
        }
        seen = Some((index, point));
        // Keep the point that ends last, because later ones can overlap it.
        if before.is_none_or(|(_, other)| !is_same_place(other) || point.end() >= other.end()) {
            before = Some((index, point));
        }
    }
    advice
}

fn is_usual(one: &Point, two: &Point) -> bool {
    let is_bit = |point: &Point| point.format == Format::Bit && point.count.is_none();
    let holds = |outer: &Point, inner: &Point| {
        outer.count.is_some() && outer.first <= inner.first && inner.end() <= outer.end()
    };
    is_bit(one) || is_bit(two) || holds(one, two) || holds(two, one)
}

fn span(point: &Point) -> String {
    let last = point.end().saturating_sub(1);
    format!("{} {} to {last}", point.table.name(), point.first)
}
