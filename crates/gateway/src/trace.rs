//! Tracing spans of sources and destinations. They cost nothing unless a subscriber enables them.

/// The target of the spans. Their level is DEBUG.
pub const TARGET: &str = "taktwerk::trace";
