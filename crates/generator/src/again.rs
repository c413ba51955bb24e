//! A connection that reconnects, for loads that continue after a lost connection.

use crate::client::session;
use crate::common::Generator;
use crate::context::Context;
use crate::context::nanos;
use crate::error::GeneratorError;
use std::sync::Arc;
use std::time::Duration;
use taktwerk_client::{ClientConfig, ClientError, Misuse, Reply, Target};
use taktwerk_load::clock;
use taktwerk_load::endpoint::Endpoint;
use taktwerk_load::specification::Common;
use taktwerk_net::client::BlockingClient;
use taktwerk_schema::service::Request;

/// How long to retry a lost connection; the last attempt may take as long as `--timeout`.
const TRIES: Duration = Duration::from_secs(5);
/// Pause between two attempts.
const REST: Duration = Duration::from_millis(100);

/// One client on the calling thread, with what is needed to reconnect it.
pub(crate) struct Line {
    client: Option<BlockingClient>,
    config: Arc<ClientConfig>,
    target: Target,
    server: Endpoint,
}

/// Result of a request.
#[derive(Debug)]
pub(crate) enum Came<T> {
    /// An answer.
    Answer(T),
    /// No answer in time; the connection is still up.
    Nothing,
    /// No answer, and the connection is lost for this reason.
    Lost(ClientError),
}

impl Line {
    /// Connects.
    pub(crate) fn connect(common: &Common, context: &Context<'_>) -> Result<Self, GeneratorError> {
        let (config, target) = (common.client_config(context)?, common.target(context)?);
        let server = common.connection.endpoint.clone();
        let connected = BlockingClient::connect(Arc::clone(&config), target.clone());
        let (client, _) = connected.map_err(|error| session::unreachable(&server, &error))?;
        Ok(Self { client: Some(client), config, target, server })
    }

    /// Sends a request and waits for its answer. A refusal by the server also counts as an answer.
    pub(crate) fn ask<R: Request, T>(
        &mut self,
        request: &mut R,
        read: impl FnOnce(Reply<'_>) -> T,
    ) -> Result<Came<T>, GeneratorError> {
        let Some(client) = &mut self.client else { return Ok(Came::Lost(Misuse::NotConnected.into())) };
        match client.call_with(request, read) {
            Ok(answer) => Ok(Came::Answer(answer)),
            Err(ClientError::Timeout(_)) => Ok(Came::Nothing),
            // The connection may have been lost before sending, because nothing is received between two calls.
            Err(error)
                if error.is_connection() || matches!(error, ClientError::Local(Misuse::NotConnected)) =>
            {
                self.client = None;
                Ok(Came::Lost(error))
            }
            Err(error) => Err(session::failure(&error)),
        }
    }

    /// Reconnects after `lost`.
    ///
    /// # Errors
    /// It failed for some seconds, or the user stopped the load.
    pub(crate) fn again(&mut self, lost: &ClientError, context: &Context<'_>) -> Result<(), GeneratorError> {
        tracing::warn!(%lost, "connection lost, reconnecting");
        let until = clock::monotonic() + nanos(TRIES);
        loop {
            match BlockingClient::connect(Arc::clone(&self.config), self.target.clone()) {
                Ok((client, _)) => {
                    self.client = Some(client);
                    return Ok(());
                }
                Err(error) if clock::monotonic() >= until || context.is_ended() => {
                    return Err(GeneratorError::Connect(format!(
                        "the connection to {} was lost ({lost}) and could not be restored within {} s ({error}): check \
                         whether the server is running",
                        self.server,
                        TRIES.as_secs()
                    )));
                }
                Err(_) => context.sleep(REST),
            }
        }
    }

    /// Closes session and connection, if they are up.
    pub(crate) fn close(self) {
        if let Some(client) = self.client {
            client.disconnect();
        }
    }
}
