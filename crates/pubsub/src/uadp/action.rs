//! Actions (Part 14 §7.2.4.4.2, §7.2.4.5.9, §7.2.4.5.10): a request and its response in NetworkMessages.
//!
//! The ActionHeader precedes the payload and is encrypted with it, because it can contain the requestor's own data.

use taktwerk_schema::ActionState;
use taktwerk_types::codec::{Decode, encode_bytes};
use taktwerk_types::{DecodeError, Decoder, Encode, Variant};

const IS_REQUEST: u8 = 0x01;
const RESPONSE_ADDRESS: u8 = 0x02;
const CORRELATION_DATA: u8 = 0x04;
const REQUESTOR_ID: u8 = 0x08;
const TIMEOUT_HINT: u8 = 0x10;
const RESERVED: u8 = 0xe0;

/// The ActionHeader of a NetworkMessage.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ActionHeader<'a> {
    /// Request or response.
    pub is_request: bool,
    /// Address for the response.
    pub response_address: Option<&'a str>,
    /// Data that the response must return.
    pub correlation_data: Option<&'a [u8]>,
    /// The PublisherId of the requestor.
    pub requestor_id: Option<Variant>,
    /// Timeout of the requestor in milliseconds.
    pub timeout_hint: Option<f64>,
}

impl ActionHeader<'_> {
    /// Appends the header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let bit = |present: bool, bit: u8| if present { bit } else { 0 };
        out.push(
            bit(self.is_request, IS_REQUEST)
                | bit(self.response_address.is_some(), RESPONSE_ADDRESS)
                | bit(self.correlation_data.is_some(), CORRELATION_DATA)
                | bit(self.requestor_id.is_some(), REQUESTOR_ID)
                | bit(self.timeout_hint.is_some(), TIMEOUT_HINT),
        );
        if let Some(address) = self.response_address {
            encode_bytes(Some(address.as_bytes()), out);
        }
        if let Some(data) = self.correlation_data {
            encode_bytes(Some(data), out);
        }
        if let Some(id) = &self.requestor_id {
            id.encode(out);
        }
        if let Some(hint) = self.timeout_hint {
            hint.encode(out);
        }
    }
}

impl<'a> ActionHeader<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// Reserved bits, or truncated bytes.
    pub fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let flags = decoder.byte()?;
        if flags & RESERVED != 0 {
            return Err(DecodeError::Invalid("ActionFlags: reserved bits"));
        }
        Ok(Self {
            is_request: flags & IS_REQUEST != 0,
            response_address: if flags & RESPONSE_ADDRESS != 0 { decoder.str()? } else { None },
            correlation_data: if flags & CORRELATION_DATA != 0 { decoder.bytes()? } else { None },
            requestor_id: if flags & REQUESTOR_ID != 0 { Some(Variant::decode(decoder)?) } else { None },
            timeout_hint: if flags & TIMEOUT_HINT != 0 { Some(f64::decode(decoder)?) } else { None },
        })
    }
}

/// The bytes between the header of an Action's DataSetMessage and its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ActionBody {
    /// Id of the target in the ActionMetaData.
    pub target_id: u16,
    /// Id of the request, unique per requestor and correlation data.
    pub request_id: u16,
    /// In a request: the state requested of the responder; in a response: its state.
    pub state: ActionState,
}

impl ActionBody {
    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.target_id.encode(out);
        self.request_id.encode(out);
        out.push(u8::try_from(self.state.0).unwrap_or(0));
    }

    /// Reads it.
    ///
    /// # Errors
    /// An unknown state, or truncated bytes.
    pub fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let target_id = u16::decode(decoder)?;
        let request_id = u16::decode(decoder)?;
        let state = ActionState(i32::from(decoder.byte()?));
        if state.name().is_none() {
            return Err(DecodeError::Invalid("ActionState"));
        }
        Ok(Self { target_id, request_id, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let headers = [
            ActionHeader::default(),
            ActionHeader {
                is_request: true,
                response_address: Some("opc.udp://10.0.0.1:4840"),
                correlation_data: Some(b"me"),
                requestor_id: Some(7u16.into()),
                timeout_hint: Some(250.0),
            },
        ];
        for header in headers {
            let mut bytes = Vec::new();
            header.encode(&mut bytes);
            let body = ActionBody { target_id: 3, request_id: 4, state: ActionState::EXECUTING };
            body.encode(&mut bytes);
            let mut decoder = Decoder::new(&bytes, Default::default());
            assert_eq!(ActionHeader::decode(&mut decoder), Ok(header));
            assert_eq!(ActionBody::decode(&mut decoder), Ok(body));
            assert_eq!(decoder.remaining(), 0);
        }
        assert!(ActionBody::decode(&mut Decoder::new(&[0, 0, 0, 0, 3], Default::default())).is_err());
    }
}
