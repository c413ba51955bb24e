//! Runs the futures of asynchronous callbacks: on the application's tokio runtime if it is multi-threaded, otherwise on
//! a thread that starts with the first future.

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
    /// Uses the tokio runtime of the calling thread, if any. A current-thread runtime is not used: no future would run
    /// while the application waits for its server.
    pub(crate) fn new() -> Self {
        let executor = Self::default();
        if let Ok(handle) = Handle::try_current()
            && handle.runtime_flavor() != RuntimeFlavor::CurrentThread
        {
            let _ = executor.handle.set(Some(handle));
        }
        executor
    }

    /// Runs a future. If that is not possible, drops the future and returns false.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> bool {
        let handle = self.handle.get_or_init(|| match start() {
            Ok(handle) => Some(handle),
            Err(error) => {
                tracing::error!(%error, "cannot start the thread for asynchronous callbacks: they fail");
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
    // The thread lives as long as the process. It costs no CPU time while no future is ready.
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
