//! The source of a publisher's values.

use super::FieldWriter;
use crate::time::Now;
use taktwerk_types::{DataValue, Variant};

/// Result of [`Values::write`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InPlace {
    /// This source does not support writing in place; [`Values::sample`] is called instead.
    NotOffered,
    /// Nothing to send in this cycle: only for sources that are not cyclic.
    NothingToSend,
    /// All fields were written.
    Written,
}

/// The source of all values a [`crate::Publisher`] sends.
pub trait Values {
    /// Writes the current value of every field of a data set.
    ///
    /// `data_set` is its position in [`crate::config::Configuration::data_sets`]. `fields` are in the order of its
    /// metadata and contain the values of the last call. All fields of a data set are sampled at once, so that they are
    /// consistent. Returns whether there is something to send; only sources that are not cyclic may return false.
    fn sample(&mut self, data_set: usize, fields: &mut [DataValue], now: Now) -> bool;

    /// Like [`Self::sample`], but writes directly into the message, for data sets whose cycles send all fields. No
    /// value is stored in between, which saves most of the cost of thousands of numbers per cycle.
    ///
    /// [`Self::sample`] may follow in the same cycle if the size of a field has changed.
    fn write(&mut self, data_set: usize, fields: &mut FieldWriter<'_>, now: Now) -> InPlace {
        let _ = (data_set, fields, now);
        InPlace::NotOffered
    }

    /// Moves the next event of an event data set into `fields`; false if there is none.
    fn next_event(&mut self, data_set: usize, fields: &mut Vec<Variant>) -> bool {
        let _ = (data_set, fields);
        false
    }

    /// The concrete source, to be changed while the publisher runs.
    fn as_any_mut(&mut self) -> Option<&mut dyn core::any::Any> {
        None
    }
}

/// A function of the data set's position and its fields.
impl<F: FnMut(usize, &mut [DataValue])> Values for F {
    fn sample(&mut self, data_set: usize, fields: &mut [DataValue], _: Now) -> bool {
        self(data_set, fields);
        true
    }
}
