//! Runs a source in a task of its own, and again whenever it fails.

use crate::fault::Fault;
use crate::feed::{Feed, Writes};
use crate::pause::jitter;
use crate::source::Adapter;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;

/// Runs a source for ever.
pub async fn supervise(mut adapter: Box<dyn Adapter>, feed: Feed, mut writes: Writes) {
    let settings = feed.settings().clone();
    let mut pause = settings.retry;
    let mut last_told = String::new();
    loop {
        writes.discard(&feed);
        let answers = feed.statistics().snapshot().answers;
        // A panic of an adapter or of a library costs this source a pause, and nobody else anything.
        let run = AssertUnwindSafe(adapter.run(&feed, &mut writes)).catch_unwind();
        let fault = match run.await {
            Ok(Ok(())) => Fault::Ended(adapter.describe()),
            Ok(Err(fault)) => fault,
            Err(_) => Fault::other(adapter.describe(), "the adapter panicked; please report this"),
        };
        feed.disconnected(&fault);
        if feed.statistics().snapshot().answers > answers {
            pause = settings.retry;
            last_told.clear();
        }
        let told = fault.to_string();
        if told == last_told {
            tracing::debug!(source = settings.name, error = told, "still not connected");
        } else {
            tracing::warn!(source = settings.name, error = told, "trying again");
            last_told = told;
        }
        tokio::time::sleep(pause + jitter(pause)).await;
        pause = (pause * 2).min(settings.retry_max);
    }
}

/// Looks for values that do not come, for ever.
pub async fn watch(feed: Feed) {
    loop {
        tokio::time::sleep(feed.watch_interval()).await;
        feed.watch();
    }
}
