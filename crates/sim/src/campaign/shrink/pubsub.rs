//! Shrinks publishers, subscribers and brokers.

use super::clamp_numbers;
use crate::scenario::fault::Role;
use crate::scenario::pubsub::{Encoding, PubSub, SecurityMode, Transport};
use crate::scenario::{FaultKind, Scenario};

/// Number of nodes in a group that a fault can affect.
pub(super) fn count(pubsub: &PubSub, role: Role, group: usize) -> u32 {
    match role {
        Role::Broker | Role::Authority => 1,
        Role::Publisher => pubsub.publishers.get(group).map_or(1, |one| one.count),
        Role::Subscriber => pubsub.subscribers.get(group).map_or(1, |one| one.count),
    }
}

/// The used hosts.
pub(super) fn hosts(pubsub: &PubSub) -> impl Iterator<Item = Option<usize>> {
    let brokers = pubsub.brokers.iter().map(|one| one.host);
    let publishers = pubsub.publishers.iter().map(|one| one.host);
    brokers.chain(publishers).chain(pubsub.subscribers.iter().map(|one| one.host))
}

/// The used links.
pub(super) fn links(pubsub: &PubSub) -> impl Iterator<Item = Option<usize>> {
    pubsub.publishers.iter().map(|one| one.link).chain(pubsub.subscribers.iter().map(|one| one.link))
}

/// Removes a group from faults: drops its own faults and renumbers those of later groups.
fn forget(scenario: &mut Scenario, role: Role, at: usize) {
    let group_of = |kind: &FaultKind| (kind.role() == Some(role)).then(|| kind.which().group);
    scenario.faults.retain(|fault| group_of(&fault.kind) != Some(at));
    for fault in &mut scenario.faults {
        if let Some(group) = group_of(&fault.kind).filter(|group| *group > at) {
            fault.kind = fault.kind.with_group(group - 1);
        }
    }
}

/// Removes all PubSub parts, if there are clients.
pub(super) fn without_pubsub(scenario: &Scenario, at: usize) -> Option<Scenario> {
    (at == 0).then(|| {
        let mut smaller = scenario.clone();
        if !smaller.clients.is_empty() {
            smaller.pubsub = PubSub::default();
            smaller.faults.retain(|fault| fault.kind.role().is_none());
        }
        smaller
    })
}

pub(super) fn without_subscribers(scenario: &Scenario, at: usize) -> Option<Scenario> {
    (at < scenario.pubsub.subscribers.len()).then(|| {
        let mut smaller = scenario.clone();
        if smaller.pubsub.subscribers.len() > 1 || !smaller.clients.is_empty() {
            smaller.pubsub.subscribers.remove(at);
            forget(&mut smaller, Role::Subscriber, at);
        }
        smaller
    })
}

/// Removes a group of publishers, and its subscribers if they have no other publisher.
pub(super) fn without_publishers(scenario: &Scenario, at: usize) -> Option<Scenario> {
    (at < scenario.pubsub.publishers.len()).then(|| {
        let mut smaller = scenario.clone();
        for subscribers in &mut smaller.pubsub.subscribers {
            subscribers.publishers.retain(|group| *group != at);
            if subscribers.publishers.is_empty() {
                return scenario.clone();
            }
            for group in subscribers.publishers.iter_mut().filter(|group| **group > at) {
                *group -= 1;
            }
        }
        smaller.pubsub.publishers.remove(at);
        forget(&mut smaller, Role::Publisher, at);
        smaller
    })
}

/// Removes an unused broker.
pub(super) fn without_broker(scenario: &Scenario, at: usize) -> Option<Scenario> {
    (at < scenario.pubsub.brokers.len()).then(|| {
        let mut smaller = scenario.clone();
        for publishers in &mut smaller.pubsub.publishers {
            let Transport::Broker(broker, _) = &mut publishers.transport else { continue };
            if *broker == at {
                return scenario.clone();
            }
            if *broker > at {
                *broker -= 1;
            }
        }
        smaller.pubsub.brokers.remove(at);
        forget(&mut smaller, Role::Broker, at);
        smaller
    })
}

pub(super) fn fewer_nodes(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    let count = if let Some(publishers) = smaller.pubsub.publishers.get_mut(at) {
        &mut publishers.count
    } else {
        &mut smaller.pubsub.subscribers.get_mut(at - scenario.pubsub.publishers.len())?.count
    };
    *count = (*count / 2).max(1);
    clamp_numbers(&mut smaller);
    Some(smaller)
}

/// Removes groups of signals, then halves them.
pub(super) fn fewer_signals(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    let publishers = smaller.pubsub.publishers.get_mut(at / 2)?;
    if !at.is_multiple_of(2) {
        publishers.signals.iter_mut().for_each(|signals| signals.count = (signals.count / 2).max(1));
    } else if publishers.signals.len() > 1 {
        publishers.signals.pop();
    }
    Some(smaller)
}

/// Simplifies one setting of a publisher or subscriber at a time.
pub(super) fn simpler_node(scenario: &Scenario, at: usize) -> Option<Scenario> {
    const SETTINGS: usize = 7;
    let mut smaller = scenario.clone();
    let (number, setting) = (at / SETTINGS, at % SETTINGS);
    if let Some(publishers) = smaller.pubsub.publishers.get_mut(number) {
        match setting {
            0 => publishers.host = None,
            1 => publishers.link = None,
            2 => publishers.security = SecurityMode::None,
            3 => publishers.encoding = Encoding::Uadp,
            4 => publishers.key_frame_count = 1,
            5 => publishers.fields = None,
            _ => publishers.keep_alive_time = None,
        }
        return Some(smaller);
    }
    let number = number - scenario.pubsub.publishers.len();
    if let Some(subscribers) = smaller.pubsub.subscribers.get_mut(number) {
        match setting {
            0 => subscribers.host = None,
            1 => subscribers.link = None,
            2 => subscribers.quality = None,
            _ => subscribers.timeout = None,
        }
        return Some(smaller);
    }
    let broker = smaller.pubsub.brokers.get_mut(number - scenario.pubsub.subscribers.len())?;
    broker.host = None;
    Some(smaller)
}
