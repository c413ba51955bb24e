//! Which settings suit a plant: searches them for the best trade-off between delay and cost.
//!
//! - [`problem`]: what is given, what can be chosen, what counts, and what must hold;
//! - [`analytic`]: delay and bandwidth by formulas, to sort out what cannot be good;
//! - [`search`](mod@search): from coarse to fine, with whatever can [`Evaluate`] settings: the formulas, a simulation, a measurement;
//! - [`front`]: the Pareto front and its knee;
//! - [`explain`]: one sentence per setting;
//! - [`write`]: configurations of servers and clients;
//! - [`confirm`]: a scenario that measures what was promised.

//!
//! Nothing here measures or simulates: a caller brings that.

pub mod analytic;
pub mod confirm;
pub mod constraint;
pub mod document;
pub mod explain;
pub mod front;
pub mod problem;
pub mod search;
pub mod settings;
pub mod write;

pub use constraint::Constraint;
pub use problem::{Problem, ProblemError};
pub use search::{Evaluate, EvaluateError, Progress, Stage, TuneError, Tuned, tune};
pub use settings::{Figures, Metric, Security, Settings, Transport};
