//! Writes received values into Variables of a server (Part 14 §6.2.10.2).

use super::PubSubStartError;
use super::followed::Followed;
use std::sync::Arc;
use taktwerk_pubsub::config::{Configuration, DataSetReader, SubscribedDataSet};
use taktwerk_pubsub::state::PubSubState;
use taktwerk_pubsub::{DataSetMessage, ReaderIndex, Sink, SubscriberEvent};
use taktwerk_schema::{FieldTargetDataType, OverrideValueHandling, SubscribedDataSetMirrorDataType};
use taktwerk_server::space::AddressSpace;
use taktwerk_types::{DataValue, NodeId, StatusCode, UtcTime, Variant};

/// The written attribute.
const VALUE: u32 = 13;

struct Target {
    variable: Followed,
    handling: OverrideValueHandling,
    override_value: Variant,
    last_usable: Variant,
}

impl Target {
    fn write(&mut self, received: &DataValue, timestamp: Option<UtcTime>, now: UtcTime) {
        let status = received.status();
        let source = received.source_timestamp.or(timestamp).unwrap_or(now);
        match &received.value {
            Some(value) if !status.is_bad() => {
                if self.handling == OverrideValueHandling::LAST_USABLE_VALUE {
                    self.last_usable.clone_from(value);
                }
                self.variable.handle().set_with(value.clone(), status, source, now);
            }
            value => {
                let value = value.clone().unwrap_or_default();
                self.unusable(value, if status.is_bad() { status } else { StatusCode::BAD }, source, now);
            }
        }
    }

    /// Handles an unusable value: Part 14 Table 80 defines what to write instead.
    fn unusable(&mut self, value: Variant, status: StatusCode, source: UtcTime, now: UtcTime) {
        match self.handling {
            OverrideValueHandling::OVERRIDE_VALUE => {
                self.variable.handle().set_with(
                    self.override_value.clone(),
                    StatusCode::GOOD_LOCAL_OVERRIDE,
                    source,
                    now,
                );
            }
            OverrideValueHandling::LAST_USABLE_VALUE if !self.last_usable.is_empty() => {
                let status = StatusCode::UNCERTAIN_LAST_USABLE_VALUE;
                self.variable.handle().set_with(self.last_usable.clone(), status, source, now);
            }
            _ => self.variable.handle().set_with(value, status, source, now),
        }
    }
}

/// The target Variables of one reader; `None` for fields without a target.
pub(super) struct ReaderTargets {
    reader: ReaderIndex,
    targets: Vec<Option<Target>>,
}

/// Writes received values into the TargetVariables of a configuration, then passes the message to another sink.
pub struct Targets<S> {
    readers: Vec<ReaderTargets>,
    next: S,
}

impl<S> core::fmt::Debug for Targets<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Targets").field("readers", &self.readers.len()).finish_non_exhaustive()
    }
}

impl<S: Sink> Targets<S> {
    /// Resolves the Variables of a configuration.
    ///
    /// # Errors
    /// A Variable does not exist, a required address space is missing, or something is not supported.
    pub fn resolve(
        configuration: &Configuration,
        space: Option<&Arc<AddressSpace>>,
        next: S,
    ) -> Result<Self, PubSubStartError> {
        Ok(Self { readers: find_targets(configuration, space)?, next })
    }

    /// Switches to the targets of another configuration.
    pub(super) fn change(&mut self, readers: Vec<ReaderTargets>) {
        self.readers = readers;
    }
}

/// The NodeId of the Variable that mirrors a field of a reader (Part 14 §9.1.9.3).
pub(crate) fn mirror_id(
    connection: &str,
    group: &str,
    reader: &str,
    mirror: &SubscribedDataSetMirrorDataType,
    field: &str,
) -> NodeId {
    let parent = mirror.parent_node_name.as_str();
    NodeId::string(1, format!("PubSub/{connection}/{group}/{reader}/SubscribedDataSet/{parent}/{field}"))
}

pub(super) fn find_targets(
    configuration: &Configuration,
    space: Option<&Arc<AddressSpace>>,
) -> Result<Vec<ReaderTargets>, PubSubStartError> {
    let mut readers = Vec::new();
    for (connection, of) in configuration.connections.iter().enumerate() {
        for (group, of_group) in of.reader_groups.iter().enumerate() {
            for (position, reader) in of_group.readers.iter().enumerate() {
                let needs_space =
                    || space.ok_or_else(|| PubSubStartError::NoSpace { data_set: reader.name.clone() });
                let targets = match &reader.subscribed_data_set {
                    SubscribedDataSet::TargetVariables(variables) => {
                        let at =
                            |number: usize, target: &FieldTargetDataType| position_of(reader, number, target);
                        named(reader, &variables.target_variables, at, needs_space()?)?
                    }
                    SubscribedDataSet::Mirror(mirror) => {
                        let fields = reader.meta_data.fields.iter();
                        let targets: Vec<FieldTargetDataType> = fields
                            .map(|field| FieldTargetDataType {
                                target_node_id: mirror_id(
                                    &of.name,
                                    &of_group.name,
                                    &reader.name,
                                    mirror,
                                    field.name.as_str(),
                                ),
                                override_value_handling: OverrideValueHandling::DISABLED,
                                ..FieldTargetDataType::default()
                            })
                            .collect();
                        named(reader, &targets, |number, _| number, needs_space()?)?
                    }
                    _ => continue,
                };
                readers.push(ReaderTargets {
                    reader: ReaderIndex { connection, group, reader: position },
                    targets,
                });
            }
        }
    }
    Ok(readers)
}

/// The position of a target's field: by the field's id, or by the target's position if fields have no ids.
fn position_of(reader: &DataSetReader, number: usize, target: &FieldTargetDataType) -> usize {
    let at = reader.meta_data.fields.iter().position(|field| {
        target.data_set_field_id != Default::default() && field.data_set_field_id == target.data_set_field_id
    });
    at.unwrap_or(number)
}

fn named(
    reader: &DataSetReader,
    wanted: &[FieldTargetDataType],
    at: impl Fn(usize, &FieldTargetDataType) -> usize,
    space: &Arc<AddressSpace>,
) -> Result<Vec<Option<Target>>, PubSubStartError> {
    let mut targets = Vec::new();
    for (number, target) in wanted.iter().enumerate() {
        let at = at(number, target);
        let name = reader.meta_data.fields.get(at).map(|field| field.name.as_str().to_owned());
        let target = open(target, space, &reader.name, name.unwrap_or_default())?;
        targets.resize_with(targets.len().max(at + 1), || None);
        if let Some(slot) = targets.get_mut(at) {
            *slot = target;
        }
    }
    Ok(targets)
}

fn open(
    target: &FieldTargetDataType,
    space: &Arc<AddressSpace>,
    reader: &str,
    field: String,
) -> Result<Option<Target>, PubSubStartError> {
    if target.target_node_id.is_null() {
        return Ok(None);
    }
    let what = match target {
        _ if target.attribute_id != 0 && target.attribute_id != VALUE => {
            Some("an attribute other than Value")
        }
        _ if !target.receiver_index_range.is_empty() || !target.write_index_range.is_empty() => {
            Some("an index range")
        }
        _ => None,
    };
    if let Some(what) = what {
        return Err(PubSubStartError::Unsupported { data_set: reader.to_owned(), field, what });
    }
    let variable = Followed::of(space, &target.target_node_id)
        .map_err(|source| PubSubStartError::Variable { data_set: reader.to_owned(), field, source })?;
    Ok(Some(Target {
        variable,
        handling: target.override_value_handling,
        override_value: target.override_value.clone(),
        last_usable: Variant::Empty,
    }))
}

impl<S: Sink + 'static> Sink for Targets<S> {
    fn as_any_mut(&mut self) -> Option<&mut dyn core::any::Any> {
        Some(self)
    }

    fn message(&mut self, message: &DataSetMessage<'_>) {
        if let Some(of) = self.readers.iter_mut().find(|of| of.reader == message.reader) {
            let now = taktwerk_net::clock::wall();
            for field in message.fields {
                if let Some(Some(target)) = of.targets.get_mut(usize::from(field.index)) {
                    target.write(&field.value, message.timestamp, now);
                }
            }
        }
        self.next.message(message);
    }

    fn event(&mut self, event: SubscriberEvent) {
        if let SubscriberEvent::State { reader, state } = &event {
            // No more messages arrive, or the reader was disabled: the last values are outdated.
            let status = match *state {
                PubSubState::ERROR => Some(StatusCode::BAD_NO_COMMUNICATION),
                PubSubState::DISABLED | PubSubState::PAUSED => Some(StatusCode::BAD_OUT_OF_SERVICE),
                _ => None,
            };
            let of = self.readers.iter_mut().find(|of| of.reader == *reader);
            if let (Some(status), Some(of)) = (status, of) {
                let now = taktwerk_net::clock::wall();
                for target in of.targets.iter_mut().flatten() {
                    let last = target.variable.handle().get().value.unwrap_or_default();
                    target.unusable(last, status, now, now);
                }
            }
        }
        self.next.event(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Server;

    #[test]
    fn received_values_go_to_the_variable_that_has_the_id_now() {
        let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let plant = server.namespace("urn:test");
        let old = plant.variable("Level", 1.0).add().unwrap();
        let wanted = FieldTargetDataType { target_node_id: old.id().clone(), ..Default::default() };
        let mut target = open(&wanted, server.space(), "reader", "level".to_owned()).unwrap().unwrap();
        let mut receive = |value: f64| target.write(&DataValue::new(value), None, UtcTime::NULL);
        receive(2.0);
        assert_eq!(old.get().unwrap(), 2.0);
        // Between the deletion and the new Variable, values go nowhere.
        server.space().delete_node(old.id()).unwrap();
        receive(3.0);
        let new = plant.variable("Level", 4.0).add().unwrap();
        assert_eq!(new.get().unwrap(), 4.0);
        receive(5.0);
        assert_eq!(new.get().unwrap(), 5.0);
        assert_eq!(old.data_value().status(), StatusCode::BAD_NODE_ID_UNKNOWN);
    }
}
