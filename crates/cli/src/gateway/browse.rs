//! `taktwerk gateway browse`: what a source offers, as a table or as TOML tags.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Waiting;
use crate::span;
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use taktwerk_config::file;
use taktwerk_gateway::GatewayConfig;
use taktwerk_gateway::configuration::SourceConfig;
use taktwerk_gateway::discover;
use taktwerk_gateway::offer::{Offer, Question};
use taktwerk_lab::table::{Align, Table};

/// Arguments of `taktwerk gateway browse`.
#[derive(Debug, Args)]
pub(crate) struct BrowseArgs {
    /// A configuration file, or a URL: opc.tcp://…, mqtt://…, http://…, modbus://host[:port], modbus:///dev/ttyUSB0
    #[arg(value_name = "FILE|URL")]
    target: String,

    /// Source in the file. Default: the only one.
    source: Option<String>,

    /// How long to listen to a broker.
    #[arg(long = "for", value_name = "SPAN", default_value = "5s", value_parser = span::seconds)]
    within: Duration,

    /// Start node: a NodeId, or a filter of MQTT topics.
    #[arg(long, value_name = "NODE|TOPIC")]
    below: Option<String>,

    /// Stop after this many values.
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    most: usize,

    /// Print [[tag]] sections to paste into the configuration.
    #[arg(long, conflicts_with = "json")]
    toml: bool,
}

/// Browses and prints.
pub(crate) fn run(arguments: &BrowseArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut source = source(arguments)?;
    let question = Question {
        settings: source.settings.clone(),
        within: arguments.within,
        below: arguments.below.clone(),
        most: arguments.most,
        stop: interrupt.flag(),
    };
    let name = source.settings.name.clone();
    let waiting = Waiting::of_time(format!("asking {}", source.adapter.describe()), arguments.within);
    let offers = discover::offers(&mut source, &question);
    drop(waiting);
    let offers = offers.map_err(|fault| Failure::Connect(fault.to_string()))?;
    if output.is_json() {
        output.document(&offers.iter().map(|offer| document(offer, &name)).collect())?;
    } else if arguments.toml {
        print_tags(arguments, &offers, &name, output)?;
    } else if offers.is_empty() {
        output.text("nothing was found; a broker may need a longer --for")?;
    } else {
        output.text(&table(&offers).to_string())?;
    }
    if offers.len() >= arguments.most {
        tell!("there may be more than --most {}", arguments.most);
    }
    if interrupt.asked() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Prints the sections of tags that can be pasted into the configuration, and says what is left out.
fn print_tags(arguments: &BrowseArgs, offers: &[Offer], source: &str, output: Output) -> Result<(), Failure> {
    let target = &arguments.target;
    let configuration = match target.contains("://") {
        true => discover::section_of_url(target).map_err(Failure::Usage)?,
        false => text_of(target)?,
    };
    let tags: Vec<String> = offers.iter().filter_map(|offer| offer.tag(source)).collect();
    let (types, without) = types_without_tags(offers);
    let (tags, refused) = discover::accepted(Path::new(target), &configuration, tags);
    output.data(&tags.join("\n"))?;
    if without > 0 {
        let values = crate::output::counted(without, "value");
        tell!(
            "left out {values} of types that tags cannot have: {types}. A source of type opcua shows them with mirror"
        );
    }
    if let Some(first) = refused.first() {
        let tags = crate::output::counted(refused.len(), "tag");
        tell!(
            "left out {tags} that the configuration would refuse, the first one because of: {}",
            first.problem
        );
    }
    Ok(())
}

/// The types of offers that no tag can show, and the number of these offers.
fn types_without_tags(offers: &[Offer]) -> (String, usize) {
    let without: Vec<&Offer> = offers.iter().filter(|offer| offer.settings.is_empty()).collect();
    let types: BTreeSet<&str> = without.iter().map(|offer| offer.kind.as_str()).collect();
    (types.into_iter().collect::<Vec<_>>().join(", "), without.len())
}

fn text_of(target: &str) -> Result<String, Failure> {
    file::read_text(Path::new(target), taktwerk_config::FILE_LEN_MAX)
        .map_err(|error| Failure::Usage(format!("{target}: {error}")))
}

fn source(arguments: &BrowseArgs) -> Result<SourceConfig, Failure> {
    let target = &arguments.target;
    if target.contains("://") {
        return discover::source_of_url(target).map_err(Failure::Usage);
    }
    let path = Path::new(target);
    let text = text_of(target)?;
    let config = GatewayConfig::parse(path, &text).map_err(|mistake| Failure::Usage(mistake.to_string()))?;
    let mut sources = config.map(|config| config.sources).unwrap_or_default();
    let names: Vec<String> = sources.iter().map(|source| source.settings.name.clone()).collect();
    let index = match &arguments.source {
        Some(wanted) => names.iter().position(|name| name == wanted).ok_or_else(|| {
            let question = crate::suggestion::question(wanted, names.iter().map(String::as_str));
            Failure::Usage(format!("{target}: unknown source {wanted:?}{question}"))
        })?,
        None if sources.len() == 1 => 0,
        None => {
            let problem = if names.is_empty() { "there is no [[source]]" } else { "name one of its sources" };
            return Err(Failure::Usage(format!("{target}: {problem}: {}", names.join(", "))));
        }
    };
    Ok(sources.swap_remove(index))
}

fn table(offers: &[Offer]) -> Table {
    let mut table = Table::new(&[
        ("address", Align::Tail),
        ("name", Align::Left),
        ("type", Align::Left),
        ("value", Align::Left),
    ]);
    for offer in offers {
        table.row([&offer.address, &offer.name, &offer.kind, &offer.value]);
    }
    table
}

fn document(offer: &Offer, source: &str) -> Value {
    json!({
        "Address": offer.address,
        "Name": offer.name,
        "Path": offer.path,
        "Type": offer.kind,
        "Value": offer.value,
        "Tag": offer.tag(source),
    })
}
