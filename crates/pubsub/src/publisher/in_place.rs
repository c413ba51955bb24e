//! Fields written directly into the message to send, by a table of offsets.

use super::frame::Spec;
use crate::uadp::FieldEncoding;
use crate::uadp::fields::{encode_data_value_field, encode_variant_field, patch_scalar};
use taktwerk_types::{BuiltInType, DataValue, Variant};

/// Writes the fields of a data set, in the order of its metadata: see [`crate::Values::write`].
///
/// All fields must be written. If the size of a field differs from the last message (a text, an array), the written
/// values are discarded and the message is laid out again from [`crate::Values::sample`].
#[derive(Debug)]
pub struct FieldWriter<'a> {
    target: Target<'a>,
    /// The next field.
    index: usize,
    fits: bool,
}

#[derive(Debug)]
enum Target<'a> {
    Message(Message<'a>),
    Values(&'a mut [DataValue]),
}

/// A message with known offsets.
#[derive(Debug)]
pub(super) struct Message<'a> {
    pub(super) spec: &'a Spec,
    pub(super) bytes: &'a mut [u8],
    /// End of each field.
    pub(super) ends: &'a [usize],
    /// Start of the next field.
    pub(super) start: usize,
    /// Number of fields whose value did not fit their type.
    pub(super) bad: usize,
    pub(super) scratch: &'a mut Vec<u8>,
    pub(super) field: &'a mut Vec<u8>,
}

mod sealed {
    pub trait Sealed {}
}

/// A number or Boolean, which has a fixed size.
pub trait Number: Copy + sealed::Sealed {
    /// Its built-in type.
    const TYPE: BuiltInType;
    /// Its size in bytes.
    const LEN: usize;

    /// Writes it into [`Self::LEN`] bytes.
    #[doc(hidden)]
    fn put(self, slot: &mut [u8]);

    /// Converts it to a Variant.
    fn variant(self) -> Variant;
}

macro_rules! numbers {
    ($($kind:ident $type:ty,)*) => {$(
        impl sealed::Sealed for $type {}

        impl Number for $type {
            const TYPE: BuiltInType = BuiltInType::$kind;
            const LEN: usize = size_of::<$type>();

            #[inline]
            fn put(self, slot: &mut [u8]) {
                slot.copy_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn variant(self) -> Variant {
                Variant::$kind(self)
            }
        }
    )*};
}

numbers! {
    SByte i8, Byte u8, Int16 i16, UInt16 u16, Int32 i32, UInt32 u32, Int64 i64, UInt64 u64, Float f32, Double f64,
}

impl sealed::Sealed for bool {}

impl Number for bool {
    const TYPE: BuiltInType = BuiltInType::Boolean;
    const LEN: usize = 1;

    #[inline]
    fn put(self, slot: &mut [u8]) {
        slot.fill(u8::from(self));
    }

    #[inline]
    fn variant(self) -> Variant {
        Variant::Boolean(self)
    }
}

impl<'a> FieldWriter<'a> {
    pub(super) fn message(message: Message<'a>) -> Self {
        Self { target: Target::Message(message), index: 0, fits: true }
    }

    /// Writes into the fields of [`crate::Values::sample`]: for sources that implement only one way of writing.
    pub fn values(values: &'a mut [DataValue]) -> Self {
        Self { target: Target::Values(values), index: 0, fits: true }
    }

    /// The position of the next field.
    #[must_use]
    pub fn position(&self) -> usize {
        self.index
    }

    /// Number of fields not written yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        let count = match &self.target {
            Target::Message(message) => message.ends.len(),
            Target::Values(values) => values.len(),
        };
        count.saturating_sub(self.index)
    }

    /// Writes the next field. An additional field is ignored, but the message is then not sent.
    pub fn value(&mut self, value: &DataValue) {
        let index = self.index;
        self.index += 1;
        match &mut self.target {
            Target::Message(message) => {
                self.fits = self.fits && message.value(index, value);
            }
            Target::Values(values) => match values.get_mut(index) {
                Some(field) => field.clone_from(value),
                None => self.fits = false,
            },
        }
    }

    /// Writes a number into the next field, with status Good and without timestamps.
    #[inline]
    pub fn number<T: Number>(&mut self, number: T) {
        if let Target::Message(message) = &mut self.target
            && message.number(self.index, number)
        {
            self.index += 1;
            return;
        }
        self.value(&DataValue { value: Some(number.variant()), ..DataValue::default() });
    }

    /// Writes numbers into the next fields. For raw fields of the same type, this is a plain memory copy.
    #[inline]
    pub fn numbers<T: Number>(&mut self, numbers: impl IntoIterator<Item = T>) {
        let mut numbers = numbers.into_iter();
        if let Target::Message(message) = &mut self.target
            && self.fits
        {
            let run = message.run(self.index, T::TYPE);
            let end = message.start + run * T::LEN;
            let slots = message.bytes.get_mut(message.start..end).unwrap_or_default();
            let mut count = 0;
            // Slots first, so that no number is consumed when they are used up.
            for (slot, number) in slots.chunks_exact_mut(T::LEN).zip(&mut numbers) {
                number.put(slot);
                count += 1;
            }
            self.index += count;
            message.start += count * T::LEN;
        }
        numbers.for_each(|number| self.number(number));
    }

    /// Number of bad fields, if every field was written with unchanged size.
    pub(super) fn finish(self) -> Option<usize> {
        let is_whole = self.fits && self.remaining() == 0;
        match self.target {
            Target::Message(message) if is_whole => Some(message.bad),
            _ => None,
        }
    }
}

impl Message<'_> {
    /// Number of consecutive raw fields of a type from `index` on.
    fn run(&self, index: usize, kind: BuiltInType) -> usize {
        match (&self.spec.raw, self.spec.encoding) {
            (Some(raw), FieldEncoding::RawData) => raw.run(index, kind),
            _ => 0,
        }
    }

    /// Patches a Variant with a number of the same size. False if the existing type differs.
    #[inline]
    fn number<T: Number>(&mut self, index: usize, number: T) -> bool {
        if self.spec.encoding != FieldEncoding::Variant {
            return false;
        }
        let Some(end) = self.ends.get(index) else { return false };
        let Some((kind, body)) = self.bytes.get_mut(self.start..*end).and_then(<[u8]>::split_first_mut)
        else {
            return false;
        };
        if body.len() != T::LEN {
            return false;
        }
        *kind = T::TYPE.number();
        number.put(body);
        self.start = *end;
        true
    }

    /// False if the size differs or the field does not exist.
    fn value(&mut self, index: usize, value: &DataValue) -> bool {
        let Some(end) = self.ends.get(index) else { return false };
        let Some(slot) = self.bytes.get_mut(self.start..*end) else { return false };
        self.start = *end;
        match self.spec.encoding {
            FieldEncoding::Variant => patch_variant(slot, value, self.field),
            FieldEncoding::DataValue => {
                self.field.clear();
                encode_data_value_field(value, self.spec.fields, self.field);
                copy(slot, self.field)
            }
            FieldEncoding::RawData => {
                let Some(raw) = &self.spec.raw else { return false };
                if raw.patch_scalar(index, value, slot) {
                    return true;
                }
                self.field.clear();
                let outcome = raw.encode_field(index, value, self.scratch, self.field);
                self.bad += usize::from(outcome.is_err());
                copy(slot, self.field)
            }
        }
    }
}

fn copy(slot: &mut [u8], field: &[u8]) -> bool {
    let fits = slot.len() == field.len();
    if fits {
        slot.copy_from_slice(field);
    }
    fits
}

/// Patches a Variant field. False if the size differs.
fn patch_variant(slot: &mut [u8], field: &DataValue, scratch: &mut Vec<u8>) -> bool {
    if let (Some(value), true) = (&field.value, field.status().is_good())
        && let Some((kind, body)) = slot.split_first_mut()
        && let Some(number) = patch_scalar(value, body)
    {
        *kind = number.number();
        return true;
    }
    scratch.clear();
    encode_variant_field(field, scratch);
    copy(slot, scratch)
}
