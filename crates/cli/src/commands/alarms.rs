//! `taktwerk alarms`: the conditions that operators should see, and what operators do with them.

use crate::connection::ConnectionArgs;
use crate::event_stream::{EventStream, Next};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::session::Session;
use crate::span;
use clap::{ArgGroup, Args};
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::IsTerminal;
use std::time::Duration;
use taktwerk_client::EventQuery;
use taktwerk_client::condition::{ConditionEvent, ConditionTable, TableChange, calls};
use taktwerk_lab::table::{Align, Table, WIDTH};
use taktwerk_net::clock::monotonic;
use taktwerk_schema::ids::object_ids;
use taktwerk_schema::{CallMethodRequest, CallRequest};
use taktwerk_types::{NodeId, StatusCode};

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

/// Events that the server keeps between two publishes.
const QUEUE: u32 = 10_000;
/// How long a list may take.
const LIST_TIME: Duration = Duration::from_secs(60);
/// How often a table on a terminal is drawn anew.
const DRAW_EVERY: Duration = Duration::from_millis(200);

/// A subscription with its table.
struct Live {
    session: Session,
    stream: EventStream,
    table: ConditionTable,
    node: NodeId,
}

/// Shows alarms, or does what was asked for.
pub(crate) fn run(arguments: &AlarmsArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut session = Session::connect(&arguments.connection)?;
    let node = NodeId::numeric(0, object_ids::SERVER);
    let query: EventQuery = ConditionEvent::query();
    let stream = EventStream::open(&mut session, &node, &query, arguments.interval, QUEUE)?;
    let mut live = Live { session, stream, table: ConditionTable::new(), node };
    live.refresh()?;
    live.complete(interrupt)?;
    let result = if let Some((which, act)) = arguments.action() {
        live.act(&which, &*act, output)
    } else if arguments.list {
        live.print(output)
    } else {
        live.follow(arguments.duration, output, interrupt)
    };
    live.session.close();
    if interrupt.asked() { Err(Failure::Interrupted) } else { result }
}

/// Makes the call for an alarm.
type Act = Box<dyn Fn(&ConditionEvent) -> CallMethodRequest>;

impl AlarmsArgs {
    /// Which alarm is meant, and what is done with it.
    fn action(&self) -> Option<(String, Act)> {
        let comment = self.comment.clone().unwrap_or_default();
        let time = self.time;
        if let Some(which) = &self.acknowledge {
            let act: Act =
                Box::new(move |event| calls::acknowledge(&event.condition_id, &event.event_id, &comment));
            return Some((which.clone(), act));
        }
        if let Some(which) = &self.confirm {
            let act: Act =
                Box::new(move |event| calls::confirm(&event.condition_id, &event.event_id, &comment));
            return Some((which.clone(), act));
        }
        if let Some(which) = &self.on {
            let act: Act =
                Box::new(move |event| calls::add_comment(&event.condition_id, &event.event_id, &comment));
            return Some((which.clone(), act));
        }
        if let Some(which) = &self.shelve {
            let act: Act = Box::new(move |event| match time {
                Some(time) => calls::timed_shelve(&event.condition_id, time.as_secs_f64() * 1e3),
                None => calls::one_shot_shelve(&event.condition_id),
            });
            return Some((which.clone(), act));
        }
        if let Some(which) = &self.unshelve {
            return Some((which.clone(), Box::new(|event| calls::unshelve(&event.condition_id))));
        }
        let which = self.reset.as_ref()?;
        Some((which.clone(), Box::new(|event| calls::reset(&event.condition_id))))
    }
}

impl Live {
    fn refresh(&mut self) -> Result<(), Failure> {
        let id = self.stream.subscription_id(&mut self.session);
        match self.call(calls::condition_refresh(id))? {
            StatusCode::BAD_REFRESH_IN_PROGRESS => Ok(()),
            status if status.is_bad() => Err(Failure::BadStatus(format!(
                "ConditionRefresh: {status}: {} The server has no alarms, or the user may not see them",
                status.description().unwrap_or_default()
            ))),
            _ => Ok(()),
        }
    }

    fn call(&mut self, call: CallMethodRequest) -> Result<StatusCode, Failure> {
        let request = CallRequest { methods_to_call: vec![call], ..Default::default() };
        let response = self.session.request(request)?;
        Ok(response.results.first().map_or(StatusCode::BAD_UNEXPECTED_ERROR, |result| result.status_code))
    }

    /// Waits until the refresh has ended.
    fn complete(&mut self, interrupt: &Interrupt) -> Result<(), Failure> {
        let end = monotonic() + LIST_TIME;
        loop {
            match self.stream.next(&mut self.session, &self.node, Some(end), interrupt)? {
                Next::End if interrupt.asked() => return Ok(()),
                Next::End => {
                    return Err(Failure::Connect(
                        "the server did not end the refresh of alarms within a minute".to_owned(),
                    ));
                }
                Next::Event(fields) => {
                    if self.table.take(ConditionEvent::read(&fields)) == TableChange::RefreshEnded {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Does something with the alarms that are meant.
    fn act(
        &mut self,
        which: &str,
        act: &dyn Fn(&ConditionEvent) -> CallMethodRequest,
        output: Output,
    ) -> Result<(), Failure> {
        let meant = meant(&self.table, which)?;
        let mut refused = Vec::new();
        for event in &meant {
            let status = self.call(act(event))?;
            let name = name(event);
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
        match refused.first() {
            Some(first) => Err(Failure::BadStatus(first.clone())),
            None => Ok(()),
        }
    }

    fn print(&self, output: Output) -> Result<(), Failure> {
        if output.is_json() {
            let all: Vec<Value> = self.table.sorted().into_iter().map(document).collect();
            return output.document(&Value::Array(all));
        }
        output.text(&table(&self.table, usize::MAX, output))
    }

    /// Prints what changes; on a terminal the whole table.
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
                line(event, output)?;
            }
        }
        let mut is_old = true;
        loop {
            if draws && is_old {
                let (_, height) = terminal_size();
                let shown = table(&self.table, height.saturating_sub(3), output);
                output.text(&format!("\u{1b}[H\u{1b}[2J{shown}"))?;
                is_old = false;
            }
            let until = if draws { Some(monotonic() + DRAW_EVERY) } else { end };
            let until = end.map_or(until, |end| Some(until.map_or(end, |until| end.min(until))));
            match self.stream.next(&mut self.session, &self.node, until, interrupt)? {
                Next::End if interrupt.asked() || end.is_some_and(|end| monotonic() >= end) => return Ok(()),
                Next::End => {}
                Next::Event(fields) => {
                    let event = ConditionEvent::read(&fields);
                    let change = self.table.take(event.clone());
                    if change == TableChange::RefreshRequired {
                        self.refresh()?;
                    }
                    is_old = true;
                    if !draws && matches!(change, TableChange::Changed | TableChange::Removed) {
                        line(&event, output)?;
                    }
                }
            }
        }
    }
}

/// The width and height of the terminal.
fn terminal_size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (WIDTH, 40),
    }
}

/// The alarms that a text means: all, a ConditionId, or a part of source and name that fits one alarm only.
fn meant(table: &ConditionTable, which: &str) -> Result<Vec<ConditionEvent>, Failure> {
    let all: Vec<ConditionEvent> = table.sorted().into_iter().cloned().collect();
    if all.is_empty() {
        return Err(Failure::Usage(
            "the list of alarms is empty: none is active, unacknowledged or unconfirmed".to_owned(),
        ));
    }
    if which == "all" {
        return Ok(all);
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

fn name(event: &ConditionEvent) -> String {
    printable(&format!("{} {}", event.source_name, event.name))
}

/// A server's texts cannot move the cursor: control characters become spaces.
fn printable(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

fn state(event: &ConditionEvent) -> String {
    let mut state = match event.active {
        Some(true) if !event.limit.is_empty() => format!("active {}", event.limit),
        Some(true) => "active".to_owned(),
        Some(false) => "inactive".to_owned(),
        None => String::new(),
    };
    if event.acked == Some(false) {
        state.push_str(", unacknowledged");
    }
    if event.confirmed == Some(false) {
        state.push_str(", unconfirmed");
    }
    if event.suppressed_or_shelved {
        state.push_str(if event.shelving.is_empty() || event.shelving == "Unshelved" {
            ", suppressed"
        } else {
            ", shelved"
        });
    }
    if !event.branch_id.is_null() {
        state.push_str(", branch");
    }
    state.trim_start_matches(", ").to_owned()
}

fn table(table: &ConditionTable, rows_max: usize, output: Output) -> String {
    if table.is_empty() {
        return "no alarms that you may see (this needs the permission ReceiveEvents)\n".to_owned();
    }
    let columns = [
        ("severity", Align::Right),
        ("state", Align::Left),
        ("since", Align::Left),
        ("source", Align::Wrap),
        ("alarm", Align::Left),
        ("message", Align::Wrap),
    ];
    let width = if std::io::stdout().is_terminal() { terminal_size().0 } else { WIDTH };
    let mut rows = Table::new(&columns).with_width(width);
    for event in table.sorted().into_iter().take(rows_max) {
        rows.row([
            event.severity.to_string(),
            printable(&state(event)),
            output::short(event.time),
            printable(&event.source_name),
            printable(&event.name),
            printable(&event.message),
        ]);
    }
    let mut text = rows.to_string();
    let hidden = table.len().saturating_sub(rows_max);
    if hidden > 0 {
        let _ = writeln!(text, "{}", output.faint(&format!("and {hidden} more")));
    }
    text
}

fn line(event: &ConditionEvent, output: Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.line(&document(event));
    }
    let gone = if event.retain { "" } else { "  (done)" };
    output.text(&format!(
        "{}  {:>4}  {}  {}{gone}",
        output.faint(&output::short(event.time)),
        event.severity,
        printable(&event.message),
        output.faint(&format!("[{} {}]", printable(&event.name), printable(&state(event))))
    ))
}

fn document(event: &ConditionEvent) -> Value {
    json!({
        "ConditionId": event.condition_id.to_string(),
        "BranchId": event.branch_id.to_string(),
        "EventId": taktwerk_types::node_id::base64(event.event_id.as_bytes()),
        "ConditionName": event.name,
        "SourceNode": event.source.to_string(),
        "SourceName": event.source_name,
        "Time": event.time.map(|time| time.to_string()),
        "Message": event.message,
        "Severity": event.severity,
        "Retain": event.retain,
        "Enabled": event.enabled,
        "Active": event.active,
        "Acknowledged": event.acked,
        "Confirmed": event.confirmed,
        "Limit": event.limit,
        "Shelving": event.shelving,
        "SuppressedOrShelved": event.suppressed_or_shelved,
        "Quality": output::status(event.quality),
        "Comment": event.comment,
        "ClientUserId": event.user,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(names: &[(&str, &str)]) -> ConditionTable {
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
    fn an_alarm_is_named_by_its_id_or_a_part_that_fits_no_other() {
        let table = with(&[("Boiler/Temperature", "LevelAlarm"), ("Boiler/Level", "LevelAlarm")]);
        assert_eq!(meant(&table, "temperature").unwrap()[0].condition_id, NodeId::numeric(2, 1));
        assert_eq!(meant(&table, "ns=2;i=2").unwrap()[0].source_name, "Boiler/Level");
        assert_eq!(meant(&table, "all").unwrap().len(), 2);
        let several = meant(&table, "boiler").unwrap_err().to_string();
        assert!(several.contains("several alarms match boiler: Boiler/"), "{several}");
        let none = meant(&table, "pump").unwrap_err().to_string();
        assert!(none.contains("no alarm in the list matches pump; the list has Boiler/"), "{none}");
        assert!(meant(&ConditionTable::new(), "all").is_err());
    }

    #[test]
    fn texts_of_a_server_cannot_move_the_cursor() {
        let table = with(&[("Bo\u{1b}[2Jiler\n", "x")]);
        let shown = super::table(&table, 10, Output::new(true, crate::output::ColorChoice::Never));
        assert!(!shown.contains('\u{1b}') && shown.lines().count() <= 4, "{shown:?}");
    }
}
