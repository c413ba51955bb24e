//! The source of the tuning problem: a plant, a scenario, or a running server.

use super::{TuneArgs, probe};
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::text_file;
use std::fmt::Write;
use std::path::Path;
use taktwerk_lab::scenario::{Kind, Scenario};
use taktwerk_model::document::Document;
use taktwerk_model::tune::Problem;
use taktwerk_model::tune::problem::Options;
use taktwerk_types::{ExpandedNodeId, ParseNodeIdError};

/// The tuning problem, and what is known about its server.
pub(super) struct Target {
    pub(super) problem: Problem,
    pub(super) endpoint: String,
    pub(super) notes: Vec<String>,
}

const HERE: &str = "opc.tcp://localhost:4840";

/// Reads a file or observes a server.
pub(super) fn read(
    arguments: &TuneArgs,
    options: &Options,
    interrupt: &Interrupt,
) -> Result<Target, Failure> {
    let path = Path::new(&arguments.target);
    let is_file = path.is_file() || path.extension().is_some_and(|ending| ending == "toml");
    if !is_file {
        let endpoint: Endpoint = arguments.target.parse().map_err(|error| {
            Failure::Usage(format!("{} is neither a file nor the URL of a server: {error}", arguments.target))
        })?;
        return probe::server(arguments, options, endpoint, interrupt);
    }
    if let Some(node) = arguments.node.first() {
        let why = "it is for the URL of a running server. A plant names its nodes in [[signals]]";
        return Err(Failure::Usage(format!("--node {node} has no effect with a file: {why}")));
    }
    let file = arguments.target.as_str();
    let text = text_file::read(path)?;
    let is_scenario = toml::from_str::<toml::Table>(&text).is_ok_and(|table| table.contains_key("load"));
    let (text, notes) = if is_scenario { of_scenario(&text, file)? } else { (text, Vec::new()) };
    let mut problem = parse(&text, file, options)?;
    check_nodes(&mut problem)?;
    Ok(Target { problem, endpoint: HERE.to_owned(), notes })
}

/// Other programs refuse their whole configuration because of one NodeId that is wrong. All get the usual form.
fn check_nodes(problem: &mut Problem) -> Result<(), Failure> {
    let mut nodes = core::mem::take(&mut problem.nodes);
    for (at, node) in
        nodes.iter_mut().enumerate().flat_map(|(at, all)| all.iter_mut().map(move |one| (at, one)))
    {
        let wrong = |told: &str| {
            let place = problem.place(&format!("signals.{at}.nodes"));
            Failure::Usage(format!("{place}: {told}"))
        };
        let id: ExpandedNodeId = node.parse().map_err(|error: ParseNodeIdError| wrong(&error.to_string()))?;
        if id.server_index != 0 {
            return Err(wrong(&format!("{node}: name nodes of the server itself, without svr=")));
        }
        *node = id.to_string();
        if *node == "s=" || node.ends_with(";s=") {
            return Err(wrong(&format!("{node}: the identifier is empty")));
        }
    }
    problem.nodes = nodes;
    Ok(())
}

pub(super) fn parse(text: &str, file: &str, options: &Options) -> Result<Problem, Failure> {
    Problem::parse(text, file, options).map_err(|error| Failure::Usage(error.to_string()))
}

/// The plant that is equivalent to the first subscription of a scenario.
fn of_scenario(text: &str, file: &str) -> Result<(String, Vec<String>), Failure> {
    let scenario = Scenario::parse(text, file).map_err(|error| Failure::Usage(error.to_string()))?;
    let conditions = scenario.conditions();
    let Some(first) = conditions.iter().find(|one| one.kind == Kind::Subscribe) else {
        return Err(Failure::Usage(format!(
            "{file} has no subscriptions: tune needs a scenario with load.kind = \"subscribe\""
        )));
    };
    let clients = first.clients.max(1);
    let items = first.items.unwrap_or(clients).div_ceil(clients).max(1);
    let interval = first.publishing_ms.unwrap_or(1_000.0);
    let period = Some(first.server.update_ms).filter(|update| *update > 0.0).unwrap_or(interval);
    // The link is on the line that it has in the scenario, because errors name it.
    let document = Document::parse(text, file, &[]).map_err(|error| Failure::Usage(error.to_string()))?;
    let above = document.line("link").map_or(0, |line| line - 1);
    let mut plant = "\n".repeat(above);
    // Writing to a `String` does not fail.
    if let Some(link) = &first.link {
        let _ = writeln!(plant, "link = {link:?}");
    }
    let _ = writeln!(plant, "name = {:?}", scenario.name);
    let _ = writeln!(plant, "[[signals]]\ncount = {items}\nperiod_ms = {period:?}");
    let _ = writeln!(plant, "[tune]\nclients = {clients}");
    // The scenario has been checked: its mode is None, Sign or SignAndEncrypt.
    let security = match first.security.mode.to_ascii_lowercase().as_str() {
        "none" => "none",
        "sign" => "sign",
        _ => "sign-and-encrypt",
    };
    let _ = writeln!(plant, "[tune.search]\nsecurity = \"{security}\"");
    let mut notes = Vec::new();
    if conditions.len() > 1 {
        notes.push(format!(
            "the scenario has {} conditions: this is the first with a subscription",
            conditions.len()
        ));
    }
    Ok((plant, notes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_model::tune::Security;

    #[test]
    fn the_link_of_a_scenario_keeps_its_line() {
        let text = "name = \"x\"\n# far away\nlink = \"ppp-2m\"\n[load]\nkind = \"subscribe\"\nitems = 3\n";
        let (plant, _) = of_scenario(text, "x.toml").unwrap();
        let problem = parse(&plant, "x.toml", &Options::default()).unwrap();
        assert_eq!((problem.place_of_rate().as_str(), problem.name.as_str()), ("x.toml:3: link", "x"));
    }

    #[test]
    fn the_security_of_a_scenario_is_that_of_the_plant() {
        let of = |policy: &str, mode: &str| {
            let text = format!(
                "name = \"x\"\n[load]\nkind = \"subscribe\"\nitems = 3\n[security]\npolicy = \"{policy}\"\nmode = \"{mode}\"\n"
            );
            let (plant, _) = of_scenario(&text, "x.toml").unwrap();
            let problem = parse(&plant, "x.toml", &Options::default()).unwrap();
            let all: Vec<Security> = problem.space.others.iter().map(|settings| settings.security).collect();
            all
        };
        assert_eq!(of("Basic256Sha256", "Sign"), [Security::Sign]);
        assert_eq!(of("Basic256Sha256", "SignAndEncrypt"), [Security::SignAndEncrypt]);
        assert_eq!(of("None", "None"), [Security::None]);
    }
}
