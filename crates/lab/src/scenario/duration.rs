//! Estimates how long measurements take: for plans, for progress, and for timeouts.

use super::{BROKERLESS, Condition, EMBEDDED, Kind, broker};
use crate::links::{Effort, Profile};
use crate::peers;
use crate::steady;
use std::collections::BTreeSet;
use std::time::Duration;

/// Seconds to start, connect and stop server and load on one machine. The additional start time of a peer's server is
/// [`peers::Peer::starts_in`].
const AROUND_S: f64 = 0.5;
/// Round trips over a link before a load starts. With a server: one session that looks up nodes and one that measures,
/// each with connection, channel, session, subscription and items. The second figure is for a broker.
const ROUND_TRIPS: (f64, f64) = (14.0, 3.0);
/// Bytes of a small message.
const SMALL: usize = 200;

/// Total duration with all repetitions, in seconds. Links are created and probed once.
#[must_use]
pub fn seconds<'a>(conditions: impl IntoIterator<Item = &'a Condition>) -> f64 {
    let (mut sum, mut links, mut pace) = (0.0, BTreeSet::new(), Pace::default());
    for condition in conditions {
        let repetitions = condition.time.repetitions;
        if repetitions > 0 {
            sum += pace.seconds(condition) + pace.seconds(condition) * f64::from(repetitions - 1);
        }
        links.extend(condition.link.as_deref());
    }
    let probing = |link: &str| Some(Effort::BRIEF.seconds(&link.parse::<Profile>().ok()?));
    sum + links.into_iter().filter_map(probing).sum::<f64>()
}

/// Estimates measurements that run one after the other. A server that is not ready in time costs its timeout once and
/// is then not tried again.
#[derive(Debug, Default)]
pub struct Pace {
    given_up: BTreeSet<String>,
}

impl Pace {
    /// Estimated duration of the next measurement, in seconds.
    pub fn seconds(&mut self, condition: &Condition) -> f64 {
        let starting = condition.starting();
        if starting < peers::LIMIT {
            return condition.seconds();
        }
        if self.given_up.insert(condition.stack.clone()) { starting.as_secs_f64() } else { 0.0 }
    }
}

impl Condition {
    /// Estimated duration of one measurement, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        let is_steady = self.kind == Kind::Subscribe && self.time.steady;
        let steady =
            if is_steady { steady::INTERVALS as f64 * self.publishing_ms.unwrap_or(1e3) / 1e3 } else { 0.0 };
        let far = self.far();
        let trips = if self.has_server() { ROUND_TRIPS.0 } else { ROUND_TRIPS.1 };
        let window = self.count.map_or(self.time.duration_s, |count| count as f64 * self.one(far));
        // Clients of a broker connect one after the other; the built-in broker and rumqttd need longer for each.
        let is_slow = broker(&self.stack).is_some_and(|(name, _)| matches!(name, EMBEDDED | "rumqttd"));
        let connecting = if is_slow { f64::from(self.clients) * 2e-3 } else { 0.0 };
        let starting = self.starting().as_secs_f64();
        starting + self.time.warmup_s + steady + connecting + window + trips * far + AROUND_S
    }

    /// Time until a peer's server listens, if one is started.
    fn starting(&self) -> Duration {
        if self.stack == BROKERLESS || matches!(self.kind, Kind::Update | Kind::PubSub | Kind::Igmp) {
            return Duration::ZERO;
        }
        let name = broker(&self.stack).map_or(self.stack.as_str(), |(peer, _)| peer);
        let Some(peer) = peers::find(name) else { return Duration::ZERO };
        let apart = if self.link.is_some() { peer.starts_later_apart() } else { Duration::ZERO };
        (peer.starts_in(self.signals()) + apart).min(peers::LIMIT)
    }

    /// Whether the load uses OPC UA with a server, not a broker or PubSub.
    fn has_server(&self) -> bool {
        broker(&self.stack).is_none() && self.stack != BROKERLESS
    }

    /// Round-trip time of the link, in seconds.
    fn far(&self) -> f64 {
        let profile = self.link.as_ref().and_then(|link| link.parse::<Profile>().ok());
        profile.map_or(0.0, |profile| profile.round_trip(SMALL))
    }

    /// Duration of one request or transaction, in seconds.
    fn one(&self, far: f64) -> f64 {
        // Values wait for the publishing cycle of their subscription; messages do not wait.
        let cycle = match broker(&self.stack) {
            // Here the answers of many clients wait for delayed acknowledgements, because the broker does not set
            // TCP_NODELAY.
            Some((EMBEDDED | "rumqttd", _)) if self.kind == Kind::Fan => {
                0.045 + f64::from(self.clients) * 1e-4
            }
            _ if self.has_server() => 1.2e-3 * self.publishing_ms.unwrap_or(1.0),
            _ => 1e-4,
        };
        match (self.rate, self.pause_ms, self.kind) {
            (_, _, Kind::Update) => self.publishing_ms.unwrap_or(500.0) / 1e3,
            (Some(rate), _, _) => 1.0 / rate,
            // All clients pause at the same time.
            (None, Some(pause), _) => (pause / 1e3 + far) / f64::from(self.clients.max(1)),
            (None, None, Kind::Roundtrip) => cycle + far,
            (None, None, Kind::Fan) => cycle + f64::from(self.clients) * 3e-5 + far,
            (None, None, _) => 5e-5 + far,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{LoadSpec, Scenario};

    fn condition(kind: Kind, link: Option<&str>) -> Condition {
        let mut load = LoadSpec::new(kind);
        load.count = Some(100);
        let mut scenario = Scenario::new("x", load);
        scenario.time.warmup_s = 0.0;
        scenario.time.repetitions = 1;
        scenario.link = link.map(str::to_owned);
        scenario.conditions().remove(0)
    }

    #[test]
    fn distance_takes_time_for_connecting_and_for_each_request() {
        let near = condition(Kind::Read, None).seconds();
        let far = condition(Kind::Read, Some("wan-tokyo")).seconds();
        // 114 round trips of 328 ms.
        assert!((far - near - 37.4).abs() < 1.0, "{near} {far}");
        let mut message = condition(Kind::Roundtrip, Some("wan-tokyo"));
        message.stack = "mosquitto-qos0".into();
        assert!((message.seconds() - 33.8 - AROUND_S).abs() < 1.0, "{}", message.seconds());
    }

    #[test]
    fn clients_pause_in_parallel() {
        let mut paused = condition(Kind::Read, None);
        paused.pause_ms = Some(50.0);
        assert!((paused.seconds() - AROUND_S - 5.0).abs() < 1e-9);
        paused.clients = 10;
        assert!((paused.seconds() - AROUND_S - 0.5).abs() < 1e-9);
    }

    #[test]
    fn many_answers_through_the_built_in_broker_take_longer() {
        let mut fan = condition(Kind::Fan, None);
        (fan.clients, fan.stack) = (1_000, "mosquitto-qos0".into());
        let theirs = fan.seconds();
        fan.stack = "embedded-qos0".into();
        // Two seconds to connect, and a hundred transactions with a delayed acknowledgement each.
        assert!(fan.seconds() - theirs > 2.0 + 100.0 * 0.04, "{} {theirs}", fan.seconds());
    }

    #[test]
    fn shared_links_are_probed_once() {
        let conditions =
            [condition(Kind::Read, Some("wan-oregon")), condition(Kind::Write, Some("wan-oregon"))];
        let alone: f64 = conditions.iter().map(Condition::seconds).sum();
        let probing = seconds(&conditions) - alone;
        assert!((2.0..6.0).contains(&probing), "{probing}");
        let mut repeated = conditions.to_vec();
        repeated[0].time.repetitions = 3;
        let more = seconds(&repeated) - seconds(&conditions);
        assert!((more - 2.0 * repeated[0].seconds()).abs() < 1e-9);
    }

    fn with_signals(stack: &str, signals: u32) -> Condition {
        let mut condition = condition(Kind::Read, None);
        (condition.stack, condition.server.signals) = (stack.to_owned(), signals);
        condition
    }

    #[test]
    fn start_time_of_peers_is_included() {
        let own = with_signals("own", 1_000).seconds();
        let milo = peers::find("milo").unwrap();
        for signals in [10, 1_000, 10_000] {
            let theirs = with_signals("milo", signals).seconds();
            let starting = milo.starts_in(signals).as_secs_f64();
            assert!(
                theirs > own && (theirs - own - starting).abs() < 1e-9,
                "{signals}: {theirs} {own} {starting}"
            );
        }
        // The total is the sum of the parts.
        let plan = ["own", "milo", "asyncua", "node-opcua"].map(|stack| with_signals(stack, 100));
        let parts: f64 = plan.iter().map(Condition::seconds).sum();
        assert!((seconds(&plan) - parts).abs() < 1e-9);
        // Over a link, no resolver answers open62541's name queries.
        let far = |stack: &str| {
            let over = Condition { link: Some("ethernet-100m".into()), ..with_signals(stack, 10) };
            over.starting() - with_signals(stack, 10).starting()
        };
        assert_eq!([far("milo"), far("open62541")], [Duration::ZERO, Duration::from_secs(10)]);
        // PubSub starts no server, regardless of the stack name.
        let mut without = with_signals("milo", 100);
        without.kind = Kind::PubSub;
        assert_eq!(without.starting(), Duration::ZERO);
    }

    #[test]
    fn servers_that_time_out_are_counted_once() {
        let mut many = with_signals("asyncua", 1_000_000);
        many.time.repetitions = 3;
        let few = with_signals("asyncua", 10);
        let limit = peers::LIMIT.as_secs_f64();
        assert!((seconds([&many, &few, &many]) - limit - few.seconds()).abs() < 1e-9);
        let mut pace = Pace::default();
        assert_eq!([&many, &few, &many].map(|one| pace.seconds(one)), [limit, few.seconds(), 0.0]);
    }

    #[test]
    fn loads_that_become_steady_need_their_intervals() {
        let mut load = condition(Kind::Subscribe, None);
        (load.count, load.publishing_ms) = (None, Some(100.0));
        load.time.duration_s = 1.0;
        assert!((load.seconds() - 2.0 - AROUND_S).abs() < 1e-9);
        load.time.steady = false;
        assert!((load.seconds() - 1.0 - AROUND_S).abs() < 1e-9);
    }
}
