//! Where futures of asynchronous callbacks run: the application's tokio runtime if it has one with threads of its own,
//! else a thread that is started with the first future.

use core::future::Future;
use std::io;
use std::sync::OnceLock;
use std::thread;
use tokio::runtime::{Builder, Handle, RuntimeFlavor};

const STACK_LEN: usize = 2 << 20;

/// Runs futures.
#[derive(Debug, Default)]
pub(crate) struct Executor {
    handle: OnceLock<Option<Handle>>,
}

impl Executor {
    /// An executor on the tokio runtime that the calling thread is in, if any. One that runs on the calling thread
    /// alone is not used: nothing would run while the application waits for its server.
    pub(crate) fn new() -> Self {
        let executor = Self::default();
        if let Ok(handle) = Handle::try_current()
            && handle.runtime_flavor() != RuntimeFlavor::CurrentThread
        {
            let _ = executor.handle.set(Some(handle));
        }
        executor
    }

    /// Runs a future. False if that is not possible: it is dropped then.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> bool {
        let handle = self.handle.get_or_init(|| match start() {
            Ok(handle) => Some(handle),
            Err(error) => {
                tracing::error!(%error, "no thread for asynchronous callbacks can be started");
                None
            }
        });
        if let Some(handle) = handle {
            handle.spawn(future);
        }
        handle.is_some()
    }
}

fn start() -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let thread = thread::Builder::new().name("taktwerk-async".to_owned()).stack_size(STACK_LEN);
    // The thread lives as long as the process: it costs nothing while no future is ready.
    thread.spawn(move || runtime.block_on(core::future::pending::<()>()))?;
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use std::sync::mpsc;

    #[test]
    fn futures_run_without_and_within_a_runtime() {
        let (tell, told) = mpsc::channel();
        let own = tell.clone();
        assert!(Executor::new().spawn(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            own.send(thread::current().name().map(str::to_owned)).unwrap();
        }));
        assert_eq!(told.recv_timeout(Duration::from_secs(5)).unwrap().as_deref(), Some("taktwerk-async"));
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            assert!(Executor::new().spawn(async move { tell.send(None).unwrap() }));
            // The runtime's only thread is blocked here.
            assert_eq!(told.recv_timeout(Duration::from_secs(5)).unwrap(), None);
        });
    }
}
