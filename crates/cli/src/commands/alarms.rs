//! `taktwerk alarms`: shows conditions and operates on them. Following survives reconnections. Lists and operations
//! fail with the connection.
//!
//! `action`: operations of the command line; `show`: tables, lines and JSON; `view`: the interactive table as a state
//! machine; `screen`: drawing it; `interactive`: the terminal and the connection of it; `pace`: when tables are drawn.

mod action;
mod interactive;
mod pace;
mod screen;
mod show;
mod view;

use crate::connection::ConnectionArgs;
use crate::event_stream::{EventStream, Next};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::reconnection::Notice;
use crate::session::{self, Session};
use crate::span;
use action::Action;
use clap::{ArgGroup, Args};
use pace::Pace;
use serde_json::{Value, json};
use show::name;
use std::io::IsTerminal;
use std::time::Duration;
use taktwerk_client::EventQuery;
use taktwerk_client::condition::{ConditionEvent, ConditionTable, TableChange, calls};
use taktwerk_client::shelving;
use taktwerk_net::clock::monotonic;
use taktwerk_schema::ids::{object_ids, object_type_ids};
use taktwerk_schema::{CallMethodRequest, CallRequest, PermissionType, ReadValueId, RolePermissionType};
use taktwerk_types::{ArrayValues, NodeId, StatusCode};

/// Arguments of `taktwerk alarms`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("commented").args(["acknowledge", "confirm", "on"])))]
pub(crate) struct AlarmsArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// Print the alarms and stop, instead of following them.
    #[arg(short, long)]
    list: bool,

    /// Acknowledge an alarm, named by its ConditionId or an unambiguous part of its source and name, or all.
    #[arg(long, value_name = "ALARM", conflicts_with = "list")]
    acknowledge: Option<String>,

    /// Confirm an alarm that was acknowledged.
    #[arg(long, value_name = "ALARM", conflicts_with_all = ["list", "acknowledge"])]
    confirm: Option<String>,

    /// Shelve an alarm until it is no longer active, or with --for for a time.
    #[arg(long, value_name = "ALARM", conflicts_with_all = ["list", "acknowledge", "confirm"])]
    shelve: Option<String>,

    /// Time to shelve the alarm for.
    #[arg(long = "for", value_name = "SPAN", requires = "shelve", value_parser = span::seconds)]
    time: Option<Duration>,

    /// Unshelve an alarm.
    #[arg(long, value_name = "ALARM", conflicts_with_all = ["list", "acknowledge", "confirm", "shelve"])]
    unshelve: Option<String>,

    /// Reset a latched alarm.
    #[arg(long, value_name = "ALARM", conflicts_with_all = ["list", "acknowledge", "confirm", "shelve", "unshelve"])]
    reset: Option<String>,

    /// Comment for --acknowledge and --confirm, or for the alarm of --on.
    #[arg(long, value_name = "TEXT", requires = "commented")]
    comment: Option<String>,

    /// Alarm to add the comment to.
    #[arg(long, value_name = "ALARM", requires = "comment", conflicts_with_all = ["list", "acknowledge", "confirm", "shelve", "unshelve", "reset"])]
    on: Option<String>,

    /// Publishing interval in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "500", value_parser = span::millis)]
    interval: Duration,

    /// Stop after this time.
    #[arg(short, long, value_name = "SPAN", value_parser = span::seconds)]
    duration: Option<Duration>,
}

/// Maximum number of events that the server queues.
const QUEUE: u32 = 10_000;
/// The attribute UserRolePermissions (Part 6 Annex A).
const USER_ROLE_PERMISSIONS: u32 = 25;
/// Timeout of a list.
const LIST_TIME: Duration = Duration::from_secs(60);

/// A subscription and its table of conditions.
struct Live {
    session: Session,
    stream: EventStream,
    table: ConditionTable,
    /// Whether the session reconnects.
    reconnects: bool,
    is_anonymous: bool,
}

/// Shows alarms, or performs an operation.
pub(crate) fn run(arguments: &AlarmsArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let action = arguments.action();
    let reconnects = !arguments.list && action.is_none();
    let mut session = if reconnects {
        Session::connect_again(&arguments.connection)?
    } else {
        Session::connect(&arguments.connection)?
    };
    let node = NodeId::numeric(0, object_ids::SERVER);
    let query: EventQuery = ConditionEvent::query();
    let loss = " and the alarms are read again";
    let stream = EventStream::open(&mut session, node, &query, arguments.interval, QUEUE, loss)?;
    let security = &arguments.connection.security;
    let is_anonymous =
        security.user.is_none() && security.user_cert.is_none() && security.token_file.is_none();
    let mut live = Live { session, stream, table: ConditionTable::new(), reconnects, is_anonymous };
    live.complete(output, interrupt)?;
    if live.table.is_empty()
        && let Some(why) = live.why_empty()
    {
        tell!("note: {why}");
    }
    let result = if let Some(action) = action {
        live.act(&action, output)
    } else if arguments.list {
        live.print(output)
    } else if interactive::is_possible(output) {
        live.interact(&arguments.connection.endpoint.to_string(), arguments.duration, interrupt)
    } else {
        live.follow(arguments.duration, output, interrupt)
    };
    live.session.close();
    if interrupt.asked() { Err(Failure::Interrupted) } else { result }
}

impl Live {
    /// Calls ConditionRefresh, which sends the state of all alarms as events (Part 9 §5.5.7).
    fn refresh(&mut self) -> Result<(), Failure> {
        let id = self.stream.subscription_id(&mut self.session);
        let request =
            CallRequest { methods_to_call: vec![calls::condition_refresh(id)], ..Default::default() };
        let response = match self.session.client().operate(request) {
            Ok(response) => response,
            // The connection was just lost. The refresh is repeated when the stream is ready again.
            Err(_) if self.reconnects && !self.session.client().core().is_up() => return Ok(()),
            Err(error) => return Err(session::failure(&error)),
        };
        match response.results.first().map_or(StatusCode::BAD_UNEXPECTED_ERROR, |result| result.status_code) {
            StatusCode::BAD_REFRESH_IN_PROGRESS => Ok(()),
            status if status.is_bad() => Err(Failure::BadStatus(format!(
                "ConditionRefresh: {status}: {} The server has no alarms, or the user may not see them{}",
                status.description().unwrap_or_default(),
                if self.is_anonymous { ". Log in with --user" } else { "" }
            ))),
            _ => Ok(()),
        }
    }

    /// Why the table is empty, if it is because the user may not receive events of alarms. Servers need not tell the
    /// permissions.
    fn why_empty(&mut self) -> Option<&'static str> {
        let request = ReadValueId {
            node_id: NodeId::numeric(0, object_type_ids::CONDITION_TYPE),
            attribute_id: USER_ROLE_PERMISSIONS,
            ..ReadValueId::default()
        };
        let read = self.session.read(vec![request]).ok()?.pop().filter(|read| !read.status().is_bad())?;
        let value = read.value?;
        let ArrayValues::ExtensionObject(roles) = &value.as_array()?.values else { return None };
        let mut permissions = roles.iter().filter_map(|role| role.decode::<RolePermissionType>().ok());
        if permissions.any(|role| role.permissions.contains(PermissionType::RECEIVE_EVENTS)) {
            return None;
        }
        Some(match self.is_anonymous {
            true => {
                "clients without a user may not receive events of alarms from this server: log in with --user"
            }
            false => {
                "the roles of this user may not receive events of alarms from this server: an administrator can grant \
                 ReceiveEvents"
            }
        })
    }

    /// Calls a Method. For shelving, tries the Method of the ShelvingState if the server refuses the ConditionId.
    fn call(&mut self, call: CallMethodRequest) -> Result<StatusCode, Failure> {
        let status = self.call_once(call.clone())?;
        let Some(request) = shelving::paths(&call).filter(|_| status == StatusCode::BAD_METHOD_INVALID)
        else {
            return Ok(status);
        };
        let found = self.session.request(request)?;
        shelving::at_paths(call, &found).map_or(Ok(status), |call| self.call_once(call))
    }

    fn call_once(&mut self, call: CallMethodRequest) -> Result<StatusCode, Failure> {
        let request = CallRequest { methods_to_call: vec![call], ..Default::default() };
        let response = self.session.request(request)?;
        Ok(response.results.first().map_or(StatusCode::BAD_UNEXPECTED_ERROR, |result| result.status_code))
    }

    /// Waits until the first refresh is complete.
    fn complete(&mut self, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
        let end = monotonic() + LIST_TIME;
        loop {
            match self.stream.next(&mut self.session, Some(end), interrupt)? {
                Next::End if interrupt.asked() => return Ok(()),
                Next::End => {
                    return Err(Failure::Connect(
                        "the server did not complete ConditionRefresh within a minute".to_owned(),
                    ));
                }
                Next::Ready => self.refresh()?,
                Next::Notice(notice) => notice.print(output)?,
                Next::Event(fields) => {
                    if self.table.take(ConditionEvent::read(&fields)) == TableChange::RefreshEnded {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Performs an operation on the selected alarms.
    fn act(&mut self, action: &Action, output: Output) -> Result<(), Failure> {
        let all = selected(&self.table, &action.which)?;
        let is_for_all = action.which == "all";
        let mut chosen: Vec<_> = all.iter().filter(|event| (action.applies)(event)).collect();
        if chosen.is_empty() && !is_for_all {
            // The server says why it refuses.
            chosen = all.iter().collect();
        }
        let mut skipped = all.len() - chosen.len();
        let mut refused = Vec::new();
        for event in chosen {
            let status = self.call((action.call)(event))?;
            let name = name(event);
            if is_for_all && action.is_not_needed(status) {
                skipped += 1;
                continue;
            }
            if output.is_json() {
                output.line(&json!({
                    "ConditionId": event.condition_id.to_string(),
                    "Source": event.source_name,
                    "Name": event.name,
                    "Status": output::status(status),
                }))?;
            } else if status.is_bad() {
                let why = status.description().unwrap_or_default();
                tell!("{}", output.bad(&format!("{name}: {status}: {why}")));
            } else {
                output.text(&format!("{name}: done"))?;
            }
            if status.is_bad() {
                refused.push(format!("{name}: {status}"));
            }
        }
        if all.is_empty() {
            tell!("the list of alarms is empty: there is nothing to {}", action.verb);
        } else if is_for_all && skipped > 0 {
            let conditions = output::counted(skipped, "condition");
            tell!("skipped {conditions} for which there is nothing to {}", action.verb);
        }
        match refused.first() {
            Some(first) => Err(Failure::BadStatus(first.clone())),
            None => Ok(()),
        }
    }

    fn print(&self, output: Output) -> Result<(), Failure> {
        if output.is_json() {
            let all: Vec<Value> = self.table.sorted().into_iter().map(show::document).collect();
            return output.document(&Value::Array(all));
        }
        output.text(&show::table(&self.table, output))
    }

    /// Prints changes; on a terminal the whole table.
    fn follow(
        &mut self,
        duration: Option<Duration>,
        output: Output,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let end = duration.map(|span| monotonic() + span);
        let draws = !output.is_json() && std::io::stdout().is_terminal();
        if !draws {
            for event in self.table.sorted() {
                show::line(event, output)?;
            }
        }
        // The last message about the connection, until the table is up to date again.
        let mut notice: Option<Notice> = None;
        let mut pace = Pace::new(monotonic());
        loop {
            let now = monotonic();
            let is_over = interrupt.asked() || end.is_some_and(|end| now >= end);
            if draws && pace.is_due(now, is_over) {
                let below = notice.as_ref().map(|notice| notice.text(output));
                let shown = show::screen(&self.table, show::terminal_size(), below.as_deref(), output);
                output.screen(&shown)?;
                pace.drawn(now, monotonic());
            }
            if is_over {
                return Ok(());
            }
            let until = pace.due().filter(|_| draws).into_iter().chain(end).min();
            match self.stream.next(&mut self.session, until, interrupt)? {
                Next::End => {}
                Next::Ready => self.refresh()?,
                Next::Notice(news) if draws => {
                    notice = Some(news);
                    pace.soon(monotonic());
                }
                Next::Notice(news) => news.print(output)?,
                Next::Event(fields) => {
                    let change = self.take(ConditionEvent::read(&fields), draws, output)?;
                    if change == TableChange::RefreshEnded {
                        notice = None;
                    }
                    pace.soon(monotonic());
                }
            }
        }
    }

    /// Adds an event to the table, and prints the change unless the whole table is drawn.
    fn take(&mut self, event: ConditionEvent, draws: bool, output: Output) -> Result<TableChange, Failure> {
        if !draws && event.event_type == NodeId::numeric(0, object_type_ids::REFRESH_END_EVENT_TYPE) {
            for gone in self.table.suspects() {
                show::gone(gone, output)?;
            }
        }
        let change = self.table.take(event.clone());
        match change {
            TableChange::RefreshRequired => self.refresh()?,
            TableChange::Changed | TableChange::Removed if !draws => show::line(&event, output)?,
            _ => {}
        }
        Ok(change)
    }
}

/// The alarms that match a text: all, a ConditionId, or a part of source and name that matches only one alarm.
fn selected(table: &ConditionTable, which: &str) -> Result<Vec<ConditionEvent>, Failure> {
    let all: Vec<ConditionEvent> = table.sorted().into_iter().cloned().collect();
    if which == "all" {
        return Ok(all);
    }
    if all.is_empty() {
        return Err(Failure::Usage(
            "the list of alarms is empty: none is active, unacknowledged or unconfirmed".to_owned(),
        ));
    }
    let by_id: Vec<_> = all.iter().filter(|event| event.condition_id.to_string() == which).cloned().collect();
    if !by_id.is_empty() {
        return Ok(by_id);
    }
    let wanted = which.to_lowercase();
    let found: Vec<_> =
        all.iter().filter(|event| name(event).to_lowercase().contains(&wanted)).cloned().collect();
    let mut ids: Vec<&NodeId> = found.iter().map(|event| &event.condition_id).collect();
    ids.dedup();
    if ids.len() == 1 {
        return Ok(found);
    }
    let names: Vec<String> =
        if found.is_empty() { all.iter().map(name).collect() } else { found.iter().map(name).collect() };
    let shown = names.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
    Err(Failure::Usage(if found.is_empty() {
        format!(
            "no alarm in the list matches {which}; the list has {shown}. An alarm is in the list while it is \
             active, unacknowledged or unconfirmed"
        )
    } else {
        format!("several alarms match {which}: {shown}; write more of one name, or its ConditionId")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn with(names: &[(&str, &str)]) -> ConditionTable {
        let mut table = ConditionTable::new();
        for (number, (source, name)) in (1..).zip(names) {
            let mut event = ConditionEvent::default();
            event.condition_id = NodeId::numeric(2, number);
            event.source_name = (*source).to_owned();
            event.name = (*name).to_owned();
            event.retain = true;
            table.take(event);
        }
        table
    }

    #[test]
    fn alarms_are_selected_by_id_or_unique_part() {
        let table = with(&[("Boiler/Temperature", "LevelAlarm"), ("Boiler/Level", "LevelAlarm")]);
        assert_eq!(selected(&table, "temperature").unwrap()[0].condition_id, NodeId::numeric(2, 1));
        assert_eq!(selected(&table, "ns=2;i=2").unwrap()[0].source_name, "Boiler/Level");
        assert_eq!(selected(&table, "all").unwrap().len(), 2);
        let several = selected(&table, "boiler").unwrap_err().to_string();
        assert!(several.contains("several alarms match boiler: Boiler/"), "{several}");
        let none = selected(&table, "pump").unwrap_err().to_string();
        assert!(none.contains("no alarm in the list matches pump; the list has Boiler/"), "{none}");
        // Nothing to do is no mistake for all, but for one alarm.
        assert!(selected(&ConditionTable::new(), "all").unwrap().is_empty());
        assert!(selected(&ConditionTable::new(), "pump").is_err());
    }
}
