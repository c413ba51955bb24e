//! The processes of a plant's PubSub parts during a run: faults, promises and results.

use super::super::application::Worker;
use super::super::fault::{Fault, FaultKind, NodeFault, Role, Which};
use super::super::outcome::{BrokerOutcome, PubSubOutcome, PublisherOutcome, SubscriberOutcome};
use super::PubSub;
use crate::ids::NodeId;
use crate::node::Node;
use crate::pubsub::application::{Application, Complaints};
use crate::pubsub::figures::{BrokerFigures, PublisherFigures};
use crate::signals::Rhythm;
use crate::world::World;
use core::cell::{Cell, RefCell};
use core::time::Duration;
use std::rc::Rc;
use taktwerk_types::Instant;

/// How long a process takes to start.
const START: Duration = Duration::from_millis(1);

/// Creates the process of a node, at the start and after it died.
pub(super) type Make = Rc<dyn Fn(&mut World<Worker>) -> Result<Node, String>>;

/// When a process was started, and when it ended.
pub(super) type Life = (Instant, Option<Instant>);

/// One process.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) id: NodeId,
    pub(super) make: Make,
    /// The times during which it was running.
    pub(super) lives: Rc<RefCell<Vec<Life>>>,
}

impl Part {
    fn is_up(&self) -> bool {
        self.lives.borrow().last().is_some_and(|(_, until)| until.is_none())
    }

    fn crash(&self, world: &mut World<Worker>) {
        let now = world.now().instant;
        if let Some((_, until)) = self.lives.borrow_mut().last_mut() {
            until.get_or_insert(now);
        }
        world.crash_node(self.id);
    }

    fn start(&self, world: &mut World<Worker>) {
        if self.is_up() {
            return;
        }
        // It was created before, so it can be created again.
        if let Ok(node) = (self.make)(world) {
            self.lives.borrow_mut().push((world.now().instant, None));
            world.start_node(self.id, node);
        }
    }
}

/// A publisher with its sensors: by data set, how the values change and the number of fields.
pub(super) struct PublisherPart {
    pub(super) part: Part,
    pub(super) data_sets: Rc<[Rhythm]>,
    pub(super) fields: Vec<u64>,
    pub(super) figures: Rc<RefCell<PublisherFigures>>,
}

impl PublisherPart {
    /// Number of values written in a window while it was running.
    fn written(&self, (from, until): (Instant, Instant)) -> u64 {
        let lives = self.part.lives.borrow();
        let each = |rhythm: &Rhythm| -> u64 {
            let life = |(born, died): &Life| {
                rhythm.written(from.max(*born), until.min(died.unwrap_or(Instant::FAR)))
            };
            lives.iter().map(life).sum()
        };
        self.data_sets.iter().zip(&self.fields).map(|(rhythm, fields)| each(rhythm) * fields).sum()
    }
}

/// A subscriber.
pub(super) struct SubscriberPart {
    pub(super) part: Part,
    pub(super) application: Rc<RefCell<Application>>,
}

/// A broker.
pub(super) struct BrokerPart {
    pub(super) part: Part,
    pub(super) figures: Rc<RefCell<BrokerFigures>>,
}

/// All of them, by group.
#[derive(Default)]
pub(in crate::scenario) struct Parts {
    pub(super) brokers: Vec<BrokerPart>,
    pub(super) publishers: Vec<Vec<PublisherPart>>,
    pub(super) subscribers: Vec<Vec<SubscriberPart>>,
    /// Sensors deliver no new values after this time.
    pub(super) until: Rc<Cell<Instant>>,
    pub(super) complaints: Complaints,
    window: Option<(Instant, Instant)>,
}

/// Counters at one time: messages and bytes of publishers; messages received and sent by brokers.
#[derive(Default)]
pub(in crate::scenario) struct PubSubReadings {
    publishers: Vec<(u64, u64)>,
    brokers: Vec<(u64, u64)>,
    used: Vec<Vec<Duration>>,
}

impl Parts {
    pub(in crate::scenario) fn complaints(&self) -> Complaints {
        Rc::clone(&self.complaints)
    }

    /// Number of subscribers.
    pub(in crate::scenario) fn subscribers(&self) -> usize {
        self.subscribers.iter().map(Vec::len).sum()
    }

    /// The number of subscribers that do not have the first value of each field, and the name of one.
    pub(in crate::scenario) fn waiting(&self) -> (usize, Option<String>) {
        let waiting = self.subscribers.iter().flatten();
        let mut waiting = waiting.filter(|part| !part.application.borrow().has_begun());
        let first = waiting.next().map(|part| part.application.borrow().name.clone());
        (usize::from(first.is_some()) + waiting.count(), first)
    }

    /// Starts counting.
    pub(in crate::scenario) fn set_window(&mut self, window: (Instant, Instant)) {
        self.window = Some(window);
        self.until.set(window.1);
        for part in self.subscribers.iter().flatten() {
            part.application.borrow_mut().window = window;
        }
    }

    /// Describes what a subscriber still waits for.
    pub(in crate::scenario) fn is_stuck(&self) -> Option<String> {
        let until = self.until.get();
        self.subscribers.iter().flatten().find_map(|part| part.application.borrow().is_stuck(until))
    }

    /// Describes where a broker stores more than its limits allow.
    pub(in crate::scenario) fn over_budget(&self, world: &World<Worker>) -> Option<String> {
        self.brokers.iter().find_map(|broker| world.node(broker.part.id).over_budget())
    }

    /// Stops all publishers and subscribers.
    pub(in crate::scenario) fn leave(&self, world: &mut World<Worker>) {
        for part in self.all().filter(|(role, ..)| *role != Role::Broker).map(|(_, _, part)| part) {
            part.crash(world);
        }
    }

    /// Describes what brokers still keep of clients that have disconnected.
    pub(in crate::scenario) fn kept(&self, world: &World<Worker>) -> Option<String> {
        let kept = |broker: &BrokerPart| world.node(broker.part.id).connections();
        let (at, count) = (0..).zip(self.brokers.iter().map(kept)).find(|(_, count)| *count > 0)?;
        Some(format!("broker {at} still keeps {count} connections"))
    }

    // ---- faults

    fn all(&self) -> impl Iterator<Item = (Role, usize, &Part)> {
        let brokers = self.brokers.iter().enumerate().map(|(at, one)| (Role::Broker, at, &one.part));
        let publishers = self.publishers.iter().enumerate();
        let publishers =
            publishers.flat_map(|(at, all)| all.iter().map(move |one| (Role::Publisher, at, &one.part)));
        let subscribers = self.subscribers.iter().enumerate();
        let subscribers =
            subscribers.flat_map(|(at, all)| all.iter().map(move |one| (Role::Subscriber, at, &one.part)));
        brokers.chain(publishers).chain(subscribers)
    }

    fn hit(&self, role: Role, which: Which) -> Vec<Part> {
        let group = self.all().filter(|(kind, at, _)| *kind == role && *at == which.group);
        let numbered = (0..).zip(group.map(|(_, _, part)| part.clone()));
        let is_hit = |number: u32| which.number.is_none_or(|wanted| wanted == number);
        numbered.filter(|(number, _)| is_hit(*number)).map(|(_, part)| part).collect()
    }

    /// Schedules a fault; counting begins at `from`.
    pub(in crate::scenario) fn plan(&self, fault: &Fault, from: Instant, world: &mut World<Worker>) {
        let FaultKind::Node(role, which, what) = fault.kind else { return };
        let (begin, end) = (from + fault.at, from + fault.at + fault.lasts);
        for part in self.hit(role, which) {
            let id = part.id;
            match what {
                NodeFault::Cut | NodeFault::Storm => world.at(begin, move |world| world.cut_node(id)),
                NodeFault::Partition => {
                    world.at(begin, move |world| world.partition_node(id));
                    world.at(end, move |world| world.heal_node(id));
                }
                NodeFault::Clock(nanos) => {
                    world.at(begin, move |world| world.set_node_clock(id, nanos));
                    world.at(end, move |world| world.set_node_clock(id, 0));
                }
                NodeFault::SlowReader => {
                    world.at(begin, move |world| world.set_node_reads(id, false));
                    world.at(end, move |world| world.set_node_reads(id, true));
                }
                // Only of certificate authorities.
                NodeFault::Slow(_) => {}
                NodeFault::Crash | NodeFault::Restart => {
                    let end = if what == NodeFault::Crash { end } else { begin + START };
                    let again = part.clone();
                    world.at(begin, move |world| part.crash(world));
                    world.at(end, move |world| again.start(world));
                }
            }
        }
    }

    // ---- figures

    pub(in crate::scenario) fn readings(&self, world: &World<Worker>) -> PubSubReadings {
        let of_publishers = |group: &Vec<PublisherPart>| {
            let figures = group.iter().map(|one| one.figures.borrow());
            figures.fold((0, 0), |sum, one| (sum.0 + one.messages, sum.1 + one.bytes))
        };
        let of_broker = |one: &BrokerPart| (one.figures.borrow().received, one.figures.borrow().sent);
        let used = |part: &Part| world.node_used(part.id);
        let brokers = self.brokers.iter().map(|one| vec![used(&one.part)]);
        let publishers = self.publishers.iter().map(|all| all.iter().map(|one| used(&one.part)).collect());
        let subscribers = self.subscribers.iter().map(|all| all.iter().map(|one| used(&one.part)).collect());
        PubSubReadings {
            publishers: self.publishers.iter().map(of_publishers).collect(),
            brokers: self.brokers.iter().map(of_broker).collect(),
            used: brokers.chain(publishers).chain(subscribers).collect(),
        }
    }

    pub(in crate::scenario) fn outcome(
        &self,
        pubsub: &PubSub,
        world: &World<Worker>,
        (before, after): (&PubSubReadings, &PubSubReadings),
        seconds: f64,
    ) -> PubSubOutcome {
        let mut used = before.used.iter().zip(&after.used).map(|(before, after)| {
            let each = before.iter().zip(after).map(|(before, after)| after.saturating_sub(*before));
            each.map(|span| span.as_secs_f64() / seconds).collect::<Vec<f64>>()
        });
        let mut cpu = |host: Option<usize>, adds: bool| {
            let all = used.next().unwrap_or_default();
            let sum = if adds { all.iter().sum() } else { all.iter().copied().fold(0.0, f64::max) };
            host.map(|_| sum)
        };
        let difference = |before: Option<&(u64, u64)>, after: Option<&(u64, u64)>| match (before, after) {
            (Some(before), Some(after)) => {
                (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1))
            }
            _ => (0, 0),
        };
        let mut outcome = PubSubOutcome::default();
        for (at, (part, broker)) in self.brokers.iter().zip(&pubsub.brokers).enumerate() {
            let (received, sent) = difference(before.brokers.get(at), after.brokers.get(at));
            let figures = BrokerFigures { received, sent, ..part.figures.borrow().clone() };
            outcome.brokers.push(BrokerOutcome { figures, cpu: cpu(broker.host, true) });
        }
        for (at, (parts, publishers)) in self.publishers.iter().zip(&pubsub.publishers).enumerate() {
            let mut figures = PublisherFigures::default();
            parts.iter().for_each(|one| figures.add(&one.figures.borrow()));
            (figures.messages, figures.bytes) =
                difference(before.publishers.get(at), after.publishers.get(at));
            outcome.publishers.push(PublisherOutcome { figures, cpu: cpu(publishers.host, false) });
        }
        let window = self.window.unwrap_or((Instant::FAR, Instant::FAR));
        for (parts, subscribers) in self.subscribers.iter().zip(&pubsub.subscribers) {
            let mut all =
                SubscriberOutcome { cpu: cpu(subscribers.host, true), ..SubscriberOutcome::default() };
            for one in parts {
                all.figures.add(&one.application.borrow().figures);
                all.figures.socket_dropped += world.node(one.part.id).socket_dropped();
            }
            let groups = subscribers.publishers.iter().filter_map(|group| self.publishers.get(*group));
            let written: u64 = groups.flatten().map(|publisher| publisher.written(window)).sum();
            all.due = written * parts.len() as u64;
            outcome.subscribers.push(all);
        }
        outcome
    }
}
