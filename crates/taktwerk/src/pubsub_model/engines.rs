//! The engines behind a model.

use crate::pubsub::PubSubStartError;
use crate::pubsub::action::FailedResponder;
use std::sync::{Arc, Weak};
use taktwerk_net::pubsub::{
    PreparedChange, PublisherChange, RunningPublisher, RunningSubscriber, SubscriberChange,
};
use taktwerk_pubsub::config::Configuration;
use taktwerk_pubsub::security::SecurityKeys;

/// What runs a publisher's engine: the driver, or [`crate::pubsub::Publisher`] around it.
pub trait RunsPublisher: Send + Sync + 'static {
    /// The driver.
    fn publisher(&self) -> &RunningPublisher;

    /// Prepares another configuration for it; it is committed at the driver.
    ///
    /// # Errors
    /// Why the configuration cannot run here.
    fn prepare(&self, configuration: Configuration) -> Result<PreparedChange, PubSubStartError> {
        Ok(self.publisher().prepare(PublisherChange::new(configuration))?)
    }
}

impl RunsPublisher for RunningPublisher {
    fn publisher(&self) -> &RunningPublisher {
        self
    }
}

impl RunsPublisher for crate::pubsub::Publisher {
    fn publisher(&self) -> &RunningPublisher {
        self.driver()
    }

    fn prepare(&self, configuration: Configuration) -> Result<PreparedChange, PubSubStartError> {
        Self::prepare(self, configuration)
    }
}

/// What runs a subscriber's engine: the driver, or [`crate::pubsub::Subscriber`] around it.
pub trait RunsSubscriber: Send + Sync + 'static {
    /// The driver.
    fn subscriber(&self) -> &RunningSubscriber;

    /// Gives it another configuration.
    ///
    /// # Errors
    /// Why the configuration cannot run here; nothing has changed then.
    fn reconfigure(&self, configuration: Configuration) -> Result<(), PubSubStartError> {
        Ok(self.subscriber().reconfigure(SubscriberChange::new(configuration))?)
    }
}

impl RunsSubscriber for RunningSubscriber {
    fn subscriber(&self) -> &RunningSubscriber {
        self
    }
}

impl RunsSubscriber for crate::pubsub::Subscriber {
    fn subscriber(&self) -> &RunningSubscriber {
        self.driver()
    }

    fn reconfigure(&self, configuration: Configuration) -> Result<(), PubSubStartError> {
        Self::reconfigure(self, configuration)
    }
}

/// What answers a configuration's Actions: [`crate::pubsub::ActionResponders`], or something around it.
pub trait RunsResponders: Send + Sync + 'static {
    /// Gives it another configuration.
    ///
    /// # Errors
    /// Why the configuration cannot run here; nothing has changed then.
    fn reconfigure(&self, configuration: &Configuration) -> Result<(), PubSubStartError>;

    /// The same where something was switched on or off, which has happened already: those that can start do. Gives the
    /// others.
    fn switch(&self, configuration: &Configuration) -> Vec<FailedResponder>;

    /// The keys of a security group are known to be others now.
    fn refresh_keys(&self, security_group_id: &str) {
        let _ = security_group_id;
    }

    /// A key service has pushed the keys of a security group.
    fn set_keys(&self, security_group_id: &str, keys: &SecurityKeys) {
        let _ = (security_group_id, keys);
    }
}

impl RunsResponders for crate::pubsub::ActionResponders {
    fn reconfigure(&self, configuration: &Configuration) -> Result<(), PubSubStartError> {
        Self::reconfigure(self, configuration)
    }

    fn switch(&self, configuration: &Configuration) -> Vec<FailedResponder> {
        Self::switch(self, configuration)
    }

    fn refresh_keys(&self, security_group_id: &str) {
        Self::refresh_keys(self, security_group_id);
    }

    fn set_keys(&self, security_group_id: &str, keys: &SecurityKeys) {
        Self::set_keys(self, security_group_id, keys);
    }
}

/// Weak, because the engines' events lead back to the model.
#[derive(Default)]
pub(super) struct Engines {
    pub(super) publisher: Option<Weak<dyn RunsPublisher>>,
    pub(super) subscriber: Option<Weak<dyn RunsSubscriber>>,
    pub(super) responders: Option<Weak<dyn RunsResponders>>,
}

impl Engines {
    pub(super) fn publisher(&self) -> Option<Arc<dyn RunsPublisher>> {
        self.publisher.as_ref()?.upgrade()
    }

    pub(super) fn subscriber(&self) -> Option<Arc<dyn RunsSubscriber>> {
        self.subscriber.as_ref()?.upgrade()
    }

    pub(super) fn responders(&self) -> Option<Arc<dyn RunsResponders>> {
        self.responders.as_ref()?.upgrade()
    }
}
