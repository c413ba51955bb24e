//! Repeated measurements by side and quantity.

use crate::statistics;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// The measured side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// This project's server.
    Ours,
    /// The peer's server.
    Peer,
    /// A bare program that does the same without a protocol.
    Floor,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ours => "ours",
            Self::Peer => "open62541",
            Self::Floor => "floor",
        })
    }
}

/// Named quantities of one measurement.
pub(super) type Quantities = Vec<(&'static str, f64)>;

/// All repetitions of a figure.
#[derive(Debug, Default)]
pub(super) struct Samples {
    values: BTreeMap<(Side, &'static str), Vec<f64>>,
    problems: Vec<(Side, String)>,
}

impl Samples {
    pub(super) fn add(&mut self, side: Side, name: &'static str, value: f64) {
        self.values.entry((side, name)).or_default().push(value);
    }

    /// Records a failed repetition.
    pub(super) fn problem(&mut self, side: Side, what: String) {
        self.problems.push((side, what));
    }

    pub(super) fn problems(&self) -> &[(Side, String)] {
        &self.problems
    }

    /// The repetitions of a quantity.
    pub(super) fn of(&self, side: Side, name: &'static str) -> &[f64] {
        self.values.get(&(side, name)).map_or(&[], Vec::as_slice)
    }

    /// Their median.
    pub(super) fn median(&self, side: Side, name: &'static str) -> Option<f64> {
        statistics::median(self.of(side, name))
    }

    /// Everything, for the document.
    pub(super) fn document(&self) -> Value {
        let mut sides = serde_json::Map::new();
        for ((side, name), values) in &self.values {
            let entry = sides.entry(side.to_string()).or_insert_with(|| json!({}));
            if let Some(object) = entry.as_object_mut() {
                object.insert((*name).to_owned(), json!(values));
            }
        }
        Value::Object(sides)
    }
}
