//! The server to show.

use crate::exposition::Collector;
use crate::log::Recent;
use crate::sources::SourceList;
use std::sync::Arc;
use taktwerk::history::RecorderCounters;
use taktwerk::pki::{InProcessClient, Pki};
use taktwerk_server::ServerShared;

/// The server to show.
#[derive(Debug)]
pub struct Subject {
    /// Its configuration and counters.
    pub shared: Arc<ServerShared>,
    /// Its URL from within this process.
    pub url: String,
    /// Its certificates and trust lists, if it has them.
    pub server_pki: Option<Pki>,
    /// Certificates of the dashboard, which the server trusts. Required if the server has only secured endpoints.
    pub dashboard: Option<InProcessClient>,
    /// Whether clients may log on anonymously.
    pub is_anonymous_allowed: bool,
    /// Additional metrics.
    pub collectors: Vec<Arc<dyn Collector>>,
    /// The sources and destinations, if it is or may become a gateway.
    pub sources: Option<Arc<dyn SourceList>>,
    /// The counters of the history's recorder, if the server records.
    pub history: Option<Arc<RecorderCounters>>,
    /// The last lines of the log.
    pub log: Option<Recent>,
}
