//! How true the simulator is: the same loads measured and simulated.
//!
//! [`loads`] says what is measured: none of it had a part in calibrating the host profile. [`predict`] simulates a load as
//! it was measured, [`outcome`] sets both side by side.

mod loads;
mod outcome;
mod predict;

pub use loads::{Extent, LINKS, conditions};
pub(crate) use outcome::shards_percent;
pub use outcome::{Error, Pair, Summary, evaluate, outcome};
pub use predict::{PredictError, Predicted, lateness, predict};
pub(crate) use predict::{histogram, predict_shortly};
