//! `taktwerk lab flood` in a build without the feature `attack`: prints how to build it.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use clap::Args;

/// Accepts any arguments.
#[derive(Debug, Args)]
pub(crate) struct FloodArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    #[allow(dead_code)] // it only has to be accepted
    arguments: Vec<String>,
}

/// Prints how to build the command.
pub(crate) fn run(_: &FloodArgs, _: Output, _: &Interrupt) -> Result<(), Failure> {
    Err(Failure::Environment(
        "this build has no `lab flood`. Build the command with it: \
         cargo build --release -p taktwerk-cli --features attack"
            .to_owned(),
    ))
}
