//! Resource usage of this server as variables in its address space: the profile that the gateway of the C-GW paper
//! shows (Figures 8 and 9), without a second program.

use super::ServeError;
use super::updater::Updater;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk::Server;
use taktwerk_lab::machine;
use taktwerk_lab::process::{Process, Snapshot, Usage};
use taktwerk_net::clock;
use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids, variable_type_ids};
use taktwerk_server::space::build::{Under, ValueShape};
use taktwerk_server::space::{AddressSpace, NodeError, NodeSpec, VariableHandle};
use taktwerk_types::{BuiltInType, NodeId, QualifiedName, UtcTime};

/// Interval of the measurement in nanoseconds: 1 s.
const PERIOD_NS: u64 = 1_000_000_000;
/// The server's own namespace.
const NAMESPACE: u16 = 1;
/// The NodeId of the folder.
const FOLDER: &str = "process";

/// Calculates a figure from the usage of one second.
type Figure = fn(&Usage) -> f64;

/// The figures of the process.
const FIGURES: [(&str, Figure); 9] = [
    ("CpuPercent", |usage| usage.cpu_percent),
    ("UserPercent", |usage| usage.user_s / usage.seconds.max(1e-9) * 100.0),
    ("KernelPercent", |usage| usage.system_s / usage.seconds.max(1e-9) * 100.0),
    ("RunQueueWaitPercent", |usage| usage.runqueue_wait_s / usage.seconds.max(1e-9) * 100.0),
    ("ResidentMegabytes", |usage| usage.rss_bytes as f64 / 1e6),
    ("SwitchesPerSecond", |usage| {
        (usage.voluntary_switches + usage.involuntary_switches) as f64 / usage.seconds.max(1e-9)
    }),
    ("VoluntarySwitchesPerSecond", |usage| usage.voluntary_switches as f64 / usage.seconds.max(1e-9)),
    ("InvoluntarySwitchesPerSecond", |usage| usage.involuntary_switches as f64 / usage.seconds.max(1e-9)),
    ("Threads", |usage| usage.threads as f64),
];

fn folder() -> NodeId {
    NodeId::string(NAMESPACE, FOLDER)
}

fn id(name: &str) -> NodeId {
    NodeId::string(NAMESPACE, format!("{FOLDER}/{name}"))
}

/// The figures of other processes and of the total.
const OF_OTHERS: [(&str, Figure); 5] = [FIGURES[0], FIGURES[4], FIGURES[5], FIGURES[6], FIGURES[7]];
/// Number of processes that an object has stood for: more than one if its program was restarted.
const STARTS: &str = "Starts";
/// Maximum number of objects for other processes.
const OTHERS_MAX: usize = 1_000;
/// The object with the sums.
const TOTAL: &str = "Total";
/// The object of the network: CPU time in interrupts of the whole machine, most of which are those of packets.
const NETWORK: &str = "Network";

/// Other processes, with the names of their sources.
#[derive(Default, Clone)]
pub(super) struct Others(Arc<Mutex<Option<List>>>);

pub(super) type List = Box<dyn Fn() -> Vec<(String, u32)> + Send>;

impl Others {
    /// Sets the provider of the list, the first time only.
    #[cfg(feature = "gateway")]
    pub(super) fn set(&self, list: impl FnOnce() -> List) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(list);
    }

    fn list(&self) -> Vec<(String, u32)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|list| list()).unwrap_or_default()
    }
}

/// The processes with this name. `/proc/PID/comm` has at most 15 characters.
fn named(name: &str) -> Vec<u32> {
    let wanted: String = name.chars().take(15).collect();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let process = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let called = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        (called.trim_end() == wanted).then_some(pid)
    };
    entries.filter_map(process).collect()
}

/// The variables of other processes with a common name.
struct Object {
    figures: [VariableHandle; OF_OTHERS.len()],
    /// `None` for the total.
    starts: Option<VariableHandle>,
    started: u64,
}

/// The variables and the previous measurement.
struct Profile {
    space: Arc<AddressSpace>,
    others: Others,
    /// Names of additional processes to show.
    names: Vec<String>,
    /// Variables by display name.
    objects: BTreeMap<String, Object>,
    /// CPU use of the network and its last counter; `None` if the kernel does not count interrupts.
    network: Option<(VariableHandle, u64)>,
    /// Previous snapshots by process id.
    accounts: BTreeMap<u32, Snapshot>,
    figures: Vec<(VariableHandle, Figure)>,
    /// Variables and CPU time by thread name; threads with the same name are combined.
    threads: BTreeMap<String, (VariableHandle, u64)>,
    before: Snapshot,
}

/// Adds the variables and updates them periodically.
pub(super) fn start(server: &Server, others: &Others, names: &[String]) -> Result<Updater, ServeError> {
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
    let network = match machine::interrupts() {
        Some(counter) => {
            add_object(&space, NETWORK, now)?;
            let cpu = format!("{NETWORK}/CpuPercent");
            Some((variable_of(&space, &id(NETWORK), &cpu, "CpuPercent", now)?, counter))
        }
        None => None,
    };
    let before = Process::own().snapshot().map_err(std::io::Error::other)?;
    let mut profile = Profile {
        space,
        others: others.clone(),
        names: names.to_vec(),
        objects: BTreeMap::new(),
        network,
        accounts: BTreeMap::new(),
        figures,
        threads: BTreeMap::new(),
        before,
    };
    Ok(Updater::start("profile", PERIOD_NS, move |_| profile.update())?)
}

/// A Double below the folder.
fn variable(
    space: &AddressSpace,
    id_name: &str,
    name: &str,
    now: UtcTime,
) -> Result<VariableHandle, NodeError> {
    variable_of(space, &folder(), id_name, name, now)
}

/// An object below the folder.
fn add_object(space: &AddressSpace, name: &str, now: UtcTime) -> Result<(), NodeError> {
    let ns0 = |number| NodeId::numeric(0, number);
    let under = Under {
        parent: &folder(),
        reference_type: &ns0(reference_type_ids::HAS_COMPONENT),
        type_definition: Some(&ns0(object_type_ids::BASE_OBJECT_TYPE)),
    };
    let browse_name = QualifiedName::new(NAMESPACE, name.to_owned());
    space.add_node(NodeSpec::object(id(name), browse_name), under, now).map(drop)
}

/// An object below the folder with the figures of a process.
fn object(space: &AddressSpace, name: &str, now: UtcTime) -> Result<Object, NodeError> {
    add_object(space, name, now)?;
    let of = |figure: &str| variable_of(space, &id(name), &format!("{name}/{figure}"), figure, now);
    let [cpu, memory, switches, voluntary, involuntary] = OF_OTHERS.map(|(figure, _)| of(figure));
    let starts = (name != TOTAL).then(|| of(STARTS)).transpose()?;
    Ok(Object { figures: [cpu?, memory?, switches?, voluntary?, involuntary?], starts, started: 0 })
}

fn variable_of(
    space: &AddressSpace,
    parent: &NodeId,
    id_name: &str,
    name: &str,
    now: UtcTime,
) -> Result<VariableHandle, NodeError> {
    let ns0 = |number| NodeId::numeric(0, number);
    let under = Under {
        parent,
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
    /// Updates the processes of sources, the additional ones, and the total including this process.
    fn update_others(&mut self, own: &Usage, now: UtcTime) {
        let mut processes = self.others.list();
        processes.iter_mut().for_each(|(name, _)| name.insert_str(0, "Program "));
        for name in &self.names {
            processes.extend(named(name).into_iter().map(|pid| (format!("Process {name}"), pid)));
        }
        let mut sums: BTreeMap<String, [f64; OF_OTHERS.len()]> = BTreeMap::new();
        let mut started: BTreeMap<String, u64> = BTreeMap::new();
        let mut accounts = BTreeMap::new();
        let mut total = OF_OTHERS.map(|(_, of)| of(own));
        for (name, pid) in processes {
            let sum = sums.entry(name.clone()).or_default();
            // The process may have ended.
            let Ok(snapshot) = Process::new(pid).snapshot() else { continue };
            if !self.accounts.contains_key(&pid) {
                *started.entry(name).or_default() += 1;
            }
            if let Some(before) = self.accounts.get(&pid) {
                let usage = Usage::between(before, &snapshot);
                for (((_, of), sum), total) in OF_OTHERS.iter().zip(sum).zip(&mut total) {
                    *sum += of(&usage);
                    *total += of(&usage);
                }
            }
            accounts.insert(pid, snapshot);
        }
        self.accounts = accounts;
        // Processes that have ended use nothing.
        for name in self.objects.keys() {
            sums.entry(name.clone()).or_default();
        }
        sums.insert(TOTAL.to_owned(), total);
        for (name, sum) in sums {
            let known = self.objects.contains_key(&name);
            if !known && self.objects.len() < OTHERS_MAX {
                match object(&self.space, &name, now) {
                    Ok(made) => drop(self.objects.insert(name.clone(), made)),
                    Err(error) => tracing::warn!(%error, name, "cannot add the variables of a process"),
                }
            }
            let Some(object) = self.objects.get_mut(&name) else { continue };
            for (variable, value) in object.figures.iter().zip(sum) {
                variable.set_at(value, now);
            }
            object.started += started.get(&name).copied().unwrap_or_default();
            if let Some(starts) = &object.starts {
                starts.set_at(object.started as f64, now);
            }
        }
    }

    fn update(&mut self) {
        let Ok(snapshot) = Process::own().snapshot() else { return };
        let usage = Usage::between(&self.before, &snapshot);
        self.before = snapshot;
        let now = clock::wall();
        for (variable, of) in &self.figures {
            variable.set_at(of(&usage), now);
        }
        self.update_others(&usage, now);
        if let Some((cpu, before)) = &mut self.network
            && let Some(counter) = machine::interrupts()
        {
            let used = counter.saturating_sub(std::mem::replace(before, counter));
            cpu.set_at(used as f64 / 1e7 / usage.seconds.max(1e-9), now);
        }
        for (name, cpu) in Process::own().by_thread() {
            let known = match self.threads.get_mut(&name) {
                Some(known) => known,
                None => {
                    // Threads may start at any time. The first measurement is the baseline of the next one.
                    let made =
                        variable(&self.space, &format!("threads/{name}"), &format!("Thread {name}"), now);
                    match made {
                        Ok(made) => self.threads.entry(name).or_insert((made, cpu)),
                        Err(error) => {
                            tracing::warn!(%error, "cannot add the variable of a thread");
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
