//! A device that increments its value at each read, or hangs.

use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use core::task::Poll;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_server::callback::{SourceRead, ValueSource};
use taktwerk_types::DataValue;

pub(crate) const DEADLINE: Duration = Duration::from_millis(400);

#[derive(Debug, Clone, Default)]
pub(crate) struct Device {
    hangs: Arc<AtomicBool>,
    count: Arc<AtomicI64>,
}

impl Device {
    pub(crate) fn set_hangs(&self, hangs: bool) {
        self.hangs.store(hangs, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> i64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn value(&self) -> impl Future<Output = i64> + Send + use<> {
        let device = self.clone();
        poll_fn(move |_| match device.hangs.load(Ordering::Relaxed) {
            true => Poll::Pending,
            false => Poll::Ready(device.count.fetch_add(1, Ordering::Relaxed) + 1),
        })
    }
}

impl ValueSource for Device {
    fn read(&self) -> SourceRead {
        let value = self.value();
        SourceRead::Later(Box::pin(async move { DataValue::new(value.await) }))
    }

    fn deadline(&self) -> Duration {
        DEADLINE
    }
}
