//! A source with one value, for Read and sampling.

use super::line::{Asker, Begun, Line, Question, ask};
use super::reply::{Reply, reply};
use super::{Sources, lock, lost};
use crate::callback::{SourceRead, ValueSource};
use crate::now::Now;
use core::time::Duration;
use std::sync::{Arc, Mutex};
use taktwerk_types::{DataValue, Instant, StatusCode};

/// A source with a deadline.
pub(super) struct Guarded(Arc<Single>);

struct Single {
    source: Arc<dyn ValueSource>,
    sources: Arc<Sources>,
    line: Line,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last answer.
    last: Option<DataValue>,
    /// When the first deadline passed after the last answer.
    lost_at: Option<Instant>,
    waiting: Vec<Reply>,
}

impl Guarded {
    pub(super) fn new(sources: Arc<Sources>, source: Arc<dyn ValueSource>) -> Self {
        Self(Arc::new(Single { source, sources, line: Line::default(), state: Mutex::default() }))
    }
}

impl State {
    /// The value while the source does not answer.
    fn lost(&self, period: Duration, now: Now) -> DataValue {
        let is_usable = self.lost_at.is_none_or(|since| now.instant < since + period);
        lost(self.last.clone(), is_usable, now)
    }
}

fn give(value: &DataValue, waiting: Vec<Reply>) {
    waiting.into_iter().for_each(|reply| reply.give(value.clone()));
}

impl Asker for Single {
    type Answer = DataValue;

    fn line(&self) -> &Line {
        &self.line
    }

    fn answered(self: &Arc<Self>, answer: Option<DataValue>) {
        let mut state = lock(&self.state);
        let value = answer.unwrap_or_else(|| DataValue::from_status(StatusCode::BAD_INTERNAL_ERROR));
        state.lost_at = None;
        state.last = Some(value.clone());
        let waiting = core::mem::take(&mut state.waiting);
        drop(state);
        give(&value, waiting);
    }

    fn expired(self: &Arc<Self>) {
        let Some(driver) = self.sources.driver() else { return };
        let now = driver.now();
        let mut state = lock(&self.state);
        state.lost_at.get_or_insert(now.instant);
        let value = state.lost(self.source.deadline(), now);
        let waiting = core::mem::take(&mut state.waiting);
        drop(state);
        give(&value, waiting);
    }
}

/// Dropped when the source panics: whoever waits is answered, and the source can be asked again.
struct Returning<'a> {
    single: &'a Arc<Single>,
    number: u64,
}

impl Drop for Returning<'_> {
    fn drop(&mut self) {
        if self.single.line.returned(self.number) {
            self.single.answered(None);
        }
    }
}

impl ValueSource for Guarded {
    fn read(&self) -> SourceRead {
        let Self(single) = self;
        let Some(driver) = single.sources.driver() else { return single.source.read() };
        let (reply, answer) = reply();
        {
            let mut state = lock(&single.state);
            // Of requests that no longer exist.
            state.waiting.retain(|reply| !reply.is_abandoned());
            // Before checking the request state: an answer that arrives afterwards finds it here.
            state.waiting.push(reply);
        }
        let number = match single.line.begin() {
            Begun::Question(number) => number,
            Begun::Busy => return SourceRead::Later(answer),
            Begun::Late => {
                let now = driver.now();
                return SourceRead::Now(lock(&single.state).lost(single.source.deadline(), now));
            }
        };
        let returning = Returning { single, number };
        let read = single.source.read();
        core::mem::forget(returning);
        match read {
            SourceRead::Now(value) => {
                if single.line.returned(number) {
                    single.answered(Some(value.clone()));
                }
                return SourceRead::Now(value);
            }
            SourceRead::Blocking(run) => {
                ask(single, number, Question::Blocking(run), single.source.deadline(), &driver);
            }
            SourceRead::Later(future) => {
                ask(single, number, Question::Later(future), single.source.deadline(), &driver);
            }
        }
        SourceRead::Later(answer)
    }

    fn deadline(&self) -> Duration {
        self.0.source.deadline()
    }
}
