//! Encoding of values in registers.

use super::address::{Format, Order, Point};
use crate::value::{Kind, array, map_numbers};
use taktwerk_types::{BuiltInType, Variant};

/// The bytes of a number, most significant first.
fn bytes<const N: usize>(words: &[u16], point: &Point) -> Option<[u8; N]> {
    let mut out = [0; N];
    let words = words.get(..N / 2)?;
    for (at, pair) in out.chunks_exact_mut(2).enumerate() {
        let index = match point.word_order {
            Order::Big => at,
            Order::Little => words.len() - 1 - at,
        };
        let word = *words.get(index)?;
        let word = if point.byte_order == Order::Little { word.swap_bytes() } else { word };
        pair.copy_from_slice(&word.to_be_bytes());
    }
    Some(out)
}

/// The registers of a number.
fn words(bytes: &[u8], point: &Point) -> Vec<u16> {
    let pairs = bytes.chunks_exact(2).map(|pair| match pair {
        [high, low] if point.byte_order == Order::Little => u16::from_be_bytes([*low, *high]),
        [high, low] => u16::from_be_bytes([*high, *low]),
        _ => 0,
    });
    let mut words: Vec<u16> = pairs.collect();
    if point.word_order == Order::Little {
        words.reverse();
    }
    words
}

fn element(words: &[u16], point: &Point) -> Option<Variant> {
    Some(match point.format {
        Format::Bit => Variant::Boolean(words.first()? >> point.bit & 1 != 0),
        Format::Number(kind) => match kind {
            BuiltInType::Int16 => Variant::Int16(i16::from_be_bytes(bytes(words, point)?)),
            BuiltInType::UInt16 => Variant::UInt16(u16::from_be_bytes(bytes(words, point)?)),
            BuiltInType::Int32 => Variant::Int32(i32::from_be_bytes(bytes(words, point)?)),
            BuiltInType::UInt32 => Variant::UInt32(u32::from_be_bytes(bytes(words, point)?)),
            BuiltInType::Int64 => Variant::Int64(i64::from_be_bytes(bytes(words, point)?)),
            BuiltInType::UInt64 => Variant::UInt64(u64::from_be_bytes(bytes(words, point)?)),
            BuiltInType::Float => Variant::Float(f32::from_be_bytes(bytes(words, point)?)),
            BuiltInType::Double => Variant::Double(f64::from_be_bytes(bytes(words, point)?)),
            _ => return None,
        },
        Format::Text(length) => {
            let mut text = Vec::with_capacity(words.len() * 2);
            for word in words {
                let pair = word.to_be_bytes();
                let pair = if point.byte_order == Order::Little { [pair[1], pair[0]] } else { pair };
                text.extend_from_slice(&pair);
            }
            text.truncate(usize::from(length));
            let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
            text.truncate(end);
            Variant::from(String::from_utf8_lossy(&text).trim_end().to_owned())
        }
    })
}

/// Decodes registers (or bits, as 0 and 1) of a point.
#[must_use]
pub fn decode(words: &[u16], point: &Point) -> Option<Variant> {
    let words = words.get(..usize::from(point.width()))?;
    match point.count {
        None => element(words, point),
        Some(_) => {
            let width = usize::from(point.format.width()).max(1);
            let values = words.chunks_exact(width).map(|words| element(words, point));
            Some(array(point.kind().element, values.collect::<Option<Vec<_>>>()?))
        }
    }
}

/// Encodes a value in registers (or bits, as 0 and 1); `None` if it does not fit.
#[must_use]
pub fn encode(value: &Variant, point: &Point) -> Option<Vec<u16>> {
    let kind = point.kind();
    if point.count.is_some() {
        // Scaling has converted the elements to numbers.
        let value = match kind.coerce(value.clone()) {
            Some(value) => value,
            None => map_numbers(value, kind.element, |number| number)?,
        };
        let Variant::Array(found) = &value else { return None };
        if found.values.len() != usize::from(point.count?) {
            return None;
        }
        let mut all = Vec::new();
        for index in 0..found.values.len() {
            all.extend(one(&crate::value::element(&value, index)?, point)?);
        }
        return Some(all);
    }
    one(&Kind::scalar(kind.element).coerce(value.clone())?, point)
}

fn one(value: &Variant, point: &Point) -> Option<Vec<u16>> {
    Some(match value {
        Variant::Boolean(flag) => vec![u16::from(*flag)],
        Variant::Int16(number) => words(&number.to_be_bytes(), point),
        Variant::UInt16(number) => words(&number.to_be_bytes(), point),
        Variant::Int32(number) => words(&number.to_be_bytes(), point),
        Variant::UInt32(number) => words(&number.to_be_bytes(), point),
        Variant::Int64(number) => words(&number.to_be_bytes(), point),
        Variant::UInt64(number) => words(&number.to_be_bytes(), point),
        Variant::Float(number) => words(&number.to_be_bytes(), point),
        Variant::Double(number) => words(&number.to_be_bytes(), point),
        Variant::String(text) => {
            let Format::Text(length) = point.format else { return None };
            let mut bytes = text.as_str().as_bytes().to_vec();
            if bytes.len() > usize::from(length) {
                return None;
            }
            bytes.resize(usize::from(point.format.width()) * 2, 0);
            // Texts always begin in the first register, regardless of the word order.
            words(&bytes, &Point { word_order: Order::Big, ..point.clone() })
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::address::Table;
    use super::*;

    fn point(format: Format, count: Option<u16>, word_order: Order, byte_order: Order) -> Point {
        Point { unit: 1, table: Table::Holding, first: 0, format, bit: 0, count, word_order, byte_order }
    }

    #[test]
    fn orders_of_words_and_bytes_are_those_of_manuals() {
        use Order::{Big, Little};
        let float = Format::Number(BuiltInType::Float);
        // 123.456 is 0x42F6E979.
        for (words, word_order, byte_order) in [
            ([0x42F6, 0xE979], Big, Big),
            ([0xE979, 0x42F6], Little, Big),
            ([0xF642, 0x79E9], Big, Little),
            ([0x79E9, 0xF642], Little, Little),
        ] {
            let point = point(float, None, word_order, byte_order);
            assert_eq!(decode(&words, &point), Some(123.456f32.into()));
            assert_eq!(encode(&123.456f32.into(), &point).as_deref(), Some(&words[..]));
        }
    }

    #[test]
    fn every_format_survives_a_round_trip() {
        for word_order in [Order::Big, Order::Little] {
            for byte_order in [Order::Big, Order::Little] {
                for (format, value) in [
                    (Format::Number(BuiltInType::Int16), Variant::from(-2i16)),
                    (Format::Number(BuiltInType::Int32), Variant::from(-70_000)),
                    (Format::Number(BuiltInType::UInt64), Variant::from(u64::MAX - 1)),
                    (Format::Number(BuiltInType::Double), Variant::from(1.5e-9)),
                    (Format::Text(7), Variant::from("Pump 1")),
                ] {
                    let point = point(format, None, word_order, byte_order);
                    let words = encode(&value, &point).unwrap();
                    assert_eq!(words.len(), usize::from(point.width()));
                    assert_eq!(decode(&words, &point), Some(value));
                }
                let list = point(Format::Number(BuiltInType::Int32), Some(3), word_order, byte_order);
                let value = Variant::from(vec![1, -2, 3]);
                assert_eq!(decode(&encode(&value, &list).unwrap(), &list), Some(value));
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let int16 = point(Format::Number(BuiltInType::Int16), None, Order::Big, Order::Big);
        assert_eq!(encode(&40_000.0.into(), &int16), None);
        assert_eq!(encode(&1.6.into(), &int16), Some(vec![2]));
        assert_eq!(encode(&"x".into(), &int16), None);
        let text = point(Format::Text(3), None, Order::Big, Order::Big);
        assert_eq!(encode(&"four".into(), &text), None);
        assert_eq!(decode(&[0x4100, 0x4200], &text), Some("A".into()));
        let list = point(Format::Number(BuiltInType::UInt16), Some(2), Order::Big, Order::Big);
        assert_eq!(encode(&vec![1u16].into(), &list), None);
        assert_eq!(encode(&vec![1.0, 2.0].into(), &list), Some(vec![1, 2]));
        assert_eq!(decode(&[1], &list), None);
    }
}
