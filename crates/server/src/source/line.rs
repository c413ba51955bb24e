//! The state of requests to a source: at most one at a time, and whether an answer still counts.

use super::{SourceDriver, Work, lock};
use crate::callback::BoxFuture;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::{Arc, Mutex};

/// State of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// There is no request.
    #[default]
    Idle,
    /// The deadline has not passed yet.
    Waiting,
    /// The deadline has passed. Until the source returns, it gets no further request.
    Late,
}

#[derive(Debug, Default)]
struct Asked {
    /// The request's number.
    number: u64,
    state: State,
    /// Of a future that is dropped when it is late.
    waker: Option<Waker>,
}

/// The request state of a source.
#[derive(Debug, Default)]
pub(super) struct Line(Mutex<Asked>);

/// The result of beginning a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begun {
    /// The request may be made.
    Question(u64),
    /// Another request is in progress.
    Busy,
    /// The source has not returned from a request whose deadline has passed.
    Late,
}

impl Line {
    pub(super) fn begin(&self) -> Begun {
        let mut asked = lock(&self.0);
        match asked.state {
            State::Waiting => Begun::Busy,
            State::Late => Begun::Late,
            State::Idle => {
                asked.number += 1;
                asked.state = State::Waiting;
                Begun::Question(asked.number)
            }
        }
    }

    pub(super) fn is_late(&self) -> bool {
        lock(&self.0).state == State::Late
    }

    /// Whether the answer to a request still counts.
    fn is_wanted(&self, number: u64) -> bool {
        let asked = lock(&self.0);
        asked.number == number && asked.state == State::Waiting
    }

    /// The source has returned. Returns whether its answer counts.
    pub(super) fn returned(&self, number: u64) -> bool {
        let mut asked = lock(&self.0);
        if asked.number != number {
            return false;
        }
        asked.waker = None;
        core::mem::take(&mut asked.state) == State::Waiting
    }

    /// The deadline of a request has passed. Returns whether the source has not returned by then.
    pub(super) fn expire(&self, number: u64) -> bool {
        let mut asked = lock(&self.0);
        if asked.number != number || asked.state != State::Waiting {
            return false;
        }
        asked.state = State::Late;
        let waker = asked.waker.take();
        drop(asked);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Whether a future may continue; if so, it is woken at the deadline.
    fn goes_on(&self, number: u64, context: &Context<'_>) -> bool {
        let mut asked = lock(&self.0);
        let goes_on = asked.number == number && asked.state == State::Waiting;
        if goes_on && !asked.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            asked.waker = Some(context.waker().clone());
        }
        goes_on
    }
}

/// A request to a source.
pub(super) enum Question<A> {
    Blocking(Box<dyn FnOnce() -> A + Send>),
    Later(BoxFuture<A>),
}

/// The owner of a request.
pub(super) trait Asker: Send + Sync + 'static {
    type Answer: Send + 'static;

    fn line(&self) -> &Line;

    /// The source has returned in time; without an answer if it panicked or could not be run.
    fn answered(self: &Arc<Self>, answer: Option<Self::Answer>);

    /// The deadline has passed.
    fn expired(self: &Arc<Self>);
}

/// Makes a request and sets a timer for its deadline.
pub(super) fn ask<Q: Asker>(
    asker: &Arc<Q>,
    number: u64,
    question: Question<Q::Answer>,
    deadline: Duration,
    driver: &Arc<dyn SourceDriver>,
) {
    let watch = Arc::clone(asker);
    driver.at(
        driver.now().instant + deadline,
        Box::new(move || {
            if watch.line().expire(number) {
                watch.expired();
            }
        }),
    );
    let owed = Owed { asker: Arc::clone(asker), number, answer: None };
    driver.run(match question {
        Question::Blocking(run) => Work::Blocking(Box::new(move || {
            // If it has waited too long for a thread, the request was already reported as expired.
            if owed.asker.line().is_wanted(owed.number) {
                owed.give(run());
            }
        })),
        Question::Later(future) => Work::Later(Box::pin(Bounded { future, owed })),
    });
}

/// Guarantees an answer to each request, even if its work panics or is dropped.
struct Owed<Q: Asker> {
    asker: Arc<Q>,
    number: u64,
    answer: Option<Q::Answer>,
}

impl<Q: Asker> Owed<Q> {
    fn give(mut self, answer: Q::Answer) {
        self.answer = Some(answer);
    }
}

impl<Q: Asker> Drop for Owed<Q> {
    fn drop(&mut self) {
        if self.asker.line().returned(self.number) {
            self.asker.answered(self.answer.take());
        }
    }
}

/// A future that ends at its deadline.
struct Bounded<Q: Asker> {
    future: BoxFuture<Q::Answer>,
    owed: Owed<Q>,
}

/// The answer is moved out, never pinned.
impl<Q: Asker> Unpin for Bounded<Q> {}

impl<Q: Asker> Future for Bounded<Q> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if !self.owed.asker.line().goes_on(self.owed.number, context) {
            return Poll::Ready(());
        }
        match self.future.as_mut().poll(context) {
            Poll::Ready(answer) => {
                self.owed.answer = Some(answer);
                Poll::Ready(())
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_at_a_time_and_late_answers_are_dropped() {
        let line = Line::default();
        assert_eq!((line.begin(), line.begin()), (Begun::Question(1), Begun::Busy));
        assert!(line.returned(1), "in time");
        assert!(!line.expire(1), "it has returned");
        assert_eq!(line.begin(), Begun::Question(2));
        assert!(!line.expire(1) && line.expire(2) && !line.expire(2));
        assert_eq!(line.begin(), Begun::Late);
        assert!(line.is_late() && !line.is_wanted(2));
        assert!(!line.returned(2), "too late");
        assert_eq!(line.begin(), Begun::Question(3));
        assert!(!line.returned(2), "of another question");
        assert!(line.is_wanted(3));
    }
}
