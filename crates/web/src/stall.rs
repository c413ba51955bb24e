//! A write timeout for connections. A peer that does not read its response would occupy a slot and memory.

use crate::slots::Activity;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection whose writes fail if the peer has read nothing for some time.
pub(crate) struct Stall<S> {
    stream: S,
    after: Duration,
    /// When the waiting write fails.
    due: Option<Pin<Box<Sleep>>>,
    activity: Activity,
}

impl<S> Stall<S> {
    pub(crate) fn new(stream: S, after: Duration, activity: Activity) -> Self {
        Self { stream, after, due: None, activity }
    }
}

impl<S: AsyncWrite + Unpin> Stall<S> {
    /// Writes, and starts the timeout if the write has to wait.
    fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let written = write(Pin::new(&mut self.stream), context);
        if written.is_ready() {
            self.due = None;
            self.activity.touch(Instant::now());
            return written;
        }
        let due = self.due.get_or_insert_with(|| Box::pin(sleep(self.after)));
        ready!(due.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stall<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            self.activity.touch(Instant::now());
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stall<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll(context, |stream, context| stream.poll_write_vectored(context, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(context, |stream, context| stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(context, |stream, context| stream.poll_shutdown(context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[tokio::test(start_paused = true)]
    async fn slow_readers_get_everything_and_writes_to_stalled_readers_time_out() {
        let (own, mut peer) = duplex(10);
        let mut own = Stall::new(own, Duration::from_secs(30), Activity::new(Instant::now()));
        let reader = tokio::spawn(async move {
            let mut bytes = [0; 5];
            for _ in 0..4 {
                sleep(Duration::from_secs(29)).await;
                peer.read_exact(&mut bytes).await.unwrap();
            }
            // Then it reads nothing more.
            std::future::pending::<()>().await;
        });
        own.write_all(&[7; 25]).await.unwrap();
        let begin = tokio::time::Instant::now();
        let error = own.write_all(&[7; 25]).await.unwrap_err();
        // 30 s after the last bytes that were read.
        assert_eq!((error.kind(), begin.elapsed().as_secs()), (io::ErrorKind::TimedOut, 29 + 30));
        reader.abort();
    }
}
