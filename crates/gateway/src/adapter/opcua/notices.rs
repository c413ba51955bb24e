//! Forwards events of the other server: they are raised here at the node that mirrors their source. For conditions see
//! `conditions`.

use super::bases::Bases;
use super::budget::Budget;
use super::conditions::{Conditions, Context, Next};
use super::own::{self, OwnField, OwnFields};
use super::translation::Translation;
use super::types;
use crate::feed::Feed;
use crate::opcua::address;
use std::collections::{HashMap, HashSet};
use taktwerk::Client;
use taktwerk::client::{Error, Item, SubscriptionHandle};
use taktwerk_client::EventQuery;
use taktwerk_client::condition::calls;
use taktwerk_schema::ids::object_type_ids;
use taktwerk_server::NewEvent;
use taktwerk_types::{NodeId, StatusCode, UaString, Variant};

/// The node that reports all events of a server.
const SERVER: NodeId = NodeId::numeric(0, 2253);
/// The forwarded fields of an event.
const FIELDS: [&str; 8] =
    ["EventType", "EventId", "SourceNode", "SourceName", "Time", "Message", "Severity", "ConditionId"];
/// Most event types requested per connection.
const KINDS_MAX: usize = 1000;

/// The local node of a remote one.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Its folders and name.
    pub(super) path: Vec<String>,
    pub(super) is_object: bool,
}

/// State of the other server's events. It survives the connection.
#[derive(Debug, Default)]
pub(super) struct Notices {
    /// By address.
    places: HashMap<String, Place>,
    bases: Bases,
    conditions: Conditions,
    /// Additional fields selected after [`FIELDS`].
    own: Vec<OwnField>,
    /// Unknown event types that were requested on this connection, and those still to request.
    asked: HashSet<NodeId>,
    unknown: HashSet<NodeId>,
    /// A refresh was rejected because another one is running.
    is_refresh_due: bool,
}

/// The monitored items that report events.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Items {
    events: Option<u32>,
    conditions: Option<u32>,
}

impl Notices {
    /// Begins a new exploration: nodes that the server no longer has are forgotten.
    pub(super) fn begin_places(&mut self) {
        self.places.clear();
    }

    pub(super) fn place(&mut self, address: String, place: Place) {
        self.places.insert(address, place);
    }

    /// Monitors events on a new connection. A server need not support them.
    pub(super) async fn subscribe(
        &mut self,
        subscription: &SubscriptionHandle,
        own: OwnFields,
    ) -> Result<Items, Error> {
        // Namespace indexes may differ from the previous connection.
        self.bases = Bases::default();
        self.conditions.begin();
        (self.asked, self.unknown, self.is_refresh_due) = Default::default();
        let events = self.monitor_events(subscription, own.events).await?;
        let conditions = match events {
            Some(_) => self.monitor_conditions(subscription, own.alarms).await?,
            None => None,
        };
        Ok(Items { events, conditions })
    }

    /// Monitors events with additional fields, or else without: a server may reject unknown fields.
    async fn monitor_events(
        &mut self,
        subscription: &SubscriptionHandle,
        own: Vec<OwnField>,
    ) -> Result<Option<u32>, Error> {
        for own in [own, Vec::new()] {
            let query = FIELDS.iter().fold(EventQuery::new(), |query, name| query.select(name));
            let item = Item::events(SERVER, own::select(query, &own));
            if let Some(item) = known(subscription.monitor_item(item).await)? {
                self.own = own;
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// Monitors conditions with the additional fields of their types, or only those of standard types, or none.
    async fn monitor_conditions(
        &mut self,
        subscription: &SubscriptionHandle,
        own: Vec<OwnField>,
    ) -> Result<Option<u32>, Error> {
        let all = own::standard().into_iter().chain(own.iter().cloned()).collect();
        for own in [all, own, Vec::new()] {
            let item = Item::events(SERVER, Conditions::query(&own));
            if let Some(item) = known(subscription.monitor_item(item).await)? {
                self.conditions.asks_for(own);
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// Requests a refresh of the conditions that operators should see.
    pub(super) async fn refresh(
        &mut self,
        client: &Client,
        subscription: &SubscriptionHandle,
        (feed, translation): (&Feed, &Translation),
    ) -> Result<(), Error> {
        let Some(id) = subscription.server_id().await? else { return Ok(()) };
        let is_refreshed = match client.conditions().call("refresh", calls::condition_refresh(id)).await {
            Ok(()) => true,
            Err(error) if error.status() == StatusCode::BAD_REFRESH_IN_PROGRESS => {
                // The running refresh may be older than an item.
                self.is_refresh_due = true;
                return Ok(());
            }
            // Without conditions there is nothing to refresh.
            Err(Error::Status { .. }) => false,
            Err(error) => return Err(error),
        };
        let namespaces = client.namespaces();
        let context = Context { places: &self.places, namespaces: &namespaces, feed, translation };
        self.conditions.end_waiting(is_refreshed, &context);
        Ok(())
    }

    /// Processes an update of an item. Returns whether the conditions must be refreshed.
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
            let has_ended = matches!(fields.first(), Some(Variant::NodeId(kind))
                if kind.ns0() == Some(object_type_ids::REFRESH_END_EVENT_TYPE));
            if has_ended {
                return Ok(core::mem::take(&mut self.is_refresh_due));
            }
            self.raise(fields, client, &namespaces, (feed, translation)).await?;
        } else if items.conditions == Some(item) {
            let context = Context { places: &self.places, namespaces: &namespaces, feed, translation };
            return Ok(self.conditions.take(fields, &context) == Next::Refresh);
        }
        Ok(false)
    }

    /// Whether there are event or alarm types to read.
    pub(super) fn has_unknown(&self) -> bool {
        !self.unknown.is_empty() || self.conditions.has_unknown()
    }

    /// Reads unknown types, and monitors events with their additional fields. Returns whether the conditions must be refreshed.
    pub(super) async fn learn(
        &mut self,
        items: &mut Items,
        client: &Client,
        subscription: &SubscriptionHandle,
        (feed, translation): (&Feed, &mut Translation),
        (target, mut budget): (&str, Budget),
    ) -> Result<bool, Error> {
        let (plant, source) = (feed.plant(), &feed.settings().name);
        let before = OwnFields::of(plant, source, translation);
        let kinds = self.conditions.take_unknown();
        let events: Vec<NodeId> = core::mem::take(&mut self.unknown).into_iter().collect();
        let learning = plant.catalogue().learning();
        let seeds = kinds.iter().chain(&events).cloned();
        // Without its type, the event is raised with a supertype.
        if let Err(fault) = types::learn(client, target, plant, seeds, &mut budget).await {
            feed.failed(&fault);
        }
        let namespaces = client.namespaces();
        *translation = Translation::new(&namespaces, plant).with_structures(plant);
        let here = kinds.iter().chain(&events).filter_map(|kind| translation.here(kind));
        plant.catalogue().use_more_types(source, here.filter(|here| here.namespace_index != 0));
        drop(learning);
        self.conditions.learnt(kinds, (client, &mut self.bases), (plant, translation)).await?;
        let own = OwnFields::of(plant, source, translation);
        let has_conditions = own.alarms != before.alarms;
        if own.events != before.events {
            let old = items.events.take();
            items.events = self.monitor_events(subscription, own.events).await?;
            subscription.unmonitor(old).await?;
        }
        if has_conditions {
            let old = items.conditions.take();
            items.conditions = self.monitor_conditions(subscription, own.alarms).await?;
            subscription.unmonitor(old).await?;
        } else {
            // They have all their fields.
            let context = Context { places: &self.places, namespaces: &namespaces, feed, translation };
            self.conditions.take_waiting(&context);
        }
        Ok(has_conditions)
    }

    /// Repeats operators' local actions since the last call at the other server.
    pub(super) async fn pass_on(&mut self, client: &Client, feed: &Feed, target: &str) -> Result<(), Error> {
        self.conditions.pass_on(client, feed, target).await
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
        // The other item reports conditions.
        let is_condition = matches!(condition, Variant::NodeId(id) if !id.is_null());
        let (Variant::NodeId(kind), Variant::NodeId(source), false) = (kind, source, is_condition) else {
            return Ok(());
        };
        let Some(place) = self.places.get(&address(source, namespaces)) else { return Ok(()) };
        let Some(node) = feed.plant().notifier(&place.path, place.is_object) else { return Ok(()) };
        let here = translation.here(kind);
        let mut base = match here.filter(|here| feed.plant().space().contains(here)) {
            Some(here) => here,
            None => {
                if self.asked.len() < KINDS_MAX && self.asked.insert((**kind).clone()) {
                    self.unknown.insert((**kind).clone());
                }
                self.bases.of(client, kind, &mut Budget::small()).await?
            }
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
            // Fields that have a meaning only on the other server are skipped.
            if feed.plant().space().event_field(&kind_here, &field.name).is_some()
                && let Some(value) = translation.argument_here(value.clone())
            {
                event = event.field(field.name.clone(), value);
            }
        }
        feed.plant().raise(event);
        Ok(())
    }
}

/// The number of an item; `None` if the server rejects it.
pub(super) fn known(item: Result<u32, Error>) -> Result<Option<u32>, Error> {
    match item {
        Ok(item) => Ok(Some(item)),
        Err(error @ Error::Status { .. }) => {
            let status: StatusCode = error.status();
            tracing::debug!(%status, "the server does not support events");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server with other nodes on each connection.
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
}
