//! Connections of the dashboard to its own server, and the readiness check.

use crate::subject::Subject;
use std::time::{Duration, Instant};
use taktwerk::client::{ClientBuilder, Error, Security};
use taktwerk::{Client, StatusCode};
use taktwerk_client::{ClientError, SecurityProblem};
use taktwerk_crypto::SecurityPolicy;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

/// How long a result for `/readyz` is cached, so that frequent requests do not cause more connections.
const VALID: Duration = Duration::from_secs(5);
/// Timeout for the server's response.
const PATIENCE: Duration = Duration::from_secs(5);
/// Number of connection attempts, and the pause between them. The server closes its channels when its certificate
/// changes.
const ATTEMPTS: usize = 12;
const PAUSE: Duration = Duration::from_millis(250);

/// Connects with a builder, and retries if the connection fails or the server is too busy: after a change of its
/// certificate all visitors reconnect at once. Refused logins are not retried.
pub(crate) async fn connect(builder: impl Fn() -> ClientBuilder) -> Result<Client, Error> {
    for _ in 1..ATTEMPTS {
        match builder().connect().await {
            Err(error) if is_temporary(&error) => {
                tracing::debug!(%error, "the dashboard retries the connection");
                sleep(PAUSE).await;
            }
            result => return result,
        }
    }
    builder().connect().await
}

fn is_temporary(error: &Error) -> bool {
    let is_busy = error.status() == StatusCode::BAD_SERVER_TOO_BUSY;
    is_busy || matches!(error, Error::Client(error) if is_of_connection(error))
}

fn is_of_connection(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Connection(_)
            | ClientError::ServerClosed { .. }
            | ClientError::Channel(_)
            // The certificate was renewed during the handshake.
            | ClientError::Security(
                SecurityProblem::CertificateChanged
                    | SecurityProblem::EndpointsChanged
                    | SecurityProblem::ApplicationUri { .. }
                    | SecurityProblem::Crypto(_)
            )
    )
}

/// Whether the last check could reach the server.
#[derive(Debug, Default)]
pub(crate) struct Reach(Mutex<Option<(Instant, Result<(), String>)>>);

impl Reach {
    /// Whether the dashboard can connect to its server, or the reason why not.
    pub(crate) async fn check(&self, subject: &Subject) -> Result<(), String> {
        let mut last = self.0.lock().await;
        if let Some((_, result)) = last.as_ref().filter(|(when, _)| when.elapsed() < VALID) {
            return result.clone();
        }
        let result = timeout(PATIENCE, reach(subject)).await.unwrap_or_else(|_| Err("no answer".to_owned()));
        let before = last.as_ref().is_none_or(|(_, result)| result.is_ok());
        match &result {
            Err(reason) if before => tracing::error!(reason, "the dashboard cannot connect to its server"),
            Ok(()) if !before => tracing::info!("the dashboard can connect to its server again"),
            _ => {}
        }
        *last = Some((Instant::now(), result.clone()));
        result
    }
}

/// Requests the endpoints of the server. If the dashboard needs a secured endpoint, the two must trust each other.
async fn reach(subject: &Subject) -> Result<(), String> {
    let endpoints = Client::endpoints(&subject.url).await.map_err(|error| error.to_string())?;
    let Some(client) = &subject.dashboard else { return Ok(()) };
    let none = SecurityPolicy::None.uri();
    let secured = endpoints.iter().find(|endpoint| endpoint.security_policy_uri.as_str() != none);
    let secured = secured.ok_or("the server offers no secured endpoint")?;
    client.verify(secured.server_certificate.as_bytes()).map_err(|error| error.to_string())
}

/// Applies the dashboard's security settings to a client builder.
pub(crate) fn secured(subject: &Subject, builder: ClientBuilder) -> ClientBuilder {
    match &subject.dashboard {
        Some(client) => {
            let builder = builder.application_uri(client.application_uri()).provider(client.provider());
            builder.security(Security::Best)
        }
        None => builder.unsecured().allow_plaintext_password(),
    }
}
