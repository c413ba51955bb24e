//! Events of the demo plant, and their notifiers.

use taktwerk::{BuildError, Namespace, Node, Server, UtcTime};
use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids};
use taktwerk_types::NodeId;

/// Seconds per part.
const PART_SECONDS: u64 = 4;
/// Parts on a pallet.
const PALLET: u64 = 5;
/// One of this many parts is rejected.
const REJECTED: u64 = 50;

/// The folder of the plant, with an EventNotifier. The Server Object refers to it with HasNotifier (Part 3 §7.16), so
/// that clients find it as an area.
pub(super) fn folder(server: &Server, namespace: &Namespace) -> Result<Node, BuildError> {
    let folder = NodeId::numeric(0, object_type_ids::FOLDER_TYPE);
    let plant = namespace.object("Plant").of_type(folder).organized().event_notifier().add()?;
    let notifier = NodeId::numeric(0, reference_type_ids::HAS_NOTIFIER);
    server.space().add_reference(&NodeId::numeric(0, object_ids::SERVER), &notifier, plant.id())?;
    Ok(plant)
}

/// A machine with an EventNotifier.
pub(super) fn machine(plant: &Node, name: &str) -> Result<Node, BuildError> {
    let machine = plant.object(name).event_notifier().add()?;
    plant.refers_to(NodeId::numeric(0, reference_type_ids::HAS_NOTIFIER), &machine)?;
    Ok(machine)
}

/// The sources of events.
pub(super) struct EventSources {
    conveyor: Node,
    press: Node,
}

impl EventSources {
    /// Finds the machines of the plant.
    pub(super) fn of(plant: &Node) -> Result<Self, BuildError> {
        Ok(Self { conveyor: plant.child("Conveyor")?, press: plant.child("Press")? })
    }

    /// Raises the events of one second.
    pub(super) fn second(&self, seconds: u64, now: UtcTime) {
        if !seconds.is_multiple_of(PART_SECONDS) {
            return;
        }
        let part = seconds / PART_SECONDS;
        if part.is_multiple_of(REJECTED) {
            let message = format!("Part {part} was rejected: out of tolerance");
            self.press.base_event().severity(400).message(&*message).time(now).emit();
        }
        if part.is_multiple_of(PALLET) {
            let message = format!("Pallet {} is full", part / PALLET);
            self.conveyor.base_event().severity(100).message(&*message).time(now).emit();
        }
    }
}
