//! Local CAN buses, with the signals of a DBC file.
//!
//! - [`dbc`]: DBC files; [`bits`]: bit fields; [`frame`]: frames and events;
//! - `bus`: SocketCAN; `session`: receiving and sending.

pub mod bits;
mod bus;
pub mod dbc;
pub mod frame;
mod session;

use crate::fault::Fault;
use crate::feed::{Feed, Writes};
use crate::fields::{Fields, Mistake};
use crate::offer::{Offer, Question, quoted};
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::tag::{Access, Tag, units};
use crate::value::Kind;
use bus::Interface;
use core::fmt::Write as _;
use core::time::Duration;
use dbc::{FILE_MAX, Message, Network, Signal};
use frame::EXTENDED;
use futures_util::future::BoxFuture;
use std::io::Read;
use std::path::Path;
use taktwerk_types::BuiltInType;

/// A CAN bus.
#[derive(Debug)]
pub struct Can {
    interface: String,
    network: Network,
    ids: Ids,
    points: Vec<Point>,
    memory: session::Memory,
}

/// How frames are assigned to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ids {
    /// By identifier.
    Exact,
    /// By parameter group number, regardless of sender and priority (SAE J1939-21).
    J1939,
}

impl Ids {
    /// The key common to all frames of a message.
    fn key(self, id: u32) -> u32 {
        match self {
            Self::J1939 if id & EXTENDED != 0 => {
                // PDU format below 240: the next byte is a destination address and not part of the group.
                let is_addressed = id >> 16 & 0xFF < 240;
                id & if is_addressed { 0x83FF_0000 } else { 0x83FF_FF00 }
            }
            _ => id,
        }
    }
}

/// The signal of a tag.
#[derive(Debug, Clone)]
struct Point {
    message: usize,
    signal: usize,
    /// Whether values are shown by name.
    is_label: bool,
    /// The interval for sending a frame after a client has written it.
    send_every: Option<Duration>,
}

/// Reads a DBC file.
fn network(path: &Path) -> Result<Network, String> {
    let file = taktwerk_config::file::open_regular(path).map_err(|error| crate::fault::plain(&error))?;
    let mut bytes = Vec::new();
    file.take(FILE_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|error| crate::fault::plain(&error))?;
    Network::parse(&bytes)
}

impl Can {
    /// Takes the settings of a source.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, _: &SourceSettings) -> Result<Self, Mistake> {
        let (line, interface) = fields.required("interface", "\"can0\"")?;
        // IFNAMSIZ is 16 including the terminating byte.
        if interface.len() > 15 || interface.contains(|char: char| char.is_whitespace() || char == '/') {
            let hint = "write the name that `ip link` shows, such as \"can0\"";
            return Err(fields.mistake_in(line, "interface", format!("{interface:?} is no interface"), hint));
        }
        let ids = fields.word("ids", &[("exact", Ids::Exact), ("j1939", Ids::J1939)])?.unwrap_or(Ids::Exact);
        let (line, file) = fields.required("dbc", "\"plant.dbc\"")?;
        let path = fields.path().parent().unwrap_or(Path::new("")).join(file);
        let network = network(&path).map_err(|reason| {
            let hint = "name a DBC file; paths start from the folder of this file";
            fields.mistake_in(line, "dbc", format!("{}: {reason}", path.display()), hint)
        })?;
        let memory = session::Memory::default();
        Ok(Self { interface, network, ids, points: Vec::new(), memory })
    }

    fn message(&self, point: &Point) -> Option<(&Message, &Signal)> {
        let message = self.network.messages.get(point.message)?;
        Some((message, message.signals.get(point.signal)?))
    }

    /// Finds the signal for the settings of a tag.
    fn find(&self, fields: &mut Fields, name: &str) -> Result<(usize, usize), Mistake> {
        let messages = &self.network.messages;
        let (line, wanted) = fields.required("message", "\"EngineData\"")?;
        let Some(at) = self.network.message(&wanted) else {
            let near = taktwerk_config::nearest(&wanted, messages.iter().map(|message| &*message.name));
            let hint = near.map_or_else(
                || "`taktwerk gateway browse` lists the messages".to_owned(),
                |near| format!("did you mean {near:?}?"),
            );
            return Err(fields.mistake_in(line, "message", format!("there is no message {wanted:?}"), hint));
        };
        let (line, wanted) = fields.text_at("signal")?.unwrap_or_else(|| (line, name.to_owned()));
        let message = messages.get(at);
        match message.and_then(|message| message.signal(&wanted)) {
            Some(signal) => Ok((at, signal)),
            None => {
                let names =
                    message.into_iter().flat_map(|message| &message.signals).map(|signal| &*signal.name);
                let hint = match taktwerk_config::nearest(&wanted, names) {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => "write signal = \"NAME\"; `taktwerk gateway browse` lists the signals".to_owned(),
                };
                Err(fields.mistake_in(line, "signal", format!("the message has no signal {wanted:?}"), hint))
            }
        }
    }
}

/// The description for clients: the comment of the file, and the names of values.
fn described(signal: &Signal) -> Option<String> {
    let mut text = signal.comment.clone().unwrap_or_default();
    for (at, (value, label)) in signal.labels.iter().take(32).enumerate() {
        // Writing to memory cannot fail.
        let _ = write!(
            text,
            "{}{value} = {label}",
            if at > 0 {
                ", "
            } else if text.is_empty() {
                ""
            } else {
                " ("
            }
        );
    }
    if text.contains(" (") && !signal.labels.is_empty() && signal.comment.is_some() {
        text.push(')');
    }
    (!text.is_empty()).then_some(text)
}

impl Adapter for Can {
    fn describe(&self) -> String {
        format!("CAN bus {}", self.interface)
    }

    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields, _: usize) -> Result<Placement, Mistake> {
        let (message, signal) = self.find(fields, &tag.name)?;
        let send_every = fields.span("send_every")?;
        if send_every.is_some() && tag.access != Access::ReadWrite {
            let hint = "set access = \"read-write\", or remove it";
            return Err(fields.mistake("send_every is for tags that clients write", hint));
        }
        let is_label = tag.kind == Some(BuiltInType::String);
        let send_every = send_every.map(|every| every.max(Duration::from_millis(1)));
        let point = Point { message, signal, is_label, send_every };
        let native = self.message(&point).map_or(BuiltInType::Double, |(_, signal)| signal.kind());
        self.points.push(point);
        Ok(Placement::Variable(Kind::scalar(if is_label { BuiltInType::String } else { native })))
    }

    fn complete(&self, position: usize, tag: &mut Tag) {
        let Some(point) = self.points.get(position) else { return };
        let Some((message, signal)) = self.message(point) else { return };
        tag.description = tag.description.take().or_else(|| described(signal));
        // Do not expect frames that the gateway sends itself.
        if tag.access == Access::Read {
            tag.expect_every = tag.expect_every.or(message.cycle);
        }
        // Names belong to raw values. They exclude unit and range.
        if !point.is_label && tag.scaling.is_identity() && tag.states.is_empty() && signal.has_states() {
            tag.states.clone_from(&signal.labels);
            return;
        }
        // Unit and range of the file apply only to unscaled values.
        if !point.is_label && tag.scaling.is_identity() && signal.kind() != BuiltInType::Boolean {
            tag.units = tag
                .units
                .take()
                .or_else(|| Some(&signal.unit).filter(|it| !it.is_empty()).map(|it| units(it)));
            tag.range = tag.range.or(signal.range);
        }
    }

    fn offers<'a>(&'a mut self, question: &'a Question) -> BoxFuture<'a, Result<Vec<Offer>, Fault>> {
        let signals = self
            .network
            .messages
            .iter()
            .flat_map(|message| message.signals.iter().map(move |it| (message, it)));
        let offers = signals.take(question.most).map(|(message, signal)| Offer {
            address: format!("{}/{}", message.name, signal.name),
            name: signal.name.clone(),
            path: vec![question.settings.name.clone(), message.name.clone()],
            kind: signal.kind().to_string(),
            value: String::new(),
            settings: vec![("message", quoted(&message.name)), ("signal", quoted(&signal.name))],
        });
        Box::pin(core::future::ready(Ok(offers.collect())))
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(async move {
            let mut bus = Interface::open(&self.interface)?;
            let mut memory = core::mem::take(&mut self.memory);
            let outcome = session::run(self, &mut memory, &mut bus, feed, writes).await;
            self.memory = memory;
            outcome
        })
    }
}
