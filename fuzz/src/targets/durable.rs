//! Durable subscriptions: arbitrary logs, from which a server restores subscriptions when it starts.

use core::time::Duration;
use std::sync::{Arc, Mutex};
use taktwerk_crypto::SeededEntropy;
use taktwerk_server::durable::{Change, DurableConfig, DurableStore, Log};
use taktwerk_server::history::StoreError;
use taktwerk_server::{AddressSpace, Effect, Job, Now, ServerConfig, ServerShared, Shard};
use taktwerk_types::{Instant, UtcTime};

/// The subscription of the log, which belongs to the only shard.
const SUBSCRIPTION: u32 = 7;

#[derive(Debug)]
struct Bytes(Mutex<Vec<Vec<u8>>>);

impl DurableStore for Bytes {
    fn load(&self) -> Result<Vec<Log>, StoreError> {
        Ok(vec![Log { subscription: SUBSCRIPTION, records: self.records(SUBSCRIPTION)? }])
    }

    fn write(&self, changes: &[Change]) -> Result<(), StoreError> {
        let mut records = self.0.lock().expect("no thread panics while it holds the lock");
        for change in changes.iter().filter(|change| change.subscription() == SUBSCRIPTION) {
            match change {
                Change::Append { record, .. } => records.push(record.clone()),
                Change::Replace { record, .. } => *records = vec![record.clone()],
                Change::Delete { .. } => records.clear(),
            }
        }
        Ok(())
    }

    fn records(&self, _: u32) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(self.0.lock().expect("no thread panics while it holds the lock").clone())
    }
}

/// A server starts with a log, runs for a second and ends. The log that it has written must be readable.
pub fn log(data: &[u8]) {
    // Each record has a length prefix.
    let (mut records, mut rest) = (Vec::new(), data);
    while let Some((len, behind)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_le_bytes(*len)).min(behind.len());
        let (record, next) = behind.split_at(len);
        records.push(record.to_vec());
        rest = next;
    }
    let store = Arc::new(Bytes(Mutex::new(records)));
    if start(&store) > 0 {
        assert!(store.records(SUBSCRIPTION).is_ok_and(|records| records.is_empty()) || start(&store) > 0);
    }
}

/// Returns the number of restored subscriptions.
fn start(store: &Arc<Bytes>) -> usize {
    let utc = UtcTime::from_ticks(134_000_000_000_000_000);
    let mut config = ServerConfig::new("fuzz", "urn:fuzz", "opc.tcp://host:4840", utc);
    config.durable = Some(DurableConfig::new(Arc::clone(store) as Arc<dyn DurableStore>));
    let space = Arc::new(AddressSpace::new(1, 64, "urn:fuzz"));
    let shared = ServerShared::new(config, space, 1, utc);
    let count = shared.load_durable().expect("the store does not fail");
    let mut shard = Shard::new(0, shared, Box::new(SeededEntropy::new(1)));
    for millis in (0..1_000).step_by(100) {
        let span = Duration::from_millis(1_000 + millis);
        turn(&mut shard, Now { instant: Instant::ZERO + span, utc: utc.plus(span) });
    }
    let span = Duration::from_secs(3);
    let end = Now { instant: Instant::ZERO + span, utc: utc.plus(span) };
    shard.command(taktwerk_server::shard::Command::Shutdown, end);
    turn(&mut shard, end);
    count
}

fn turn(shard: &mut Shard, now: Now) {
    shard.timer(now);
    while let Some(Effect { token, job, .. }) = shard.poll_effect() {
        if let Job::Blocking(run) = job {
            shard.done(token, run(), now);
        }
    }
}
