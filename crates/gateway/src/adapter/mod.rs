//! The kinds of sources, one module each.

pub mod modbus;
pub mod simulation;
