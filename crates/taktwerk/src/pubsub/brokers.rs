//! Broker connections of a publisher or subscriber, while its configuration changes.

use super::PubSubStartError;
use std::sync::Mutex;
use taktwerk_net::pubsub::mqtt::{BrokerStatus, MqttOptions};
use taktwerk_pubsub::config::{Configuration, Connection};

/// By the name of the connection.
pub(super) type Statuses = Vec<(String, BrokerStatus)>;

/// The states of the broker connections.
#[derive(Debug)]
pub(super) struct Brokers {
    options: MqttOptions,
    known: Mutex<Statuses>,
}

/// Whether a connection uses a broker.
fn is_broker(connection: &Connection) -> bool {
    connection.url.starts_with("mqtt")
}

/// Creates the broker end of a connection.
type Make<E> = fn(&Connection, &MqttOptions) -> Result<(E, BrokerStatus), taktwerk_net::pubsub::PubSubError>;

impl Brokers {
    /// Creates the broker ends of a configuration, by position of the connection. `is_used` selects the connections that need one
    /// and have none supplied by the application.
    pub(super) fn new<E>(
        options: MqttOptions,
        configuration: &Configuration,
        is_used: impl Fn(usize, &Connection) -> bool,
        make: Make<E>,
    ) -> Result<(Self, Vec<(usize, E)>), PubSubStartError> {
        let brokers = Self { options, known: Mutex::default() };
        let (statuses, ends) =
            brokers.change(&Configuration::default(), configuration, is_used, |_, _| false, make)?;
        brokers.commit(statuses);
        Ok((brokers, ends))
    }

    /// Creates the broker ends for a following configuration: only new ones. A connection for which `is_kept` holds keeps its
    /// end; so does one whose end the application supplied.
    pub(super) fn change<E>(
        &self,
        old: &Configuration,
        new: &Configuration,
        is_used: impl Fn(usize, &Connection) -> bool,
        is_kept: impl Fn(&Connection, &Connection) -> bool,
        make: Make<E>,
    ) -> Result<(Statuses, Vec<(usize, E)>), PubSubStartError> {
        let known = crate::lock::lock(&self.known);
        let (mut statuses, mut ends) = (Vec::new(), Vec::new());
        for (position, connection) in new.connections.iter().enumerate() {
            if !is_broker(connection) || !is_used(position, connection) {
                continue;
            }
            let before = old.connection(&connection.name);
            if before.is_some_and(|before| is_kept(before, connection)) {
                statuses.extend(known.iter().find(|(name, _)| *name == connection.name).cloned());
                continue;
            }
            let (end, status) = make(connection, &self.options)?;
            ends.push((position, end));
            statuses.push((connection.name.clone(), status));
        }
        Ok((statuses, ends))
    }

    /// Completes the change.
    pub(super) fn commit(&self, statuses: Statuses) {
        *crate::lock::lock(&self.known) = statuses;
    }

    pub(super) fn statuses(&self) -> Vec<BrokerStatus> {
        crate::lock::lock(&self.known).iter().map(|(_, status)| status.clone()).collect()
    }
}
