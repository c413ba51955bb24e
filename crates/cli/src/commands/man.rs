//! `taktwerk man`: writes a manual page for each command.

use crate::failure::Failure;
use crate::output::Output;
use clap::{Args, CommandFactory};
use std::path::PathBuf;

/// Arguments of `taktwerk man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  taktwerk man ~/.local/share/man/man1 && man taktwerk-read")]
pub(crate) struct ManArgs {
    /// The directory to write the pages to; created if it is missing.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Writes the pages.
pub(crate) fn run(arguments: &ManArgs, output: Output) -> Result<(), Failure> {
    let directory = &arguments.directory;
    std::fs::create_dir_all(directory)
        .and_then(|()| {
            clap_mangen::generate_to(
                unhidden(crate::examples::with_examples(crate::Cli::command())),
                directory,
            )
        })
        .map_err(|error| Failure::Environment(format!("cannot write to {}: {error}", directory.display())))?;
    output.text(&format!("wrote the manual pages to {}", directory.display()))
}

/// A command with the options that `-h` hides; otherwise the pages would lack them.
fn unhidden(command: clap::Command) -> clap::Command {
    command.mut_args(|argument| argument.hide_short_help(false)).mut_subcommands(unhidden)
}
