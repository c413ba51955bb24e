//! Events and alarms of the other server: raised again here, and what operators do here is done there.
//!
//! An event comes from the node that mirrors its source. A condition becomes a condition of this server, which keeps its
//! state for those who come later; Acknowledge and Confirm are passed on. Shelving and suppressing stay here: they say what
//! the operators of this server want to see.

use super::bases::Bases;
use super::budget::Budget;
use super::translation::Translation;
use crate::fault::Fault;
use crate::feed::Feed;
use crate::opcua::address;
use crate::plant::Plant;
use std::collections::HashMap;
use taktwerk::alarms::{Alarm, Method, Operation};
use taktwerk::client::{Error, Item, Subscription, SubscriptionHandle};
use taktwerk::{Client, Node};
use taktwerk_client::EventQuery;
use taktwerk_client::condition::{ConditionEvent, calls};
use taktwerk_schema::ids::object_type_ids;
use taktwerk_server::{FieldName, NewEvent};
use taktwerk_types::{NodeId, QualifiedName, StatusCode, UaString, Variant};

/// Where all events of a server can be seen.
const SERVER: NodeId = NodeId::numeric(0, 2253);
/// The fields of an event that are passed on.
const FIELDS: [&str; 8] =
    ["EventType", "EventId", "SourceNode", "SourceName", "Time", "Message", "Severity", "ConditionId"];
/// Fields of own types of events that are passed on.
const OWN_MAX: usize = 200;
/// Conditions of one source.
const CONDITIONS_MAX: usize = 100_000;

/// A field that a type of events of the other server declares.
#[derive(Debug, Clone)]
pub(super) struct OwnField {
    /// The type and the name there.
    there: (NodeId, QualifiedName),
    name: FieldName,
}

/// The fields of the types of events that a source uses.
pub(super) fn own_fields(plant: &Plant, source: &str, translation: &Translation) -> Vec<OwnField> {
    let field = |(kind, name): (NodeId, QualifiedName)| {
        let field = FieldName::new(core::slice::from_ref(&name));
        // Other ObjectTypes have members, too.
        plant.space().event_field(&kind, &field)?;
        let there = (translation.there(&kind)?, translation.name_there(&name)?);
        Some(OwnField { there, name: field })
    };
    plant.catalogue().members(source).into_iter().filter_map(field).take(OWN_MAX).collect()
}

/// The node here that stands for one there.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Its folders and its name.
    pub(super) path: Vec<String>,
    pub(super) is_object: bool,
}

/// A condition that is passed on.
#[derive(Debug)]
struct Relayed {
    alarm: Alarm,
    /// What the other server said last.
    remote: ConditionEvent,
    /// Whether it was acknowledged and confirmed here when it was looked at last.
    seen: (bool, bool),
    /// A refresh has begun and has not told of it yet.
    is_suspect: bool,
}

/// What is known of the other server's events. It outlives connections.
#[derive(Debug, Default)]
pub(super) struct Notices {
    /// By address.
    places: HashMap<String, Place>,
    bases: Bases,
    conditions: HashMap<String, Relayed>,
    /// What is asked for of events behind [`FIELDS`].
    own: Vec<OwnField>,
    /// The number of changes of alarms here when they were looked at last.
    changes: u64,
}

/// The items of a subscription that events come by.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Items {
    events: Option<u32>,
    conditions: Option<u32>,
}

impl Notices {
    /// The nodes are looked at again: those that the server does not have any more are forgotten.
    pub(super) fn begin_places(&mut self) {
        self.places.clear();
    }

    pub(super) fn place(&mut self, address: String, place: Place) {
        self.places.insert(address, place);
    }

    /// Asks for events. A server need not have any.
    pub(super) async fn subscribe(
        &mut self,
        subscription: &Subscription,
        own: Vec<OwnField>,
    ) -> Result<Items, Error> {
        // Namespace indexes may be others than on the last connection.
        self.bases = Bases::default();
        let query = || FIELDS.iter().fold(EventQuery::new(), |query, name| query.select(name));
        let with = |query: EventQuery, field: &OwnField| {
            query.select_of(&field.there.0, vec![field.there.1.clone()])
        };
        let own_query = own.iter().fold(query(), with);
        let mut events = known(subscription.monitor_item(Item::events(SERVER, own_query)).await)?;
        self.own = own;
        if events.is_none() && !self.own.is_empty() {
            // A server may refuse what it does not know.
            self.own.clear();
            events = known(subscription.monitor_item(Item::events(SERVER, query())).await)?;
        }
        let query = ConditionEvent::query();
        let conditions = match events {
            Some(_) => known(subscription.monitor_item(Item::events(SERVER, query)).await)?,
            None => None,
        };
        Ok(Items { events, conditions })
    }

    /// Asks for the conditions that operators should see now.
    pub(super) async fn refresh(
        &self,
        client: &Client,
        subscription: &SubscriptionHandle,
    ) -> Result<(), Error> {
        let Some(id) = subscription.server_id().await? else { return Ok(()) };
        match client.conditions().call("refresh", calls::condition_refresh(id)).await {
            // Without conditions there is nothing to refresh, and a refresh that goes on will end.
            Err(Error::Status { .. }) => Ok(()),
            other => other,
        }
    }

    /// Takes what an item gave. Whether the conditions have to be asked for again.
    pub(super) async fn take(
        &mut self,
        items: Items,
        item: u32,
        fields: &[Variant],
        client: &Client,
        (feed, translation): (&Feed, &Translation),
    ) -> Result<bool, Error> {
        let namespaces = client.namespaces();
        if items.events == Some(item) {
            self.raise(fields, client, &namespaces, (feed, translation)).await?;
        } else if items.conditions == Some(item) {
            return Ok(self.relay(ConditionEvent::read(fields), &namespaces, feed));
        }
        Ok(false)
    }

    async fn raise(
        &mut self,
        fields: &[Variant],
        client: &Client,
        namespaces: &[UaString],
        (feed, translation): (&Feed, &Translation),
    ) -> Result<(), Error> {
        let Some((all, own)) = fields.split_first_chunk::<{ FIELDS.len() }>() else { return Ok(()) };
        let [kind, id, source, source_name, time, message, severity, condition] = all;
        // Conditions come by the other item.
        let is_condition = matches!(condition, Variant::NodeId(id) if !id.is_null());
        let (Variant::NodeId(kind), Variant::NodeId(source), false) = (kind, source, is_condition) else {
            return Ok(());
        };
        let Some(place) = self.places.get(&address(source, namespaces)) else { return Ok(()) };
        let Some(node) = feed.plant().notifier(&place.path, place.is_object) else { return Ok(()) };
        let here = translation.here(kind);
        let mut base = match here.filter(|here| feed.plant().space().contains(here)) {
            Some(here) => here,
            None => self.bases.of(client, kind, &mut Budget::small()).await?,
        };
        if base.is_null() {
            base = NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE);
        }
        let kind_here = base.clone();
        let mut event = NewEvent::new(base, node.id().clone());
        if let Variant::ByteString(id) = id {
            event = event.event_id(id.clone());
        }
        if let Variant::String(name) = source_name {
            event = event.source_name(name.clone());
        }
        if let Variant::DateTime(time) = time {
            event = event.time(*time);
        }
        if let Variant::LocalizedText(text) = message {
            event = event.message((**text).clone());
        }
        if let Variant::UInt16(number) = severity {
            event = event.severity(*number);
        }
        for (field, value) in self.own.iter().zip(own).filter(|(_, value)| !value.is_empty()) {
            // What means something on the other server only is left out.
            if feed.plant().space().event_field(&kind_here, &field.name).is_some()
                && let Some(value) = translation.argument_here(value.clone())
            {
                event = event.field(field.name.clone(), value);
            }
        }
        feed.plant().raise(event);
        Ok(())
    }

    /// Takes over the state of a condition. Whether the conditions have to be asked for again.
    fn relay(&mut self, event: ConditionEvent, namespaces: &[UaString], feed: &Feed) -> bool {
        match event.event_type.ns0() {
            Some(object_type_ids::REFRESH_START_EVENT_TYPE) => {
                self.conditions.values_mut().for_each(|relayed| relayed.is_suspect = true);
                return false;
            }
            Some(object_type_ids::REFRESH_END_EVENT_TYPE) => {
                for relayed in self.conditions.values_mut().filter(|relayed| relayed.is_suspect) {
                    relayed.is_suspect = false;
                    // Operators there are done with it.
                    let mut done = relayed.remote.clone();
                    (done.active, done.retain) = (Some(false), false);
                    (done.acked, done.confirmed) = (done.acked.map(|_| true), done.confirmed.map(|_| true));
                    relayed.follow(done);
                }
                return false;
            }
            Some(object_type_ids::REFRESH_REQUIRED_EVENT_TYPE) => return true,
            _ => {}
        }
        // Branches are earlier states, which the other server keeps.
        if event.condition_id.is_null() || !event.branch_id.is_null() {
            return false;
        }
        let key = address(&event.condition_id, namespaces);
        if let Some(relayed) = self.conditions.get_mut(&key) {
            relayed.follow(event);
            return false;
        }
        let Some(place) = self.places.get(&address(&event.source, namespaces)) else { return false };
        if !event.retain || self.conditions.len() >= CONDITIONS_MAX {
            return false;
        }
        let Some(node) = feed.plant().notifier(&place.path, place.is_object) else { return false };
        let name = if event.name.is_empty() { "Condition" } else { event.name.as_str() };
        let (name, known) = self.own_name(&node, name, &key);
        let mut builder = node.alarm(&name).severity(event.severity.max(1)).without_nodes();
        if event.acked.is_none() {
            builder = builder.no_acknowledgement();
        }
        if event.confirmed.is_some() {
            builder = builder.confirm();
        }
        let alarm = known.map_or_else(|| builder.add(), Ok);
        match alarm {
            Ok(alarm) => {
                let mut relayed =
                    Relayed { alarm, remote: event.clone(), seen: (true, true), is_suspect: false };
                relayed.follow(event);
                self.conditions.insert(key, relayed);
            }
            Err(error) => feed.failed(&Fault::other("conditions", format!("{name}: {error}"))),
        }
        false
    }

    /// The name of the condition here, and its alarm if it is there already, because the configuration was applied anew.
    /// Several conditions of a source may have one name: each but the first has its address behind the name.
    fn own_name(&self, node: &Node, name: &str, key: &str) -> (String, Option<Alarm>) {
        let full = format!("{name} ({key})");
        if let Some(alarm) = node.alarm_named(&full) {
            return (full, Some(alarm));
        }
        let alarm = node.alarm_named(name);
        let is_taken = alarm
            .as_ref()
            .is_some_and(|alarm| self.conditions.values().any(|relayed| relayed.alarm.id() == alarm.id()));
        if is_taken { (full, None) } else { (name.to_owned(), alarm) }
    }

    /// Passes on what operators have done here since the last call.
    pub(super) async fn pass_on(&mut self, client: &Client, feed: &Feed, target: &str) -> Result<(), Error> {
        let changes = feed.plant().alarm_changes();
        if self.conditions.is_empty() || changes == self.changes {
            return Ok(());
        }
        self.changes = changes;
        for relayed in self.conditions.values_mut() {
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
                    // What was acknowledged waits to be confirmed (Part 9 Annex B.1.2). If it does not wait here any more,
                    // the operator has done both since the last look.
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
                    let problem = format!("{} refuses what an operator did: {error}", view.name);
                    feed.failed(&Fault::other(target, problem));
                    // The state there is what counts.
                    let remote = relayed.remote.clone();
                    relayed.follow(remote);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Relayed {
    /// Takes over a state of the other server.
    fn follow(&mut self, event: ConditionEvent) {
        self.is_suspect = false;
        let Some(view) = self.alarm.view() else { return };
        // Acknowledged or confirmed here, and not passed on yet. What became active anew is not what was acknowledged.
        let was_active = self.remote.active.unwrap_or(self.remote.retain);
        let active = event.enabled && event.active.unwrap_or(event.retain);
        let is_same = was_active || !active;
        let is_ack_pending = is_same && !self.seen.0 && view.state.acked && event.acked == Some(false);
        let is_confirm_pending = !self.seen.1 && view.state.confirmed && event.confirmed == Some(false);
        let set = |active| self.alarm.set_active_with(active, event.severity, &event.message);
        if event.acked == Some(false) && view.state.acked && !is_ack_pending {
            // Only what becomes active anew has to be acknowledged anew.
            if view.state.active {
                set(false);
            }
            set(true);
        }
        set(active);
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

    /// Does here what somebody did there.
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
            tracing::debug!(condition = view.name.as_ref() as &str, %status, "the state of a condition is not taken over");
        }
    }
}

/// The number of an item, if the server has what is to be monitored.
fn known(item: Result<u32, Error>) -> Result<Option<u32>, Error> {
    match item {
        Ok(item) => Ok(Some(item)),
        Err(error @ Error::Status { .. }) => {
            let status: StatusCode = error.status();
            tracing::debug!(%status, "the server has no events");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A condition here of one there that is active and acknowledged by nobody.
    fn relayed(server: &taktwerk::Server) -> (Relayed, ConditionEvent) {
        let boiler = server.namespace("urn:example:plant").object("Boiler").event_notifier().add().unwrap();
        let alarm = boiler.alarm("Leak").confirm().without_nodes().add().unwrap();
        let mut event = ConditionEvent::default();
        event.severity = 700;
        (event.retain, event.enabled) = (true, true);
        (event.active, event.acked, event.confirmed) = (Some(true), Some(false), Some(true));
        let mut relayed = Relayed { alarm, remote: event.clone(), seen: (true, true), is_suspect: false };
        relayed.follow(event.clone());
        assert!(!relayed.alarm.view().unwrap().state.acked);
        (relayed, event)
    }

    fn acknowledge(relayed: &Relayed) {
        let view = relayed.alarm.view().unwrap();
        relayed.alarm.operate(&Operation::new(Method::Acknowledge).event(view.event_id)).unwrap();
    }

    #[test]
    fn an_event_does_not_undo_what_an_operator_has_just_done() {
        let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let (mut relayed, event) = relayed(&server);
        acknowledge(&relayed);
        // Somebody there has commented on it meanwhile.
        let mut commented = event.clone();
        commented.message = "Look at the pump".to_owned();
        relayed.follow(commented);
        let state = relayed.alarm.view().unwrap().state;
        assert!(state.acked && state.active, "{state:?}");
        assert!(!relayed.seen.0, "it is still to be passed on");
        // It has passed on what was done, and refuses it.
        relayed.seen.0 = true;
        relayed.follow(event);
        assert!(!relayed.alarm.view().unwrap().state.acked);
    }

    /// A server that has other nodes on each connection.
    #[test]
    fn places_are_those_of_the_last_connection() {
        let mut notices = Notices::default();
        for connection in 0..10 {
            notices.begin_places();
            for node in 0..5 {
                let place = Place { path: vec![format!("{connection}/{node}")], is_object: true };
                notices.place(format!("ns=2;s={connection}/{node}"), place);
            }
        }
        assert_eq!(notices.places.len(), 5);
        assert!(notices.places.contains_key("ns=2;s=9/4"));
    }

    #[test]
    fn what_becomes_active_anew_is_acknowledged_anew() {
        let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let (mut relayed, event) = relayed(&server);
        let mut inactive = event.clone();
        inactive.active = Some(false);
        relayed.follow(inactive);
        acknowledge(&relayed);
        relayed.follow(event);
        assert!(!relayed.alarm.view().unwrap().state.acked);
    }
}
