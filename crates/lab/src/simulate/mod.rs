//! Plants in virtual time: files that describe them, all seeds on all processors, and what comes of it.
//!
//! - [`study`]: a file as cases to simulate; `spec` reads the simulator's own files, [`convert`] those of the laboratory, of `size`
//!   and of `tune`;
//! - `capacity`: what can be told without simulating;
//! - [`seeds`]: runs each case with each seed;
//! - [`figures`]: figures over seeds, as a table, as JSON and as an outcome for reports.

mod capacity;
pub mod convert;
pub mod figures;
pub mod seeds;
mod spec;
pub mod study;

pub use figures::{Figures, Summary};
pub use seeds::{Run, run_all};
pub use study::{Case, Study, StudyError};

#[cfg(test)]
mod tests;
