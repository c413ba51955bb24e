//! Creates the processes of a plant's PubSub parts.

use super::super::application::Worker;
use super::super::build::{Built, LineOwner, Machines, Routes, invalid};
use super::super::outcome::RunError;
use super::super::{Scenario, Signals};
use super::configuration as settings;
use super::parts::{BrokerPart, Make, Part, PublisherPart, SubscriberPart};
use super::{Publishers, Quality, SecurityMode, Subscribers, Transport};
use crate::fabric::{Leg, Ways};
use crate::ids::NodeId;
use crate::network::{DATAGRAM_HEADERS, LineId, Path, Route, Service};
use crate::node::{Node, Peer};
use crate::pubsub::application::{Application, Delivery, Known, Source};
use crate::pubsub::broker::Broker;
use crate::pubsub::figures::{BrokerFigures, SubscriberFigures};
use crate::pubsub::keys::Keys;
use crate::pubsub::publisher::{PublisherNode, Sensors, Shared};
use crate::pubsub::session::{Session, Settings};
use crate::pubsub::subscriber::SubscriberNode;
use crate::signals::Rhythm;
use crate::world::World;
use core::cell::{Cell, RefCell};
use core::time::Duration;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use taktwerk_crypto::Entropy;
use taktwerk_crypto_dummy::DummyPubSubProvider;
use taktwerk_pubsub::config::{Configuration, Problem};
use taktwerk_pubsub::{Publisher, PublisherOptions, Subscriber, SubscriberOptions};
use taktwerk_types::Instant;

/// A publisher during construction of the plant.
struct Made {
    id: NodeId,
    number: u16,
    configuration: Configuration,
    line: Option<LineId>,
}

/// A subscriber that receives datagrams.
struct Listener {
    id: NodeId,
    number: u32,
    line: Option<LineId>,
    publishers: Vec<usize>,
}

struct Builder<'a> {
    scenario: &'a Scenario,
    built: &'a mut Built,
    machines: &'a mut Machines,
    routes: &'a mut Routes,
    keys: Rc<RefCell<Keys>>,
    made: Vec<Vec<Made>>,
    listeners: Vec<Listener>,
}

/// Creates everything. Draws no random numbers if there is nothing to create.
pub(in crate::scenario) fn build(
    scenario: &Scenario,
    built: &mut Built,
    machines: &mut Machines,
    routes: &mut Routes,
) -> Result<(), RunError> {
    if scenario.pubsub.is_empty() {
        return Ok(());
    }
    let keys = Rc::new(RefCell::new(Keys::new(built.world.fork_entropy())));
    built.pubsub.until.set(Instant::FAR);
    let (made, listeners) = (Vec::new(), Vec::new());
    let mut builder = Builder { scenario, built, machines, routes, keys, made, listeners };
    builder.brokers()?;
    let mut number = 0;
    for (group, publishers) in scenario.pubsub.publishers.iter().enumerate() {
        builder.publishers((group, publishers), &mut number)?;
    }
    for (group, subscribers) in scenario.pubsub.subscribers.iter().enumerate() {
        builder.subscribers((group, subscribers))?;
    }
    builder.ways();
    Ok(())
}

/// Describes why an engine could not be created.
fn explained(problems: &[Problem]) -> String {
    let texts = problems.iter().map(|problem| format!("{}: {}", problem.element, problem.message));
    texts.collect::<Vec<_>>().join("; ")
}

fn label(name: &str, count: u32, number: u32) -> String {
    if count == 1 { name.to_owned() } else { format!("{name} {}", number + 1) }
}

impl Builder<'_> {
    fn part(&mut self, name: &str, make: Make, peer: Option<Peer>, key: &str) -> Result<Part, RunError> {
        let world = &mut self.built.world;
        let node = make(world).map_err(|problem| invalid(key, &problem))?;
        let id = world.add_node(name, node, peer);
        let lives = vec![(world.now().instant, None)];
        Ok(Part { id, make, lives: Rc::new(RefCell::new(lives)) })
    }

    fn brokers(&mut self) -> Result<(), RunError> {
        for (number, broker) in self.scenario.pubsub.brokers.iter().enumerate() {
            let figures = Rc::new(RefCell::new(BrokerFigures::default()));
            let (limits, counted) = (broker.limits, Rc::clone(&figures));
            let make: Make =
                Rc::new(move |_| Ok(Node::Broker(Box::new(Broker::new(limits, Rc::clone(&counted))))));
            let part = self.part(&broker.name, make, None, &format!("broker.{number}"))?;
            if let Some(host) = broker.host {
                let machine = self.machines.shared(host, &mut self.built.world);
                self.built.world.place_node(part.id, machine);
            }
            self.built.pubsub.brokers.push(BrokerPart { part, figures });
        }
        Ok(())
    }

    /// The connection to a broker.
    fn peer(&mut self, link: Option<usize>, broker: usize, service: Service, number: u32) -> Option<Peer> {
        let id = self.built.pubsub.brokers.get(broker)?.part.id;
        let line = self.routes.line(link, LineOwner::Broker(broker), self.scenario, self.built);
        let profile = link.and_then(|link| self.scenario.links.get(link));
        let route = match (line, profile) {
            (Some(line), Some(link)) => Route::on(line, &link.profile),
            _ => Route::symmetric(Path::IDEAL),
        };
        let numbers = (number, u32::try_from(broker).unwrap_or(u32::MAX));
        Some(Peer { broker: id, route, service, numbers })
    }

    fn keep_alive(&self, broker: usize) -> Duration {
        let broker = self.scenario.pubsub.brokers.get(broker);
        broker.map_or(Duration::from_secs(10), |broker| broker.keep_alive)
    }

    /// The largest NetworkMessage that no link on the way to a subscriber has to fragment.
    fn message_len_max(&self, group: usize, publishers: &Publishers) -> usize {
        let listening = self.scenario.pubsub.subscribers.iter();
        let listening = listening.filter(|subscribers| subscribers.publishers.contains(&group));
        let links = listening.filter_map(|subscribers| subscribers.link).chain(publishers.link);
        let mtu = links.filter_map(|link| self.scenario.links.get(link)).map(|link| link.profile.mtu).min();
        usize::from(mtu.unwrap_or(1_500)).saturating_sub(DATAGRAM_HEADERS).max(128)
    }

    fn publishers(
        &mut self,
        (group, publishers): (usize, &Publishers),
        number: &mut u16,
    ) -> Result<(), RunError> {
        let key = format!("publisher.{group}");
        let now = self.built.world.now().instant;
        if publishers.security != SecurityMode::None {
            let lifetime = publishers.key_lifetime.as_secs_f64() * 1e3;
            let added = self.keys.borrow_mut().add_group(&publishers.name, lifetime, now);
            added.map_err(|status| invalid(&format!("{key}.security"), &status))?;
        }
        let mut options = PublisherOptions::default();
        options.message_len_max = self.message_len_max(group, publishers);
        let (mut parts, mut made) = (Vec::new(), Vec::new());
        for one in 0..publishers.count {
            *number = number.saturating_add(1);
            let station = u32::from(*number) - 1;
            let name = format!("publisher {}", label(&publishers.name, publishers.count, one));
            let mut entropy = self.built.world.fork_entropy();
            let interval = u64::try_from(publishers.publishing_interval.as_nanos()).unwrap_or(u64::MAX);
            let start = now + Duration::from_nanos(entropy.below(interval));
            let data_sets = self.rhythms(publishers, &mut entropy, now);
            let configuration = settings::publisher(publishers, *number);
            let (peer, session, topics, line) = match publishers.transport {
                Transport::Broker(broker, quality) => {
                    let session = Settings {
                        name: format!("publisher-{number}"),
                        filters: Vec::new(),
                        is_clean: quality == Quality::AtMostOnce,
                        keep_alive: self.keep_alive(broker),
                    };
                    let topics = Rc::new(settings::topics(publishers, *number, quality));
                    let peer = self.peer(publishers.link, broker, Service::PublisherToBroker, station);
                    (peer, Some(session), Some(topics), None)
                }
                _ => {
                    let owner = LineOwner::Publisher(station);
                    let line = self.routes.line(publishers.link, owner, self.scenario, self.built);
                    (None, None, None, line)
                }
            };
            let figures = Rc::default();
            let shared = Shared {
                name: name.clone(),
                mode: publishers.security,
                keys: Rc::clone(&self.keys),
                nonces: Rc::default(),
                figures: Rc::clone(&figures),
                complaints: self.built.pubsub.complaints(),
                topics,
            };
            let sensors = Sensors::new(Rc::clone(&data_sets), Rc::clone(&self.built.pubsub.until));
            let make = publisher(&configuration, &options, (sensors, shared, session), start);
            let part = self.part(&name, make, peer, &key)?;
            if let Some(host) = publishers.host {
                let world = &mut self.built.world;
                let machine = self.machines.of_server(host, publishers.count > 1, world);
                world.place_node(part.id, machine);
            }
            made.push(Made { id: part.id, number: *number, configuration, line });
            let fields = publishers.data_sets().iter().map(|(_, fields)| u64::from(*fields)).collect();
            parts.push(PublisherPart { part, data_sets, fields, figures });
        }
        self.made.push(made);
        self.built.pubsub.publishers.push(parts);
        Ok(())
    }

    /// The signals of a group change together, even if they are in several DataSets.
    fn rhythms(&self, publishers: &Publishers, entropy: &mut dyn Entropy, now: Instant) -> Rc<[Rhythm]> {
        let rhythm = |signals: &Signals| {
            let period = u64::try_from(signals.period.as_nanos()).unwrap_or(u64::MAX);
            let phase = Duration::from_nanos(entropy.below(period));
            let Signals { period, value_len, .. } = *signals;
            Rhythm { start: now + phase, period, spread: Duration::ZERO, value_len }
        };
        let groups: Vec<Rhythm> = publishers.signals.iter().map(rhythm).collect();
        publishers.data_sets().iter().filter_map(|(group, _)| groups.get(*group).copied()).collect()
    }

    fn subscribers(&mut self, (group, subscribers): (usize, &Subscribers)) -> Result<(), RunError> {
        let key = format!("subscriber.{group}");
        let all = &self.scenario.pubsub.publishers;
        let first = subscribers.publishers.first().and_then(|at| all.get(*at));
        let Some(first) = first else { return Ok(()) };
        let groups = subscribers.publishers.iter().filter_map(|at| Some((all.get(*at)?, *at)));
        let heard: Vec<(&Publishers, usize)> = groups.collect();
        let made = heard.iter().flat_map(|(_, at)| self.made.get(*at).into_iter().flatten());
        let configurations: Vec<&Configuration> = made.map(|made| &made.configuration).collect();
        let configuration = settings::subscriber(subscribers, &configurations);
        let is_secured = heard.iter().any(|(publishers, _)| publishers.security != SecurityMode::None);
        let mut parts = Vec::new();
        for one in 0..subscribers.count {
            let before: usize = self.built.pubsub.subscribers() + parts.len();
            let number = u32::try_from(before).unwrap_or(u32::MAX);
            let name = format!("subscriber {}", label(&subscribers.name, subscribers.count, one));
            let session = match first.transport {
                Transport::Broker(broker, _) => {
                    Some((broker, self.session(subscribers, &heard, broker, number)))
                }
                _ => None,
            };
            let client = session.as_ref().map(|(_, session)| session.name.clone()).unwrap_or_default();
            let application = Rc::new(RefCell::new(Application {
                name: name.clone(),
                sources: self.sources(subscribers, &heard, &client),
                window: (Instant::FAR, Instant::FAR),
                figures: SubscriberFigures::default(),
                complaints: self.built.pubsub.complaints(),
            }));
            let (peer, line) = match &session {
                Some((broker, _)) => {
                    (self.peer(subscribers.link, *broker, Service::SubscriberToBroker, number), None)
                }
                None => {
                    let owner = LineOwner::Subscribers;
                    (None, self.routes.line(subscribers.link, owner, self.scenario, self.built))
                }
            };
            let is_datagram = session.is_none();
            let session = session.map(|(_, session)| session);
            let keys = Rc::clone(&self.keys);
            let make = subscriber(&configuration, is_secured, (keys, session), &application);
            let part = self.part(&name, make, peer, &key)?;
            if let Some(host) = subscribers.host {
                let machine = self.machines.shared(host, &mut self.built.world);
                self.built.world.place_node(part.id, machine);
            }
            if is_datagram {
                let publishers = subscribers.publishers.clone();
                self.listeners.push(Listener { id: part.id, number, line, publishers });
            }
            parts.push(SubscriberPart { part, application });
        }
        self.built.pubsub.subscribers.push(parts);
        Ok(())
    }

    fn session(
        &self,
        subscribers: &Subscribers,
        heard: &[(&Publishers, usize)],
        broker: usize,
        number: u32,
    ) -> Settings {
        let mut filters = Vec::new();
        for (publishers, at) in heard {
            let Transport::Broker(_, own) = publishers.transport else { continue };
            let quality = subscribers.quality.unwrap_or(own);
            for made in self.made.get(*at).into_iter().flatten() {
                filters.extend(settings::filters(publishers.encoding, made.number, quality));
            }
        }
        // Metadata is always subscribed to with quality of service 1, so the broker keeps the session.
        let keep_alive = self.keep_alive(broker);
        Settings { name: format!("subscriber-{}", number + 1), filters, is_clean: false, keep_alive }
    }

    /// What the application knows about the publishers that it receives.
    fn sources(
        &self,
        subscribers: &Subscribers,
        heard: &[(&Publishers, usize)],
        client: &str,
    ) -> Vec<Source> {
        let mut sources = Vec::new();
        for (publishers, at) in heard {
            for part in self.built.pubsub.publishers.get(*at).into_iter().flatten() {
                let readers = part.data_sets.iter().zip(&part.fields);
                let readers = readers
                    .map(|(rhythm, fields)| Known::new(*rhythm, usize::try_from(*fields).unwrap_or(0)))
                    .collect();
                let delivery = match publishers.transport {
                    Transport::Broker(broker, Quality::AtLeastOnce)
                        if subscribers.quality.is_none_or(|quality| quality == Quality::AtLeastOnce) =>
                    {
                        self.built.pubsub.brokers.get(broker).map(|broker| Delivery {
                            name: client.to_owned(),
                            broker: Rc::clone(&broker.figures),
                            publisher: Rc::clone(&part.figures),
                        })
                    }
                    _ => None,
                };
                sources.push(Source { readers, delivery });
            }
        }
        sources
    }

    /// The destinations of each publisher's datagrams.
    fn ways(&mut self) {
        for (group, publishers) in self.scenario.pubsub.publishers.iter().enumerate() {
            if matches!(publishers.transport, Transport::Broker(..)) {
                continue;
            }
            let is_multicast = publishers.transport == Transport::Multicast;
            let listening = self.listeners.iter().filter(|listener| listener.publishers.contains(&group));
            let legs: Vec<Leg> = if is_multicast {
                let mut by_line: BTreeMap<Option<LineId>, Vec<(NodeId, u32)>> = BTreeMap::new();
                for listener in listening {
                    by_line.entry(listener.line).or_default().push((listener.id, listener.number));
                }
                by_line.into_iter().map(|(line, to)| Leg { line, to }).collect()
            } else {
                listening.map(|one| Leg { line: one.line, to: vec![(one.id, one.number)] }).collect()
            };
            let multicast = is_multicast.then(|| u32::try_from(group).unwrap_or(u32::MAX));
            for made in self.made.get(group).into_iter().flatten() {
                let number = u32::from(made.number) - 1;
                let ways = Ways { number, line: made.line, multicast, legs: legs.clone() };
                self.built.world.set_ways(made.id, ways);
            }
        }
    }
}

/// The process of a publisher. Its first cycle is at `start`; after a restart, immediately.
fn publisher(
    configuration: &Configuration,
    options: &PublisherOptions,
    (sensors, shared, session): (Sensors, Shared, Option<Settings>),
    start: Instant,
) -> Make {
    let (configuration, options) = (configuration.clone(), options.clone());
    let first = Cell::new(Some(start));
    Rc::new(move |world: &mut World<Worker>| {
        let now = world.now();
        let entropy = Box::new(world.fork_entropy());
        let provider = Arc::new(DummyPubSubProvider);
        let engine = Publisher::new(configuration.clone(), options.clone(), provider, entropy);
        let engine = engine.map_err(|problems| explained(&problems))?;
        let session = session.clone().map(|settings| Session::new(settings, now.instant));
        let start = first.take().unwrap_or(now.instant);
        let node = PublisherNode::new(engine, sensors.clone(), shared.clone(), session, start, now);
        Ok(Node::Publisher(Box::new(node)))
    })
}

/// The process of a subscriber.
fn subscriber(
    configuration: &Configuration,
    is_secured: bool,
    (keys, session): (Rc<RefCell<Keys>>, Option<Settings>),
    application: &Rc<RefCell<Application>>,
) -> Make {
    let (configuration, application) = (configuration.clone(), Rc::clone(application));
    Rc::new(move |world: &mut World<Worker>| {
        let now = world.now();
        let provider = Arc::new(DummyPubSubProvider);
        let engine = Subscriber::new(configuration.clone(), SubscriberOptions::default(), provider);
        let engine = engine.map_err(|problems| explained(&problems))?;
        let session = session.clone().map(|settings| Session::new(settings, now.instant));
        let (keys, application) = (Rc::clone(&keys), Rc::clone(&application));
        let node = SubscriberNode::new(engine, is_secured, keys, session, application, now);
        Ok(Node::Subscriber(Box::new(node)))
    })
}
