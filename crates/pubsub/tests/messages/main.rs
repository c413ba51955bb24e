//! Publishers and subscribers that are connected directly: messages, configurations, keys.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod announce;
mod common;
mod endurance;
mod exchange;
mod foreign;
mod in_place;
mod invalidated;
mod json;
mod known_answers;
mod peers;
mod reconfigure;
mod reference;
mod rotation;
mod simulation;
mod update;
