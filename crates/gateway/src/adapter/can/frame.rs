//! Frames of a CAN bus, and reports of its controller.

use super::bits::DATA_MAX;
use taktwerk_types::UtcTime;

/// The bit that marks 29-bit identifiers.
pub const EXTENDED: u32 = 1 << 31;

/// A data frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The identifier; [`EXTENDED`] marks 29-bit identifiers.
    pub id: u32,
    data: [u8; DATA_MAX],
    len: usize,
}

impl Frame {
    /// A frame with up to 64 bytes; further bytes are dropped.
    #[must_use]
    pub fn new(id: u32, bytes: &[u8]) -> Self {
        let mut data = [0; DATA_MAX];
        let len = bytes.len().min(DATA_MAX);
        data.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Self { id, data, len }
    }

    /// Its bytes.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.data.get(..self.len).unwrap_or_default()
    }

    /// Its bytes, to be changed.
    pub fn data_mut(&mut self) -> &mut [u8] {
        self.data.get_mut(..self.len).unwrap_or_default()
    }
}

/// An event of a bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A frame, with the time of receipt.
    Frame(Frame, Option<UtcTime>),
    /// The controller went bus-off after too many errors.
    BusOff,
    /// The controller is back on the bus.
    Restarted,
    /// Another error.
    Error(&'static str),
    /// A frame without data.
    Other,
}

/// Classes of error frames (`linux/can/error.h`).
const ERRORS: [(u32, &str); 8] = [
    (0x01, "a frame could not be sent in time"),
    (0x20, "no other device acknowledges frames; check that one is connected with the same bit rate"),
    (0x04, "the controller sees many errors; check wiring, termination and bit rate"),
    (0x08, "a frame violates the protocol; check wiring, termination and bit rate"),
    (0x80, "error on the bus; check wiring, termination and bit rate"),
    (0x10, "error of the transceiver; check the wiring"),
    (0x02, "a frame lost arbitration"),
    (0x200, "the error counters have changed"),
];
const BUS_OFF: u32 = 0x40;
const RESTARTED: u32 = 0x100;

/// The event for an error frame with these classes.
#[must_use]
pub fn event_of_error(classes: u32) -> Event {
    match classes {
        _ if classes & BUS_OFF != 0 => Event::BusOff,
        _ if classes & RESTARTED != 0 => Event::Restarted,
        _ => {
            let known = ERRORS.iter().find(|(class, _)| classes & class != 0);
            Event::Error(known.map_or("unknown error on the bus", |(_, text)| text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_frames_have_a_meaning() {
        assert_eq!(event_of_error(0x44), Event::BusOff);
        assert_eq!(event_of_error(0x100), Event::Restarted);
        assert!(matches!(event_of_error(0x20), Event::Error(text) if text.contains("acknowledges")));
        assert!(matches!(event_of_error(0x8000), Event::Error(text) if text.contains("unknown")));
        assert_eq!(Frame::new(1, &[7; 70]).data(), [7; 64]);
    }
}
