//! NotificationMessages (Part 4 §7.26): a header and a list of blocks, one for each kind of notification.

use taktwerk_types::codec::{encode_len, encode_sized};
use taktwerk_types::{Encode, NodeId, UtcTime};

/// A message under construction. Without blocks it is a keep-alive.
#[derive(Debug)]
#[must_use]
pub(super) struct MessageWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Position of the number of blocks.
    count_at: usize,
    blocks: u32,
}

impl<'a> MessageWriter<'a> {
    pub(super) fn begin(out: &'a mut Vec<u8>, sequence_number: u32, publish_time: UtcTime) -> Self {
        sequence_number.encode(out);
        publish_time.encode(out);
        let count_at = out.len();
        encode_len(0, out);
        Self { out, count_at, blocks: 0 }
    }

    /// Appends a block: `body` writes the structure with that encoding id and returns its number of notifications. An
    /// empty block is removed again.
    #[inline]
    pub(super) fn block(&mut self, encoding_id: u32, body: impl FnOnce(&mut Vec<u8>) -> u32) -> u32 {
        let start = self.out.len();
        NodeId::numeric(0, encoding_id).encode(self.out);
        self.out.push(1);
        let mut count = 0;
        encode_sized(self.out, |out| count = body(out));
        if count == 0 {
            self.out.truncate(start);
        } else {
            self.blocks += 1;
        }
        count
    }

    /// Completes the message. Returns whether it contains notifications.
    pub(super) fn finish(self) -> bool {
        if let Some(gap) = self.out.get_mut(self.count_at..self.count_at + 4) {
            gap.copy_from_slice(&self.blocks.to_le_bytes());
        }
        self.blocks > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_schema::ids::encoding_ids;
    use taktwerk_schema::{DataChangeNotification, NotificationMessage, StatusChangeNotification};
    use taktwerk_types::{Decode, DecodeLimits, StatusCode};

    #[test]
    fn a_message_has_several_kinds_of_blocks_and_no_empty_ones() {
        let time = UtcTime::from_ticks(7);
        let mut out = Vec::new();
        let mut message = MessageWriter::begin(&mut out, 5, time);
        let data = DataChangeNotification::default();
        message.block(encoding_ids::DATA_CHANGE_NOTIFICATION_BINARY, |out| {
            data.encode(out);
            3
        });
        message.block(encoding_ids::EVENT_NOTIFICATION_LIST_BINARY, |out| {
            encode_len(0, out);
            0
        });
        let change = StatusChangeNotification {
            status: StatusCode::BAD_TIMEOUT,
            ..StatusChangeNotification::default()
        };
        message.block(encoding_ids::STATUS_CHANGE_NOTIFICATION_BINARY, |out| {
            change.encode(out);
            1
        });
        assert!(message.finish());
        let decoded = NotificationMessage::decode_from(&out, DecodeLimits::DEFAULT).unwrap();
        assert_eq!((decoded.sequence_number, decoded.publish_time), (5, time));
        assert_eq!(decoded.notification_data.len(), 2);
        assert_eq!(decoded.notification_data[0].decode::<DataChangeNotification>().unwrap(), data);
        assert_eq!(decoded.notification_data[1].decode::<StatusChangeNotification>().unwrap(), change);
    }

    #[test]
    fn without_blocks_it_is_a_keep_alive() {
        let mut out = Vec::new();
        assert!(!MessageWriter::begin(&mut out, 1, UtcTime::from_ticks(7)).finish());
        let decoded = NotificationMessage::decode_from(&out, DecodeLimits::DEFAULT).unwrap();
        assert!(decoded.notification_data.is_empty());
    }
}
