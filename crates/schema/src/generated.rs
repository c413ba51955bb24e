// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Everything that `cargo xtask codegen` writes.

mod descriptions;
mod each;
mod enums;
pub mod ids;
mod messages;
mod option_sets;
mod structures;

pub(crate) use descriptions::{ENUMERATIONS, SIMPLE_TYPES, STRUCTURES};
pub use enums::*;
pub use messages::message_name;
pub use option_sets::*;
pub use structures::*;
