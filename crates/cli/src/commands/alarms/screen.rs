//! Draws the interactive table, for terminals of 80 columns and wider.

use super::show::name;
use super::view::{List, Row, View};
use crate::output;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row as TableRow, Table, Wrap};
use taktwerk_client::condition::{ConditionEvent, ConditionTable};

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const BAD: Style = Style::new().fg(Color::Red);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

const KEYS: &str = "a acknowledge · c confirm · m comment · s shelve · / filter · ? help · q quit";
const HELP: [(&str, &str); 14] = [
    ("↑ ↓ j k", "move; PgUp, PgDn, Home (g), End (G)"),
    ("a", "acknowledge the alarm"),
    ("c", "confirm it, after it was acknowledged"),
    ("m", "add a comment"),
    ("s", "shelve it until it is no longer active"),
    ("t", "shelve it for some minutes"),
    ("u", "unshelve it"),
    ("r", "reset a latched alarm"),
    ("d", "disable it: it is no longer monitored"),
    ("e", "enable the alarm that was disabled last"),
    ("/", "show only alarms with a text in source, name, message or state"),
    ("Esc", "show all alarms again"),
    ("q Ctrl-C", "end"),
    ("", "any key closes this help"),
];

/// Draws everything. `notice` is about the connection.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    view: &mut View,
    alarms: &ConditionTable,
    title: &str,
    notice: Option<&str>,
) {
    let [head, list, detail, said, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(2),
        Constraint::Length(3),
        Constraint::Length(2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let shown = view.list(alarms, usize::from(list.height.saturating_sub(1)));
    frame.render_widget(heading(view, alarms, &shown, title), head);
    if view.is_help() {
        let line = |(key, text): &(&'static str, &'static str)| {
            Line::from(vec![Span::styled(format!("{key:>10}  "), BOLD), Span::raw(*text)])
        };
        frame.render_widget(Paragraph::new(HELP.iter().map(line).collect::<Vec<_>>()), list);
    } else {
        if let Some(event) = shown.selected {
            frame.render_widget(details(event), detail);
        }
        draw_list(frame, shown.rows, alarms, list);
    }
    frame.render_widget(message(view, notice), said);
    frame.render_widget(Line::styled(KEYS, DIM), keys);
}

fn heading<'a>(view: &View, alarms: &ConditionTable, list: &List<'_>, title: &'a str) -> Line<'a> {
    let (all, shown) = (alarms.len(), list.matching);
    let count = match view.filter() {
        "" => output::counted(all, "alarm"),
        filter => format!("{shown} of {} with {filter:?}", output::counted(all, "alarm")),
    };
    Line::from(vec![Span::styled(format!("{count}  "), BOLD), Span::styled(title, DIM)])
}

fn draw_list(frame: &mut Frame<'_>, rows: Vec<Row>, alarms: &ConditionTable, area: Rect) {
    if rows.is_empty() {
        let text = if alarms.is_empty() {
            "no alarms to show (seeing alarms needs the permission ReceiveEvents)"
        } else {
            "no alarm matches the filter; Esc shows all"
        };
        return frame.render_widget(Line::styled(text, DIM), area);
    }
    let row = |row: Row| {
        let style = match (row.is_selected, row.is_urgent) {
            (true, true) => BAD.patch(CHOSEN),
            (true, false) => CHOSEN,
            (false, true) => BAD,
            (false, false) => Style::new(),
        };
        let [severity, rest @ ..] = row.cells;
        let cells = core::iter::once(Line::raw(severity).right_aligned()).chain(rest.map(Line::raw));
        TableRow::new(cells).style(style)
    };
    let widths = [
        Constraint::Length(4),
        Constraint::Length(8),
        Constraint::Length(11),
        Constraint::Length(8),
        Constraint::Fill(2),
        Constraint::Fill(3),
    ];
    let header = TableRow::new(["sev.", "state", "to do", "since", "alarm", "message"]).style(BOLD);
    frame.render_widget(Table::new(rows.into_iter().map(row), widths).header(header), area);
}

/// The whole message and the last comment of the selected alarm.
fn details(event: &ConditionEvent) -> Paragraph<'static> {
    let line = |text: &str| output::in_line(text).into_owned();
    let mut text = format!("{}: {}", name(event), line(&event.message));
    if !event.comment.is_empty() {
        let by = if event.user.is_empty() { String::new() } else { format!(" ({})", line(&event.user)) };
        text.push_str(&format!(" · comment{by}: {}", line(&event.comment)));
    }
    Paragraph::new(text).wrap(Wrap { trim: true }).style(DIM)
}

/// What the user is asked, or what was done, or what is wrong with the connection.
fn message(view: &View, notice: Option<&str>) -> Paragraph<'static> {
    let (text, style) = match (view.prompt(), notice, view.status()) {
        // The cursor is part of the text, because the real one is hidden.
        (Some(prompt), ..) => (format!("{prompt}▏"), BOLD),
        (None, Some(notice), _) => (notice.to_owned(), BAD),
        (None, None, Some(status)) => (status.text.clone(), if status.is_bad { BAD } else { Style::new() }),
        (None, None, None) => (String::new(), Style::new()),
    };
    Paragraph::new(text).wrap(Wrap { trim: true }).style(style)
}

#[cfg(test)]
mod tests {
    use super::super::tests::with;
    use super::super::view::Key;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(view: &mut View, alarms: &ConditionTable, notice: Option<&str>) -> String {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, view, alarms, "opc.tcp://plant:4840", notice)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn eighty_columns_are_enough() {
        let names: Vec<String> = (1..=40).map(|number| format!("Line {number}/Pump")).collect();
        let pairs: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "LevelAlarm")).collect();
        let (mut view, table) = (View::default(), with(&pairs));
        let shown = drawn(&mut view, &table, None);
        for text in ["40 alarms  opc.tcp://plant:4840", "sev.", "to do", "message", "Line 1", KEYS] {
            assert!(shown.contains(text), "{text}: {shown}");
        }
        let lines = shown.lines().filter(|line| line.contains("/Pum")).count();
        assert_eq!(lines, 17, "16 rows and the details: {shown}");
        view.key(Key::Char('?'), &table);
        let help = drawn(&mut view, &table, None);
        for (key, text) in HELP {
            assert!(help.contains(key) && help.contains(text), "{key}: {help}");
        }
    }

    #[test]
    fn questions_and_the_connection_are_below_the_table() {
        let (mut view, table) = (View::default(), with(&[("Pump", "Leak")]));
        assert!(drawn(&mut view, &table, Some("connection lost")).contains("connection lost"));
        view.key(Key::Char('m'), &table);
        view.key(Key::Char('x'), &table);
        let shown = drawn(&mut view, &table, Some("connection lost"));
        assert!(shown.contains("comment on Pump Leak: x▏"), "{shown}");
        let empty = drawn(&mut View::default(), &ConditionTable::new(), None);
        assert!(empty.contains("no alarms to show"), "{empty}");
    }
}
