//! TLS for database connections: implements the library's traits for rustls.

use core::pin::Pin;
use core::task::{Context, Poll};
use futures_util::future::BoxFuture;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::{InvalidDnsNameError, ServerName};

/// Creates TLS connections. The server's certificate is always checked.
#[derive(Clone)]
pub struct Tls(pub Arc<ClientConfig>);

/// A connection to a host.
pub struct ToHost(TlsConnector, ServerName<'static>);

/// A stream within TLS.
pub struct Stream(TlsStream<Socket>);

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Stream;
    type TlsConnect = ToHost;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<ToHost, InvalidDnsNameError> {
        Ok(ToHost(TlsConnector::from(Arc::clone(&self.0)), ServerName::try_from(host.to_owned())?))
    }
}

impl TlsConnect<Socket> for ToHost {
    type Stream = Stream;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Stream>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move { self.0.connect(self.1, socket).await.map(Stream) })
    }
}

impl tokio_postgres::tls::TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        // SCRAM works without channel binding, and the certificate was checked.
        ChannelBinding::none()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
