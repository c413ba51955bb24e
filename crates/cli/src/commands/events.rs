//! `taktwerk events`: prints events as they arrive, and reconnects if the connection is lost.

use crate::connection::ConnectionArgs;
use crate::event_stream::{EventStream, Next};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::node::NodeSpec;
use crate::output::{self, Output};
use crate::session::Session;
use crate::{resolve, span, suggestion};
use clap::Args;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::time::Duration;
use taktwerk_client::{EventQuery, event_query};
use taktwerk_net::clock::monotonic;
use taktwerk_schema::SimpleAttributeOperand;
use taktwerk_schema::ids::{object_ids, object_type_ids};
use taktwerk_schema::ns0::Ns0;
use taktwerk_types::{NodeId, Variant};

/// Arguments of `taktwerk events`.
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// The node whose events to show, with those of the nodes below it. Default: the Server Object, which has all events.
    #[arg(value_name = "NODE")]
    node: Option<NodeSpec>,

    /// Show only events for which this is true. Fields are paths of BrowseNames; operators are =, !=, <, <=, >, >=, like,
    /// between, in, is null, oftype, inview, relatedto, and, or, not.
    #[arg(short, long, value_name = "CONDITION")]
    filter: Option<String>,

    /// Also show these fields, such as SourceNode, EnabledState/Id or 2:Pressure.
    #[arg(long, value_name = "FIELD", num_args = 1.., value_delimiter = ',')]
    select: Vec<String>,

    /// Publishing interval in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "500", value_parser = span::millis)]
    interval: Duration,

    /// Queue size. If it overflows, the oldest events are lost and an EventQueueOverflowEventType is sent. 0: the
    /// server decides.
    #[arg(long, value_name = "N", default_value_t = 0)]
    queue: u32,

    /// Stop after this many events.
    #[arg(short = 'n', long, value_name = "N")]
    count: Option<u64>,

    /// Stop after this time.
    #[arg(short, long, value_name = "SPAN", value_parser = span::seconds)]
    duration: Option<Duration>,
}

/// Fields that are always selected.
const FIELDS: [&str; 7] = ["EventId", "EventType", "SourceNode", "SourceName", "Time", "Message", "Severity"];

/// Subscribes and prints until the count is reached or the user interrupts.
pub(crate) fn run(arguments: &EventsArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let query = query(&arguments.select, arguments.filter.as_deref())?;
    let mut session = Session::connect_again(&arguments.connection)?;
    let node = match &arguments.node {
        Some(spec) => resolve::one(&mut session, spec)?,
        None => NodeId::numeric(0, object_ids::SERVER),
    };
    let end = arguments.duration.map(|span| monotonic() + span);
    let loss = "; events in between are lost";
    let mut stream =
        EventStream::open(&mut session, node, &query, arguments.interval, arguments.queue, loss)?;
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 {
        match stream.next(&mut session, end, interrupt)? {
            Next::End => break,
            Next::Ready => {}
            Next::Notice(notice) => notice.print(output)?,
            Next::Event(fields) => {
                // If the connection was just lost, the event is printed without type definitions.
                let _ = learn_types(&mut session, &fields);
                print(&session, query.names(), &fields, output)?;
                left -= 1;
            }
        }
    }
    session.close();
    if interrupt.asked() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// A query for the standard fields and the given ones, optionally with a filter.
pub(super) fn query(select: &[String], filter: Option<&str>) -> Result<EventQuery, Failure> {
    for name in unknown_fields(select, filter.unwrap_or_default()) {
        let known = Ns0::get().nodes().map(|node| node.browse_name());
        let meant = suggestion::question(&name, known);
        tell!(
            "note: no type of the specification has the field {name:?}{meant}{} Write texts in single quotes, and \
             the namespace in front of other fields: 2:{name}",
            if meant.is_empty() { "." } else { "" }
        );
    }
    let names = FIELDS.iter().copied().chain(select.iter().map(String::as_str));
    let query = names.fold(EventQuery::new(), |query, name| query.select(name));
    match filter {
        Some(text) => query.filter(text).map_err(|error| Failure::Usage(format!("--filter: {error}"))),
        None => Ok(query),
    }
}

/// The fields without a namespace that no type of namespace 0 has. Servers treat them like missing fields, so the
/// condition would never be true.
fn unknown_fields(select: &[String], filter: &str) -> Vec<String> {
    let named = RefCell::new(select.to_vec());
    let field = |name: &str| {
        named.borrow_mut().push(name.to_owned());
        Ok(SimpleAttributeOperand::default())
    };
    // A syntax error in the condition is reported elsewhere.
    let _ = event_query::parse_with(filter, &field);
    let is_known = |part: &str| {
        let has_namespace =
            part.split_once(':').is_some_and(|(index, _)| index.parse::<u16>().is_ok_and(|it| it > 0));
        let name = part.strip_prefix("0:").unwrap_or(part);
        has_namespace
            || name.eq_ignore_ascii_case("ConditionId")
            || event_query::standard_field(name).is_some()
            || Ns0::get().nodes().any(|node| node.browse_name() == name)
    };
    let mut unknown: Vec<String> = named
        .into_inner()
        .iter()
        .flat_map(|name| name.split('/'))
        .filter(|part| !is_known(part))
        .map(str::to_owned)
        .collect();
    unknown.dedup();
    unknown
}

/// Reads the definitions of the structures in an event, for [`print`].
pub(super) fn learn_types(session: &mut Session, fields: &[Variant]) -> Result<(), Failure> {
    fields.iter().try_for_each(|field| session.learn_types(Some(field)))
}

/// Prints one event: as a line, or as JSON in one line.
pub(super) fn print(
    session: &Session,
    names: &[String],
    fields: &[Variant],
    output: Output,
) -> Result<(), Failure> {
    if output.is_json() {
        let mut document = Map::new();
        for (name, value) in names.iter().zip(fields) {
            let value = session.structure_document(value).unwrap_or_else(|| output::variant(value));
            document.insert(name.clone(), value);
        }
        if let Some(Variant::NodeId(id)) = fields.get(1) {
            document.insert("EventTypeName".into(), type_name(id).map_or(Value::Null, |name| json!(name)));
        }
        return output.line(&document.into());
    }
    let shown = |value: &Variant| output::in_line(&session.show(value)).into_owned();
    let text = |at: usize| fields.get(at).map(shown).unwrap_or_default();
    let time = match fields.get(4) {
        Some(Variant::DateTime(time)) => output::short(Some(*time)),
        _ => String::new(),
    };
    let kind = match fields.get(1) {
        Some(Variant::NodeId(id)) => {
            type_name(id).map_or_else(|| output::in_line(&id.to_string()).into_owned(), str::to_owned)
        }
        _ => String::new(),
    };
    let message = match fields.get(5) {
        Some(Variant::LocalizedText(message)) => output::in_line(message.text.as_str()).into_owned(),
        _ => text(5),
    };
    let severity = match fields.get(6) {
        Some(Variant::UInt16(severity)) if *severity >= 600 => output.bad(&format!("{severity:>4}")),
        _ => format!("{:>4}", text(6)),
    };
    let mut line = format!("{}  {severity}  {}  {message}", output.faint(&time), text(3));
    let more = names.iter().zip(fields).skip(FIELDS.len());
    for (name, value) in more.filter(|(_, value)| !matches!(value, Variant::Empty)) {
        line.push_str(&format!("  {}", output.faint(&format!("{name}={}", shown(value)))));
    }
    if kind != "BaseEventType" {
        line.push_str(&format!("  {}", output.faint(&format!("({kind})"))));
    }
    output.text(&line)
}

/// The name of a type of the specification.
fn type_name(id: &NodeId) -> Option<&'static str> {
    let number = id.ns0().filter(|number| *number >= object_type_ids::BASE_OBJECT_TYPE)?;
    Ns0::get().node(number).map(|node| node.browse_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_unknown_to_standard_types_are_reported() {
        let of = |filter: &str| unknown_fields(&[], filter);
        assert_eq!(of("severty >= 300 and message like '%x%'"), ["severty"]);
        assert_eq!(of("severity >= high"), ["high"]);
        assert!(of("EnabledState/Id = true and 2:Pressure > 3 and oftype i=2041").is_empty());
        assert_eq!(unknown_fields(&["ClientUserId".into(), "StatusCodId".into()], ""), ["StatusCodId"]);
    }

    #[test]
    fn types_of_the_specification_have_names() {
        assert_eq!(type_name(&NodeId::numeric(0, 2041)), Some("BaseEventType"));
        assert_eq!(type_name(&NodeId::numeric(2, 2041)), None);
    }
}
