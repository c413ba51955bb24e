//! The duration of slow work in virtual time.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use taktwerk_crypto::{Entropy, SeededEntropy};
use taktwerk_server::{Job, JobResult};

/// Duration of effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectTime {
    /// Effects complete within the turn that requests them.
    Inline,
    /// Uniform between the two. Effects run in parallel, so a later one may complete first.
    Between(Duration, Duration),
}

impl EffectTime {
    /// Draws the duration of one effect; `None` if it completes within the turn.
    pub(crate) fn draw(self, entropy: &mut SeededEntropy) -> Option<Duration> {
        match self {
            Self::Inline => None,
            Self::Between(from, to) => {
                let span = to.saturating_sub(from).as_nanos();
                let span = u64::try_from(span).unwrap_or(u64::MAX).saturating_add(1);
                Some(from + Duration::from_nanos(entropy.below(span)))
            }
        }
    }
}

/// Runs a server's job as far as possible; a pending future is returned.
pub(crate) fn run(job: Job) -> Result<JobResult, Job> {
    match job {
        Job::Blocking(run) => Ok(run()),
        Job::Future(mut future) => match poll(future.as_mut()) {
            Poll::Ready(result) => Ok(result),
            Poll::Pending => Err(Job::Future(future)),
        },
    }
}

fn poll<T>(future: Pin<&mut (dyn Future<Output = T> + Send)>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
