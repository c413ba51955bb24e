//! A session, and functions used by all checks.

use std::fmt::{self, Display};
use taktwerk::Client;
use taktwerk::client::Error;
use taktwerk::schema::service::Request;
use taktwerk::types::StatusCode;

/// Why there is no answer: the status code and the library's message.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) status: StatusCode,
    text: String,
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self { status: error.status(), text: error.to_string() }
    }
}

/// A session with a server.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) client: Client,
}

impl Session {
    pub(crate) async fn connect(url: &str, user: Option<(&str, &str)>) -> Result<Self, Fault> {
        let mut builder = Client::builder(url).session_name("interop smoke");
        if let Some((name, password)) = user {
            // The test users have no real secrets.
            builder = builder.user(name, password).allow_plaintext_password();
        }
        Ok(Self { client: builder.connect().await? })
    }

    /// Sends a single request of any service, without splitting or retries.
    pub(crate) async fn request<R>(&self, request: R) -> Result<R::Response, Fault>
    where
        R: Request + Send + 'static,
        R::Response: 'static,
    {
        Ok(self.client.request(request, None).await?)
    }

    pub(crate) async fn close(self) {
        self.client.disconnect().await;
    }
}
