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
use tokio::time::{Instant, sleep};
use tracing::field::Empty;

/// While sessions end soon after answers, the same reason is logged again only after this time.
const LOGGED_AGAIN: Duration = Duration::from_secs(60);

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
    let mut last_logged = None;
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
        let begun = Instant::now();
        let span =
            tracing::debug_span!(target: TARGET, "source.session", source = settings.name, error = Empty);
        // A panic of an adapter or library affects only this source.
        let run = AssertUnwindSafe(adapter.run(&feed, &mut writes)).catch_unwind();
        let outcome = match &mut lease {
            None => Some(run.await),
            Some(lease) => lease.guard(run).await,
        };
        drop(running);
        // One that has ended by itself may be run again for each value.
        let has_ended = matches!(outcome, Some(Ok(Ok(()))));
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
        // A session that has answers but fails at once, such as by the same message each time, does not shorten the pause.
        let has_lasted = has_ended || begun.elapsed() >= pause;
        let has_worked = has_lasted && feed.statistics().snapshot().answers > answers;
        if has_worked {
            pause = settings.retry;
        }
        let is_due = last_logged.is_none_or(|at: Instant| at.elapsed() >= LOGGED_AGAIN);
        let told = fault.to_string();
        span.record("error", &told);
        drop(span);
        if told == last_told && !(has_worked && is_due) {
            tracing::debug!(source = settings.name, error = told, "still not connected");
        } else {
            tracing::warn!(source = settings.name, error = told, "trying again");
            last_logged = Some(Instant::now());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::Reading;
    use crate::fields::{Fields, Mistake, Sections};
    use crate::plant::Plant;
    use crate::settings::SourceSettings;
    use crate::source::Placement;
    use crate::tag::Tag;
    use crate::value::Kind;
    use core::sync::atomic::{AtomicU32, Ordering};
    use futures_util::future::BoxFuture;
    use std::path::Path;
    use std::sync::Arc;
    use taktwerk::Server;
    use taktwerk_types::BuiltInType;

    /// Each session answers, lasts so long, and fails.
    struct Failing {
        lasts: Duration,
        sessions: Arc<AtomicU32>,
    }

    impl Adapter for Failing {
        fn describe(&self) -> String {
            "failing".to_owned()
        }

        fn add_tag(&mut self, _: &Tag, _: &mut Fields, _: usize) -> Result<Placement, Mistake> {
            Ok(Placement::Variable(Kind::scalar(BuiltInType::Double)))
        }

        fn run<'a>(&'a mut self, feed: &'a Feed, _: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
            Box::pin(async move {
                self.sessions.fetch_add(1, Ordering::Relaxed);
                feed.connected();
                feed.deliver([(0, Reading::good(1.0))]);
                sleep(self.lasts).await;
                Err(Fault::other("broker", "the same message each time"))
            })
        }
    }

    /// Number of sessions within ten minutes.
    async fn sessions(lasts: Duration) -> u32 {
        let text =
            "[[source]]\nretry = \"500 ms\"\nretry_max = \"30 s\"\n[[tag]]\nsource = \"s\"\nname = \"t\"\n";
        let mut sections = Sections::parse(Path::new("g.toml"), text).unwrap();
        let settings = SourceSettings::take(&mut sections.sources[0], "s".to_owned(), None).unwrap();
        let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let (feed, writes) =
            Feed::new(settings, Arc::new(Plant::new(server.namespace("urn:test"))), Vec::new());
        feed.add(&Tag::take(&mut sections.tags[0]).unwrap(), Kind::scalar(BuiltInType::Double)).unwrap();
        let sessions = Arc::<AtomicU32>::default();
        let adapter = Failing { lasts, sessions: Arc::clone(&sessions) };
        let running = supervise(Box::new(adapter), feed, writes, None);
        let _ = tokio::time::timeout(Duration::from_secs(600), running).await;
        sessions.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_that_fail_after_the_first_answer_become_rare_and_longer_ones_do_not() {
        let short = sessions(Duration::from_millis(20)).await;
        assert!((10..=30).contains(&short), "{short}");
        // A second longer than the pause: the source is worth trying again soon.
        let long = sessions(Duration::from_millis(1_500)).await;
        assert!(long >= 250, "{long}");
    }
}
