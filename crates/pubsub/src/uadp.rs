//! The UADP message mapping (Part 14 §7.2.4): binary NetworkMessages.
//!
//! - [`header`]: everything before the payload; [`security_header`]: its protection;
//! - [`payload`]: locating the DataSetMessages; [`data_set_message`]: their headers; [`fields`]: their fields;
//! - [`raw`]: the RawData encoding with fixed offsets;
//! - [`chunk`]: payloads split over several NetworkMessages;
//! - [`action`], [`probe`], [`announcement`]: the other kinds of payload.
//!
//! Decoders borrow from the received bytes, check every count against the bytes present, and never panic.

pub mod action;
pub mod announcement;
pub mod chunk;
pub mod data_set_message;
pub mod fields;
pub mod header;
pub mod payload;
pub mod probe;
pub mod raw;
pub mod security_header;

pub use data_set_message::{DataSetMessageHeader, DataSetMessageKind, FieldEncoding};
pub use header::{GroupHeader, NetworkMessageHeader, NetworkMessageType, WriterIds};
pub use security_header::{SecurityHeader, SecurityMode};
