//! The library's client against the library's server: nodes, Methods, files, sources, NodeSets.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod alias_methods;
mod client;
mod files;
mod nodeset_methods;
mod nodesets;
mod program;
mod program_parts;
mod query;
mod round_trip;
mod sources;
mod state_machine;
mod state_machine_methods;
