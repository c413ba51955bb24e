//! Clients and servers over modelled links: connections, sessions, subscriptions, security.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod alive;
mod calls;
#[path = "../common/mod.rs"]
mod common;
mod connect;
mod cuts;
mod effects;
mod freshness;
mod leaving;
mod processors;
mod publish;
mod reconnect;
mod renewals;
mod secured;
mod slow_reader;
mod soap;
mod sources;
mod tokens;
mod world;
