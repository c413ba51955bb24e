//! Simulates plants that files describe in virtual time: several cases and seeds, on all processors.
//!
//! - [`study`]: reads a file as cases; `spec` reads the simulator's own files, [`convert`] those of the laboratory, of
//!   `size` and of `tune`;
//! - `capacity` and `endless`: find overloaded links, and requests that take no time, without simulating;
//! - [`seeds`]: runs each case with each seed;
//! - [`figures`]: figures over seeds, as a table, as JSON, and as an outcome for reports.

mod capacity;
pub mod convert;
mod endless;
pub mod figures;
pub mod seeds;
mod spec;
pub mod study;

pub use figures::{Figures, Summary};
pub use seeds::{Run, run_all};
pub use study::{Case, Study, StudyError};

#[cfg(test)]
mod tests;
