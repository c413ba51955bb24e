//! Access to a local CAN bus through SocketCAN.

use super::frame::{EXTENDED, Event, Frame, event_of_error};
use crate::fault::{Fault, plain};
use core::future::Future;
use socketcan::tokio::CanFdSocket;
use socketcan::{CanAnyFrame, CanDataFrame, CanFdFrame, EmbeddedFrame, Frame as _, SocketOptions};
use std::io;
use std::time::SystemTime;
use taktwerk_types::UtcTime;

/// Sends and receives frames.
pub(super) trait Bus: Send {
    /// The next event. Cancelling the future loses nothing.
    fn next(&mut self) -> impl Future<Output = Result<Event, Fault>> + Send;

    /// Sends a frame.
    fn send(&mut self, frame: &Frame) -> impl Future<Output = Result<(), Fault>> + Send;
}

/// An interface such as `can0`.
pub(super) struct Interface {
    name: String,
    socket: CanFdSocket,
}

impl Interface {
    /// Opens an interface.
    ///
    /// # Errors
    /// The interface does not exist, or this system has no SocketCAN.
    pub(super) fn open(name: &str) -> Result<Self, Fault> {
        let open = || -> io::Result<CanFdSocket> {
            let socket = CanFdSocket::open(name)?;
            socket.set_error_filter_accept_all()?;
            socket.set_recv_timestamp(true)?;
            Ok(socket)
        };
        let socket = open().map_err(|error| Fault::connect(name, &error))?;
        Ok(Self { name: name.to_owned(), socket })
    }

    fn failed(&self, error: &io::Error) -> Fault {
        Fault::other(&self.name, plain(error))
    }
}

impl Bus for Interface {
    async fn next(&mut self) -> Result<Event, Fault> {
        let (frame, time) =
            self.socket.read_frame_with_timestamp().await.map_err(|error| self.failed(&error))?;
        let time = time.duration_since(SystemTime::UNIX_EPOCH).ok().map(UtcTime::from_unix);
        let id = |frame: &dyn Fn() -> (u32, bool)| {
            let (id, is_extended) = frame();
            if is_extended { id | EXTENDED } else { id }
        };
        Ok(match frame {
            CanAnyFrame::Normal(frame) => {
                let id = id(&|| (frame.raw_id(), frame.is_extended()));
                Event::Frame(Frame::new(id, frame.data()), time)
            }
            CanAnyFrame::Fd(frame) => {
                let id = id(&|| (frame.raw_id(), frame.is_extended()));
                Event::Frame(Frame::new(id, frame.data()), time)
            }
            CanAnyFrame::Error(frame) => event_of_error(frame.error_bits()),
            CanAnyFrame::Remote(_) => Event::Other,
        })
    }

    async fn send(&mut self, frame: &Frame) -> Result<(), Fault> {
        let id = if frame.id & EXTENDED == 0 {
            u16::try_from(frame.id).ok().and_then(socketcan::StandardId::new).map(socketcan::Id::Standard)
        } else {
            socketcan::ExtendedId::new(frame.id & !EXTENDED).map(socketcan::Id::Extended)
        };
        let Some(id) = id else { return Err(Fault::other(&self.name, "the identifier is too large")) };
        // Frames with more than 8 bytes are CAN FD frames.
        let sent = match CanDataFrame::new(id, frame.data()) {
            Some(frame) => self.socket.write_frame(&frame).await,
            None => match CanFdFrame::new(id, frame.data()) {
                Some(frame) => self.socket.write_frame(&frame).await,
                None => return Err(Fault::other(&self.name, "no frame has this many bytes")),
            },
        };
        sent.map_err(|error| self.failed(&error))
    }
}
