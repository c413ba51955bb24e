//! The connection to a Modbus line, and its errors.

use super::address::Table;
use crate::connect;
use crate::fault::{Fault, plain};
use crate::serial::{Port, SerialLine};
use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::Poll;
use core::time::Duration;
use std::io;
use std::sync::Arc;
use taktwerk_types::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_modbus::client::{Client, Context, rtu, tcp};
use tokio_modbus::slave::{Slave, SlaveContext};
use tokio_modbus::{Error, ExceptionCode, ProtocolError, Request, Response};

/// The connection type.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// Modbus TCP.
    Tcp(String, u16),
    /// RTU frames over TCP, as used by serial device servers.
    RtuOverTcp(String, u16),
    /// A serial line.
    Serial(SerialLine),
}

impl Way {
    /// The target for messages.
    #[must_use]
    pub fn target(&self) -> String {
        match self {
            Self::Tcp(host, port) | Self::RtuOverTcp(host, port) => connect::target(host, *port),
            Self::Serial(line) => line.device.clone(),
        }
    }
}

/// Silence before the first request on a line.
const PAUSE: Duration = Duration::from_millis(50);
/// Time for a silent moment on a line.
const SILENCE_WITHIN: Duration = Duration::from_secs(1);
/// What to check if bytes arrive that are no answers.
const CHECK: &str = "check baud, parity, stop_bits and wiring, that no other master uses the line, and that the adapter does not \
                     return what is sent";
/// Maximum number of bytes discarded before a request.
const STRAY_MAX: usize = 64 << 10;

/// A serial line with one request at a time. Answers name neither the request nor the address, so what arrives without a
/// request must not be taken for the answer to the next one.
struct Exchange {
    port: Port,
    received: Arc<AtomicUsize>,
}

impl Exchange {
    /// Opens the line, discards what arrives for `rest`, and waits for a silent moment. A line with single stray bytes has
    /// many of them.
    async fn open(line: &SerialLine, rest: Duration) -> Result<Self, Fault> {
        let mut port = line.open()?;
        let other = |reason: String| Fault::other(line.device.clone(), reason);
        port.drain(rest).await.map_err(|error| other(error.to_string()))?;
        match port.discard(PAUSE, SILENCE_WITHIN.max(rest), |_| false).await {
            Ok(true) => Ok(Self { port, received: Arc::default() }),
            Ok(false) => Err(other(format!("bytes arrive without a request: {CHECK}"))),
            Err(error) => Err(other(error.to_string())),
        }
    }
}

impl AsyncRead for Exchange {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut core::task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.port).poll_read(cx, buffer);
        self.received.fetch_add(buffer.filled().len().saturating_sub(before), Ordering::Relaxed);
        polled
    }
}

impl AsyncWrite for Exchange {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut core::task::Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let (mut piece, mut left) = ([0; 1024], STRAY_MAX);
        while left > 0 {
            let mut buffer = ReadBuf::new(&mut piece);
            match Pin::new(&mut self.port).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    left = left.saturating_sub(buffer.filled().len());
                }
                _ => break,
            }
        }
        self.received.store(0, Ordering::Relaxed);
        Pin::new(&mut self.port).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut core::task::Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.port).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut core::task::Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.port).poll_shutdown(cx)
    }
}

/// The answer of a device.
pub type Answer<T> = Result<T, ExceptionCode>;

/// A connection.
pub struct Link {
    context: Context,
    target: String,
    deadline: Duration,
    /// Number of bytes received since the last request, of serial lines.
    received: Option<Arc<AtomicUsize>>,
    /// Least pause between an answer and the next request.
    gap: Duration,
    /// When the next request may be sent.
    free_at: Instant,
}

impl core::fmt::Debug for Link {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Link").field(&self.target).finish()
    }
}

impl Link {
    /// Connects. `is_again`: an answer to an earlier request may still arrive.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn connect(way: &Way, deadline: Duration, is_again: bool) -> Result<Self, Fault> {
        let (mut received, mut gap) = (None, Duration::ZERO);
        let context = match way {
            Way::Tcp(host, port) => tcp::attach(connect::tcp(host, *port, deadline).await?),
            Way::RtuOverTcp(host, port) => rtu::attach(connect::tcp(host, *port, deadline).await?),
            Way::Serial(line) => {
                let rest = if is_again { deadline } else { Duration::ZERO };
                let exchange = Exchange::open(line, rest).await?;
                gap = line.frame_gap();
                received = Some(Arc::clone(&exchange.received));
                rtu::attach(exchange)
            }
        };
        let free_at = Instant::now();
        Ok(Self { context, target: way.target(), deadline, received, gap, free_at })
    }

    /// Sends a request and returns an answer with the same function code. The library's own readers and writers are not used:
    /// they panic if an answer does not match the request, and devices may send anything.
    async fn ask(&mut self, unit: u8, request: Request<'_>) -> Result<Answer<Response>, Fault> {
        self.context.set_slave(Slave(unit));
        if !self.gap.is_zero() {
            sleep_until(self.free_at).await;
        }
        let answer = timeout(self.deadline, self.context.call(request)).await;
        self.free_at = Instant::now() + self.gap;
        let received = self.received.as_ref().map_or(0, |received| received.load(Ordering::Relaxed));
        let is_noise = match &answer {
            Err(_) => true,
            Ok(Err(Error::Transport(error))) => error.raw_os_error().is_none(),
            Ok(_) => false,
        };
        match answer {
            _ if is_noise && received > 0 => Err(Fault::other(
                self.target_of(unit),
                // Without their number: the log tells the same text once.
                format!("the received bytes are no valid answer: {CHECK}"),
            )),
            Err(_) => Err(Fault::NoAnswer { target: self.target_of(unit), after: self.deadline }),
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(explained(self.target_of(unit), error)),
        }
    }

    fn target_of(&self, unit: u8) -> String {
        format!("{}, unit {unit}", self.target)
    }

    /// Reads registers, or bits as 0 and 1.
    ///
    /// # Errors
    /// The connection must not be used again.
    pub async fn read(
        &mut self,
        unit: u8,
        table: Table,
        first: u16,
        count: u16,
    ) -> Result<Answer<Vec<u16>>, Fault> {
        let answer = self
            .ask(
                unit,
                match table {
                    Table::Coil => Request::ReadCoils(first, count),
                    Table::Discrete => Request::ReadDiscreteInputs(first, count),
                    Table::Input => Request::ReadInputRegisters(first, count),
                    Table::Holding => Request::ReadHoldingRegisters(first, count),
                },
            )
            .await?;
        let wanted = usize::from(count);
        let (words, most) = match answer {
            Err(exception) => return Ok(Err(exception)),
            // The library returns bits in whole bytes.
            Ok(Response::ReadCoils(bits) | Response::ReadDiscreteInputs(bits)) => {
                (bits.into_iter().map(u16::from).collect(), wanted.next_multiple_of(8))
            }
            Ok(Response::ReadInputRegisters(words) | Response::ReadHoldingRegisters(words)) => {
                (words, wanted)
            }
            Ok(_) => (Vec::new(), wanted),
        };
        if !(wanted..=most).contains(&words.len()) {
            let reason = format!("answered {} registers or bits instead of {count}", words.len());
            return Err(Fault::other(self.target_of(unit), reason));
        }
        Ok(Ok(words.into_iter().take(wanted).collect()))
    }

    /// Writes, and checks the address and value in the answer.
    async fn write(
        &mut self,
        unit: u8,
        request: Request<'_>,
        expected: Response,
    ) -> Result<Answer<()>, Fault> {
        match self.ask(unit, request).await? {
            Err(exception) => Ok(Err(exception)),
            Ok(answer) if answer == expected => Ok(Ok(())),
            Ok(_) => {
                let reason = "the answer to a write names another address or value".to_owned();
                Err(Fault::other(self.target_of(unit), reason))
            }
        }
    }

    /// Writes coils.
    ///
    /// # Errors
    /// The connection must not be used again.
    pub async fn write_coils(&mut self, unit: u8, first: u16, bits: &[bool]) -> Result<Answer<()>, Fault> {
        let count = bits.len() as u16;
        let (request, expected) = match bits {
            [bit] => (Request::WriteSingleCoil(first, *bit), Response::WriteSingleCoil(first, *bit)),
            bits => {
                (Request::WriteMultipleCoils(first, bits.into()), Response::WriteMultipleCoils(first, count))
            }
        };
        self.write(unit, request, expected).await
    }

    /// Writes registers: a single one with function 6, or 16 if the device does not support 6; several with 16.
    ///
    /// # Errors
    /// The connection must not be used again.
    pub async fn write_registers(
        &mut self,
        unit: u8,
        first: u16,
        words: &[u16],
    ) -> Result<Answer<()>, Fault> {
        if let [word] = words {
            let expected = Response::WriteSingleRegister(first, *word);
            match self.write(unit, Request::WriteSingleRegister(first, *word), expected).await? {
                Err(ExceptionCode::IllegalFunction) => {}
                answer => return Ok(answer),
            }
        }
        let expected = Response::WriteMultipleRegisters(first, words.len() as u16);
        self.write(unit, Request::WriteMultipleRegisters(first, words.into()), expected).await
    }

    /// Writes one bit of a register: with function 22, or with read and write if the device does not support 22.
    ///
    /// # Errors
    /// The connection must not be used again.
    pub async fn write_bit(&mut self, unit: u8, first: u16, bit: u8, on: bool) -> Result<Answer<()>, Fault> {
        let mask = 1u16 << (bit & 15);
        let set = if on { mask } else { 0 };
        let masked = Request::MaskWriteRegister(first, !mask, set);
        match self.write(unit, masked, Response::MaskWriteRegister(first, !mask, set)).await? {
            Err(ExceptionCode::IllegalFunction) => {}
            answer => return Ok(answer),
        }
        let word = match self.read(unit, Table::Holding, first, 1).await? {
            Ok(words) => words.first().copied().unwrap_or(0),
            Err(exception) => return Ok(Err(exception)),
        };
        let word = if on { word | mask } else { word & !mask };
        let expected = Response::WriteSingleRegister(first, word);
        self.write(unit, Request::WriteSingleRegister(first, word), expected).await
    }

    /// Reads the device identification: vendor, product and revision (function 43/14), by object number.
    ///
    /// # Errors
    /// The connection must not be used again.
    pub async fn identify(&mut self, unit: u8) -> Result<Answer<Vec<(u8, String)>>, Fault> {
        let request = Request::ReadDeviceIdentification(tokio_modbus::prelude::ReadCode::Basic, 0);
        Ok(self.ask(unit, request).await?.map(|answer| match answer {
            Response::ReadDeviceIdentification(found) => found
                .device_id_objects
                .into_iter()
                .map(|object| (object.id, String::from_utf8_lossy(&object.value).trim().to_owned()))
                .collect(),
            _ => Vec::new(),
        }))
    }
}

/// Explains an error of the library. For a closed connection, the library reports whatever error the operating system had last.
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

/// An exception in words.
#[must_use]
pub fn exception_text(exception: ExceptionCode) -> String {
    match exception {
        ExceptionCode::Custom(code) => format!("exception {code}, which the protocol does not define"),
        known => known.to_string(),
    }
}

/// The status of the values for an exception; `None` if the device asks for a retry.
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
    fn errors_of_the_library_are_explained() {
        // The library's error after the peer has closed the connection.
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
