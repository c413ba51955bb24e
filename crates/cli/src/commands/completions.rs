//! `taktwerk completions`: completion scripts for shells.

use crate::failure::Failure;
use crate::output::Output;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

/// Arguments of `taktwerk completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taktwerk completions bash > ~/.local/share/bash-completion/completions/taktwerk
  taktwerk completions zsh > ~/.zfunc/_taktwerk
  taktwerk completions fish > ~/.config/fish/completions/taktwerk.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Prints the completions.
pub(crate) fn run(arguments: &CompletionsArgs, output: Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut crate::Cli::command(), "taktwerk", &mut script);
    output.text(&String::from_utf8_lossy(&script))
}
