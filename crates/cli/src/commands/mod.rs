//! The client commands, one file each: arguments, requests, output.

pub(crate) mod alarms;
pub(crate) mod backup;
pub(crate) mod browse;
pub(crate) mod call;
pub(crate) mod completions;
pub(crate) mod endpoints;
pub(crate) mod events;
pub(crate) mod history;
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod model;
pub(crate) mod nodes;
pub(crate) mod nodeset;
pub(crate) mod pki;
pub(crate) mod query;
pub(crate) mod read;
pub(crate) mod sim;
pub(crate) mod size;
pub(crate) mod tune;
pub(crate) mod watch;
pub(crate) mod write;
