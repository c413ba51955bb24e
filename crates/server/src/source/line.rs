//! Whether a source is being asked: one question at a time, and what an answer is worth.

use super::{SourceDriver, Work, lock};
use crate::callback::BoxFuture;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::{Arc, Mutex};

/// Where a question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// There is none.
    #[default]
    Idle,
    /// The answer is not due yet.
    Waiting,
    /// The deadline has passed. As long as the source has not returned, it is asked nothing more.
    Late,
}

#[derive(Debug, Default)]
struct Asked {
    /// The question's number.
    number: u64,
    state: State,
    /// Of a future that is to be dropped when it is late.
    waker: Option<Waker>,
}

/// The line to a source.
#[derive(Debug, Default)]
pub(super) struct Line(Mutex<Asked>);

/// What came of beginning a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begun {
    /// It can be asked.
    Question(u64),
    /// Another one is under way.
    Busy,
    /// The source has not returned from one whose deadline has passed.
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

    /// Whether the answer to a question still counts.
    fn is_wanted(&self, number: u64) -> bool {
        let asked = lock(&self.0);
        asked.number == number && asked.state == State::Waiting
    }

    /// The source has returned. Whether its answer counts.
    pub(super) fn returned(&self, number: u64) -> bool {
        let mut asked = lock(&self.0);
        if asked.number != number {
            return false;
        }
        asked.waker = None;
        core::mem::take(&mut asked.state) == State::Waiting
    }

    /// The deadline of a question has passed. Whether the source has not returned by then.
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

    /// Whether a future goes on; if so, it is woken when it is late.
    fn goes_on(&self, number: u64, context: &Context<'_>) -> bool {
        let mut asked = lock(&self.0);
        let goes_on = asked.number == number && asked.state == State::Waiting;
        if goes_on && !asked.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            asked.waker = Some(context.waker().clone());
        }
        goes_on
    }
}

/// What a source is asked.
pub(super) enum Question<A> {
    Blocking(Box<dyn FnOnce() -> A + Send>),
    Later(BoxFuture<A>),
}

/// Somebody who asks.
pub(super) trait Asker: Send + Sync + 'static {
    type Answer: Send + 'static;

    fn line(&self) -> &Line;

    /// The source has returned in time; without an answer if it panicked, or could not be asked.
    fn answered(self: &Arc<Self>, answer: Option<Self::Answer>);

    /// The deadline has passed.
    fn expired(self: &Arc<Self>);
}

/// Asks, and looks at the clock when the deadline has come.
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
            // It may have waited for a thread for too long: whoever wanted it has been told so.
            if owed.asker.line().is_wanted(owed.number) {
                owed.give(run());
            }
        })),
        Question::Later(future) => Work::Later(Box::pin(Bounded { future, owed })),
    });
}

/// The answer that every question owes, also when its work panics or is dropped.
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

/// A future that ends when it is late.
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
    fn one_question_at_a_time_and_late_answers_count_for_nothing() {
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
