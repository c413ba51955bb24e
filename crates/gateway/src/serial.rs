//! Serial ports.

use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use rustix::termios::{ControlModes, OptionalActions, ioctl_tiocexcl, ioctl_tiocnxcl, tcgetattr, tcsetattr};
use serial2_tokio::{CharSize, FlowControl, SerialPort, Settings, StopBits};
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, timeout, timeout_at};

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
        if device.trim().is_empty() {
            let hint = "write the path of the serial line, such as \"/dev/ttyUSB0\"";
            return Err(fields.mistake("the device is empty", hint));
        }
        let parities = [("none", Parity::None), ("even", Parity::Even), ("odd", Parity::Odd)];
        Ok(Self {
            device,
            baud: fields.integer("baud", 300, 4_000_000)?.map_or(baud, |baud| baud as u32),
            parity: fields.word("parity", &parities)?.unwrap_or(parity),
            stop_bits: fields.integer("stop_bits", 1, 2)?.unwrap_or(1) as u8,
            data_bits: 8,
        })
    }

    /// The pause between two frames: 3.5 characters of 11 bits, at least 1.75 ms (Modbus over Serial Line §2.5.1.1).
    pub(crate) fn frame_gap(&self) -> Duration {
        let characters = Duration::from_secs_f64(3.5 * 11.0 / f64::from(self.baud.max(1)));
        characters.max(Duration::from_micros(1_750))
    }

    /// Opens the line. Nobody else can open it until it is closed, except programs of root that do not lock it.
    ///
    /// # Errors
    /// The device does not exist, is no serial line, or is in use.
    pub(crate) fn open(&self) -> Result<Port, Fault> {
        self.opened().map_err(|error| {
            let reason = match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOTTY) => "it is no serial line".to_owned(),
                Some(Errno::WOULDBLOCK | Errno::BUSY) => {
                    format!("another source or program uses the line ({error})")
                }
                Some(Errno::ACCESS) => {
                    format!("{error}: the user of this program needs access, in Debian by the group dialout")
                }
                Some(_) => error.to_string(),
                // The device answered, but kept other settings.
                None => format!("{error}: {}", self.settings()),
            };
            Fault::Connect { target: self.device.clone(), reason }
        })
    }

    fn settings(&self) -> String {
        let (parity, hint) = match self.parity {
            Parity::None => ("none", ""),
            Parity::Even => ("even", "; a pseudo terminal needs parity = \"none\""),
            Parity::Odd => ("odd", "; a pseudo terminal needs parity = \"none\""),
        };
        let Self { baud, data_bits, stop_bits, .. } = self;
        format!("baud {baud}, parity {parity}, data_bits {data_bits}, stop_bits {stop_bits}{hint}")
    }

    fn opened(&self) -> io::Result<Port> {
        // Two programs on a line would take each other's bytes. The library keeps its descriptor to itself; settings of the
        // device and the lock need one.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let device = rustix::fs::open(&self.device, flags, Mode::empty())?;
        flock(&device, FlockOperation::NonBlockingLockExclusive)?;
        let port = SerialPort::open(&self.device, |mut settings: Settings| {
            settings.set_raw();
            settings.set_baud_rate(self.baud)?;
            settings.set_char_size(if self.data_bits == 7 { CharSize::Bits7 } else { CharSize::Bits8 });
            settings.set_stop_bits(if self.stop_bits == 2 { StopBits::Two } else { StopBits::One });
            settings.set_parity(match self.parity {
                Parity::None => serial2_tokio::Parity::None,
                Parity::Even => serial2_tokio::Parity::Even,
                Parity::Odd => serial2_tokio::Parity::Odd,
            });
            settings.set_flow_control(FlowControl::None);
            Ok(settings)
        })?;
        ioctl_tiocexcl(&device)?;
        // Cables with three wires have no carrier. The library leaves this as it was.
        let mut settings = tcgetattr(&device)?;
        settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
        tcsetattr(&device, OptionalActions::Now, &settings)?;
        Ok(Port { port, device })
    }
}

/// An open serial line.
#[derive(Debug)]
pub(crate) struct Port {
    port: SerialPort,
    /// Holds the lock.
    device: OwnedFd,
}

impl Drop for Port {
    fn drop(&mut self) {
        // A pseudo terminal stays as long as its other end is open, and nobody but root could open it again.
        let _ = ioctl_tiocnxcl(&self.device);
    }
}

impl Port {
    /// Discards what arrives for this time.
    ///
    /// # Errors
    /// The line was closed.
    pub(crate) async fn drain(&mut self, time: Duration) -> io::Result<()> {
        let until = Instant::now() + time;
        let mut piece = [0; 4096];
        while let Ok(count) = timeout_at(until, self.port.read(&mut piece)).await {
            if count? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// Discards what arrives, until nothing has arrived for `quiet`, or a piece `ends` a text. Returns whether one of both was
    /// within `limit`.
    ///
    /// # Errors
    /// The line was closed.
    pub(crate) async fn discard(
        &mut self,
        quiet: Duration,
        limit: Duration,
        ends: impl Fn(&[u8]) -> bool,
    ) -> io::Result<bool> {
        let until = Instant::now() + limit;
        let mut piece = [0; 4096];
        while Instant::now() < until {
            let Ok(count) = timeout(quiet, self.port.read(&mut piece)).await else { return Ok(true) };
            let count = count?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if ends(piece.get(..count).unwrap_or_default()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl AsyncRead for Port {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.port).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Port {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.port).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.port).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.port).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    fn line(device: &str) -> SerialLine {
        SerialLine { device: device.to_owned(), baud: 9600, parity: Parity::None, stop_bits: 2, data_bits: 8 }
    }

    /// A new pseudo terminal that everybody may open, and its device file.
    fn terminal() -> (OwnedFd, String) {
        let device = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&device).unwrap();
        unlockpt(&device).unwrap();
        let name = ptsname(&device, Vec::new()).unwrap().into_string().unwrap();
        std::fs::set_permissions(&name, std::fs::Permissions::from_mode(0o666)).unwrap();
        (device, name)
    }

    /// What a user without privileges is told who reads the device.
    fn read_by_nobody(device: &str) -> String {
        let mut other = Command::new("head");
        other.args(["-c1", device]).env("LC_ALL", "C");
        if rustix::process::getuid().is_root() {
            other.uid(65_534);
        }
        String::from_utf8_lossy(&other.output().unwrap().stderr).into_owned()
    }

    #[tokio::test]
    async fn an_open_line_belongs_to_one_program() {
        let (device, name) = terminal();
        let port = line(&name).open().unwrap();
        let settings = Command::new("stty").arg("-aF").arg(&name).output().unwrap();
        let settings = String::from_utf8_lossy(&settings.stdout).into_owned();
        for expected in [" clocal", " cread", "-icanon", "-echo ", " cstopb", "-crtscts", "-ixon"] {
            assert!(settings.contains(expected), "{expected}: {settings}");
        }
        assert!(read_by_nobody(&name).contains("busy"), "{}", read_by_nobody(&name));
        // Root, too, if it is this program.
        let error = line(&name).open().unwrap_err().to_string();
        assert!(error.contains("another source or program"), "{error}");
        drop(port);
        line(&name).open().unwrap();
        // And then anybody, also users without privileges.
        rustix::io::write(&device, b"x\n").unwrap();
        assert_eq!(read_by_nobody(&name), "");
    }

    #[tokio::test]
    async fn settings_that_a_device_does_not_have_are_an_error() {
        let (_device, name) = terminal();
        let error = SerialLine { parity: Parity::Even, ..line(&name) }.open().unwrap_err().to_string();
        assert!(error.contains("parity even") && error.contains("pseudo terminal"), "{error}");
    }

    #[test]
    fn what_is_no_serial_line_is_an_error_that_names_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for device in ["/dev/ttyUSB99", file.path().to_str().unwrap(), "/"] {
            let error = line(device).open().unwrap_err().to_string();
            assert!(error.contains(device), "{error}");
        }
        let error = line(file.path().to_str().unwrap()).open().unwrap_err().to_string();
        assert!(error.contains("is no serial line"), "{error}");
    }
}
