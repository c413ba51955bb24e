//! Sources that answer for many variables at once: a device whose registers are read in one request, a database, another
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

/// How often a source is asked, unless it says otherwise.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(1);

/// A source to be: name its variables, then give it a function that reads them, which starts it.
///
/// A source is asked once per interval for all of its variables, whether clients watch them or not, and one thing at a
/// time. Clients read and watch the values like any others. The source has a deadline for each answer:
///
/// - When it has passed, the values keep what they had, with Uncertain_LastUsableValue; one interval later they are
///   Bad_NoCommunication. Both timestamps say when that was found out.
/// - An answer that comes too late is dropped. The source is asked again when it has returned, with the next interval.
/// - A value that an answer leaves out fares like one that does not come. An error counts for all values that were not set.
/// - A function that panics gives Bad_InternalError, and is asked again.
///
/// A blocking source that hangs holds one thread until it returns, of
/// [`ServerBuilder::source_threads_max`](crate::ServerBuilder::source_threads_max), and nobody else waits for it. A future
/// that hangs is dropped.
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

    /// Adds a variable. Its position among the source's variables is how many there were before.
    pub fn variable<T: Value>(mut self, variable: &Variable<T>) -> Self {
        self.variables.push((variable.id().clone(), variable.handle().clone()));
        self
    }

    /// Adds many variables, in the order of the list.
    pub fn variables<'a, T: Value>(self, variables: impl IntoIterator<Item = &'a Variable<T>>) -> Self {
        variables.into_iter().fold(self, Self::variable)
    }

    /// How often it is asked. Default: once per second.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// How long an answer may take. Default: five seconds. Longer than the interval is fine: the source is not asked again
    /// before it has answered.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Takes what clients write, on a thread that may block: positions and values. Makes the variables writable. A client
    /// is answered Good_CompletesAsynchronously (Part 4 §5.11.4) as soon as the value is accepted; what was written to
    /// several variables meanwhile goes out in one call, with the last value of each. Then the source is read again. While
    /// a write hangs, further ones are refused with Bad_NoCommunication. A value that the function refuses is logged.
    pub fn write_many(
        mut self,
        write: impl Fn(&[(usize, DataValue)]) -> Result<(), StatusCode> + Send + Sync + 'static,
    ) -> Self {
        self.write = Some(WriteMany::Blocking(Box::new(write)));
        self
    }

    /// Like [`Self::write_many`], as a future.
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
    /// One of the variables is gone.
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
    /// One of the variables is gone.
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
