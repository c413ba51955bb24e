//! Reads a line at its interval, and writes in between.

use super::Modbus;
use super::address::{Point, Table};
use super::link::{Link, Way, exception_text, status_of};
use super::plan::{Request, plan, split};
use super::registers::{decode, encode};
use crate::fault::Fault;
use crate::feed::{Feed, Reading, Write, Writes};
use crate::statistics::Count;
use crate::trace::TARGET;
use core::time::Duration;
use std::collections::BTreeMap;
use taktwerk_types::{StatusCode, Variant};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_modbus::ExceptionCode;
use tracing::field::Empty;

/// A unit that did not answer.
#[derive(Debug, Clone, Copy)]
struct Silent {
    until: Instant,
    pause: Duration,
}

struct Line<'a> {
    modbus: &'a Modbus,
    feed: &'a Feed,
    requests: Vec<Request>,
    link: Option<Link>,
    silent: BTreeMap<u8, Silent>,
    /// When silent units may be asked again.
    retry_at: Instant,
}

/// Share of the time of a line for units that do not answer: one part of this number.
const RETRY_SHARE: u32 = 5;

/// `is_again`: answers to an earlier run may still arrive.
pub(super) async fn run(
    modbus: &Modbus,
    is_again: bool,
    feed: &Feed,
    writes: &mut Writes,
) -> Result<(), Fault> {
    let settings = feed.settings();
    let mut line = Line {
        modbus,
        feed,
        requests: plan(&modbus.points, modbus.bounds),
        link: Some(Link::connect(&modbus.way, settings.deadline, is_again).await?),
        silent: BTreeMap::new(),
        retry_at: Instant::now(),
    };
    // An earlier run may have ended with silent units.
    feed.set_silent(0..modbus.points.len(), false);
    if modbus.identify {
        line.identify().await?;
    }
    let mut ticks = interval(settings.interval.unwrap_or(Duration::from_secs(1)));
    let most = ticks.period();
    // Completely missed intervals are skipped.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            biased;
            write = writes.next() => {
                let begun = Instant::now();
                line.write(write).await?;
                // However many writes wait, all tags are read about as often as without them.
                while begun.elapsed() < most && let Some(write) = writes.try_next() {
                    line.write(write).await?;
                }
                // Show clients the result in the device.
                line.poll().await?;
            }
            _ = ticks.tick() => line.poll().await?,
        }
    }
}

impl Line<'_> {
    /// The connection. Opens a new one if the previous one failed.
    async fn link(&mut self) -> Result<&mut Link, Fault> {
        let link = match self.link.take() {
            Some(link) => link,
            None => Link::connect(&self.modbus.way, self.feed.settings().deadline, true).await?,
        };
        Ok(self.link.insert(link))
    }

    async fn identify(&mut self) -> Result<(), Fault> {
        let mut units: Vec<u8> = self.requests.iter().map(|request| request.unit).collect();
        units.dedup();
        for unit in units {
            match self.link().await?.identify(unit).await {
                Ok(Ok(found)) => {
                    let found: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
                    tracing::info!(
                        source = self.feed.settings().name,
                        unit,
                        device = found.join(", "),
                        "identified"
                    );
                }
                Ok(Err(exception)) => {
                    tracing::info!(unit, %exception, "the device does not return its identification")
                }
                Err(fault) => {
                    tracing::info!(unit, %fault, "the device does not return its identification");
                    // A late answer must not be matched with another request.
                    self.link = None;
                }
            }
        }
        Ok(())
    }

    /// Reads all points once.
    async fn poll(&mut self) -> Result<(), Fault> {
        let (source, requests) = (&self.feed.settings().name, self.requests.len());
        let span = tracing::debug_span!(target: TARGET, "source.poll", source, requests, error = Empty);
        let polled = self.ask_all().await;
        if let Err(fault) = &polled {
            span.record("error", fault.to_string());
        }
        polled
    }

    async fn ask_all(&mut self) -> Result<(), Fault> {
        let mut answers = 0;
        let mut fault = None;
        let mut refused: Vec<usize> = Vec::new();
        let requests = core::mem::take(&mut self.requests);
        for (index, request) in requests.iter().enumerate() {
            if self.pauses(request.unit) {
                continue;
            }
            let begun = Instant::now();
            self.feed.statistics().add(Count::Requests, 1);
            let Request { unit, table, first, count, .. } = *request;
            let answer = match self.link().await {
                Ok(link) => link.read(unit, table, first, count).await,
                Err(error) => {
                    self.requests = requests;
                    return Err(error);
                }
            };
            match answer {
                Ok(answer) => {
                    answers += 1;
                    if self.silent.remove(&unit).is_some() {
                        self.feed.set_silent(self.positions_of(unit), false);
                    }
                    self.feed.connected();
                    if self.take(request, answer) {
                        refused.push(index);
                    }
                }
                Err(error) => {
                    self.link = None;
                    self.feed.failed(&error);
                    self.silence(unit);
                    self.pause_retries(begun);
                    fault = Some(error);
                    // The units that answer must not wait for all that do not: the rest is asked in the next pass.
                    if answers > 0 {
                        break;
                    }
                }
            }
        }
        self.requests = requests;
        for index in refused.into_iter().rev() {
            if let Some(parts) = split(&self.requests[index], &self.modbus.points, self.modbus.bounds) {
                self.requests.splice(index..=index, parts);
            }
        }
        match fault {
            // If no unit has answered, the line is broken.
            Some(fault) if answers == 0 => Err(fault),
            _ => Ok(()),
        }
    }

    /// The positions of a unit's points.
    fn positions_of(&self, unit: u8) -> impl Iterator<Item = usize> {
        let points = self.modbus.points.iter().enumerate();
        points.filter(move |(_, point)| point.unit == unit).map(|(position, _)| position)
    }

    /// Whether a unit did not answer, and is not asked yet again.
    fn pauses(&self, unit: u8) -> bool {
        let now = Instant::now();
        self.silent.get(&unit).is_some_and(|silent| now < silent.until || now < self.retry_at)
    }

    /// A request since `begun` had no answer. The line then rests before the next request.
    fn pause_retries(&mut self, begun: Instant) {
        let rest = match self.modbus.way {
            Way::Serial(_) => self.feed.settings().deadline,
            Way::Tcp(..) | Way::RtuOverTcp(..) => Duration::ZERO,
        };
        let spent = begun.elapsed() + rest;
        self.retry_at = Instant::now() + rest + spent * (RETRY_SHARE - 1);
    }

    /// Retries the unit later, with growing pauses. Until then, clients cannot write to it: each attempt would keep the other
    /// units of the line waiting.
    fn silence(&mut self, unit: u8) {
        self.feed.set_silent(self.positions_of(unit), true);
        let settings = self.feed.settings();
        let pause =
            self.silent.get(&unit).map_or(settings.retry, |silent| silent.pause * 2).min(settings.retry_max);
        self.silent.insert(unit, Silent { until: Instant::now() + pause, pause });
    }

    /// Stores the answer to a request. True if the device rejected it because of an address, and the request can be split.
    fn take(&self, request: &Request, answer: Result<Vec<u16>, ExceptionCode>) -> bool {
        let points =
            request.points.iter().filter_map(|index| Some((*index, self.modbus.points.get(*index)?)));
        match answer {
            Ok(words) => {
                let readings = points.map(|(index, point)| {
                    let at = usize::from(point.first - request.first);
                    let value = words.get(at..).and_then(|words| decode(words, point));
                    (index, value.map_or_else(|| Reading::bad(StatusCode::BAD_DEVICE_FAILURE), Reading::good))
                });
                self.feed.deliver(readings);
                false
            }
            Err(exception) => {
                self.feed.failed(&Fault::other(
                    format!("{}, unit {}", self.modbus.way.target(), request.unit),
                    format!(
                        "{}:{} ({}): {}",
                        request.table.name(),
                        request.first,
                        request.count,
                        exception_text(exception)
                    ),
                ));
                let is_address =
                    matches!(exception, ExceptionCode::IllegalDataAddress | ExceptionCode::IllegalDataValue);
                if is_address && request.points.len() > 1 {
                    return true;
                }
                if let Some(status) = status_of(exception) {
                    self.feed.deliver(points.map(|(index, _)| (index, Reading::bad(status))));
                }
                false
            }
        }
    }

    /// Carries out a write.
    async fn write(&mut self, write: Write) -> Result<(), Fault> {
        let Some(point) = self.modbus.points.get(write.position) else { return Ok(()) };
        let Some(words) = encode(&write.value, point) else {
            self.feed.statistics().add(Count::WriteErrors, 1);
            self.feed.failed(&Fault::other(
                format!("{}:{}", point.table.name(), point.first),
                format!("{} does not fit into the registers", write.value),
            ));
            return Ok(());
        };
        let Point { unit, first, .. } = *point;
        if self.pauses(unit) {
            // It was accepted before the unit became silent.
            self.feed.statistics().add(Count::WriteErrors, 1);
            let target = format!("{}, unit {unit}", self.modbus.way.target());
            let reason =
                format!("the write of {}:{first} is dropped: the unit does not answer", point.table.name());
            self.feed.failed(&Fault::other(target, reason));
            return Ok(());
        }
        let begun = Instant::now();
        let link = self.link().await?;
        let answer = match point.table {
            Table::Coil => {
                let bits: Vec<bool> = words.iter().map(|word| *word != 0).collect();
                link.write_coils(unit, first, &bits).await
            }
            _ if write.value_is_bit(point) => {
                link.write_bit(unit, first, point.bit, words.first().is_some_and(|word| *word != 0)).await
            }
            _ => link.write_registers(unit, first, &words).await,
        };
        match answer {
            Ok(Ok(())) => self.feed.statistics().add(Count::Writes, 1),
            Ok(Err(exception)) => {
                self.feed.statistics().add(Count::WriteErrors, 1);
                let fault = Fault::other(
                    format!("{}, unit {unit}", self.modbus.way.target()),
                    format!("write of {}:{first}: {}", point.table.name(), exception_text(exception)),
                );
                self.feed.failed(&fault);
            }
            Err(fault) => {
                self.feed.statistics().add(Count::WriteErrors, 1);
                let reason = format!("write of {}:{first}: {fault}", point.table.name());
                self.feed.failed(&Fault::other(format!("{}, unit {unit}", self.modbus.way.target()), reason));
                self.link = None;
                // A wrong answer is one, too.
                if matches!(fault, Fault::NoAnswer { .. }) {
                    self.silence(unit);
                    self.pause_retries(begun);
                }
            }
        }
        Ok(())
    }
}

impl Write {
    fn value_is_bit(&self, point: &Point) -> bool {
        point.format == super::address::Format::Bit && matches!(self.value, Variant::Boolean(_))
    }
}
