//! The connection to a line of Modbus devices, and what their errors mean.

use super::address::Table;
use crate::connect;
use crate::fault::{Fault, plain};
use crate::serial::SerialLine;
use core::time::Duration;
use std::io;
use taktwerk_types::StatusCode;
use tokio::time::timeout;
use tokio_modbus::client::{Client, Context, Reader, Writer, rtu, tcp};
use tokio_modbus::slave::{Slave, SlaveContext};
use tokio_modbus::{Error, ExceptionCode, ProtocolError, Request, Response};

/// How to reach the devices.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// Modbus TCP.
    Tcp(String, u16),
    /// Frames of a serial line through TCP, as serial device servers carry them.
    RtuOverTcp(String, u16),
    /// A serial line.
    Serial(SerialLine),
}

impl Way {
    /// The other side, as people write it.
    #[must_use]
    pub fn target(&self) -> String {
        match self {
            Self::Tcp(host, port) | Self::RtuOverTcp(host, port) => connect::target(host, *port),
            Self::Serial(line) => line.device.clone(),
        }
    }
}

/// What a device has answered.
pub type Answer<T> = Result<T, ExceptionCode>;

/// A connection.
pub struct Link {
    context: Context,
    target: String,
    deadline: Duration,
}

impl core::fmt::Debug for Link {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Link").field(&self.target).finish()
    }
}

impl Link {
    /// Connects.
    ///
    /// # Errors
    /// There is no connection.
    pub async fn connect(way: &Way, deadline: Duration) -> Result<Self, Fault> {
        let context = match way {
            Way::Tcp(host, port) => tcp::attach(connect::tcp(host, *port, deadline).await?),
            Way::RtuOverTcp(host, port) => rtu::attach(connect::tcp(host, *port, deadline).await?),
            Way::Serial(line) => serial(line)?,
        };
        Ok(Self { context, target: way.target(), deadline })
    }

    async fn within<T>(
        &mut self,
        unit: u8,
        ask: impl AsyncFnOnce(&mut Context) -> Result<Answer<T>, Error>,
    ) -> Result<Answer<T>, Fault> {
        self.context.set_slave(Slave(unit));
        let target = format!("{}, unit {unit}", self.target);
        match timeout(self.deadline, ask(&mut self.context)).await {
            Err(_) => Err(Fault::NoAnswer { target, after: self.deadline }),
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(explained(target, error)),
        }
    }

    /// Reads registers, or bits as 0 and 1.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub async fn read(
        &mut self,
        unit: u8,
        table: Table,
        first: u16,
        count: u16,
    ) -> Result<Answer<Vec<u16>>, Fault> {
        let bits = |bits: Vec<bool>| bits.into_iter().map(u16::from).collect::<Vec<_>>();
        let answer = self
            .within(unit, async |context| {
                Ok(match table {
                    Table::Coil => context.read_coils(first, count).await?.map(bits),
                    Table::Discrete => context.read_discrete_inputs(first, count).await?.map(bits),
                    Table::Input => context.read_input_registers(first, count).await?,
                    Table::Holding => context.read_holding_registers(first, count).await?,
                })
            })
            .await?;
        match answer {
            Ok(words) if words.len() < usize::from(count) => Err(Fault::other(
                format!("{}, unit {unit}", self.target),
                format!("answered {} of {count} registers", words.len()),
            )),
            answer => Ok(answer),
        }
    }

    /// Writes coils.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub async fn write_coils(&mut self, unit: u8, first: u16, bits: &[bool]) -> Result<Answer<()>, Fault> {
        self.within(unit, async |context| match bits {
            [bit] => context.write_single_coil(first, *bit).await,
            bits => context.write_multiple_coils(first, bits).await,
        })
        .await
    }

    /// Writes registers: one with function 6, and with function 16 if the device does not know that; more with 16.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub async fn write_registers(
        &mut self,
        unit: u8,
        first: u16,
        words: &[u16],
    ) -> Result<Answer<()>, Fault> {
        self.within(unit, async |context| match words {
            [word] => match context.write_single_register(first, *word).await {
                Ok(Err(ExceptionCode::IllegalFunction)) => {
                    context.write_multiple_registers(first, words).await
                }
                other => other,
            },
            words => context.write_multiple_registers(first, words).await,
        })
        .await
    }

    /// Writes one bit of a register: with function 22, or by reading and writing if the device does not know that.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub async fn write_bit(&mut self, unit: u8, first: u16, bit: u8, on: bool) -> Result<Answer<()>, Fault> {
        let mask = 1u16 << (bit & 15);
        self.within(unit, async |context| {
            match context.masked_write_register(first, !mask, if on { mask } else { 0 }).await {
                Ok(Err(ExceptionCode::IllegalFunction)) => {}
                other => return other,
            }
            let word = match context.read_holding_registers(first, 1).await? {
                Ok(words) => words.first().copied().unwrap_or(0),
                Err(exception) => return Ok(Err(exception)),
            };
            let word = if on { word | mask } else { word & !mask };
            context.write_single_register(first, word).await
        })
        .await
    }

    /// Asks a device who it is: vendor, product and revision (function 43/14), by their numbers.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub async fn identify(&mut self, unit: u8) -> Result<Answer<Vec<(u8, String)>>, Fault> {
        self.within(unit, async |context| {
            let request = Request::ReadDeviceIdentification(tokio_modbus::prelude::ReadCode::Basic, 0);
            let answer = context.call(request).await?;
            Ok(answer.map(|answer| match answer {
                Response::ReadDeviceIdentification(found) => found
                    .device_id_objects
                    .into_iter()
                    .map(|object| (object.id, String::from_utf8_lossy(&object.value).trim().to_owned()))
                    .collect(),
                _ => Vec::new(),
            }))
        })
        .await
    }
}

#[cfg(feature = "serial")]
fn serial(line: &SerialLine) -> Result<Context, Fault> {
    Ok(rtu::attach(line.open()?))
}

#[cfg(not(feature = "serial"))]
fn serial(line: &SerialLine) -> Result<Context, Fault> {
    Err(line.missing())
}

/// What an error of the library means. It reports a closed connection as whatever error the operating system had last.
fn explained(target: String, error: Error) -> Fault {
    use io::ErrorKind as Kind;
    match error {
        Error::Transport(error) => match error.kind() {
            Kind::ConnectionReset | Kind::BrokenPipe | Kind::TimedOut | Kind::HostUnreachable => {
                Fault::Other { target, reason: plain(&error) }
            }
            _ if error.raw_os_error().is_none() => Fault::Other { target, reason: plain(&error) },
            _ => Fault::Closed { target },
        },
        Error::Protocol(ProtocolError::HeaderMismatch { .. }) => {
            Fault::Other { target, reason: "the answer belongs to another request".to_owned() }
        }
        Error::Protocol(ProtocolError::FunctionCodeMismatch { .. }) => {
            Fault::Other { target, reason: "the answer has another function code".to_owned() }
        }
    }
}

/// What an exception means for the values that were asked for; `None` if the device wants to be asked again.
#[must_use]
pub fn status_of(exception: ExceptionCode) -> Option<StatusCode> {
    Some(match exception {
        ExceptionCode::Acknowledge | ExceptionCode::ServerDeviceBusy => return None,
        ExceptionCode::IllegalFunction => StatusCode::BAD_NOT_SUPPORTED,
        ExceptionCode::IllegalDataAddress | ExceptionCode::IllegalDataValue => {
            StatusCode::BAD_CONFIGURATION_ERROR
        }
        ExceptionCode::GatewayPathUnavailable | ExceptionCode::GatewayTargetDevice => {
            StatusCode::BAD_NO_COMMUNICATION
        }
        _ => StatusCode::BAD_DEVICE_FAILURE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_library_are_put_into_words() {
        // What it says when the other side has closed the connection.
        let stale = Error::Transport(io::Error::from_raw_os_error(115));
        assert_eq!(
            explained("plc:502, unit 1".to_owned(), stale).to_string(),
            "plc:502, unit 1 closed the connection"
        );
        let reset = Error::Transport(io::Error::from_raw_os_error(104));
        assert_eq!(explained("plc:502".to_owned(), reset).to_string(), "plc:502: connection reset by peer");
        let wrong = Error::Transport(io::Error::new(io::ErrorKind::InvalidData, "invalid protocol id"));
        assert_eq!(explained("plc:502".to_owned(), wrong).to_string(), "plc:502: invalid protocol id");
    }
}
