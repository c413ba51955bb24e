//! The HTTP interface of a running server: metrics for Prometheus, health checks, and a dashboard.
//!
//! The dashboard is a client of the server. Every visitor has an OPC UA session with the visitor's own identity, so the
//! server's permissions, limits, audit and lock-out apply. Everything runs on one separate thread and cannot delay the
//! server's threads. All files of the page are part of the program.
//!
//! - [`server`]: listener, connections, TLS; [`settings`]: settings;
//! - [`otlp`]: export of metrics and traces to an OpenTelemetry collector;
//! - [`exposition`]: Prometheus' text format, and [`Collector`] for additional metrics; `metrics`: `/metrics`;
//!   `health`: `/healthz` and `/readyz`;
//! - `subject`: the server to show; [`sources`]: sources and destinations of a gateway; `state`: data that all requests
//!   share;
//! - `reach`: connections to the server; `slots`: the connection limit and its eviction rule; `pending`: requests being
//!   answered; `stall`: write timeouts for browsers that do not read;
//! - `visitor`: browser sessions and their OPC UA clients; `streams`: limits of value streams; `backlog`: what they have
//!   not sent yet; `guard`: header and
//!   origin checks; `rate_limit`: login attempts;
//! - `api`: the JSON API of the page; `assets`: the page; `compress`: gzip; [`log`]: the last lines of the log.

#![forbid(unsafe_code)]

mod api;
mod assets;
mod backlog;
mod compress;
pub mod exposition;
mod guard;
mod health;
pub mod log;
mod metrics;
pub mod otlp;
mod pending;
mod rate_limit;
mod reach;
pub mod server;
pub mod settings;
mod slots;
pub mod sources;
mod stall;
mod state;
mod streams;
mod subject;
mod visitor;

pub use exposition::Collector;
pub use metrics::HistoryMetrics;
pub use otlp::{Otlp, OtlpSettings};
pub use server::{StartError, WebServer};
pub use settings::{Access, Settings, Tls};
pub use subject::Subject;
