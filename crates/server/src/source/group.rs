//! A source with many values, polled at its own interval.

use super::line::{Asker, Begun, Line, Question, ask};
use super::{DEADLINE_DEFAULT, SourceDriver, Sources, Target, lock, lost};
use crate::callback::{BoxFuture, CallContext, WriteHandler};
use crate::now::Now;
use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use taktwerk_types::{DataValue, Instant, StatusCode, Variant};

/// The answer of a source: for each variable, by position, a value with status and times, or nothing. A missing value
/// counts as not answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Readings(Vec<Option<DataValue>>);

impl Readings {
    fn new(count: usize) -> Self {
        Self(vec![None; count])
    }

    /// Number of variables of the source.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the source has no variables.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets a good value, read now. A position outside the source is ignored.
    pub fn set(&mut self, position: usize, value: impl Into<Variant>) {
        self.set_data(position, DataValue::new(value));
    }

    /// Sets a status without a value.
    pub fn set_status(&mut self, position: usize, status: StatusCode) {
        self.set_data(position, DataValue::from_status(status));
    }

    /// Sets a value with its status and times. Missing times become the time of the answer.
    pub fn set_data(&mut self, position: usize, value: DataValue) {
        if let Some(place) = self.0.get_mut(position) {
            *place = Some(value);
        }
    }
}

/// A value to write, with the position of its variable.
pub type Written = (usize, DataValue);

/// Success of a read or write, or the reason for the failure.
pub type Outcome = Result<(), StatusCode>;
/// Reads on a thread that may block.
pub type ReadBlocking = dyn Fn(&mut Readings) -> Outcome + Send + Sync;
/// Reads on an executor.
pub type ReadLater = dyn Fn(Readings) -> BoxFuture<Result<Readings, StatusCode>> + Send + Sync;
/// Writes on a thread that may block.
pub type WriteBlocking = dyn Fn(&[Written]) -> Outcome + Send + Sync;
/// Writes on an executor.
pub type WriteLater = dyn Fn(Vec<Written>) -> BoxFuture<Outcome> + Send + Sync;

/// How values are read.
pub enum ReadMany {
    /// On a thread that may block. An error applies to the values that were not set.
    Blocking(Box<ReadBlocking>),
    /// On an executor. The future is dropped when the deadline has passed.
    Later(Box<ReadLater>),
}

/// How values are written.
pub enum WriteMany {
    /// On a thread that may block.
    Blocking(Box<WriteBlocking>),
    /// On an executor. The future is dropped when the deadline has passed.
    Later(Box<WriteLater>),
}

/// The definition of a source with many values.
pub struct GroupSpec {
    /// The name for logs.
    pub name: String,
    /// The variables that receive the values.
    pub variables: Vec<Box<dyn Target>>,
    /// The polling interval.
    pub interval: Duration,
    /// The deadline for an answer.
    pub deadline: Duration,
    /// The read function.
    pub read: ReadMany,
    /// The write function; `None` if the values are read-only.
    pub write: Option<WriteMany>,
}

impl GroupSpec {
    /// A source that is polled once per interval.
    #[must_use]
    pub fn new<T: Target + 'static>(
        name: &str,
        variables: Vec<T>,
        interval: Duration,
        read: ReadMany,
    ) -> Self {
        let variables = variables.into_iter().map(|variable| Box::new(variable) as Box<dyn Target>).collect();
        Self { name: name.to_owned(), variables, interval, deadline: DEADLINE_DEFAULT, read, write: None }
    }
}

/// A running source. Dropping the handle does not stop it.
#[derive(Debug, Clone)]
pub struct SourceHandle(pub(super) Arc<Group>);

impl SourceHandle {
    /// Stops polling. The values stay, with Uncertain_LastUsableValue.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Handles clients' writes of the variable at a position. Written values go to the source soon, together with
    /// others written in the meantime; if a variable is written again before that, the last value counts. The client
    /// gets Good_CompletesAsynchronously, or Bad_NoCommunication while the source does not respond. Afterwards all
    /// values are read again.
    #[must_use]
    pub fn write_handler(&self, position: usize) -> Arc<dyn WriteHandler> {
        let group = Arc::clone(&self.0);
        Arc::new(move |_: &CallContext, value: DataValue| -> Result<DataValue, StatusCode> {
            Err(group.accept(position, value))
        })
    }
}

pub(super) struct Group {
    spec: GroupSpec,
    sources: Weak<Sources>,
    reading: Line,
    state: Mutex<State>,
    writer: Arc<Writer>,
}

#[derive(Default)]
struct State {
    /// Per variable: when it was first missing since its last answer.
    lost_at: Vec<Option<Instant>>,
    is_stopped: bool,
    /// Timers of an earlier driver are ignored.
    run: u64,
}

/// Pending writes to the source.
#[derive(Default)]
struct Writer {
    line: Line,
    pending: Mutex<BTreeMap<usize, DataValue>>,
    group: Mutex<Weak<Group>>,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

impl Group {
    pub(super) fn new(sources: &Arc<Sources>, spec: GroupSpec) -> Arc<Self> {
        let lost_at = vec![None; spec.variables.len()];
        let group = Arc::new(Self {
            spec,
            sources: Arc::downgrade(sources),
            reading: Line::default(),
            state: Mutex::new(State { lost_at, ..State::default() }),
            writer: Arc::default(),
        });
        *lock(&group.writer.group) = Arc::downgrade(&group);
        group
    }

    pub(super) fn is_stopped(&self) -> bool {
        lock(&self.state).is_stopped
    }

    fn driver(&self) -> Option<Arc<dyn SourceDriver>> {
        self.sources.upgrade()?.driver()
    }

    fn now(&self) -> Option<Now> {
        Some(self.driver()?.now())
    }

    fn interval(&self) -> Duration {
        self.spec.interval.max(Duration::from_millis(1))
    }

    /// Polls at once, and then at each interval.
    pub(super) fn start(self: &Arc<Self>, driver: &Arc<dyn SourceDriver>) {
        let run = {
            let mut state = lock(&self.state);
            state.run += 1;
            state.run
        };
        let now = driver.now().instant;
        self.tick(now, run);
    }

    fn tick(self: &Arc<Self>, planned: Instant, run: u64) {
        let Some(driver) = self.driver() else { return };
        {
            let state = lock(&self.state);
            if state.is_stopped || state.run != run {
                return;
            }
        }
        self.ask(&driver);
        // Completely missed intervals are skipped.
        let next = (planned + self.interval()).max(driver.now().instant);
        let group = Arc::clone(self);
        driver.at(next, Box::new(move || group.tick(next, run)));
    }

    fn ask(self: &Arc<Self>, driver: &Arc<dyn SourceDriver>) {
        let number = match self.reading.begin() {
            Begun::Question(number) => number,
            Begun::Busy | Begun::Late => return self.note_lost(driver.now()),
        };
        self.note_lost(driver.now());
        let group = Arc::clone(self);
        let readings = Readings::new(self.spec.variables.len());
        let question: Question<Answer> = match &self.spec.read {
            ReadMany::Blocking(_) => Question::Blocking(Box::new(move || {
                let mut readings = readings;
                let result = match &group.spec.read {
                    ReadMany::Blocking(read) => read(&mut readings),
                    ReadMany::Later(_) => Ok(()),
                };
                (readings, result)
            })),
            ReadMany::Later(_) => Question::Later(Box::pin(async move {
                let count = readings.len();
                let answer = match &group.spec.read {
                    ReadMany::Later(read) => read(readings).await,
                    ReadMany::Blocking(_) => Ok(readings),
                };
                match answer {
                    Ok(readings) => (readings, Ok(())),
                    Err(status) => (Readings::new(count), Err(status)),
                }
            })),
        };
        ask(self, number, question, self.spec.deadline, driver);
    }

    /// Updates the status of lost values.
    fn note_lost(&self, now: Now) {
        let state = lock(&self.state);
        for (variable, lost_at) in self.spec.variables.iter().zip(&state.lost_at) {
            if let Some(since) = *lost_at {
                store(&**variable, self.lost(&**variable, since, now), now);
            }
        }
    }

    /// The value while the source does not answer.
    fn lost(&self, variable: &dyn Target, since: Instant, now: Now) -> DataValue {
        lost(Some(variable.get()), now.instant < since + self.interval(), now)
    }

    fn stop(&self) {
        let mut state = lock(&self.state);
        if core::mem::replace(&mut state.is_stopped, true) {
            return;
        }
        let Some(now) = self.now() else { return };
        for variable in &self.spec.variables {
            store(&**variable, lost(Some(variable.get()), true, now), now);
        }
    }

    /// Accepts a client's write. Returns its status.
    fn accept(self: &Arc<Self>, position: usize, value: DataValue) -> StatusCode {
        let (Some(driver), true) = (self.driver(), self.spec.write.is_some() && !self.is_stopped()) else {
            return StatusCode::BAD_NO_COMMUNICATION;
        };
        let Writer { line, pending, .. } = &*self.writer;
        if line.is_late() {
            return StatusCode::BAD_NO_COMMUNICATION;
        }
        lock(pending).insert(position, value);
        self.write(&driver);
        StatusCode::GOOD_COMPLETES_ASYNCHRONOUSLY
    }

    /// Writes pending values, unless a write is in progress.
    fn write(self: &Arc<Self>, driver: &Arc<dyn SourceDriver>) {
        let writer = &self.writer;
        let (Some(write), Begun::Question(number)) = (&self.spec.write, writer.line.begin()) else { return };
        let group = Arc::clone(self);
        let question: Question<Outcome> = match write {
            WriteMany::Blocking(_) => Question::Blocking(Box::new(move || {
                let values = group.writer.take();
                match &group.spec.write {
                    Some(WriteMany::Blocking(write)) => write(&values),
                    _ => Ok(()),
                }
            })),
            WriteMany::Later(_) => Question::Later(Box::pin(async move {
                let values = group.writer.take();
                match &group.spec.write {
                    Some(WriteMany::Later(write)) => write(values).await,
                    _ => Ok(()),
                }
            })),
        };
        ask(writer, number, question, self.spec.deadline, driver);
    }
}

/// The values that were read, and the error for the others.
type Answer = (Readings, Outcome);

impl Asker for Group {
    type Answer = Answer;

    fn line(&self) -> &Line {
        &self.reading
    }

    fn answered(self: &Arc<Self>, answer: Option<Answer>) {
        let Some(now) = self.now() else { return };
        let count = self.spec.variables.len();
        let (readings, result) = answer.unwrap_or_else(|| {
            tracing::error!(source = self.spec.name, "the read function panicked or could not be run");
            (Readings::new(count), Err(StatusCode::BAD_INTERNAL_ERROR))
        });
        let mut state = lock(&self.state);
        if state.is_stopped {
            return;
        }
        for ((variable, lost_at), reading) in
            self.spec.variables.iter().zip(&mut state.lost_at).zip(readings.0)
        {
            let value = match (reading, result) {
                (Some(value), _) => Some(value),
                (None, Err(status)) => Some(DataValue::from_status(status)),
                (None, Ok(())) => None,
            };
            let value = match value {
                Some(value) => {
                    *lost_at = None;
                    value
                }
                None => {
                    let since = *lost_at.get_or_insert(now.instant);
                    self.lost(&**variable, since, now)
                }
            };
            store(&**variable, value, now);
        }
    }

    fn expired(self: &Arc<Self>) {
        let Some(now) = self.now() else { return };
        tracing::warn!(source = self.spec.name, "the source did not answer within {:?}", self.spec.deadline);
        let mut state = lock(&self.state);
        if state.is_stopped {
            return;
        }
        for (variable, lost_at) in self.spec.variables.iter().zip(&mut state.lost_at) {
            let since = *lost_at.get_or_insert(now.instant);
            store(&**variable, self.lost(&**variable, since, now), now);
        }
    }
}

impl Writer {
    fn take(&self) -> Vec<Written> {
        core::mem::take(&mut *lock(&self.pending)).into_iter().collect()
    }
}

impl Asker for Writer {
    type Answer = Outcome;

    fn line(&self) -> &Line {
        &self.line
    }

    fn answered(self: &Arc<Self>, answer: Option<Outcome>) {
        let Some(group) = lock(&self.group).upgrade() else { return };
        let Some(driver) = group.driver() else { return };
        match answer {
            Some(Ok(())) => {}
            Some(Err(status)) => {
                tracing::warn!(source = group.spec.name, %status, "a write to the source failed")
            }
            None => {
                tracing::error!(source = group.spec.name, "the write function panicked or could not be run")
            }
        }
        // Values written in the meantime go next; otherwise the values are read.
        if lock(&self.pending).is_empty() {
            group.ask(&driver);
        } else {
            group.write(&driver);
        }
    }

    fn expired(self: &Arc<Self>) {
        let Some(group) = lock(&self.group).upgrade() else { return };
        // It is unknown when the source will return; by then these writes would be outdated.
        let dropped = core::mem::take(&mut *lock(&self.pending)).len();
        tracing::warn!(
            source = group.spec.name,
            dropped,
            "a write takes more than {:?}",
            group.spec.deadline
        );
    }
}

fn store(variable: &dyn Target, value: DataValue, now: Now) {
    let (status, source) = (value.status(), value.source_timestamp.unwrap_or(now.utc));
    let server = value.server_timestamp.unwrap_or(now.utc);
    variable.set(value.value.unwrap_or_default(), status, source, server);
}
