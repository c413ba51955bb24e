//! Writing a response directly after the space reserved for the chunk header.

use crate::error::Fault;
use taktwerk_schema::{ResponseHeader, ServiceFault};
use taktwerk_types::{Encode, NodeId, StatusCode, Structure, UtcTime};

/// The response to a request, under construction.
#[derive(Debug)]
pub(crate) struct Reply<'a> {
    out: &'a mut Vec<u8>,
    /// Where the message body starts in `out`.
    start: usize,
    request_handle: u32,
    time: UtcTime,
}

/// Size of an empty response, the minimum of any response, in bytes.
const HEADER_LEN: usize = 28;

impl<'a> Reply<'a> {
    /// Creates a response that is appended to `out`.
    pub(crate) fn new(out: &'a mut Vec<u8>, request_handle: u32, time: UtcTime) -> Self {
        let start = out.len();
        Self { out, start, request_handle, time }
    }

    /// Starts a good response of a type. Returns the buffer for the fields after the ResponseHeader. Earlier output is
    /// dropped.
    #[inline]
    pub(crate) fn begin<T: Structure>(&mut self) -> &mut Vec<u8> {
        self.begin_id(T::BINARY_ENCODING_ID, StatusCode::GOOD)
    }

    pub(crate) fn begin_id(&mut self, encoding_id: u32, result: StatusCode) -> &mut Vec<u8> {
        self.out.truncate(self.start);
        let mut header = [0; HEADER_LEN];
        // NodeId in the four-byte encoding: every service message's id fits into 16 bits.
        let [low, high, ..] = encoding_id.to_le_bytes();
        header[..4].copy_from_slice(&[1, 0, low, high]);
        header[4..12].copy_from_slice(&self.time.ticks().to_le_bytes());
        header[12..16].copy_from_slice(&self.request_handle.to_le_bytes());
        header[16..20].copy_from_slice(&result.0.to_le_bytes());
        // The rest stays zero: a DiagnosticInfo without fields (1 byte), no strings (4), and an ExtensionObject without
        // type and body (3).
        self.out.extend_from_slice(&header);
        self.out
    }

    /// Writes a complete response from its structure.
    pub(crate) fn send<T: Structure>(&mut self, make: impl FnOnce(ResponseHeader) -> T) {
        let header = ResponseHeader {
            timestamp: self.time,
            request_handle: self.request_handle,
            service_result: StatusCode::GOOD,
            ..ResponseHeader::default()
        };
        let response = make(header);
        self.out.truncate(self.start);
        NodeId::numeric(0, T::BINARY_ENCODING_ID).encode(self.out);
        response.encode(self.out);
    }

    /// Replaces all output by a ServiceFault (Part 4 §7.35).
    pub(crate) fn fault(&mut self, fault: Fault) {
        self.begin_id(ServiceFault::BINARY_ENCODING_ID, fault.status());
    }

    /// The buffer, after the output so far.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Drops everything from an offset in the response on.
    pub(crate) fn truncate(&mut self, at: usize) {
        self.out.truncate(self.start + at);
    }

    /// Overwrites four bytes at an offset in the response.
    pub(crate) fn put_u32(&mut self, at: usize, value: u32) {
        let at = self.start + at;
        if let Some(gap) = self.out.get_mut(at..at + 4) {
            gap.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// Replaces the null ByteString at an offset in the response.
    pub(crate) fn put_bytes(&mut self, at: usize, bytes: &[u8]) {
        self.put_u32(at, bytes.len() as u32);
        let at = self.start + at + 4;
        self.out.splice(at..at, bytes.iter().copied());
    }

    /// Length of the response so far, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// Bytes after the ResponseHeader so far.
    pub(crate) fn body_len(&self) -> usize {
        self.len().saturating_sub(HEADER_LEN)
    }

    /// Continues the response of a postponed request.
    pub(crate) fn resume(out: &'a mut Vec<u8>, request_handle: u32, time: UtcTime) -> Self {
        Self { out, start: 0, request_handle, time }
    }

    /// Removes and returns all output, for responses that are sent later.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let response = self.out.get(self.start..).unwrap_or_default().to_vec();
        self.out.truncate(self.start);
        response
    }

    /// Removes and returns the output after the ResponseHeader, for responses that are sent later.
    pub(crate) fn take_body(&mut self) -> Vec<u8> {
        let body = self.out.get(self.start + HEADER_LEN..).unwrap_or_default().to_vec();
        self.out.truncate(self.start);
        body
    }
}

/// Appends the empty array of diagnostics after the results of a service.
pub(crate) fn no_diagnostics(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; 4]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::{Decode, DecodeLimits};

    #[test]
    fn the_fixed_header_is_what_the_structure_encodes() {
        let mut out = vec![9];
        let mut reply = Reply::new(&mut out, 7, UtcTime::from_ticks(5));
        reply.fault(Fault::peer(StatusCode::BAD_NOTHING_TO_DO, ""));
        assert_eq!(reply.len(), HEADER_LEN);
        let mut decoder = taktwerk_types::Decoder::new(&out[1..], DecodeLimits::DEFAULT);
        assert_eq!(NodeId::decode(&mut decoder).unwrap().ns0(), Some(ServiceFault::BINARY_ENCODING_ID));
        let fault = ServiceFault::decode(&mut decoder).unwrap();
        assert_eq!(fault.response_header.service_result, StatusCode::BAD_NOTHING_TO_DO);
        assert_eq!(fault.response_header.request_handle, 7);
        assert_eq!(fault.response_header.additional_header, taktwerk_types::ExtensionObject::NULL);
        assert_eq!(decoder.remaining(), 0);
    }
}
