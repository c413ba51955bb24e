//! Drawing of the live view, for terminals of about 60 × 12 and larger.

use super::state::State;
use crate::commands::lab::session::span;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Gauge, Paragraph, Row, Sparkline, Table};

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const BAD: Style = Style::new().fg(Color::Red);
const GOOD: Style = Style::new().fg(Color::Green);
const NOW: Style = Style::new().fg(Color::Cyan);

/// Draws everything; `log` contains the last lines of the log. Returns the first visible row of the list.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State, log: &[String]) -> usize {
    let height = frame.area().height;
    // On a low terminal the list of loads has priority.
    let below = if log.is_empty() || height < 16 { 0 } else { log.len().min(4) as u16 + 1 };
    let cpus = if height < 16 { 0 } else { state.cpus.len().min(4) as u16 };
    let [title, gauge, now, busy, list, said, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(2),
        Constraint::Length(cpus),
        Constraint::Min(3),
        Constraint::Length(below),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(
        Line::from(vec![Span::styled("taktwerk lab ", BOLD), Span::raw(&*state.title)]),
        title,
    );
    frame.render_widget(progress(state), gauge);
    frame.render_widget(current(state), now);
    draw_cpus(frame, state, busy);
    let first = draw_list(frame, state, list);
    if below > 0 {
        let lines: Vec<Line<'_>> = log.iter().map(|text| Line::styled(&**text, BAD)).collect();
        let block = Block::new().title_top(Line::styled("log", DIM));
        frame.render_widget(Paragraph::new(lines).block(block), said);
    }
    let hint = if state.is_ending {
        Line::styled("ending after this measurement; results are kept; Ctrl-C again ends at once", BAD)
    } else {
        Line::styled("q or Ctrl-C: end and keep the results · ↑ ↓ PgUp PgDn: scroll · f: follow", DIM)
    };
    frame.render_widget(hint, keys);
    first
}

fn progress(state: &State) -> Gauge<'_> {
    let (done, total) = state.done;
    let label = format!("{done} of {total} measurements · about {} left", span(state.seconds_left()));
    Gauge::default().gauge_style(NOW).ratio(state.share()).label(label).use_unicode(true)
}

fn current(state: &State) -> Paragraph<'_> {
    let Some((current, row)) = state.current.as_ref().and_then(|it| Some((it, state.rows.get(it.row)?)))
    else {
        return Paragraph::new(Line::styled("nothing is being measured", DIM));
    };
    let ran = current.begun.elapsed().as_secs_f64();
    let repetition = (row.valid + row.invalid + 1).min(row.wanted.max(1));
    Paragraph::new(vec![
        Line::from(vec![Span::styled("now ", BOLD), Span::styled(row.condition.label(), NOW)]),
        Line::styled(
            format!(
                "    repetition {repetition} of {}, {ran:.0} of about {:.0} s",
                row.wanted, current.seconds
            ),
            DIM,
        ),
    ])
}

/// A line per CPU with its current and past use.
fn draw_cpus(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let lines = Layout::vertical(vec![Constraint::Length(1); usize::from(area.height)]).split(area);
    for (number, (past, line)) in state.cpus.iter().zip(lines.iter()).enumerate() {
        let [name, curve] = Layout::horizontal([Constraint::Length(14), Constraint::Min(0)]).areas(*line);
        let percent = past.back().copied().unwrap_or(0);
        frame.render_widget(Line::raw(format!("CPU {number:<2} {percent:>4} %")), name);
        let skipped = past.len().saturating_sub(usize::from(curve.width));
        let shown: Vec<u64> = past.iter().skip(skipped).copied().collect();
        frame.render_widget(Sparkline::default().data(&shown).max(100).style(NOW), curve);
    }
}

/// The list of loads with their results. Returns the first visible row.
fn draw_list(frame: &mut Frame<'_>, state: &State, area: Rect) -> usize {
    let visible = usize::from(area.height.saturating_sub(1)).max(1);
    let now = state.current.as_ref().map(|current| current.row);
    let follow = now.unwrap_or(0).saturating_sub(visible / 2);
    let first = state.scroll.unwrap_or(follow).min(state.rows.len().saturating_sub(visible));
    let rows = state.rows.iter().enumerate().skip(first).take(visible).map(|(at, row)| {
        let figures: Vec<String> = row
            .figures()
            .filter(|(_, text)| text != "–")
            .map(|(name, text)| format!("{name} {text}"))
            .collect();
        let sign = match (now == Some(at), row.invalid > 0, row.valid > 0) {
            (true, ..) => Span::styled("▶", NOW),
            (_, true, _) => Span::styled("!", BAD),
            (_, _, true) => Span::styled("✓", GOOD),
            _ => Span::styled("·", DIM),
        };
        let counts = match row.invalid {
            0 => format!("{}/{}", row.valid, row.wanted),
            invalid => format!("{}/{} ({invalid} bad)", row.valid, row.wanted),
        };
        let label = if row.experiment.is_empty() || row.label.starts_with(&row.experiment) {
            row.label.clone()
        } else {
            format!("{}: {}", row.experiment, row.label)
        };
        Row::new(vec![
            Line::from(sign),
            Line::raw(label),
            Line::raw(counts).right_aligned(),
            Line::raw(figures.join("  ")),
        ])
    });
    let widths = [Constraint::Length(1), Constraint::Fill(3), Constraint::Length(11), Constraint::Fill(4)];
    let header = Row::new(vec!["", "load", "   measured", "means so far"]).style(BOLD);
    frame.render_widget(Table::new(rows, widths).header(header), area);
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;
    use taktwerk_lab::measurement::Measurement;
    use taktwerk_lab::runner::Step;
    use taktwerk_lab::scenario::{Condition, Kind, LoadSpec, Scenario, Sweep};

    fn plan(loads: u32) -> Vec<(String, Condition)> {
        let mut load = LoadSpec::new(Kind::Subscribe);
        load.clients = Some(Sweep::Many((1..=loads).collect()));
        load.items = Some(1_000.into());
        let mut scenario = Scenario::new("many clients", load);
        scenario.time.repetitions = 2;
        scenario.conditions().into_iter().map(|condition| (String::new(), condition)).collect()
    }

    /// The content of a terminal of this size.
    fn drawn(state: &State, log: &[String], width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal
            .draw(|frame| {
                draw(frame, state, log);
            })
            .unwrap();
        let buffer = terminal.backend().buffer();
        let line =
            |y: u16| (0..width).filter_map(|x| buffer.cell((x, y))).map(|cell| cell.symbol()).collect();
        (0..height).map(line).collect::<Vec<String>>().join("\n")
    }

    #[test]
    fn a_run_under_way() {
        let plan = plan(3);
        let mut state = State::new("r1", "two small loads", &plan);
        let document = json!({"per_second": 10_000.0, "server": {"cpu_percent": 3.5}});
        let measurement = Measurement::from_document("", plan[0].1.clone(), 0, document);
        state.step(&Step::End(&measurement));
        let failed = Measurement::failed("", plan[1].1.clone(), 0, "the generator was late".into());
        state.step(&Step::End(&failed));
        let (experiment, condition) = &plan[2];
        state.step(&Step::Begin { experiment, condition, done: 2, total: 6, seconds_left: 50.0 });
        state.sample(&[12, 99]);
        let log = ["WARN the generator was late".to_owned()];
        let text = drawn(&state, &log, 100, 24);
        for wanted in [
            "taktwerk lab two small loads · run r1",
            "2 of 6 measurements",
            "now many clients: taktwerk, clients=3",
            "repetition 1 of 2",
            "CPU 1    99 %",
            "✓",
            "signals/s 10\u{202f}000",
            "CPU % 3.50",
            "1/2",
            "(1 bad)",
            "▶",
            "the generator was late",
            "Ctrl-C",
        ] {
            assert!(text.contains(wanted), "{wanted} is missing:\n{text}");
        }
        state.is_ending = true;
        assert!(drawn(&state, &[], 100, 24).contains("results are kept"));
    }

    #[test]
    fn any_size_is_drawn_and_the_list_follows_or_scrolls() {
        let plan = plan(60);
        let mut state = State::new("r1", "x", &plan);
        let (experiment, condition) = &plan[50];
        state.step(&Step::Begin { experiment, condition, done: 0, total: 120, seconds_left: 50.0 });
        for (width, height) in [(1, 1), (20, 5), (60, 12), (80, 24), (300, 90)] {
            drawn(&state, &[], width, height);
        }
        assert!(drawn(&state, &[], 80, 24).contains("clients=51"));
        state.scroll(-1_000, 40);
        let text = drawn(&state, &[], 80, 24);
        assert!(text.contains("clients=1 ") && !text.contains("clients=60"), "{text}");
        state.scroll(1_000, 0);
        assert_eq!(state.scroll, None);
    }
}
