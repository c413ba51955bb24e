//! `taktwerk gateway scan`: searches the given hosts and ports for Modbus units and OPC UA servers.

use super::targets;
use crate::connection::{ConnectionArgs, SecurityArgs};
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use crate::session::{self, policy_name};
use crate::span;
use clap::Args;
use serde_json::{Value, json};
use std::time::Duration;
use taktwerk_gateway::adapter::modbus::link::Way;
use taktwerk_gateway::adapter::modbus::scan::object_name;
use taktwerk_gateway::discover::{self, Scanned};
use taktwerk_gateway::serial::{Parity, SerialLine};
use taktwerk_lab::table::{Align, Table};
use taktwerk_schema::{ApplicationDescription, EndpointDescription};

/// Arguments of `taktwerk gateway scan`.
#[derive(Debug, Args)]
#[group(id = "targets", required = true, multiple = true, args = ["modbus", "opcua"])]
pub(crate) struct ScanArgs {
    /// Look for Modbus units at HOST[:PORT[-PORT]]; HOST can be a range such as 10.0.0.1-20. Or at a serial line such as
    /// /dev/ttyUSB0. Can be repeated.
    #[arg(long, value_name = "RANGE")]
    modbus: Vec<String>,

    /// The numbers of the units to look for.
    #[arg(long, value_name = "UNITS", default_value = "1-10", value_parser = targets::units)]
    units: Units,

    /// The devices speak RTU over TCP.
    #[arg(long)]
    rtu: bool,

    /// Bits per second of serial lines.
    #[arg(long, value_name = "N", default_value_t = 19_200, value_parser = clap::value_parser!(u32).range(300..=4_000_000))]
    baud: u32,

    /// Parity of serial lines.
    #[arg(long, value_name = "PARITY", default_value = "even", value_parser = PARITIES.map(|(name, _)| name))]
    parity: String,

    /// Timeout of a Modbus unit.
    #[arg(long, value_name = "SPAN", default_value = "500ms", value_parser = span::seconds)]
    answer_within: Duration,

    /// List the servers that the discovery server at this URL knows, and its endpoints.
    #[arg(long, value_name = "URL")]
    opcua: Vec<Endpoint>,

    #[command(flatten)]
    security: SecurityArgs,
}

/// Unit numbers. An alias, because clap takes a `Vec` for a repeated argument.
type Units = Box<[u8]>;

/// The response of an OPC UA server.
struct Discovered {
    url: String,
    outcome: Result<(Vec<ApplicationDescription>, Vec<EndpointDescription>), Failure>,
}

/// The words for the parity of a line.
const PARITIES: [(&str, Parity); 3] = [("even", Parity::Even), ("odd", Parity::Odd), ("none", Parity::None)];

impl ScanArgs {
    fn line(&self, device: &str) -> SerialLine {
        let parity = PARITIES.iter().find(|(name, _)| *name == self.parity);
        SerialLine {
            device: device.to_owned(),
            baud: self.baud,
            parity: parity.map_or(Parity::Even, |(_, parity)| *parity),
            stop_bits: 1,
            data_bits: 8,
        }
    }
}

/// Scans and prints.
pub(crate) fn run(arguments: &ScanArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut ways = Vec::new();
    for range in &arguments.modbus {
        if range.starts_with('/') {
            ways.push(Way::Serial(arguments.line(range)));
            continue;
        }
        for (host, port) in targets::targets(range, 502).map_err(Failure::Usage)? {
            ways.push(if arguments.rtu { Way::RtuOverTcp(host, port) } else { Way::Tcp(host, port) });
        }
    }
    let mut progress = Progress::new("scanning", ways.len() as u64);
    let scanned =
        discover::scan_modbus(ways, &arguments.units, arguments.answer_within, &interrupt.flag(), |done| {
            progress.at(done as u64);
        });
    drop(progress);
    let scanned = scanned.map_err(|error| Failure::Environment(format!("cannot scan: {error}")))?;
    let discovered: Vec<Discovered> = arguments
        .opcua
        .iter()
        .map(|endpoint| {
            let connection =
                ConnectionArgs { endpoint: endpoint.clone(), security: arguments.security.clone() };
            Discovered { url: endpoint.to_string(), outcome: session::discovery(&connection) }
        })
        .collect();
    if output.is_json() {
        output.document(&json!({
            "Modbus": scanned.iter().map(modbus_document).collect::<Vec<_>>(),
            "OpcUa": discovered.iter().map(opcua_document).collect::<Vec<_>>(),
        }))?;
    } else {
        let mut text = String::new();
        if !arguments.modbus.is_empty() {
            text.push_str(&modbus_text(&scanned));
        }
        discovered.iter().for_each(|server| text.push_str(&opcua_text(server)));
        output.text(&text)?;
    }
    if interrupt.asked() {
        return Err(Failure::Interrupted);
    }
    let has_answer = scanned.iter().any(|it| it.units.as_ref().is_ok_and(|units| !units.is_empty()))
        || discovered.iter().any(|server| server.outcome.is_ok());
    if has_answer {
        Ok(())
    } else {
        Err(Failure::Connect(
            "no device answered: check the addresses, or raise \
     --answer-within"
                .to_owned(),
        ))
    }
}

fn modbus_text(scanned: &[Scanned]) -> String {
    let mut table = Table::new(&[
        ("address", Align::Left),
        ("unit", Align::Right),
        ("identification", Align::Left),
        ("holding:0", Align::Left),
    ]);
    let (mut silent, mut closed) = (0, 0);
    let mut reason = None;
    for host in scanned {
        match &host.units {
            Err(fault) => {
                closed += 1;
                reason.get_or_insert_with(|| fault.to_string());
            }
            Ok(units) if units.is_empty() => silent += 1,
            Ok(units) => {
                for unit in units {
                    let identity: Vec<&str> = unit.identity.iter().map(|(_, text)| text.as_str()).collect();
                    table.row([
                        host.way.target(),
                        unit.number.to_string(),
                        identity.join(", "),
                        unit.exception.clone().unwrap_or_else(|| "can be read".to_owned()),
                    ]);
                }
            }
        }
    }
    let mut text = if table.is_empty() { String::new() } else { table.to_string() };
    if silent > 0 {
        text.push_str(&format!("{silent} of {} accept connections, but no unit answers\n", scanned.len()));
    }
    if let Some(reason) = reason {
        text.push_str(&format!("{closed} of {} do not accept connections: {reason}\n", scanned.len()));
    }
    text
}

fn modbus_document(host: &Scanned) -> Value {
    let units = host.units.as_ref().map(|units| {
        let units = units.iter().map(|unit| {
            let identity: serde_json::Map<String, Value> =
                unit.identity.iter().map(|(id, text)| (object_name(*id).to_owned(), json!(text))).collect();
            json!({ "Unit": unit.number, "Identity": identity, "Exception": unit.exception })
        });
        units.collect::<Vec<_>>()
    });
    let (address, port, device) = match &host.way {
        Way::Tcp(host, port) | Way::RtuOverTcp(host, port) => (Some(host), Some(port), None),
        Way::Serial(line) => (None, None, Some(&line.device)),
    };
    json!({
        "Host": address,
        "Port": port,
        "Device": device,
        "Units": units.as_ref().ok(),
        "Error": units.as_ref().err().map(ToString::to_string),
    })
}

fn opcua_text(server: &Discovered) -> String {
    let (servers, endpoints) = match &server.outcome {
        Ok(found) => found,
        Err(failure) => return format!("{}: {failure}\n", server.url),
    };
    let mut known =
        Table::new(&[("server", Align::Left), ("type", Align::Left), ("discovery URL", Align::Wrap)]);
    for found in servers {
        let urls: Vec<&str> = found.discovery_urls.iter().map(|url| url.as_str()).collect();
        known.row([found.application_name.to_string(), found.application_type.to_string(), urls.join(" ")]);
    }
    let mut table = Table::new(&[("endpoint", Align::Wrap), ("mode", Align::Left), ("policy", Align::Left)]);
    for endpoint in endpoints {
        table.row([
            endpoint.endpoint_url.as_str(),
            &endpoint.security_mode.to_string(),
            policy_name(endpoint),
        ]);
    }
    format!("{known}\n{table}")
}

fn opcua_document(server: &Discovered) -> Value {
    let found = server.outcome.as_ref();
    json!({
        "Url": server.url,
        "Servers": found.ok().map(|(servers, _)| servers.iter().map(|it| json!({
            "ApplicationName": it.application_name.to_string(),
            "ApplicationUri": it.application_uri.as_str(),
            "ApplicationType": it.application_type.to_string(),
            "DiscoveryUrls": it.discovery_urls.iter().map(|url| url.as_str()).collect::<Vec<_>>(),
        })).collect::<Vec<_>>()),
        "Endpoints": found.ok().map(|(_, endpoints)| endpoints.iter().map(|it| json!({
            "EndpointUrl": it.endpoint_url.as_str(),
            "SecurityMode": it.security_mode.to_string(),
            "SecurityPolicyUri": it.security_policy_uri.as_str(),
        })).collect::<Vec<_>>()),
        "Error": found.err().map(ToString::to_string),
    })
}
