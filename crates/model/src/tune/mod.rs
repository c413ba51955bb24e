//! Searches the settings of a plant for the best trade-off between delay and cost.
//!
//! - [`problem`]: the plant, the choices, the objectives, and the constraints;
//! - [`link`]: the link of a plant file;
//! - [`analytic`]: delay and bandwidth by formulas, to rule out bad settings;
//! - [`search`](mod@search): from coarse to fine, with anything that can [`Evaluate`] settings: formulas, a simulation,
//!   a measurement;
//! - [`front`]: the Pareto front and its knee;
//! - [`explain`]: one sentence per setting;
//! - [`write`]: configurations of servers and clients;
//! - [`confirm`]: a scenario that verifies the prediction by measurement.

//!
//! This module neither measures nor simulates; the caller provides an evaluator.

pub mod analytic;
pub mod confirm;
pub mod constraint;
pub mod explain;
pub mod front;
pub mod link;
pub mod problem;
pub mod search;
pub mod settings;
pub mod write;

pub use constraint::Constraint;
pub use problem::{Problem, ProblemError};
pub use search::{Evaluate, EvaluateError, Progress, Stage, TuneError, Tuned, tune};
pub use settings::{Figures, Metric, Security, Settings, Transport};
