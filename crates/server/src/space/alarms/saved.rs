//! Serialized states of conditions, for a restart.
//!
//! Format: `TWALARM` and the version 1; then for each condition its key, the length of its record, and the record.
//! Unknown data at the end of a record, written by a later version, are ignored.

use super::condition::Condition;
use crate::alarm::machine::{BRANCHES_MAX, Branch};
use crate::alarm::state::Times;
use crate::alarm::{LimitSet, Shelving, State};
use std::collections::{BTreeMap, VecDeque};
use taktwerk_types::{
    ByteString, Decode, DecodeError, DecodeLimits, Decoder, Encode, LocalizedText, StatusCode, UaString,
    UtcTime,
};

const MAGIC: &[u8; 8] = b"TWALARM\x01";

/// Why states cannot be restored.
#[derive(Debug, thiserror::Error)]
#[error("invalid file of saved alarm states: {0}. Delete the file to start without saved states")]
pub struct NotSaved(&'static str);

impl From<DecodeError> for NotSaved {
    fn from(_: DecodeError) -> Self {
        Self("it is truncated or damaged")
    }
}

/// The state of one condition.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Saved {
    state: State,
    ids: Vec<ByteString>,
    branches_made: u32,
    branches: Vec<Branch>,
}

impl Saved {
    pub(super) fn of(condition: &Condition) -> Self {
        let machine = &condition.machine;
        Self {
            // Suppression by groups is determined again.
            state: State {
                dialog: None,
                suppressed: machine.is_suppressed_by_call,
                ..machine.state().clone()
            },
            ids: machine.ids.iter().cloned().collect(),
            branches_made: machine.branches_made,
            branches: machine.branches().to_vec(),
        }
    }

    /// Applies the state to a new condition.
    pub(super) fn restore(self, condition: &mut Condition, now: UtcTime) {
        let machine = &mut condition.machine;
        let dialog = machine.state.dialog.take();
        machine.is_suppressed_by_call = self.state.suppressed;
        machine.state = State { dialog, own: condition.own.clone(), ..self.state };
        if !machine.rules.confirms {
            machine.state.confirmed = true;
        }
        if !machine.rules.acknowledges {
            machine.state.acked = true;
        }
        machine.state.latched &= machine.rules.latches;
        machine.ids = self.ids.into();
        machine.branches_made = self.branches_made;
        machine.branches = if machine.rules.keeps_branches { self.branches } else { Vec::new() };
        for branch in &mut machine.branches {
            branch.state.own.clone_from(&condition.own);
        }
        machine.resume(now);
        condition.detector.resume(machine.state.limits, machine.state.active);
        condition.last = machine.ids.back().cloned();
    }
}

/// Serializes all states.
pub(super) fn write(all: Vec<(String, Saved)>) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let mut record = Vec::new();
    for (key, saved) in all {
        record.clear();
        state(&saved.state, &mut record);
        saved.ids.encode(&mut record);
        saved.branches_made.encode(&mut record);
        (saved.branches.len() as u32).encode(&mut record);
        for branch in &saved.branches {
            branch.number.encode(&mut record);
            state(&branch.state, &mut record);
            branch.ids.iter().cloned().collect::<Vec<_>>().encode(&mut record);
        }
        UaString::from(key.as_str()).encode(&mut out);
        ByteString::from(record.clone()).encode(&mut out);
    }
    out
}

/// Parses serialized states.
pub(super) fn read(bytes: &[u8]) -> Result<BTreeMap<String, Saved>, NotSaved> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(NotSaved("it has an unknown header"))?;
    let mut decoder = Decoder::new(rest, DecodeLimits::DEFAULT);
    let mut all = BTreeMap::new();
    while decoder.remaining() > 0 {
        let key = decoder.str()?.unwrap_or_default().to_owned();
        let record = decoder.bytes()?.unwrap_or_default();
        all.insert(key, saved(record)?);
    }
    Ok(all)
}

fn saved(record: &[u8]) -> Result<Saved, DecodeError> {
    let decoder = &mut Decoder::new(record, DecodeLimits::DEFAULT);
    let state = read_state(decoder)?;
    let ids = decoder.array()?;
    let branches_made = u32::decode(decoder)?;
    let count = u32::decode(decoder)?;
    let mut branches = Vec::new();
    for _ in 0..count.min(BRANCHES_MAX as u32) {
        let (number, state) = (u32::decode(decoder)?, read_state(decoder)?);
        let ids: Vec<ByteString> = decoder.array()?;
        branches.push(Branch { number, state, ids: VecDeque::from(ids) });
    }
    Ok(Saved { state, ids, branches_made, branches })
}

fn state(state: &State, out: &mut Vec<u8>) {
    let flags = [
        state.enabled,
        state.active,
        state.acked,
        state.confirmed,
        state.suppressed,
        state.out_of_service,
        state.silenced,
        state.latched,
    ];
    flags.iter().rev().fold(0u8, |all, flag| all << 1 | u8::from(*flag)).encode(out);
    state.limits.bits().encode(out);
    let (kind, until) = match state.shelving {
        Shelving::Unshelved => (0u8, UtcTime::NULL),
        Shelving::TimedShelved { until } => (1, until),
        Shelving::OneShotShelved { until } => (2, until.unwrap_or(UtcTime::NULL)),
    };
    kind.encode(out);
    until.encode(out);
    state.severity.encode(out);
    state.last_severity.encode(out);
    state.quality.encode(out);
    state.comment.encode(out);
    UaString::from(&*state.user).encode(out);
    state.re_alarms.encode(out);
    UaString::from(&*state.message).encode(out);
    state.time.encode(out);
    for time in times(&state.times) {
        time.encode(out);
    }
}

fn times(times: &Times) -> [UtcTime; 12] {
    [
        times.enabled,
        times.active,
        times.acked,
        times.confirmed,
        times.suppressed,
        times.out_of_service,
        times.silenced,
        times.latched,
        times.limits,
        times.quality,
        times.severity,
        times.comment,
    ]
}

fn read_state(decoder: &mut Decoder<'_>) -> Result<State, DecodeError> {
    let flags = decoder.byte()?;
    let flag = |at: u8| flags & (1 << at) != 0;
    let limits = LimitSet::from_bits(decoder.byte()?);
    let (kind, until) = (decoder.byte()?, UtcTime::decode(decoder)?);
    let shelving = match kind {
        1 => Shelving::TimedShelved { until },
        2 => Shelving::OneShotShelved { until: (!until.is_null()).then_some(until) },
        _ => Shelving::Unshelved,
    };
    let (severity, last_severity) = (u16::decode(decoder)?, u16::decode(decoder)?);
    let quality = StatusCode::decode(decoder)?;
    let comment = LocalizedText::decode(decoder)?;
    let user = decoder.str()?.unwrap_or_default().into();
    let re_alarms = i16::decode(decoder)?;
    let message = decoder.str()?.unwrap_or_default().into();
    let time = UtcTime::decode(decoder)?;
    let mut next = || UtcTime::decode(decoder);
    let times = Times {
        enabled: next()?,
        active: next()?,
        acked: next()?,
        confirmed: next()?,
        suppressed: next()?,
        out_of_service: next()?,
        silenced: next()?,
        latched: next()?,
        limits: next()?,
        quality: next()?,
        severity: next()?,
        comment: next()?,
    };
    Ok(State {
        enabled: flag(0),
        active: flag(1),
        limits,
        acked: flag(2),
        confirmed: flag(3),
        suppressed: flag(4),
        first_in_group: None,
        out_of_service: flag(5),
        silenced: flag(6),
        latched: flag(7),
        shelving,
        severity,
        last_severity,
        quality,
        comment,
        user,
        re_alarms,
        message,
        time,
        dialog: None,
        own: None,
        times,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn example(flags: u8, ticks: i64, text: &str) -> Saved {
        let at = |number: i64| UtcTime::from_ticks(ticks.wrapping_add(number));
        let flag = |at: u8| flags & (1 << at) != 0;
        let mut state = State::new(300, at(0));
        (state.enabled, state.active, state.acked, state.confirmed) = (flag(0), flag(1), flag(2), flag(3));
        (state.suppressed, state.out_of_service) = (flag(4), flag(5));
        (state.silenced, state.latched) = (flag(6), flag(7));
        state.limits = LimitSet::from_bits(flags);
        state.shelving = match flags % 3 {
            0 => Shelving::Unshelved,
            1 => Shelving::TimedShelved { until: at(77) },
            _ => Shelving::OneShotShelved { until: None },
        };
        state.comment = LocalizedText::from(text);
        (state.user, state.message) = (text.into(), text.into());
        state.times.comment = at(5);
        let ids: VecDeque<_> = [ByteString::from(vec![flags])].into();
        let branch = Branch { number: 3, state: state.clone(), ids: ids.clone() };
        Saved { state, ids: ids.into(), branches_made: 3, branches: vec![branch] }
    }

    proptest! {
        #[test]
        fn states_round_trip(flags in any::<u8>(), ticks in 1i64..1 << 60, text in ".{0,20}") {
            let all = vec![("a".to_owned(), example(flags, ticks, &text)), ("b".to_owned(), example(!flags, ticks, "x"))];
            let read = read(&write(all.clone())).unwrap();
            prop_assert_eq!(read.into_iter().collect::<Vec<_>>(), all);
        }

        #[test]
        fn damaged_bytes_are_refused_or_read_and_never_panic(at in 0usize..400, byte in any::<u8>(), cut in 0usize..400) {
            let mut bytes = write(vec![("a".to_owned(), example(7, 1000, "text"))]);
            let len = bytes.len();
            bytes[at % len] = byte;
            let _ = read(&bytes);
            bytes.truncate(cut % len);
            let _ = read(&bytes);
        }
    }

    #[test]
    fn truncated_states_are_refused() {
        let bytes = write(vec![("a".to_owned(), example(7, 1000, "text"))]);
        assert!(read(&bytes[..bytes.len() - 1]).is_err());
        assert!(read(b"something else").is_err());
        assert!(read(MAGIC).unwrap().is_empty());
    }
}
