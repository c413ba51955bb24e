//! A source of many values, asked for all of them at an interval of its own.

use super::line::{Asker, Begun, Line, Question, ask};
use super::{DEADLINE_DEFAULT, SourceDriver, Sources, Target, lock, lost};
use crate::callback::{BoxFuture, CallContext, WriteHandler};
use crate::now::Now;
use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use taktwerk_types::{DataValue, Instant, StatusCode, Variant};

/// What a source answers: for each of its variables, by position, a value with status and times, or nothing. A value that
/// is left out counts as not answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Readings(Vec<Option<DataValue>>);

impl Readings {
    fn new(count: usize) -> Self {
        Self(vec![None; count])
    }

    /// How many variables the source has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the source has no variable.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A good value, read now. A position that the source does not have is left out.
    pub fn set(&mut self, position: usize, value: impl Into<Variant>) {
        self.set_data(position, DataValue::new(value));
    }

    /// There is no value, and why.
    pub fn set_status(&mut self, position: usize, status: StatusCode) {
        self.set_data(position, DataValue::from_status(status));
    }

    /// A value with its status and times. Times that are left out are the time of the answer.
    pub fn set_data(&mut self, position: usize, value: DataValue) {
        if let Some(place) = self.0.get_mut(position) {
            *place = Some(value);
        }
    }
}

/// A value to be written, and the position of its variable.
pub type Written = (usize, DataValue);

/// Whether all is read or written, or why not.
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
    /// On a thread that may block. An error counts for the values that were not set.
    Blocking(Box<ReadBlocking>),
    /// On an executor. It is dropped when the deadline has passed.
    Later(Box<ReadLater>),
}

/// How values are written.
pub enum WriteMany {
    /// On a thread that may block.
    Blocking(Box<WriteBlocking>),
    /// On an executor. It is dropped when the deadline has passed.
    Later(Box<WriteLater>),
}

/// A source of many values to be.
pub struct GroupSpec {
    /// For logs.
    pub name: String,
    /// The variables that get the values.
    pub variables: Vec<Box<dyn Target>>,
    /// How often it is asked.
    pub interval: Duration,
    /// How long an answer may take.
    pub deadline: Duration,
    /// How it is asked.
    pub read: ReadMany,
    /// What clients write; `None` if nothing can be written.
    pub write: Option<WriteMany>,
}

impl GroupSpec {
    /// A source that is asked once per interval.
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

/// A source that is being asked. Dropping the handle changes nothing.
#[derive(Debug, Clone)]
pub struct SourceHandle(pub(super) Arc<Group>);

impl SourceHandle {
    /// Stops asking. The values stay as they are, with Uncertain_LastUsableValue.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Takes clients' writes of the variable at a position. What is written goes to the source soon, together with what
    /// else was written meanwhile; if a variable is written again before that, the last value counts. The client is
    /// answered Good_CompletesAsynchronously, or Bad_NoCommunication while the source does not return. Afterwards the
    /// source is asked for all values again.
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
    /// Per variable: when its first answer was missing since the last one.
    lost_at: Vec<Option<Instant>>,
    is_stopped: bool,
    /// Ticks of an earlier driver count for nothing.
    run: u64,
}

/// Writes on their way to the source.
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

    /// Asks at once, and then at each interval.
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
        // Intervals that were missed as a whole are left out.
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

    /// Says of the values that are lost how they are by now.
    fn note_lost(&self, now: Now) {
        let state = lock(&self.state);
        for (variable, lost_at) in self.spec.variables.iter().zip(&state.lost_at) {
            if let Some(since) = *lost_at {
                store(&**variable, self.lost(&**variable, since, now), now);
            }
        }
    }

    /// What a value is while the source does not answer.
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

    /// Takes a client's write; gives its status.
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

    /// Writes what is pending, unless that is being done.
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

/// What was read, and an error that counts for what was not.
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
            tracing::error!(source = self.spec.name, "the source has panicked, or cannot be asked");
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
        tracing::warn!(source = self.spec.name, "no answer within {:?}", self.spec.deadline);
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
            Some(Err(status)) => tracing::warn!(source = group.spec.name, %status, "a write has failed"),
            None => {
                tracing::error!(source = group.spec.name, "the source has panicked, or cannot be written")
            }
        }
        // What was written meanwhile goes next; else the values are looked at.
        if lock(&self.pending).is_empty() {
            group.ask(&driver);
        } else {
            group.write(&driver);
        }
    }

    fn expired(self: &Arc<Self>) {
        let Some(group) = lock(&self.group).upgrade() else { return };
        // Nobody knows when the source returns: by then these would be old wishes.
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
