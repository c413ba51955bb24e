//! `taktwerk call`: calls a method with typed arguments.

use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::node::NodeSpec;
use crate::output::{self, Output};
use crate::session::{self, Session};
use crate::{attribute::Attribute, resolve, value, walk};
use clap::Args;
use serde_json::json;
use taktwerk_lab::table::{Align, Table};
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{
    Argument, BrowseDescription, BrowseDirection, BrowseRequest, CallMethodRequest, CallRequest, NodeClass,
    ReadValueId,
};
use taktwerk_types::{ArrayValues, BuiltInType, NodeId, Variant};

/// Arguments of `taktwerk call`.
#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// The method: a NodeId or a browse path.
    #[arg(value_name = "METHOD")]
    method: NodeSpec,

    /// The method's arguments in their order, typed as its InputArguments say.
    #[arg(value_name = "ARGUMENT", allow_negative_numbers = true)]
    arguments: Vec<String>,

    /// Object to call the method on. Default: the object that has the method.
    #[arg(short, long, value_name = "NODE")]
    object: Option<NodeSpec>,
}

/// Calls and prints the results.
pub(crate) fn run(arguments: &CallArgs, output: Output) -> Result<(), Failure> {
    let mut session = Session::connect(&arguments.connection)?;
    let method = resolve::one(&mut session, &arguments.method)?;
    check_class(&mut session, &method)?;
    let object = match &arguments.object {
        Some(object) => resolve::one(&mut session, object)?,
        None => owner(&mut session, &method)?,
    };
    let described = described_arguments(&mut session, &method)?;
    let inputs = inputs(&mut session, &described.0, &arguments.arguments)?;
    let request = CallMethodRequest { object_id: object, method_id: method.clone(), input_arguments: inputs };
    let response = session.request(CallRequest { methods_to_call: vec![request], ..Default::default() })?;
    let result = response.results.into_iter().next().unwrap_or_default();
    for value in &result.output_arguments {
        session.learn_types(Some(value))?;
    }
    let name =
        |at: usize| described.1.get(at).map_or(String::new(), |argument| argument.name.as_str().to_owned());
    if output.is_json() {
        let outputs = result.output_arguments.iter().enumerate().map(|(at, value)| {
            json!({ "Name": name(at), "Type": value.type_name(), "Value": output::variant(value) })
        });
        output.document(&json!({
            "MethodId": method.to_string(),
            "StatusCode": output::status(result.status_code),
            "InputArgumentResults": result.input_argument_results.iter().map(|code| output::status(*code)).collect::<Vec<_>>(),
            "OutputArguments": outputs.collect::<Vec<_>>(),
        }))?;
    } else if !result.status_code.is_bad() {
        let mut table = Table::new(&[("output", Align::Left), ("value", Align::Left), ("type", Align::Left)]);
        for (at, value) in result.output_arguments.iter().enumerate() {
            table.row([name(at), session.show(value), value.type_name()]);
        }
        output.text(&if table.is_empty() { result.status_code.to_string() } else { table.to_string() })?;
    }
    session.close();
    if result.status_code.is_bad() {
        let wrong: Vec<String> = result
            .input_argument_results
            .iter()
            .enumerate()
            .filter(|(_, status)| status.is_bad())
            .map(|(at, status)| {
                let input = described.0.get(at).map_or("", |argument| argument.name.as_str());
                format!("argument {} {input}: {status}", at + 1)
            })
            .collect();
        let why = result.status_code.description().unwrap_or_default();
        let advice = session::advice(&method, result.status_code);
        return Err(Failure::BadStatus(
            format!("{method}: {}: {why}{advice} {}", result.status_code, wrong.join(", "))
                .trim_end()
                .to_owned(),
        ));
    }
    Ok(())
}

/// Refuses nodes that are not methods. Servers would return Bad_MethodInvalid, which does not name the reason.
fn check_class(session: &mut Session, method: &NodeId) -> Result<(), Failure> {
    let id = ReadValueId {
        node_id: method.clone(),
        attribute_id: Attribute::NODE_CLASS.id(),
        ..Default::default()
    };
    let read = session.read(vec![id])?.into_iter().next().unwrap_or_default();
    match read.value {
        Some(Variant::Int32(class)) if class != NodeClass::METHOD.0 => {
            let class = NodeClass(class);
            let advice = if class == NodeClass::VARIABLE { ": read or write it instead" } else { "" };
            Err(Failure::Usage(format!("{method} is of the node class {class}, not a Method{advice}")))
        }
        _ => Ok(()),
    }
}

/// The object that has the method as a component.
fn owner(session: &mut Session, method: &NodeId) -> Result<NodeId, Failure> {
    let description = BrowseDescription {
        node_id: method.clone(),
        browse_direction: BrowseDirection::INVERSE,
        reference_type_id: NodeId::numeric(0, reference_type_ids::HAS_COMPONENT),
        include_subtypes: true,
        node_class_mask: 0,
        result_mask: 0x3f,
    };
    let response =
        session.request(BrowseRequest { nodes_to_browse: vec![description], ..Default::default() })?;
    let result = response.results.into_iter().next().unwrap_or_default();
    if result.status_code.is_bad() {
        return Err(Failure::BadStatus(format!("{method}: {}", result.status_code)));
    }
    let owners: Vec<NodeId> =
        result.references.iter().filter_map(|found| found.node_id.local().cloned()).collect();
    match owners.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(Failure::Usage(format!("{method} belongs to no object: name one with --object"))),
        many => Err(Failure::Usage(format!(
            "{method} belongs to {} objects: name one with --object, for example {}",
            many.len(),
            many.first().cloned().unwrap_or_default()
        ))),
    }
}

/// InputArguments and OutputArguments.
fn described_arguments(
    session: &mut Session,
    method: &NodeId,
) -> Result<(Vec<Argument>, Vec<Argument>), Failure> {
    let mut described = (Vec::new(), Vec::new());
    let children = walk::children(session, std::slice::from_ref(method))?.into_iter().next();
    for child in children.transpose()?.unwrap_or_default() {
        let target = match child.browse_name.name.as_str() {
            "InputArguments" => &mut described.0,
            "OutputArguments" => &mut described.1,
            _ => continue,
        };
        let id =
            ReadValueId { node_id: child.node_id, attribute_id: Attribute::VALUE.id(), ..Default::default() };
        let read = session.read(vec![id])?.into_iter().next().unwrap_or_default();
        if read.status().is_bad() {
            // Without the descriptions, the method would be called with too few arguments.
            return Err(Failure::BadStatus(format!(
                "{} of {method}: {}",
                child.browse_name.name,
                read.status()
            )));
        }
        let value = read.value;
        if let Some(Variant::Array(array)) = value
            && let ArrayValues::ExtensionObject(objects) = &array.values
        {
            target.extend(objects.iter().filter_map(|object| object.decode::<Argument>().ok()));
        }
    }
    Ok(described)
}

fn inputs(session: &mut Session, described: &[Argument], given: &[String]) -> Result<Vec<Variant>, Failure> {
    if described.len() != given.len() {
        let names: Vec<String> = described
            .iter()
            .map(|argument| format!("{} ({})", argument.name, session.type_name(&argument.data_type)))
            .collect();
        return Err(Failure::Usage(format!(
            "the method takes {} arguments, not {}: {}",
            described.len(),
            given.len(),
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        )));
    }
    let mut values = Vec::with_capacity(given.len());
    for (argument, text) in described.iter().zip(given) {
        let kind = session.built_in_type(&argument.data_type)?.unwrap_or(BuiltInType::String);
        let value = if kind == BuiltInType::ExtensionObject {
            session.structure_from_json(&argument.data_type, text)?
        } else {
            value::parse(text, kind, argument.value_rank == -1)
                .map_err(|error| Failure::Usage(format!("argument {}: {error}", argument.name)))?
        };
        values.push(value);
    }
    Ok(values)
}
