//! `taktwerk pubsub call`: calls an Action of a responder (Part 14 §5.4.3), or lists its Actions.

use super::common::{CommonArgs, Mode, failure, publisher_id};
use super::demand;
use super::keys::Keys;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::value;
use clap::Args;
use serde_json::json;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use taktwerk::pubsub::config::without_credentials;
use taktwerk::pubsub::{ActionDescription, ActionRequestor, BrokerStatus, PublisherId};
use taktwerk_crypto::Entropy;
use taktwerk_lab::table::{Align, Table};
use taktwerk_net::OsEntropy;
use taktwerk_net::pubsub::Address;
use taktwerk_schema::{ActionTargetDataType, FieldMetaData};
use taktwerk_types::{BuiltInType, StatusCode, Variant};

/// Arguments of `taktwerk pubsub call`.
#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    common: CommonArgs,

    /// Input values of the Action in the order of its fields.
    #[arg(value_name = "ARGUMENT", allow_negative_numbers = true, requires = "action")]
    arguments: Vec<String>,

    /// PublisherId of the responder: 2234, byte:1, uint32:7, string:line-1.
    #[arg(long, value_name = "ID", value_parser = publisher_id)]
    responder: PublisherId,

    /// Name or ActionTargetId of the Action. Without it, the Actions of the responder are listed.
    #[arg(long, value_name = "NAME")]
    action: Option<String>,

    /// DataSetWriter of the Action, if several have one of that name.
    #[arg(long, value_name = "ID")]
    writer: Option<u16>,

    /// Id of the requestor. Default: random.
    #[arg(long, value_name = "ID", value_parser = publisher_id)]
    requestor: Option<PublisherId>,

    /// Address for the response: opc.udp://host:port of this machine. Default: the multicast address, else a free port.
    #[arg(long, value_name = "URL")]
    response_address: Option<String>,

    /// Call without message security. Anyone on the network can read, change and answer the request. JSON has no
    /// security.
    #[arg(long)]
    allow_unsecured: bool,
}

/// Sends the request and prints the response.
pub(super) fn run(arguments: &CallArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let common = &arguments.common;
    if common.config.is_some() {
        return Err(Failure::Usage(
            "`pubsub call` does not support --config: pass the responder's URL".to_owned(),
        ));
    }
    let keys = common.key_source(true)?;
    if common.security == Mode::None && !arguments.allow_unsecured {
        return Err(Failure::Usage(
            "an Action has effects, so its request should be secured: pass --security sign-and-encrypt with --keys or \
             --key-service, or --allow-unsecured"
                .to_owned(),
        ));
    }
    if common.security == Mode::None && keys.is_some() {
        return Err(Failure::Usage(
            "keys are given, but the request would not be secured: pass --security sign-and-encrypt"
                .to_owned(),
        ));
    }
    common.start_broker()?;
    let url = common.address()?;
    let progress = keys.as_ref().map(Keys::progress);
    let requestor = arguments.requestor.clone().unwrap_or_else(|| {
        let mut random = [0; 8];
        OsEntropy.fill(&mut random);
        PublisherId::UInt64(u64::from_le_bytes(random))
    });
    let mut builder =
        ActionRequestor::builder(&url, requestor).responder(arguments.responder.clone()).mqtt(common.mqtt());
    if let Some(interface) = &common.interface {
        builder = builder.interface(interface);
    }
    if arguments.allow_unsecured {
        builder = builder.allow_unsecured();
    }
    if let Some(keys) = keys {
        let group = keys.group().to_owned();
        builder = builder.security(common.security.mode(), &group, keys);
    }
    if let Some(address) = response_address(arguments)? {
        builder = builder.response_address(&address);
    }
    let requestor = Arc::new(builder.start().map_err(failure)?);
    let (asked, responder, timeout) =
        (Arc::clone(&requestor), arguments.responder.clone(), common.server.timeout);
    let known = wait(interrupt, move || asked.discover(responder, timeout))?.map_err(|_| {
        demand::check_received(progress.as_ref())
            .err()
            .unwrap_or_else(|| unheard(arguments, requestor.broker().as_ref()))
    })?;
    let Some(action) = &arguments.action else { return show(&known, output) };
    let (description, target) = find(&known, action, arguments.writer)?;
    let inputs = inputs(&description.request.fields, &arguments.arguments)?;
    let (writer, id) = (description.data_set_writer_id, target.action_target_id);
    let responder = arguments.responder.clone();
    match wait(interrupt, move || requestor.invoke(responder, writer, id, inputs, timeout))? {
        Ok(outputs) => print(&description.response.fields, &outputs, output),
        Err(status) => {
            let what = match status {
                StatusCode::BAD_TIMEOUT => {
                    "no response in time; the Action may or may not have been executed"
                }
                _ => status.description().unwrap_or_default(),
            };
            Err(Failure::BadStatus(format!("{action}: {status}: {what}")))
        }
    }
}

/// Interval at which interruption is checked.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(20);

/// Runs a blocking operation on another thread, so that an interrupt does not wait for it.
fn wait<T: Send + 'static>(
    interrupt: &Interrupt,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = tell.send(work());
    });
    loop {
        match told.recv_timeout(INTERRUPT_INTERVAL) {
            Ok(outcome) => return Ok(outcome),
            Err(RecvTimeoutError::Timeout) if !interrupt.asked() => {}
            Err(RecvTimeoutError::Timeout) => return Err(Failure::Interrupted),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::Environment("the request ended without a response".to_owned()));
            }
        }
    }
}

/// The error if the responder has announced no Actions, with the likely cause.
fn unheard(arguments: &CallArgs, broker: Option<&BrokerStatus>) -> Failure {
    let (responder, url) = (&arguments.responder, without_credentials(&arguments.common.url));
    if let Some(broker) = broker.filter(|broker| broker.connections() == 0) {
        let why = broker.error();
        let why = if why.is_empty() { "it has not responded".to_owned() } else { why };
        return Failure::Connect(format!("cannot connect to the broker {url}: {why}"));
    }
    let security = match arguments.common.security {
        Mode::None => "whether it responds without message security",
        _ => "whether it has the same message security and keys",
    };
    Failure::Connect(format!(
        "{responder} has announced no Actions at {url}. Check whether it runs, whether it is on this network, and {security}"
    ))
}

/// The address for the response, if it cannot be the request's address.
fn response_address(arguments: &CallArgs) -> Result<Option<String>, Failure> {
    if arguments.response_address.is_some() {
        return Ok(arguments.response_address.clone());
    }
    let Ok(Address::Udp(to)) = Address::parse(&arguments.common.url) else { return Ok(None) };
    if to.ip().is_multicast() {
        return Ok(None);
    }
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    // No packet is sent: connecting the socket selects the local address and a free port.
    let local = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(to)?;
        socket.local_addr()
    });
    let local = local.map_err(|error| Failure::Connect(format!("{to}: {error}")))?;
    Ok(Some(format!("opc.udp://{local}")))
}

/// Finds an Action by name or id.
fn find<'a>(
    known: &'a [ActionDescription],
    action: &str,
    writer: Option<u16>,
) -> Result<(&'a ActionDescription, &'a ActionTargetDataType), Failure> {
    let id: Option<u16> = action.parse().ok();
    let of_writer = known.iter().filter(|one| writer.is_none_or(|id| id == one.data_set_writer_id));
    let all = of_writer.flat_map(|one| one.targets.iter().map(move |target| (one, target)));
    let found: Vec<_> = all
        .filter(|(one, target)| {
            // An Action that is the only one of its DataSet can be called by the name of the DataSet.
            let is_only = one.targets.len() == 1 && one.request.name.as_str() == action;
            target.name.as_str() == action || Some(target.action_target_id) == id || is_only
        })
        .collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => {
            let mut names: Vec<_> =
                known.iter().flat_map(|one| one.targets.iter().map(|target| name_of(one, target))).collect();
            names.dedup();
            let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            Err(Failure::Usage(format!("unknown Action {action:?}; the responder offers {names}")))
        }
        many => {
            let writers: Vec<_> = many.iter().map(|(one, _)| one.data_set_writer_id.to_string()).collect();
            let writers = writers.join(", ");
            Err(Failure::Usage(format!("several DataSetWriters have {action:?}: --writer {writers}")))
        }
    }
}

/// The name of an Action: its own name, or that of its DataSet if it is the only one, or its number.
fn name_of(description: &ActionDescription, target: &ActionTargetDataType) -> String {
    match (target.name.as_str(), description.request.name.as_str()) {
        ("", "") => target.action_target_id.to_string(),
        ("", name) if description.targets.len() == 1 => name.to_owned(),
        ("", _) => target.action_target_id.to_string(),
        (name, _) => name.to_owned(),
    }
}

fn kind_of(field: &FieldMetaData) -> BuiltInType {
    BuiltInType::from_number(field.built_in_type).unwrap_or(BuiltInType::Variant)
}

/// Formats fields as `setpoint: Double, names: String[]`.
fn signature(fields: &[FieldMetaData]) -> String {
    let one = |field: &FieldMetaData| {
        format!("{}: {}{}", field.name, kind_of(field), if field.value_rank >= 0 { "[]" } else { "" })
    };
    fields.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn inputs(fields: &[FieldMetaData], given: &[String]) -> Result<Vec<Variant>, Failure> {
    if fields.len() != given.len() {
        let wanted = if fields.is_empty() { "none".to_owned() } else { signature(fields) };
        return Err(Failure::Usage(format!(
            "the Action takes {} arguments, not {}: {wanted}",
            fields.len(),
            given.len()
        )));
    }
    let parse = |(field, text): (&FieldMetaData, &String)| {
        value::parse(text, kind_of(field), field.value_rank == -1)
            .map_err(|error| Failure::Usage(format!("argument {}: {error}", field.name)))
    };
    fields.iter().zip(given).map(parse).collect()
}

/// Prints the Actions of a responder.
fn show(known: &[ActionDescription], output: Output) -> Result<(), Failure> {
    if output.is_json() {
        let fields = |fields: &[FieldMetaData]| {
            let one = |field: &FieldMetaData| {
                json!({
                    "Name": field.name.as_str(),
                    "Type": kind_of(field).to_string(),
                    "ValueRank": field.value_rank,
                })
            };
            fields.iter().map(one).collect::<Vec<_>>()
        };
        let actions = known.iter().flat_map(|one| {
            one.targets.iter().map(move |target| {
                json!({
                    "DataSetWriterId": one.data_set_writer_id,
                    "ActionTargetId": target.action_target_id,
                    "Name": target.name.as_str(),
                    "Description": target.description.text.as_str(),
                    "Request": fields(&one.request.fields),
                    "Response": fields(&one.response.fields),
                })
            })
        });
        return output.document(&json!(actions.collect::<Vec<_>>()));
    }
    let mut table = Table::new(&[
        ("writer", Align::Right),
        ("action", Align::Right),
        ("name", Align::Left),
        ("takes", Align::Left),
        ("gives", Align::Left),
    ]);
    for one in known {
        for target in &one.targets {
            table.row([
                one.data_set_writer_id.to_string(),
                target.action_target_id.to_string(),
                name_of(one, target),
                signature(&one.request.fields),
                signature(&one.response.fields),
            ]);
        }
    }
    output.text(&if table.is_empty() {
        "the responder offers no Actions".to_owned()
    } else {
        table.to_string()
    })
}

/// Prints the results.
fn print(fields: &[FieldMetaData], outputs: &[Variant], output: Output) -> Result<(), Failure> {
    let name =
        |at: usize| fields.get(at).map_or_else(|| at.to_string(), |field| field.name.as_str().to_owned());
    if output.is_json() {
        let outputs = outputs.iter().enumerate().map(
            |(at, value)| json!({ "Name": name(at), "Type": value.type_name(), "Value": output::variant(value) }),
        );
        return output
            .document(&json!({ "StatusCode": output::status(StatusCode::GOOD), "Outputs": outputs.collect::<Vec<_>>() }));
    }
    let mut table = Table::new(&[("output", Align::Left), ("value", Align::Left), ("type", Align::Left)]);
    for (at, value) in outputs.iter().enumerate() {
        table.row([name(at), value.to_string(), value.type_name()]);
    }
    output.text(&if table.is_empty() { "done".to_owned() } else { table.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk::pubsub::config::build::field;

    fn description(writer: u16, names: &[&str]) -> ActionDescription {
        let targets = (1..).zip(names).map(|(action_target_id, name)| ActionTargetDataType {
            action_target_id,
            name: (*name).into(),
            ..ActionTargetDataType::default()
        });
        ActionDescription { data_set_writer_id: writer, targets: targets.collect(), ..Default::default() }
    }

    #[test]
    fn actions_are_found_by_name_and_id() {
        let known = [description(1, &["heat", "cool"]), description(2, &["heat"])];
        let find = |action, writer| {
            let found = find(&known, action, writer);
            found.map(|(one, target)| (one.data_set_writer_id, target.action_target_id))
        };
        assert_eq!(find("cool", None).ok(), Some((1, 2)));
        assert_eq!(find("2", None).ok(), Some((1, 2)));
        assert_eq!(find("heat", Some(2)).ok(), Some((2, 1)));
        let error = |action| format!("{:?}", find(action, None));
        assert!(error("heat").contains("--writer 1, 2"));
        assert!(error("stir").contains("the responder offers heat, cool, heat"), "{}", error("stir"));
        // An Action without a name has the name of its data set.
        let mut unnamed = description(3, &[""]);
        assert_eq!(name_of(&unnamed, &unnamed.targets[0]), "1");
        unnamed.request.name = "stir".into();
        assert_eq!(name_of(&unnamed, &unnamed.targets[0]), "stir");
        assert!(super::find(&[unnamed], "stir", None).is_ok());
    }

    #[test]
    fn arguments_have_the_types_of_the_responder() {
        let fields = [field("setpoint", BuiltInType::Double), field("name", BuiltInType::String)];
        assert_eq!(signature(&fields), "setpoint: Double, name: String");
        let typed = inputs(&fields, &["21.5".to_owned(), "[x".to_owned()]).ok();
        assert_eq!(typed, Some(vec![21.5.into(), "[x".into()]));
        let refused = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(|text| (*text).to_owned()).collect();
            format!("{:?}", inputs(&fields, &given))
        };
        assert!(refused(&["x", "y"]).contains("argument setpoint"));
        assert!(refused(&["1"]).contains("takes 2 arguments, not 1: setpoint: Double, name: String"));
    }
}
