//! Serial ports.

use crate::fault::Fault;
use crate::fields::{Fields, Mistake};

/// The settings of a serial line.
#[derive(Debug, Clone, PartialEq)]
pub struct SerialLine {
    /// The device file.
    pub device: String,
    /// Bits per second.
    pub baud: u32,
    /// The parity bit.
    pub parity: Parity,
    /// One or two.
    pub stop_bits: u8,
    /// Seven or eight.
    pub data_bits: u8,
}

/// The parity bit of a serial line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parity {
    /// There is none.
    None,
    /// Even parity, the default of Modbus.
    Even,
    /// Odd parity.
    Odd,
}

impl SerialLine {
    /// Takes the settings `baud`, `parity` and `stop_bits`. The defaults depend on the protocol.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, device: String, baud: u32, parity: Parity) -> Result<Self, Mistake> {
        let parities = [("none", Parity::None), ("even", Parity::Even), ("odd", Parity::Odd)];
        Ok(Self {
            device,
            baud: fields.integer("baud", 300, 4_000_000)?.map_or(baud, |baud| baud as u32),
            parity: fields.word("parity", &parities)?.unwrap_or(parity),
            stop_bits: fields.integer("stop_bits", 1, 2)?.unwrap_or(1) as u8,
            data_bits: 8,
        })
    }

    /// Opens the line.
    ///
    /// # Errors
    /// The device does not exist, or is in use.
    #[cfg(feature = "serial")]
    pub(crate) fn open(&self) -> Result<tokio_serial::SerialStream, Fault> {
        use tokio_serial::{DataBits, SerialPortBuilderExt, StopBits};
        let parity = match self.parity {
            Parity::None => tokio_serial::Parity::None,
            Parity::Even => tokio_serial::Parity::Even,
            Parity::Odd => tokio_serial::Parity::Odd,
        };
        let port = tokio_serial::new(&self.device, self.baud)
            .parity(parity)
            .data_bits(if self.data_bits == 7 { DataBits::Seven } else { DataBits::Eight })
            .stop_bits(if self.stop_bits == 2 { StopBits::Two } else { StopBits::One })
            .open_native_async();
        port.map_err(|error| Fault::Connect { target: self.device.clone(), reason: error.to_string() })
    }

    /// The error of opening a port in a build without serial support.
    #[cfg(not(feature = "serial"))]
    pub(crate) fn missing(&self) -> Fault {
        let reason = "this program was built without serial lines (feature `serial`)".to_owned();
        Fault::Connect { target: self.device.clone(), reason }
    }
}
