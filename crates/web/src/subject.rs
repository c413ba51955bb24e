//! The server that is shown.

use crate::exposition::Collector;
use crate::log::Recent;
use crate::sources::SourceList;
use std::sync::Arc;
use taktwerk::pki::Pki;
use taktwerk_server::ServerShared;

/// The server that is shown.
#[derive(Debug)]
pub struct Subject {
    /// Its configuration and counters.
    pub shared: Arc<ServerShared>,
    /// Where it can be reached from this process.
    pub url: String,
    /// Its certificates and trust lists, if it has any.
    pub server_pki: Option<Pki>,
    /// Certificates of the dashboard, which the server trusts; needed where the server offers secured endpoints only.
    pub dashboard_pki: Option<Pki>,
    /// Whether clients may log on without a user.
    pub is_anonymous_allowed: bool,
    /// More metrics, from whoever has some.
    pub collectors: Vec<Arc<dyn Collector>>,
    /// Where its values come from, if it is a gateway.
    pub sources: Option<Arc<dyn SourceList>>,
    /// The last lines of the log.
    pub log: Option<Recent>,
}
