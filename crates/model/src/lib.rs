//! Models of costs and settings, as pure code: no sockets, clocks, files or threads.
//!
//! - [`cpu`] fits formulas for the CPU, memory and bandwidth of a load to measurements and predicts other loads;
//! - [`host`] has the costs of the work of a server or client on a machine;
//! - [`plant`] checks whether a plant fits its hardware;
//! - [`tune`](mod@tune) searches settings with the best trade-off between delay and cost;
//! - [`statistics`] has medians, spread and confidence intervals;
//! - [`figures`] formats numbers for people.
//!
//! Measurements are made by the laboratory, which converts them to [`cpu::Observation`]s.

pub mod cpu;
pub mod document;
pub mod figures;
pub mod host;
pub mod plant;
pub mod statistics;
pub mod tune;

pub use cpu::{Form, Model, Observation};
pub use host::HostProfile;
