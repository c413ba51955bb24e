//! `taktwerk gateway adapter`: a program for sources of type `program` that makes a value for each tag, for
//! demonstrations and loads. It speaks the protocol of `docs/gateway-programs.md`, in lines of JSON.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The version of the protocol.
const VERSION: u64 = 1;
/// Longest line of the gateway, in bytes.
const LINE_LEN_MAX: u64 = 64 << 20;
/// Longest wait before the program looks for signals.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Interval for sources without one.
const INTERVAL_MS: f64 = 1e3;
/// Longest interval: a day.
const INTERVAL_MAX_MS: f64 = 86_400_000.0;
/// Readings in a line, so that it is shorter than the 1 MiB that the gateway reads.
const READINGS_PER_LINE: usize = 1_000;
/// The kernel keeps this many bytes of the name of a process.
const NAME_LEN_MAX: usize = 15;
/// Updates per period of a sine.
const SINE_UPDATES: f64 = 600.0;

/// A message of the gateway.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Message {
    Start {
        version: u64,
        source: String,
        interval_ms: Option<f64>,
        tags: Vec<Tag>,
    },
    Write {
        id: usize,
        value: Value,
    },
    /// Of a later version.
    #[serde(other)]
    Unknown,
}

/// A tag of the start message.
#[derive(Debug, Deserialize)]
struct Tag {
    id: usize,
    #[serde(default)]
    address: Option<String>,
    r#type: String,
    #[serde(default)]
    array: bool,
    /// The value that a client has written. It stays until the next one.
    #[serde(skip)]
    written: Option<Value>,
}

/// A reading of this program.
#[derive(Debug, Serialize)]
struct Reading {
    id: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    /// Seconds since 1970.
    time: f64,
}

impl Tag {
    /// The value of update `number`, before it is converted to the type of the tag.
    fn number(&self, number: u64) -> f64 {
        match self.address.as_deref() {
            Some("sine") => 50.0 + 20.0 * (number as f64 / SINE_UPDATES * core::f64::consts::TAU).sin(),
            // Mixes the bits of both numbers (SplitMix64), so that tags differ.
            Some("random") => {
                let mut bits =
                    number.wrapping_add((self.id as u64) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
            }
            _ => number as f64,
        }
    }

    fn reading(&self, number: u64, time: f64) -> Reading {
        if let Some(value) = &self.written {
            return Reading { id: self.id, value: Some(value.clone()), status: None, time };
        }
        let made = self.number(number);
        // A random number below one has no whole part.
        let whole = if self.address.as_deref() == Some("random") { made * 100.0 } else { made } as u64;
        let value = match self.r#type.as_str() {
            "Boolean" => Some(json!(whole % 2 == 1)),
            "Float" | "Double" => Some(json!(made)),
            // All integer types have these values.
            "SByte" | "Byte" | "Int16" | "UInt16" | "Int32" | "UInt32" | "Int64" | "UInt64" => {
                Some(json!(whole % 100))
            }
            "String" | "LocalizedText" => Some(json!(made.to_string())),
            "DateTime" => Some(json!(time)),
            _ => None,
        };
        let value = if self.array { value.map(|value| json!([value, value])) } else { value };
        let status = value.is_none().then_some("bad");
        Reading { id: self.id, value, status, time }
    }
}

/// The state of the program.
#[derive(Debug, Default)]
struct State {
    tags: Vec<Tag>,
    /// Interval between updates; `None` before the start message.
    interval: Option<Duration>,
    updates: u64,
    /// Ids of tags that were written and not confirmed yet.
    confirm: Vec<usize>,
    has_ended: bool,
}

impl State {
    /// Takes a message. Returns the name of the source if it is the start message.
    fn take(&mut self, line: &[u8]) -> Result<Option<String>, String> {
        match serde_json::from_slice(line).map_err(|error| format!("ignored a line: {error}"))? {
            Message::Start { version, .. } if version != VERSION => {
                Err(format!("the gateway speaks version {version} of the protocol, this program {VERSION}"))
            }
            Message::Start { source, interval_ms, tags, .. } => {
                let ms = interval_ms.unwrap_or(INTERVAL_MS).clamp(1.0, INTERVAL_MAX_MS);
                self.interval = Duration::try_from_secs_f64(ms / 1e3).ok();
                (self.tags, self.updates) = (tags, 0);
                Ok(Some(source))
            }
            Message::Write { id, value } => {
                let tag = self.tags.iter_mut().find(|tag| tag.id == id);
                tag.ok_or_else(|| format!("ignored a value for the unknown tag {id}"))?.written = Some(value);
                self.confirm.push(id);
                Ok(None)
            }
            Message::Unknown => Ok(None),
        }
    }

    /// The readings of the tags that were written.
    fn confirmed(&mut self, time: f64) -> Vec<Reading> {
        let confirm = std::mem::take(&mut self.confirm);
        let number = self.updates;
        self.tags
            .iter()
            .filter(|tag| confirm.contains(&tag.id))
            .map(|tag| tag.reading(number, time))
            .collect()
    }

    /// The readings of all tags.
    fn update(&mut self, time: f64) -> Vec<Reading> {
        self.updates += 1;
        self.confirm.clear();
        self.tags.iter().map(|tag| tag.reading(self.updates, time)).collect()
    }
}

/// The state, and a signal that it has changed.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads messages until standard input ends.
fn listen(shared: &Shared, from: impl Read) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while matches!(from.by_ref().take(LINE_LEN_MAX).read_until(b'\n', &mut line), Ok(1..)) {
        let mut state = shared.state();
        let taken = state.take(line.trim_ascii());
        if let Ok(Some(source)) = &taken {
            // Under the lock: the process has its name before the first value.
            rename(source);
        }
        drop(state);
        shared.changed.notify_all();
        if let Err(problem) = taken {
            tell!("{problem}");
        }
        line.clear();
    }
    shared.state().has_ended = true;
    shared.changed.notify_all();
}

/// Names this process after its source, so that `top` shows which is which.
fn rename(source: &str) {
    let fits = |(at, letter): &(usize, char)| at + letter.len_utf8() <= NAME_LEN_MAX;
    let name: String = source.char_indices().take_while(fits).map(|(_, letter)| letter).collect();
    if let Err(error) = std::fs::write("/proc/self/comm", name) {
        tracing::debug!(%error, "cannot change the name of this process");
    }
}

/// Writes readings. False if the gateway does not read them any more.
fn write(out: &mut impl Write, line: &mut Vec<u8>, readings: &[Reading]) -> bool {
    readings.chunks(READINGS_PER_LINE).all(|readings| {
        line.clear();
        if serde_json::to_writer(&mut *line, readings).is_err() {
            return true;
        }
        line.push(b'\n');
        out.write_all(line).and_then(|()| out.flush()).is_ok()
    })
}

/// Makes values until standard input or output is closed.
pub(crate) fn run(interrupt: &Interrupt) -> Result<(), Failure> {
    let shared = Arc::new(Shared::default());
    let listening = Arc::clone(&shared);
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || listen(&listening, std::io::stdin()))
        .map_err(|error| Failure::Environment(format!("cannot start a thread: {error}")))?;
    let mut out = std::io::stdout().lock();
    let (mut line, mut due) = (Vec::new(), Instant::now());
    let mut state = shared.state();
    while !state.has_ended && !interrupt.asked() {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let now = Instant::now();
        let readings = match state.interval {
            Some(interval) if now >= due => {
                due += interval;
                if due <= now {
                    // Updates that are overdue are skipped.
                    due = now + interval;
                }
                state.update(time)
            }
            _ => state.confirmed(time),
        };
        if readings.is_empty() {
            let wait = if state.interval.is_some() { due - now } else { CHECK_INTERVAL };
            let waited = shared.changed.wait_timeout(state, wait.min(CHECK_INTERVAL));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        // The gateway may be slow to read.
        drop(state);
        if !write(&mut out, &mut line, &readings) {
            return Ok(());
        }
        state = shared.state();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = r#"{"type":"start","version":1,"source":"s","interval_ms":20.0,"tags":[
        {"id":0,"name":"a","address":null,"type":"Double","array":false,"writable":true},
        {"id":1,"name":"b","address":"sine","type":"Float","array":true,"writable":false},
        {"id":2,"name":"c","address":"random","type":"Byte","array":false,"writable":false},
        {"id":3,"name":"d","address":null,"type":"Guid","array":false,"writable":false}]}"#;

    fn written(readings: &[Reading]) -> Value {
        let mut out = Vec::new();
        assert!(write(&mut out, &mut Vec::new(), readings));
        serde_json::from_slice(&out).unwrap_or_default()
    }

    #[test]
    fn each_tag_has_a_value_of_its_type() {
        let mut state = State::default();
        assert!(state.update(0.0).is_empty() && written(&[]).is_null());
        assert_eq!(state.take(START.as_bytes()), Ok(Some("s".to_owned())));
        assert_eq!(state.interval, Some(Duration::from_millis(20)));
        state.update(1.0);
        let line = written(&state.update(1.5));
        assert_eq!(line[0], json!({"id": 0, "value": 2.0, "time": 1.5}));
        assert!(line[1]["value"].as_array().is_some_and(|list| list.len() == 2), "{line}");
        assert!(line[2]["value"].as_u64().is_some_and(|value| value < 100), "{line}");
        let another = written(&state.update(1.6));
        assert_ne!(line[2]["value"], another[2]["value"], "{another}");
        assert_eq!(line[3], json!({"id": 3, "status": "bad", "time": 1.5}));
    }

    /// The gateway ends a program that writes a line of more than 1 MiB.
    #[test]
    fn readings_of_many_tags_are_several_lines() {
        let tag =
            |id: usize| format!("{{\"id\":{id},\"address\":\"random\",\"type\":\"Double\",\"array\":true}}");
        let tags: Vec<String> = (0..100_000).map(tag).collect();
        let mut state = State::default();
        let start =
            format!("{{\"type\":\"start\",\"version\":1,\"source\":\"s\",\"tags\":[{}]}}", tags.join(","));
        state.take(start.as_bytes()).unwrap();
        let mut out = Vec::new();
        assert!(write(&mut out, &mut Vec::new(), &state.update(1_767_268_800.123)));
        let lines: Vec<&[u8]> = out.split_inclusive(|byte| *byte == b'\n').collect();
        assert!(lines.iter().all(|line| line.len() < 1 << 20));
        let lines = lines.iter().map(|line| serde_json::from_slice::<Vec<Value>>(line).unwrap());
        let ids: Vec<u64> = lines.flatten().map(|reading| reading["id"].as_u64().unwrap()).collect();
        assert!(ids.into_iter().eq(0..100_000));
    }

    #[test]
    fn written_values_are_confirmed_and_stay() {
        let mut state = State::default();
        state.take(START.as_bytes()).unwrap();
        assert_eq!(state.take(br#"{"type":"write","id":0,"name":"a","value":-7.5}"#), Ok(None));
        assert_eq!(written(&state.confirmed(2.0)), json!([{"id": 0, "value": -7.5, "time": 2.0}]));
        assert!(state.confirmed(2.0).is_empty(), "once");
        assert_eq!(written(&state.update(3.0))[0]["value"], json!(-7.5));
        assert!(state.take(br#"{"type":"write","id":9,"value":1}"#).unwrap_err().contains("tag 9"));
    }

    #[test]
    fn unknown_messages_are_ignored_and_wrong_ones_are_told() {
        let mut state = State::default();
        assert_eq!(state.take(br#"{"type":"pause","for":3}"#), Ok(None));
        assert!(state.take(b"hello").unwrap_err().contains("ignored a line"));
        let slow = START.replace("20.0", "1e300");
        assert!(state.take(slow.as_bytes()).is_ok() && state.interval == Some(Duration::from_secs(86_400)));
        let mut state = State::default();
        let later = START.replace("\"version\":1", "\"version\":2");
        assert!(state.take(later.as_bytes()).unwrap_err().contains("version 2"));
        assert_eq!(state.interval, None);
        let shared = Shared::default();
        listen(&shared, format!("{}\nx\n", START.replace('\n', " ")).as_bytes());
        assert!(shared.state().has_ended && shared.state().tags.len() == 4);
    }

    #[test]
    fn random_values_differ_and_are_below_one() {
        let tag = |id| Tag {
            id,
            address: Some("random".to_owned()),
            r#type: "Double".to_owned(),
            array: false,
            written: None,
        };
        let values: Vec<f64> =
            (0..100).flat_map(|number| [tag(0).number(number), tag(1).number(number)]).collect();
        assert!(values.iter().all(|value| (0.0..1.0).contains(value)));
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        assert!((0.4..0.6).contains(&mean), "{mean}");
        assert!(values.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
