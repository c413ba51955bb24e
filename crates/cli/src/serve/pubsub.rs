//! PubSub in a server: what a file configures is published and received, and what clients change is kept.

use crate::failure::Failure;
use crate::pubsub::read_configuration;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taktwerk::pubsub::config::Configuration;
use taktwerk::pubsub::{KeyRequest, KeySource, PubSubStartError, Publisher, SecurityKeys, Subscriber};
use taktwerk::pubsub_model::{PubSubModel, load};
use taktwerk::{Server, StatusCode};

/// Where the configuration of PubSub comes from, and where it goes when it has changed.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) configuration: Option<PathBuf>,
    pub(super) save_to: Option<PathBuf>,
}

/// PubSub at work; it ends when this is dropped.
pub(super) struct PubSub {
    _publisher: Arc<Publisher>,
    _subscriber: Arc<Subscriber>,
}

/// The keys of the server's own security groups.
struct Keys(PubSubModel);

impl KeySource for Keys {
    fn fetch(&mut self, request: &KeyRequest) -> Result<SecurityKeys, StatusCode> {
        self.0.local_keys(&request.security_group_id, request.requested_key_count)
    }
}

fn cannot(what: &str, path: &Path, error: &dyn core::fmt::Display) -> Failure {
    Failure::Environment(format!("cannot {what} {}: {error}", path.display()))
}

impl Files {
    /// The configuration to begin with: what was saved, or else what is configured, or else nothing yet.
    fn begin(&self) -> Result<Configuration, Failure> {
        if let Some(path) = &self.save_to
            && let Some(saved) = load(path).map_err(|error| cannot("read", path, &error))?
        {
            if let Some(configured) = &self.configuration {
                let (saved, configured) = (path.display(), configured.display());
                tracing::info!("{saved} has what was saved of PubSub; {configured} is not read");
            }
            return Ok(saved);
        }
        match &self.configuration {
            Some(path) => read_configuration(path),
            None => Ok(Configuration { enabled: true, ..Configuration::default() }),
        }
    }

    /// Starts PubSub, if it is wanted.
    pub(super) fn start(&self, server: &Server) -> Result<Option<PubSub>, Failure> {
        if self.configuration.is_none() && self.save_to.is_none() {
            return Ok(None);
        }
        let configuration = self.begin()?;
        let usage = |error: &dyn core::fmt::Display| Failure::Usage(format!("PubSub: {error}"));
        let start = |error: PubSubStartError| match error {
            PubSubStartError::NoValues { data_set } => Failure::Usage(format!(
                "PubSub: the fields of the data set {data_set:?} name no Variables: give each its node = \"…\""
            )),
            error => usage(&error),
        };
        let model = PubSubModel::add_to(server, &configuration).map_err(|error| usage(&error))?;
        model.serve_security_keys().map_err(|error| usage(&error))?;
        let publisher = Publisher::of(configuration.clone())
            .space(server.space())
            .keys(Keys(model.clone()))
            .on_event(model.publisher_events())
            .start()
            .map_err(start)?;
        let mut tell = model.subscriber_events();
        let subscriber = Subscriber::of(configuration)
            .space(server.space())
            .keys(Keys(model.clone()))
            .on_event(move |event| tell(&event))
            .start()
            .map_err(start)?;
        let (publisher, subscriber) = (Arc::new(publisher), Arc::new(subscriber));
        model.attach_publisher(&publisher);
        model.attach_subscriber(&subscriber);
        if let Some(path) = &self.save_to {
            model.save_to(path).map_err(|error| cannot("write", path, &error))?;
        }
        Ok(Some(PubSub { _publisher: publisher, _subscriber: subscriber }))
    }
}
