//! `lab runs`: lists stored runs.

use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use serde_json::json;
use std::collections::BTreeSet;
use taktwerk_lab::report::date;
use taktwerk_lab::store::State;
use taktwerk_lab::table::{Align, Table};

/// Arguments of `taktwerk lab runs`.
#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Print all measurements of this run (name or number) as CSV, one line each.
    #[arg(long, value_name = "RUN")]
    csv: Option<String>,

    #[command(flatten)]
    store: super::StoreArgs,
}

/// The state of a run whose process cannot be checked.
const UNKNOWN: &str = "unknown: begun in another container (PID namespace), whose processes cannot be seen from here.\n\
     If it has ended there, --resume RUN --take-over resumes it.";

/// Lists runs, or prints one.
pub(crate) fn run(arguments: &RunsArgs, output: Output) -> Result<(), Failure> {
    let store = arguments.store.open_to_read()?;
    if let Some(wanted) = &arguments.csv {
        let run = store.choose(Some(wanted))?;
        return csv(&store.measurements(run.id)?, output);
    }
    let runs = store.runs()?;
    if output.is_json() {
        return output.document(&json!({"results": store.path(), "runs": runs}));
    }
    if runs.is_empty() {
        return output.text("no runs yet: try taktwerk lab reproduce burger-cpu --quick");
    }
    let mut table = Table::new(&[
        ("run", Align::Right),
        ("name", Align::Wrap),
        ("began", Align::Left),
        ("state", Align::Left),
        ("measured", Align::Right),
        ("invalid", Align::Right),
        ("what", Align::Wrap),
    ]);
    let is_any_unknown = runs.iter().any(|run| run.state == State::Unknown);
    for run in runs {
        table.row([
            run.id.to_string(),
            run.name,
            date(run.started_unix_ms),
            run.state.name().to_owned(),
            run.measurements.to_string(),
            run.invalid.to_string(),
            format!("{}{}", run.what, if run.quick { " (short form)" } else { "" }),
        ]);
    }
    output.text(&table.to_string())?;
    if is_any_unknown {
        output.text(UNKNOWN)?;
    }
    output.text(&format!("in {}", store.path().display()))
}

/// A text as a CSV field.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn csv(measurements: &[taktwerk_lab::measurement::Measurement], output: Output) -> Result<(), Failure> {
    let factors: BTreeSet<String> =
        measurements.iter().flat_map(|one| one.condition.factors().into_keys()).collect();
    let metrics: BTreeSet<&String> = measurements.iter().flat_map(|one| one.metrics.keys()).collect();
    let mut header: Vec<String> =
        ["experiment", "scenario", "kind", "repetition", "valid"].map(str::to_owned).into();
    header.extend(factors.iter().cloned());
    header.extend(metrics.iter().map(|name| (*name).clone()));
    let mut text = header.iter().map(|name| field(name)).collect::<Vec<_>>().join(",");
    text.push('\n');
    for one in measurements {
        let known = one.condition.factors();
        let mut cells = vec![
            field(&one.experiment),
            field(&one.condition.scenario),
            one.condition.kind.name().to_owned(),
            one.repetition.to_string(),
            one.is_valid().to_string(),
        ];
        cells.extend(factors.iter().map(|name| known.get(name).map(|text| field(text)).unwrap_or_default()));
        let shown = |name: &&String| one.metrics.get(*name).map(f64::to_string).unwrap_or_default();
        cells.extend(metrics.iter().map(shown));
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    output.text(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(
            (field("a"), field("a,b"), field("a\"b")),
            ("a".into(), "\"a,b\"".into(), "\"a\"\"b\"".into())
        );
    }
}
