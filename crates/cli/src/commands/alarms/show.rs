//! Output of alarms as a table, as lines, and as JSON.

use crate::failure::Failure;
use crate::output::{self, Output};
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::IsTerminal;
use taktwerk_client::condition::{ConditionEvent, ConditionTable};
use taktwerk_lab::table::{Align, Table, WIDTH};

/// The width and height of the terminal.
pub(super) fn terminal_size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (WIDTH, 40),
    }
}

pub(super) fn name(event: &ConditionEvent) -> String {
    output::in_line(&format!("{} {}", event.source_name, event.name)).into_owned()
}

pub(super) fn state(event: &ConditionEvent) -> String {
    let mut state = match event.active {
        Some(true) if !event.limit.is_empty() => format!("active {}", event.limit),
        Some(true) => "active".to_owned(),
        Some(false) => "inactive".to_owned(),
        None if event.asks == Some(true) => "waits for a response".to_owned(),
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

/// All alarms.
pub(super) fn table(alarms: &ConditionTable, output: Output) -> String {
    let width = if std::io::stdout().is_terminal() { terminal_size().0 } else { WIDTH };
    rows(&alarms.sorted(), usize::MAX, width, output)
}

/// The most urgent alarms that fit into a terminal of this size, with a line of text below.
pub(super) fn screen(
    alarms: &ConditionTable,
    (width, height): (usize, usize),
    below: Option<&str>,
    output: Output,
) -> String {
    let sorted = alarms.sorted();
    // The cursor needs its own line. The text below may be wider than the terminal.
    let lines_below = below.map_or(0, |text| text.chars().count() / width.max(1) + 1);
    let lines_max = height.saturating_sub(1 + lines_below).max(4);
    let mut count = lines_max;
    let mut text = rows(&sorted, count, width, output);
    loop {
        let lines = text.lines().count();
        if lines <= lines_max || count <= 1 {
            break;
        }
        // Alarms take several lines if columns are narrow.
        count = (count.min(sorted.len()) * lines_max / lines).clamp(1, count - 1);
        text = rows(&sorted, count, width, output);
    }
    if let Some(below) = below {
        let _ = writeln!(text, "{below}");
    }
    text
}

fn rows(alarms: &[&ConditionEvent], count_max: usize, width: usize, output: Output) -> String {
    if alarms.is_empty() {
        return "no alarms to show (seeing alarms needs the permission ReceiveEvents)\n".to_owned();
    }
    let columns = [
        ("severity", Align::Right),
        ("state", Align::Wrap),
        ("since", Align::Left),
        ("source", Align::Wrap),
        ("alarm", Align::Wrap),
        ("message", Align::Wrap),
    ];
    let mut rows = Table::new(&columns).with_width(width);
    for event in alarms.iter().take(count_max) {
        rows.row([
            event.severity.to_string(),
            output::in_line(&state(event)).into_owned(),
            since(event),
            output::in_line(&event.source_name).into_owned(),
            output::in_line(&event.name).into_owned(),
            output::in_line(&event.message).into_owned(),
        ]);
    }
    let mut text = rows.to_string();
    let hidden = alarms.len().saturating_sub(count_max);
    if hidden > 0 {
        let _ = writeln!(text, "{}", output.faint(&format!("and {hidden} more")));
    }
    text
}

/// The time without fractions of a second, because the table has many columns.
pub(super) fn since(event: &ConditionEvent) -> String {
    output::short(event.since()).split('.').next().unwrap_or_default().to_owned()
}

/// Prints a new, changed or completed alarm.
pub(super) fn line(event: &ConditionEvent, output: Output) -> Result<(), Failure> {
    print_line(event, if event.retain { "" } else { "  (done)" }, output)
}

/// Prints an alarm that the server no longer has. Its final state is unknown.
pub(super) fn gone(event: &ConditionEvent, output: Output) -> Result<(), Failure> {
    let mut event = event.clone();
    event.retain = false;
    (event.active, event.acked, event.confirmed) = (None, None, None);
    print_line(&event, "  (gone)", output)
}

fn print_line(event: &ConditionEvent, end: &str, output: Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.line(&document(event));
    }
    output.text(&format!(
        "{}  {:>4}  {}  {}{end}",
        output.faint(&output::short(event.time)),
        event.severity,
        output::in_line(&event.message),
        output
            .faint(&format!("[{}]", output::in_line(format!("{} {}", event.name, state(event)).trim_end())))
    ))
}

pub(super) fn document(event: &ConditionEvent) -> Value {
    json!({
        "ConditionId": event.condition_id.to_string(),
        "BranchId": event.branch_id.to_string(),
        "EventId": taktwerk_types::node_id::base64(event.event_id.as_bytes()),
        "ConditionName": event.name,
        "SourceNode": event.source.to_string(),
        "SourceName": event.source_name,
        "Since": event.since().map(|time| time.to_string()),
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
    use super::super::tests::with;
    use super::*;
    use crate::output::ColorChoice;

    fn plain() -> Output {
        Output::new(false, ColorChoice::Never)
    }

    #[test]
    fn server_text_cannot_move_the_cursor() {
        let table = with(&[("Bo\u{1b}[2Jiler\n", "x")]);
        let shown = screen(&table, (100, 10), None, plain());
        assert!(!shown.contains('\u{1b}') && shown.lines().count() <= 4, "{shown:?}");
    }

    #[test]
    fn the_screen_shows_the_most_urgent_alarms_and_a_line_below() {
        let names: Vec<String> =
            (1..=20).map(|number| format!("North wing/Hall {number}/Line 3/Filling station/Pump")).collect();
        let pairs: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "LevelAlarm")).collect();
        let table = with(&pairs);
        let shown = screen(&table, (60, 24), Some("connection lost"), plain());
        assert!(shown.lines().count() < 24, "{shown}");
        assert!(shown.ends_with("more\nconnection lost\n") && shown.contains("Hall"), "{shown}");
        let all = screen(&table, (60, 500), None, plain());
        assert!(!all.contains("more") && all.matches("LevelAlarm").count() == 20, "{all}");
    }

    #[test]
    fn narrow_tables_do_not_split_words() {
        let mut table = ConditionTable::new();
        let mut event = ConditionEvent::default();
        event.condition_id = taktwerk_types::NodeId::numeric(2, 1);
        (event.source_name, event.name) = ("Utilities/CompressedAir".to_owned(), "LevelAlarm".to_owned());
        event.message = "Utilities/CompressedAir: back to normal (2.048)".to_owned();
        (event.active, event.acked, event.retain) = (Some(false), Some(false), true);
        table.take(event);
        let shown = rows(&table.sorted(), 9, WIDTH, plain());
        assert!(shown.lines().all(|line| line.chars().count() <= WIDTH), "{shown}");
        assert_eq!(shown.matches("CompressedAir").count(), 2, "{shown}");
        let shown = rows(&table.sorted(), 9, 80, plain());
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        assert_eq!(shown.matches("CompressedAir").count(), 2, "{shown}");
        for word in ["Utilities/", "normal", "(2.048)", "unacknowledged", "LevelAlarm"] {
            assert!(shown.contains(word), "{word}: {shown}");
        }
    }
}
