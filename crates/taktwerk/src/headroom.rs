//! Shows the server's headroom as variables below `Headroom` in a separate namespace.

use crate::space::Namespace;
use crate::{BuildError, Server};
use std::sync::Arc;
use taktwerk_server::headroom::{Headroom, Report};

pub use taktwerk_server::headroom::{Admit, Prices};

/// The namespace of these variables.
pub const NAMESPACE: &str = "urn:taktwerk:headroom";

/// A variable: its name, its description, and its value from a report.
type Shown = (&'static str, &'static str, fn(&Report) -> f64);

/// CPU is in percent of one core.
const VARIABLES: [Shown; 13] = [
    ("PredictedCpu", "CPU of what clients have asked for, percent of one core", |one| one.predicted * 100.0),
    ("ActualCpu", "CPU of the last second, percent of one core; 0 before the first measurement", |one| {
        one.actual.unwrap_or(0.0) * 100.0
    }),
    ("PriceFactor", "Measured cost of work relative to the calibration: 0.7 to 2", |one| one.factor),
    ("LimitCpu", "Most CPU, percent of one core", |one| one.limit * 100.0),
    ("DemandSignals", "Values per second that clients have asked for", |one| one.values_per_s),
    ("DemandMessages", "Messages per second that clients have asked for", |one| one.messages_per_s),
    ("DemandItems", "Monitored items that are not disabled", |one| one.items as f64),
    ("DemandSubscriptions", "Subscriptions", |one| one.subscriptions as f64),
    ("RemainingSignals", "Values per second that still fit", |one| one.remaining_values_per_s),
    ("RemainingItems", "Monitored items like the present ones that still fit", |one| one.remaining_items),
    ("RemainingSessions", "Sessions like the present ones that still fit", |one| one.remaining_sessions),
    ("RevisedIntervals", "Publishing intervals that were revised upward", |one| one.revised as f64),
    ("RefusedItems", "Monitored items that were refused", |one| one.refused as f64),
];

impl Server {
    /// Shows the headroom below `Objects`, if the server has a cost model. Values are computed when they are read.
    ///
    /// # Errors
    /// A node cannot be added.
    pub fn show_headroom(&self) -> Result<bool, BuildError> {
        let Some(headroom) = self.config().headroom.clone() else { return Ok(false) };
        show(&self.namespace(NAMESPACE), &headroom)?;
        Ok(true)
    }
}

fn show(namespace: &Namespace, headroom: &Arc<Headroom>) -> Result<(), BuildError> {
    let folder = namespace.folder("Headroom")?;
    for (name, description, value) in VARIABLES {
        let headroom = Arc::clone(headroom);
        folder
            .variable(name, 0.0)
            .description(description)
            .minimum_sampling_interval(250.0)
            .source(move || value(&headroom.report()))
            .add()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headroom::{Admit, Prices};

    #[test]
    fn a_server_without_a_calibration_shows_nothing() {
        let server = Server::builder().anonymous().bind("127.0.0.1:0").build().unwrap();
        assert!(!server.show_headroom().unwrap());
        let prices = Prices { idle: 0.01, value: 1e-6, value_growth: 0.0, message: 1e-5 };
        let builder = Server::builder().anonymous().bind("127.0.0.1:0");
        let server = builder.headroom(prices, 0.8, Admit::Headroom).build().unwrap();
        assert!(server.show_headroom().unwrap());
        let index = server.namespace(NAMESPACE).index();
        let name = |name: &str| taktwerk_types::QualifiedName::new(index, name);
        let folder = server.objects().child_named(&name("Headroom")).unwrap();
        for (shown, ..) in VARIABLES {
            assert!(folder.child_named(&name(shown)).is_ok(), "{shown}");
        }
    }
}
