//! Services as pairs of messages (Part 4 §7.32, §7.33: every message starts with a header).

use crate::{RequestHeader, ResponseHeader};
use taktwerk_types::Structure;

/// A request message.
pub trait Request: Structure {
    /// The message that answers it.
    type Response: Response;

    /// What every request starts with.
    fn header(&self) -> &RequestHeader;

    /// What every request starts with.
    fn header_mut(&mut self) -> &mut RequestHeader;
}

/// A response message.
pub trait Response: Structure {
    /// What every response starts with.
    fn header(&self) -> &ResponseHeader;

    /// What every response starts with.
    fn header_mut(&mut self) -> &mut ResponseHeader;
}
