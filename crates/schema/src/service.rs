//! Services as pairs of messages (Part 4 §7.32, §7.33: every message starts with a header).

use crate::{RequestHeader, ResponseHeader};
use taktwerk_types::Structure;

/// A request message.
pub trait Request: Structure {
    /// Its response message.
    type Response: Response;

    /// The RequestHeader.
    fn header(&self) -> &RequestHeader;

    /// The RequestHeader.
    fn header_mut(&mut self) -> &mut RequestHeader;
}

/// A response message.
pub trait Response: Structure {
    /// The ResponseHeader.
    fn header(&self) -> &ResponseHeader;

    /// The ResponseHeader.
    fn header_mut(&mut self) -> &mut ResponseHeader;
}
