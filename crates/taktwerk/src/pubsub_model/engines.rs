//! The engines that run the configuration of a model.

use crate::pubsub::PubSubStartError;
use crate::pubsub::action::FailedResponder;
use std::sync::{Arc, Weak};
use taktwerk_net::pubsub::{
    PreparedChange, PublisherChange, RunningPublisher, RunningSubscriber, SubscriberChange,
};
use taktwerk_pubsub::config::Configuration;
use taktwerk_pubsub::security::SecurityKeys;

/// Runs a publisher's engine: the driver, or [`crate::pubsub::Publisher`] around it.
pub trait RunsPublisher: Send + Sync + 'static {
    /// The driver.
    fn publisher(&self) -> &RunningPublisher;

    /// Prepares a switch to another configuration, which is then committed at the driver.
    ///
    /// # Errors
    /// Why the configuration cannot run.
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

/// Runs a subscriber's engine: the driver, or [`crate::pubsub::Subscriber`] around it.
pub trait RunsSubscriber: Send + Sync + 'static {
    /// The driver.
    fn subscriber(&self) -> &RunningSubscriber;

    /// Switches to another configuration.
    ///
    /// # Errors
    /// Why the configuration cannot run; nothing has changed then.
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

/// Runs the responders of a configuration's Actions: [`crate::pubsub::ActionResponders`], or a wrapper of it.
pub trait RunsResponders: Send + Sync + 'static {
    /// Switches to another configuration.
    ///
    /// # Errors
    /// Why the configuration cannot run; nothing has changed then.
    fn reconfigure(&self, configuration: &Configuration) -> Result<(), PubSubStartError>;

    /// The same after something was enabled or disabled: responders that can start do so. Returns the others.
    fn switch(&self, configuration: &Configuration) -> Vec<FailedResponder>;

    /// The keys of a security group are known to have changed.
    fn refresh_keys(&self, security_group_id: &str) {
        let _ = security_group_id;
    }

    /// A key service has pushed keys of a security group.
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

/// Weak, because the engines' events refer to the model.
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
