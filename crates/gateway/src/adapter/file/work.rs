//! Runs blocking work, such as reading from a network drive, on a separate thread with a timeout, one at a time.

use crate::fault::Fault;
use core::time::Duration;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

/// At most one piece of work at a time.
#[derive(Debug)]
pub(super) struct Work<T>(Option<JoinHandle<T>>);

impl<T> Default for Work<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Send + 'static> Work<T> {
    /// Runs work with a timeout. A result that arrives after its timeout is dropped, because it is outdated. Hanging work must
    /// end before the next begins, so that a hanging drive occupies only one thread.
    pub(super) async fn within(
        &mut self,
        deadline: Duration,
        target: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let late = || Fault::NoAnswer { target: target.to_owned(), after: deadline };
        if let Some(left) = &mut self.0 {
            timeout(deadline, left).await.map_err(|_| late())?.ok();
            self.0 = None;
        }
        let done = timeout(deadline, self.0.insert(spawn_blocking(work))).await.map_err(|_| late())?;
        self.0 = None;
        done.map_err(|error| Fault::other(target, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn hanging_work_occupies_one_thread_until_it_ends() {
        let mut work = Work::default();
        let (go, wait) = mpsc::channel::<()>();
        let short = Duration::from_millis(20);
        let late = Fault::NoAnswer { target: "drive".to_owned(), after: short };
        let first = work.within(short, "drive", move || wait.recv().map_or(0, |()| 1)).await;
        assert_eq!(first, Err(late.clone()));
        let second = work.within(short, "drive", || panic!("it must not begin")).await;
        assert_eq!(second, Err(late));
        go.send(()).unwrap();
        assert_eq!(work.within(Duration::from_secs(20), "drive", || 2).await, Ok(2));
    }
}
