//! HistoricalDataConfiguration of Variables (Part 11 §5.2.2), HistoricalEventConfiguration and the HistoricalEventFilter
//! Property of Objects (§5.4.2, §5.4.3). Nodes of the same kind share them.

use crate::history::NodeHistory;
use crate::history::aggregate::Configuration;
use crate::node_ix::NodeIx;
use crate::space::build::{Under, add_instance, add_under};
use crate::space::error::NodeError;
use crate::space::instance::{Walk, Wanted};
use crate::space::nodes::Nodes;
use crate::space::spec::NodeSpec;
use crate::space::view::attribute;
use taktwerk_schema::ids::{
    data_type_ids, object_ids, object_type_ids, reference_type_ids, variable_type_ids,
};
use taktwerk_schema::{EventFilter, ExceptionDeviationFormat, SimpleAttributeOperand};
use taktwerk_types::{Identifier, NodeId, QualifiedName, StatusCode, UtcTime, Variant};

/// BrowseName of HistoricalDataConfiguration instances (Part 11 §5.2.4), and the start of their ids.
const OF_DATA: &str = "HA Configuration";
/// Id of the HistoricalEventConfiguration instance.
const OF_EVENTS: &str = "HE Configuration";
/// BrowseName and id of the HistoricalEventFilter Property.
const EVENT_FILTER: &str = "HistoricalEventFilter";

/// The values of an HA Configuration with their browse paths.
fn values(history: &NodeHistory) -> Vec<(&'static str, Variant)> {
    let Configuration {
        treat_uncertain_as_bad,
        percent_data_bad,
        percent_data_good,
        use_sloped_extrapolation,
    } = history.aggregates;
    let mut values: Vec<(&str, Variant)> = vec![
        ("Stepped", history.stepped.into()),
        ("AggregateConfiguration/TreatUncertainAsBad", treat_uncertain_as_bad.into()),
        ("AggregateConfiguration/PercentDataBad", percent_data_bad.into()),
        ("AggregateConfiguration/PercentDataGood", percent_data_good.into()),
        ("AggregateConfiguration/UseSlopedExtrapolation", use_sloped_extrapolation.into()),
    ];
    let (rule, store) = (history.rule, history.store.capabilities());
    if rule.deadband > 0.0 {
        values.push(("ExceptionDeviation", rule.deadband.into()));
        let format = ExceptionDeviationFormat::ABSOLUTE_VALUE.0;
        values.push(("ExceptionDeviationFormat", format.into()));
    }
    if !rule.interval.is_zero() {
        values.push(("MinTimeInterval", (rule.interval.as_secs_f64() * 1e3).into()));
    }
    if !store.time_max.is_zero() {
        values.push(("MaxTimeStoredValues", (store.time_max.as_secs_f64() * 1e3).into()));
    }
    if store.count_max > 0 {
        values.push(("MaxCountStoredValues", store.count_max.into()));
    }
    values
}

impl Nodes {
    /// Connects a Variable with the HA Configuration of its kind.
    pub(super) fn set_configuration(
        &mut self,
        variable: NodeIx,
        history: &NodeHistory,
        now: UtcTime,
    ) -> Result<(), NodeError> {
        let configuration = self.data_configuration(history, now)?;
        let kind = NodeIx::ns0(reference_type_ids::HAS_HISTORICAL_CONFIGURATION);
        match self.forward_target(variable, kind.index) {
            Some(known) if known == configuration => return Ok(()),
            // The rule has changed.
            Some(known) if is_data_configuration(&self.id_of(known)) => {
                self.delete_reference(variable, kind, true, known, false);
            }
            // The application's own configuration stays.
            Some(_) => return Ok(()),
            None => {}
        }
        // Without an inverse reference: one configuration serves many Variables.
        self.add_reference(variable, kind, configuration, false)
    }

    /// The HA Configuration that all Variables of a kind share.
    fn data_configuration(&mut self, history: &NodeHistory, now: UtcTime) -> Result<NodeIx, NodeError> {
        let values = values(history);
        let mut name = String::from(OF_DATA);
        for (path, value) in &values {
            let short = path.rsplit('/').next().unwrap_or(path);
            name.push_str(&format!("/{short}={value}"));
        }
        let id = NodeId::string(1, name.as_str());
        if let Some(ix) = self.resolve(id.as_ref()) {
            return Ok(ix);
        }
        let spec = NodeSpec::object(id.clone(), QualifiedName::new(0, OF_DATA));
        let under = Under {
            parent: &object_ids::HISTORY_SERVER_CAPABILITIES.into(),
            reference_type: &reference_type_ids::HAS_COMPONENT.into(),
            type_definition: Some(&object_type_ids::HISTORICAL_DATA_CONFIGURATION_TYPE.into()),
        };
        let optional: Vec<&str> = values.iter().map(|(path, _)| *path).collect();
        let wanted = Wanted { optional: &optional, owner: None, now };
        for (path, _, ix) in add_instance(self, spec, under, wanted, &mut Walk::unlimited())? {
            let value = values.iter().find(|(name, _)| *name == path);
            if let (Some((_, value)), Some(slot)) = (value, self.slot_handle(ix)) {
                slot.set(value.clone(), StatusCode::GOOD, now, now);
            }
        }
        self.find(&id)
    }

    /// Adds HistoricalEventFilter and HistoricalEventConfiguration to all Objects and Views whose events are recorded:
    /// those with an EventNotifier.
    pub(super) fn describe_event_history(&mut self, now: UtcTime) -> Result<(), NodeError> {
        self.add_event_configuration(now)?;
        for ix in self.event_notifiers() {
            self.link_event_history(ix)?;
        }
        Ok(())
    }

    /// Connects an Object or View with the description of the event history, unless it has one of its own.
    pub(in crate::space) fn link_event_history(&mut self, notifier: NodeIx) -> Result<(), NodeError> {
        // Without inverse references: all notifiers share the two nodes.
        let configured = NodeIx::ns0(reference_type_ids::HAS_HISTORICAL_CONFIGURATION);
        if self.forward_target(notifier, configured.index).is_none()
            && let Some(configuration) = self.resolve(NodeId::string(1, OF_EVENTS).as_ref())
        {
            self.add_reference(notifier, configured, configuration, false)?;
        }
        if self.child(notifier, &QualifiedName::new(0, EVENT_FILTER)).is_none()
            && let Some(filter) = self.resolve(NodeId::string(1, EVENT_FILTER).as_ref())
        {
            self.add_reference(notifier, NodeIx::ns0(reference_type_ids::HAS_PROPERTY), filter, false)?;
        }
        Ok(())
    }

    fn add_event_configuration(&mut self, now: UtcTime) -> Result<(), NodeError> {
        let id = NodeId::string(1, OF_EVENTS);
        if self.resolve(id.as_ref()).is_some() {
            return Ok(());
        }
        let spec = NodeSpec::object(id.clone(), QualifiedName::new(0, OF_EVENTS));
        let under = Under {
            parent: &object_ids::HISTORY_SERVER_CAPABILITIES.into(),
            reference_type: &reference_type_ids::HAS_COMPONENT.into(),
            type_definition: Some(&object_type_ids::HISTORICAL_EVENT_CONFIGURATION_TYPE.into()),
        };
        let organizes = NodeIx::ns0(reference_type_ids::ORGANIZES);
        let wanted = Wanted { optional: &[], owner: None, now };
        for (path, _, ix) in add_instance(self, spec, under, wanted, &mut Walk::unlimited())? {
            if path == "EventTypes" {
                // Events of all types are recorded.
                self.add_reference(ix, organizes, NodeIx::ns0(object_type_ids::BASE_EVENT_TYPE), false)?;
            }
        }
        let value = Variant::from_structure(&event_filter());
        let kind = NodeId::numeric(0, data_type_ids::EVENT_FILTER);
        let name = QualifiedName::new(0, EVENT_FILTER);
        let spec = NodeSpec::variable(NodeId::string(1, EVENT_FILTER), name, kind, Some(value));
        let under = Under {
            parent: &id,
            reference_type: &reference_type_ids::HAS_PROPERTY.into(),
            type_definition: Some(&variable_type_ids::PROPERTY_TYPE.into()),
        };
        add_under(self, spec, under, None, now).map(drop)
    }
}

/// The fields that every recorded event has. Events are recorded with all their fields, which depend on their types, and
/// without a condition.
fn event_filter() -> EventFilter {
    let names =
        ["EventId", "EventType", "SourceNode", "SourceName", "Time", "ReceiveTime", "Message", "Severity"];
    let clause = |name: &str| SimpleAttributeOperand {
        type_definition_id: NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE),
        browse_path: vec![QualifiedName::new(0, name)],
        attribute_id: attribute::VALUE,
        ..Default::default()
    };
    EventFilter { select_clauses: names.into_iter().map(clause).collect(), ..Default::default() }
}

/// Whether it is the id of a shared HA Configuration.
fn is_data_configuration(id: &NodeId) -> bool {
    id.namespace_index == 1
        && matches!(&id.identifier, Identifier::String(text) if text.as_str().starts_with(OF_DATA))
}
