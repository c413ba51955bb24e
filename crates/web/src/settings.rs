//! What can be chosen about the web server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// The settings of a web server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where to listen. Port 0 takes a free one.
    pub bind: SocketAddr,
    /// Certificate and key. Without them the server listens on loopback addresses only.
    pub tls: Option<Tls>,
    /// The names by which browsers may call it, besides the address and, on loopback, `localhost`.
    pub host_names: Vec<String>,
    /// Who may read `/metrics`.
    pub metrics: Access,
    /// Whether visitors see the dashboard without logging on, as far as the server lets in anonymous clients.
    pub anonymous: bool,
}

impl Settings {
    /// The settings for an address: on loopback metrics are open and anonymous visitors are let in; elsewhere neither.
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
    /// The certificate, and the authorities behind it.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Who may read something.
#[derive(Debug, Clone)]
pub enum Access {
    /// Everybody who can reach the address.
    Open,
    /// Requests with `Authorization: Bearer` and this token.
    Token(Arc<str>),
    /// Nobody.
    Closed,
}
