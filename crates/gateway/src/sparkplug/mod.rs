//! Common parts of Sparkplug B hosts and edge nodes.
//!
//! - [`payload`], [`datatype`], [`elements`]: messages, their types, and how many elements they may have.

pub mod datatype;
pub mod elements;
pub mod payload;

/// Whether a text is valid as group, node, device or host in a topic.
#[must_use]
pub fn is_level(text: &str) -> bool {
    !text.is_empty() && text.len() <= 200 && !text.contains(['+', '#', '/', '\0'])
}
