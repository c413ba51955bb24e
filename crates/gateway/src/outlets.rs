//! Running destinations: starting and stopping them, and replacing them while the sources run.
//!
//! The queue of a destination whose settings changed stays open and passes to the new one, so that nothing in it is lost or
//! overtaken. Queues that no destination uses any more stay on disk.

use crate::configuration::DestinationConfig;
use crate::destination::Sink;
use crate::destination::forward::Destination;
use crate::destination::nodes::Follower;
use crate::destination::queue::{Queue, QueueError};
use crate::destination::sending::forward;
use crate::destination::tap::Tap;
use crate::plant::Plant;
use core::time::Duration;
use std::path::PathBuf;
use std::sync::Arc;
use taktwerk_types::Variant;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// What another configuration changes, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// New ones.
    pub added: Vec<String>,
    /// Those with other settings.
    pub changed: Vec<String>,
    /// Removed ones.
    pub removed: Vec<String>,
}

impl Changes {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }

    fn concerns(&self, name: &str) -> bool {
        [&self.added, &self.changed, &self.removed].into_iter().flatten().any(|it| it == name)
    }
}

/// A queue that no destination uses any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftQueue {
    /// The destination that used it.
    pub destination: String,
    /// Its file.
    pub path: PathBuf,
    /// The number of values that were not sent.
    pub waiting: u64,
}

/// The queue of a destination cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("destination {destination}: {error}")]
pub struct Unusable {
    /// The destination.
    pub destination: String,
    /// Why.
    pub error: QueueError,
}

/// A destination that does not run yet.
pub(crate) struct Ready {
    destination: Destination,
    sink: Box<dyn Sink>,
    fingerprint: u64,
}

impl Ready {
    pub(crate) fn tap(&self) -> Arc<Tap> {
        self.destination.tap()
    }

    /// Starts the tasks of the destination.
    pub(crate) fn start(self, runtime: &Runtime, plant: &Arc<Plant>) -> Outlet {
        let Self { destination, mut sink, fingerprint } = self;
        let nodes = Arc::clone(plant);
        sink.take_commands(Arc::new(move |tag: &str, value: Variant| nodes.write(tag, value)));
        let settings = destination.settings();
        let follower = (!settings.nodes.is_empty()).then(|| {
            let follower = Follower::new(Arc::clone(plant.space()), &settings.nodes, &destination.tap());
            runtime.spawn(follower.run(settings.nodes_every))
        });
        let storing = runtime.spawn(destination.clone().store());
        let sending = runtime.spawn(forward(destination.clone(), sink));
        Outlet { destination, fingerprint, follower, storing, sending }
    }
}

/// Opens the queues of destinations.
///
/// # Errors
/// A queue cannot be used. `running` has the queues that are open already.
pub(crate) fn open(configs: Vec<DestinationConfig>, running: &[&Outlet]) -> Result<Vec<Ready>, Unusable> {
    // Files that cannot be opened are found before the limits of an open queue change.
    let mut open: Vec<&Queue> = running.iter().map(|it| it.destination.queue()).collect();
    let mut queues = Vec::new();
    for DestinationConfig { settings, .. } in &configs {
        let at = open.iter().position(|queue| queue.is_in(&settings.queue));
        let queue = match at.map(|at| open.swap_remove(at)) {
            Some(queue) => Ok(Err(queue)),
            None => Queue::open(&settings.queue, settings.limits).map(Ok),
        };
        queues.push(queue.map_err(|error| failed(&settings.name, error))?);
    }
    let ready = configs.into_iter().zip(queues).map(|(config, queue)| {
        let DestinationConfig { settings, sink, fingerprint, .. } = config;
        let name = settings.name.clone();
        let queue = queue.or_else(|open| open.with_limits(settings.limits));
        let open = |queue| Destination::with_queue(settings, sink.describe(), queue);
        let destination = queue.and_then(open).map_err(|error| failed(&name, error))?;
        Ok(Ready { destination, sink, fingerprint })
    });
    ready.collect()
}

fn failed(destination: &str, error: QueueError) -> Unusable {
    Unusable { destination: destination.to_owned(), error }
}

/// A running destination.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) destination: Destination,
    fingerprint: u64,
    follower: Option<JoinHandle<()>>,
    storing: JoinHandle<()>,
    sending: JoinHandle<()>,
}

impl Outlet {
    pub(crate) fn name(&self) -> &str {
        &self.destination.settings().name
    }
}

/// What other destinations would change.
pub(crate) fn compare(running: &[Outlet], configs: &[DestinationConfig]) -> Changes {
    let mut changes = Changes::default();
    for config in configs {
        let name = &config.settings.name;
        match running.iter().find(|it| it.name() == name) {
            None => changes.added.push(name.clone()),
            Some(it) if it.fingerprint != config.fingerprint => changes.changed.push(name.clone()),
            Some(_) => {}
        }
    }
    let is_gone = |it: &&Outlet| !configs.iter().any(|config| config.settings.name == it.name());
    changes.removed.extend(running.iter().filter(is_gone).map(|it| it.name().to_owned()));
    changes
}

/// Checks whether the queues of added and changed destinations can be used.
///
/// # Errors
/// One cannot be used.
pub(crate) fn check(running: &[Outlet], configs: &[DestinationConfig]) -> Result<(), Unusable> {
    let changes = compare(running, configs);
    for settings in configs.iter().map(|config| &config.settings) {
        let mut going = running.iter().filter(|it| changes.concerns(it.name()));
        let is_open = going.any(|it| it.destination.queue().is_in(&settings.queue));
        if changes.concerns(&settings.name) && !is_open {
            Queue::open(&settings.queue, settings.limits).map_err(|error| failed(&settings.name, error))?;
        }
    }
    Ok(())
}

/// Other destinations, opened and not running yet.
pub(crate) struct Replacement {
    changes: Changes,
    order: Vec<String>,
    ready: Vec<Ready>,
}

impl Replacement {
    /// Opens the queues of added and changed destinations.
    ///
    /// # Errors
    /// As [`open`]. Nothing has changed then.
    pub(crate) fn open(running: &[Outlet], configs: Vec<DestinationConfig>) -> Result<Self, Unusable> {
        let changes = compare(running, &configs);
        let order = configs.iter().map(|config| config.settings.name.clone()).collect();
        let coming = configs.into_iter().filter(|config| changes.concerns(&config.settings.name));
        let going: Vec<&Outlet> = running.iter().filter(|it| changes.concerns(it.name())).collect();
        let ready = open(coming.collect(), &going)?;
        Ok(Self { changes, order, ready })
    }

    /// The position of a destination in the configuration.
    fn position(&self, name: &str) -> Option<usize> {
        self.order.iter().position(|it| it == name)
    }

    /// Stops the destinations that go, within `grace`, and starts the others. `tap_into` connects all running sources to the new taps. Returns
    /// the queues that are left. Blocks.
    pub(crate) fn apply(
        mut self,
        running: &mut Vec<Outlet>,
        runtime: &Runtime,
        plant: &Arc<Plant>,
        grace: Duration,
        tap_into: impl FnOnce(&[Arc<Tap>]),
    ) -> Vec<LeftQueue> {
        let all = core::mem::take(running);
        let (going, staying): (Vec<Outlet>, Vec<Outlet>) =
            all.into_iter().partition(|it| self.changes.concerns(it.name()));
        let going = stop(runtime, going, grace);
        let mut taps: Vec<(Option<usize>, Arc<Tap>)> = Vec::new();
        taps.extend(staying.iter().map(|it| (self.position(it.name()), it.destination.tap())));
        taps.extend(self.ready.iter().map(|it| (self.position(&it.destination.settings().name), it.tap())));
        taps.sort_by_key(|(position, _)| *position);
        tap_into(&taps.into_iter().map(|(_, tap)| tap).collect::<Vec<_>>());
        // Nothing arrives at the old taps any more, and the new ones are not stored yet: the order of values is kept.
        for it in &going {
            let rest = it.flush();
            // A full disk is often the reason for another queue.
            match self.ready.iter().find(|ready| ready.destination.settings().name == it.settings().name) {
                Some(newer) => newer.destination.take_over(rest),
                None => it.lose(&rest),
            }
        }
        let ready = core::mem::take(&mut self.ready);
        // The destinations before have sent some of what was in the queues when they were opened.
        ready.iter().for_each(|it| it.destination.show_size());
        *running = staying.into_iter().chain(ready.into_iter().map(|it| it.start(runtime, plant))).collect();
        running.sort_by_key(|it| self.position(it.name()));
        let is_used = |queue: &Queue| running.iter().any(|it| it.destination.queue().is_in(queue.path()));
        let left = going.iter().filter(|it| !is_used(it.queue())).map(|it| LeftQueue {
            destination: it.settings().name.clone(),
            path: it.queue().path().to_owned(),
            waiting: it.view().counters.queued,
        });
        left.collect()
    }
}

/// Stops destinations. A batch that is being sent may take the grace; then it counts as not sent.
fn stop(runtime: &Runtime, going: Vec<Outlet>, grace: Duration) -> Vec<Destination> {
    going.iter().for_each(|it| it.destination.stop());
    runtime.block_on(async {
        let end = Instant::now() + grace;
        let mut stopped = Vec::new();
        for Outlet { destination, follower, storing, mut sending, .. } in going {
            if timeout_at(end, &mut sending).await.is_err() {
                sending.abort();
                // At its end the sink is dropped, which closes connections.
                let _ = sending.await;
            }
            // What is being written to the disk must be in the queue before anything else.
            let _ = storing.await;
            if let Some(follower) = follower {
                follower.abort();
                let _ = follower.await;
            }
            stopped.push(destination);
        }
        stopped
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::queue::{QueueLimits, WhenFull};
    use crate::destination::settings::DestinationSettings;
    use crate::destination::{Batch, Taken};
    use crate::fault::Fault;
    use futures_util::future::BoxFuture;
    use std::path::Path;
    use std::sync::Mutex;
    use taktwerk::Server;
    use taktwerk_types::{StatusCode, UtcTime};

    const MS: Duration = Duration::from_millis(1);

    /// Accepts everything, and keeps the values.
    #[derive(Default, Clone)]
    struct Takes(Arc<Mutex<Vec<Variant>>>);

    impl Sink for Takes {
        fn describe(&self) -> String {
            "takes all".to_owned()
        }

        fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>> {
            self.0.lock().unwrap().extend(batch.records.iter().map(|record| record.value.clone()));
            Box::pin(async { Ok(Taken::default()) })
        }
    }

    fn config(name: &str, queue: &Path, sink: &Takes, fingerprint: u64) -> DestinationConfig {
        let settings = DestinationSettings {
            name: name.to_owned(),
            include: Vec::new(),
            tags_line: 0,
            exclude: Vec::new(),
            nodes: Vec::new(),
            nodes_every: Duration::from_secs(1),
            every: true,
            queue: queue.to_owned(),
            limits: QueueLimits {
                bytes_max: 1 << 30,
                age_max: None,
                when_full: WhenFull::DropOldest,
                parked_max: 100,
                sync: false,
            },
            flush: MS,
            batch_max: 100,
            deadline: Duration::from_secs(60),
            retry: MS,
            retry_max: MS * 10,
        };
        DestinationConfig { settings, sink: Box::new(sink.clone()), line: 1, fingerprint }
    }

    /// The keys of the records of each batch. The first batch is not confirmed before the destination ends.
    #[derive(Default, Clone)]
    struct Slow(Arc<Mutex<Vec<Vec<String>>>>);

    impl Sink for Slow {
        fn describe(&self) -> String {
            "slow".to_owned()
        }

        fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>> {
            let keys = batch.records.iter().map(|record| batch.key(record)).collect();
            let mut all = self.0.lock().unwrap();
            all.push(keys);
            let is_first = all.len() == 1;
            Box::pin(async move {
                if is_first {
                    core::future::pending::<()>().await;
                }
                Ok(Taken::default())
            })
        }
    }

    /// The destination may have got the first batch. It recognizes the second one by the keys.
    #[test]
    fn a_batch_that_is_sent_again_after_a_change_has_the_same_keys() {
        let folder = tempfile::tempdir().unwrap();
        let queue = folder.path().join("queue.db");
        let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let plant = Arc::new(Plant::new(server.namespace("urn:test")));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let slow = Slow::default();
        let of = |fingerprint| DestinationConfig {
            sink: Box::new(slow.clone()),
            ..config("d", &queue, &Takes::default(), fingerprint)
        };
        let ready = open(vec![of(1)], &[]).unwrap();
        let mut running: Vec<Outlet> = ready.into_iter().map(|it| it.start(&runtime, &plant)).collect();
        let tapped = Tap::add(&running[0].destination.tap());
        let (name, time): (Arc<str>, _) = ("T".into(), UtcTime::from_ticks(1));
        for value in 0..5 {
            tapped.push(&name, &value.into(), StatusCode::GOOD, (time, time), true);
        }
        let end = std::time::Instant::now() + Duration::from_secs(20);
        let until = |batches: usize| {
            while slow.0.lock().unwrap().len() < batches {
                assert!(std::time::Instant::now() < end, "{:?}", slow.0.lock().unwrap());
                std::thread::sleep(MS);
            }
        };
        until(1);
        let newer = Replacement::open(&running, vec![of(2)]).unwrap();
        newer.apply(&mut running, &runtime, &plant, 50 * MS, |_| {});
        until(2);
        let sent = slow.0.lock().unwrap().clone();
        assert!(!sent[0].is_empty());
        assert_eq!(sent[1][..sent[0].len()], sent[0], "{sent:?}");
        let keys: std::collections::HashSet<&String> = sent[1].iter().collect();
        assert_eq!(keys.len(), sent[1].len(), "each value has a key of its own");
    }

    #[test]
    fn values_that_wait_for_a_full_disk_pass_to_the_next_queue() {
        let folder = tempfile::tempdir().unwrap();
        let (full, other) = (folder.path().join("full.db"), folder.path().join("other.db"));
        let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let plant = Arc::new(Plant::new(server.namespace("urn:test")));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let sink = Takes::default();
        let ready = open(vec![config("d", &full, &sink, 1)], &[]).unwrap();
        let mut running: Vec<Outlet> = ready.into_iter().map(|it| it.start(&runtime, &plant)).collect();
        running[0].destination.queue().execute(
            "CREATE TRIGGER full BEFORE INSERT ON block BEGIN SELECT RAISE(ABORT, 'disk is full'); END",
        );
        let tapped = Tap::add(&running[0].destination.tap());
        let (name, time): (Arc<str>, _) = ("T".into(), UtcTime::from_ticks(1));
        for value in 0..5 {
            tapped.push(&name, &value.into(), StatusCode::GOOD, (time, time), true);
        }
        let end = std::time::Instant::now() + Duration::from_secs(20);
        while running[0].destination.view().counters.errors == 0 {
            assert!(std::time::Instant::now() < end, "the queue is full");
            std::thread::sleep(MS);
        }
        let newer = Replacement::open(&running, vec![config("d", &other, &sink, 2)]).unwrap();
        let left = newer.apply(&mut running, &runtime, &plant, 500 * MS, |_| {});
        assert_eq!((left.len(), left[0].waiting), (1, 0));
        while sink.0.lock().unwrap().len() < 5 {
            assert!(std::time::Instant::now() < end, "{:?}", running[0].destination.view());
            std::thread::sleep(MS);
        }
        assert_eq!(*sink.0.lock().unwrap(), (0..5).map(Variant::from).collect::<Vec<_>>());
        // Without a destination of this name they are lost, and counted.
        let gone = running[0].destination.clone();
        gone.queue().execute(
            "CREATE TRIGGER full BEFORE INSERT ON block BEGIN SELECT RAISE(ABORT, 'disk is full'); END",
        );
        let tapped = Tap::add(&gone.tap());
        tapped.push(&name, &7.into(), StatusCode::GOOD, (time, time), true);
        let newer = Replacement::open(&running, Vec::new()).unwrap();
        newer.apply(&mut running, &runtime, &plant, 500 * MS, |_| {});
        assert_eq!(gone.view().counters.overrun, 1);
    }
}
