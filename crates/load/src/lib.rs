//! Loads: what is sent to a server, a broker or a network, how it is measured, and what the result looks like.
//!
//! - [`specification`]: every load of `taktwerk bench` as a type. The command line is parsed into it, and the laboratory
//!   writes it as JSON to a process of its own: neither builds command lines for the other;
//! - [`result`]: what came of a load as a document of types, written and read here only;
//! - [`connection`], [`endpoint`], [`node`], [`attribute`], [`span`], [`suggestion`]: how servers, nodes and times are
//!   written.
//!
//! The rules of a measurement that can be believed stand here once:
//!
//! - [`schedule`]: send times are fixed beforehand (open loop), so that a slow answer cannot hide the next request;
//! - [`latency`]: each sample counts from its scheduled time *and* from its real send time, both are kept;
//! - [`progress`]: what each monitored item received; the worst one counts, not the mean;
//! - [`process`]: CPU time, context switches and memory of a process, from `/proc`; [`cycles`]: its CPU cycles;
//! - [`outliers`]: what a slow sample can be put down to;
//! - [`steady`]: when a warm-up is over;
//! - [`validity`]: reasons why a measurement is invalid (the generator was late or saturated);
//! - [`wire`]: bytes on the wire by layer; [`energy`]: what the processor or a sensor of the supply counted;
//! - [`observed`]: the CPU conditions that a program really had;
//! - [`pin`], [`clock`], [`files`], [`machine`]: CPU affinity, time, the limit of open files, what machine this was;
//! - [`mqtt`]: packets of MQTT.
//!
//! What generates these loads needs a client, certificates and the laboratory: the crate `generator`.

pub mod attribute;
pub mod clock;
pub mod connection;
pub mod cycles;
pub mod endpoint;
pub mod energy;
pub mod files;
pub mod latency;
pub mod machine;
pub mod mqtt;
pub mod node;
pub mod observed;
pub mod outliers;
pub mod pin;
pub mod process;
pub mod progress;
pub mod result;
pub mod schedule;
pub mod span;
pub mod specification;
pub mod steady;
pub mod suggestion;
pub mod validity;
pub mod wire;
mod written;

pub use specification::Specification;
