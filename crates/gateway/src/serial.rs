//! Serial ports.

use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use rustix::fs::{Mode, OFlags};
use rustix::termios::{ControlModes, OptionalActions, ioctl_tiocexcl, tcgetattr, tcsetattr};
use serial2_tokio::{CharSize, FlowControl, SerialPort, Settings, StopBits};
use std::io;

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

    /// Opens the line. Nobody else can open it until it is closed, except root.
    ///
    /// # Errors
    /// The device does not exist, is no serial line, or is in use.
    pub(crate) fn open(&self) -> Result<SerialPort, Fault> {
        self.opened().map_err(|error| {
            let reason = match error.raw_os_error() {
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

    fn opened(&self) -> io::Result<SerialPort> {
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
        // The library keeps its descriptor to itself; what follows belongs to the device.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let device = rustix::fs::open(&self.device, flags, Mode::empty())?;
        // Two programs on a line would take each other's bytes.
        ioctl_tiocexcl(&device)?;
        // Cables with three wires have no carrier. The library leaves this as it was.
        let mut settings = tcgetattr(&device)?;
        settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
        tcsetattr(&device, OptionalActions::Now, &settings)?;
        Ok(port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::os::fd::OwnedFd;
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
        let (_device, name) = terminal();
        let port = line(&name).open().unwrap();
        let settings = Command::new("stty").arg("-aF").arg(&name).output().unwrap();
        let settings = String::from_utf8_lossy(&settings.stdout).into_owned();
        for expected in [" clocal", " cread", "-icanon", "-echo ", " cstopb", "-crtscts", "-ixon"] {
            assert!(settings.contains(expected), "{expected}: {settings}");
        }
        assert!(read_by_nobody(&name).contains("busy"), "{}", read_by_nobody(&name));
        drop(port);
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
    }
}
