//! Spans of what sources and destinations do, for traces. They cost nothing unless a subscriber asks for them.

/// The target of the spans. Their level is DEBUG.
pub const TARGET: &str = "taktwerk::trace";
