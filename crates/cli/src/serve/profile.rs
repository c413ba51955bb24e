//! What this server itself uses, as variables in its own address space: the profile that the gateway of the C-GW paper
//! shows (Figures 8 and 9), without a second program on the machine.

use super::ServeError;
use super::updater::Updater;
use std::collections::BTreeMap;
use std::sync::Arc;
use taktwerk::Server;
use taktwerk_lab::process::{Process, Snapshot, Usage};
use taktwerk_net::clock;
use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids, variable_type_ids};
use taktwerk_server::space::build::{Under, ValueShape};
use taktwerk_server::space::{AddressSpace, NodeError, NodeSpec, VariableHandle};
use taktwerk_types::{BuiltInType, NodeId, QualifiedName, UtcTime};

/// How often it is looked at.
const PERIOD_NS: u64 = 1_000_000_000;
/// The server's own namespace.
const NAMESPACE: u16 = 1;
/// The folder.
const FOLDER: &str = "process";

/// How a figure comes from the account of a second.
type Figure = fn(&Usage) -> f64;

/// The figures of the process as a whole: name, and how it comes from the account.
const FIGURES: [(&str, Figure); 7] = [
    ("CpuPercent", |usage| usage.cpu_percent),
    ("UserPercent", |usage| usage.user_s / usage.seconds.max(1e-9) * 100.0),
    ("KernelPercent", |usage| usage.system_s / usage.seconds.max(1e-9) * 100.0),
    ("RunQueueWaitPercent", |usage| usage.runqueue_wait_s / usage.seconds.max(1e-9) * 100.0),
    ("ResidentMegabytes", |usage| usage.rss_bytes as f64 / 1e6),
    ("SwitchesPerSecond", |usage| {
        (usage.voluntary_switches + usage.involuntary_switches) as f64 / usage.seconds.max(1e-9)
    }),
    ("Threads", |usage| usage.threads as f64),
];

fn folder() -> NodeId {
    NodeId::string(NAMESPACE, FOLDER)
}

fn id(name: &str) -> NodeId {
    NodeId::string(NAMESPACE, format!("{FOLDER}/{name}"))
}

/// The variables with what they were made from last time.
struct Profile {
    space: Arc<AddressSpace>,
    figures: Vec<(VariableHandle, Figure)>,
    /// By thread; threads of one name are one.
    threads: BTreeMap<String, (VariableHandle, u64)>,
    before: Snapshot,
}

/// Adds the variables and keeps them up to date.
pub(super) fn start(server: &Server) -> Result<Updater, ServeError> {
    let space = Arc::clone(server.space());
    let now = clock::wall();
    let ns0 = |number| NodeId::numeric(0, number);
    let under_objects = Under {
        parent: &ns0(object_ids::OBJECTS_FOLDER),
        reference_type: &ns0(reference_type_ids::ORGANIZES),
        type_definition: Some(&ns0(object_type_ids::FOLDER_TYPE)),
    };
    let name = QualifiedName::new(NAMESPACE, "Process".to_owned());
    space.add_node(NodeSpec::object(folder(), name), under_objects, now)?;
    let mut figures = Vec::new();
    for (name, of) in FIGURES {
        figures.push((variable(&space, name, name, now)?, of));
    }
    let before = Process::own().snapshot().map_err(std::io::Error::other)?;
    let mut profile = Profile { space, figures, threads: BTreeMap::new(), before };
    Ok(Updater::start("profile", PERIOD_NS, move |_| profile.update())?)
}

/// A Double below the folder.
fn variable(
    space: &AddressSpace,
    id_name: &str,
    name: &str,
    now: UtcTime,
) -> Result<VariableHandle, NodeError> {
    let ns0 = |number| NodeId::numeric(0, number);
    let under = Under {
        parent: &folder(),
        reference_type: &ns0(reference_type_ids::HAS_COMPONENT),
        type_definition: Some(&ns0(variable_type_ids::BASE_DATA_VARIABLE_TYPE)),
    };
    let browse_name = QualifiedName::new(NAMESPACE, name.to_owned());
    let spec = NodeSpec::variable(id(id_name), browse_name, NodeId::NULL, Some(0.0.into()))
        .shape(ValueShape::scalar(BuiltInType::Double));
    space.add_node(spec, under, now)?;
    space.variable(&id(id_name))
}

impl Profile {
    fn update(&mut self) {
        let Ok(snapshot) = Process::own().snapshot() else { return };
        let usage = Usage::between(&self.before, &snapshot);
        self.before = snapshot;
        let now = clock::wall();
        for (variable, of) in &self.figures {
            variable.set_at(of(&usage), now);
        }
        for (name, cpu) in Process::own().by_thread() {
            let known = match self.threads.get_mut(&name) {
                Some(known) => known,
                None => {
                    // Threads come while the server runs; the first look is what the next one is compared with.
                    let made =
                        variable(&self.space, &format!("threads/{name}"), &format!("Thread {name}"), now);
                    match made {
                        Ok(made) => self.threads.entry(name).or_insert((made, cpu)),
                        Err(error) => {
                            tracing::warn!(%error, "no variable for a thread");
                            continue;
                        }
                    }
                }
            };
            let percent = cpu.saturating_sub(known.1) as f64 / 1e7 / usage.seconds.max(1e-9);
            known.0.set_at(percent, now);
            known.1 = cpu;
        }
    }
}
