//! Accuracy of the simulator: the same loads measured and simulated.
//!
//! [`loads`] defines the loads, none of which was used to calibrate the host profile. [`predict`] simulates a load as
//! it was measured; [`outcome`] compares both.

mod loads;
mod outcome;
mod predict;

pub use loads::{Extent, LINKS, conditions};
pub(crate) use outcome::shards_percent;
pub use outcome::{Error, Pair, Summary, evaluate, outcome};
pub use predict::{PredictError, Predicted, lateness, predict};
pub(crate) use predict::{histogram, predict_shortly};
