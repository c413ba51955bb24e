//! Recorded variables, alarms and their groups of a configuration, at the start and when the file is read again.

use super::alarm_groups;
use super::alarms::{self, Defined};
use super::history;
use super::reference::References;
use crate::failure::Failure;
use taktwerk::Server;
use taktwerk::alarms::GroupSpec;
use taktwerk_config::ConfigFile;
use taktwerk_server::space::RecordedSubtree;

/// The settings of recorded variables.
pub(super) const RECORD: &str = "history.record";
/// The settings of alarms.
pub(super) const ALARM: &str = "alarms.alarm";
/// The settings of their groups.
pub(super) const GROUP: &str = "alarms.group";

/// What the server records and monitors.
#[derive(Debug, Default)]
pub(super) struct Rules {
    recorded: Vec<RecordedSubtree>,
    alarms: Vec<Defined>,
    groups: Vec<GroupSpec>,
}

impl Rules {
    /// Applies a configuration to a server that is started or checked.
    pub(super) fn start(
        file: &ConfigFile,
        server: &Server,
        references: &References<'_>,
    ) -> Result<Self, Failure> {
        let mut rules = Self::default();
        history::record_events(file, server)?;
        rules.change(file, references, |_| {})?;
        alarms::add_metrics(file, server)?;
        Ok(rules)
    }

    /// Applies a changed configuration. `note` gets the sections that have changed, also before an error. What is equal in
    /// both is not touched. A reference to a missing node changes nothing.
    pub(super) fn change(
        &mut self,
        file: &ConfigFile,
        references: &References<'_>,
        mut note: impl FnMut(&'static str),
    ) -> Result<(), Failure> {
        let space = references.space();
        let recorded = if space.history_store().is_some() || references.is_check() {
            history::define(file, references, &self.recorded)?
        } else {
            // The store is opened at the next start.
            Vec::new()
        };
        let defined = alarms::define(file, references, &self.alarms)?;
        let has_all_alarms = defined.len() == file.config().alarms.alarm.len();
        let groups = alarm_groups::define(file, references, has_all_alarms)?;
        if history::change(space, &self.recorded, &recorded)? {
            note(RECORD);
        }
        self.recorded = recorded;
        let (has_changed, done) = alarms::change(references, &mut self.alarms, defined);
        if has_changed {
            note(ALARM);
        }
        // Also after an error: alarms that were added again must not be missing in their groups.
        let (has_changed, regrouped) = alarm_groups::change(references, &mut self.groups, groups);
        if has_changed {
            note(GROUP);
        }
        done.and(regrouped)
    }
}
