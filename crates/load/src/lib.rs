//! Loads: specifications, measurement rules and results of loads on a server, a broker or a network.
//!
//! - [`specification`]: the loads of `taktwerk bench` as types. The command line is parsed into these types; the
//!   laboratory passes them as JSON to a separate process, so that neither builds command lines for the other;
//! - [`result`]: the result as a typed document; only this module writes and reads it;
//! - [`connection`], [`endpoint`], [`node`], [`attribute`], [`signals`], [`adapters`], [`span`], [`suggestion`]: notations for
//!   servers, nodes, signals, adapters and times.
//!
//! Rules and tools for valid measurements:
//!
//! - [`schedule`]: send times are fixed in advance (open loop), so that a slow answer does not delay the next request;
//! - [`latency`]: each sample is measured from its scheduled time *and* from its real send time; both are kept;
//! - [`progress`]: values received per monitored item; the worst item counts, not the mean;
//! - [`process`]: CPU time, context switches and memory of a process, from `/proc`; [`recorder`]: the same over time, with
//!   its child processes; [`cycles`]: its CPU cycles;
//! - [`outliers`]: causes of slow samples;
//! - [`steady`]: detects the end of the warm-up;
//! - [`validity`]: reasons why a measurement is invalid (the generator was late or saturated);
//! - [`wire`]: bytes on the wire by layer; [`energy`]: energy from the processor's counters or a sensor of the supply;
//! - [`observed`]: the actual CPU conditions of a program;
//! - [`pin`], [`clock`], [`files`], [`machine`]: CPU affinity, time, the limit of open files, description of the
//!   machine;
//! - [`mqtt`]: MQTT packets.
//!
//! Generating the loads needs a client, certificates and the laboratory; see the crate `generator`.

pub mod adapters;
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
pub mod recorder;
pub mod result;
pub mod schedule;
pub mod signals;
pub mod span;
pub mod specification;
pub mod steady;
pub mod suggestion;
pub mod validity;
pub mod wire;
mod written;

pub use specification::Specification;
