//! The `taktwerk` command.
//!
//! Each command is a module that holds its arguments and what it does. What they share:
//!
//! - [`endpoint`], [`node`], [`attribute`], [`value`]: how servers, nodes and values are written;
//! - [`output`]: tables for people, JSON for programs; [`progress`]: bars; [`logging`]: standard error;
//! - [`failure`]: exit codes; [`interrupt`]: SIGINT and SIGTERM.

mod attribute;
mod endpoint;
mod failure;
mod interrupt;
mod logging;
mod node;
mod output;
mod progress;
mod value;

fn main() {}
