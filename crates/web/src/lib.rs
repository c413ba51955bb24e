//! What a running server shows over HTTP: metrics for Prometheus, health for supervisors, and a dashboard for people.
//!
//! It stands beside the server, not in it. The dashboard is a client of the server: every visitor has an OPC UA session
//! with the visitor's own identity, so permissions, limits, audit and lock-out are those of the server. It runs on one
//! thread of its own and cannot slow a shard. Nothing is loaded from elsewhere: all files are part of the program.
//!
//! - [`server`]: listening, connections, TLS; [`settings`]: what can be chosen;
//! - [`otlp`]: the same metrics, and traces, for a collector;
//! - [`exposition`]: Prometheus' text format, to which others can add; `metrics`: `/metrics`; `health`: `/healthz`, `/readyz`;
//! - `subject`: the server that is shown; [`sources`]: where a gateway's values come from; `state`: what requests share;
//! - `places`: whose connection ends when there are too many; `stall`: browsers that do not read their answers;
//! - `visitor`: sessions of browsers, and the OPC UA client behind each; `streams`: how many of values; `guard`: headers and origin; `rate_limit`;
//! - `api`: what the page asks for; `assets`: the page; `compress`: both made smaller; [`log`]: the last lines of the log.

#![forbid(unsafe_code)]

mod api;
mod assets;
mod compress;
pub mod exposition;
mod guard;
mod health;
pub mod log;
mod metrics;
pub mod otlp;
mod places;
mod rate_limit;
pub mod server;
pub mod settings;
pub mod sources;
mod stall;
mod state;
mod streams;
mod subject;
mod visitor;

pub use exposition::Collector;
pub use otlp::{Otlp, OtlpSettings};
pub use server::{StartError, WebServer};
pub use settings::{Access, Settings, Tls};
pub use subject::Subject;
