//! A hatch as a state machine of its own type (Part 16): clients open and close it, and lock it when it is closed.

use taktwerk::state_machine::Definition;
use taktwerk::{BuildError, Namespace, Node};

/// Adds the hatch.
pub(super) fn add(namespace: &Namespace, plant: &Node) -> Result<(), BuildError> {
    let kind = namespace.state_machine_type(
        Definition::new("HatchStateMachineType", "Closed")
            .state("Opened")
            .state("Locked")
            .transition("Closed", "Opened", "Open")
            .transition("Opened", "Closed", "Close")
            .transition("Closed", "Locked", "Lock")
            .transition("Locked", "Closed", "Unlock"),
    )?;
    plant.state_machine("Hatch", &kind, |_, _| Ok(()))?;
    Ok(())
}
