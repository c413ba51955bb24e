//! Modbus devices: TCP, RTU over TCP, and serial lines.
//!
//! - [`address`]: addresses of tags; [`registers`]: encoding; [`plan`]: grouping into requests;
//! - [`link`]: the connection and its errors; `poll`: reading and writing; `review`: warnings; [`scan`]: finds units.
//!
//! A line carries one request at a time. A unit that does not answer is retried after its own pause, so that the other units on
//! the line are read on time.

pub mod address;
pub mod link;
pub mod plan;
mod poll;
pub mod registers;
mod review;
pub mod scan;

use crate::connect::host_and_port;
use crate::fault::Fault;
use crate::feed::{Feed, Writes};
use crate::fields::{Fields, Mistake};
use crate::offer::{Offer, Question};
use crate::serial::{Parity, SerialLine};
use crate::settings::SourceSettings;
use crate::source::{Adapter, Advice, Placement};
use crate::tag::{Access, Tag};
use address::{Defaults, ORDERS, Point, UNITS_SERIAL, UNITS_TCP, take_unit};
use futures_util::future::BoxFuture;
use link::Way;
use plan::Bounds;

/// A line of Modbus devices.
#[derive(Debug)]
pub struct Modbus {
    way: Way,
    defaults: Defaults,
    bounds: Bounds,
    identify: bool,
    points: Vec<Point>,
    has_run: bool,
}

impl Modbus {
    /// Takes the settings of a source.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, _: &SourceSettings) -> Result<Self, Mistake> {
        let address = fields.text_at("address")?;
        let device = fields.text("device")?;
        let is_rtu = fields.word("framing", &[("tcp", false), ("rtu", true)])?;
        let way = match (address, device) {
            (Some((line, text)), None) => {
                let Some((host, port)) = host_and_port(&text, 502) else {
                    let hint = "write \"host:port\", such as \"192.168.0.10:502\"";
                    return Err(fields.mistake_in(line, "address", format!("{text:?} is no address"), hint));
                };
                if is_rtu == Some(true) { Way::RtuOverTcp(host, port) } else { Way::Tcp(host, port) }
            }
            (None, Some(_)) if is_rtu == Some(false) => {
                let hint = "remove framing: a serial line has RTU frames";
                return Err(fields.mistake("framing = \"tcp\" needs an address", hint));
            }
            (None, Some(device)) => Way::Serial(SerialLine::take(fields, device, 19_200, Parity::Even)?),
            (Some(_), Some(_)) => {
                let hint = "remove address for a serial line, or device for a connection over TCP";
                return Err(fields.mistake("a Modbus source has an address or a device, not both", hint));
            }
            (None, None) => {
                let hint = "write address = \"host:502\", or device = \"/dev/ttyUSB0\" for a serial line";
                let mistake = fields.misspelt(&["address", "device"]);
                return Err(mistake.unwrap_or_else(|| {
                    fields.mistake("a Modbus source needs an address or a device", hint)
                }));
            }
        };
        let units = if matches!(way, Way::Tcp(..)) { UNITS_TCP } else { UNITS_SERIAL };
        Ok(Self {
            way,
            defaults: Defaults {
                unit: take_unit(fields, units)?.unwrap_or(1),
                units,
                word_order: fields.word("word_order", &ORDERS)?.unwrap_or_default(),
                byte_order: fields.word("byte_order", &ORDERS)?.unwrap_or_default(),
            },
            bounds: Bounds {
                registers: fields.integer("max_registers", 1, 125)?.unwrap_or(125) as u16,
                gap: fields.integer("max_gap", 0, 124)?.unwrap_or(16) as u16,
            },
            identify: fields.flag("identify")?.unwrap_or(false),
            points: Vec::new(),
            has_run: false,
        })
    }
}

impl Adapter for Modbus {
    fn describe(&self) -> String {
        let kind = match self.way {
            Way::Tcp(..) => "Modbus TCP",
            Way::RtuOverTcp(..) => "Modbus RTU over TCP",
            Way::Serial(_) => "Modbus RTU",
        };
        format!("{kind} {}", self.way.target())
    }

    fn device(&self) -> Option<&str> {
        match &self.way {
            Way::Serial(line) => Some(&line.device),
            Way::Tcp(..) | Way::RtuOverTcp(..) => None,
        }
    }

    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields, position: usize) -> Result<Placement, Mistake> {
        debug_assert_eq!(position, self.points.len(), "every tag is a variable");
        let point = Point::take(fields, tag.kind, !tag.scaling.is_identity(), self.defaults)?;
        if tag.access == Access::ReadWrite && !point.table.is_writable() {
            let problem = format!("clients cannot write {} values", point.table.name());
            return Err(fields.mistake(problem, "use access = \"read\", or a coil or holding register"));
        }
        let kind = point.kind();
        self.points.push(point);
        Ok(Placement::Variable(kind))
    }

    fn review(&self, settings: &SourceSettings, names: &[String]) -> Vec<Advice> {
        review::review(self, settings, names)
    }

    fn offers<'a>(&'a mut self, question: &'a Question) -> BoxFuture<'a, Result<Vec<Offer>, Fault>> {
        Box::pin(scan::offers(self, question))
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        let is_again = core::mem::replace(&mut self.has_run, true);
        Box::pin(poll::run(self, is_again, feed, writes))
    }
}
