//! Compares observed with requested properties: deviations, and properties that cannot be verified.

use super::{Direction, HEADERS, Probed, RATE_MAX, SMALL};
use crate::links::Method;
use taktwerk_netem::emulator::Conditions;
use taktwerk_netem::emulator::loss::Loss;
use taktwerk_netem::profile::{rate_text, short};

/// Time that waking sleeping cores adds to a round trip through user space.
const WAKING_MS: f64 = 0.6;

/// Allowed deviation of a figure in each direction.
struct Allowed {
    below: f64,
    above: f64,
}

/// The deviations, and the properties that were not verified.
pub(super) fn judge(probed: &Probed) -> (Vec<String>, Vec<String>) {
    let (mut deviations, mut unseen) = (Vec::new(), Vec::new());
    delay(probed, &mut deviations, &mut unseen);
    let ways = [
        ("up", &probed.asked.up, &probed.expected_up, &probed.up),
        ("down", &probed.asked.down, &probed.expected_down, &probed.down),
    ];
    for (name, conditions, expected, seen) in ways {
        let way = Way { name, conditions, expected, seen, bytes: probed.packet_bytes };
        way.counts(&mut deviations, &mut unseen);
        way.whole(&mut deviations);
        way.line(&mut deviations, &mut unseen);
    }
    (deviations, unseen)
}

/// Checks the median and the spread of the round trips.
fn delay(probed: &Probed, deviations: &mut Vec<String>, unseen: &mut Vec<String>) {
    let (asked, seen) = (&probed.expected, &probed.round_trips);
    let root = (seen.count.max(1) as f64).sqrt();
    // The median of n values has a standard error of 1.25 σ / √n.
    let both = 0.1 * asked.p50_ms + 4.0 * 1.25 * asked.std_ms / root;
    let allowed = Allowed { below: both + without_line(probed), above: both + WAKING_MS };
    if !allowed.holds(asked.p50_ms, seen.p50_ms) {
        deviations.push(format!(
            "the median round trip should be {} ms, but is {} ms ({})",
            short(asked.p50_ms),
            short(seen.p50_ms),
            allowed.text("ms")
        ));
    }
    if probed.asked.round_trip_std() == 0.0 {
        return;
    }
    let quartiles = |it: &super::RoundTrips| it.p75_ms - it.p25_ms;
    let (asked, seen) = (quartiles(asked), quartiles(seen));
    // The interquartile range has a standard error of 1.2 (normal) to 1.5 (exponential) times itself / √n.
    let below = asked * 4.0 * 1.5 / root;
    let allowed = Allowed { below, above: below + WAKING_MS };
    if !allowed.holds(asked, seen) {
        deviations.push(format!(
            "the interquartile range of the round trips should be {} ms, but is {} ms ({})",
            short(asked),
            short(seen),
            allowed.text("ms")
        ));
    } else if allowed.is_blind(asked) {
        unseen.push(format!(
            "whether delays vary at all: {} round trips are too few",
            probed.round_trips.count
        ));
    }
}

/// Milliseconds of a round trip that the kernel method leaves out: if the profile has only a rate, a token bucket
/// emulates it, which passes a packet at once if it is full.
fn without_line(probed: &Probed) -> f64 {
    let ways = [&probed.asked.up, &probed.asked.down].into_iter();
    let buckets = ways.filter(|way| probed.method == Method::Kernel && way.delay.is_none());
    buckets.map(|way| way.line_time(SMALL + HEADERS) as f64 / 1e6).sum()
}

impl Allowed {
    fn even(both: f64) -> Self {
        Self { below: both, above: both }
    }

    fn holds(&self, expected: f64, seen: f64) -> bool {
        seen >= expected - self.below && seen <= expected + self.above
    }

    /// Whether even a value of zero would be allowed.
    fn is_blind(&self, expected: f64) -> bool {
        self.below >= expected
    }

    fn text(&self, unit: &str) -> String {
        if self.below == self.above {
            return format!("allowed: ± {} {unit}", short(self.below));
        }
        format!("allowed: − {} or + {} {unit}", short(self.below), short(self.above))
    }
}

/// One direction.
struct Way<'a> {
    name: &'a str,
    conditions: &'a Conditions,
    expected: &'a Direction,
    seen: &'a Direction,
    /// Bytes of the IP packets used to measure rate and queue.
    bytes: usize,
}

impl Way<'_> {
    /// Checks loss, duplication and reordering.
    fn counts(&self, deviations: &mut Vec<String>, unseen: &mut Vec<String>) {
        if self.seen.sent == 0 {
            return;
        }
        let (conditions, expected, seen) = (self.conditions, self.expected, self.seen);
        // Losses in bursts vary more, by the length of a burst.
        let burst = match conditions.loss {
            Loss::Bursts { end, .. } => 2.0 / end.max(1e-3),
            _ => 1.0,
        };
        let arrived = seen.sent - seen.lost.min(seen.sent);
        for (what, share, count, found, of, scatter) in [
            ("be lost", conditions.loss.share(), expected.lost, seen.lost, seen.sent, burst),
            ("arrive twice", conditions.duplicate, expected.doubled, seen.doubled, arrived, 1.0),
            ("overtake others", conditions.reorder, expected.overtook, seen.overtook, arrived, 1.0),
        ] {
            let count = count as f64;
            let are_overtaken = what.starts_with("overtake");
            if are_overtaken && share > 0.0 && count < 0.5 * share * of as f64 {
                unseen.push(format!(
                    "{}: whether datagrams {what}: too few are in flight at a time",
                    self.name
                ));
                continue;
            }
            let allowed = Allowed::even(4.0 * (count * (1.0 - share) * scatter).sqrt() + 2.0);
            if !allowed.holds(count, found as f64) {
                deviations.push(format!(
                    "{}: {} of {of} datagrams should {what}, but {found} do ({})",
                    self.name,
                    short(count),
                    allowed.text("").trim_end_matches([' ', ')'])
                ));
            } else if share > 0.0 && allowed.is_blind(count) {
                unseen.push(format!(
                    "{}: whether datagrams {what} at all: only {} of {of} should, which is too few",
                    self.name,
                    short(count)
                ));
            }
        }
    }

    /// Checks that packets of full size get through. A bucket that is too small never passes them.
    fn whole(&self, deviations: &mut Vec<String>) {
        let (Some(expected), Some(seen)) = (self.expected.whole, self.seen.whole) else { return };
        if seen.arrived == 0 && expected.arrived >= expected.sent / 2 {
            deviations.push(format!(
                "{}: packets of {} bytes should get through, but none of {} does",
                self.name, self.bytes, seen.sent
            ));
        }
    }

    /// Checks the rate and the queueing delay.
    fn line(&self, deviations: &mut Vec<String>, unseen: &mut Vec<String>) {
        let (name, conditions) = (self.name, self.conditions);
        let Some(limit) = conditions.usable_rate() else { return };
        if limit > RATE_MAX {
            let most = rate_text(Some(RATE_MAX));
            unseen.push(format!("{name}: rate and queue: above {most}, the sender would be the bottleneck"));
            return;
        }
        let std_ms = conditions.delay.std() * 1e3;
        let expected = self.expected.rate.unwrap_or(limit);
        let rate = self.seen.rate.unwrap_or(0.0);
        let seconds = (20.0 * conditions.delay.std()).clamp(0.5, 3.0);
        let tolerance = (0.1 + 3.0 * conditions.delay.std() / seconds).min(0.4);
        if (rate / expected - 1.0).abs() > tolerance {
            deviations.push(format!(
                "{name}: the rate of IP packets should be {}, but is {} (allowed: ± {} %)",
                rate_text(Some(expected)),
                rate_text(Some(rate)),
                short(tolerance * 100.0)
            ));
        }
        let asked = short(conditions.queue.as_secs_f64() * 1e3);
        let (Some(expected), Some(seen)) = (self.expected.queue_ms, self.seen.queue_ms) else {
            let why = match self.expected.queue_ms {
                None => "too long to be filled by a short probe",
                Some(_) => "this machine did not send fast enough to fill it",
            };
            unseen.push(format!("{name}: the queue of {asked} ms: {why}"));
            return;
        };
        // Whole packets wait, and varying delays look like waiting.
        let packet = conditions.line_time(self.bytes) as f64 / 1e6;
        let allowed = Allowed::even(0.25 * expected + 2.0 * packet + 2.0 * std_ms + WAKING_MS);
        if !allowed.holds(expected, seen) {
            deviations.push(format!(
                "{name}: packets should wait for a busy line for {} ms, but wait {} ms ({})",
                short(expected),
                short(seen),
                allowed.text("ms")
            ));
        } else if allowed.is_blind(expected) {
            unseen
                .push(format!("{name}: the queue of {asked} ms: too short compared with packets and delays"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Effort, RoundTrips, Whole, expected, stream};
    use super::*;
    use taktwerk_netem::Profile;

    /// A link that has exactly the requested properties.
    fn exact(text: &str) -> Probed {
        let asked: Profile = text.parse().unwrap();
        let expected = expected(&asked);
        let of = |conditions| stream::modelled(conditions, asked.mtu, &Effort::default());
        let (up, down) = (of(&asked.up), of(&asked.down));
        Probed {
            method: Method::Tun,
            expected_up: up,
            expected_down: down,
            up,
            down,
            packet_bytes: usize::from(asked.mtu),
            round_trips: RoundTrips { count: 100, ..expected },
            asked,
            expected,
            deviations: Vec::new(),
            not_looked_at: Vec::new(),
        }
    }

    /// The deviations after a change.
    fn found(text: &str, change: impl Fn(&mut Probed)) -> Vec<String> {
        let mut probed = exact(text);
        change(&mut probed);
        judge(&probed).0
    }

    #[test]
    fn exact_named_links_have_no_deviations() {
        for name in
            taktwerk_netem::profile::NAMES.iter().chain(&["wifi-802.11g+vpn", "3g,reorder=1%,loss=1%"])
        {
            assert_eq!(found(name, |_| {}), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn every_missing_property_is_a_deviation() {
        type Change = fn(&mut Probed);
        let all: [(&str, Change, &str); 12] = [
            ("rate=10mbit", |it| it.up.rate = Some(8e6), "up: the rate of IP packets should be 10 Mbit/s"),
            ("rate=10mbit", |it| it.down.rate = None, "down: the rate of IP packets should be 10 Mbit/s"),
            ("ppp-2m", |it| it.up.queue_ms = Some(0.0), "wait for a busy line"),
            ("ppp-2m", |it| it.up.queue_ms = Some(120_000.0), "wait for a busy line"),
            ("delay=10ms", |it| it.round_trips.p50_ms = 30.0, "median round trip"),
            ("delay=10ms", |it| it.round_trips.p50_ms = 0.1, "median round trip"),
            // A machine may add delay, but not remove it.
            ("ethernet-100m", |it| it.round_trips.p50_ms = 0.04, "median round trip"),
            (
                "delay=10ms,jitter=2ms",
                |it| it.round_trips.p75_ms = it.round_trips.p25_ms,
                "interquartile range",
            ),
            ("delay=10ms,jitter=2ms", |it| it.round_trips.p75_ms += 20.0, "interquartile range"),
            ("loss=2%", |it| it.up.lost = 0, "should be lost"),
            ("duplicate=3%", |it| it.down.doubled = 0, "should arrive twice"),
            ("delay=10ms,reorder=5%", |it| it.up.overtook = 0, "should overtake others"),
        ];
        for (text, change, hint) in all {
            let found = found(text, change);
            assert!(found.len() == 1 && found[0].contains(hint), "{text}: {found:?}");
        }
        // Properties that were not requested.
        for change in [|it: &mut Probed| it.up.overtook = 400, |it: &mut Probed| it.up.doubled = 400] {
            assert_eq!(found("loss=2%", change).len(), 1);
        }
        let swallow = |it: &mut Probed| it.up.whole = it.up.whole.map(|whole| Whole { arrived: 0, ..whole });
        for text in ["rate=1gbit,mtu=9000", "delay=1ms"] {
            let found = found(text, swallow);
            assert!(found.len() == 1 && found[0].contains("bytes should get through"), "{text}: {found:?}");
        }
        assert!(found("loss=80%", swallow).is_empty());
        // A token bucket leaves out the transmission time, but not the delay.
        let by_kernel = |text: &str, ms: f64| {
            found(text, |it| {
                it.method = Method::Kernel;
                it.round_trips.p50_ms = ms;
            })
        };
        assert!(by_kernel("rate=50mbit", 0.005).is_empty());
        assert_eq!(by_kernel("ethernet-100m", 0.04).len(), 1);
        // A busy machine adds a little delay.
        assert!(found("ethernet-100m", |it| it.round_trips.p50_ms += 0.5).is_empty());
        assert_eq!(found("ethernet-100m", |it| it.round_trips.p50_ms += 0.8).len(), 1);
    }

    #[test]
    fn unverifiable_properties_are_listed() {
        let unseen = |text: &str, change: fn(&mut Probed)| {
            let mut probed = exact(text);
            change(&mut probed);
            let (deviations, unseen) = judge(&probed);
            assert!(deviations.is_empty(), "{deviations:?}");
            unseen
        };
        for (text, count, hint) in [
            ("ppp-2m", 0, ""),
            ("rate=10mbit,delay=10ms,jitter=1ms,loss=2%,duplicate=3%,reorder=5%", 0, ""),
            ("rate=1gbit", 2, "above 300 Mbit/s"),
            ("rate=2mbit,queue=60s", 2, "too long to be filled"),
            ("rate=2mbit,queue=8ms", 2, "too short compared with packets"),
            ("reorder=5%", 2, "overtake others"),
            ("loss=0.01%", 2, "which is too few"),
        ] {
            let found = unseen(text, |_| {});
            assert_eq!(found.len(), count, "{text}: {found:?}");
            assert!(found.iter().all(|it| it.contains(hint)), "{text}: {found:?}");
        }
        let few = unseen("delay=10ms,jitter=2ms", |it| it.round_trips.count = 10);
        assert!(few.len() == 1 && few[0].contains("10 round trips"), "{few:?}");
        let slow = unseen("ppp-2m", |it| it.up.queue_ms = None);
        assert!(slow.len() == 1 && slow[0].contains("did not send fast enough"), "{slow:?}");
    }
}
