//! Parses text into a tree (RFC 8259).

use super::JsonError;
use std::borrow::Cow;

/// A level of a Variant or DataValue takes up to two levels of JSON, and decoders must support 100 of them (Part 6
/// §5.2.2.12, §5.2.2.16); the rest is for the levels around values in a message.
const DEPTH_MAX: usize = 256;

/// Limits of a parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonLimits {
    /// Maximum nesting of arrays and objects. Default 256.
    pub depth_max: usize,
    /// Maximum number of values. A value takes more memory than its text, so this limits memory.
    pub values_max: usize,
}

impl Default for JsonLimits {
    fn default() -> Self {
        Self { depth_max: DEPTH_MAX, values_max: 1 << 20 }
    }
}

/// A JSON value. Numbers stay text, because a Double cannot represent all 64-bit integers.
#[derive(Debug, Clone, PartialEq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as written.
    Number(&'a str),
    /// A string.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<Json<'a>>),
    /// An object in its original order. Of members with the same name, the first is used.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// A member of an object.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json<'a>> {
        match self {
            Self::Object(members) => members.iter().find(|member| member.0 == name).map(|member| &member.1),
            _ => None,
        }
    }

    /// The text of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Json<'a>]> {
        match self {
            Self::Array(values) => Some(values),
            _ => None,
        }
    }

    /// The members of an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&[(Cow<'a, str>, Json<'a>)]> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

/// Parses a text that is one value.
///
/// # Errors
/// [`JsonError::Syntax`] or [`JsonError::Limit`].
pub fn parse(text: &str, limits: JsonLimits) -> Result<Json<'_>, JsonError> {
    let mut parser = Parser { text, at: 0, limits, values: 0 };
    let value = parser.value(0)?;
    parser.space();
    if parser.at < text.len() {
        return Err(parser.error("unexpected text after the value"));
    }
    Ok(value)
}

/// Parses bytes.
///
/// # Errors
/// As [`parse`], and if the bytes are not UTF-8.
pub fn parse_bytes(bytes: &[u8], limits: JsonLimits) -> Result<Json<'_>, JsonError> {
    let text = core::str::from_utf8(bytes)
        .map_err(|error| JsonError::Syntax { at: error.valid_up_to(), reason: "not UTF-8" })?;
    parse(text, limits)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    limits: JsonLimits,
    values: usize,
}

impl<'a> Parser<'a> {
    fn error(&self, reason: &'static str) -> JsonError {
        JsonError::Syntax { at: self.at, reason }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, JsonError> {
        if !self.rest().starts_with(word) {
            return Err(self.error("a value expected"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        self.values += 1;
        if self.values > self.limits.values_max {
            return Err(JsonError::Limit { what: "values", limit: self.limits.values_max });
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Json::String),
            Some(b'n') => self.word("null", Json::Null),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.error("a value expected")),
        }
    }

    fn deeper(&self, depth: usize) -> Result<usize, JsonError> {
        if depth >= self.limits.depth_max {
            return Err(JsonError::Limit { what: "nesting", limit: self.limits.depth_max });
        }
        Ok(depth + 1)
    }

    /// Parses the separator after an element: true if another element follows.
    fn more(&mut self, end: u8) -> Result<bool, JsonError> {
        self.space();
        let found = self.peek();
        self.at += 1;
        match found {
            Some(b',') => Ok(true),
            Some(byte) if byte == end => Ok(false),
            _ => {
                self.at -= 1;
                Err(self.error("a comma or the end of the list expected"))
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        let depth = self.deeper(depth)?;
        self.at += 1;
        let mut values = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(values));
        }
        loop {
            values.push(self.value(depth)?);
            if !self.more(b']')? {
                return Ok(Json::Array(values));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        let depth = self.deeper(depth)?;
        self.at += 1;
        let mut members = Vec::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(members));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.error("a member name expected"));
            }
            let name = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.error("a colon expected"));
            }
            self.at += 1;
            members.push((name, self.value(depth)?));
            if !self.more(b'}')? {
                return Ok(Json::Object(members));
            }
        }
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.error("a digit expected")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Json<'a>, JsonError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Json::Number(self.text.get(start..self.at).unwrap_or("0")))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.at += 1;
        let start = self.at;
        // Text without escapes is borrowed.
        loop {
            match self.peek() {
                None => return Err(self.error("the string does not end")),
                Some(b'"') => {
                    let text = self.text.get(start..self.at).unwrap_or("");
                    self.at += 1;
                    return Ok(Cow::Borrowed(text));
                }
                Some(b'\\') => break,
                Some(0..0x20) => return Err(self.error("a control character in a string")),
                Some(_) => self.at += 1,
            }
        }
        let mut owned = self.text.get(start..self.at).unwrap_or("").to_owned();
        loop {
            let Some(character) = self.rest().chars().next() else {
                return Err(self.error("the string does not end"));
            };
            match character {
                '"' => {
                    self.at += 1;
                    return Ok(Cow::Owned(owned));
                }
                '\\' => {
                    self.at += 1;
                    owned.push(self.escape()?);
                }
                '\0'..' ' => return Err(self.error("a control character in a string")),
                other => {
                    self.at += other.len_utf8();
                    owned.push(other);
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let byte = self.peek().ok_or_else(|| self.error("the string does not end"))?;
        self.at += 1;
        Ok(match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let high = self.four_digits()?;
                if !(0xd800..0xdc00).contains(&high) {
                    return char::from_u32(high).ok_or_else(|| self.error("half a surrogate pair"));
                }
                if !self.rest().starts_with("\\u") {
                    return Err(self.error("half a surrogate pair"));
                }
                self.at += 2;
                let low = self.four_digits()?;
                let low = low.checked_sub(0xdc00).filter(|low| *low < 0x400);
                let low = low.ok_or_else(|| self.error("half a surrogate pair"))?;
                let code = 0x1_0000 + ((high - 0xd800) << 10) + low;
                char::from_u32(code).ok_or_else(|| self.error("half a surrogate pair"))?
            }
            _ => return Err(self.error("an unknown escape")),
        })
    }

    fn four_digits(&mut self) -> Result<u32, JsonError> {
        let digits = self.text.get(self.at..self.at + 4).ok_or_else(|| self.error("four digits expected"))?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let value = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex);
        let value = value.ok_or_else(|| self.error("four digits expected"))?;
        self.at += 4;
        Ok(value)
    }
}
