//! Events and alarms from a server of the library to a client of the library.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod alarms;
mod certificate_alarms;
mod events;
mod typed_events;
