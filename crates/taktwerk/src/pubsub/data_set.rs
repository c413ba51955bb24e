//! Published data sets: fields, and the source of their values.

use super::PubSubStartError;
use super::followed::Followed;
use crate::space::Variable;
use crate::value::Value;
use core::fmt;
use std::sync::Arc;
use taktwerk_pubsub::config::{Configuration, DataSetSource, PublishedDataSet};
use taktwerk_pubsub::{FieldWriter, InPlace, Now, Values};
use taktwerk_schema::{FieldMetaData, PublishedVariableDataType};
use taktwerk_server::space::AddressSpace;
use taktwerk_types::{DataValue, NodeId, StatusCode, Variant};

/// The published attribute.
const VALUE: u32 = 13;

/// Fills in the fields of a data set; false if there is nothing to send in this cycle.
pub(super) type Fill = Box<dyn FnMut(&mut [DataValue]) -> bool + Send>;

/// Writes the fields of a data set into its message; false if there is nothing to send in this cycle.
pub(super) type Write = Box<dyn FnMut(&mut FieldWriter<'_>) -> bool + Send>;

/// The source of a data set's values.
pub(super) enum Source {
    /// Variables of a server: a snapshot of their values, without locks and without allocation.
    Variables(Vec<Published>),
    Application(Fill),
    Writer(Write),
    /// No source: a heartbeat, or events and Actions, which are not sampled.
    Nothing,
}

/// A published Variable.
pub(super) struct Published {
    variable: Followed,
    /// Sent in place of a bad value (Part 14 §6.2.3.7).
    substitute: Variant,
}

impl Published {
    fn new(variable: Followed) -> Self {
        Self { variable, substitute: Variant::Empty }
    }

    fn read(&mut self) -> DataValue {
        let value = self.variable.handle().get();
        if value.status().is_bad() && !self.substitute.is_empty() {
            let status = Some(StatusCode::UNCERTAIN_SUBSTITUTE_VALUE);
            return DataValue { value: Some(self.substitute.clone()), status, ..value };
        }
        value
    }
}

/// The sources of all data sets of a configuration, in its order.
pub(super) struct Sources(Vec<(String, Source)>);

impl Values for Sources {
    fn sample(&mut self, data_set: usize, fields: &mut [DataValue], _: Now) -> bool {
        match self.0.get_mut(data_set) {
            Some((_, Source::Variables(variables))) => {
                for (field, variable) in fields.iter_mut().zip(variables) {
                    *field = variable.read();
                }
                true
            }
            Some((_, Source::Application(fill))) => fill(fields),
            Some((_, Source::Writer(write))) => write(&mut FieldWriter::values(fields)),
            Some((_, Source::Nothing)) | None => false,
        }
    }

    fn write(&mut self, data_set: usize, fields: &mut FieldWriter<'_>, _: Now) -> InPlace {
        match self.0.get_mut(data_set) {
            Some((_, Source::Variables(variables))) => {
                variables.iter_mut().for_each(|variable| fields.value(&variable.read()));
                InPlace::Written
            }
            Some((_, Source::Writer(write))) => match write(fields) {
                true => InPlace::Written,
                false => InPlace::NothingToSend,
            },
            _ => InPlace::NotOffered,
        }
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn core::any::Any> {
        Some(self)
    }
}

/// The source of a data set in a new configuration.
pub(super) enum Planned {
    New(Source),
    /// The same source as the data set of that name had before.
    Kept,
}

impl Sources {
    /// Switches to the sources of another configuration.
    pub(super) fn change(&mut self, plan: Vec<(String, Planned)>) {
        let mut old = core::mem::take(&mut self.0);
        self.0 = plan
            .into_iter()
            .map(|(name, planned)| {
                let source = match planned {
                    Planned::New(source) => source,
                    Planned::Kept => {
                        let at = old.iter().position(|(known, _)| *known == name);
                        at.map_or(Source::Nothing, |at| old.swap_remove(at).1)
                    }
                };
                (name, source)
            })
            .collect();
    }
}

/// Determines the sources of a following configuration. `given` names the data sets whose values the application supplies.
pub(super) fn plan(
    old: &Configuration,
    new: &Configuration,
    given: &[String],
    space: Option<&Arc<AddressSpace>>,
) -> Result<Vec<(String, Planned)>, PubSubStartError> {
    let mut plan = Vec::new();
    for data_set in &new.data_sets {
        let name = || data_set.name.clone();
        let before = old.data_set(&data_set.name);
        let planned = match &data_set.source {
            _ if given.contains(&data_set.name) => Planned::Kept,
            source if before.is_some_and(|before| before.source == *source) => Planned::Kept,
            DataSetSource::Items(items) => {
                let space = space.ok_or_else(|| PubSubStartError::NoSpace { data_set: name() })?;
                Planned::New(variables(data_set, items, space)?)
            }
            DataSetSource::Custom { .. } => return Err(PubSubStartError::NoValues { data_set: name() }),
            _ => Planned::New(Source::Nothing),
        };
        plan.push((name(), planned));
    }
    Ok(plan)
}

/// Settings of a published data set.
#[must_use = "nothing is published before it is given to a publisher"]
pub struct DataSet {
    pub(super) name: String,
    pub(super) fields: Vec<FieldMetaData>,
    variables: Vec<Followed>,
    /// Supplied by the application; without it, the Variables are published.
    given: Option<Source>,
}

impl fmt::Debug for DataSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataSet").field("name", &self.name).field("fields", &self.fields.len()).finish()
    }
}

impl DataSet {
    /// A data set without fields.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), fields: Vec::new(), variables: Vec::new(), given: None }
    }

    /// A data set whose fields the application fills in for each cycle. `fill` is called on the timer thread and must not block.
    /// The slice initially contains the values of the last cycle.
    pub fn from_fn(
        name: &str,
        fields: impl IntoIterator<Item = FieldMetaData>,
        mut fill: impl FnMut(&mut [DataValue]) + Send + 'static,
    ) -> Self {
        let fill: Fill = Box::new(move |values| {
            fill(values);
            true
        });
        let given = Some(Source::Application(fill));
        Self { fields: fields.into_iter().collect(), given, ..Self::new(name) }
    }

    /// A data set whose fields the application writes directly into the message in each cycle, all of them and in order. This is
    /// the most efficient way for thousands of numbers ([`FieldWriter::numbers`]). `write` is called on the timer thread and must
    /// not block; occasionally it is called twice per cycle.
    pub fn from_writer(
        name: &str,
        fields: impl IntoIterator<Item = FieldMetaData>,
        mut write: impl FnMut(&mut FieldWriter<'_>) + Send + 'static,
    ) -> Self {
        let write: Write = Box::new(move |fields| {
            write(fields);
            true
        });
        let given = Some(Source::Writer(write));
        Self { fields: fields.into_iter().collect(), given, ..Self::new(name) }
    }

    /// Adds a Variable of a server as a field.
    pub fn variable<T: Value>(mut self, name: &str, variable: &Variable<T>) -> Self {
        let built_in = variable.data_value().value.as_ref().and_then(Variant::built_in_type);
        let built_in_type = built_in.map_or(T::DATA_TYPE as u8, |kind| kind.number());
        self.fields.push(FieldMetaData {
            name: name.into(),
            built_in_type,
            data_type: NodeId::numeric(0, T::DATA_TYPE),
            value_rank: T::VALUE_RANK,
            ..FieldMetaData::default()
        });
        self.variables.push(Followed::by(&variable.node().space, variable.id(), variable.handle()));
        self
    }

    pub(super) fn into_parts(self) -> (PublishedDataSet, Source) {
        let variables = self.variables.into_iter().map(Published::new);
        let source = self.given.unwrap_or_else(|| Source::Variables(variables.collect()));
        (PublishedDataSet::new(&self.name, self.fields), source)
    }
}

/// Determines the sources of data sets that the application does not supply.
pub(super) fn resolve(
    configuration: &Configuration,
    mut given: Vec<(String, Source)>,
    space: Option<&Arc<AddressSpace>>,
) -> Result<Sources, PubSubStartError> {
    let mut sources = Vec::new();
    for data_set in &configuration.data_sets {
        if let Some(at) = given.iter().position(|(name, _)| *name == data_set.name) {
            sources.push(given.swap_remove(at));
            continue;
        }
        let source = match &data_set.source {
            DataSetSource::Items(items) => {
                let space =
                    space.ok_or_else(|| PubSubStartError::NoSpace { data_set: data_set.name.clone() })?;
                variables(data_set, items, space)?
            }
            DataSetSource::Custom { .. } => {
                return Err(PubSubStartError::NoValues { data_set: data_set.name.clone() });
            }
            _ => Source::Nothing,
        };
        sources.push((data_set.name.clone(), source));
    }
    Ok(Sources(sources))
}

fn variables(
    data_set: &PublishedDataSet,
    items: &[PublishedVariableDataType],
    space: &Arc<AddressSpace>,
) -> Result<Source, PubSubStartError> {
    let mut variables = Vec::new();
    for (item, field) in items.iter().zip(&data_set.meta_data.fields) {
        let named = || (data_set.name.clone(), field.name.as_str().to_owned());
        let unsupported = |what| {
            let (data_set, field) = named();
            Err(PubSubStartError::Unsupported { data_set, field, what })
        };
        if item.attribute_id != 0 && item.attribute_id != VALUE {
            return unsupported("an attribute other than Value");
        }
        if !item.index_range.is_empty() {
            return unsupported("an index range");
        }
        if item.deadband_type != 0 {
            return unsupported("a deadband");
        }
        let variable = Followed::of(space, &item.published_variable).map_err(|source| {
            let (data_set, field) = named();
            PubSubStartError::Variable { data_set, field, source }
        })?;
        variables.push(Published { variable, substitute: item.substitute_value.clone() });
    }
    Ok(Source::Variables(variables))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Server;

    /// A reload replaces the Variables of a NodeSet: data sets of a configuration and of an application follow.
    #[test]
    fn data_sets_read_the_variable_that_has_the_id_now() {
        let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let plant = server.namespace("urn:test");
        let old = plant.variable("Level", 1.0).add().unwrap();
        let (published, of_application) = DataSet::new("a").variable("Level", &old).into_parts();
        let item = PublishedVariableDataType { published_variable: old.id().clone(), ..Default::default() };
        let of_configuration = variables(&published, &[item], server.space()).unwrap();
        let mut sources = Sources(vec![("a".to_owned(), of_application), ("b".to_owned(), of_configuration)]);
        let mut sampled = || {
            [0, 1].map(|data_set| {
                let mut fields = [DataValue::default()];
                assert!(sources.sample(data_set, &mut fields, Now::default()));
                let [field] = fields;
                (field.value.clone(), field.status())
            })
        };
        let good = |value: f64| (Some(Variant::from(value)), StatusCode::GOOD);
        assert_eq!(sampled(), [good(1.0), good(1.0)]);
        server.space().delete_node(old.id()).unwrap();
        assert_eq!(sampled().map(|(_, status)| status), [StatusCode::BAD_NODE_ID_UNKNOWN; 2]);
        let new = plant.variable("Level", 2.0).add().unwrap();
        assert_eq!(sampled(), [good(2.0), good(2.0)]);
        new.set(3.0);
        old.set(4.0);
        assert_eq!(sampled(), [good(3.0), good(3.0)]);
    }
}
