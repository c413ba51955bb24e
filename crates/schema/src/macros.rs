//! The common code of generated types. The generator only writes names, ids and fields.

/// A structure: its fields one after the other (Part 6 §5.2.6). After the name follow the DataType id and, if there is
/// one, the id of its binary encoding.
macro_rules! structure {
    ($(#[$meta:meta])* pub struct $name:ident = $data_type:literal $(, $encoding:literal)? {
        $($field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default)]
        #[allow(missing_docs)] // fields are named as in the specification
        pub struct $name { $(pub $field: $type),* }

        impl taktwerk_types::Encode for $name {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                let _ = &out;
                $(taktwerk_types::Encode::encode(&self.$field, out);)*
            }
        }

        impl<'a> taktwerk_types::Decode<'a> for $name {
            const MIN_LEN: usize = 0 $(+ <$type as taktwerk_types::Decode<'static>>::MIN_LEN)*;

            #[inline]
            fn decode(decoder: &mut taktwerk_types::Decoder<'a>) -> Result<Self, taktwerk_types::DecodeError> {
                let _ = &decoder;
                Ok(Self { $($field: taktwerk_types::Decode::decode(decoder)?),* })
            }
        }

        $(impl taktwerk_types::Structure for $name {
            const DATA_TYPE_ID: u32 = $data_type;
            const BINARY_ENCODING_ID: u32 = $encoding;
        })?
    };
}

/// A structure with optional fields: a mask says which fields are present (Part 6 §5.2.7).
macro_rules! structure_with_optional_fields {
    ($(#[$meta:meta])* pub struct $name:ident = $data_type:literal $(, $encoding:literal)? {
        $($presence:ident $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default)]
        #[allow(missing_docs)] // fields are named as in the specification
        pub struct $name { $(pub $field: field_type!($presence $type)),* }

        impl taktwerk_types::Encode for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                let (mut mask, mut bit) = (0u32, 1u32);
                $(mark_field!($presence, self.$field, mask, bit);)*
                let _ = bit;
                taktwerk_types::Encode::encode(&mask, out);
                $(encode_field!($presence, self.$field, out);)*
            }
        }

        impl<'a> taktwerk_types::Decode<'a> for $name {
            const MIN_LEN: usize = 4 $(+ field_min_len!($presence $type))*;

            fn decode(decoder: &mut taktwerk_types::Decoder<'a>) -> Result<Self, taktwerk_types::DecodeError> {
                let mask = <u32 as taktwerk_types::Decode>::decode(decoder)?;
                let mut bit = 1u32;
                let value = Self { $($field: decode_field!($presence, decoder, mask, bit)),* };
                // Bits beyond the fields announce data that cannot be skipped (Part 6 §5.2.7).
                if mask & !(bit - 1) != 0 {
                    return Err(taktwerk_types::DecodeError::Invalid("encoding mask: unknown bits"));
                }
                Ok(value)
            }
        }

        $(impl taktwerk_types::Structure for $name {
            const DATA_TYPE_ID: u32 = $data_type;
            const BINARY_ENCODING_ID: u32 = $encoding;
        })?
    };
}

macro_rules! field_type {
    (required $type:ty) => { $type };
    (optional $type:ty) => { Option<$type> };
}

macro_rules! field_min_len {
    (required $type:ty) => {
        <$type as taktwerk_types::Decode<'static>>::MIN_LEN
    };
    (optional $type:ty) => {
        0
    };
}

macro_rules! mark_field {
    (required, $field:expr, $mask:ident, $bit:ident) => {};
    (optional, $field:expr, $mask:ident, $bit:ident) => {
        if $field.is_some() {
            $mask |= $bit;
        }
        $bit <<= 1;
    };
}

macro_rules! encode_field {
    (required, $field:expr, $out:ident) => {
        taktwerk_types::Encode::encode(&$field, $out)
    };
    (optional, $field:expr, $out:ident) => {
        if let Some(field) = &$field {
            taktwerk_types::Encode::encode(field, $out);
        }
    };
}

macro_rules! decode_field {
    (required, $decoder:ident, $mask:ident, $bit:ident) => {
        taktwerk_types::Decode::decode($decoder)?
    };
    (optional, $decoder:ident, $mask:ident, $bit:ident) => {{
        let present = $mask & $bit != 0;
        $bit <<= 1;
        if present { Some(taktwerk_types::Decode::decode($decoder)?) } else { None }
    }};
}

/// An enumeration: an Int32 whose known values have names (Part 6 §5.2.4).
macro_rules! enumeration {
    ($(#[$meta:meta])* pub struct $name:ident = $data_type:literal {
        $($constant:ident = $value:literal $text:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub i32);

        #[allow(missing_docs)] // values are named as in the specification
        impl $name {
            $(pub const $constant: Self = Self($value);)*

            /// The DataType node's id.
            pub const DATA_TYPE_ID: u32 = $data_type;

            /// The known values.
            pub const VALUES: &'static [Self] = &[$(Self($value)),*];

            /// The specification's name of the value; `None` if it does not know it.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                const NAMES: &[(i32, &str)] = &[$(($value, $text)),*];
                NAMES.iter().find(|entry| entry.0 == self.0).map(|entry| entry.1)
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => write!(f, "{}", self.0),
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Debug::fmt(self, f)
            }
        }

        newtype_codec!($name(i32));
    };
}

/// An option set: an unsigned integer whose bits have names (Part 3 §8.40). The bit number follows `=`.
macro_rules! option_set {
    ($(#[$meta:meta])* pub struct $name:ident($bits:ty) = $data_type:literal {
        $($constant:ident = $bit:literal $text:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub $bits);

        #[allow(missing_docs)] // bits are named as in the specification
        impl $name {
            $(pub const $constant: Self = Self(1 << $bit);)*

            /// The DataType node's id.
            pub const DATA_TYPE_ID: u32 = $data_type;

            /// No bit.
            pub const EMPTY: Self = Self(0);

            /// All bits with a name.
            pub const ALL_BITS: Self = Self(0 $(| 1 << $bit)*);

            /// The number.
            #[must_use]
            pub const fn bits(self) -> $bits {
                self.0
            }

            /// Whether no bit is set.
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// Whether all bits of `other` are set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether any bit of `other` is set.
            #[must_use]
            pub const fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// The bits of both.
            #[must_use]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// The bits of `self` without those of `other`.
            #[must_use]
            pub const fn difference(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
        }

        impl core::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                self.union(other)
            }
        }

        impl core::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl core::ops::BitAnd for $name {
            type Output = Self;
            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                const NAMES: &[($bits, &str)] = &[$((1 << $bit, $text)),*];
                $crate::macros::write_bits(self.0, NAMES, f)
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Debug::fmt(self, f)
            }
        }

        newtype_codec!($name($bits));
    };
}

/// Writes `Read|Write|0x40`; `0` if no bit is set.
pub(crate) fn write_bits<T>(
    bits: T,
    names: &[(T, &str)],
    f: &mut core::fmt::Formatter<'_>,
) -> core::fmt::Result
where
    T: Copy
        + PartialEq
        + Default
        + core::fmt::LowerHex
        + core::ops::BitAnd<Output = T>
        + core::ops::BitXor<Output = T>,
{
    let mut rest = bits;
    let mut separator = "";
    for (bit, name) in names {
        if rest & *bit == *bit {
            write!(f, "{separator}{name}")?;
            separator = "|";
            rest = rest ^ *bit;
        }
    }
    match (rest == T::default(), separator) {
        (true, "") => f.write_str("0"),
        (true, _) => Ok(()),
        (false, _) => write!(f, "{separator}{rest:#x}"),
    }
}

/// Common code of enumerations and option sets: numbers in the encoding and in Variants.
macro_rules! newtype_codec {
    ($name:ident($number:ty)) => {
        impl taktwerk_types::Encode for $name {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                self.0.encode(out);
            }
        }

        impl<'a> taktwerk_types::Decode<'a> for $name {
            const MIN_LEN: usize = size_of::<$number>();

            #[inline]
            fn decode(
                decoder: &mut taktwerk_types::Decoder<'a>,
            ) -> Result<Self, taktwerk_types::DecodeError> {
                <$number as taktwerk_types::Decode>::decode(decoder).map(Self)
            }
        }

        impl From<$number> for $name {
            fn from(value: $number) -> Self {
                Self(value)
            }
        }

        impl From<$name> for $number {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl From<$name> for taktwerk_types::Variant {
            fn from(value: $name) -> Self {
                Self::from(value.0)
            }
        }

        impl TryFrom<taktwerk_types::Variant> for $name {
            type Error = taktwerk_types::VariantTypeError;
            fn try_from(value: taktwerk_types::Variant) -> Result<Self, Self::Error> {
                <$number>::try_from(value).map(Self)
            }
        }
    };
}

/// A request message and its response message.
macro_rules! request {
    ($request:ident -> $response:ident) => {
        impl $crate::service::Request for $request {
            type Response = $response;

            fn header(&self) -> &$crate::RequestHeader {
                &self.request_header
            }

            fn header_mut(&mut self) -> &mut $crate::RequestHeader {
                &mut self.request_header
            }
        }
    };
}

/// A response message.
macro_rules! response {
    ($response:ident) => {
        impl $crate::service::Response for $response {
            fn header(&self) -> &$crate::ResponseHeader {
                &self.response_header
            }

            fn header_mut(&mut self) -> &mut $crate::ResponseHeader {
                &mut self.response_header
            }
        }
    };
}

/// The table of structures that [`crate::description`] looks up.
macro_rules! describe_structures {
    ($($name:literal $id:literal $encoding:literal $kind:ident [
        $($field:literal $type:literal $($flag:ident)*),*
    ];)*) => {
        /// All structures, sorted by DataType id.
        pub(crate) static STRUCTURES: &[$crate::description::StructureDescription] = &[
            $($crate::description::StructureDescription {
                data_type_id: $id,
                binary_encoding_id: $encoding,
                name: $name,
                kind: $crate::description::StructureKind::$kind,
                fields: &[$($crate::description::FieldDescription {
                    name: $field,
                    type_id: $type,
                    value_rank: if has_flag!(array $($flag)*) { 1 } else { -1 },
                    is_optional: has_flag!(optional $($flag)*),
                }),*],
            }),*
        ];
    };
}

macro_rules! has_flag {
    (array array $($rest:ident)*) => { true };
    (optional optional $($rest:ident)*) => { true };
    ($wanted:ident $other:ident $($rest:ident)*) => { has_flag!($wanted $($rest)*) };
    ($wanted:ident) => { false };
}

/// The table of enumerations and option sets that [`crate::description`] looks up.
macro_rules! describe_enumerations {
    ($($name:literal $id:literal $is_option_set:literal [$($value_name:literal $value:literal),*];)*) => {
        /// All enumerations and option sets, sorted by DataType id.
        pub(crate) static ENUMERATIONS: &[$crate::description::EnumDescription] = &[
            $($crate::description::EnumDescription {
                data_type_id: $id,
                name: $name,
                is_option_set: $is_option_set,
                values: &[$(($value_name, $value)),*],
            }),*
        ];
    };
}
