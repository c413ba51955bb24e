//! The binary encoding (Part 6 §5.2): [`Encode`] appends to a byte vector, [`Decode`] reads from a slice.
//!
//! Encoding cannot fail. Decoding checks every length against the available bytes *before* it allocates, limits
//! nesting, and never panics, so it is safe for bytes from the network.

use crate::StatusCode;

/// Appends the OPC UA binary encoding of `self`.
pub trait Encode {
    /// Appends the encoding to `out`.
    fn encode(&self, out: &mut Vec<u8>);

    /// The encoding as a fresh vector.
    fn encode_to_vec(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }
}

/// Reads a value from its OPC UA binary encoding. `'a` is the lifetime of the bytes, for views that borrow them.
pub trait Decode<'a>: Sized {
    /// Minimum encoded length in bytes; an array of `n` elements takes at least `n * MIN_LEN`.
    const MIN_LEN: usize;

    /// Decodes one value and moves `decoder` past it.
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError>;

    /// Decodes one value from the start of `bytes`; following bytes are ignored.
    fn decode_from(bytes: &'a [u8], limits: DecodeLimits) -> Result<Self, DecodeError> {
        Self::decode(&mut Decoder::new(bytes, limits))
    }
}

/// Limits of a decoder. Exceeding one gives Bad_EncodingLimitsExceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Maximum length of a String, in bytes.
    pub string_len_max: u32,
    /// Maximum length of a ByteString or ExtensionObject body, in bytes.
    pub byte_string_len_max: u32,
    /// Maximum number of array elements.
    pub array_len_max: u32,
    /// Maximum nesting of Variant, DataValue, ExtensionObject and DiagnosticInfo (Part 6 §5.2.1 requires 100).
    pub depth_max: u16,
    /// Maximum memory of one decoder's values, in bytes. An array of null values takes many times more memory than
    /// encoded bytes.
    pub memory_max: usize,
}

impl DecodeLimits {
    /// Generous limits for messages whose total size is already bounded by the channel.
    pub const DEFAULT: Self = Self {
        string_len_max: 16 * 1024 * 1024,
        byte_string_len_max: 64 * 1024 * 1024,
        array_len_max: 8 * 1024 * 1024,
        depth_max: 100,
        memory_max: 1 << 30,
    };
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why bytes do not decode as a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end inside a value.
    #[error("the message ends inside a value ({needed} more bytes needed)")]
    Truncated {
        /// Number of missing bytes.
        needed: usize,
    },
    /// A length or nesting limit was exceeded.
    #[error("{what} of {actual} exceeds the limit of {limit}")]
    Limit {
        /// The limit's name.
        what: &'static str,
        /// The actual value.
        actual: usize,
        /// The limit.
        limit: usize,
    },
    /// Bytes that are not a valid encoding.
    #[error("invalid {0}")]
    Invalid(&'static str),
}

impl DecodeError {
    /// The status of a service fault for this error (Part 4 §7.38).
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Limit { .. } => StatusCode::BAD_ENCODING_LIMITS_EXCEEDED,
            Self::Truncated { .. } | Self::Invalid(_) => StatusCode::BAD_DECODING_ERROR,
        }
    }
}

/// A cursor over received bytes.
#[derive(Debug, Clone)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    limits: DecodeLimits,
    depth: u16,
    /// Memory that values may still take, in bytes.
    memory: usize,
}

/// Overhead of the allocator per allocation, in bytes.
const ALLOCATION: usize = 16;

impl<'a> Decoder<'a> {
    /// A decoder at the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8], limits: DecodeLimits) -> Self {
        Self { rest: bytes, limits, depth: 0, memory: limits.memory_max }
    }

    /// The bytes not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Number of unread bytes.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> DecodeLimits {
        self.limits
    }

    /// Consumes the next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        match self.rest.split_at_checked(len) {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(head)
            }
            None => Err(DecodeError::Truncated { needed: len - self.rest.len() }),
        }
    }

    /// Consumes a fixed number of bytes.
    #[inline]
    pub fn take_array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(*head)
            }
            None => Err(DecodeError::Truncated { needed: N - self.rest.len() }),
        }
    }

    /// Reads one byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        Ok(self.take_array::<1>()?[0])
    }

    /// Reads the Int32 length of a String, ByteString or array; `None` for null (any negative length).
    #[inline]
    pub fn length(&mut self) -> Result<Option<usize>, DecodeError> {
        let length = i32::from_le_bytes(self.take_array()?);
        Ok(usize::try_from(length).ok())
    }

    /// Reads a nullable UTF-8 string without copying it.
    #[inline]
    pub fn str(&mut self) -> Result<Option<&'a str>, DecodeError> {
        let Some(len) = self.length()? else { return Ok(None) };
        check("string length", len, self.limits.string_len_max)?;
        let bytes = self.take(len)?;
        core::str::from_utf8(bytes).map(Some).map_err(|_| DecodeError::Invalid("UTF-8 string"))
    }

    /// Reads a nullable ByteString without copying it.
    #[inline]
    pub fn bytes(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        let Some(len) = self.length()? else { return Ok(None) };
        check("byte string length", len, self.limits.byte_string_len_max)?;
        self.take(len).map(Some)
    }

    /// Reads an array length and checks it against the limit and the available bytes.
    #[inline]
    pub fn array_len(&mut self, element_len_min: usize) -> Result<Option<usize>, DecodeError> {
        let Some(len) = self.length()? else { return Ok(None) };
        check("array length", len, self.limits.array_len_max)?;
        let needed = len.saturating_mul(element_len_min);
        if needed > self.rest.len() {
            return Err(DecodeError::Truncated { needed: needed - self.rest.len() });
        }
        Ok(Some(len))
    }

    /// Counts an allocation of `bytes` against [`DecodeLimits::memory_max`]. Call it before allocating.
    #[inline]
    pub fn allocate(&mut self, bytes: usize) -> Result<(), DecodeError> {
        let taken = if bytes == 0 { 0 } else { bytes.saturating_add(ALLOCATION) };
        match self.memory.checked_sub(taken) {
            Some(left) => {
                self.memory = left;
                Ok(())
            }
            None => Err(DecodeError::Limit {
                what: "memory",
                actual: (self.limits.memory_max - self.memory).saturating_add(taken),
                limit: self.limits.memory_max,
            }),
        }
    }

    /// Reads an array; null and empty both give an empty vector.
    pub fn array<T: Decode<'a>>(&mut self) -> Result<Vec<T>, DecodeError> {
        let Some(len) = self.array_len(T::MIN_LEN)? else { return Ok(Vec::new()) };
        self.allocate(len.saturating_mul(size_of::<T>()))?;
        // An element in memory can be much larger than its shortest encoding: reserve only a part of the claimed length
        // and let the vector grow with the elements.
        let reserve = len.min(self.rest.len() / size_of::<T>().max(1) + 16);
        let mut values = Vec::with_capacity(reserve);
        for _ in 0..len {
            values.push(T::decode(self)?);
        }
        Ok(values)
    }

    /// Runs `read` one nesting level deeper.
    pub fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if self.depth >= self.limits.depth_max {
            return Err(DecodeError::Limit {
                what: "nesting depth",
                actual: usize::from(self.depth) + 1,
                limit: usize::from(self.limits.depth_max),
            });
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }
}

fn check(what: &'static str, actual: usize, limit: u32) -> Result<(), DecodeError> {
    let limit = limit as usize;
    if actual > limit { Err(DecodeError::Limit { what, actual, limit }) } else { Ok(()) }
}

/// Appends an Int32 length. Lengths beyond Int32 cannot occur, because no message is that long.
#[inline]
pub fn encode_len(len: usize, out: &mut Vec<u8>) {
    let len = i32::try_from(len).unwrap_or(i32::MAX);
    out.extend_from_slice(&len.to_le_bytes());
}

/// Appends a nullable string or byte string.
#[inline]
pub fn encode_bytes(bytes: Option<&[u8]>, out: &mut Vec<u8>) {
    match bytes {
        None => out.extend_from_slice(&(-1i32).to_le_bytes()),
        Some(bytes) => {
            encode_len(bytes.len(), out);
            out.extend_from_slice(bytes);
        }
    }
}

/// Reserves an Int32 length, runs `write`, and then patches the length: one pass.
#[inline]
pub fn encode_sized(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let len = i32::try_from(out.len() - at - 4).unwrap_or(i32::MAX);
    if let Some(gap) = out.get_mut(at..at + 4) {
        gap.copy_from_slice(&len.to_le_bytes());
    }
}

macro_rules! little_endian {
    ($($type:ty),*) => {$(
        impl Encode for $type {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
        impl<'a> Decode<'a> for $type {
            const MIN_LEN: usize = size_of::<$type>();
            #[inline]
            fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
                Ok(<$type>::from_le_bytes(decoder.take_array()?))
            }
        }
    )*};
}
little_endian!(i8, u8, i16, u16, i32, u32, i64, u64, f32, f64);

impl Encode for bool {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
}

impl<'a> Decode<'a> for bool {
    const MIN_LEN: usize = 1;
    #[inline]
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        // Part 6 §5.2.2.1: any nonzero value is true.
        Ok(decoder.byte()? != 0)
    }
}

impl<T: Encode> Encode for [T] {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_len(self.len(), out);
        for value in self {
            value.encode(out);
        }
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.as_slice().encode(out);
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Vec<T> {
    const MIN_LEN: usize = 4;
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        decoder.array()
    }
}

impl<T: Encode> Encode for Box<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        T::encode(self, out);
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Box<T> {
    const MIN_LEN: usize = T::MIN_LEN;
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        decoder.allocate(size_of::<T>())?;
        T::decode(decoder).map(Box::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claimed_length_beyond_the_bytes_is_refused_before_allocating() {
        let mut bytes = i32::MAX.to_le_bytes().to_vec();
        bytes.extend_from_slice(&[0; 8]);
        let limits = DecodeLimits { array_len_max: u32::MAX, ..DecodeLimits::DEFAULT };
        assert!(matches!(Vec::<u8>::decode_from(&bytes, limits), Err(DecodeError::Truncated { .. })));
        assert!(matches!(
            Vec::<u8>::decode_from(&bytes, DecodeLimits::DEFAULT),
            Err(DecodeError::Limit { what: "array length", .. })
        ));
    }

    #[test]
    fn memory_is_counted_whatever_the_shape() {
        use crate::{ExtensionObject, LocalizedText, NodeId, QualifiedName, UaString, Variant};
        // Small when encoded and large in memory: the shortest encoding after each type byte.
        fn repeated<T: Encode>(value: &T, count: usize) -> Vec<u8> {
            let mut out = Vec::new();
            encode_len(count, &mut out);
            (0..count).for_each(|_| value.encode(&mut out));
            out
        }
        let nested: Variant = vec![Variant::Empty; 4].into();
        for value in [
            Variant::Empty,
            Variant::from(NodeId::NULL),
            Variant::from(QualifiedName::new(0, UaString::NULL)),
            Variant::from(LocalizedText::default()),
            Variant::from(ExtensionObject::NULL),
            Variant::DataValue(Box::default()),
            Variant::DiagnosticInfo(Box::default()),
            Variant::from("a"),
            nested,
        ] {
            let bytes = repeated(&value, 10_000);
            let limits = |memory_max| DecodeLimits { memory_max, ..DecodeLimits::DEFAULT };
            let real = 10_000 * (size_of::<Variant>() + heap(&value));
            assert!(Vec::<Variant>::decode_from(&bytes, limits(2 * real + 100_000)).is_ok(), "{value:?}");
            let refused = Vec::<Variant>::decode_from(&bytes, limits(real - 1)).unwrap_err();
            assert_eq!(refused.status(), StatusCode::BAD_ENCODING_LIMITS_EXCEEDED, "{value:?}");
        }
    }

    /// Size of the memory directly behind a Variant's box.
    fn heap(value: &crate::Variant) -> usize {
        use crate::Variant as V;
        match value {
            V::NodeId(value) => size_of_val(&**value),
            V::QualifiedName(value) => size_of_val(&**value),
            V::LocalizedText(value) => size_of_val(&**value),
            V::ExtensionObject(value) => size_of_val(&**value),
            V::DataValue(value) => size_of_val(&**value),
            V::DiagnosticInfo(value) => size_of_val(&**value),
            V::Array(value) => size_of_val(&**value) + 4 * size_of::<V>(),
            V::String(_) => 1,
            _ => 0,
        }
    }

    #[test]
    fn sized_gap_is_patched() {
        let mut out = vec![9];
        encode_sized(&mut out, |out| out.extend_from_slice(b"abc"));
        assert_eq!(out, [9, 3, 0, 0, 0, b'a', b'b', b'c']);
    }

    #[test]
    fn null_array_is_empty() {
        assert_eq!(Vec::<u32>::decode_from(&[0xff; 4], DecodeLimits::DEFAULT), Ok(vec![]));
    }
}
