//! Mirrors alarms of the other server as alarms of this server, with the same type and fields. Operators' actions here are
//! repeated there.
//!
//! Shelving and suppression stay local: they depend on what operators of this server want to see.

use super::bases::Bases;
use super::budget::Budget;
use super::notices::Place;
use super::own::{self, ALARM, OwnField};
use super::translation::Translation;
use crate::fault::Fault;
use crate::feed::Feed;
use crate::opcua::address;
use crate::plant::Plant;
use crate::statistics::Count;
use std::collections::{HashMap, HashSet};
use taktwerk::alarms::{Alarm, ConditionReport, Method, Operation};
use taktwerk::client::Error;
use taktwerk::{Client, Node};
use taktwerk_client::EventQuery;
use taktwerk_client::condition::ConditionEvent;
use taktwerk_schema::ids::object_type_ids;
use taktwerk_server::FieldName;
use taktwerk_types::{NodeId, UaString, Variant};

/// Most conditions of one source.
const CONDITIONS_MAX: usize = 100_000;
/// Most bytes of the additional fields of all alarms of a source.
const OWN_BYTES_MAX: usize = 64 << 20;
/// Most types requested per connection.
const KINDS_MAX: usize = 1000;
/// Most events that wait for their types.
const WAITING_MAX: usize = 1000;

/// Fields that an alarm's type adds, with their values.
type Own = Vec<(FieldName, Variant)>;

/// The action required after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    /// The conditions must be refreshed.
    Refresh,
    /// Its type must be read.
    Learn,
}

/// A mirrored condition.
#[derive(Debug)]
struct Relayed {
    alarm: Alarm,
    /// The last event of the other server.
    remote: ConditionEvent,
    /// Whether it was acknowledged and confirmed here at the last check.
    seen: (bool, bool),
    /// A refresh has begun and has not reported it yet.
    is_suspect: bool,
    /// Bytes of its additional fields.
    own_bytes: usize,
}

/// The conditions of the other server. They survive the connection.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    relayed: HashMap<String, Relayed>,
    /// The fields selected after those of [`ConditionEvent::query`].
    own: Vec<OwnField>,
    own_bytes: usize,
    /// The local types of this connection's types.
    kinds: HashMap<NodeId, NodeId>,
    /// Types that are not known yet.
    unknown: HashSet<NodeId>,
    waiting: Vec<Vec<Variant>>,
    /// The counter of local alarm changes at the last check.
    changes: u64,
}

/// Information needed to process conditions.
pub(super) struct Context<'a> {
    pub(super) places: &'a HashMap<String, Place>,
    pub(super) namespaces: &'a [UaString],
    pub(super) feed: &'a Feed,
    pub(super) translation: &'a Translation,
}

impl Conditions {
    /// Begins a connection. Its namespace indexes may differ from those of the previous one.
    pub(super) fn begin(&mut self) {
        self.kinds.clear();
        self.unknown.clear();
        self.waiting.clear();
    }

    /// The fields of conditions to select, including `own` fields.
    pub(super) fn query(own: &[OwnField]) -> EventQuery {
        own::select(ConditionEvent::query(), own)
    }

    /// Sets the fields that are selected from now on.
    pub(super) fn asks_for(&mut self, own: Vec<OwnField>) {
        self.own = own;
    }

    /// Whether there are types to read.
    pub(super) fn has_unknown(&self) -> bool {
        !self.unknown.is_empty()
    }

    /// Takes the unknown types, each of which is requested once.
    pub(super) fn take_unknown(&mut self) -> Vec<NodeId> {
        core::mem::take(&mut self.unknown).into_iter().collect()
    }

    /// Records the result of reading types. A type that could not be added is replaced by its nearest supertype in namespace 0.
    pub(super) async fn learnt(
        &mut self,
        kinds: Vec<NodeId>,
        (client, bases): (&Client, &mut Bases),
        (plant, translation): (&Plant, &Translation),
    ) -> Result<(), Error> {
        for kind in kinds {
            let here = match known(&kind, plant, translation) {
                Some(here) => here,
                None => alarm_type(bases.of(client, &kind, &mut Budget::small()).await?, plant),
            };
            self.kinds.insert(kind, here);
        }
        Ok(())
    }

    /// Processes the events that waited for their types.
    pub(super) fn take_waiting(&mut self, context: &Context<'_>) {
        for fields in core::mem::take(&mut self.waiting) {
            self.take(&fields, context);
        }
    }

    /// Handles events still waiting. After a refresh they are dropped, because the refresh reports their conditions. Otherwise
    /// they are processed without additional fields, because those may have been selected in another order.
    pub(super) fn end_waiting(&mut self, is_refreshed: bool, context: &Context<'_>) {
        for fields in core::mem::take(&mut self.waiting).iter().filter(|_| !is_refreshed) {
            self.take(fields.get(..ConditionEvent::len()).unwrap_or(fields), context);
        }
    }

    /// Takes over the state of a condition.
    pub(super) fn take(&mut self, fields: &[Variant], context: &Context<'_>) -> Next {
        let (event, feed) = (ConditionEvent::read(fields), context.feed);
        match event.event_type.ns0() {
            Some(object_type_ids::REFRESH_START_EVENT_TYPE) => {
                self.relayed.values_mut().for_each(|relayed| relayed.is_suspect = true);
                return Next::Nothing;
            }
            Some(object_type_ids::REFRESH_END_EVENT_TYPE) => {
                self.end_suspects(feed);
                return Next::Nothing;
            }
            Some(object_type_ids::REFRESH_REQUIRED_EVENT_TYPE) => return Next::Refresh,
            _ => {}
        }
        // Branches are earlier states, which the other server manages.
        if event.condition_id.is_null() || !event.branch_id.is_null() {
            return Next::Nothing;
        }
        let key = address(&event.condition_id, context.namespaces);
        if !self.relayed.contains_key(&key) {
            if !event.retain || self.relayed.len() >= CONDITIONS_MAX {
                return Next::Nothing;
            }
            let Some(kind) = self.kind_here(&event.event_type, feed.plant()) else {
                if self.waiting.len() < WAITING_MAX {
                    self.waiting.push(fields.to_vec());
                }
                self.unknown.insert(event.event_type);
                return Next::Learn;
            };
            match add(&event, kind, &key, &self.relayed, context) {
                Ok(Some(alarm)) => {
                    let relayed = Relayed {
                        alarm,
                        remote: event.clone(),
                        seen: (true, true),
                        is_suspect: false,
                        own_bytes: 0,
                    };
                    self.relayed.insert(key.clone(), relayed);
                }
                Ok(None) => return Next::Nothing,
                Err(fault) => {
                    feed.failed(&fault);
                    return Next::Nothing;
                }
            }
        }
        let Some(relayed) = self.relayed.get_mut(&key) else { return Next::Nothing };
        let values = fields.get(ConditionEvent::len()..).unwrap_or_default();
        let own = relayed.own(&self.own, values, &mut self.own_bytes, context);
        relayed.follow(event, own);
        Next::Nothing
    }

    /// The local type of a remote type. `None` if the type or its fields have not been requested. Limited, because a server can
    /// return new types without end.
    fn kind_here(&self, kind: &NodeId, plant: &Plant) -> Option<NodeId> {
        match self.kinds.get(kind) {
            Some(here) => Some(here.clone()),
            None if kind.namespace_index == 0 => Some(alarm_type(kind.clone(), plant)),
            None if self.kinds.len() + self.unknown.len() >= KINDS_MAX => Some(ALARM),
            None => None,
        }
    }

    /// Ends a refresh: removes the conditions that it has not reported.
    fn end_suspects(&mut self, feed: &Feed) {
        for relayed in self.relayed.values_mut().filter(|relayed| relayed.is_suspect) {
            relayed.is_suspect = false;
            // Operators there no longer need to see it.
            let mut done = relayed.remote.clone();
            (done.active, done.retain, done.time) = (Some(false), false, None);
            (done.acked, done.confirmed) = (done.acked.map(|_| true), done.confirmed.map(|_| true));
            relayed.follow(done, Own::new());
        }
        // Includes alarms from before the settings of the source changed.
        let known = self.relayed.values().map(|relayed| relayed.alarm.id().clone()).collect();
        feed.plant().alarms().end_except(&feed.settings().name, &known);
    }

    /// Repeats operators' local actions since the last call at the other server.
    pub(super) async fn pass_on(&mut self, client: &Client, feed: &Feed, target: &str) -> Result<(), Error> {
        let changes = feed.plant().alarm_changes();
        if self.relayed.is_empty() || changes == self.changes {
            return Ok(());
        }
        self.changes = changes;
        for relayed in self.relayed.values_mut() {
            let Some(view) = relayed.alarm.view() else { continue };
            let (acked, confirmed) = (view.state.acked, view.state.confirmed);
            let before = core::mem::replace(&mut relayed.seen, (acked, confirmed));
            let comment = view.state.comment.text.as_str();
            let remote = &mut relayed.remote;
            let mut done = Ok(());
            let mut is_confirmed = !before.1 && confirmed;
            if !before.0 && acked && remote.acked == Some(false) {
                done = client.conditions().acknowledge(remote, comment).await;
                remote.acked = Some(done.is_ok());
                if done.is_ok() {
                    // An acknowledged state waits for confirmation (Part 9 Annex B.1.2). If it no longer waits here, the operator
                    // has acknowledged and confirmed since the last check.
                    remote.confirmed = remote.confirmed.map(|_| false);
                    is_confirmed = confirmed && view.confirms;
                }
            }
            if done.is_ok() && is_confirmed && remote.confirmed == Some(false) {
                done = client.conditions().confirm(remote, comment).await;
                remote.confirmed = Some(done.is_ok());
            }
            match done {
                Ok(()) => {}
                Err(error) if matches!(error, Error::Status { .. }) => {
                    let problem = format!("{} rejects an operator's action: {error}", view.name);
                    feed.failed(&Fault::other(target, problem));
                    // The remote state is authoritative.
                    let remote = relayed.remote.clone();
                    relayed.follow(remote, Own::new());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The local type of a remote condition type; `None` if it does not exist here.
fn known(kind: &NodeId, plant: &Plant, translation: &Translation) -> Option<NodeId> {
    let here = translation.here(kind)?;
    let base = NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE);
    let is_here = kind.namespace_index == 0 || plant.space().is_event_subtype(&here, &base);
    is_here.then(|| alarm_type(here, plant))
}

/// The type of the local alarm. Conditions that are not alarms become alarms.
fn alarm_type(kind: NodeId, plant: &Plant) -> NodeId {
    if plant.space().is_event_subtype(&kind, &ALARM) { kind } else { ALARM }
}

/// Adds the alarm for a condition. `None` if its source is not mirrored.
fn add(
    event: &ConditionEvent,
    kind: NodeId,
    key: &str,
    relayed: &HashMap<String, Relayed>,
    context: &Context<'_>,
) -> Result<Option<Alarm>, Fault> {
    let plant = context.feed.plant();
    let place = context.places.get(&address(&event.source, context.namespaces));
    let Some(node) = place.and_then(|place| plant.notifier(&place.path, place.is_object)) else {
        return Ok(None);
    };
    let name = if event.name.is_empty() { "Condition" } else { event.name.as_str() };
    let (name, known) = own_name(&node, name, key, relayed);
    let mut builder = node.alarm(&name).severity(event.severity.max(1)).without_nodes().of_type(kind);
    if event.acked.is_none() {
        builder = builder.no_acknowledgement();
    }
    if event.confirmed.is_some() {
        builder = builder.confirm();
    }
    let alarm = known.map_or_else(|| builder.add(), Ok);
    let alarm = alarm.map_err(|error| Fault::other("conditions", format!("{name}: {error}")))?;
    let source = &context.feed.settings().name;
    plant.alarms().add(source, &alarm);
    Ok(Some(alarm))
}

/// The local name of the condition, and its alarm if it exists already because the configuration was applied again. If several
/// conditions of a source have the same name, all but the first have their address appended.
fn own_name(
    node: &Node,
    name: &str,
    key: &str,
    relayed: &HashMap<String, Relayed>,
) -> (String, Option<Alarm>) {
    let full = format!("{name} ({key})");
    if let Some(alarm) = node.alarm_named(&full) {
        return (full, Some(alarm));
    }
    let alarm = node.alarm_named(name);
    let is_taken =
        alarm.as_ref().is_some_and(|alarm| relayed.values().any(|relayed| relayed.alarm.id() == alarm.id()));
    if is_taken { (full, None) } else { (name.to_owned(), alarm) }
}

impl Relayed {
    /// The values of additional fields, within the limit. Fields that never had a value are omitted.
    fn own(&mut self, own: &[OwnField], values: &[Variant], used: &mut usize, context: &Context<'_>) -> Own {
        let Some(view) = self.alarm.view().filter(|_| !own.is_empty()) else { return Own::new() };
        let (plant, translation) = (context.feed.plant(), context.translation);
        let mut values = own::values(own, values, &view.type_id, (plant, translation));
        let has = |name: &FieldName| {
            view.state.own.iter().flat_map(|own| own.iter()).any(|(known, _)| known == name)
        };
        values.retain(|(name, value)| !value.is_empty() || has(name));
        let mut bytes = 0;
        *used -= self.own_bytes;
        for (_, value) in &mut values {
            let len = own::len(value);
            if *used + bytes + len <= OWN_BYTES_MAX {
                bytes += len;
            } else {
                *value = Variant::Empty;
                context.feed.statistics().add(Count::Dropped, 1);
            }
        }
        *used += bytes;
        self.own_bytes = bytes;
        values
    }

    /// Takes over a remote state, with the additional fields of the alarm's type.
    fn follow(&mut self, event: ConditionEvent, own: Own) {
        self.is_suspect = false;
        let Some(view) = self.alarm.view() else { return };
        // Skip only values that do not fit the type of their field.
        let own = own.into_iter().filter(|(name, value)| {
            let set = self.alarm.set_field(name, value.clone());
            set.inspect_err(|error| tracing::debug!(%error, "a field of a mirrored alarm was not accepted"))
                .is_ok()
        });
        own.for_each(drop);
        // Acknowledged or confirmed here, but not repeated there yet. This does not apply to an alarm that became active again.
        let was_active = self.remote.active.unwrap_or(self.remote.retain);
        let active = event.enabled && event.active.unwrap_or(event.retain);
        let is_same = was_active || !active;
        let is_ack_pending = is_same && !self.seen.0 && view.state.acked && event.acked == Some(false);
        let is_confirm_pending = !self.seen.1 && view.state.confirmed && event.confirmed == Some(false);
        let is_news = event.message != self.remote.message;
        if event.acked == Some(false) && view.state.acked && !is_ack_pending {
            // Acknowledgement is required again only if the alarm becomes active again.
            if view.state.active {
                self.report(&event, false, false);
            }
            self.report(&event, true, false);
        }
        self.report(&event, active, is_news);
        if event.acked == Some(true) {
            self.operate(Method::Acknowledge, &event, |state| state.acked);
        }
        if event.confirmed == Some(true) {
            self.operate(Method::Confirm, &event, |state| state.confirmed);
        }
        if let Some(view) = self.alarm.view() {
            self.seen = (view.state.acked && !is_ack_pending, view.state.confirmed && !is_confirm_pending);
        }
        self.remote = event;
    }

    /// Reports a remote event here.
    fn report(&self, event: &ConditionEvent, is_active: bool, is_news: bool) {
        let report = ConditionReport {
            is_active,
            severity: event.severity.clamp(1, 1000),
            quality: event.quality,
            message: &event.message,
            own: Own::new(),
            is_news,
            time: event.time.unwrap_or_else(taktwerk_net::clock::wall),
        };
        if let Err(error) = self.alarm.report(report) {
            tracing::debug!(%error, "the state of a mirrored condition was not accepted");
        }
    }

    /// Repeats a remote action here.
    fn operate(
        &self,
        method: Method,
        event: &ConditionEvent,
        is_done: impl Fn(&taktwerk::alarms::State) -> bool,
    ) {
        let Some(view) = self.alarm.view().filter(|view| !is_done(&view.state)) else { return };
        let operation =
            Operation::new(method).event(view.event_id).comment(event.comment.as_str()).by(&event.user);
        if let Err(status) = self.alarm.operate(&operation) {
            tracing::debug!(condition = view.name.as_ref() as &str, %status, "the state of a mirrored condition was not accepted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A local condition for a remote one that is active and unacknowledged.
    fn relayed(server: &taktwerk::Server) -> (Relayed, ConditionEvent) {
        let boiler = server.namespace("urn:example:plant").object("Boiler").event_notifier().add().unwrap();
        let alarm = boiler.alarm("Leak").confirm().without_nodes().add().unwrap();
        let mut event = ConditionEvent::default();
        event.severity = 700;
        (event.retain, event.enabled) = (true, true);
        (event.active, event.acked, event.confirmed) = (Some(true), Some(false), Some(true));
        let mut relayed =
            Relayed { alarm, remote: event.clone(), seen: (true, true), is_suspect: false, own_bytes: 0 };
        relayed.follow(event.clone(), Own::new());
        assert!(!relayed.alarm.view().unwrap().state.acked);
        (relayed, event)
    }

    fn acknowledge(relayed: &Relayed) {
        let view = relayed.alarm.view().unwrap();
        relayed.alarm.operate(&Operation::new(Method::Acknowledge).event(view.event_id)).unwrap();
    }

    #[test]
    fn an_event_does_not_undo_an_action_of_an_operator() {
        let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let (mut relayed, event) = relayed(&server);
        acknowledge(&relayed);
        // A remote operator has added a comment in the meantime.
        let mut commented = event.clone();
        commented.message = "Look at the pump".to_owned();
        relayed.follow(commented, Own::new());
        let state = relayed.alarm.view().unwrap().state;
        assert!(state.acked && state.active, "{state:?}");
        assert!(!relayed.seen.0, "it is still to be passed on");
        // The action was repeated there and rejected.
        relayed.seen.0 = true;
        relayed.follow(event, Own::new());
        assert!(!relayed.alarm.view().unwrap().state.acked);
    }

    #[test]
    fn an_alarm_active_again_requires_acknowledgement_again() {
        let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let (mut relayed, event) = relayed(&server);
        let mut inactive = event.clone();
        inactive.active = Some(false);
        relayed.follow(inactive, Own::new());
        acknowledge(&relayed);
        relayed.follow(event, Own::new());
        assert!(!relayed.alarm.view().unwrap().state.acked);
    }
}
