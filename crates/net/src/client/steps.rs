//! Logs the steps of establishing a connection (target `taktwerk_client`, level DEBUG).

use taktwerk_client::{Client, EndpointUrl, Event, SessionInfo};

/// Detects and logs what a client does next.
#[derive(Debug, Default)]
pub(super) struct Steps {
    told: &'static str,
}

impl Steps {
    /// Called at the end of a turn.
    #[inline]
    pub(super) fn look(&mut self, core: &Client) {
        let step = core.step();
        if step != self.told {
            self.told = step;
            // Once the session is active, [`session`] logs more.
            if !core.is_up() {
                tracing::debug!(target: "taktwerk_client", "{step}");
            }
        }
    }
}

/// Logs that a connection is being opened.
pub(super) fn connecting(url: &EndpointUrl) {
    tracing::debug!(target: "taktwerk_client", "connecting to {}:{}", url.host, url.port);
}

/// Logs that a session is active.
pub(super) fn session(info: &SessionInfo) {
    tracing::debug!(
        target: "taktwerk_client",
        "session up: {}/{:?}, {}, kept for {} s without a connection",
        info.policy,
        info.mode,
        info.session_id,
        info.revised_timeout_ms / 1e3
    );
}

/// Logs an event of the connection.
pub(super) fn happened(event: &Event) {
    match event {
        Event::Connected(info) | Event::Restored(_, info) => session(info),
        Event::ConnectionLost { error, .. } => {
            tracing::debug!(target: "taktwerk_client", "connection lost: {error}");
        }
        Event::ConnectFailed { error, .. } => {
            tracing::debug!(target: "taktwerk_client", "no connection: {error}");
        }
        Event::Note(note) => tracing::debug!(target: "taktwerk_client", "{note:?}"),
        Event::Disconnected(_) | Event::Subscription(..) => {}
    }
}
