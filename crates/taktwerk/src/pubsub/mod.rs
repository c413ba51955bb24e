//! Publishing and subscribing without a connection (Part 14).
//!
//! # A publisher
//! ```no_run
//! use std::time::Duration;
//! use taktwerk::Server;
//! use taktwerk::pubsub::{DataSet, Publisher};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder().bind("127.0.0.1:4840").anonymous().build()?;
//! let boiler = server.namespace("urn:example:boilers").object("Boiler 1").add()?;
//! let temperature = boiler.variable("Temperature", 21.5).add()?;
//! let pressure = boiler.variable("Pressure", 1.2).add()?;
//! let running = server.spawn()?;
//!
//! let publisher = Publisher::builder("opc.udp://239.0.0.1:4840")
//!     .publisher_id(2234)
//!     .interval(Duration::from_millis(10))
//!     .data_set(DataSet::new("boiler").variable("temperature", &temperature).variable("pressure", &pressure))
//!     .start()?;
//! temperature.set(22.0); // goes out with the next cycle
//! println!("99 % of all cycles were at most {} ns late", publisher.lateness().total.quantile(0.99));
//! # Ok(())
//! # }
//! ```
//!
//! # A subscriber
//! ```no_run
//! use taktwerk::pubsub::Subscriber;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let subscriber = Subscriber::builder("opc.udp://239.0.0.1:4840")
//!     .publisher_id(2234)
//!     .writer(1)
//!     .on_message(|message| {
//!         for (name, value) in taktwerk::pubsub::named(message) {
//!             println!("{name} = {value:?}");
//!         }
//!     })
//!     .start()?;
//! # Ok(())
//! # }
//! ```
//!
//! For anything more use a [`config::Configuration`], from code, TOML or the standard binary file: [`Publisher::of`],
//! [`Subscriber::of`].
//!
//! - [`data_set`]: published data sets; [`publisher`], [`subscriber`]: the builders;
//! - [`action`]: request-response with Actions;
//! - [`target`]: writes received values into Variables of a server; `followed`: Variables that may be replaced; [`error`]: errors.

pub mod action;
mod action_methods;
#[cfg(feature = "mqtt")]
mod brokers;
pub mod data_set;
pub mod error;
mod followed;
pub mod publisher;
mod setters;
pub mod subscriber;
pub mod target;

pub use action::{ActionRequestor, ActionResponder, ActionResponders};
pub(crate) use action_methods::channel_mode;
pub use action_methods::describe_methods;
pub use data_set::DataSet;
pub use error::PubSubStartError;
pub use publisher::{Publisher, PublisherBuilder};
pub use subscriber::{Subscriber, SubscriberBuilder};
#[cfg(feature = "mqtt")]
pub use taktwerk_net::pubsub::mqtt::{
    BrokerStatus, Credentials, MqttOptions, MqttVersion, QualityOfService, StatusMessages,
};
pub use taktwerk_net::pubsub::{
    KeySource, Lateness, LatenessSnapshot, NonceFile, Prepare, PubSubError, RealTime, StaticKeys, UdpOptions,
};
pub use taktwerk_pubsub::action::ActionDescription;
pub use taktwerk_pubsub::config;
pub use taktwerk_pubsub::security::{KeyRequest, KeyStoreOptions, SecurityKeys};
pub use taktwerk_pubsub::state::PubSubState;
pub use taktwerk_pubsub::uadp::{DataSetMessageKind, SecurityMode};
pub use taktwerk_pubsub::{
    DataSetMessage, FieldWriter, GroupIndex, InPlace, Number, PublisherId, ReaderIndex, Sink,
    SubscriberEvent, Values,
};

use taktwerk_types::DataValue;

/// The fields of a message with their names. A field without a name in the metadata is named by its number.
pub fn named<'a>(
    message: &'a DataSetMessage<'_>,
) -> impl Iterator<Item = (std::borrow::Cow<'a, str>, &'a DataValue)> {
    message.fields.iter().map(|field| {
        let index = usize::from(field.index);
        let known = message.meta_data.fields.get(index).map(|meta_data| meta_data.name.as_str());
        let name = match known.or_else(|| message.names.get(index).copied()) {
            Some(name) if !name.is_empty() => name.into(),
            _ => field.index.to_string().into(),
        };
        (name, &field.value)
    })
}
