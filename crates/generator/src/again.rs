//! A connection that is made again when it is lost, for loads that go on behind that.

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

/// For so long a connection that was lost is tried again; the last attempt takes as long as `--timeout` allows.
const TRIES: Duration = Duration::from_secs(5);
/// Rest between two attempts.
const REST: Duration = Duration::from_millis(100);

/// One client on the calling thread, and what it takes to connect it again.
pub(crate) struct Line {
    client: Option<BlockingClient>,
    config: Arc<ClientConfig>,
    target: Target,
    server: Endpoint,
}

/// What came of a request.
#[derive(Debug)]
pub(crate) enum Came<T> {
    /// An answer.
    Answer(T),
    /// Nothing in time. The connection stands.
    Nothing,
    /// Nothing, and the connection is no more, for this reason.
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

    /// Sends a request and waits for its answer. What the server refuses is a failure: it has answered.
    pub(crate) fn ask<R: Request, T>(
        &mut self,
        request: &mut R,
        read: impl FnOnce(Reply<'_>) -> T,
    ) -> Result<Came<T>, GeneratorError> {
        let Some(client) = &mut self.client else { return Ok(Came::Lost(Misuse::NotConnected.into())) };
        match client.call_with(request, read) {
            Ok(answer) => Ok(Came::Answer(answer)),
            Err(ClientError::Timeout(_)) => Ok(Came::Nothing),
            // It can also have been lost before anything was sent: nothing is received between two calls.
            Err(error)
                if error.is_connection() || matches!(error, ClientError::Local(Misuse::NotConnected)) =>
            {
                self.client = None;
                Ok(Came::Lost(error))
            }
            Err(error) => Err(session::failure(&error)),
        }
    }

    /// Connects again after `lost`.
    ///
    /// # Errors
    /// It could not be for some seconds, or the user does not want to wait for it.
    pub(crate) fn again(&mut self, lost: &ClientError, context: &Context<'_>) -> Result<(), GeneratorError> {
        tracing::warn!(%lost, "the connection was lost and is made again");
        let until = clock::monotonic() + nanos(TRIES);
        loop {
            match BlockingClient::connect(Arc::clone(&self.config), self.target.clone()) {
                Ok((client, _)) => {
                    self.client = Some(client);
                    return Ok(());
                }
                Err(error) if clock::monotonic() >= until || context.is_ended() => {
                    return Err(GeneratorError::Connect(format!(
                        "the connection to {} was lost ({lost}) and could not be had again within {} s ({error}): see what \
                         became of the server",
                        self.server,
                        TRIES.as_secs()
                    )));
                }
                Err(_) => context.sleep(REST),
            }
        }
    }

    /// Closes session and connection, if they stand.
    pub(crate) fn close(self) {
        if let Some(client) = self.client {
            client.disconnect();
        }
    }
}
