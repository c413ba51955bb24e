//! The kinds of sources, one module each.

pub mod modbus;
pub mod mqtt;
pub mod opcua;
pub mod simulation;
