//! Parses DBC files: messages and signals.

use super::bits::{Bits, DATA_MAX, Meaning};
use crate::linear::Linear;
use can_dbc::{
    AttributeValue, ByteOrder, Comment, Dbc, ExtendedMultiplex, MessageId, MultiplexIndicator, NumericValue,
    SignalExtendedValueType, ValDescription, ValueDescription, ValueType,
};
use core::time::Duration;
use std::collections::{HashMap, HashSet};
use taktwerk_types::{BuiltInType, Variant};

/// Largest file in bytes.
pub const FILE_MAX: usize = 32 << 20;
/// Most nested multiplexor switches.
const SWITCHES_MAX: usize = 16;

/// The content of a DBC file.
#[derive(Debug, Clone, Default)]
pub struct Network {
    /// Its messages.
    pub messages: Vec<Message>,
}

/// A message: a frame with signals.
#[derive(Debug, Clone)]
pub struct Message {
    /// The identifier; bit 31 marks 29-bit identifiers.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Length of its frames in bytes.
    pub len: usize,
    /// Its cycle time: the attribute GenMsgCycleTime.
    pub cycle: Option<Duration>,
    /// Its signals. Signals beyond the frame are omitted.
    pub signals: Vec<Signal>,
}

/// A value in a message.
#[derive(Debug, Clone)]
pub struct Signal {
    /// Its name.
    pub name: String,
    bits: Bits,
    meaning: Meaning,
    scaling: Linear,
    /// The range of values; `None` if the file has none.
    pub range: Option<(f64, f64)>,
    /// The unit; empty if there is none.
    pub unit: String,
    /// The comment of the file.
    pub comment: Option<String>,
    /// Names of values.
    pub labels: Vec<(i64, String)>,
    when: Option<When>,
}

/// A multiplexed signal is present if its switch has one of these values.
#[derive(Debug, Clone)]
struct When {
    /// The index of the switch signal.
    switch: usize,
    /// Inclusive ranges of switch values.
    values: Vec<(u64, u64)>,
}

impl Network {
    /// Parses a file in UTF-8, or in Windows-1252, which most tools write.
    ///
    /// # Errors
    /// Why the file is not a DBC file.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > FILE_MAX {
            return Err(format!("has more than {FILE_MAX} bytes"));
        }
        let text = match core::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => can_dbc::decode_cp1252(bytes).ok_or("is neither UTF-8 nor Windows-1252")?,
        };
        let text = text.trim_start_matches('\u{feff}');
        let dbc = Dbc::try_from(text).map_err(|error| explained(&error.to_string()))?;
        let index = Index::new(&dbc);
        Ok(Self { messages: dbc.messages.iter().map(|message| Message::of(&dbc, &index, message)).collect() })
    }

    /// The index of a message.
    #[must_use]
    pub fn message(&self, name: &str) -> Option<usize> {
        self.messages.iter().position(|message| message.name == name)
    }
}

/// The parser's message without the line, which may be as long as the file.
fn explained(error: &str) -> String {
    let place = error.lines().find_map(|line| line.trim_start().strip_prefix("--> "));
    let line = place.and_then(|place| place.split(':').next()).unwrap_or("?");
    let said = error.lines().last().unwrap_or_default().trim_start_matches([' ', '=']);
    format!("line {line}: {}", said.chars().take(200).collect::<String>())
}

/// Additional information about signals, by message and name. The first entry counts.
struct Index<'a> {
    comments: HashMap<(MessageId, &'a str), &'a str>,
    labels: HashMap<(MessageId, &'a str), &'a [ValDescription]>,
    types: HashMap<(MessageId, &'a str), SignalExtendedValueType>,
    switches: HashMap<(MessageId, &'a str), &'a ExtendedMultiplex>,
}

impl<'a> Index<'a> {
    fn new(dbc: &'a Dbc) -> Self {
        // In reverse order: inserting replaces, so the first entry wins.
        let comments = dbc.comments.iter().rev().filter_map(|it| match it {
            Comment::Signal { message_id, name, comment } => Some(((*message_id, &**name), &**comment)),
            _ => None,
        });
        let labels = dbc.value_descriptions.iter().rev().filter_map(|it| match it {
            ValueDescription::Signal { message_id, name, value_descriptions } => {
                Some(((*message_id, &**name), &**value_descriptions))
            }
            ValueDescription::EnvironmentVariable { .. } => None,
        });
        let types = dbc.signal_extended_value_type_list.iter().rev();
        let types = types.map(|it| ((it.message_id, &*it.signal_name), it.signal_extended_value_type));
        let switches = dbc.extended_multiplex.iter().rev();
        Self {
            comments: comments.collect(),
            labels: labels.collect(),
            types: types.collect(),
            switches: switches.map(|it| ((it.message_id, &*it.signal_name), it)).collect(),
        }
    }
}

impl Message {
    fn of(dbc: &Dbc, index: &Index<'_>, message: &can_dbc::Message) -> Self {
        let len = usize::try_from(message.size).unwrap_or(DATA_MAX).min(DATA_MAX);
        let mut names = HashSet::new();
        let firsts = message.signals.iter().filter(|signal| names.insert(&*signal.name));
        let mut found: Vec<(&can_dbc::Signal, Signal)> =
            firsts.filter_map(|signal| Some((signal, Signal::of(index, message.id, signal, len)?))).collect();
        let is_switch =
            |signal: &&can_dbc::Signal| signal.multiplexer_indicator == MultiplexIndicator::Multiplexor;
        let first = message.signals.iter().find(is_switch).map(|signal| &*signal.name);
        // The name of its switch, with the values; an unknown switch has no name.
        let switch_of = |signal: &can_dbc::Signal| {
            let extended = index.switches.get(&(message.id, &*signal.name));
            match (extended, signal.multiplexer_indicator) {
                (Some(extended), _) => {
                    let ranges = extended.mappings.iter().map(|range| (range.min_value, range.max_value));
                    Some((&*extended.multiplexor_signal_name, ranges.collect()))
                }
                (
                    None,
                    MultiplexIndicator::MultiplexedSignal(value)
                    | MultiplexIndicator::MultiplexorAndMultiplexedSignal(value),
                ) => Some((first.unwrap_or_default(), vec![(value, value)])),
                (None, MultiplexIndicator::Plain | MultiplexIndicator::Multiplexor) => None,
            }
        };
        // Without its switch, a signal cannot be located and is removed. It may be a switch itself, so repeat.
        loop {
            let there: HashSet<&str> = found.iter().map(|(signal, _)| &*signal.name).collect();
            let before = found.len();
            found.retain(|(signal, _)| switch_of(signal).is_none_or(|(switch, _)| there.contains(switch)));
            if found.len() == before {
                break;
            }
        }
        let positions: HashMap<&str, usize> =
            found.iter().enumerate().map(|(at, (signal, _))| (&*signal.name, at)).collect();
        let when = |signal| {
            let (switch, values): (&str, Vec<(u64, u64)>) = switch_of(signal)?;
            Some(When { switch: *positions.get(switch)?, values })
        };
        let signals = found.into_iter().map(|(signal, own)| Signal { when: when(signal), ..own }).collect();
        Self { id: message.id.raw(), name: message.name.clone(), len, cycle: cycle(dbc, message.id), signals }
    }

    /// The index of a signal.
    #[must_use]
    pub fn signal(&self, name: &str) -> Option<usize> {
        self.signals.iter().position(|signal| signal.name == name)
    }

    /// The switches on which a signal depends, with the required values.
    fn switches(&self, signal: usize) -> impl Iterator<Item = (&Signal, &When)> {
        let mut next = self.signals.get(signal).and_then(|signal| signal.when.as_ref());
        let step = move || {
            let when = next?;
            let switch = self.signals.get(when.switch)?;
            next = switch.when.as_ref();
            Some((switch, when))
        };
        // Limited, because a file may contain a cycle of switches.
        core::iter::from_fn(step).take(SWITCHES_MAX)
    }

    /// The bits of a signal in a frame; `None` if the signal is not present.
    ///
    /// # Errors
    /// The frame is too short for it, or for its switch.
    fn raw(&self, signal: usize, data: &[u8]) -> Result<Option<u64>, TooShort> {
        for (switch, when) in self.switches(signal) {
            let value = switch.bits.get(data).ok_or(TooShort)?;
            if !when.values.iter().any(|(first, last)| (*first..=*last).contains(&value)) {
                return Ok(None);
            }
        }
        let Some(signal) = self.signals.get(signal) else { return Ok(None) };
        signal.bits.get(data).map(Some).ok_or(TooShort)
    }

    /// The value of a signal in a frame; `None` if the signal is not present.
    ///
    /// # Errors
    /// The frame is too short for it, or for its switch.
    pub fn value(&self, signal: usize, data: &[u8]) -> Result<Option<Variant>, TooShort> {
        let raw = self.raw(signal, data)?;
        Ok(raw.zip(self.signals.get(signal)).map(|(raw, signal)| signal.physical(raw)))
    }

    /// The name of a signal's value in a frame, or the number if it has no name; `None` if the signal is not present.
    ///
    /// # Errors
    /// The frame is too short for it, or for its switch.
    pub fn label(&self, signal: usize, data: &[u8]) -> Result<Option<Variant>, TooShort> {
        let raw = self.raw(signal, data)?;
        Ok(raw.zip(self.signals.get(signal)).map(|(raw, signal)| match signal.label(raw) {
            Some(label) => label.into(),
            None => signal.physical(raw).to_string().into(),
        }))
    }

    /// Writes the value of a signal into a frame, including the values of its switches.
    ///
    /// # Errors
    /// Why the value cannot be sent.
    pub fn set(&self, signal: usize, value: &Variant, data: &mut [u8]) -> Result<(), Unsendable> {
        let found = self.signals.get(signal).ok_or(Unsendable::TooShort)?;
        let raw = found.raw_of(value)?;
        for (switch, when) in self.switches(signal) {
            let now = switch.bits.get(data).ok_or(Unsendable::TooShort)?;
            let is_there = when.values.iter().any(|(first, last)| (*first..=*last).contains(&now));
            if let Some((first, _)) = when.values.first().filter(|_| !is_there)
                && !switch.bits.set(data, *first)
            {
                return Err(Unsendable::TooShort);
            }
        }
        if !found.bits.set(data, raw) {
            return Err(Unsendable::TooShort);
        }
        // A switch may not support the value, or overlap the signal's bits; then another signal would have the value.
        if self.raw(signal, data) == Ok(Some(raw)) { Ok(()) } else { Err(Unsendable::OutOfRange) }
    }
}

/// A frame is too short for a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooShort;

/// Why a value cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsendable {
    /// Neither a number nor the name of a value.
    NoNumber,
    /// Outside of the signal's range.
    OutOfRange,
    /// The frame is too short.
    TooShort,
}

impl Signal {
    fn of(index: &Index<'_>, message: MessageId, signal: &can_dbc::Signal, len: usize) -> Option<Self> {
        let key = (message, &*signal.name);
        let is_big_endian = signal.byte_order == ByteOrder::BigEndian;
        let bits = Bits::new(signal.start_bit, signal.size, is_big_endian, len)?;
        let extended = index.types.get(&key);
        let meaning = match (extended, signal.size, signal.value_type) {
            (Some(SignalExtendedValueType::IEEEfloat32Bit), 32, _) => Meaning::Float,
            (Some(SignalExtendedValueType::IEEEdouble64bit), 64, _) => Meaning::Double,
            (_, _, ValueType::Signed) => Meaning::Signed,
            (_, _, ValueType::Unsigned) => Meaning::Unsigned,
        };
        let number = |value: &NumericValue| match value {
            NumericValue::Uint(value) => *value as f64,
            NumericValue::Int(value) => *value as f64,
            NumericValue::Double(value) => *value,
        };
        let range = (number(&signal.min), number(&signal.max));
        let labels = index.labels.get(&key).copied().unwrap_or_default();
        Some(Self {
            name: signal.name.clone(),
            bits,
            meaning,
            // Some files have a factor of 0, which would make every value the same; they mean 1.
            scaling: Linear::new(
                if signal.factor == 0.0 || !signal.factor.is_finite() { 1.0 } else { signal.factor },
                if signal.offset.is_finite() { signal.offset } else { 0.0 },
            ),
            // [0|0] means that there is no range.
            range: Some(range).filter(|(low, high)| low < high),
            unit: signal.unit.trim().to_owned(),
            comment: index.comments.get(&key).map(|comment| (*comment).to_owned()),
            labels: labels.iter().map(|label| (label.id, label.description.clone())).collect(),
            when: None,
        })
    }

    fn is_scaled(&self) -> bool {
        !self.scaling.is_identity()
    }

    /// The data type of its values.
    #[must_use]
    pub fn kind(&self) -> BuiltInType {
        match (self.meaning, self.bits.size()) {
            (Meaning::Float, _) if !self.is_scaled() => BuiltInType::Float,
            _ if self.is_scaled() => BuiltInType::Double,
            (Meaning::Float | Meaning::Double, _) => BuiltInType::Double,
            (Meaning::Unsigned, 1) => BuiltInType::Boolean,
            (Meaning::Unsigned, ..=8) => BuiltInType::Byte,
            (Meaning::Unsigned, ..=16) => BuiltInType::UInt16,
            (Meaning::Unsigned, ..=32) => BuiltInType::UInt32,
            (Meaning::Unsigned, _) => BuiltInType::UInt64,
            (Meaning::Signed, ..=8) => BuiltInType::SByte,
            (Meaning::Signed, ..=16) => BuiltInType::Int16,
            (Meaning::Signed, ..=32) => BuiltInType::Int32,
            (Meaning::Signed, _) => BuiltInType::Int64,
        }
    }

    /// Whether all its values are named states, and not numbers of which only some have names, such as an error.
    #[must_use]
    pub fn has_states(&self) -> bool {
        let is_whole = matches!(self.meaning, Meaning::Signed | Meaning::Unsigned) && !self.is_scaled();
        is_whole && !self.labels.is_empty() && self.unit.is_empty()
    }

    fn physical(&self, raw: u64) -> Variant {
        let number = match self.meaning {
            Meaning::Unsigned if !self.is_scaled() => {
                return if self.bits.size() == 1 { Variant::Boolean(raw != 0) } else { Variant::UInt64(raw) };
            }
            Meaning::Signed if !self.is_scaled() => return Variant::Int64(self.bits.signed(raw)),
            Meaning::Float if !self.is_scaled() => return Variant::Float(f32::from_bits(raw as u32)),
            Meaning::Unsigned => raw as f64,
            Meaning::Signed => self.bits.signed(raw) as f64,
            Meaning::Float => f64::from(f32::from_bits(raw as u32)),
            Meaning::Double => f64::from_bits(raw),
        };
        Variant::Double(self.scaling.apply(number))
    }

    fn label(&self, raw: u64) -> Option<&str> {
        let number = match self.meaning {
            Meaning::Signed => self.bits.signed(raw),
            Meaning::Unsigned => i64::try_from(raw).ok()?,
            Meaning::Float | Meaning::Double => return None,
        };
        let (_, label) = self.labels.iter().find(|(value, _)| *value == number)?;
        Some(label)
    }

    /// The bits for a value, given as a number or a name.
    fn raw_of(&self, value: &Variant) -> Result<u64, Unsendable> {
        let fit = |whole: i128| -> Result<u64, Unsendable> {
            let mask = i128::from(self.bits.mask());
            let (low, high) = match self.meaning {
                Meaning::Signed => (-(mask / 2) - 1, mask / 2),
                _ => (0, mask),
            };
            if (low..=high).contains(&whole) {
                Ok((whole & mask) as u64)
            } else {
                Err(Unsendable::OutOfRange)
            }
        };
        if let Variant::String(text) = value
            && let Some((number, _)) = self.labels.iter().find(|(_, label)| label == text.as_str())
        {
            return fit(i128::from(*number));
        }
        let number = match value {
            Variant::String(text) => text.as_str().trim().parse().map_err(|_| Unsendable::NoNumber)?,
            Variant::Boolean(flag) => f64::from(u8::from(*flag)),
            Variant::Int64(whole) => *whole as f64,
            Variant::UInt64(whole) => *whole as f64,
            other => other.as_f64().ok_or(Unsendable::NoNumber)?,
        };
        if self.range.is_some_and(|(low, high)| !(low..=high).contains(&number)) {
            return Err(Unsendable::OutOfRange);
        }
        let unscaled = self.scaling.revert(number);
        match (self.meaning, value) {
            // Keep large integers exact.
            (Meaning::Signed | Meaning::Unsigned, Variant::Int64(whole)) if !self.is_scaled() => {
                fit(i128::from(*whole))
            }
            (Meaning::Signed | Meaning::Unsigned, Variant::UInt64(whole)) if !self.is_scaled() => {
                fit(i128::from(*whole))
            }
            (Meaning::Signed | Meaning::Unsigned, _) if !unscaled.is_finite() => Err(Unsendable::OutOfRange),
            (Meaning::Signed | Meaning::Unsigned, _) => fit(unscaled.round() as i128),
            (Meaning::Float, _) if unscaled.is_finite() && (unscaled as f32).is_infinite() => {
                Err(Unsendable::OutOfRange)
            }
            (Meaning::Float, _) => Ok(u64::from((unscaled as f32).to_bits())),
            (Meaning::Double, _) => Ok(unscaled.to_bits()),
        }
    }
}

fn cycle(dbc: &Dbc, message: MessageId) -> Option<Duration> {
    let millis = match dbc.resolved_message_attribute(message, "GenMsgCycleTime")? {
        AttributeValue::Uint(millis) => *millis as f64,
        AttributeValue::Int(millis) => *millis as f64,
        AttributeValue::Double(millis) => *millis,
        AttributeValue::String(_) => return None,
    };
    // 0 means that it is not sent cyclically.
    (1.0..1e9).contains(&millis).then(|| Duration::from_secs_f64(millis / 1e3))
}

#[cfg(test)]
mod tests;
