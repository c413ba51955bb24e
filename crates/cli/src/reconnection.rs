//! Messages about lost connections and subscriptions, for commands that follow a server. The client reconnects by
//! itself.

use crate::failure::Failure;
use crate::output::Output;
use crate::session;
use serde_json::json;
use taktwerk_client::{ClientError, Event, SubscriptionEvent};

/// A message about the connection or the subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// The value of `Event` in JSON.
    name: &'static str,
    text: String,
    is_bad: bool,
}

impl Notice {
    fn new(name: &'static str, text: String) -> Self {
        Self { name, text, is_bad: false }
    }

    /// The text for a terminal.
    pub(crate) fn text(&self, output: Output) -> String {
        if self.is_bad { output.bad(&self.text) } else { self.text.clone() }
    }

    /// Prints it: as a line of JSON, or as a line on standard error.
    pub(crate) fn print(&self, output: Output) -> Result<(), Failure> {
        if output.is_json() {
            return output.line(&json!({ "Event": self.name }));
        }
        tell!("{}", self.text(output));
        Ok(())
    }
}

/// Converts events of the client to messages, without repetitions.
#[derive(Debug)]
pub(crate) struct Reconnection {
    /// The consequence if the server has lost the subscription; ends a sentence.
    loss: &'static str,
    /// The last error since the connection was lost. Retries repeat it.
    last_error: Option<String>,
}

impl Reconnection {
    /// `loss` is appended to "the server lost the subscription: it is created again".
    pub(crate) fn new(loss: &'static str) -> Self {
        Self { loss, last_error: None }
    }

    fn is_new(&mut self, error: &ClientError) -> bool {
        let text = error.to_string();
        if self.last_error.as_ref() == Some(&text) {
            return false;
        }
        self.last_error = Some(text);
        true
    }

    /// The message for an event, if any.
    pub(crate) fn notice(&mut self, event: &Event) -> Option<Notice> {
        match event {
            Event::ConnectionLost { error, .. } if self.is_new(error) => {
                Some(Notice::new("ConnectionLost", format!("connection lost ({error}); connecting again")))
            }
            // The server may have a new certificate after a restart, which must be trusted.
            Event::ConnectFailed { error, .. } if self.is_new(error) => {
                let text = format!("cannot connect: {}; trying again", session::describe(error));
                Some(Notice::new("ConnectFailed", text))
            }
            Event::Restored(..) => {
                self.last_error = None;
                None
            }
            Event::Subscription(_, SubscriptionEvent::Kept) => {
                Some(Notice::new("Kept", "connected again; the server kept the subscription".to_owned()))
            }
            Event::Subscription(_, SubscriptionEvent::Transferred) => {
                let text = "connected again in a new session; the subscription was transferred to it";
                Some(Notice::new("Transferred", text.to_owned()))
            }
            Event::Subscription(_, SubscriptionEvent::Recreating(status)) => {
                let loss = self.loss;
                let text = format!("the server lost the subscription ({status}): it is created again{loss}");
                Some(Notice { is_bad: true, ..Notice::new("Recreating", text) })
            }
            _ => None,
        }
    }
}

/// The failure of a command whose client has disconnected.
pub(crate) fn ended(error: Option<ClientError>) -> Failure {
    let reason = error.map_or_else(|| "disconnected".to_owned(), |error| session::describe(&error));
    Failure::Connect(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::{Instant, StatusCode};

    #[test]
    fn an_error_is_reported_once_per_connection_loss() {
        let mut reconnection = Reconnection::new("; events in between are lost");
        let failed = |reason: &str| Event::ConnectFailed {
            error: ClientError::Connection(reason.into()),
            retry_at: Instant::FAR,
        };
        let mut names = |event: &Event| reconnection.notice(event).map(|notice| (notice.name, notice.text));
        let (name, text) = names(&failed("refused")).unwrap();
        assert_eq!(
            (name, text.as_str()),
            ("ConnectFailed", "cannot connect: connection: refused; trying again")
        );
        assert_eq!(names(&failed("refused")), None);
        assert!(names(&failed("no route")).is_some());
        assert_eq!(names(&Event::Restored(taktwerk_client::Restored::NewSession, Box::default())), None);
        assert!(names(&failed("no route")).is_some());
        let lost = SubscriptionEvent::Recreating(StatusCode::BAD_SUBSCRIPTION_ID_INVALID);
        let (_, text) = names(&Event::Subscription(taktwerk_client::SubscriptionHandle(1), lost)).unwrap();
        assert!(text.ends_with("it is created again; events in between are lost"), "{text}");
    }
}
