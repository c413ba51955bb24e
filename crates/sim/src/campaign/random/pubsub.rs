//! Random publishers, subscribers and brokers.

use super::{JITTER_MAX, Random, ms, profile, tcp_bits};
use crate::scenario::fault::{NodeFault, Role, Which};
use crate::scenario::pubsub::{
    Broker, BrokerLimits, Encoding, PubSub, Publishers, Quality, SecurityMode, Subscribers, Transport,
};
use crate::scenario::{Fault, FaultKind, Lines, Link, Signals};
use core::time::Duration;

/// Maximum bits in flight on a TCP connection: the size of the receive buffer.
const WINDOW_BITS: f64 = crate::network::Path::IDEAL.receive_buffer as f64 * 8.0;

impl Random {
    /// PubSub parts on these hosts, with the link that they use, possibly a new one.
    pub(super) fn pubsub(&mut self, hosts: usize, links: &mut Vec<Link>, clients_bits: f64) -> PubSub {
        let brokers = self.small(3);
        let brokers: Vec<Broker> = (0..brokers).map(|at| self.broker(at, hosts)).collect();
        let mut publishers: Vec<Publishers> = Vec::new();
        for at in 0..1 + self.below(3) {
            publishers.push(self.publishers(at, hosts, brokers.len()));
        }
        let mut subscribers = Vec::new();
        for at in 0..1 + self.below(3) {
            let first = self.index(publishers.len());
            subscribers.push(self.subscribers(at, first, hosts, &publishers));
        }
        let mut pubsub = PubSub { brokers, publishers, subscribers };
        let link = self.link_for(&pubsub, links, clients_bits);
        for publishers in &mut pubsub.publishers {
            publishers.link = self.chance(1, 2).then_some(link);
        }
        for subscribers in &mut pubsub.subscribers {
            subscribers.link = self.chance(4, 5).then_some(link);
        }
        let loss = links.get(link).map_or(0.0, |link| link.profile.down.loss.share());
        pubsub.publishers.iter_mut().for_each(|publishers| key_frames_arrive(publishers, loss));
        // A window too small for the link is a wrong configuration, which would drop values permanently.
        let delay = links.get(link).map_or(Duration::ZERO, |link| link.profile.down.delay.base);
        let round_trip = round_trip(delay);
        for at in 0..pubsub.brokers.len() {
            let least = (3.0 * messages_per_second(&pubsub, at) * round_trip).ceil();
            if let Some(broker) = pubsub.brokers.get_mut(at) {
                broker.limits.in_flight = broker.limits.in_flight.max(least as u16);
            }
        }
        pubsub
    }

    fn broker(&mut self, at: u32, hosts: usize) -> Broker {
        let queue = self.one_of(&[3, 20, 100, 1_000], 1_000);
        let in_flight = self.one_of(&[1, 5, 20], 20);
        Broker {
            name: format!("broker-{at}"),
            host: self.host(hosts),
            limits: BrokerLimits { queue, in_flight },
            keep_alive: Duration::from_secs(self.one_of(&[1, 2, 10], 10)),
        }
    }

    fn quality(&mut self) -> Quality {
        if self.chance(2, 3) { Quality::AtLeastOnce } else { Quality::AtMostOnce }
    }

    fn publishers(&mut self, at: u64, hosts: usize, brokers: usize) -> Publishers {
        let transport = if brokers > 0 && self.chance(1, 2) {
            Transport::Broker(self.index(brokers), self.quality())
        } else if self.chance(2, 3) {
            Transport::Multicast
        } else {
            Transport::Unicast
        };
        let over_broker = matches!(transport, Transport::Broker(..));
        let encoding = if over_broker && self.chance(1, 2) { Encoding::Json } else { Encoding::Uadp };
        let signals = (0..1 + self.below(2)).map(|_| {
            let period = self.one_of(&[10, 20, 50, 100, 333, 0], 50);
            let value_len = self.one_of(&[4, 8, 8, 20, 300], 8);
            Signals { count: 1 + self.small(30), period: ms(period), value_len }
        });
        let signals = signals.collect();
        let is_secured = encoding == Encoding::Uadp && self.chance(1, 2);
        let secured = [SecurityMode::Sign, SecurityMode::SignAndEncrypt];
        let security =
            if is_secured { self.one_of(&secured, SecurityMode::Sign) } else { SecurityMode::None };
        let interval = ms(self.one_of(&[10, 20, 50, 100, 250, 1_000], 100));
        let key_lifetime = self.one_of(&[500, 2_000, 60_000, 3_600_000], 3_600_000);
        Publishers {
            name: format!("publisher-{at}"),
            count: 1 + self.small(4) / 2,
            link: None,
            host: self.host(hosts),
            transport,
            encoding,
            publishing_interval: interval,
            keep_alive_time: self.chance(1, 3).then(|| interval * (1 + self.small(20))),
            key_frame_count: self.one_of(&[1, 1, 3, 10], 1),
            fields: self.chance(1, 2).then(|| 1 + self.small(10)),
            security,
            // Without security there are no keys, and files do not contain their lifetime.
            key_lifetime: ms(if is_secured { key_lifetime } else { 3_600_000 }),
            signals,
        }
    }

    fn subscribers(&mut self, at: u64, first: usize, hosts: usize, all: &[Publishers]) -> Subscribers {
        let one = all.get(first);
        let over = |publishers: Option<&Publishers>| {
            publishers.map(|publishers| {
                let broker = match publishers.transport {
                    Transport::Broker(broker, _) => Some(broker),
                    _ => None,
                };
                (broker, publishers.encoding)
            })
        };
        // Further publishers that the same subscriber can listen to.
        let mut publishers = vec![first];
        for other in (0..all.len()).filter(|other| *other != first) {
            if over(all.get(other)) == over(one) && self.chance(1, 2) {
                publishers.push(other);
            }
        }
        let over_broker = over(one).is_some_and(|(broker, _)| broker.is_some());
        let keep_alive = one.map_or(ms(100), Publishers::keep_alive);
        Subscribers {
            name: format!("subscriber-{at}"),
            count: 1 + self.small(3),
            publishers,
            link: None,
            host: self.host(hosts),
            quality: (over_broker && self.chance(1, 4)).then(|| self.quality()),
            timeout: self.chance(1, 3).then(|| keep_alive * (1 + self.small(5))),
        }
    }

    /// A link of the clients that can also carry this load, or a new one.
    fn link_for(&mut self, pubsub: &PubSub, links: &mut Vec<Link>, clients_bits: f64) -> usize {
        let need = clients_bits + bits(pubsub, |_| true);
        let over_tcp =
            clients_bits + bits(pubsub, |publishers| matches!(publishers.transport, Transport::Broker(..)));
        let at = self.index(links.len().max(1));
        if let Some(link) = links.get(at)
            && link.profile.down.usable_rate().is_none_or(|rate| rate > 3.0 * need)
            && over_tcp < tcp_capacity(link)
            && self.chance(1, 2)
        {
            return at;
        }
        let rates = [10u32, 100, 1_000];
        let rate = rates.into_iter().find(|rate| f64::from(*rate) * 1e6 > 3.0 * need).unwrap_or(10_000);
        let delay = self.one_of(&[0, 1, 5, 50], 1);
        let delay = if over_tcp < window_bits(round_trip(ms(delay))) { delay } else { 0 };
        let is_lossy = self.chance(1, 2);
        let conditions = self.conditions(delay, is_lossy, 10, over_tcp);
        let text = format!("rate={rate}mbit,{conditions}");
        let lines = self.one_of(&[Lines::One, Lines::PerServer, Lines::PerClient], Lines::One);
        links.push(Link {
            name: "field-bus".to_owned(),
            profile: profile(&text),
            is_half_duplex: self.chance(1, 6),
            lines,
        });
        links.len() - 1
    }

    pub(super) fn pubsub_fault(&mut self, pubsub: &PubSub, measured: Duration) -> Option<Fault> {
        let at = ms(self.below(u64::try_from(measured.as_millis()).unwrap_or(1)));
        let lasts = ms(if self.chance(1, 3) { 1 + self.below(100) } else { 100 + self.below(10_000) });
        let roles = [Role::Publisher, Role::Subscriber, Role::Subscriber, Role::Broker];
        let role = self.one_of(&roles, Role::Publisher);
        let groups = match role {
            Role::Publisher => pubsub.publishers.iter().map(|one| one.count).collect::<Vec<_>>(),
            Role::Subscriber => pubsub.subscribers.iter().map(|one| one.count).collect(),
            Role::Broker | Role::Authority => pubsub.brokers.iter().map(|_| 1).collect(),
        };
        let group = self.index(groups.len());
        let count = *groups.get(group)?;
        let which = Which { group, number: self.chance(1, 2).then(|| self.small(count.into())) };
        let publishers = match role {
            Role::Publisher => pubsub.publishers.get(group),
            Role::Subscriber => {
                let first = pubsub.subscribers.get(group).and_then(|one| one.publishers.first());
                first.and_then(|at| pubsub.publishers.get(*at))
            }
            Role::Broker | Role::Authority => None,
        };
        let has_connection = publishers.is_some_and(|one| matches!(one.transport, Transport::Broker(..)));
        let offset = i64::try_from(1 + self.below(86_400)).unwrap_or(1) * 1_000_000_000;
        let what = match (role, self.below(6)) {
            (Role::Broker, 0 | 1) => NodeFault::Storm,
            (Role::Broker, 2 | 3) | (_, 0) => NodeFault::Crash,
            (Role::Broker, _) | (_, 1) => NodeFault::Restart,
            (_, 2) => NodeFault::Partition,
            (_, 3) if has_connection => NodeFault::Cut,
            (Role::Subscriber, 4) => NodeFault::SlowReader,
            (_, 5) => NodeFault::Clock(if self.chance(1, 2) { offset } else { -offset }),
            _ => NodeFault::Partition,
        };
        let kind = FaultKind::Node(role, which, what);
        Some(Fault { at, lasts: if kind.lasts() { lasts } else { Duration::ZERO }, kind })
    }
}

/// Without a broker, lost values are only sent again with the next key frame. If a campaign could lose all key frames
/// until the end by chance, because there are few of them with many packets, the configuration is wrong.
fn key_frames_arrive(publishers: &mut Publishers, loss: f64) {
    if loss == 0.0 || matches!(publishers.transport, Transport::Broker(..)) {
        return;
    }
    let cycles = super::SETTLE.as_secs_f64() / publishers.publishing_interval.as_secs_f64().max(1e-3);
    if cycles < key_frames_needed(publishers, loss) {
        publishers.signals.iter_mut().for_each(|signals| signals.value_len = signals.value_len.min(20));
    }
    let most = (cycles / key_frames_needed(publishers, loss)) as u32;
    publishers.key_frame_count = publishers.key_frame_count.min(most).max(1);
}

/// Number of key frames needed so that one of them arrives completely over a link with this share of lost packets.
pub(super) fn key_frames_needed(publishers: &Publishers, loss: f64) -> f64 {
    /// Accepted probability that the last values of a plant do not arrive.
    const RARE: f64 = 1e-9;
    /// Payload of a packet in bytes.
    const PACKET: f64 = 1400.0;
    let each = |signals: &Signals| f64::from(signals.count) * (signals.value_len as f64 + 20.0);
    let bytes = publishers.signals.iter().map(each).sum::<f64>() + 200.0;
    // Over the link to the network and the link from it.
    let whole = (1.0 - loss).powf(2.0 * (bytes / PACKET).ceil());
    (RARE.ln() / (1.0 - whole).ln()).ceil().max(1.0)
}

/// Maximum bits per second that these publishers send to all of their subscribers.
fn bits(pubsub: &PubSub, counts: impl Fn(&Publishers) -> bool) -> f64 {
    let mut sum = 0.0;
    for (at, publishers) in pubsub.publishers.iter().enumerate().filter(|(_, one)| counts(one)) {
        let each = |signals: &Signals| f64::from(signals.count) * (signals.value_len as f64 * 2.0 + 60.0);
        let cycle: f64 = publishers.signals.iter().map(each).sum::<f64>() + 200.0;
        let listening = pubsub.subscribers.iter().filter(|one| one.publishers.contains(&at));
        let copies: f64 = 1.0 + listening.map(|one| f64::from(one.count)).sum::<f64>();
        sum += cycle * 8.0 * rate(publishers) * copies;
    }
    sum
}

/// Maximum messages per second that a broker receives and forwards to each subscriber of all topics.
fn messages_per_second(pubsub: &PubSub, broker: usize) -> f64 {
    let of_broker = |one: &&Publishers| matches!(one.transport, Transport::Broker(at, _) if at == broker);
    pubsub.publishers.iter().filter(of_broker).map(|one| rate(one) * messages(one)).sum()
}

/// Messages per cycle: one for each part of the fields.
fn messages(publishers: &Publishers) -> f64 {
    let fields: u32 = publishers.signals.iter().map(|signals| signals.count).sum();
    f64::from(publishers.fields.map_or(1, |each| fields.div_ceil(each.max(1))))
}

/// Maximum round trip over a link with this delay, in seconds.
fn round_trip(delay: Duration) -> f64 {
    2.0 * (delay + ms(JITTER_MAX)).as_secs_f64()
}

/// Maximum bits per second of a TCP connection with this round trip: half of its window, because the window must grow
/// first.
fn window_bits(round_trip: f64) -> f64 {
    0.5 * WINDOW_BITS / round_trip
}

/// Bits per second that a TCP connection can carry over a link, apart from its rate.
fn tcp_capacity(link: &Link) -> f64 {
    let round_trip = round_trip(link.profile.down.delay.base);
    let loss = link.profile.down.loss.share();
    let lossy = if loss > 0.0 { tcp_bits(round_trip, loss) } else { f64::INFINITY };
    lossy.min(window_bits(round_trip))
}

/// Cycles per second of all publishers in a group.
fn rate(publishers: &Publishers) -> f64 {
    f64::from(publishers.count) / publishers.publishing_interval.as_secs_f64().max(1e-3)
}
