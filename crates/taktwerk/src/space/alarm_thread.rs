//! The thread that looks at what alarms watch.

use core::time::Duration;
use std::sync::{Arc, Weak};
use std::thread;
use taktwerk_net::clock;
use taktwerk_server::AddressSpace;

/// How often alarms look at their inputs.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Starts the thread that looks at the conditions of an address space, if there is none yet. It ends with the address space.
pub(crate) fn watch(space: &Arc<AddressSpace>) {
    if !space.alarms_or_new().claim_driver() {
        return;
    }
    let watched = Arc::downgrade(space);
    let thread = thread::Builder::new().name("taktwerk-alarms".to_owned()).spawn(move || look(&watched));
    if let Err(error) = thread {
        tracing::error!(%error, "cannot start the thread of alarms: alarms that watch variables are not looked at");
    }
}

fn look(space: &Weak<AddressSpace>) {
    loop {
        let next = {
            let Some(space) = space.upgrade() else { return };
            space.poll_alarms(clock::wall())
        };
        let until = next.map_or(i64::MAX, |next| next.ticks().saturating_sub(clock::wall().ticks()));
        // What is due sooner is looked at sooner.
        let micros = u64::try_from(until / 10).unwrap_or(0).max(1_000);
        thread::sleep(LOOK_EVERY.min(Duration::from_micros(micros)));
    }
}
