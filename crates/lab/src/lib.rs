//! Measuring: what `taktwerk bench`, `cargo xtask versus` and the laboratory share.
//!
//! Nothing here speaks OPC UA. The rules of a measurement that can be believed stand here once:
//!
//! - [`schedule`]: send times are fixed beforehand (open loop), so that a slow answer cannot hide the next request;
//! - [`latency`]: each sample counts from its scheduled time *and* from its real send time, both are kept;
//! - [`progress`]: what each monitored item received; the worst one counts, not the mean;
//! - [`process`]: CPU time, context switches and memory of a process, from `/proc`;
//! - [`outliers`]: what a slow sample can be put down to;
//! - [`steady`]: when a warm-up is over;
//! - [`validity`]: reasons why a measurement is worth nothing (the generator was late or saturated);
//! - [`pin`], [`clock`], [`files`], [`machine`], [`program`]: CPU affinity, time, the limit of open files, what machine
//!   this was, and other programs that are started, waited for and always ended;
//! - [`energy`]: what the processor or a sensor of the supply counted;
//! - [`cpu`]: isolation, class, governor, and what they really are;
//! - [`links`]: networks that are emulated, probed and taken away again;
//! - [`mqtt`]: a client to measure brokers with;
//! - [`peers`]: other stacks and brokers, installed from their registries and started in one way;
//! - [`orphans`]: programs that outlived a laboratory that was killed;
//! - [`table`]: output for people.
//!
//! [`statistics`] and [`figures`] are those of the crate `model`.
//!
//! With the feature `laboratory`, what makes many measurements out of one: [`scenario`] says what to measure, [`place`]
//! does it once, [`runner`] often and in a fair order, [`store`] keeps it, [`experiment`] knows the published protocols,
//! [`model`] learns from it, [`thresholds`] judges it, [`capacity`] searches for the limit, [`simulate`] runs described plants
//! in virtual time, [`truth`] sets it beside measurements, [`ramp`] a server's headroom beside its CPU, [`tuning`] simulates
//! settings, and [`outcome`], [`chart`] and [`report`] show it. With the feature `versus`, which that one includes, `versus`
//! compares with a peer.

#[cfg(feature = "laboratory")]
pub mod capacity;
#[cfg(feature = "laboratory")]
pub mod chart;
pub mod clock;
pub mod cpu;
#[cfg(feature = "laboratory")]
pub mod cycles;
pub mod energy;
#[cfg(feature = "laboratory")]
pub mod experiment;
pub mod files;
#[cfg(feature = "laboratory")]
pub mod host;
pub mod latency;
pub mod links;
pub mod machine;
#[cfg(feature = "laboratory")]
pub mod measurement;
#[cfg(feature = "laboratory")]
pub mod model;
pub mod mqtt;
pub mod orphans;
#[cfg(feature = "laboratory")]
pub mod outcome;
pub mod outliers;
pub mod peers;
pub mod pin;
#[cfg(feature = "laboratory")]
pub mod place;
pub mod process;
pub mod program;
pub mod progress;
#[cfg(feature = "laboratory")]
pub mod ramp;
#[cfg(feature = "laboratory")]
pub mod report;
#[cfg(feature = "laboratory")]
pub mod runner;
#[cfg(feature = "laboratory")]
pub mod scenario;
pub mod schedule;
#[cfg(feature = "laboratory")]
pub mod simulate;
pub mod steady;
#[cfg(feature = "laboratory")]
pub mod store;
pub mod table;
#[cfg(feature = "laboratory")]
pub mod thresholds;
#[cfg(feature = "laboratory")]
pub mod truth;
#[cfg(feature = "laboratory")]
pub mod tuning;
pub mod validity;
#[cfg(feature = "versus")]
pub mod versus;
#[cfg(feature = "laboratory")]
pub mod wire;

pub use taktwerk_model::{figures, statistics};
