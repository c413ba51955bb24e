//! NumericRange (Part 4 §7.27): a part of an array, matrix, String or ByteString.

use crate::StatusCode;
use crate::string::{ByteString, UaString};
use crate::variant::{Array, ArrayValues, Variant};

/// A parsed IndexRange such as `1:3` or `0:1,2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumericRange {
    /// First and last index of each dimension, both inclusive.
    dimensions: Vec<(usize, usize)>,
}

impl NumericRange {
    /// Parses the text form; `None` for empty text, which means the whole value.
    ///
    /// # Errors
    /// Bad_IndexRangeInvalid if the text does not follow the grammar or a range is not ascending.
    pub fn parse(text: &str) -> Result<Option<Self>, StatusCode> {
        if text.is_empty() {
            return Ok(None);
        }
        let number = |digits: &str| -> Result<usize, StatusCode> {
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(StatusCode::BAD_INDEX_RANGE_INVALID);
            }
            digits.parse::<u32>().map(|value| value as usize).map_err(|_| StatusCode::BAD_INDEX_RANGE_INVALID)
        };
        let mut dimensions = Vec::with_capacity(dimension_count(text));
        for part in text.split(',') {
            dimensions.push(match part.split_once(':') {
                Some((first, last)) => {
                    let (first, last) = (number(first)?, number(last)?);
                    if first >= last {
                        return Err(StatusCode::BAD_INDEX_RANGE_INVALID);
                    }
                    (first, last)
                }
                None => (number(part)?, number(part)?),
            });
        }
        Ok(Some(Self { dimensions }))
    }

    /// Heap memory of the range, in bytes.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.dimensions.capacity() * size_of::<(usize, usize)>()
    }

    /// The part of `value` in the range. A range that ends outside is clipped.
    ///
    /// # Errors
    /// Bad_IndexRangeNoData if it starts outside or the number of dimensions differs.
    pub fn read(&self, value: &Variant) -> Result<Variant, StatusCode> {
        let none = StatusCode::BAD_INDEX_RANGE_NO_DATA;
        match value {
            Variant::Array(array) => self.read_array(array),
            Variant::String(text) => {
                let text = text.as_deref().ok_or(none)?;
                let [(first, last)] = self.dimensions.as_slice() else { return Err(none) };
                let part: String = text.chars().skip(*first).take(last - first + 1).collect();
                if part.is_empty() { Err(none) } else { Ok(Variant::from(part)) }
            }
            Variant::ByteString(bytes) => {
                let bytes = bytes.as_deref().ok_or(none)?;
                let [(first, last)] = self.dimensions.as_slice() else { return Err(none) };
                let end = last.saturating_add(1).min(bytes.len());
                let part = bytes.get(*first..end).filter(|part| !part.is_empty()).ok_or(none)?;
                Ok(Variant::ByteString(part.into()))
            }
            _ => Err(none),
        }
    }

    fn read_array(&self, array: &Array) -> Result<Variant, StatusCode> {
        let none = StatusCode::BAD_INDEX_RANGE_NO_DATA;
        let shape: Vec<usize> = array.shape().into_iter().map(|length| length as usize).collect();
        // One range more than dimensions selects parts of the elements of a String or ByteString array.
        if self.dimensions.len() == shape.len() + 1 {
            return self.read_inside(array, &shape);
        }
        if self.dimensions.len() != shape.len() {
            return Err(none);
        }
        let clipped = clip(&self.dimensions, &shape).ok_or(none)?;
        let values = array.values.select(Indexes::new(&clipped, &shape));
        let dimensions = if clipped.len() > 1 {
            clipped.iter().map(|(first, last)| u32::try_from(last - first + 1).unwrap_or(u32::MAX)).collect()
        } else {
            Vec::new()
        };
        Ok(Variant::Array(Box::new(Array { values, dimensions })))
    }

    fn read_inside(&self, array: &Array, shape: &[usize]) -> Result<Variant, StatusCode> {
        let none = StatusCode::BAD_INDEX_RANGE_NO_DATA;
        let (inner, outer) = self.dimensions.split_last().ok_or(none)?;
        let outer = Self { dimensions: outer.to_vec() };
        let inner = Self { dimensions: vec![*inner] };
        if outer.dimensions.len() != shape.len() {
            return Err(none);
        }
        let Variant::Array(mut part) = outer.read_array(array)? else { return Err(none) };
        match &mut part.values {
            ArrayValues::String(values) => {
                for value in values {
                    *value = match inner.read(&Variant::String(value.clone())) {
                        Ok(Variant::String(text)) => text,
                        _ => UaString::from(""),
                    };
                }
            }
            ArrayValues::ByteString(values) => {
                for value in values {
                    *value = match inner.read(&Variant::ByteString(value.clone())) {
                        Ok(Variant::ByteString(bytes)) => bytes,
                        _ => ByteString::from(Vec::new()),
                    };
                }
            }
            _ => return Err(none),
        }
        Ok(Variant::Array(part))
    }

    /// Overwrites the part of `target` in the range with `source`.
    ///
    /// # Errors
    /// Bad_IndexRangeNoData if the range ends outside, Bad_IndexRangeDataMismatch if `source` has another number of
    /// elements than the range, Bad_TypeMismatch if its elements have another type.
    pub fn write(&self, target: &mut Variant, source: &Variant) -> Result<(), StatusCode> {
        let none = StatusCode::BAD_INDEX_RANGE_NO_DATA;
        match (target, source) {
            (Variant::Array(array), Variant::Array(source)) => {
                let shape: Vec<usize> = array.shape().into_iter().map(|length| length as usize).collect();
                if self.dimensions.len() != shape.len() {
                    return Err(none);
                }
                if array.values.element_type() != source.values.element_type() {
                    return Err(StatusCode::BAD_TYPE_MISMATCH);
                }
                if self.dimensions.iter().zip(&shape).any(|((_, last), length)| last >= length) {
                    return Err(none);
                }
                let count = self.dimensions.iter().map(|(first, last)| last - first + 1).product::<usize>();
                if count != source.values.len() {
                    return Err(StatusCode::BAD_INDEX_RANGE_DATA_MISMATCH);
                }
                if array.values.assign(Indexes::new(&self.dimensions, &shape), &source.values) {
                    Ok(())
                } else {
                    Err(StatusCode::BAD_INDEX_RANGE_DATA_MISMATCH)
                }
            }
            (Variant::ByteString(bytes), Variant::ByteString(source)) => {
                let [(first, last)] = self.dimensions.as_slice() else { return Err(none) };
                let mut whole = bytes.as_deref().ok_or(none)?.to_vec();
                let part = whole.get_mut(*first..=*last).ok_or(none)?;
                if part.len() != source.as_bytes().len() {
                    return Err(StatusCode::BAD_INDEX_RANGE_DATA_MISMATCH);
                }
                part.copy_from_slice(source.as_bytes());
                *bytes = whole.into();
                Ok(())
            }
            (Variant::String(text), Variant::String(source)) => {
                let [(first, last)] = self.dimensions.as_slice() else { return Err(none) };
                let mut whole: Vec<char> = text.as_deref().ok_or(none)?.chars().collect();
                let part = whole.get_mut(*first..=*last).ok_or(none)?;
                let source: Vec<char> = source.as_str().chars().collect();
                if part.len() != source.len() {
                    return Err(StatusCode::BAD_INDEX_RANGE_DATA_MISMATCH);
                }
                part.copy_from_slice(&source);
                *text = whole.into_iter().collect::<String>().into();
                Ok(())
            }
            (Variant::Array(_) | Variant::ByteString(_) | Variant::String(_), _) => {
                Err(StatusCode::BAD_TYPE_MISMATCH)
            }
            _ => Err(none),
        }
    }
}

/// Number of dimensions in the text form of a range, whether they are valid or not.
#[must_use]
pub fn dimension_count(text: &str) -> usize {
    1 + text.bytes().filter(|byte| *byte == b',').count()
}

/// The ranges clipped to the dimensions; `None` if one starts outside.
fn clip(ranges: &[(usize, usize)], shape: &[usize]) -> Option<Vec<(usize, usize)>> {
    ranges
        .iter()
        .zip(shape)
        .map(|((first, last), length)| (first < length).then(|| (*first, (*last).min(length - 1))))
        .collect()
}

/// Iterates over the row-major indexes of a box in a matrix.
struct Indexes<'a> {
    ranges: &'a [(usize, usize)],
    shape: &'a [usize],
    at: Option<Vec<usize>>,
}

impl<'a> Indexes<'a> {
    fn new(ranges: &'a [(usize, usize)], shape: &'a [usize]) -> Self {
        Self { ranges, shape, at: Some(ranges.iter().map(|(first, _)| *first).collect()) }
    }
}

impl Iterator for Indexes<'_> {
    type Item = usize;
    fn next(&mut self) -> Option<usize> {
        let mut at = self.at.take()?;
        let index =
            at.iter().zip(self.shape).fold(0usize, |index, (position, length)| index * length + position);
        // Count up like an odometer; an overflow of the first dimension ends the iteration.
        for (position, (first, last)) in at.iter_mut().zip(self.ranges).rev() {
            if *position < *last {
                *position += 1;
                self.at = Some(at);
                break;
            }
            *position = *first;
        }
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> NumericRange {
        NumericRange::parse(text).unwrap().unwrap()
    }

    #[test]
    fn grammar() {
        assert_eq!(NumericRange::parse(""), Ok(None));
        for bad in ["1:1", "2:1", "-1", "a", "1:", ":1", "1,,2", "1:2:3", " 1", "+1", "99999999999"] {
            assert_eq!(NumericRange::parse(bad), Err(StatusCode::BAD_INDEX_RANGE_INVALID), "{bad}");
        }
    }

    #[test]
    fn reads_arrays_matrices_and_text() {
        let array = Variant::from(vec![10i32, 11, 12, 13]);
        assert_eq!(range("1:2").read(&array), Ok(Variant::from(vec![11i32, 12])));
        assert_eq!(range("2:9").read(&array), Ok(Variant::from(vec![12i32, 13])));
        assert_eq!(range("4").read(&array), Err(StatusCode::BAD_INDEX_RANGE_NO_DATA));
        let matrix = Variant::matrix(vec![0i32, 1, 2, 3, 4, 5], vec![2, 3]).unwrap();
        assert_eq!(range("1,0:1").read(&matrix), Ok(Variant::matrix(vec![3i32, 4], vec![1, 2]).unwrap()));
        assert_eq!(range("1").read(&matrix), Err(StatusCode::BAD_INDEX_RANGE_NO_DATA));
        assert_eq!(range("1:2").read(&"häuser".into()), Ok(Variant::from("äu")));
        let strings = Variant::from(vec![UaString::from("abc"), UaString::from("def")]);
        assert_eq!(range("1,0:1").read(&strings), Ok(Variant::from(vec![UaString::from("de")])));
        assert_eq!(range("0").read(&Variant::from(1.0)), Err(StatusCode::BAD_INDEX_RANGE_NO_DATA));
    }

    #[test]
    fn writes_in_place() {
        let mut array = Variant::from(vec![1.0f64, 2.0, 3.0]);
        assert_eq!(range("0:1").write(&mut array, &vec![8.0f64, 9.0].into()), Ok(()));
        assert_eq!(array, Variant::from(vec![8.0f64, 9.0, 3.0]));
        assert_eq!(
            range("0:1").write(&mut array, &vec![8.0f64].into()),
            Err(StatusCode::BAD_INDEX_RANGE_DATA_MISMATCH)
        );
        assert_eq!(range("0:1").write(&mut array, &vec![8i32, 9].into()), Err(StatusCode::BAD_TYPE_MISMATCH));
        assert_eq!(
            range("2:3").write(&mut array, &vec![8.0f64, 9.0].into()),
            Err(StatusCode::BAD_INDEX_RANGE_NO_DATA)
        );
        let mut matrix = Variant::matrix(vec![0i32, 1, 2, 3, 4, 5], vec![2, 3]).unwrap();
        let column = Variant::matrix(vec![8i32, 9], vec![2, 1]).unwrap();
        assert_eq!(range("0:1,2").write(&mut matrix, &column), Ok(()));
        assert_eq!(matrix.to_string(), "[[0, 1, 8], [3, 4, 9]]");
    }
}
