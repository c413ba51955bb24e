//! Locates the DataSetMessages of a NetworkMessage (Part 14 §7.2.4.5.2, §7.2.4.5.3).

use super::header::WriterIds;
use taktwerk_types::{DecodeError, Decoder};

/// The DataSetMessages of a received payload.
#[derive(Debug, Clone)]
pub struct DataSetPayload<'a> {
    writer_ids: Option<WriterIds<'a>>,
    /// Pairs of bytes; empty if there is one message, which takes all remaining bytes.
    sizes: &'a [u8],
    bodies: &'a [u8],
    index: usize,
}

impl<'a> DataSetPayload<'a> {
    /// Locates the messages. `payload` is the part after the header, decrypted and without footer and signature.
    ///
    /// # Errors
    /// The sizes exceed the payload.
    pub fn new(writer_ids: Option<WriterIds<'a>>, payload: &'a [u8]) -> Result<Self, DecodeError> {
        let count = writer_ids.map_or(1, |ids| ids.len());
        let mut decoder = Decoder::new(payload, Default::default());
        let sizes = if count > 1 { decoder.take(count * 2)? } else { &[] };
        let total: usize = sizes.chunks_exact(2).map(size_of_pair).sum();
        if total > decoder.remaining() {
            return Err(DecodeError::Truncated { needed: total - decoder.remaining() });
        }
        let bodies = if count == 0 { &[] } else { decoder.rest() };
        Ok(Self { writer_ids, sizes, bodies, index: 0 })
    }
}

fn size_of_pair(pair: &[u8]) -> usize {
    pair.iter().rev().fold(0, |size, byte| size << 8 | usize::from(*byte))
}

impl<'a> Iterator for DataSetPayload<'a> {
    /// The DataSetWriterId, if the message has it, and the DataSetMessage with its padding.
    type Item = (Option<u16>, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let count = self.writer_ids.map_or(1, |ids| ids.len());
        if self.index >= count {
            return None;
        }
        let writer_id = self.writer_ids.and_then(|ids| ids.get(self.index));
        let len = match self.sizes.get(self.index * 2..self.index * 2 + 2) {
            Some(pair) => size_of_pair(pair),
            None => self.bodies.len(),
        };
        let (message, rest) = self.bodies.split_at_checked(len)?;
        self.bodies = rest;
        self.index += 1;
        Some((writer_id, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_there_only_for_more_than_one_message() {
        let one: Vec<_> = DataSetPayload::new(Some(WriterIds::List(&[7])), b"abc").unwrap().collect();
        assert_eq!(one, [(Some(7), b"abc".as_slice())]);
        let none: Vec<_> = DataSetPayload::new(None, b"abc").unwrap().collect();
        assert_eq!(none, [(None, b"abc".as_slice())]);
        let two = DataSetPayload::new(Some(WriterIds::List(&[7, 8])), b"\x01\0\x02\0abc").unwrap();
        assert_eq!(two.collect::<Vec<_>>(), [(Some(7), b"a".as_slice()), (Some(8), b"bc")]);
        assert!(DataSetPayload::new(Some(WriterIds::List(&[7, 8])), b"\x01\0\x03\0abc").is_err());
        assert!(DataSetPayload::new(Some(WriterIds::List(&[7, 8])), b"\x01\0\x03").is_err());
    }
}
