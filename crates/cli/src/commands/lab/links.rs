//! `taktwerk lab links`: the networks that can be emulated.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use clap::Subcommand;
use serde_json::json;
use taktwerk_lab::links::profile::{NAMES, named, short};
use taktwerk_lab::table::{Align, Table};

/// What can be done with links.
#[derive(Debug, Subcommand)]
pub(crate) enum LinksCommand {
    /// The named links and their figures.
    List,
}

/// Runs one of them.
pub(crate) fn run(command: &LinksCommand, output: Output, _interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        LinksCommand::List => list(output),
    }
}

fn list(output: Output) -> Result<(), Failure> {
    let profiles: Vec<_> = NAMES.iter().filter_map(|name| named(name)).collect();
    if output.is_json() {
        return output.document(&json!(profiles));
    }
    let mut table = Table::new(&[
        ("link", Align::Left),
        ("round trip", Align::Right),
        ("up", Align::Left),
        ("down", Align::Left),
    ]);
    for profile in &profiles {
        let round_trip = format!(
            "{} ± {} ms",
            short(profile.round_trip(100) * 1e3),
            short(profile.round_trip_std() * 1e3)
        );
        let down = if profile.up == profile.down { "the same".to_owned() } else { profile.down.to_string() };
        table.row([profile.name.clone(), round_trip, profile.up.to_string(), down]);
    }
    output.text(&table.to_string())?;
    output.text(
        "\nAlso NAME+vpn (WireGuard), NAME,key=value and rate=…,delay=…,jitter=…,loss=…: see docs/lab/links.md.",
    )
}
