//! The kinds of sources, one module each.

pub mod calculation;
#[cfg(feature = "can")]
pub mod can;
pub mod file;
pub mod http;
pub mod line;
pub mod modbus;
pub mod mqtt;
pub mod opcua;
pub mod program;
pub mod replay;
pub mod simulation;
pub mod sparkplug;
