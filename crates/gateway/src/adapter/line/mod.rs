//! Devices that send text over TCP or a serial line, such as scales and scanners, also behind a serial device server.
//!
//! - `frame`: splits a byte stream into frames.

pub mod frame;

use crate::connect::{self, host_and_port, target};
use crate::extract::Extractor;
use crate::fault::Fault;
use crate::feed::{Feed, Write, Writes};
use crate::fields::{Fields, Mistake};
use crate::lines::Lines;
use crate::serial::{Parity, SerialLine};
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::statistics::Count;
use crate::tag::{Access, Tag};
use crate::value::to_json;
use core::time::Duration;
use frame::{ETX, Framer, STX};
use futures_util::future::BoxFuture;
use serde_json::Value as Json;
use std::path::Path;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout, timeout_at};

/// Within a text, no serial line pauses this long.
const PAUSE: Duration = Duration::from_millis(100);
/// The default port of most serial device servers.
const PORT: u16 = 4001;

/// A device that sends text.
#[derive(Debug)]
pub struct Line {
    way: Way,
    framer: Framer,
    poll: Option<String>,
    poll_every: Duration,
    silence_max: Option<Duration>,
    extractor: Extractor,
    /// The text to send when a client writes a tag, by position.
    writes: Vec<Option<String>>,
}

/// The connection type.
#[derive(Debug, Clone, PartialEq)]
enum Way {
    Tcp(String, u16),
    Serial(SerialLine),
}

/// A connection.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    Line,
    StxEtx,
    Fixed,
    Length,
}

/// Takes the framing settings.
fn take_framer(fields: &mut Fields) -> Result<Framer, Mistake> {
    let most = fields.integer("frame_max", 1, 1 << 20)?.unwrap_or(4096) as usize;
    let words = [
        ("line", Framing::Line),
        ("stx-etx", Framing::StxEtx),
        ("fixed", Framing::Fixed),
        ("length", Framing::Length),
    ];
    let framing = fields.word("framing", &words)?.unwrap_or(Framing::Line);
    let size = fields.integer("frame_bytes", 1, 1 << 20)?.map(|size| size as usize);
    if size.is_some() && framing != Framing::Fixed {
        let hint = "set framing = \"fixed\", or remove it";
        return Err(fields.mistake("frame_bytes is for frames of a fixed length", hint));
    }
    let (start, end) = (fields.integer("start_byte", 0, 255)?, fields.integer("end_byte", 0, 255)?);
    if (start.is_some() || end.is_some()) && framing != Framing::StxEtx {
        let hint = "set framing = \"stx-etx\", or remove them";
        return Err(fields.mistake("start_byte and end_byte are for frames between two bytes", hint));
    }
    let marks = (start.map_or(STX, |byte| byte as u8), end.map_or(ETX, |byte| byte as u8));
    if framing == Framing::StxEtx && marks.0 == marks.1 {
        let hint = "write the two bytes between which a frame is";
        return Err(fields.mistake(format!("start_byte and end_byte are both {}", marks.0), hint));
    }
    let bytes = fields.integer("length_bytes", 1, 4)?;
    let is_little = fields.word("length_order", &[("big", false), ("little", true)])?;
    if (bytes.is_some() || is_little.is_some()) && framing != Framing::Length {
        let hint = "set framing = \"length\", or remove them";
        return Err(fields.mistake("length_bytes and length_order are for frames behind their length", hint));
    }
    Ok(match framing {
        Framing::Line => Framer::Lines(Lines::new(most)),
        Framing::StxEtx => Framer::Between { start: marks.0, end: marks.1, begun: None, most },
        Framing::Fixed => match size {
            Some(size) => Framer::Fixed { begun: Vec::new(), size },
            None => return Err(fields.mistake("frame_bytes is missing", "write the bytes of a frame")),
        },
        Framing::Length => Framer::Length {
            size: bytes.unwrap_or(2) as usize,
            is_little_endian: is_little.unwrap_or(false),
            begun: Vec::new(),
            most,
            skip: 0,
        },
    })
}

impl Line {
    /// Takes the settings of a source.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, _: &SourceSettings) -> Result<Self, Mistake> {
        let way = match (fields.text_at("address")?, fields.text("device")?) {
            (Some((line, address)), None) => {
                let hint = "write HOST or HOST:PORT, such as \"scale7:4001\"";
                let problem = format!("{address:?} is no address");
                let (host, port) = host_and_port(&address, PORT)
                    .ok_or_else(|| fields.mistake_in(line, "address", problem, hint))?;
                Way::Tcp(host, port)
            }
            (None, Some(device)) => {
                let line = SerialLine::take(fields, device, 9600, Parity::None)?;
                Way::Serial(SerialLine {
                    data_bits: fields.integer("data_bits", 7, 8)?.unwrap_or(8) as u8,
                    ..line
                })
            }
            (Some(_), Some(_)) => {
                let hint = "remove address for a serial line, or device for a connection over TCP";
                return Err(fields.mistake("this source has an address or a device, not both", hint));
            }
            (None, None) => {
                let hint = "write address = \"scale7:4001\", or device = \"/dev/ttyUSB0\" for a serial line";
                let mistake = fields.misspelt(&["address", "device"]);
                return Err(mistake
                    .unwrap_or_else(|| fields.mistake("this source needs an address or a device", hint)));
            }
        };
        let framer = take_framer(fields)?;
        let poll = fields.text("poll")?;
        let poll_every = fields.span("poll_every")?;
        if poll.as_ref().is_some_and(String::is_empty) {
            return Err(
                fields.mistake("poll is empty", "write the text to send, such as \"S\\r\\n\", or remove it")
            );
        }
        if poll.is_none() && poll_every.is_some() {
            return Err(fields.mistake("poll_every needs a text to send", "set poll, or remove it"));
        }
        Ok(Self {
            way,
            framer,
            poll,
            poll_every: poll_every.unwrap_or(Duration::from_secs(1)).max(Duration::from_millis(1)),
            silence_max: fields.span("silence_max")?,
            extractor: Extractor::take(fields, Path::new(""))?,
            writes: Vec::new(),
        })
    }

    fn target(&self) -> String {
        match &self.way {
            Way::Tcp(host, port) => target(host, *port),
            Way::Serial(line) => line.device.clone(),
        }
    }

    async fn open(&self, deadline: Duration) -> Result<Box<dyn Stream>, Fault> {
        match &self.way {
            Way::Tcp(host, port) => Ok(Box::new(connect::tcp(host, *port, deadline).await?)),
            Way::Serial(line) => {
                let mut port = line.open()?;
                // The rest of a text that is just being sent would be another value.
                let is_lines = matches!(self.framer, Framer::Lines(_));
                let ends = |piece: &[u8]| is_lines && piece.ends_with(b"\n");
                let discarded = port.discard(PAUSE, deadline, ends).await;
                discarded.map_err(|error| Fault::other(self.target(), error))?;
                Ok(Box::new(port))
            }
        }
    }

    async fn send(&self, stream: &mut impl Stream, text: &str, deadline: Duration) -> Result<(), Fault> {
        match timeout(deadline, stream.write_all(text.as_bytes())).await {
            Err(_) => Err(Fault::NoAnswer { target: self.target(), after: deadline }),
            Ok(Err(error)) => Err(Fault::other(self.target(), error)),
            Ok(Ok(())) => Ok(()),
        }
    }

    fn text_of(&self, write: &Write) -> Option<String> {
        let template = self.writes.get(write.position)?.as_ref()?;
        let value = match to_json(&write.value) {
            Json::String(text) => text,
            other => other.to_string(),
        };
        // A written value must not contain the start of another command.
        let is_plain = !value.chars().any(char::is_control);
        is_plain.then(|| template.replace("{value}", &value))
    }

    async fn deliver(&self, frames: &[String], dropped: u64, feed: &Feed) {
        let (mut dropped, mut invalid, mut readings) = (dropped as usize, 0, Vec::new());
        let at_once = self.extractor.lines_at_once();
        for (at, frame) in frames.iter().filter(|frame| !frame.is_empty()).enumerate() {
            if at % at_once == at_once - 1 {
                if !readings.is_empty() {
                    feed.deliver(core::mem::take(&mut readings));
                }
                // Let other sources of this thread run.
                tokio::task::yield_now().await;
            }
            match self.extractor.line(frame) {
                None => invalid += 1,
                Some(found) if found.is_empty() => dropped += 1,
                Some(found) => readings.extend(found),
            }
        }
        feed.statistics().add(Count::Dropped, dropped);
        feed.statistics().add(Count::Invalid, invalid);
        if !readings.is_empty() {
            feed.deliver(readings);
        }
    }

    async fn session(&mut self, feed: &Feed, writes: &mut Writes) -> Result<(), Fault> {
        let deadline = feed.settings().deadline;
        let stream = self.open(deadline).await?;
        feed.connected();
        self.talk(stream, feed, writes).await
    }

    async fn talk(&self, mut stream: impl Stream, feed: &Feed, writes: &mut Writes) -> Result<(), Fault> {
        let deadline = feed.settings().deadline;
        let mut framer = self.framer.clone();
        let mut ticks = interval(self.poll_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut heard = Instant::now();
        // On a serial line, a pause ends a text: what is incomplete then lacks a byte, or has one too many.
        let is_serial = matches!(self.way, Way::Serial(_));
        let mut received = Instant::now();
        // Since when an answer is pending.
        let mut asked: Option<Instant> = None;
        let mut piece = vec![0; 4096];
        loop {
            let answer_due = asked.map(|asked| (asked + deadline, deadline));
            let silence_due = self.silence_max.map(|most| (heard + most, most));
            let due = answer_due.into_iter().chain(silence_due).min();
            let pause_at = (is_serial && framer.can_resume()).then(|| received + PAUSE);
            tokio::select! {
                write = writes.next() => match self.text_of(&write) {
                    None => feed.statistics().add(Count::WriteErrors, 1),
                    Some(text) => {
                        self.send(&mut stream, &text, deadline).await?;
                        feed.statistics().add(Count::Writes, 1);
                    }
                },
                _ = ticks.tick(), if self.poll.is_some() => {
                    feed.statistics().add(Count::Requests, 1);
                    asked.get_or_insert_with(Instant::now);
                    self.send(&mut stream, self.poll.as_deref().unwrap_or_default(), deadline).await?;
                }
                () = async { sleep_until(due.map_or_else(Instant::now, |(at, _)| at)).await }, if due.is_some() => {
                    let after = due.map_or(deadline, |(_, after)| after);
                    return Err(Fault::NoAnswer { target: self.target(), after });
                }
                count = read_until(&mut stream, &mut piece, pause_at) => {
                    let Some(count) = count.map_err(|error| Fault::other(self.target(), error))? else {
                        framer.resume();
                        feed.statistics().add(Count::Dropped, 1);
                        continue;
                    };
                    if count == 0 {
                        return Err(Fault::Closed { target: self.target() });
                    }
                    received = Instant::now();
                    let mut frames = Vec::new();
                    let dropped = framer.push(piece.get(..count).unwrap_or_default(), &mut frames);
                    if !frames.is_empty() {
                        heard = Instant::now();
                        asked = None;
                    }
                    self.deliver(&frames, dropped, feed).await;
                    // A flooding device always has more data.
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

/// Reads; `None` if nothing has come until then. Bytes that have come while only this task was late are returned.
async fn read_until(
    stream: &mut impl Stream,
    piece: &mut [u8],
    until: Option<Instant>,
) -> std::io::Result<Option<usize>> {
    match until {
        None => stream.read(piece).await.map(Some),
        Some(until) => timeout_at(until, stream.read(piece)).await.map_or(Ok(None), |count| count.map(Some)),
    }
}

impl Adapter for Line {
    fn describe(&self) -> String {
        format!("texts from {}", self.target())
    }

    fn device(&self) -> Option<&str> {
        match &self.way {
            Way::Serial(line) => Some(&line.device),
            Way::Tcp(..) => None,
        }
    }

    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields, _: usize) -> Result<Placement, Mistake> {
        let kind = self.extractor.add_tag(tag, fields)?;
        let write = fields.text("write")?;
        if (tag.access == Access::ReadWrite) != write.is_some() {
            let hint = "set both access = \"read-write\" and write = \"SP {value}\\r\\n\", or neither";
            return Err(fields.mistake("a tag that clients write needs a text to send", hint));
        }
        if write.as_ref().is_some_and(|write| !write.contains("{value}")) {
            let hint = "write {value} where the value belongs, such as \"SP {value}\\r\\n\"";
            return Err(fields.mistake("the text to send has no {value}", hint));
        }
        self.writes.push(write);
        Ok(Placement::Variable(kind))
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(self.session(feed, writes))
    }
}

#[cfg(test)]
mod tests;
