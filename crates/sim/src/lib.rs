//! placeholder

#![forbid(unsafe_code)]

pub mod network;
pub mod queue;
