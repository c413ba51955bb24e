//! Runs a source in its own task, and restarts it after failures.

use crate::fault::Fault;
use crate::feed::{Feed, Writes};
use crate::lease::Lease;
use crate::pause::jitter;
use crate::source::Adapter;
use crate::trace::TARGET;
use core::time::Duration;
use futures_util::FutureExt;
use futures_util::future::join;
use std::panic::AssertUnwindSafe;
use tokio::time::sleep;
use tracing::field::Empty;

/// Runs a source forever; a leased source only while this gateway holds the lease.
pub async fn supervise(
    mut adapter: Box<dyn Adapter>,
    feed: Feed,
    mut writes: Writes,
    mut lease: Option<Lease>,
) {
    let settings = feed.settings().clone();
    let mut pause = settings.retry;
    let mut last_told = String::new();
    loop {
        let running = match &mut lease {
            Some(lease) => {
                if !lease.is_held() {
                    feed.wait();
                }
                let running = lease.held().await;
                feed.take_over();
                Some(running)
            }
            None => None,
        };
        writes.discard(&feed);
        let answers = feed.statistics().snapshot().answers;
        let span =
            tracing::debug_span!(target: TARGET, "source.session", source = settings.name, error = Empty);
        // A panic of an adapter or library affects only this source.
        let run = AssertUnwindSafe(adapter.run(&feed, &mut writes)).catch_unwind();
        let outcome = match &mut lease {
            None => Some(run.await),
            Some(lease) => lease.guard(run).await,
        };
        drop(running);
        let fault = match outcome {
            Some(Ok(Ok(()))) => Fault::Ended(adapter.describe()),
            Some(Ok(Err(fault))) => fault,
            Some(Err(_)) => Fault::other(adapter.describe(), "the adapter panicked; please report this"),
            None => {
                tracing::info!(
                    source = settings.name,
                    "the lease has ended: another gateway may poll the source now"
                );
                feed.stand_by();
                pause = settings.retry;
                continue;
            }
        };
        feed.disconnected(&fault);
        if feed.statistics().snapshot().answers > answers {
            pause = settings.retry;
            last_told.clear();
        }
        let told = fault.to_string();
        span.record("error", &told);
        drop(span);
        if told == last_told {
            tracing::debug!(source = settings.name, error = told, "still not connected");
        } else {
            tracing::warn!(source = settings.name, error = told, "trying again");
            last_told = told;
        }
        let waits = sleep(pause + jitter(pause));
        match &mut lease {
            None => waits.await,
            Some(lease) => tokio::select! {
                () = lease.lost() => feed.stand_by(),
                () = waits => {}
            },
        }
        pause = (pause * 2).min(settings.retry_max);
    }
}

/// Interval for storing queued readings.
const WAITING: Duration = Duration::from_millis(10);

/// Detects overdue values and stores queued readings, forever.
pub async fn watch(feed: Feed) {
    let missing = async {
        loop {
            sleep(feed.watch_interval()).await;
            feed.watch();
        }
    };
    let waiting = async {
        loop {
            feed.begins_to_wait().await;
            while feed.store_waiting() {
                sleep(WAITING).await;
            }
        }
    };
    join(missing, waiting).await;
}

#[cfg(test)]
mod simulation;
