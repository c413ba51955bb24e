//! Alarms for test programs, which trigger them by writing the input.

use super::super::ServeError;
use super::Nodes;
use taktwerk::Node;

/// Adds the object `alarms` below Objects, the variable `alarms/input`, and its alarm `alarms/input/LevelAlarm`. The
/// alarm is the first one of the group `alarms/Group`, suppresses `alarms/Follower`, and is counted in
/// `alarms/AlarmMetrics`.
pub(super) fn add(nodes: &Nodes, objects: &Node) -> Result<(), ServeError> {
    let alarms = objects.object("alarms").node_id(nodes.id("alarms")).event_notifier().organized().add()?;
    let input = alarms.variable("input", 0.0).node_id(nodes.id("alarms/input")).writable().add()?;
    let level = input.alarm().high(80.0).high_high(95.0).deadband(1.0).confirm().add()?;
    let follower = alarms.alarm("Follower").add()?;
    alarms.alarm_group("Group").members([&level, &follower]).first_in_group().add()?;
    alarms.alarm_group("Suppressing").members([&level]).suppresses([&follower]).add()?;
    alarms.alarm_metrics(10)?;
    Ok(())
}
