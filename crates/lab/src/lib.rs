//! The laboratory: makes many measurements out of one, and compares, learns from and judges them.
//!
//! Nothing here speaks OPC UA: loads are those of the crate `load`, in a process of their own. From it come the rules of a
//! measurement that can be believed ([`clock`], [`schedule`], [`latency`], [`progress`], [`process`], [`outliers`], [`steady`],
//! [`validity`], …). Here are:
//!
//! - [`program`]: other programs that are started, waited for and always ended; [`orphans`]: those that outlived a
//!   laboratory that was killed; [`leftovers`]: everything that one has left;
//! - [`cpu`]: isolation, class, governor, and what they really are;
//! - [`links`]: networks that are emulated, probed and taken away again;
//! - [`mqtt`]: a client to measure brokers with;
//! - [`peers`]: other stacks and brokers, installed from their registries and started in one way;
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
pub mod cpu;
#[cfg(feature = "laboratory")]
pub mod experiment;
#[cfg(feature = "laboratory")]
pub mod host;
pub mod leftovers;
pub mod links;
#[cfg(feature = "laboratory")]
pub mod measurement;
#[cfg(feature = "laboratory")]
pub mod model;
pub mod mqtt;
pub mod orphans;
#[cfg(feature = "laboratory")]
pub mod outcome;
pub mod peers;
#[cfg(feature = "laboratory")]
pub mod place;
pub mod program;
#[cfg(feature = "laboratory")]
pub mod ramp;
#[cfg(feature = "laboratory")]
pub mod report;
#[cfg(feature = "laboratory")]
pub mod runner;
#[cfg(feature = "laboratory")]
pub mod scenario;
#[cfg(feature = "laboratory")]
pub mod simulate;
#[cfg(feature = "laboratory")]
pub mod store;
pub mod table;
#[cfg(feature = "laboratory")]
pub mod thresholds;
#[cfg(feature = "laboratory")]
pub mod truth;
#[cfg(feature = "laboratory")]
pub mod tuning;
#[cfg(feature = "versus")]
pub mod versus;

pub use taktwerk_load::{
    clock, cycles, energy, files, latency, machine, outliers, pin, process, progress, schedule, steady,
    validity, wire,
};
pub use taktwerk_model::{figures, statistics};
