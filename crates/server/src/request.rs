//! Parsing a request: its type, its header, and a decoder for the rest.

use crate::error::Fault;
use taktwerk_types::{Decode, DecodeError, DecodeLimits, Decoder, NodeIdRef, UtcTime};

/// A request. Everything borrows the received chunk.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// Numeric id of the body's binary encoding; 0 for ids outside namespace 0.
    pub(crate) type_id: u32,
    pub(crate) header: Header<'a>,
    /// After the RequestHeader.
    pub(crate) body: Decoder<'a>,
    /// Before the RequestHeader, for services that decode their whole structure.
    whole: Decoder<'a>,
}

/// RequestHeader (Part 4 §7.32).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header<'a> {
    pub(crate) token: NodeIdRef<'a>,
    pub(crate) handle: u32,
    /// In ms; 0 is no hint.
    pub(crate) timeout_hint: u32,
    /// The client's audit entry id for the request; empty without one.
    pub(crate) audit_entry_id: &'a str,
}

impl<'a> Request<'a> {
    /// Parses type and header.
    ///
    /// # Errors
    /// The fault, and the request handle if it was read.
    pub(crate) fn parse(body: &'a [u8], limits: DecodeLimits) -> Result<Self, (Fault, u32)> {
        let mut decoder = Decoder::new(body, limits);
        let mut handle = 0;
        Self::read(&mut decoder, &mut handle).map_err(|error| (error.into(), handle))
    }

    fn read(decoder: &mut Decoder<'a>, handle: &mut u32) -> Result<Self, DecodeError> {
        let type_id = NodeIdRef::decode(decoder)?;
        let type_id = match (type_id.namespace_index, type_id.identifier) {
            (0, taktwerk_types::IdentifierRef::Numeric(id)) => id,
            _ => 0,
        };
        let whole = decoder.clone();
        let token = NodeIdRef::decode(decoder)?;
        let _timestamp = UtcTime::decode(decoder)?;
        *handle = u32::decode(decoder)?;
        // The server returns no diagnostics, whatever the client requests (Part 4 §7.12).
        let _return_diagnostics = u32::decode(decoder)?;
        let audit_entry_id = decoder.str()?.unwrap_or("");
        let timeout_hint = u32::decode(decoder)?;
        skip_extension_object(decoder)?;
        let header = Header { token, handle: *handle, timeout_hint, audit_entry_id };
        Ok(Self { type_id, header, body: decoder.clone(), whole })
    }

    /// Decodes the request as a structure, including the RequestHeader.
    ///
    /// # Errors
    /// The request does not decode.
    pub(crate) fn decode<T: Decode<'a>>(&self) -> Result<T, Fault> {
        Ok(T::decode(&mut self.whole.clone())?)
    }
}

/// Skips an ExtensionObject without decoding it.
pub(crate) fn skip_extension_object(decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
    NodeIdRef::decode(decoder)?;
    match decoder.byte()? {
        0 => {}
        1 => {
            decoder.bytes()?;
        }
        2 => {
            decoder.str()?;
        }
        _ => return Err(DecodeError::Invalid("ExtensionObject encoding byte")),
    }
    Ok(())
}
