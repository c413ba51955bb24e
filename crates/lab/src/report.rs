//! Renders a run as one HTML file without scripts and without external references.

use crate::chart::Chart;
use crate::outcome::{Grid, Outcome};
use crate::store::{Run, State};
use serde_json::Value;
use std::fmt::Write;

const STYLE: &str = include_str!("report.css");

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Name of a run of `taktwerk sim`, which measures nothing.
pub const SIMULATION: &str = "sim";

/// The page for a run.
#[must_use]
pub fn page(run: &Run, outcomes: &[Outcome]) -> String {
    let mut html = String::new();
    let put = |html: &mut String, text: std::fmt::Arguments<'_>| {
        // Writing to a String does not fail.
        let _ = html.write_fmt(text);
    };
    let title = escape(&format!("{} – {}", run.name, run.what));
    put(
        &mut html,
        format_args!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\">\
             <title>{title}</title><style>{STYLE}</style></head><body>\n\
             <header><h1>{}</h1><p class=\"sub\">{}</p>{}</header>\n",
            escape(&run.what),
            escape(&subtitle(run)),
            machine(&run.fingerprint)
        ),
    );
    summary(&mut html, outcomes);
    for outcome in outcomes {
        section(&mut html, outcome);
    }
    html.push_str("<section id=\"machine\"><h2>Machine and versions</h2>");
    fingerprint(&mut html, &run.fingerprint);
    html.push_str(if run.name == SIMULATION {
        "Nothing was measured: the same file and seeds give the same figures on every machine.</p></section>"
    } else {
        "Absolute times depend on this machine and this day. Compare ratios, orderings and shapes. On a virtual \
         machine, repeat a run before you rely on a difference below 10 %.</p></section>"
    });
    html.push_str("</body></html>\n");
    html
}

/// Prefix of notes that say how a run differs from its protocol.
pub const PROTOCOL: &str = "protocol: ";

/// How completely a run follows its protocol. Full only if the run is complete, and nothing was changed or left out.
fn protocol(run: &Run) -> Option<String> {
    if !run.what.starts_with("reproduce") {
        return None;
    }
    let form = if run.quick { "short form" } else { "full protocol" };
    let changes: Vec<&str> = run.notes.iter().filter_map(|note| note.strip_prefix(PROTOCOL)).collect();
    let is_cut = run.state != State::Complete || changes.len() < run.notes.len();
    Some(match (changes.is_empty(), is_cut) {
        (true, false) => form.to_owned(),
        (true, true) => format!("parts of the {form}"),
        (false, _) => format!("changed {form} ({})", changes.join(", ")),
    })
}

fn subtitle(run: &Run) -> String {
    let when = date(run.started_unix_ms);
    let measured = format!("{} measurements, {} invalid", run.measurements, run.invalid);
    let parts = [Some(format!("run {}", run.name)), Some(when), protocol(run), Some(measured)];
    let parts: Vec<String> = parts.into_iter().flatten().chain([run.state.name().to_owned()]).collect();
    parts.join(" · ")
}

/// A date and time in UTC from milliseconds since 1970 (proleptic Gregorian calendar, from civil days).
#[must_use]
pub fn date(unix_ms: i64) -> String {
    let (days, ms) = (unix_ms.div_euclid(86_400_000), unix_ms.rem_euclid(86_400_000));
    // If years begin in March, the leap day is the last day. Eras have 400 years, which are 146 097 days.
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// One line about the machine; all figures of the page refer to it.
fn machine(fingerprint: &Value) -> String {
    let machine = fingerprint.get("machine");
    let of = |name: &str| {
        machine.and_then(|machine| machine.get(name)).filter(|value| !value.is_null()).map(plain)
    };
    let parts = [
        of("cpu"),
        of("cpus").map(|count| format!("{count} processors")),
        (of("virtual_machine").as_deref() == Some("true")).then(|| "virtual machine".to_owned()),
        of("kernel").map(|kernel| format!("kernel {kernel}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return String::new();
    }
    format!(
        "<p class=\"sub\">measured on {}: <a href=\"#machine\">details</a></p>",
        escape(&parts.join(" · "))
    )
}

/// Explains the verdicts in front of the findings.
const SIGNS: &str = "<p class=\"note\"><b class=\"holds\">holds</b>: what was measured is within the limit. \
    <b class=\"fails\">fails</b>: it is beyond. <b class=\"open\">open</b>: its range contains the limit, or too little was measured.</p>";

fn summary(html: &mut String, outcomes: &[Outcome]) {
    if outcomes.iter().any(|outcome| !outcome.findings.is_empty()) {
        html.push_str(SIGNS);
    }
    html.push_str(
        "<nav><table><thead><tr><th>experiment</th><th>question</th><th>findings</th></tr></thead><tbody>",
    );
    for outcome in outcomes {
        let count = |wanted: Option<bool>| outcome.findings.iter().filter(|f| f.holds == wanted).count();
        let (holds, fails, open) = (count(Some(true)), count(Some(false)), count(None));
        let mut signs = Vec::new();
        if holds > 0 {
            signs.push(format!("<span class=\"holds\">{holds} hold</span>"));
        }
        if fails > 0 {
            signs.push(format!("<span class=\"fails\">{fails} fail</span>"));
        }
        if !outcome.errors.is_empty() {
            signs.push(format!("<span class=\"fails\">{} errors</span>", outcome.errors.len()));
        }
        if open > 0 {
            signs.push(format!("<span class=\"open\">{open} open</span>"));
        }
        if outcome.grids.is_empty() && outcome.charts.is_empty() {
            signs.push("<span class=\"open\">skipped</span>".to_owned());
        }
        let id = escape(&outcome.id);
        let _ = write!(
            html,
            "<tr><td><a href=\"#{id}\">{id}</a></td><td>{}</td><td>{}</td></tr>",
            escape(&outcome.question),
            signs.join(", ")
        );
    }
    html.push_str("</tbody></table></nav>\n");
}

fn section(html: &mut String, outcome: &Outcome) {
    let id = escape(&outcome.id);
    let _ = write!(
        html,
        "<section id=\"{id}\"><h2>{id}</h2><p class=\"question\">{}</p><p class=\"source\">{}</p>",
        escape(&outcome.question),
        escape(&outcome.source)
    );
    if !outcome.findings.is_empty() {
        html.push_str("<ul class=\"findings\">");
        for finding in &outcome.findings {
            let (class, sign) = match finding.holds {
                Some(true) => ("holds", "holds"),
                Some(false) => ("fails", "fails"),
                None => ("open", "open"),
            };
            let _ = write!(
                html,
                "<li><b class=\"{class}\">{sign}</b> {}: <span class=\"evidence\">{}</span></li>",
                escape(&finding.claim),
                escape(&finding.evidence)
            );
        }
        html.push_str("</ul>");
    }
    for error in &outcome.errors {
        let _ = write!(html, "<p class=\"fails\">Error: {}</p>", escape(error));
    }
    let charts: Vec<&Chart> = outcome.charts.iter().filter(|one| !one.is_empty()).collect();
    if !charts.is_empty() {
        html.push_str("<div class=\"charts\">");
        charts.into_iter().for_each(|one| chart(html, one));
        html.push_str("</div>");
    }
    outcome.grids.iter().for_each(|one| grid(html, one));
    for remark in &outcome.remarks {
        let _ = write!(html, "<p class=\"note\">{}</p>", escape(remark));
    }
    if !outcome.skipped.is_empty() {
        html.push_str("<ul class=\"skipped\">");
        for skipped in &outcome.skipped {
            let _ = write!(html, "<li>{}</li>", escape(skipped));
        }
        html.push_str("</ul>");
    }
    html.push_str("</section>\n");
}

fn chart(html: &mut String, chart: &Chart) {
    let _ = write!(html, "<figure><h3>{}</h3>", escape(&chart.title));
    let legend = chart.legend();
    if !legend.is_empty() {
        html.push_str("<p class=\"legend\">");
        for (name, colour) in legend {
            let style = colour % 8;
            let key = if chart.is_dotted(&name) {
                format!("<circle class=\"dot s{style}\" cx=\"13\" cy=\"5\" r=\"3.5\"/>")
            } else {
                format!("<path class=\"line s{style}\" d=\"M1 5h24\"/>")
            };
            let _ = write!(
                html,
                "<span><svg viewBox=\"0 0 26 10\" class=\"key\">{key}</svg>{}</span> ",
                escape(&name)
            );
        }
        html.push_str("</p>");
    }
    let _ = write!(html, "{}<figcaption>{}</figcaption></figure>", chart.svg(), escape(&chart.reading));
}

fn grid(html: &mut String, grid: &Grid) {
    let _ = write!(html, "<h3>{}</h3><div class=\"scroll\"><table><thead><tr>", escape(&grid.title));
    let class = |at: usize| if at < grid.text_columns { "" } else { " class=\"n\"" };
    for (at, column) in grid.columns.iter().enumerate() {
        let _ = write!(html, "<th{}>{}</th>", class(at), escape(column));
    }
    html.push_str("</tr></thead><tbody>");
    for row in &grid.rows {
        html.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let _ = write!(html, "<td{}>{}</td>", class(at), escape(cell));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
}

fn fingerprint(html: &mut String, value: &Value) {
    html.push_str("<div class=\"scroll\"><table><tbody>");
    let mut rows = Vec::new();
    leaves("", value, &mut rows);
    for (name, value) in rows {
        let _ = write!(html, "<tr><td>{}</td><td>{}</td></tr>", escape(&name), escape(&value));
    }
    html.push_str("</tbody></table></div>");
}

fn leaves(prefix: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let path = if prefix.is_empty() { name.clone() } else { format!("{prefix} {name}") };
                leaves(&path.replace('_', " "), value, rows);
            }
        }
        Value::Array(values) => {
            let texts: Vec<String> = values.iter().map(plain).collect();
            rows.push((prefix.to_owned(), texts.join(", ")));
        }
        other => rows.push((prefix.to_owned(), plain(other))),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "–".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, Mark, Point, Series};
    use serde_json::json;

    fn run() -> Run {
        Run {
            id: 1,
            name: "r<1>".into(),
            what: "burger-cpu".into(),
            quick: true,
            started_unix_ms: 1_795_284_000_000,
            finished_unix_ms: None,
            state: State::Complete,
            fingerprint: json!({"machine": {"cpu": "A & B", "cpus": 2}, "peers": ["own"]}),
            notes: Vec::new(),
            measurements: 3,
            invalid: 0,
        }
    }

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400_000), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_795_284_000_000), "2026-11-21 18:00 UTC");
    }

    #[test]
    fn only_complete_runs_are_called_full_protocol() {
        let of = |change: fn(&mut Run)| {
            let mut run = Run { quick: false, what: "reproduce all".into(), ..run() };
            change(&mut run);
            protocol(&run)
        };
        assert_eq!(of(|_| ()).unwrap(), "full protocol");
        assert_eq!(of(|run| run.quick = true).unwrap(), "short form");
        assert_eq!(of(|run| run.state = State::Incomplete).unwrap(), "parts of the full protocol");
        assert_eq!(of(|run| run.notes = vec!["x: y".into()]).unwrap(), "parts of the full protocol");
        let changed = of(|run| run.notes = vec![format!("{PROTOCOL}windows of 3 s"), "x: y".into()]);
        assert_eq!(changed.unwrap(), "changed full protocol (windows of 3 s)");
        assert_eq!(of(|run| run.what = "calibrate".into()), None);
    }

    #[test]
    fn pages_have_no_external_references() {
        let mut outcome = Outcome { id: "x".into(), question: "why < how?".into(), ..Outcome::default() };
        let series = Series { name: "own".into(), mark: Mark::Line(vec![Point::new(1.0, 2.0)]), colour: 0 };
        outcome.charts.push(Chart::plane(
            "c",
            "read it so",
            Axis::linear("x"),
            Axis::linear("y"),
            vec![series],
        ));
        let mut table = Grid::new("t", 1, &["stack", "CPU"]);
        table.row(["own", "1"]);
        outcome.grids.push(table);
        outcome.finding("it holds", Some(true), "1 < 2");
        let html = page(&run(), &[outcome]);
        for banned in ["<script", "http://", "https://", "src=", "@import", "url("] {
            // The namespace of SVG is only a name; nothing is loaded from it.
            let found = html.replace("http://www.w3.org/2000/svg", "");
            assert!(!found.contains(banned), "{banned}");
        }
        for wanted in [
            "measured on A &amp; B · 2 processors:",
            "href=\"#machine\"",
            "it is beyond",
            "r&lt;1&gt;",
            "why &lt; how?",
            "read it so",
            "1 &lt; 2",
            "A &amp; B",
            "viewport",
        ] {
            assert!(html.contains(wanted), "{wanted}");
        }
    }
}
