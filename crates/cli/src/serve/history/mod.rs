//! The history store of `taktwerk serve`.

#[cfg(feature = "postgres")]
mod database;

use super::ServeArgs;
use super::reference::References;
use crate::failure::Failure;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use taktwerk::Server;
use taktwerk::history::{HistoryOpener, HistoryStore, MemoryStore, RecorderCounters, Rule};
use taktwerk::server::ServerBuilder;
use taktwerk_config::ConfigFile;
use taktwerk_history::{Retention, SqliteStore};
use taktwerk_schema::NodeClass;
use taktwerk_server::AddressSpace;
use taktwerk_server::space::{RecordedSubtree, RecordingChanges};
use taktwerk_types::NodeId;

/// Values per variable that are kept in memory: nearly three hours of the plant.
const VALUES_MAX: usize = 10_000;

/// Adds a history store: a file, or memory for the plant. Load without a plant has none, and no cost.
pub(super) fn keep(builder: ServerBuilder, arguments: &ServeArgs) -> Result<ServerBuilder, Failure> {
    if let Some(path) = &arguments.history {
        return Ok(builder.history_when_available(sqlite(path.clone(), Retention::default())?));
    }
    if arguments.no_plant {
        return Ok(builder);
    }
    Ok(builder.history(Arc::new(MemoryStore::new(VALUES_MAX))))
}

/// Checks the settings without opening the store, and the database settings without connecting.
pub(super) fn check(file: &ConfigFile) -> Result<(), Failure> {
    let section = &file.config().history;
    if !section.has_store() && (section.events || !section.record.is_empty()) {
        let key = if section.events { "history.events" } else { "history.record" };
        let hint = "set file = \"history.db\" under [history]";
        return Err(Failure::Usage(file.mistake_of(key, "it needs a history store", hint).to_string()));
    }
    if section.postgresql.is_none() {
        return Ok(());
    }
    #[cfg(feature = "postgres")]
    {
        database::Settings::of(file).map(drop)
    }
    #[cfg(not(feature = "postgres"))]
    {
        let hint = "build it with the feature postgres, or set file = \"history.db\"";
        let mistake = file.mistake_of("history.postgresql", "this build has no PostgreSQL", hint);
        Err(Failure::Usage(mistake.to_string()))
    }
}

/// The store of a configuration, for the server with this ApplicationUri.
pub(super) fn configured(
    builder: ServerBuilder,
    file: &ConfigFile,
    uri: &str,
) -> Result<ServerBuilder, Failure> {
    let section = &file.config().history;
    check(file)?;
    let age = Duration::from_secs(u64::from(section.keep_days) * 86_400);
    #[cfg(feature = "postgres")]
    if section.postgresql.is_some() {
        return Ok(builder.history_when_available(database::Settings::of(file)?.open(uri, age)?));
    }
    #[cfg(not(feature = "postgres"))]
    let _ = uri;
    let Some(path) = &section.file else { return Ok(builder) };
    let retention = Retention { age, size: section.keep_megabytes << 20 };
    Ok(builder.history_when_available(sqlite(file.resolve(path), retention)?))
}

/// A store in a file.
fn sqlite(path: PathBuf, retention: Retention) -> Result<HistoryOpener, Failure> {
    let open = move || Ok(Arc::new(SqliteStore::open(&path, retention)?) as Arc<dyn HistoryStore>);
    let opened = HistoryOpener::open(SqliteStore::KIND, SqliteStore::capabilities_of(retention), open);
    opened.map_err(|error| Failure::Environment(error.message))
}

/// Records the events of a configuration.
pub(super) fn record_events(file: &ConfigFile, server: &Server) -> Result<(), Failure> {
    let section = &file.config().history;
    if section.events {
        let failed = |error: taktwerk::BuildError| Failure::Environment(error.to_string());
        server.record_events(section.events_writable).map_err(failed)?;
    }
    Ok(())
}

/// The recorded variables of a configuration. A check skips unknown nodes. The nodes in `known` may be missing for the
/// time being.
pub(super) fn define(
    file: &ConfigFile,
    references: &References<'_>,
    known: &[RecordedSubtree],
) -> Result<Vec<RecordedSubtree>, Failure> {
    let space = references.space();
    let mut all = Vec::new();
    for section in &file.config().history.record {
        let text = section.below.get_ref();
        let wrong = |why: &str| {
            references.wrong(&section.below, format!("[[history.record]] below = \"{text}\": {why}"))
        };
        let is_number = |number: f64| number.is_finite() && number >= 0.0;
        if !is_number(section.deadband) || !is_number(section.interval) {
            return Err(wrong("deadband and interval must be numbers of at least 0"));
        }
        if space.history_store().is_none() {
            return Err(wrong("there is no history store: set file = \"history.db\" under [history]"));
        }
        let written = node_id(text, &space.namespaces());
        let known = written.filter(|id| known.iter().any(|one| one.root == *id));
        let is_known = known.is_some();
        let id = match known {
            Some(id) => id,
            None => match references.node("history.record.below", &section.below)? {
                Some(id) => id,
                None => continue,
            },
        };
        let rule = Rule {
            on_change: section.on_change,
            deadband: section.deadband,
            interval: Duration::from_secs_f64((section.interval / 1e3).min(1e9)),
        };
        if !is_known {
            let variables = space.variables_below(&id).map_err(|error| wrong(&error.to_string()))?;
            match variables.len() {
                // Variables can be added below an Object later.
                0 if space.node_class(&id) == Some(NodeClass::OBJECT) => {
                    tracing::warn!(below = text, "there are no variables to record yet");
                }
                0 => {
                    return Err(wrong(
                        "there are no variables to record; name a node with variables (see `taktwerk browse`)",
                    ));
                }
                _ if references.is_check() => {}
                count => tracing::info!(count, below = text, "recorded"),
            }
        }
        all.push(RecordedSubtree { root: id, writable: section.writable, rule });
    }
    Ok(all)
}

/// Replaces recorded variables by others. Returns whether there was a change.
pub(super) fn change(
    space: &AddressSpace,
    before: &[RecordedSubtree],
    after: &[RecordedSubtree],
) -> Result<bool, Failure> {
    if before == after {
        return Ok(false);
    }
    let roots: Vec<NodeId> = before.iter().map(|subtree| subtree.root.clone()).collect();
    let changes = space.change_recorded(&roots, after, taktwerk_net::clock::wall());
    let changes = changes.map_err(|error| Failure::Usage(format!("[[history.record]]: {error}")))?;
    if !before.is_empty() {
        let RecordingChanges { started, changed, stopped, .. } = changes;
        tracing::info!(started, changed, stopped, "other variables are recorded");
    }
    Ok(true)
}

/// The message of a server that ends before `lost` values and events are stored. It also tells what was lost before.
pub(super) fn unstored(lost: u64, recorder: &RecorderCounters) -> Option<String> {
    if lost == 0 {
        return None;
    }
    let why = recorder.problem().unwrap_or_else(|| "the store has not answered yet".to_owned());
    let mut text = format!("{lost} values and events of the history could not be stored and are lost: {why}");
    let (full, early) = (recorder.lost_full(), recorder.lost_early());
    if full > 0 {
        text += &format!(". {full} older ones were lost before, because the queue was full");
    }
    if early > 0 {
        text +=
            &format!(". {early} were lost before, because they arrived faster than they could be recorded");
    }
    Some(text)
}

/// Warns about nodes that rules refer to and that no longer exist.
pub(super) fn warn_of_missing(file: &ConfigFile, space: &AddressSpace) {
    let of_alarms = file.config().alarms.alarm.iter().map(|section| ("alarms.alarm", &section.variable));
    let of_rules = file.config().history.record.iter().map(|section| ("history.record", &section.below));
    let namespaces = space.namespaces();
    for (section, text) in of_rules.chain(of_alarms) {
        let node = text.get_ref();
        if !node_id(node, &namespaces).is_some_and(|id| space.contains(&id)) {
            tracing::warn!(
                section,
                node,
                "this node no longer exists; the setting is used again when the node is added, but the server does not \
                 start without it"
            );
        }
    }
}

/// Parses a NodeId with the index or the URI of its namespace.
pub(super) fn node_id(text: &str, namespaces: &[String]) -> Option<NodeId> {
    let Some(rest) = text.strip_prefix("nsu=") else { return text.parse().ok() };
    let (uri, identifier) = rest.split_once(';')?;
    let uri = uri.replace("%3B", ";").replace("%25", "%");
    let index = namespaces.iter().position(|known| *known == uri)?;
    format!("ns={index};{identifier}").parse().ok()
}
