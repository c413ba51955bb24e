//! The listener, its connections, and TLS.

use crate::backlog::{Backlogs, TOTAL_MAX};
use crate::guard;
use crate::rate_limit::Logins;
use crate::reach::Reach;
use crate::settings::{Settings, Tls};
use crate::slots::{Activity, Slots};
use crate::stall::Stall;
use crate::state::App;
use crate::subject::Subject;
use crate::visitor::Visitors;
use crate::{api, assets, health, metrics, pending};
use axum::Router;
use axum::extract::{ConnectInfo, DefaultBodyLimit};
use axum::middleware;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use taktwerk_files::{CERTIFICATES_LEN_MAX, SECRET_LEN_MAX, read_bytes};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Maximum number of connections.
const CONNECTIONS_MAX: usize = 256;
/// Timeout for the TLS handshake, and for the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum size of the buffers of a connection, in bytes: for the head of a request, and for data that the peer does not read.
const BUFFER_MAX: usize = 64 << 10;
/// Timeout for a browser that reads nothing of a response, and for TCP acknowledgements. Streams send something every
/// 15 seconds.
const STALL: Duration = Duration::from_secs(30);
/// Maximum size of a request body, in bytes: a list of 10 000 nodes.
const BODY_LEN_MAX: usize = 1 << 20;

/// Why the web server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address cannot be used.
    #[error("the web server cannot listen on {address}: {reason}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        reason: io::Error,
    },
    /// Without TLS, passwords would be sent unencrypted.
    #[error(
        "the web server does not listen on {0} without TLS, because passwords would be sent unencrypted; set \
         certificate and key in the section [web], or set bind to 127.0.0.1"
    )]
    Unprotected(SocketAddr),
    /// The certificate or its key cannot be used.
    #[error("{path}: {reason}")]
    Tls {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The thread cannot be started.
    #[error("cannot start the thread of the web server: {0}")]
    Thread(io::Error),
}

/// A running web server. Dropping it stops it.
#[derive(Debug)]
pub struct WebServer {
    address: SocketAddr,
    is_tls: bool,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl WebServer {
    /// Starts the web server on its own thread.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(subject: Subject, settings: Settings) -> Result<Self, StartError> {
        if settings.tls.is_none() && !settings.bind.ip().is_loopback() {
            return Err(StartError::Unprotected(settings.bind));
        }
        let tls = settings.tls.as_ref().map(acceptor).transpose()?;
        let bind = |reason| StartError::Bind { address: settings.bind, reason };
        let listener = std::net::TcpListener::bind(settings.bind).map_err(bind)?;
        listener.set_nonblocking(true).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(StartError::Thread)?;
        let hosts = hosts(&settings, address);
        let app = Arc::new(App {
            subject,
            hosts,
            settings,
            visitors: Visitors::default(),
            reach: Reach::default(),
            logins: Logins::default(),
            backlogs: Backlogs::new(TOTAL_MAX),
        });
        let (stop, stopped) = watch::channel(false);
        let is_tls = tls.is_some();
        let thread = std::thread::Builder::new().name("web".to_owned()).spawn(move || {
            runtime.block_on(serve(app, listener, tls, stopped));
            runtime.shutdown_timeout(Duration::from_millis(500));
        });
        Ok(Self { address, is_tls, stop, thread: Some(thread.map_err(StartError::Thread)?) })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for a browser on this machine.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}/", self.address)
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        // If the receiver is gone, the thread has ended.
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The accepted values of the Host header. On loopback only local names are accepted, so that no other site can reach
/// the dashboard under its own name (DNS rebinding).
fn hosts(settings: &Settings, address: SocketAddr) -> BTreeSet<String> {
    if !address.ip().is_loopback() {
        return BTreeSet::new();
    }
    let own = ["localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()];
    let named = settings.host_names.iter().map(|name| name.to_ascii_lowercase());
    let bound = match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    };
    own.into_iter().chain(named).chain([bound]).collect()
}

/// Reads the certificate and the key.
fn acceptor(tls: &Tls) -> Result<TlsAcceptor, StartError> {
    let fail = |path: &Path, reason: String| StartError::Tls { path: path.to_owned(), reason };
    let read = |path: &Path, max| read_bytes(path, max).map_err(|error| fail(path, error.to_string()));
    let bytes = read(&tls.certificate, CERTIFICATES_LEN_MAX)?;
    let certificates = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| fail(&tls.certificate, error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(&read(&tls.key, SECRET_LEN_MAX)?)
        .map_err(|error| fail(&tls.key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|error| fail(&tls.certificate, error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::get))
        .nest("/api", api::router());
    for path in assets::paths() {
        router = router.route(path, get(assets::get));
    }
    router
        .layer(DefaultBodyLimit::max(BODY_LEN_MAX))
        .layer(middleware::from_fn_with_state(Arc::clone(app), guard::check))
        .with_state(Arc::clone(app))
}

async fn serve(
    app: Arc<App>,
    listener: std::net::TcpListener,
    tls: Option<TlsAcceptor>,
    mut stopped: watch::Receiver<bool>,
) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the web server has stopped"),
    };
    let router = router(&app);
    let slots = Slots::new(CONNECTIONS_MAX);
    let mut tidy = tokio::time::interval(Duration::from_secs(60));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = tidy.tick() => {
                app.visitors.forget_idle(Instant::now());
                continue;
            }
            _ = stopped.changed() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection to the web server failed");
                // Out of file descriptors: retrying at once would not help.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(mut slot) = slots.enter(peer.ip(), Instant::now()) else {
            tracing::debug!(%peer, "too many connections to the web server");
            continue;
        };
        let (router, tls, mut stopped) = (router.clone(), tls.clone(), stopped.clone());
        let activity = slot.activity.clone();
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            // A peer that has disappeared closes nothing, and its streams would run until the kernel's buffers are
            // full.
            let _ =
                sockopt::set_tcp_user_timeout(&stream, u32::try_from(STALL.as_millis()).unwrap_or(u32::MAX));
            let served = async {
                match tls {
                    None => connection(stream, peer, router, activity).await,
                    Some(tls) => {
                        if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, tls.accept(stream)).await {
                            connection(stream, peer, router, activity).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = served => {}
                () = slot.lost() => tracing::debug!(%peer, "a connection to the web server was closed to make room for a newer one"),
                _ = stopped.changed() => {}
            }
        });
    }
}

/// Serves a connection until it is closed.
async fn connection<S>(stream: S, peer: SocketAddr, router: Router, activity: Activity)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let watched = activity.clone();
    let watch = move |request, next| pending::watch(watched.clone(), request, next);
    let router = router.layer(axum::Extension(ConnectInfo(peer))).layer(middleware::from_fn(watch));
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(BUFFER_MAX)
        .serve_connection(TokioIo::new(Stall::new(stream, STALL, activity)), service);
    if let Err(error) = connection.await {
        tracing::debug!(%peer, %error, "a connection to the web server failed");
    }
}
