//! An alarm that test programs raise themselves: they write its input.

use super::super::ServeError;
use super::Nodes;
use taktwerk::Node;

/// Adds the object `alarms` under Objects, the variable `alarms/input`, and its alarm `alarms/input/LevelAlarm`.
pub(super) fn add(nodes: &Nodes, objects: &Node) -> Result<(), ServeError> {
    let alarms = objects.object("alarms").node_id(nodes.id("alarms")).event_notifier().organized().add()?;
    let input = alarms.variable("input", 0.0).node_id(nodes.id("alarms/input")).writable().add()?;
    input.alarm().high(80.0).high_high(95.0).deadband(1.0).confirm().add()?;
    Ok(())
}
