//! PubSub: everything that comes from a network anybody can send to, and the files that configure it.

pub mod action;
pub mod configuration;
pub mod discovery;
pub mod json;
pub mod plant;
pub mod uadp;
