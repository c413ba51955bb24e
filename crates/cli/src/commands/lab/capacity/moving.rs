//! What to monitor on a server that nobody has prepared: variables whose values change all the time. One that rests sends
//! nothing, however much is asked of it, and says nothing about what the server can do.

use super::CapacityArgs;
use crate::attribute::Attribute;
use crate::failure::Failure;
use crate::node::NodeSpec;
use crate::session::Session;
use std::time::Duration;
use taktwerk_generator::nodes;
use taktwerk_schema::ReadValueId;
use taktwerk_types::{DataValue, NodeId};

/// How many variables are looked at, and how many on a plant that runs.
const CANDIDATES: (u32, u32) = (1_000, 200);
/// Variables read with one request: as many as any server allows.
const READ_AT_ONCE: usize = 50;
/// How often they are looked at.
const LOOKS: usize = 3;
/// Most that are named to a load: items are spread over them anyway.
const NAMED_MAX: usize = 500;

/// What the loads monitor.
#[derive(Debug, Default)]
pub(super) struct Moving {
    /// Empty where the loads find the nodes themselves.
    pub(super) nodes: Vec<NodeSpec>,
    /// How it was chosen, in words.
    pub(super) said: Option<String>,
}

/// The nodes that were named; else the signals of a server under test; else variables that change every interval.
pub(super) fn find(session: &mut Session, arguments: &CapacityArgs) -> Result<Moving, Failure> {
    if !arguments.nodes.is_empty() {
        return Ok(Moving { nodes: arguments.nodes.clone(), said: None });
    }
    let most = if arguments.safe { CANDIDATES.1 } else { CANDIDATES.0 };
    let found = nodes::find(session, &[], Some(most))?;
    if found.first().is_some_and(nodes::is_signal) {
        return Ok(Moving::default());
    }
    let mut looks = Vec::with_capacity(LOOKS);
    for look in 0..LOOKS {
        if look > 0 {
            // A little more than an interval: a value that is set once in each has changed for certain.
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
        "monitored: {} of {} variables that were looked at, because their values change every {interval} ms",
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

/// Whether a value was another one, and a Good one, each time it was looked at.
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
    fn what_rests_or_is_bad_is_not_monitored() {
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
