//! A future for a value that is provided later.

use super::lock;
use crate::callback::BoxFuture;
use core::future::poll_fn;
use core::task::{Poll, Waker};
use std::sync::{Arc, Mutex};
use taktwerk_types::DataValue;

#[derive(Debug, Default)]
struct State {
    value: Option<DataValue>,
    waker: Option<Waker>,
}

/// The providing end.
#[derive(Debug)]
pub(super) struct Reply(Arc<Mutex<State>>);

/// Creates both ends.
pub(super) fn reply() -> (Reply, BoxFuture<DataValue>) {
    let state = Arc::<Mutex<State>>::default();
    let taken = Arc::clone(&state);
    let future = poll_fn(move |context| {
        let mut state = lock(&taken);
        match state.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    });
    (Reply(state), Box::pin(future))
}

impl Reply {
    /// Provides the value.
    pub(super) fn give(self, value: DataValue) {
        let mut state = lock(&self.0);
        state.value = Some(value);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether the receiving end was dropped.
    pub(super) fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}
