//! The laboratory: plans, runs, stores, compares and evaluates measurements.
//!
//! This crate does not speak OPC UA. Loads are those of the crate `load` and run in separate processes. That crate also
//! has the rules of valid measurements, which are re-exported here ([`clock`], [`schedule`], [`latency`], [`progress`],
//! [`process`], [`outliers`], [`steady`], [`validity`], …). This crate has:
//!
//! - [`program`]: child processes, which are always ended; [`orphans`]: processes that outlived a killed laboratory;
//!   [`leftovers`]: cleaning up after one;
//! - [`cpu`]: CPU isolation, scheduling class and governor, requested and actual;
//! - [`links`]: emulated networks, with a probe that verifies them;
//! - [`mqtt`]: a client to measure brokers with;
//! - [`peers`]: other stacks and brokers, installed from their registries and started through one interface;
//! - [`table`]: tables for terminals.
//!
//! [`statistics`] and [`figures`] are re-exports of the crate `model`.
//!
//! The feature `laboratory` adds: [`scenario`] (description of measurements), [`place`] (a single measurement),
//! [`runner`] (repetitions in a fair order), [`store`] (the database of results), [`experiment`] (the published
//! experiments), [`model`] (fitting the cost model), [`thresholds`] (limits), [`capacity`] (search for the largest
//! sustained load), [`simulate`] (plants in virtual time), [`truth`] (simulation compared with measurements), [`ramp`]
//! (a server's headroom compared with its CPU), [`tuning`] (simulation of settings), [`confirmation`] (a recommended
//! setting compared with measurements), [`processes`] (what each process of a server used over time), and [`outcome`],
//! [`chart`] and [`report`] (output). The feature `versus`, which `laboratory` includes, adds `versus`: comparison with a
//! peer.

#[cfg(feature = "laboratory")]
pub mod capacity;
#[cfg(feature = "laboratory")]
pub mod chart;
#[cfg(feature = "laboratory")]
pub mod confirmation;
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
#[cfg(feature = "laboratory")]
pub mod processes;
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
