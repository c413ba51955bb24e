//! Converts between the plain binary encoding of a field and its raw form.

use super::{RawShape, RawStructure, RawType, decode_value, element_count, scalar_len};
use taktwerk_types::codec::{Decode, encode_len};
use taktwerk_types::{ArrayValues, BuiltInType, DecodeError, Decoder, Encode, ExtensionObject, Variant};

/// Appends zeros in the length of a value; null if its length is not fixed.
pub(super) fn zeros(kind: &RawType, out: &mut Vec<u8>) {
    match (kind.fixed_len(), kind) {
        (Some(len), _) => out.resize(out.len() + len, 0),
        (None, RawType::Text { .. } | RawType::Array { .. }) => out.extend_from_slice(&[0; 4]),
        (None, RawType::Scalar(_)) => {}
        (None, RawType::Structure(structure)) => {
            if structure.shape != RawShape::Plain {
                out.extend_from_slice(&[0; 4]);
            }
            structure.fields.iter().for_each(|field| zeros(&field.kind, out));
        }
    }
}

/// Reads a plain value and appends its raw form.
pub(super) fn pad(kind: &RawType, plain: &mut Decoder<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    match kind {
        RawType::Scalar(kind) => {
            out.extend_from_slice(plain.take(scalar_len(*kind).unwrap_or(0))?);
            Ok(())
        }
        RawType::Text { max, .. } => {
            let Some(bytes) = plain.bytes()? else {
                out.extend_from_slice(&(-1i32).to_le_bytes());
                out.resize(out.len() + max, 0);
                return Ok(());
            };
            if *max > 0 && bytes.len() > *max {
                return Err(DecodeError::Limit { what: "MaxStringLength", actual: bytes.len(), limit: *max });
            }
            encode_len(bytes.len(), out);
            out.extend_from_slice(bytes);
            out.resize(out.len() + max.saturating_sub(bytes.len()), 0);
            Ok(())
        }
        RawType::Array { element, dimensions } => {
            let end = kind.fixed_len().map(|len| out.len() + len);
            let count = if dimensions.len() > 1 {
                let lengths = read_lengths(plain, dimensions)?;
                encode_len(lengths.len(), out);
                lengths.iter().for_each(|length| length.encode(out));
                element_count(&lengths).unwrap_or(0)
            } else {
                let count = plain.length()?;
                encode_signed_len(count, out);
                check_count(count.unwrap_or(0), dimensions)?
            };
            for _ in 0..count {
                pad(element, plain, out)?;
            }
            if let Some(end) = end {
                out.resize(end, 0);
            }
            Ok(())
        }
        RawType::Structure(structure) => pad_structure(structure, plain, out),
    }
}

fn encode_signed_len(count: Option<usize>, out: &mut Vec<u8>) {
    match count {
        Some(count) => encode_len(count, out),
        None => out.extend_from_slice(&(-1i32).to_le_bytes()),
    }
}

fn check_count(count: usize, dimensions: &[u32]) -> Result<usize, DecodeError> {
    match element_count(dimensions) {
        Some(limit) if count > limit => {
            Err(DecodeError::Limit { what: "ArrayDimensions", actual: count, limit })
        }
        _ => Ok(count),
    }
}

/// Reads the lengths of a matrix's dimensions and checks them against the maximum.
fn read_lengths(decoder: &mut Decoder<'_>, dimensions: &[u32]) -> Result<Vec<u32>, DecodeError> {
    let lengths: Vec<u32> = decoder.array()?;
    if lengths.len() != dimensions.len() {
        return Err(DecodeError::Invalid("raw matrix: another number of dimensions"));
    }
    let too_long = lengths.iter().zip(dimensions).any(|(length, max)| *max != 0 && length > max);
    if too_long || lengths.iter().any(|length| i32::try_from(*length).is_err()) {
        return Err(DecodeError::Invalid("raw matrix: a dimension is longer than ArrayDimensions"));
    }
    Ok(lengths)
}

fn pad_structure(
    structure: &RawStructure,
    plain: &mut Decoder<'_>,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    match structure.shape {
        RawShape::Plain => structure.fields.iter().try_for_each(|field| pad(&field.kind, plain, out)),
        RawShape::Optional => {
            let mask = u32::decode(plain)?;
            mask.encode(out);
            let mut bit = 1u32;
            for field in &structure.fields {
                let present = !field.is_optional || mask & bit != 0;
                if field.is_optional {
                    bit = bit.wrapping_shl(1);
                }
                if present { pad(&field.kind, plain, out)? } else { zeros(&field.kind, out) }
            }
            Ok(())
        }
        RawShape::Union => {
            let end = out.len() + structure.fixed_len.unwrap_or(4);
            let switch = u32::decode(plain)?;
            switch.encode(out);
            if let Some(field) = selected(structure, switch)? {
                pad(field, plain, out)?;
            }
            out.resize(end, 0);
            Ok(())
        }
    }
}

/// The selected field of a union; `None` if there is none.
fn selected(structure: &RawStructure, switch: u32) -> Result<Option<&RawType>, DecodeError> {
    let Some(index) = (switch as usize).checked_sub(1) else { return Ok(None) };
    let field = structure.fields.get(index).ok_or(DecodeError::Invalid("raw union: unknown field"))?;
    Ok(Some(&field.kind))
}

/// Reads a raw value and appends its plain encoding.
pub(super) fn unpad(kind: &RawType, raw: &mut Decoder<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    match kind {
        RawType::Scalar(kind) => {
            out.extend_from_slice(raw.take(scalar_len(*kind).unwrap_or(0))?);
            Ok(())
        }
        RawType::Text { kind, max } => {
            let len = raw.length()?;
            encode_signed_len(len, out);
            let len = len.unwrap_or(0);
            if *max > 0 && len > *max {
                return Err(DecodeError::Invalid("raw String: longer than MaxStringLength"));
            }
            let bytes = raw.take(len)?;
            if *kind == BuiltInType::String && core::str::from_utf8(bytes).is_err() {
                return Err(DecodeError::Invalid("UTF-8 string"));
            }
            out.extend_from_slice(bytes);
            raw.take(max.saturating_sub(len)).map(|_| ())
        }
        RawType::Array { element, dimensions } => {
            let mut body = bounded(kind, raw)?;
            let count = array_count(dimensions, &mut body, out)?;
            for _ in 0..count {
                unpad(element, &mut body, out)?;
            }
            leave(kind, body, raw);
            Ok(())
        }
        RawType::Structure(structure) => unpad_structure(structure, raw, out),
    }
}

/// A decoder for the padded bytes of `kind`, which are consumed from `raw`; without padding, a copy of `raw`.
fn bounded<'a>(kind: &RawType, raw: &mut Decoder<'a>) -> Result<Decoder<'a>, DecodeError> {
    match kind.fixed_len() {
        Some(len) => Ok(Decoder::new(raw.take(len)?, raw.limits())),
        None => Ok(raw.clone()),
    }
}

/// Without padding, consumes what was read from the copy.
fn leave<'a>(kind: &RawType, body: Decoder<'a>, raw: &mut Decoder<'a>) {
    if kind.fixed_len().is_none() {
        *raw = body;
    }
}

/// Reads the number of elements, each of which takes at least one byte, and appends the start of the plain array.
fn array_count(dimensions: &[u32], raw: &mut Decoder<'_>, begin: &mut Vec<u8>) -> Result<usize, DecodeError> {
    let count = if dimensions.len() > 1 {
        let lengths = read_lengths(raw, dimensions)?;
        lengths.as_slice().encode(begin);
        let count = lengths.iter().try_fold(1usize, |count, length| count.checked_mul(*length as usize));
        count.ok_or(DecodeError::Invalid("raw matrix: too large"))?
    } else {
        let count = raw.length()?;
        encode_signed_len(count, begin);
        check_count(count.unwrap_or(0), dimensions)?
    };
    if count > raw.remaining() {
        return Err(DecodeError::Truncated { needed: count - raw.remaining() });
    }
    Ok(count)
}

fn unpad_structure(
    structure: &RawStructure,
    raw: &mut Decoder<'_>,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    match structure.shape {
        RawShape::Plain => structure.fields.iter().try_for_each(|field| unpad(&field.kind, raw, out)),
        RawShape::Optional => {
            let mask = u32::decode(raw)?;
            mask.encode(out);
            let mut bit = 1u32;
            for field in &structure.fields {
                let present = !field.is_optional || mask & bit != 0;
                if field.is_optional {
                    bit = bit.wrapping_shl(1);
                }
                if present {
                    unpad(&field.kind, raw, out)?;
                } else {
                    raw.take(field.kind.fixed_len().unwrap_or(0))?;
                }
            }
            Ok(())
        }
        RawShape::Union => {
            let mut body = Decoder::new(raw.take(structure.fixed_len.unwrap_or(4))?, raw.limits());
            let switch = u32::decode(&mut body)?;
            switch.encode(out);
            match selected(structure, switch)? {
                Some(field) => unpad(field, &mut body, out),
                None => Ok(()),
            }
        }
    }
}

/// Reads a raw array as a value.
pub(super) fn array(
    kind: &RawType,
    element: &RawType,
    dimensions: &[u32],
    raw: &mut Decoder<'_>,
) -> Result<Variant, DecodeError> {
    let mut body = bounded(kind, raw)?;
    let lengths =
        if dimensions.len() > 1 { read_lengths(&mut body.clone(), dimensions)? } else { Vec::new() };
    let count = array_count(dimensions, &mut body, &mut Vec::new())?;
    let variant = match element {
        RawType::Structure(_) => {
            let mut objects: Vec<ExtensionObject> = Vec::new();
            for _ in 0..count {
                match decode_value(element, &mut body)? {
                    Variant::ExtensionObject(object) => objects.push(*object),
                    _ => return Err(DecodeError::Invalid("raw structure")),
                }
            }
            with_dimensions(ArrayValues::ExtensionObject(objects), lengths)
        }
        element => {
            // The encoding of an array Variant: type, number of elements, elements.
            let mut bytes = vec![element.built_in_type().number() | taktwerk_types::variant::ARRAY_BIT];
            encode_len(count, &mut bytes);
            for _ in 0..count {
                unpad(element, &mut body, &mut bytes)?;
            }
            match Variant::decode_from(&bytes, raw.limits())? {
                Variant::Array(array) => with_dimensions(array.values, lengths),
                _ => Err(DecodeError::Invalid("raw array")),
            }
        }
    };
    leave(kind, body, raw);
    variant
}

fn with_dimensions(values: ArrayValues, lengths: Vec<u32>) -> Result<Variant, DecodeError> {
    if lengths.len() < 2 {
        return Ok(Variant::Array(Box::new(taktwerk_types::Array { values, dimensions: Vec::new() })));
    }
    Variant::matrix(values, lengths).map_err(|_| DecodeError::Invalid("raw matrix"))
}
