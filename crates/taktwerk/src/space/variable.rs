//! Variables: values that clients read, write and monitor.

use super::node::{Node, Texts, common_setters};
use super::states::{self, States};
use super::{now, ns0};
use crate::error::BuildError;
use crate::history::Rule;
use crate::unit::Unit;
use crate::value::{Struct, Value, typed};
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::ops::RangeInclusive;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_schema::ids::{reference_type_ids, variable_type_ids};
use taktwerk_schema::{AccessLevelType, EUInformation, Range};
use taktwerk_server::callback::{CallContext, SourceRead, ValueSource, WriteHandler};
use taktwerk_server::source::DEADLINE_DEFAULT;
use taktwerk_server::space::build::ValueShape;
use taktwerk_server::space::{NodeSpec, VariableHandle};
use taktwerk_types::{DataValue, LocalizedText, NodeId, QualifiedName, StatusCode, UtcTime, Variant};

/// Settings of a variable; [`VariableBuilder::add`] adds it.
#[must_use = "nothing is added before add()"]
pub struct VariableBuilder<T> {
    parent: Node,
    name: String,
    texts: Texts,
    initial: Option<T>,
    shape: Option<ValueShape>,
    variable_type: Option<NodeId>,
    declared_type: Option<NodeId>,
    optional: Vec<String>,
    reference_type: u32,
    is_writable: bool,
    minimum_sampling_interval: f32,
    source: Option<Arc<dyn ValueSource>>,
    /// A source that may take long.
    slow_source: Option<Ask>,
    source_deadline: Duration,
    on_write: Option<Arc<dyn WriteHandler>>,
    unit: Option<EUInformation>,
    range: Option<Range>,
    states: States,
    history: Option<(Rule, bool)>,
    initial_status: StatusCode,
}

impl<T> fmt::Debug for VariableBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VariableBuilder").field("parent", &self.parent.id).field("name", &self.name).finish()
    }
}

impl<T: Value> VariableBuilder<T> {
    pub(super) fn new(parent: Node, name: &str, initial: Option<T>) -> Self {
        Self {
            parent,
            name: name.to_owned(),
            texts: Texts::default(),
            initial,
            shape: None,
            variable_type: None,
            declared_type: None,
            optional: Vec::new(),
            reference_type: reference_type_ids::HAS_COMPONENT,
            is_writable: false,
            minimum_sampling_interval: 0.0,
            source: None,
            slow_source: None,
            source_deadline: DEADLINE_DEFAULT,
            on_write: None,
            unit: None,
            range: None,
            states: States::default(),
            history: None,
            initial_status: StatusCode::GOOD,
        }
    }

    common_setters!();

    /// Lets clients write the variable. The value is stored as written; see [`Self::on_write`] to decide on it.
    pub fn writable(mut self) -> Self {
        self.is_writable = true;
        self
    }

    /// The status until the first value is set. If it is bad, such as Bad_WaitingForInitialData, there is no value, and none is
    /// recorded. Default: Good.
    pub fn initial_status(mut self, status: StatusCode) -> Self {
        self.initial_status = status;
        self
    }

    /// Records every value in the server's store ([`ServerBuilder::history`](crate::ServerBuilder::history)), where clients can
    /// read them. Values of [sources](Self::source) are recorded when a client reads or samples them.
    pub fn historize(self) -> Self {
        self.historize_with(Rule::default())
    }

    /// Like [`Self::historize`], with a rule that skips values.
    pub fn historize_with(mut self, rule: Rule) -> Self {
        let writable = self.history.is_some_and(|(_, writable)| writable);
        self.history = Some((rule, writable));
        self
    }

    /// Like [`Self::historize`], and lets clients insert, replace and delete recorded values.
    pub fn writable_history(mut self) -> Self {
        let rule = self.history.map(|(rule, _)| rule).unwrap_or_default();
        self.history = Some((rule, true));
        self
    }

    /// A DataType that differs from the value's own, such as an enumeration for an Int32.
    pub fn data_type(mut self, data_type: impl Into<NodeId>) -> Self {
        let mut shape = self.shape.take().unwrap_or_else(|| self.inferred_shape());
        shape.data_type = data_type.into();
        self.shape = Some(shape);
        self
    }

    /// Makes it an instance of a VariableType, with all mandatory children of the type.
    pub fn of_type(mut self, variable_type: impl Into<NodeId>) -> Self {
        self.variable_type = Some(variable_type.into());
        self
    }

    /// Sets the VariableType without adding the children of the type. The caller must add them.
    pub fn declared_type(mut self, variable_type: impl Into<NodeId>) -> Self {
        self.declared_type = Some(variable_type.into());
        self
    }

    /// Adds an optional child of the type, by its path of names from the variable.
    pub fn with(mut self, path: &str) -> Self {
        self.optional.push(path.to_owned());
        self
    }

    /// Uses the reference Organizes from the parent instead of HasComponent, as for folders.
    pub fn organized(mut self) -> Self {
        self.reference_type = reference_type_ids::ORGANIZES;
        self
    }

    pub(super) fn into_property(mut self) -> Self {
        self.reference_type = reference_type_ids::HAS_PROPERTY;
        self.variable_type = None;
        self
    }

    /// The engineering unit. Makes the variable an AnalogUnitType, or an AnalogUnitRangeType together with [`Self::range`] (Part
    /// 8 §5.3.2).
    pub fn units(self, unit: Unit) -> Self {
        self.engineering_units(unit.information())
    }

    /// Like [`Self::units`], with a unit of any system.
    pub fn engineering_units(mut self, unit: EUInformation) -> Self {
        self.unit = Some(unit);
        self
    }

    /// The range of usual values (EURange), to which percent deadbands refer. Makes the variable an AnalogItemType.
    pub fn range(mut self, range: RangeInclusive<f64>) -> Self {
        self.range = Some(Range { low: *range.start(), high: *range.end() });
        self
    }

    /// Names of the values of a Boolean or integer (Part 8 §5.3.3). Makes the variable a TwoStateDiscreteType with TrueState and
    /// FalseState, a MultiStateDiscreteType with EnumStrings (unsigned integers that count from 0), or a
    /// MultiStateValueDiscreteType with EnumValues and ValueAsText. Other data types, and variables with a unit or range, cannot
    /// have named values.
    pub fn states<N: Into<LocalizedText>>(mut self, states: impl IntoIterator<Item = (i64, N)>) -> Self {
        self.states = States::new(states.into_iter().map(|(value, name)| (value, name.into())).collect());
        self
    }

    /// The shortest useful sampling interval in ms: clients cannot sample faster.
    pub fn minimum_sampling_interval(mut self, millis: f32) -> Self {
        self.minimum_sampling_interval = millis;
        self
    }

    /// Computes the value whenever it is read or sampled. Must not block: see [`Self::blocking_source`] and
    /// [`Self::async_source`].
    pub fn source(mut self, read: impl Fn() -> T + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(AtOnce(move || stamped(DataValue::new(read().into_variant())))));
        self
    }

    /// Like [`Self::source`], with status and timestamps.
    pub fn data_source(mut self, read: impl Fn() -> DataValue + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(AtOnce(move || stamped(read()))));
        self
    }

    /// Timeout of a [`Self::blocking_source`] or [`Self::async_source`]. After it clients get the last value with
    /// Uncertain_LastUsableValue, and after twice that time Bad_NoCommunication. Default: five seconds.
    pub fn source_deadline(mut self, deadline: Duration) -> Self {
        self.source_deadline = deadline;
        self
    }

    /// Like [`Self::source`], on a thread that may block, for devices and databases. Calls do not overlap. See
    /// [`source`](super::source) to read many variables together.
    pub fn blocking_source(
        mut self,
        read: impl Fn() -> Result<T, StatusCode> + Send + Sync + 'static,
    ) -> Self {
        let read = Arc::new(read);
        self.slow_source = Some(Box::new(move || {
            let read = Arc::clone(&read);
            SourceRead::Blocking(Box::new(move || from_result(read())))
        }));
        self
    }

    /// Like [`Self::source`], with an asynchronous function. It runs on the multi-threaded tokio runtime in which the server was
    /// started, or else on a thread of the server.
    pub fn async_source<F>(mut self, read: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<T, StatusCode>> + Send + 'static,
    {
        self.slow_source = Some(Box::new(move || {
            let read = read();
            SourceRead::Later(Box::pin(async move { from_result(read.await) }))
        }));
        self
    }

    /// Decides on clients' writes: the returned value is stored, an error is returned to the client. Makes the variable writable.
    /// Must not block.
    pub fn on_write(
        mut self,
        write: impl Fn(&CallContext, T) -> Result<T, StatusCode> + Send + Sync + 'static,
    ) -> Self {
        self.is_writable = true;
        self.on_write = Some(Arc::new(move |context: &CallContext, mut data: DataValue| {
            let value = data.value.take().unwrap_or_default();
            let value = T::from_variant(value).map_err(|error| error.status())?;
            data.value = Some(write(context, value)?.into_variant());
            Ok(data)
        }));
        self
    }

    /// Adds the variable.
    ///
    /// # Errors
    /// The id is taken (usually because the parent has a child with that name), or the type does not exist.
    pub fn add(mut self) -> Result<Variable<T>, BuildError> {
        let shape = self.shape.take().unwrap_or_else(|| self.inferred_shape());
        let id = self.texts.id.take().unwrap_or_else(|| self.parent.child_id(&self.name));
        let browse_name = self.texts.browse_name.take().unwrap_or_else(|| self.parent.child_name(&self.name));
        let analog_type = self.analog_type();
        let data_type = shape.data_type.clone();
        let is_plain = analog_type.is_none() && self.variable_type.is_none() && self.declared_type.is_none();
        let states = if is_plain { core::mem::take(&mut self.states) } else { States::default() };
        let Self { parent, texts, initial, variable_type, optional, reference_type, .. } = self;
        let value = initial.map(Value::into_variant);
        let mut access = AccessLevelType::CURRENT_READ;
        if self.is_writable {
            access.0 |= AccessLevelType::CURRENT_WRITE.0;
        }
        let mut spec = NodeSpec::variable(id.clone(), browse_name, NodeId::NULL, value)
            .shape(shape)
            .access_level(access)
            .initial_status(self.initial_status)
            .minimum_sampling_interval(self.minimum_sampling_interval);
        if let Some(source) = self.source {
            spec = spec.source(source);
        }
        if let Some(ask) = self.slow_source {
            let source = Slow { ask, deadline: self.source_deadline };
            spec = spec.source(parent.space.sources().guard(Arc::new(source)));
        }
        if let Some(handler) = self.on_write {
            spec = spec.write_handler(handler);
        }
        let spec = texts.apply(spec);
        let is_property = reference_type == reference_type_ids::HAS_PROPERTY;
        let default_type = ns0(match analog_type.or_else(|| states.variable_type(&data_type)) {
            Some(special) => special,
            None if is_property => variable_type_ids::PROPERTY_TYPE,
            None => variable_type_ids::BASE_DATA_VARIABLE_TYPE,
        });
        match variable_type {
            Some(kind) => parent.add_instance(spec, reference_type, &kind, &optional)?,
            None => parent.add(spec, reference_type, Some(&self.declared_type.unwrap_or(default_type)))?,
        }
        let node = Node { space: parent.space, id, namespace: parent.namespace };
        let added = (|| {
            if let Some(range) = self.range {
                set_or_add(&node, "EURange", Struct(range))?;
            }
            if let Some(unit) = self.unit {
                set_or_add(&node, "EngineeringUnits", Struct(unit))?;
            }
            if let Some((rule, writable)) = self.history {
                node.space.historize(&node.id, writable, rule, now())?;
            }
            let handle = node.space.variable(&node.id)?;
            states.add_to(&node, &data_type, &handle)?;
            Ok(handle)
        })();
        let handle = added.inspect_err(|_: &BuildError| {
            // Remove the partial variable, so that another attempt can succeed.
            let children = ["EURange", "EngineeringUnits"]
                .iter()
                .chain(&states::PROPERTIES)
                .filter_map(|name| node.space.child(&node.id, &QualifiedName::new(0, *name)));
            let mut all: Vec<_> = children.collect();
            all.push(node.id.clone());
            node.space.delete_nodes(&all);
        })?;
        Ok(Variable::new(node, handle))
    }

    fn analog_type(&self) -> Option<u32> {
        match (&self.unit, &self.range) {
            (Some(_), Some(_)) => Some(variable_type_ids::ANALOG_UNIT_RANGE_TYPE),
            (Some(_), None) => Some(variable_type_ids::ANALOG_UNIT_TYPE),
            (None, Some(_)) => Some(variable_type_ids::ANALOG_ITEM_TYPE),
            (None, None) => None,
        }
    }

    fn inferred_shape(&self) -> ValueShape {
        let declared = ValueShape {
            data_type: ns0(T::DATA_TYPE),
            value_rank: T::VALUE_RANK,
            array_dimensions: if T::VALUE_RANK == 1 { vec![0] } else { Vec::new() },
        };
        // A Variant contains more than its Rust type: matrices, and structures that only the server defines.
        let Some(variant) = self.initial.as_ref().and_then(as_variant) else { return declared };
        if variant.is_empty() { declared } else { self.parent.space.shape_of(variant) }
    }
}

/// The value as a Variant, if that is its Rust type.
fn as_variant<T: Value>(value: &T) -> Option<&Variant> {
    (value as &dyn core::any::Any).downcast_ref()
}

/// Sets a standard property that came with the type, or adds it.
fn set_or_add(node: &Node, name: &str, value: impl Value) -> Result<(), BuildError> {
    let name_in_ns0 = QualifiedName::new(0, name);
    match node.space.child(&node.id, &name_in_ns0) {
        Some(id) => {
            node.space.variable(&id)?.set_at(value.into_variant(), now());
            Ok(())
        }
        None => node.standard_property(name, value),
    }
}

/// A source that returns quickly.
struct AtOnce<F>(F);

impl<F: Fn() -> DataValue + Send + Sync> ValueSource for AtOnce<F> {
    fn read(&self) -> SourceRead {
        SourceRead::Now((self.0)())
    }
}

type Ask = Box<dyn Fn() -> SourceRead + Send + Sync>;

/// A source that may take long.
struct Slow {
    ask: Ask,
    deadline: Duration,
}

impl ValueSource for Slow {
    fn read(&self) -> SourceRead {
        (self.ask)()
    }

    fn deadline(&self) -> Duration {
        self.deadline
    }
}

fn from_result<T: Value>(result: Result<T, StatusCode>) -> DataValue {
    match result {
        Ok(value) => stamped(DataValue::new(value.into_variant())),
        Err(status) => DataValue::from_status(status),
    }
}

fn stamped(mut value: DataValue) -> DataValue {
    if value.source_timestamp.is_none() {
        value.source_timestamp = Some(now());
    }
    value
}

/// A handle to a variable: sets and reads its value from any thread without blocking. Cheap to clone.
pub struct Variable<T> {
    node: Node,
    handle: VariableHandle,
    value: PhantomData<fn(T) -> T>,
}

impl<T> Clone for Variable<T> {
    fn clone(&self) -> Self {
        Self { node: self.node.clone(), handle: self.handle.clone(), value: PhantomData }
    }
}

impl<T> fmt::Debug for Variable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Variable").field(&self.node.id).finish()
    }
}

impl<T: Value> Variable<T> {
    pub(crate) fn new(node: Node, handle: VariableHandle) -> Self {
        Self { node, handle, value: PhantomData }
    }

    /// The variable's id.
    #[must_use]
    pub fn id(&self) -> &NodeId {
        &self.node.id
    }

    /// The underlying handle, for setting many values with one reading of the clock.
    #[must_use]
    pub fn handle(&self) -> &VariableHandle {
        &self.handle
    }

    /// The variable as a node, to which properties and further variables can be added.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Stores a good value with the current time. Clients that monitor the variable receive it with the next publish.
    #[inline]
    pub fn set(&self, value: impl Into<T>) {
        self.set_at(value, now());
    }

    /// Stores a good value with a given time. Saves reading the clock for many values of one measurement.
    #[inline]
    pub fn set_at(&self, value: impl Into<T>, time: UtcTime) {
        self.handle.set_at(value.into().into_variant(), time);
    }

    /// Stores a value with its quality.
    pub fn set_with(&self, value: impl Into<T>, status: StatusCode, source: UtcTime) {
        self.handle.set_with(value.into().into_variant(), status, source, now());
    }

    /// Marks the value as unavailable with a reason, such as Bad_NoCommunication for a lost sensor.
    pub fn set_status(&self, status: StatusCode) {
        let now = now();
        self.handle.set_with(Variant::Empty, status, now, now);
    }

    /// The current value.
    ///
    /// # Errors
    /// The value's status if it is bad; Bad_TypeMismatch if a client has written another type.
    pub fn get(&self) -> Result<T, StatusCode> {
        typed(self.handle.get())
    }

    /// The value with its quality and times.
    #[must_use]
    pub fn data_value(&self) -> DataValue {
        self.handle.get()
    }
}
