//! Receives and sends frames.

use super::Can;
use super::bus::Bus;
use super::frame::{Event, Frame};
use crate::fault::Fault;
use crate::feed::{Feed, Reading, Write, Writes};
use crate::statistics::Count;
use core::time::Duration;
use std::collections::HashMap;
use taktwerk_types::{StatusCode, UtcTime};
use tokio::time::{Instant, sleep_until, timeout};

/// State that survives the connection: cyclic sending of written frames continues when the interface is back.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The last seen or sent frame of each message that clients write. A write changes only one signal of it.
    last: HashMap<usize, Option<Frame>>,
    /// The messages that are sent cyclically, with their next send time.
    cyclic: HashMap<usize, (Duration, Instant)>,
}

/// State while a bus is connected.
struct State<'a> {
    can: &'a Can,
    /// The positions of tags by message key.
    tags: HashMap<u32, Vec<usize>>,
    memory: &'a mut Memory,
    is_off: bool,
}

impl<'a> State<'a> {
    fn new(can: &'a Can, memory: &'a mut Memory, feed: &Feed) -> Self {
        let mut tags: HashMap<u32, Vec<usize>> = HashMap::new();
        for (position, point) in can.points.iter().enumerate() {
            if let Some((message, _)) = can.message(point) {
                tags.entry(can.ids.key(message.id)).or_default().push(position);
            }
            if feed.is_writable(position) {
                memory.last.entry(point.message).or_default();
            }
        }
        Self { can, tags, memory, is_off: false }
    }

    /// The readings in a frame.
    fn readings(&mut self, frame: &Frame, time: Option<UtcTime>) -> Vec<(usize, Reading)> {
        let Some(positions) = self.tags.get(&self.can.ids.key(frame.id)) else { return Vec::new() };
        let mut readings = Vec::with_capacity(positions.len());
        for position in positions {
            let Some(point) = self.can.points.get(*position) else { continue };
            let Some((message, _)) = self.can.message(point) else { continue };
            if let Some(last) = self.memory.last.get_mut(&point.message) {
                *last = Some(frame.clone());
            }
            let value = match point.is_label {
                true => message.label(point.signal, frame.data()),
                false => message.value(point.signal, frame.data()),
            };
            match value {
                Ok(Some(value)) => readings.push((*position, Reading::good(value).at(time))),
                // The frame contains another multiplexed signal.
                Ok(None) => {}
                Err(_) => readings.push((*position, Reading::bad(StatusCode::BAD_NO_DATA).at(time))),
            }
        }
        readings
    }

    /// The frame for a write.
    fn written(&self, write: &Write) -> Option<(usize, Frame)> {
        let point = self.can.points.get(write.position)?;
        let (message, _) = self.can.message(point)?;
        let last = self.memory.last.get(&point.message).and_then(Clone::clone);
        // The last frame may be shorter than the message in the file.
        let bytes = last.map(|last| last.data().to_vec()).unwrap_or_default();
        let mut frame = Frame::new(
            message.id,
            &bytes.into_iter().chain(core::iter::repeat(0)).take(message.len).collect::<Vec<_>>(),
        );
        message.set(point.signal, &write.value, frame.data_mut()).ok()?;
        Some((point.message, frame))
    }
}

/// Receives and sends until an error occurs.
pub(super) async fn run(
    can: &Can,
    memory: &mut Memory,
    bus: &mut impl Bus,
    feed: &Feed,
    writes: &mut Writes,
) -> Result<(), Fault> {
    let deadline = feed.settings().deadline;
    let mut state = State::new(can, memory, feed);
    feed.connected();
    loop {
        let due = state.memory.cyclic.values().map(|(_, at)| *at).min();
        tokio::select! {
            event = bus.next() => take(&mut state, event?, feed),
            write = writes.next() => match state.written(&write) {
                None => feed.statistics().add(Count::WriteErrors, 1),
                Some((message, frame)) => {
                    send(&mut state, bus, &frame, deadline, feed).await?;
                    feed.statistics().add(Count::Writes, 1);
                    let every = can.points.get(write.position).and_then(|point| point.send_every);
                    if let Some(every) = every {
                        state.memory.cyclic.insert(message, (every, Instant::now() + every));
                    }
                    state.memory.last.insert(message, Some(frame));
                }
            },
            () = async { sleep_until(due.unwrap_or_else(Instant::now)).await }, if due.is_some() => {
                let now = Instant::now();
                let mut frames = Vec::new();
                let Memory { last, cyclic } = &mut *state.memory;
                for (message, (every, at)) in cyclic.iter_mut().filter(|(_, (_, at))| *at <= now) {
                    // Missed sends are not repeated.
                    *at = (*at + *every).max(now);
                    frames.extend(last.get(message).and_then(Clone::clone));
                }
                for frame in frames {
                    send(&mut state, bus, &frame, deadline, feed).await?;
                }
            }
        }
    }
}

async fn send(
    state: &mut State<'_>,
    bus: &mut impl Bus,
    frame: &Frame,
    deadline: Duration,
    feed: &Feed,
) -> Result<(), Fault> {
    feed.statistics().add(Count::Requests, 1);
    match timeout(deadline, bus.send(frame)).await {
        Err(_) => return Err(Fault::NoAnswer { target: state.can.interface.clone(), after: deadline }),
        Ok(sent) => sent?,
    }
    // A socket does not receive its own frames.
    let readings = state.readings(frame, None);
    if !readings.is_empty() {
        feed.deliver(readings);
    }
    Ok(())
}

fn take(state: &mut State<'_>, event: Event, feed: &Feed) {
    let fault = |reason: &str| Fault::other(&state.can.interface, reason);
    match event {
        Event::Frame(frame, time) => {
            back(state, feed);
            let readings = state.readings(&frame, time);
            match readings.is_empty() {
                true => feed.statistics().add(Count::Dropped, 1),
                false => feed.deliver(readings),
            }
        }
        Event::BusOff => {
            // Keep the socket: it reports when the controller is back.
            state.is_off = true;
            feed.disconnected(&fault(
                "the controller is off the bus; check wiring, termination and bit rate",
            ));
        }
        Event::Restarted => back(state, feed),
        Event::Error(reason) => feed.failed(&fault(reason)),
        Event::Other => feed.statistics().add(Count::Dropped, 1),
    }
}

fn back(state: &mut State<'_>, feed: &Feed) {
    if core::mem::take(&mut state.is_off) {
        feed.connected();
    }
}

#[cfg(test)]
mod tests;
