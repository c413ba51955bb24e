//! Sources that read the values of many variables together: a device whose registers are read in one request, a database, another
//! server.

use super::{Space, Variable};
use crate::error::BuildError;
use crate::value::Value;
use core::fmt;
use core::future::Future;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_server::source::group::{GroupSpec, ReadMany, WriteMany};
use taktwerk_server::space::VariableHandle;
use taktwerk_types::{DataValue, NodeId, StatusCode};

pub use taktwerk_server::source::DEADLINE_DEFAULT;
pub use taktwerk_server::source::group::{Readings, SourceHandle};

/// Default interval between reads.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(1);

/// Settings of a source. Add its variables, then pass a function that reads them, which starts the source.
///
/// A source is read once per interval for all of its variables, whether or not clients monitor them, and never concurrently.
/// Clients read and monitor the values like any others. Each read has a deadline:
/// - After the deadline, the values stay, with Uncertain_LastUsableValue; one interval later they become Bad_NoCommunication.
///   Both timestamps say when this was detected.
/// - An answer after the deadline is dropped. The source is read again at the next interval after it has returned.
/// - A value that is missing from an answer is treated like one that is late. An error applies to all values that were not set.
/// - If the function panics, the values become Bad_InternalError, and it is called again.
///
/// A blocking source that hangs occupies one thread of
/// [`ServerBuilder::source_threads_max`](crate::ServerBuilder::source_threads_max) until it returns; other sources are not
/// affected. A future that hangs is dropped.
///
/// ```
/// use std::time::Duration;
/// use taktwerk::{Server, StatusCode};
///
/// /// Stands for a device on a field bus.
/// struct Device;
///
/// impl Device {
///     fn registers(&self, _first: u16, count: usize) -> Result<Vec<u16>, std::io::Error> {
///         Ok(vec![215; count])
///     }
///     fn write(&self, _register: usize, _value: u16) -> Result<(), std::io::Error> {
///         Ok(())
///     }
/// }
///
/// let server = Server::builder().bind("127.0.0.1:0").anonymous().build()?;
/// let line = server.namespace("urn:example:line").object("Line 1").add()?;
/// let speeds = (1..=200)
///     .map(|number| line.variable_of::<f64>(&format!("Drive {number}")).writable().add())
///     .collect::<Result<Vec<_>, _>>()?;
///
/// let device = std::sync::Arc::new(Device);
/// let writer = device.clone();
/// let source = server
///     .source("line 1")
///     .variables(&speeds)
///     .interval(Duration::from_millis(500))
///     .deadline(Duration::from_secs(2))
///     .write_many(move |values| {
///         for (position, value) in values {
///             let speed = value.value.as_ref().and_then(|value| value.as_f64()).unwrap_or_default();
///             writer.write(*position, (speed * 10.0) as u16).map_err(|_| StatusCode::BAD_DEVICE_FAILURE)?;
///         }
///         Ok(())
///     })
///     .read_many(move |readings| {
///         let registers = device.registers(0, readings.len()).map_err(|_| StatusCode::BAD_DEVICE_FAILURE)?;
///         for (position, register) in registers.into_iter().enumerate() {
///             readings.set(position, f64::from(register) / 10.0);
///         }
///         Ok(())
///     })?;
/// # source.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is read before read_many()"]
pub struct SourceBuilder {
    space: Space,
    name: String,
    variables: Vec<(NodeId, VariableHandle)>,
    interval: Duration,
    deadline: Duration,
    write: Option<WriteMany>,
}

impl fmt::Debug for SourceBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl SourceBuilder {
    pub(crate) fn new(space: Space, name: &str) -> Self {
        Self {
            space,
            name: name.to_owned(),
            variables: Vec::new(),
            interval: INTERVAL_DEFAULT,
            deadline: DEADLINE_DEFAULT,
            write: None,
        }
    }

    /// Adds a variable. Positions are counted from 0 in the order of addition.
    pub fn variable<T: Value>(mut self, variable: &Variable<T>) -> Self {
        self.variables.push((variable.id().clone(), variable.handle().clone()));
        self
    }

    /// Adds many variables, in the order of the list.
    pub fn variables<'a, T: Value>(self, variables: impl IntoIterator<Item = &'a Variable<T>>) -> Self {
        variables.into_iter().fold(self, Self::variable)
    }

    /// Interval between reads. Default: one second.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Deadline for a read. Default: five seconds. It may be longer than the interval: the source is not read again before it has
    /// answered.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Handles clients' writes, as positions and values, on a thread that may block. Makes the variables writable.
    ///
    /// A client receives Good_CompletesAsynchronously (Part 4 §5.11.4) as soon as the value is accepted. Values written in the
    /// meantime are passed in one call, with the last value of each variable. Then the source is read again. While a call hangs,
    /// further writes are rejected with Bad_NoCommunication. An error of the function is logged.
    pub fn write_many(
        mut self,
        write: impl Fn(&[(usize, DataValue)]) -> Result<(), StatusCode> + Send + Sync + 'static,
    ) -> Self {
        self.write = Some(WriteMany::Blocking(Box::new(write)));
        self
    }

    /// Like [`Self::write_many`], with an asynchronous function.
    pub fn write_many_async<F>(
        mut self,
        write: impl Fn(Vec<(usize, DataValue)>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), StatusCode>> + Send + 'static,
    {
        self.write = Some(WriteMany::Later(Box::new(move |values| Box::pin(write(values)))));
        self
    }

    /// Starts reading with a function on a thread that may block.
    ///
    /// # Errors
    /// A variable has been deleted.
    pub fn read_many(
        self,
        read: impl Fn(&mut Readings) -> Result<(), StatusCode> + Send + Sync + 'static,
    ) -> Result<SourceHandle, BuildError> {
        self.start(ReadMany::Blocking(Box::new(read)))
    }

    /// Starts reading with an asynchronous function: its futures run on the multi-threaded tokio runtime that the server
    /// was started in, or else on a thread of the server's sources.
    ///
    /// # Errors
    /// A variable has been deleted.
    pub fn read_many_async<F>(
        self,
        read: impl Fn(Readings) -> F + Send + Sync + 'static,
    ) -> Result<SourceHandle, BuildError>
    where
        F: Future<Output = Result<Readings, StatusCode>> + Send + 'static,
    {
        self.start(ReadMany::Later(Box::new(move |readings| Box::pin(read(readings)))))
    }

    fn start(self, read: ReadMany) -> Result<SourceHandle, BuildError> {
        let Self { space, name, variables, interval, deadline, write } = self;
        let takes_writes = write.is_some();
        let (ids, variables): (Vec<NodeId>, Vec<VariableHandle>) = variables.into_iter().unzip();
        let spec = GroupSpec { deadline, write, ..GroupSpec::new(&name, variables, interval, read) };
        let source = Arc::clone(space.sources()).add(spec);
        if takes_writes {
            for (position, id) in ids.iter().enumerate() {
                if let Err(error) = space.set_write_handler(id, source.write_handler(position)) {
                    source.stop();
                    return Err(error.into());
                }
            }
        }
        Ok(source)
    }
}
