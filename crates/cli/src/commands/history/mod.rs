//! `taktwerk history`: reads recorded values and events, and annotates values.

mod annotations;
mod chart;

use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::node::NodeSpec;
use crate::output::{self, Output};
use crate::overwrite::Overwrite;
use crate::resolve;
use crate::session::Session;
use crate::span;
use chart::Series;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;
use taktwerk_client::history::{HistoryError, HistoryPage, HistoryQuery, HistoryRange, HistoryReader};
use taktwerk_lab::table::{Align, Table};
use taktwerk_net::clock;
use taktwerk_server::history::aggregate::Aggregate;
use taktwerk_types::{DataValue, NodeId, StatusCode, UtcTime, Variant};

/// Arguments of `taktwerk history`.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// The variable: a NodeId or browse path.
    #[arg(value_name = "NODE")]
    node: NodeSpec,

    /// Start: a time such as 2026-03-04T12:00:00Z, or a span before now such as -1h.
    #[arg(long, value_name = "TIME", default_value = "-1h", allow_hyphen_values = true, value_parser = time)]
    from: UtcTime,

    /// End. If it is earlier than --from, the latest values come first.
    #[arg(long, value_name = "TIME", default_value = "now", allow_hyphen_values = true, value_parser = time)]
    to: UtcTime,

    /// Maximum number of values.
    #[arg(short = 'n', long, value_name = "N")]
    count: Option<usize>,

    /// Include the values just before and after the range.
    #[arg(long)]
    bounds: bool,

    /// An aggregate of Part 13, such as Average, Minimum, Maximum, Count, TimeAverage or PercentGood.
    #[arg(long, value_name = "NAME", value_parser = aggregate, requires = "every")]
    aggregate: Option<Aggregate>,

    /// Length of the intervals of --aggregate.
    #[arg(long, value_name = "SPAN", value_parser = span::some, requires = "aggregate")]
    every: Option<Duration>,

    /// Show values that were inserted, replaced or deleted, with the user who did it.
    #[arg(long, conflicts_with_all = ["aggregate", "at", "bounds"])]
    modified: bool,

    /// Show the values at these times, interpolated if necessary. Can be repeated.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = time, conflicts_with_all = ["aggregate", "bounds"])]
    at: Vec<UtcTime>,

    /// Read events instead of values: the recorded events of an Object, such as i=2253 for the whole server.
    #[arg(long, conflicts_with_all = ["aggregate", "at", "bounds", "modified", "csv", "plot", "svg"])]
    events: bool,

    /// Only events for which this is true, as in `taktwerk events`.
    #[arg(long, value_name = "CONDITION", requires = "events")]
    filter: Option<String>,

    /// List the annotations of the recorded values.
    #[arg(long, conflicts_with_all = ["aggregate", "at", "bounds", "modified", "events", "plot", "svg"])]
    annotations: bool,

    /// Add an annotation with this text at the time of --at.
    #[arg(
        long,
        value_name = "TEXT",
        requires = "at",
        conflicts_with_all = ["annotations", "modified", "events", "csv", "plot", "svg", "json"]
    )]
    annotate: Option<String>,

    /// Print comma-separated values.
    #[arg(long, conflicts_with_all = ["plot", "json"])]
    csv: bool,

    /// Draw a chart in the terminal.
    #[arg(long, conflicts_with = "json")]
    plot: bool,

    /// Draw a chart into an SVG file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,
}

/// The start time of the command. All relative times refer to it, so that spans are exact.
fn now() -> UtcTime {
    static NOW: OnceLock<UtcTime> = OnceLock::new();
    *NOW.get_or_init(clock::wall)
}

/// Parses a time: absolute, `now`, or a span before now.
fn time(text: &str) -> Result<UtcTime, String> {
    if text == "now" {
        return Ok(now());
    }
    if let Some(before) = text.strip_prefix('-') {
        let days = before.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
        let span = match days {
            Some(days) => Duration::from_secs(u64::from(days) * 86_400),
            None => span::seconds(before).map_err(|error| error.to_string())?,
        };
        let ticks = i64::try_from(span.as_nanos() / 100).unwrap_or(i64::MAX);
        return Ok(UtcTime::from_ticks(now().ticks().saturating_sub(ticks)));
    }
    UtcTime::parse(text).ok_or_else(|| {
        format!(
            "{text:?} is not a time: write 2026-03-04T12:00:00Z, now, or a span before now such as -1h or -7d"
        )
    })
}

fn aggregate(text: &str) -> Result<Aggregate, String> {
    Aggregate::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = Aggregate::ALL.iter().map(|aggregate| aggregate.name()).collect();
        let meant = crate::suggestion::question(text, names.iter().copied());
        format!("unknown aggregate {text:?} (known: {}){meant}", names.join(", "))
    })
}

/// Reads and prints.
pub(crate) fn run(arguments: &HistoryArgs, output: Output) -> Result<(), Failure> {
    arguments.svg.as_deref().map_or(Ok(()), |path| arguments.overwrite.check(path))?;
    let mut session = Session::connect(&arguments.connection)?;
    let node = resolve::one(&mut session, &arguments.node)?;
    if arguments.events {
        return events(arguments, session, &node, output);
    }
    if arguments.annotations {
        return annotations::list(arguments, session, &node, output);
    }
    if let Some(message) = &arguments.annotate {
        return annotations::add(arguments, message, session, &node, output);
    }
    let found = read(arguments, &mut session, &node)?;
    session.close();
    if let Some(path) = &arguments.svg {
        let svg = chart::svg(&Series::of(&found.values), &node.to_string());
        std::fs::write(path, svg)
            .map_err(|error| Failure::Environment(format!("cannot write {}: {error}", path.display())))?;
        if !arguments.csv && !arguments.plot && !output.is_json() {
            return output.text(&format!("{} values drawn into {}", found.values.len(), path.display()));
        }
    }
    if output.is_json() {
        return output.document(&Value::Array(documents(&found)));
    }
    if arguments.csv {
        return output.data(&csv(&found));
    }
    if found.values.is_empty() {
        return output.text("no values in this range");
    }
    if arguments.plot {
        return output.text(&chart::text(&Series::of(&found.values), width()));
    }
    output.text(&table(&found))
}

/// Reads and prints events page by page.
fn events(
    arguments: &HistoryArgs,
    mut session: Session,
    node: &NodeId,
    output: Output,
) -> Result<(), Failure> {
    let fields = super::events::query(&[], arguments.filter.as_deref())?;
    let query = HistoryQuery::Events { range: range(arguments), filter: fields.event_filter().clone() };
    let mut reader = HistoryReader::new(node.clone(), &query);
    let mut left = arguments.count.unwrap_or(usize::MAX);
    let mut is_empty = true;
    while let Some(mut request) = reader.request() {
        let response =
            session.client().call(&mut request).map_err(|error| crate::session::failure(&error))?;
        let page = reader.accept(response).map_err(|error| unreadable(node, error, true))?;
        for event in page.events.iter().take(left) {
            super::events::learn_types(&mut session, event)?;
            super::events::print(&session, fields.names(), event, output)?;
            is_empty = false;
        }
        left = left.saturating_sub(page.events.len());
        if left == 0 {
            reader.finish();
        }
    }
    session.close();
    if is_empty && !output.is_json() { output.text("no events in this range") } else { Ok(()) }
}

fn unreadable(node: &NodeId, error: HistoryError, are_events: bool) -> Failure {
    match error {
        HistoryError::Status(status) => refused(node, status, are_events),
        error => Failure::BadStatus(format!("cannot read the history of {node}: {error}")),
    }
}

fn range(arguments: &HistoryArgs) -> HistoryRange {
    HistoryRange { start: Some(arguments.from), end: Some(arguments.to), limit: arguments.count }
}

/// Width of the terminal in columns.
fn width() -> usize {
    let columns = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_col));
    if columns >= 40 { columns.min(160) } else { 100 }
}

fn query(arguments: &HistoryArgs) -> HistoryQuery {
    let range = range(arguments);
    match (arguments.aggregate, arguments.every) {
        (Some(aggregate), Some(interval)) => HistoryQuery::Processed {
            start: arguments.from,
            end: arguments.to,
            aggregate: aggregate.node_id(),
            interval,
            configuration: None,
        },
        _ if !arguments.at.is_empty() => HistoryQuery::AtTimes(arguments.at.clone()),
        _ if arguments.modified => HistoryQuery::Modified(range),
        _ => HistoryQuery::Raw { range, bounds: arguments.bounds },
    }
}

/// Reads values page by page.
fn read(arguments: &HistoryArgs, session: &mut Session, node: &NodeId) -> Result<HistoryPage, Failure> {
    let mut reader = HistoryReader::new(node.clone(), &query(arguments));
    let wanted = arguments.count.unwrap_or(usize::MAX);
    let mut found = HistoryPage::default();
    while let Some(mut request) = reader.request() {
        let response =
            session.client().call(&mut request).map_err(|error| crate::session::failure(&error))?;
        let page = reader.accept(response).map_err(|error| unreadable(node, error, false))?;
        found.append(page);
        if found.len() >= wanted {
            reader.finish();
        }
    }
    found.values.truncate(wanted);
    found.modifications.truncate(wanted);
    Ok(found)
}

fn refused(node: &NodeId, status: StatusCode, are_events: bool) -> Failure {
    let why = status.description().unwrap_or_default();
    let advice = advice(status, are_events);
    Failure::BadStatus(format!("cannot read the history of {node}: {status}: {why}{advice}"))
}

/// Servers may refuse a user without saying whether there is a history.
fn advice(status: StatusCode, are_events: bool) -> &'static str {
    match (status, are_events) {
        (StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED, true) => {
            " The server records no events of this node. Taktwerk records them with `events = true` under [history]"
        }
        (StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED, false) => {
            " The server keeps no history of this node, or cannot calculate values; `taktwerk browse --list` shows the variables \
             that it has"
        }
        (StatusCode::BAD_USER_ACCESS_DENIED, true) => {
            " Either the server records no events of this node (Taktwerk needs `events = true` under [history]), or this \
             user may not read them"
        }
        (StatusCode::BAD_USER_ACCESS_DENIED, false) => {
            " Either the server keeps no history of this node, or this user may not read it"
        }
        _ => "",
    }
}

fn shown(value: &DataValue) -> String {
    value.value.as_ref().map(Variant::to_string).unwrap_or_default()
}

fn full(time: Option<UtcTime>) -> String {
    time.map(|time| time.to_string()).unwrap_or_default()
}

fn table(found: &HistoryPage) -> String {
    let mut columns = vec![("source time", Align::Left), ("value", Align::Right), ("status", Align::Left)];
    if !found.modifications.is_empty() {
        columns.extend([("change", Align::Left), ("at", Align::Left), ("by", Align::Left)]);
    }
    let mut table = Table::new(&columns);
    for (index, value) in found.values.iter().enumerate() {
        let mut row = vec![full(value.source_timestamp), shown(value), value.status().to_string()];
        if let Some(info) = found.modifications.get(index) {
            row.extend([
                info.update_type.to_string(),
                info.modification_time.to_string(),
                info.user_name.as_str().to_owned(),
            ]);
        }
        table.row(row);
    }
    table.to_string()
}

fn csv(found: &HistoryPage) -> String {
    let has_changes = !found.modifications.is_empty();
    let mut text = String::from("source_time,server_time,value,status");
    text.push_str(if has_changes { ",change,changed_at,changed_by\n" } else { "\n" });
    for (index, value) in found.values.iter().enumerate() {
        let mut fields = vec![
            full(value.source_timestamp),
            full(value.server_timestamp),
            shown(value),
            value.status().to_string(),
        ];
        if let Some(info) = found.modifications.get(index) {
            fields.extend([
                info.update_type.to_string(),
                info.modification_time.to_string(),
                info.user_name.as_str().to_owned(),
            ]);
        }
        let fields: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

/// A CSV field according to RFC 4180.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

fn documents(found: &HistoryPage) -> Vec<Value> {
    let one = |(index, value): (usize, &DataValue)| {
        let mut document = output::data_value(value);
        if let (Some(object), Some(info)) = (document.as_object_mut(), found.modifications.get(index)) {
            object.insert("UpdateType".into(), json!(info.update_type.to_string()));
            object.insert("ModificationTime".into(), json!(info.modification_time.to_string()));
            object.insert("UserName".into(), json!(info.user_name.as_str()));
        }
        document
    };
    found.values.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_or_before_now() {
        let ago = |text| clock::wall().ticks() - time(text).unwrap().ticks();
        assert!((ago("-1h") - 36_000_000_000).abs() < 50_000_000);
        assert!((ago("-2d") - 2 * 864_000_000_000).abs() < 50_000_000);
        assert!(ago("now") < 50_000_000);
        assert_eq!(time("now").unwrap().ticks() - time("-1m").unwrap().ticks(), 600_000_000);
        assert_eq!(time("2026-03-04T12:00:00Z").unwrap(), UtcTime::parse("2026-03-04T12:00:00Z").unwrap());
        assert!(time("yesterday").is_err() && time("-x").is_err());
        assert_eq!(aggregate("average"), Ok(Aggregate::Average));
        assert!(aggregate("mean").unwrap_err().contains("TimeAverage2"));
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(quoted("1.5"), "1.5");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
