//! Writes the basic elements of JSON text.

use core::fmt::Write as _;

/// Lets formatting append to bytes.
struct Appender<'a>(&'a mut Vec<u8>);

impl core::fmt::Write for Appender<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Appends a value that needs no quotes: integers, fixed text.
pub fn plain(value: impl core::fmt::Display, out: &mut Vec<u8>) {
    // Appending to memory cannot fail.
    let _ = write!(Appender(out), "{value}");
}

/// Appends a string with quotes and escapes.
pub fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\0'..' ' => {
                let _ = write!(Appender(out), "\\u{:04x}", u32::from(character));
            }
            other => out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

/// Appends a Double; values that JSON numbers cannot represent become strings (Part 6 §5.4.2.4).
pub fn double(value: f64, out: &mut Vec<u8>) {
    match special(value) {
        Some(name) => string(name, out),
        None if value != 0.0 && !(1e-5..1e17).contains(&value.abs()) => {
            let _ = write!(Appender(out), "{value:e}");
        }
        None => plain(value, out),
    }
}

/// Appends a Float with the precision of a Float.
pub fn float(value: f32, out: &mut Vec<u8>) {
    match special(f64::from(value)) {
        Some(name) => string(name, out),
        None if value != 0.0 && !(1e-5..1e17).contains(&value.abs()) => {
            let _ = write!(Appender(out), "{value:e}");
        }
        None => plain(value, out),
    }
}

fn special(value: f64) -> Option<&'static str> {
    match value {
        value if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

/// Writes the members of an object: commas and names.
#[derive(Debug)]
pub struct Members {
    is_first: bool,
}

impl Members {
    /// Opens an object.
    #[must_use]
    pub fn open(out: &mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { is_first: true }
    }

    /// Continues an object that was opened elsewhere.
    #[must_use]
    pub fn inside() -> Self {
        Self { is_first: true }
    }

    /// Begins a member; its value must follow.
    pub fn name(&mut self, name: &str, out: &mut Vec<u8>) {
        if !self.is_first {
            out.push(b',');
        }
        self.is_first = false;
        string(name, out);
        out.push(b':');
    }

    /// Call after a member was appended without this writer.
    pub fn appended(&mut self) {
        self.is_first = false;
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_first
    }

    /// Closes the object.
    pub fn close(self, out: &mut Vec<u8>) {
        out.push(b'}');
    }
}

/// Appends an array.
pub fn array<T>(
    values: impl IntoIterator<Item = T>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(T, &mut Vec<u8>),
) {
    out.push(b'[');
    for (index, value) in values.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(value, out);
    }
    out.push(b']');
}
