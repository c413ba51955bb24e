//! What loads cost and which settings suit a plant, as pure code: no socket, clock, file or thread.
//!
//! - [`cpu`] fits formulas for the CPU, memory and bandwidth of a load to measurements and predicts other loads;
//! - [`host`] says what the work of a server or client costs on a machine;
//! - [`plant`] checks whether a plant fits its hardware;
//! - [`tune`](mod@tune) searches settings with the best trade-off between delay and cost;
//! - [`statistics`] has medians, spread and confidence intervals;
//! - [`figures`] formats numbers for people.
//!
//! Measuring belongs to the laboratory, which turns its measurements into [`cpu::Observation`]s.

pub mod cpu;
pub mod figures;
pub mod host;
pub mod plant;
pub mod statistics;
pub mod tune;

pub use cpu::{Form, Model, Observation};
pub use host::HostProfile;
