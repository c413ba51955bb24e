//! Applies a changed configuration file to the running server: after SIGHUP, `taktwerk config apply`, or with --watch
//! when the file or a NodeSet file changes.
//!
//! The whole file is validated first: an invalid one changes nothing. What fails later, such as a port of the dashboard that is in
//! use, is reported with what has been applied. Roles and permissions change at once, also for
//! open sessions. The dashboard and changed sources, tags and destinations are restarted. Recorded variables and alarms that
//! have changed follow the file. Other settings are reported and need a restart. Sessions, subscriptions and connections
//! are not affected.

use super::ServeError;
use super::configured::Configured;
use super::control::{self, Control, Outcome};
use super::gateway::{Newer, Started};
use super::reference::References;
use super::rules::{ALARM, GROUP, RECORD, Rules};
use super::supervisor;
#[cfg(feature = "web")]
use super::web::Dashboard;
use crate::failure::Failure;
use signal_hook::consts::SIGHUP;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use taktwerk::RunningServer;
use taktwerk_config::ConfigFile;
use taktwerk_server::space::import::{Batch, Prepared};
use tracing::field::Empty;

/// The target of exported spans.
pub(super) const TRACE: &str = "taktwerk::trace";
/// Sections and settings that a running server applies.
const LIVE: [&str; 13] = [
    "role",
    "permissions",
    "namespace",
    "web",
    "source",
    "tag",
    "template",
    "instance",
    "destination",
    NODESETS,
    RECORD,
    ALARM,
    GROUP,
];
/// Sections of the gateway.
const FIELD: [&str; 5] = ["source", "tag", "template", "instance", "destination"];
/// The NodeSet files. They are read each time, because their content may have changed.
const NODESETS: &str = "server.nodesets";

/// Waits for triggers of a reload.
pub(super) struct Reload {
    path: PathBuf,
    /// The file of the start, to find settings that need a restart.
    started: ConfigFile,
    /// The file whose `[web]` is applied: a newer one than the server's if a later step has failed.
    web: ConfigFile,
    hangup: Arc<AtomicBool>,
    requests: Option<Control>,
    /// Set with --watch.
    seen: Option<Seen>,
    /// The imported NodeSets.
    nodesets: Option<Batch>,
    /// Recorded variables and alarms.
    rules: Rules,
}

/// Modification time and length of a file; `None` if it does not exist.
type Stamp = Option<(SystemTime, u64)>;

fn stamp(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// The state of the watched files.
struct Seen {
    /// Stamp of the configuration when it was last read.
    config: Stamp,
    /// Stamps of the NodeSets at that time.
    nodesets: Vec<(PathBuf, Stamp)>,
    /// Stamps at the last check: files that are still being written are not read.
    last: Vec<(PathBuf, Stamp)>,
}

impl Seen {
    fn of(path: &Path, file: &ConfigFile) -> Self {
        let nodesets = nodesets(file);
        Self { config: stamp(path), last: nodesets.clone(), nodesets }
    }

    /// Updates the watched NodeSet files for a new configuration.
    fn follow(&mut self, file: &ConfigFile) {
        let now = nodesets(file);
        let paths =
            |files: &[(PathBuf, Stamp)]| files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
        if paths(&now) != paths(&self.nodesets) {
            (self.last, self.nodesets) = (now.clone(), now);
        }
    }

    /// Whether the configuration has changed, or NodeSets have changed and are stable since the last check.
    fn has_changed(&mut self, path: &Path, file: &ConfigFile) -> bool {
        let now = stamp(path);
        if now.is_some() && now != self.config {
            return true;
        }
        let nodesets = nodesets(file);
        let is_stable = nodesets == self.last;
        self.last = nodesets;
        is_stable && self.last != self.nodesets
    }
}

fn nodesets(file: &ConfigFile) -> Vec<(PathBuf, Stamp)> {
    let files = super::configured::nodesets_of(file).into_iter();
    files.map(|path| (path.clone(), stamp(&path))).collect()
}

impl Reload {
    /// Starts waiting.
    pub(super) fn start(
        configured: &Configured,
        path: &Path,
        watch: bool,
        (nodesets, rules): (Option<Batch>, Rules),
    ) -> Result<Self, Failure> {
        let hangup = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGHUP, Arc::clone(&hangup))
            .map_err(|error| Failure::Environment(format!("cannot catch signals: {error}")))?;
        let requests = match control::listen(path) {
            Ok(requests) => Some(requests),
            Err(error) => {
                tracing::warn!(%error, "`taktwerk config apply` cannot reach this server; another one may run with this file");
                None
            }
        };
        let seen = watch.then(|| Seen::of(path, configured.file()));
        Ok(Self {
            path: path.to_owned(),
            started: configured.file().clone(),
            web: configured.file().clone(),
            hangup,
            requests,
            seen,
            nodesets,
            rules,
        })
    }

    /// Reloads the file if requested.
    pub(super) fn tick(
        &mut self,
        configured: &mut Configured,
        running: &RunningServer,
        gateway: &mut Started,
        #[cfg(feature = "web")] dashboard: &mut Dashboard,
    ) {
        let reply = self.requests.as_ref().and_then(Control::next);
        let path = &self.path;
        let has_changed = self.seen.as_mut().is_some_and(|seen| seen.has_changed(path, configured.file()));
        if !self.hangup.swap(false, Ordering::Relaxed) && reply.is_none() && !has_changed {
            return;
        }
        supervisor::reloading();
        // Taken before reading, so that later changes are noticed next time.
        if let Some(seen) = &mut self.seen {
            *seen = Seen::of(&self.path, configured.file());
        }
        let span = tracing::debug_span!(target: TRACE, "config.apply", applied = Empty, waiting = Empty, error = Empty);
        let outcome = span.in_scope(|| {
            self.take_over(
                configured,
                running,
                gateway,
                #[cfg(feature = "web")]
                dashboard,
            )
        });
        if let Some(seen) = &mut self.seen {
            seen.follow(configured.file());
        }
        let outcome = outcome
            .unwrap_or_else(|error| Outcome { problem: Some(error.to_string()), ..Outcome::default() });
        span.record("applied", outcome.applied.join(", "));
        span.record("waiting", outcome.waiting.join(", "));
        if let Some(problem) = &outcome.problem {
            span.record("error", problem);
        }
        drop(span);
        supervisor::done(&say(&outcome));
        if let Some(reply) = reply {
            // The requester may have disconnected.
            let _ = reply.send(outcome);
        }
    }

    fn take_over(
        &mut self,
        configured: &mut Configured,
        running: &RunningServer,
        gateway: &mut Started,
        #[cfg(feature = "web")] dashboard: &mut Dashboard,
    ) -> Result<Outcome, Failure> {
        let newer = crate::config_file::load(&self.path)?;
        super::check_files(&newer)?;
        let sources = gateway.look(&newer, running)?;
        let mut changes = configured.file().changes(&newer);
        changes.retain(|setting| !is_web(setting));
        changes.extend(self.web.changes(&newer).into_iter().filter(|setting| is_web(setting)));
        let (mut applied, _) = split(changes);
        let has_store = running.space().history_store().is_some();
        applied.retain(|setting| setting != RECORD || has_store);
        let files = super::configured::nodesets_of(&newer);
        let nodesets = match (&self.nodesets, files.is_empty()) {
            (None, true) => None,
            (instead, _) => Some(running.prepare_nodesets(&files, *instead).map_err(ServeError::from)?),
        };
        // Validate everything before anything is changed.
        configured.authorization_of(&newer)?;
        super::configured::check_namespaces(&newer, &running.space().namespaces())?;
        // NodeSets that clients have loaded are imported after those of the file at the next start.
        let may_miss = nodesets.is_some() && newer.config().nodeset_methods.enabled;
        let is_rule = |setting: &String| [RECORD, ALARM, GROUP].contains(&setting.as_str());
        // Groups may have alarms of tags.
        let has_groups = !newer.config().alarms.group.is_empty();
        if may_miss || has_groups || applied.iter().any(is_rule) || sources.requires_nodes() {
            // Their nodes may come with changed NodeSets or tags, or be deleted with them.
            super::rehearsal::check_for(&newer, Some((&**running.space(), &self.started)))?;
        }
        // Last, because it stays reserved.
        if let Some(uri) = sources.namespace() {
            let reserved = running.reserve_namespace(uri, nodesets.as_ref());
            reserved.map_err(|error| super::gateway::claimed(&newer, &error))?;
        }
        let mut outcome = Outcome::default();
        let step = Step { applied, nodesets, files, sources };
        let done = self.change(
            step,
            (&newer, running, gateway, configured),
            #[cfg(feature = "web")]
            dashboard,
            &mut outcome,
        );
        if let Err(failure) = done {
            outcome.problem = Some(failure.to_string());
            return Ok(outcome);
        }
        let (live, mut waiting) = split(self.started.changes(&newer));
        if !has_store && live.iter().any(|setting| setting == RECORD) {
            waiting.push(RECORD.to_owned());
            waiting.sort();
        }
        configured.replace_file(newer);
        Ok(Outcome { waiting, ..outcome })
    }

    /// Applies what was validated. `outcome` tells what has been applied, also after an error.
    fn change(
        &mut self,
        step: Step,
        (newer, running, gateway, configured): (&ConfigFile, &RunningServer, &mut Started, &mut Configured),
        #[cfg(feature = "web")] dashboard: &mut Dashboard,
        outcome: &mut Outcome,
    ) -> Result<(), Failure> {
        let Step { applied, nodesets, files, sources } = step;
        let mut note = |section: &str| {
            if !outcome.applied.iter().any(|known| known == section) {
                outcome.applied.push(section.to_owned());
            }
        };
        #[cfg(feature = "web")]
        if applied.iter().any(|setting| is_web(setting)) {
            dashboard.replace(configured.web_of(newer)?, running)?;
            self.web = newer.clone();
            applied.iter().filter(|setting| is_web(setting)).for_each(|setting| note(setting));
        }
        if let Some(prepared) = nodesets {
            let replaced = match running.replace_nodesets(prepared) {
                Err(taktwerk::BuildError::Outdated) => running
                    .prepare_nodesets(&files, self.nodesets)
                    .and_then(|prepared| running.replace_nodesets(prepared)),
                replaced => replaced,
            };
            let imported = replaced.map_err(ServeError::from)?;
            self.nodesets = Some(imported.batch);
            let (added, deleted) = (imported.node_count, imported.deleted_count);
            if added + deleted > 0 {
                tracing::info!(added, deleted, "replaced nodes of NodeSets");
                note(NODESETS);
            }
            applied.iter().filter(|setting| *setting == NODESETS).for_each(|setting| note(setting));
        }
        // Tables of tags are separate files, so the gateway itself detects what has changed.
        #[cfg(feature = "web")]
        let was_there = gateway.is_there();
        let changed = gateway.take_over(sources, newer, running)?;
        changed.sections.iter().for_each(|section| note(section));
        outcome.remarks = changed.remarks;
        #[cfg(feature = "web")]
        if !was_there && gateway.is_there() {
            dashboard.extend(gateway.extras());
        }
        // Recorded variables and alarms follow nodes that were deleted and added again.
        super::history::warn_of_missing(newer, running.space());
        self.rules.change(newer, &References::new(newer, running.space()), note)?;
        let is_authorization = |setting: &String| {
            let elsewhere = is_web(setting) || FIELD.contains(&setting.as_str());
            !elsewhere && ![NODESETS, RECORD, ALARM, GROUP].contains(&setting.as_str())
        };
        if applied.iter().any(is_authorization) {
            configured.apply_authorization(newer, running.shared())?;
        }
        // In the order of the file, and then what the file does not show, such as changed tables of tags.
        let mut all = applied;
        all.extend(
            core::mem::take(&mut outcome.applied)
                .into_iter()
                .filter(|section| !all.contains(section))
                .collect::<Vec<_>>(),
        );
        outcome.applied = all;
        Ok(())
    }
}

/// What was validated and is to be applied.
struct Step {
    /// The settings that have changed and can be applied.
    applied: Vec<String>,
    nodesets: Option<Prepared>,
    /// The files of `nodesets`.
    files: Vec<PathBuf>,
    sources: Newer,
}

fn is_web(setting: &str) -> bool {
    setting.starts_with("web.")
}

/// Splits changes into those that a running server applies, and others.
fn split(changes: Vec<String>) -> (Vec<String>, Vec<String>) {
    let is_live =
        |change: &str| LIVE.contains(&change) || LIVE.contains(&change.split('.').next().unwrap_or_default());
    changes.into_iter().partition(|change| is_live(change))
}

/// Logs the result, and returns it as one line.
fn say(outcome: &Outcome) -> String {
    if let Some(problem) = &outcome.problem {
        if outcome.applied.is_empty() {
            tracing::error!(problem, "the configuration stays as it was");
            return format!("the configuration stays as it was: {problem}");
        }
        let applied = outcome.applied.join(", ");
        tracing::error!(problem, applied, "only a part of the configuration was applied");
        return format!("only a part of the configuration was applied ({applied}): {problem}");
    }
    tracing::info!(applied = outcome.applied.join(", "), "the configuration was read again");
    if outcome.waiting.is_empty() {
        return "the configuration was read again".to_owned();
    }
    let waiting = outcome.waiting.join(", ");
    tracing::warn!(settings = waiting, "these settings wait for a restart");
    format!("the configuration was read again; waiting for a restart: {waiting}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_need_a_restart_are_separated() {
        let changes = [
            "alarms.alarm",
            "alarms.group",
            "history.keep_days",
            "history.record",
            "limits.sessions",
            "namespace",
            "role",
            "server.bind",
            "server.nodesets",
            "web.bind",
        ];
        let (applied, waiting) = split(changes.map(str::to_owned).into());
        assert_eq!(
            applied,
            [
                "alarms.alarm",
                "alarms.group",
                "history.record",
                "namespace",
                "role",
                "server.nodesets",
                "web.bind"
            ]
        );
        assert_eq!(waiting, ["history.keep_days", "limits.sessions", "server.bind"]);
    }
}
