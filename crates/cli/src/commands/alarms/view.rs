//! The interactive table of alarms as a state machine: keys and the list of alarms go in, rows and operations come out.
//! No terminal and no connection.

use super::show::{name, since, state};
use crate::output;
use std::time::Duration;
use taktwerk_client::condition::{ConditionEvent, ConditionTable, calls};
use taktwerk_schema::CallMethodRequest;
use taktwerk_types::{NodeId, StatusCode};

/// Longest time for which an alarm can be shelved, in minutes.
const MINUTES_MAX: f64 = 366.0 * 24.0 * 60.0;
/// Longest text of a comment or a filter, in characters.
const TEXT_MAX: usize = 500;

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    Char(char),
    /// Ctrl-C.
    Interrupt,
}

/// What the user wants.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    /// End the view.
    Quit,
    /// End the view as by a signal.
    Interrupt,
    /// Call a Method. [`View::answered`] takes the result.
    Call(Box<Operation>),
}

/// A Method call for an alarm.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Operation {
    /// The operation, such as "acknowledge".
    pub(super) what: &'static str,
    /// The alarm.
    pub(super) event: ConditionEvent,
    /// The call.
    pub(super) call: CallMethodRequest,
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Severity, state, what operators have to do, since when, source and name, message.
    pub(super) cells: [String; 6],
    pub(super) is_selected: bool,
    /// It is active and not acknowledged.
    pub(super) is_urgent: bool,
}

/// What is on the screen.
#[derive(Debug)]
pub(super) struct List<'a> {
    pub(super) rows: Vec<Row>,
    /// Number of alarms that match the filter.
    pub(super) matching: usize,
    /// The selected alarm.
    pub(super) selected: Option<&'a ConditionEvent>,
}

/// The message below the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) text: String,
    pub(super) is_bad: bool,
}

/// What keys mean at the moment.
#[derive(Debug, Clone, PartialEq)]
enum Mode {
    List,
    Help,
    Filter,
    /// The text of a comment.
    Comment(Box<ConditionEvent>),
    /// Minutes of shelving.
    Minutes(Box<ConditionEvent>),
    /// Whether to disable an alarm.
    Disable(Box<ConditionEvent>),
}

/// The interactive table.
#[derive(Debug)]
pub(super) struct View {
    mode: Mode,
    filter: String,
    /// The text being typed.
    text: String,
    /// The selected condition and branch.
    selected: Option<(NodeId, NodeId)>,
    /// Its position, for when it is gone.
    at: usize,
    /// The first visible row.
    first: usize,
    /// Rows of the last drawing, for PageUp and PageDown.
    visible: usize,
    status: Option<Status>,
    /// Alarms that were disabled here: they are no longer in the list.
    disabled: Vec<ConditionEvent>,
}

impl Default for View {
    fn default() -> Self {
        Self {
            mode: Mode::List,
            filter: String::new(),
            text: String::new(),
            selected: None,
            at: 0,
            first: 0,
            visible: 1,
            status: None,
            disabled: Vec::new(),
        }
    }
}

fn key_of(event: &ConditionEvent) -> (NodeId, NodeId) {
    (event.condition_id.clone(), event.branch_id.clone())
}

fn has_key(event: &ConditionEvent, (condition, branch): &(NodeId, NodeId)) -> bool {
    event.condition_id == *condition && event.branch_id == *branch
}

impl View {
    /// The alarms that match the filter, the most urgent first.
    fn matching<'a>(&self, alarms: &'a ConditionTable) -> Vec<&'a ConditionEvent> {
        let wanted = self.filter.to_lowercase();
        let matches = |event: &&ConditionEvent| {
            let text = format!("{} {} {}", name(event), event.message, state(event));
            text.to_lowercase().contains(&wanted)
        };
        alarms.sorted().into_iter().filter(|event| wanted.is_empty() || matches(event)).collect()
    }

    /// Follows the selected alarm. If it is gone, the one that is now in its place is selected.
    fn follow(&mut self, rows: &[&ConditionEvent]) {
        let found = self.selected.as_ref().and_then(|key| rows.iter().position(|event| has_key(event, key)));
        self.at = found.unwrap_or(self.at).min(rows.len().saturating_sub(1));
        self.selected = rows.get(self.at).map(|event| key_of(event));
    }

    /// The rows for a table of this height. It sorts all alarms.
    pub(super) fn list<'a>(&mut self, alarms: &'a ConditionTable, height: usize) -> List<'a> {
        let rows = self.matching(alarms);
        self.follow(&rows);
        self.visible = height.max(1);
        let last = self.first + self.visible - 1;
        if self.at < self.first {
            self.first = self.at;
        } else if self.at > last {
            self.first = self.at + 1 - self.visible;
        }
        self.first = self.first.min(rows.len().saturating_sub(self.visible));
        let (at, first) = (self.at, self.first);
        let shown = rows.iter().enumerate().skip(first).take(self.visible);
        List {
            rows: shown.map(|(number, event)| row(event, number == at)).collect(),
            matching: rows.len(),
            selected: rows.get(at).copied(),
        }
    }

    /// The filter; empty if there is none.
    pub(super) fn filter(&self) -> &str {
        &self.filter
    }

    /// The message about the last operation.
    pub(super) fn status(&self) -> Option<&Status> {
        self.status.as_ref()
    }

    /// The question that the user is answering, and the text so far.
    pub(super) fn prompt(&self) -> Option<String> {
        match &self.mode {
            Mode::List | Mode::Help => None,
            Mode::Filter => Some(format!("show only alarms with: {}", self.text)),
            Mode::Comment(event) => Some(format!("comment on {}: {}", name(event), self.text)),
            Mode::Minutes(event) => {
                Some(format!("shelve {} for how many minutes? {}", name(event), self.text))
            }
            Mode::Disable(event) => {
                Some(format!("disable {}? Nobody gets its events any more. y: yes, n: no", name(event)))
            }
        }
    }

    /// Whether to show the help.
    pub(super) fn is_help(&self) -> bool {
        self.mode == Mode::Help
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: Key, alarms: &ConditionTable) -> Option<Command> {
        if key == Key::Interrupt {
            return Some(Command::Interrupt);
        }
        match core::mem::replace(&mut self.mode, Mode::List) {
            Mode::List => self.in_list(key, alarms),
            // Any key leaves the help.
            Mode::Help => None,
            Mode::Disable(event) if matches!(key, Key::Char('y' | 'Y')) => {
                let call = calls::enable(&event.condition_id, false);
                Some(self.call("disable", &event, call))
            }
            Mode::Disable(_) => None,
            mode => self.typing(mode, key, alarms),
        }
    }

    fn in_list(&mut self, key: Key, alarms: &ConditionTable) -> Option<Command> {
        let rows = self.matching(alarms);
        self.follow(&rows);
        let last = rows.len().saturating_sub(1);
        let to = match key {
            Key::Up | Key::Char('k') => Some(self.at.saturating_sub(1)),
            Key::Down | Key::Char('j') => Some(self.at + 1),
            Key::PageUp => Some(self.at.saturating_sub(self.visible)),
            Key::PageDown => Some(self.at + self.visible),
            Key::Home | Key::Char('g') => Some(0),
            Key::End | Key::Char('G') => Some(last),
            _ => None,
        };
        if let Some(to) = to {
            self.at = to.min(last);
            self.selected = rows.get(self.at).map(|event| key_of(event));
            return None;
        }
        let event = rows.get(self.at).copied();
        match key {
            Key::Char('q') => return Some(Command::Quit),
            Key::Char('?') => self.mode = Mode::Help,
            Key::Char('/') => {
                self.text.clone_from(&self.filter);
                self.mode = Mode::Filter;
            }
            Key::Escape => {
                self.filter.clear();
                self.status = None;
            }
            Key::Char('e') => return self.enable(event),
            Key::Char(letter @ ('a' | 'c' | 'm' | 's' | 't' | 'u' | 'd' | 'r')) => {
                let Some(event) = event else {
                    self.tell(true, "no alarm is selected");
                    return None;
                };
                return self.operate(letter, event);
            }
            _ => {}
        }
        None
    }

    fn operate(&mut self, letter: char, event: &ConditionEvent) -> Option<Command> {
        let (id, event_id) = (&event.condition_id, &event.event_id);
        self.text.clear();
        match letter {
            'a' => Some(self.call("acknowledge", event, calls::acknowledge(id, event_id, ""))),
            'c' => Some(self.call("confirm", event, calls::confirm(id, event_id, ""))),
            's' => Some(self.call("shelve", event, calls::one_shot_shelve(id))),
            'u' => Some(self.call("unshelve", event, calls::unshelve(id))),
            'r' => Some(self.call("reset", event, calls::reset(id))),
            'm' => {
                self.mode = Mode::Comment(Box::new(event.clone()));
                None
            }
            't' => {
                self.mode = Mode::Minutes(Box::new(event.clone()));
                None
            }
            _ => {
                self.mode = Mode::Disable(Box::new(event.clone()));
                None
            }
        }
    }

    /// Enables the selected alarm if it is disabled, or else the one that was disabled here last.
    fn enable(&mut self, selected: Option<&ConditionEvent>) -> Option<Command> {
        let event = selected.filter(|event| !event.enabled).or(self.disabled.last()).cloned();
        let Some(event) = event else {
            self.tell(
                true,
                "no alarm was disabled here; enable others with `taktwerk call URL CONDITION/Enable`",
            );
            return None;
        };
        let call = calls::enable(&event.condition_id, true);
        Some(self.call("enable", &event, call))
    }

    /// Handles a key while a text is typed.
    fn typing(&mut self, mode: Mode, key: Key, alarms: &ConditionTable) -> Option<Command> {
        match key {
            Key::Escape => {
                if mode == Mode::Filter {
                    self.filter.clear();
                }
                return None;
            }
            Key::Enter => return self.typed(mode, alarms),
            Key::Backspace => {
                self.text.pop();
            }
            Key::Char(letter) if !letter.is_control() && self.text.chars().count() < TEXT_MAX => {
                self.text.push(letter);
            }
            _ => {}
        }
        if mode == Mode::Filter {
            // The table follows while the user types.
            self.filter.clone_from(&self.text);
        }
        self.mode = mode;
        None
    }

    fn typed(&mut self, mode: Mode, alarms: &ConditionTable) -> Option<Command> {
        // It may have changed meanwhile, and servers remember only some EventIds.
        let newest = |event: Box<ConditionEvent>| {
            let (all, key) = (alarms.sorted(), key_of(&event));
            let known = all.into_iter().find(|known| has_key(known, &key));
            known.map_or(event, |known| Box::new(known.clone()))
        };
        match mode {
            Mode::Comment(event) if self.text.trim().is_empty() => {
                self.tell(true, "a comment needs a text");
                self.mode = Mode::Comment(event);
                None
            }
            Mode::Comment(event) => {
                let event = newest(event);
                let call = calls::add_comment(&event.condition_id, &event.event_id, self.text.trim());
                Some(self.call("comment on", &event, call))
            }
            Mode::Minutes(event) => {
                let minutes = self.text.trim().parse().ok();
                let Some(minutes) = minutes.filter(|it: &f64| *it > 0.0 && *it <= MINUTES_MAX) else {
                    self.tell(
                        true,
                        &format!("{:?} is not a number of minutes; type one such as 10", self.text),
                    );
                    self.mode = Mode::Minutes(event);
                    return None;
                };
                let span = Duration::from_secs_f64(minutes * 60.0);
                let call = calls::timed_shelve(&event.condition_id, span.as_secs_f64() * 1e3);
                Some(self.call("shelve", &event, call))
            }
            _ => None,
        }
    }

    fn call(&mut self, what: &'static str, event: &ConditionEvent, call: CallMethodRequest) -> Command {
        self.tell(false, &format!("{what} {} …", name(event)));
        Command::Call(Box::new(Operation { what, event: event.clone(), call }))
    }

    fn tell(&mut self, is_bad: bool, text: &str) {
        self.status = Some(Status { text: output::in_line(text).into_owned(), is_bad });
    }

    /// Takes the result of an operation. An error without a StatusCode is one of the connection.
    pub(super) fn answered(&mut self, operation: &Operation, result: Result<StatusCode, String>) {
        let Operation { what, event, .. } = operation;
        match result {
            Ok(status) if status.is_bad() => {
                let advice = advice(status, what);
                self.tell(true, &format!("cannot {what} {}: {status}: {advice}", name(event)));
            }
            Ok(_) => {
                self.disabled.retain(|known| known.condition_id != event.condition_id);
                if *what == "disable" {
                    self.disabled.push(event.clone());
                    self.tell(false, &format!("{} is disabled; e enables it again", name(event)));
                } else {
                    self.tell(false, &format!("{what} {}: done", name(event)));
                }
            }
            Err(error) => self.tell(true, &format!("cannot {what} {}: {error}", name(event))),
        }
    }
}

fn row(event: &ConditionEvent, is_selected: bool) -> Row {
    let is_shelved = event.suppressed_or_shelved;
    let state = match event.active {
        _ if !event.enabled => "disabled".to_owned(),
        Some(true) if is_shelved => "shelved".to_owned(),
        Some(true) if !event.limit.is_empty() => event.limit.clone(),
        Some(true) => "active".to_owned(),
        Some(false) => "inactive".to_owned(),
        None => String::new(),
    };
    let to_do = match (event.acked, event.confirmed) {
        (Some(false), _) => "acknowledge",
        (_, Some(false)) => "confirm",
        _ => "",
    };
    let line = |text: &str| output::in_line(text).into_owned();
    let branch = if event.branch_id.is_null() { "" } else { " (earlier)" };
    Row {
        cells: [
            event.severity.to_string(),
            line(&state),
            to_do.to_owned(),
            since(event),
            format!("{}{branch}", name(event)),
            line(&event.message),
        ],
        is_selected,
        is_urgent: event.active == Some(true) && event.acked == Some(false) && !is_shelved,
    }
}

/// Why a server refuses an operation, and what to do.
fn advice(status: StatusCode, what: &str) -> String {
    let known = match status {
        StatusCode::BAD_EVENT_ID_UNKNOWN => "the alarm has just changed; look at it and try again",
        StatusCode::BAD_CONDITION_BRANCH_ALREADY_ACKED => "it is acknowledged already",
        StatusCode::BAD_CONDITION_BRANCH_ALREADY_CONFIRMED => {
            "it is confirmed already, or must be acknowledged first (a)"
        }
        StatusCode::BAD_METHOD_INVALID => "this alarm does not support it",
        StatusCode::BAD_CONDITION_DISABLED => "the alarm is disabled; e enables it",
        StatusCode::BAD_CONDITION_ALREADY_DISABLED => "it is disabled already; e enables it",
        StatusCode::BAD_CONDITION_ALREADY_ENABLED => "it is enabled already",
        StatusCode::BAD_CONDITION_ALREADY_SHELVED => "it is shelved already; u unshelves it",
        StatusCode::BAD_CONDITION_NOT_SHELVED => "it is not shelved; s and t shelve it",
        StatusCode::BAD_SHELVING_TIME_OUT_OF_RANGE => {
            "the server does not allow this time; use a shorter one"
        }
        StatusCode::BAD_INVALID_STATE if what == "reset" => {
            "only a latched alarm that is inactive, acknowledged and confirmed can be reset"
        }
        StatusCode::BAD_USER_ACCESS_DENIED => {
            "the user needs the permission Call on the alarm, as the role Operator has; connect with --user"
        }
        StatusCode::BAD_SECURITY_MODE_INSUFFICIENT => "connect with --policy best",
        StatusCode::BAD_NODE_ID_UNKNOWN => "the alarm no longer exists",
        status => return status.description().unwrap_or("see the log of the server").to_owned(),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests;
