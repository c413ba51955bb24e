//! A client that reads one value again and again while others load the server, and what its reads took. The examples that
//! measure share it.

use core::time::Duration;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use taktwerk::Client;

type Result<T> = core::result::Result<T, Box<dyn std::error::Error>>;

/// The latency that this share of all stays below.
pub(crate) fn percentile(latencies: &mut [Duration], share: f64) -> Duration {
    latencies.sort_unstable();
    let at = (latencies.len() as f64 * share) as usize;
    latencies.get(at.min(latencies.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// The name of its thread.
#[allow(dead_code)] // not every example looks it up
pub(crate) const NAME: &str = "canary";

/// A client in a thread of its own that reads one value again and again, as a client on another machine would: the clients
/// that take events would otherwise delay it, not the server.
pub(crate) struct Canary {
    latencies: Arc<Mutex<Vec<Duration>>>,
}

impl Canary {
    pub(crate) fn start(url: String) -> Self {
        let latencies = Arc::<Mutex<Vec<Duration>>>::default();
        let found = Arc::clone(&latencies);
        // It has a name so that its waits for a CPU can be looked up. Without the thread nothing is found, which `take` tells.
        let thread = std::thread::Builder::new().name(NAME.to_owned());
        let _ = thread.spawn(move || {
            let read = async {
                let client = Client::builder(&url).unsecured().connect().await?;
                loop {
                    let start = Instant::now();
                    client.read("i=2258").await?;
                    found.lock().map_err(|_| "poisoned")?.push(start.elapsed());
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            // Without it, its figures are missing and the next look at them fails.
            let _: Option<Result<()>> = runtime.ok().map(|runtime| runtime.block_on(read));
        });
        Self { latencies }
    }

    /// The latencies since the last call.
    pub(crate) fn take(&self) -> Result<Vec<Duration>> {
        let taken = core::mem::take(&mut *self.latencies.lock().map_err(|_| "poisoned")?);
        if taken.is_empty() { Err("the canary reads nothing".into()) } else { Ok(taken) }
    }
}

/// This thread, and those that it starts, yield to the server and the canary: what they do belongs to other machines.
#[allow(dead_code)] // not every example needs it
pub(crate) fn yield_to_others() -> Result<()> {
    Ok(rustix::process::setpriority_process(Some(rustix::thread::gettid()), 19)?)
}
