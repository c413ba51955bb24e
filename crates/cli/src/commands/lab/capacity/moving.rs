//! Selects the variables to monitor on an unprepared server: those whose values change in every interval. Constant
//! variables send nothing and cannot show a limit of the server.

use super::CapacityArgs;
use crate::attribute::Attribute;
use crate::failure::Failure;
use crate::node::NodeSpec;
use crate::session::Session;
use std::time::Duration;
use taktwerk_generator::nodes;
use taktwerk_schema::ReadValueId;
use taktwerk_types::{DataValue, NodeId};

/// Maximum number of candidate variables: on a server under test, and on a running plant.
const CANDIDATES: (u32, u32) = (1_000, 200);
/// Variables per Read request: supported by every server.
const READ_AT_ONCE: usize = 50;
/// Number of samples.
const SAMPLES: usize = 3;
/// Maximum number of nodes in the result. Items are spread over them.
const NAMED_MAX: usize = 500;

/// The variables to monitor.
#[derive(Debug, Default)]
pub(super) struct Moving {
    /// Empty if the load finds its nodes itself.
    pub(super) nodes: Vec<NodeSpec>,
    /// A note about the selection.
    pub(super) said: Option<String>,
}

/// The given nodes, or the signals of a server under test, or variables that change in every interval.
pub(super) fn find(session: &mut Session, arguments: &CapacityArgs) -> Result<Moving, Failure> {
    if !arguments.nodes.is_empty() {
        return Ok(Moving { nodes: arguments.nodes.clone(), said: None });
    }
    let most = if arguments.safe { CANDIDATES.1 } else { CANDIDATES.0 };
    let found = nodes::find(session, &[], Some(most))?;
    if found.first().is_some_and(nodes::is_signal) {
        return Ok(Moving::default());
    }
    let mut looks = Vec::with_capacity(SAMPLES);
    for look in 0..SAMPLES {
        if look > 0 {
            // Slightly longer than an interval, so that a value that is set in each interval has changed.
            std::thread::sleep(arguments.interval.mul_f64(1.1) + Duration::from_millis(5));
        }
        looks.push(values(session, &found)?);
    }
    let moving: Vec<&NodeId> =
        found.iter().enumerate().filter(|(at, _)| is_moving(&looks, *at)).map(|(_, node)| node).collect();
    let interval = arguments.interval.as_secs_f64() * 1e3;
    if moving.is_empty() {
        return Err(Failure::Usage(format!(
            "none of {} variables changes its value every {interval} ms: give the interval at which values change (-I), or \
             name some that do (--nodes)",
            found.len()
        )));
    }
    let said = format!(
        "monitored: {} of {} sampled variables, because their values change every {interval} ms",
        moving.len().min(NAMED_MAX),
        found.len()
    );
    let nodes = moving.into_iter().take(NAMED_MAX).map(|node| NodeSpec::Id(node.clone().into())).collect();
    Ok(Moving { nodes, said: Some(said) })
}

fn values(session: &mut Session, nodes: &[NodeId]) -> Result<Vec<DataValue>, Failure> {
    let mut values = Vec::with_capacity(nodes.len());
    for part in nodes.chunks(READ_AT_ONCE) {
        let reads = part.iter().map(|node| ReadValueId {
            node_id: node.clone(),
            attribute_id: Attribute::VALUE.id(),
            ..Default::default()
        });
        values.extend(session.read(reads.collect())?);
    }
    Ok(values)
}

/// Whether a value was Good and different in each sample.
fn is_moving(looks: &[Vec<DataValue>], at: usize) -> bool {
    let values: Option<Vec<&DataValue>> = looks.iter().map(|look| look.get(at)).collect();
    values.is_some_and(|values| {
        values.iter().all(|value| value.status().is_good())
            && values.windows(2).all(|pair| matches!(pair, [a, b] if a.value != b.value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::{StatusCode, Variant};

    #[test]
    fn constant_and_bad_variables_are_not_monitored() {
        let of = |numbers: [i32; 3], status: Option<StatusCode>| {
            numbers.map(|number| DataValue {
                value: Some(Variant::Int32(number)),
                status,
                ..Default::default()
            })
        };
        let all = [
            of([1, 2, 3], None),
            of([5, 5, 5], None),
            of([1, 2, 2], None),
            of([1, 2, 3], Some(StatusCode::BAD_NOT_CONNECTED)),
        ];
        let looks: Vec<Vec<DataValue>> =
            (0..3).map(|look| all.iter().map(|values| values[look].clone()).collect()).collect();
        let moving: Vec<bool> = (0..5).map(|at| is_moving(&looks, at)).collect();
        assert_eq!(moving, [true, false, false, false, false]);
    }
}
