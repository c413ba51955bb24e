//! The alarms that sources mirror from other servers: their quality while a source has no connection, and their removal.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use taktwerk::alarms::{Alarm, ConditionReport, ConditionView};
use taktwerk_net::clock::wall;
use taktwerk_types::{NodeId, StatusCode};

/// The alarms of all sources.
#[derive(Debug, Default)]
pub struct MirroredAlarms(Mutex<HashMap<String, Shown>>);

/// The alarms of one source.
#[derive(Debug, Default)]
struct Shown {
    alarms: HashMap<NodeId, Alarm>,
    is_lost: bool,
}

impl MirroredAlarms {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Shown>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers an alarm of a source.
    pub fn add(&self, source: &str, alarm: &Alarm) {
        self.lock().entry(source.to_owned()).or_default().alarms.insert(alarm.id().clone(), alarm.clone());
    }

    /// The types of all alarms.
    #[must_use]
    pub fn types(&self) -> HashSet<NodeId> {
        let all = self.lock();
        let alarms = all.values().flat_map(|shown| shown.alarms.values());
        alarms.filter_map(|alarm| Some(alarm.view()?.type_id)).collect()
    }

    /// The types of the alarms of a source.
    #[must_use]
    pub fn types_of(&self, source: &str) -> HashSet<NodeId> {
        self.of(source).iter().filter_map(|alarm| Some(alarm.view()?.type_id)).collect()
    }

    /// The alarms of a source.
    fn of(&self, source: &str) -> Vec<Alarm> {
        let all = self.lock();
        all.get(source).into_iter().flat_map(|shown| shown.alarms.values().cloned()).collect()
    }

    /// The source has had no connection for too long: the state of its alarms is unknown (Quality, Part 9 §5.5.2). Only the first
    /// call after [`Self::found`] has an effect.
    pub fn lost(&self, source: &str) {
        match self.lock().get_mut(source) {
            Some(shown) if !shown.is_lost => shown.is_lost = true,
            _ => return,
        }
        for alarm in self.of(source) {
            let Some(view) = alarm.view().filter(|view| view.state.retain()) else { continue };
            report(&alarm, &view, StatusCode::BAD_NO_COMMUNICATION);
        }
    }

    /// The source has a connection again. The states that its server then reports have their own Quality.
    pub fn found(&self, source: &str) {
        if let Some(shown) = self.lock().get_mut(source) {
            shown.is_lost = false;
        }
    }

    /// Removes the alarms of a source except `known`: its server no longer reports them.
    pub fn end_except(&self, source: &str, known: &HashSet<NodeId>) {
        let mut gone = Vec::new();
        if let Some(shown) = self.lock().get_mut(source) {
            gone.extend(shown.alarms.extract_if(|id, _| !known.contains(id)));
        }
        // Without the lock, because clients are notified.
        gone.into_iter().for_each(|(_, alarm)| alarm.remove());
    }

    /// Removes all alarms of a source.
    pub fn end(&self, source: &str) {
        self.end_except(source, &HashSet::new());
        self.lock().remove(source);
    }
}

fn report(alarm: &Alarm, view: &ConditionView, quality: StatusCode) {
    let report = ConditionReport {
        is_active: view.state.active,
        severity: view.state.severity,
        quality,
        message: &view.state.message,
        own: Vec::new(),
        is_news: false,
        time: wall(),
    };
    if let Err(error) = alarm.report(report) {
        tracing::debug!(condition = &*view.name, %error, "the state of a mirrored alarm was not accepted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_without_a_connection_are_marked_and_ended_ones_removed() {
        let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let boiler = server.namespace("urn:example:plant").object("Boiler").event_notifier().add().unwrap();
        let (leak, fire) =
            (boiler.alarm("Leak").confirm().add().unwrap(), boiler.alarm("Fire").add().unwrap());
        let alarms = MirroredAlarms::default();
        [&leak, &fire].into_iter().for_each(|alarm| alarms.add("plc", alarm));
        [&leak, &fire].into_iter().for_each(|alarm| alarm.set_active(true, "It has tripped"));
        let quality = |alarm: &Alarm| alarm.view().unwrap().state.quality;
        alarms.lost("other");
        assert_eq!(quality(&leak), StatusCode::GOOD);
        alarms.lost("plc");
        let lost = alarm_of(&leak);
        assert_eq!((quality(&leak), lost.state.active), (StatusCode::BAD_NO_COMMUNICATION, true));
        alarms.lost("plc");
        assert_eq!(alarm_of(&leak).event_id, lost.event_id, "it is told once");
        alarms.found("plc");
        alarms.end_except("plc", &HashSet::from([fire.id().clone()]));
        assert!(leak.view().is_none() && alarm_of(&fire).state.active);
        alarms.end("plc");
        assert!(fire.view().is_none());
        // Its name can be used again.
        assert!(!alarm_of(&boiler.alarm("Leak").add().unwrap()).state.active);
    }

    fn alarm_of(alarm: &Alarm) -> ConditionView {
        alarm.view().unwrap()
    }
}
