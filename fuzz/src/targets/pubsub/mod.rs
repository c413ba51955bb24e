//! PubSub: everything received from an open network, and the configuration files.

pub mod action;
pub mod configuration;
pub mod discovery;
pub mod json;
pub mod plant;
pub mod uadp;
