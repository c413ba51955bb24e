//! Settings of the web server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// The settings of a web server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The listen address. Port 0 selects a free port.
    pub bind: SocketAddr,
    /// Certificate and key. Without them the server listens on loopback addresses only.
    pub tls: Option<Tls>,
    /// Additional host names in the URLs of browsers, besides the address and, on loopback, `localhost`.
    pub host_names: Vec<String>,
    /// Access to `/metrics`.
    pub metrics: Access,
    /// Whether the dashboard is shown without login, if the server allows anonymous clients.
    pub anonymous: bool,
}

impl Settings {
    /// Default settings for an address. Metrics and anonymous visitors are allowed on loopback only.
    #[must_use]
    pub fn at(bind: SocketAddr) -> Self {
        let is_local = bind.ip().is_loopback();
        Self {
            bind,
            tls: None,
            host_names: Vec::new(),
            metrics: if is_local { Access::Open } else { Access::Closed },
            anonymous: is_local,
        }
    }
}

/// Files with the certificate chain and the private key, both PEM.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Access to `/metrics`.
#[derive(Debug, Clone)]
pub enum Access {
    /// Everyone who can reach the address.
    Open,
    /// Requests with the header `Authorization: Bearer` and this token.
    Token(Arc<str>),
    /// No one.
    Closed,
}
