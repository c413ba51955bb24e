//! Where a publisher's values come from.

use super::FieldWriter;
use crate::time::Now;
use taktwerk_types::{DataValue, Variant};

/// What became of [`Values::write`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InPlace {
    /// This source does not write so; [`Values::sample`] is called instead.
    NotOffered,
    /// There is nothing to send in this cycle: only sources that are not cyclic may say so.
    NothingToSend,
    /// All fields are written.
    Written,
}

/// The source of all values a [`crate::Publisher`] sends.
pub trait Values {
    /// Writes the current value of every field of a data set.
    ///
    /// `data_set` is its position in [`crate::config::Configuration::data_sets`]; `fields` are in the order of its
    /// metadata and hold what was written the last time. All fields of a data set are asked for at once, so that they
    /// can belong together. The answer says whether there is something to send: only sources that are not cyclic
    /// may say no.
    fn sample(&mut self, data_set: usize, fields: &mut [DataValue], now: Now) -> bool;

    /// Does the same as [`Self::sample`] for data sets of which every cycle sends all fields, right into the message: no
    /// value passes through memory of its own. For thousands of numbers in every cycle that is most of what they cost.
    ///
    /// [`Self::sample`] may follow in the same cycle: if a field is no longer as long as it was.
    fn write(&mut self, data_set: usize, fields: &mut FieldWriter<'_>, now: Now) -> InPlace {
        let _ = (data_set, fields, now);
        InPlace::NotOffered
    }

    /// Moves the next event of an event data set into `fields`; false if there is none.
    fn next_event(&mut self, data_set: usize, fields: &mut Vec<Variant>) -> bool {
        let _ = (data_set, fields);
        false
    }

    /// The source itself, for who changes it while the publisher runs.
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
