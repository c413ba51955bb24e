//! Distributes DataSetMessages over NetworkMessages (Part 14 §6.3.1.1.3, §6.3.1.3.4).

use super::writer::Item;
use core::ops::Range;
use taktwerk_schema::DataSetOrderingType;

/// The limits of a group's NetworkMessages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Maximum length of a NetworkMessage in bytes.
    pub(super) message_len_max: usize,
    /// Length of header, security header, footer and signature, without the part per DataSetMessage.
    pub(super) fixed_len: usize,
    /// There is a PayloadHeader: ids and sizes.
    pub(super) payload_header: bool,
    /// Only one DataSetMessage per NetworkMessage.
    pub(super) single: bool,
}

impl Room {
    /// Length of a NetworkMessage with this number and total length of DataSetMessages.
    fn len(&self, count: usize, bytes: usize) -> usize {
        let header = match (self.payload_header, count) {
            (false, _) => 0,
            (true, 1) => 3,
            (true, count) => 1 + 4 * count,
        };
        self.fixed_len + header + bytes
    }

    /// Maximum length of a single DataSetMessage.
    pub(super) fn single_len_max(&self) -> usize {
        self.message_len_max.saturating_sub(self.len(1, 0))
    }
}

/// Sorts `items` and appends the ranges that share a NetworkMessage. An item that fits into none is alone in its range.
pub(super) fn plan(
    items: &mut [Item],
    ordering: DataSetOrderingType,
    room: Room,
    messages: &mut Vec<Range<usize>>,
) {
    messages.clear();
    if ordering != DataSetOrderingType::UNDEFINED {
        items.sort_by_key(|item| (item.message_number, item.writer_id));
    } else if items.iter().any(|item| item.message_number != 0) {
        items.sort_by_key(|item| item.message_number);
    }
    let single = room.single || ordering == DataSetOrderingType::ASCENDING_WRITER_ID_SINGLE;
    let (mut start, mut bytes) = (0, 0);
    for (index, item) in items.iter().enumerate() {
        let count = index - start;
        let same_number = items.get(start).is_some_and(|first| first.message_number == item.message_number);
        let fits = count == 0
            || (!single
                && count < usize::from(u8::MAX)
                && same_number
                && room.len(count + 1, bytes + item.len) <= room.message_len_max);
        if !fits {
            messages.push(start..index);
            (start, bytes) = (index, 0);
        }
        bytes += item.len;
    }
    if start < items.len() {
        messages.push(start..items.len());
    }
}

#[cfg(test)]
mod tests {
    use super::super::writer::Place;
    use super::*;
    use proptest::prelude::*;

    fn item(writer_id: u16, message_number: u16, len: usize) -> Item {
        let place = Place::Frame;
        Item { writer: 0, writer_id, message_number, offset: 0, place, len, sequence_number: 0 }
    }

    const ROOM: Room = Room { message_len_max: 100, fixed_len: 20, payload_header: true, single: false };

    fn ids(items: &[Item], messages: &[Range<usize>]) -> Vec<Vec<u16>> {
        let ids = |range: &Range<usize>| items[range.clone()].iter().map(|item| item.writer_id).collect();
        messages.iter().map(ids).collect()
    }

    #[test]
    fn ordering_and_numbers() {
        let mut items = [item(3, 0, 10), item(1, 0, 10), item(2, 0, 10)];
        let mut messages = Vec::new();
        plan(&mut items, DataSetOrderingType::UNDEFINED, ROOM, &mut messages);
        assert_eq!(ids(&items, &messages), [[3, 1, 2]]);
        plan(&mut items, DataSetOrderingType::ASCENDING_WRITER_ID, ROOM, &mut messages);
        assert_eq!(ids(&items, &messages), [[1, 2, 3]]);
        plan(&mut items, DataSetOrderingType::ASCENDING_WRITER_ID_SINGLE, ROOM, &mut messages);
        assert_eq!(ids(&items, &messages), [[1], [2], [3]]);
        let mut numbered = [item(1, 2, 10), item(2, 1, 10), item(3, 2, 10)];
        plan(&mut numbered, DataSetOrderingType::UNDEFINED, ROOM, &mut messages);
        assert_eq!(ids(&numbered, &messages), [vec![2], vec![1, 3]]);
    }

    proptest! {
        #[test]
        fn every_item_once_and_no_message_too_long(lens in proptest::collection::vec(1usize..77, 0..40)) {
            let mut items: Vec<_> = lens.iter().enumerate().map(|(id, len)| item(id as u16, 0, *len)).collect();
            let mut messages = Vec::new();
            plan(&mut items, DataSetOrderingType::ASCENDING_WRITER_ID, ROOM, &mut messages);
            let mut next = 0;
            for range in messages {
                prop_assert_eq!(range.start, next);
                next = range.end;
                let bytes = items[range.clone()].iter().map(|item| item.len).sum();
                prop_assert!(ROOM.len(range.len(), bytes) <= 100);
            }
            prop_assert_eq!(next, items.len());
        }
    }
}
