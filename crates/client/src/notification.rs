//! Notification messages as views of the receive buffer (Part 4 §7.25, §7.26).

use core::cell::Cell;
use taktwerk_schema::{DataChangeNotification, EventNotificationList, StatusChangeNotification};
use taktwerk_types::{
    DataValue, Decode, DecodeError, DecodeLimits, Decoder, IdentifierRef, NodeIdRef, StatusCode, Structure,
    UtcTime, Variant,
};

/// The id of a namespace-0 numeric NodeId; 0 for all others.
pub(crate) fn ns0(id: NodeIdRef<'_>) -> u32 {
    match id {
        NodeIdRef { namespace_index: 0, identifier: IdentifierRef::Numeric(value) } => value,
        _ => 0,
    }
}

/// A NotificationMessage whose parts were located but not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageView<'a> {
    pub(crate) sequence_number: u32,
    pub(crate) publish_time: UtcTime,
    /// The elements of notificationData.
    data: &'a [u8],
    count: usize,
}

impl<'a> MessageView<'a> {
    /// Parses a message and moves the decoder past it.
    pub(crate) fn parse(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let sequence_number = u32::decode(decoder)?;
        let publish_time = UtcTime::decode(decoder)?;
        let count = decoder.array_len(3)?.unwrap_or(0);
        let data = decoder.rest();
        for _ in 0..count {
            Part::parse(decoder)?;
        }
        let len = data.len() - decoder.remaining();
        Ok(Self { sequence_number, publish_time, data: data.get(..len).unwrap_or_default(), count })
    }

    /// Whether it is a keep-alive, without notifications (Part 4 §5.14.1.1).
    pub(crate) fn is_keep_alive(&self) -> bool {
        self.count == 0
    }

    /// The notifications in it.
    pub(crate) fn parts(self, limits: DecodeLimits) -> impl Iterator<Item = Part<'a>> {
        let mut decoder = Decoder::new(self.data, limits);
        // They were parsed before, so none fails now.
        (0..self.count).map_while(move |_| Part::parse(&mut decoder).ok())
    }

    /// An owned copy.
    pub(crate) fn to_owned(self) -> OwnedMessage {
        let Self { sequence_number, publish_time, data, count } = self;
        OwnedMessage { sequence_number, publish_time, data: data.into(), count }
    }
}

/// An owned message.
#[derive(Debug, Clone)]
pub(crate) struct OwnedMessage {
    pub(crate) sequence_number: u32,
    publish_time: UtcTime,
    data: Box<[u8]>,
    count: usize,
}

impl OwnedMessage {
    pub(crate) fn view(&self) -> MessageView<'_> {
        MessageView {
            sequence_number: self.sequence_number,
            publish_time: self.publish_time,
            data: &self.data,
            count: self.count,
        }
    }
}

/// One element of notificationData.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    DataChange(&'a [u8]),
    Events(&'a [u8]),
    StatusChange(StatusCode),
    /// A type that is not supported.
    Other,
}

impl<'a> Part<'a> {
    fn parse(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let type_id = ns0(NodeIdRef::decode(decoder)?);
        let body = match decoder.byte()? {
            0 => return Ok(Self::Other),
            1 => decoder.bytes()?.unwrap_or_default(),
            2 => {
                decoder.str()?;
                return Ok(Self::Other);
            }
            _ => return Err(DecodeError::Invalid("ExtensionObject encoding byte")),
        };
        Ok(match type_id {
            DataChangeNotification::BINARY_ENCODING_ID => Self::DataChange(body),
            EventNotificationList::BINARY_ENCODING_ID => Self::Events(body),
            StatusChangeNotification::BINARY_ENCODING_ID => {
                Self::StatusChange(StatusCode::decode_from(body, decoder.limits())?)
            }
            _ => Self::Other,
        })
    }
}

/// The value changes of a notification message: client handle and value, decoded during iteration.
///
/// Values of scalar types that fit a Variant in place (numbers, times, status codes, Guids) are decoded without heap.
/// If the bytes are invalid, the iteration ends early with an error, and the client drops the connection.
#[derive(Debug)]
pub struct DataChanges<'a> {
    /// Number of the notification message.
    pub sequence_number: u32,
    /// When the server sent it.
    pub publish_time: UtcTime,
    decoder: Decoder<'a>,
    remaining: usize,
    fault: &'a Cell<Option<DecodeError>>,
}

impl<'a> DataChanges<'a> {
    pub(crate) fn new(
        message: MessageView<'_>,
        body: &'a [u8],
        limits: DecodeLimits,
        fault: &'a Cell<Option<DecodeError>>,
    ) -> Self {
        let mut decoder = Decoder::new(body, limits);
        let remaining = note(decoder.array_len(5), fault).flatten().unwrap_or(0);
        let MessageView { sequence_number, publish_time, .. } = message;
        Self { sequence_number, publish_time, decoder, remaining, fault }
    }
}

impl Iterator for DataChanges<'_> {
    type Item = Result<(u32, DataValue), DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.remaining = self.remaining.checked_sub(1)?;
        let client_handle = u32::decode(&mut self.decoder);
        let result = client_handle.and_then(|handle| Ok((handle, DataValue::decode(&mut self.decoder)?)));
        if let Err(error) = result {
            self.fault.set(Some(error));
            self.remaining = 0;
        }
        Some(result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.remaining))
    }
}

impl DataChanges<'_> {
    /// Number of remaining changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.remaining
    }

    /// Whether no change remains.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.remaining == 0
    }

    /// Passes the remaining changes by reference, one after the other. A third faster than iterating, which moves each
    /// value out. Ends early like the iteration.
    #[inline]
    pub fn inspect_all(mut self, mut look: impl FnMut(u32, &DataValue)) {
        while let Some(remaining) = self.remaining.checked_sub(1) {
            self.remaining = remaining;
            let handle = match u32::decode(&mut self.decoder) {
                Ok(handle) => handle,
                Err(error) => return self.fault.set(Some(error)),
            };
            match &DataValue::decode(&mut self.decoder) {
                Ok(value) => look(handle, value),
                Err(error) => return self.fault.set(Some(*error)),
            }
        }
    }
}

/// The events of a notification message: client handle and selected fields.
#[derive(Debug)]
pub struct EventNotifications<'a> {
    /// Number of the notification message.
    pub sequence_number: u32,
    /// When the server sent it.
    pub publish_time: UtcTime,
    decoder: Decoder<'a>,
    remaining: usize,
    fault: &'a Cell<Option<DecodeError>>,
}

impl<'a> EventNotifications<'a> {
    /// Number of remaining events according to the message.
    pub(crate) fn announced(&self) -> usize {
        self.remaining
    }

    pub(crate) fn new(
        message: MessageView<'_>,
        body: &'a [u8],
        limits: DecodeLimits,
        fault: &'a Cell<Option<DecodeError>>,
    ) -> Self {
        let mut decoder = Decoder::new(body, limits);
        let remaining = note(decoder.array_len(8), fault).flatten().unwrap_or(0);
        let MessageView { sequence_number, publish_time, .. } = message;
        Self { sequence_number, publish_time, decoder, remaining, fault }
    }
}

impl Iterator for EventNotifications<'_> {
    type Item = Result<(u32, Vec<Variant>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.remaining = self.remaining.checked_sub(1)?;
        let client_handle = u32::decode(&mut self.decoder);
        let result = client_handle.and_then(|handle| Ok((handle, Vec::decode(&mut self.decoder)?)));
        if let Err(error) = &result {
            self.fault.set(Some(*error));
            self.remaining = 0;
        }
        Some(result)
    }
}

fn note<T>(result: Result<T, DecodeError>, fault: &Cell<Option<DecodeError>>) -> Option<T> {
    result.inspect_err(|error| fault.set(Some(*error))).ok()
}

/// A PublishResponse with its parts located but not decoded (Part 4 §5.14.5.2).
#[derive(Debug, Clone, Copy)]
pub(crate) struct PublishView<'a> {
    pub(crate) subscription_id: u32,
    available: &'a [u8],
    pub(crate) message: MessageView<'a>,
}

impl<'a> PublishView<'a> {
    /// Parses the bytes after the response header.
    pub(crate) fn parse(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let subscription_id = u32::decode(decoder)?;
        let count = decoder.array_len(4)?.unwrap_or(0);
        let available = decoder.take(count.saturating_mul(4))?;
        bool::decode(decoder)?;
        let message = MessageView::parse(decoder)?;
        // The results of acknowledgements and the diagnostics follow; they are not needed.
        Ok(Self { subscription_id, available, message })
    }

    /// The sequence numbers available for Republish.
    pub(crate) fn available(&self) -> impl Iterator<Item = u32> + '_ {
        self.available
            .chunks_exact(4)
            .filter_map(|bytes| bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_schema::{MonitoredItemNotification, NotificationMessage, PublishResponse};
    use taktwerk_types::{Encode, ExtensionObject};

    fn response(values: u32) -> PublishResponse {
        let monitored_items = (0..values)
            .map(|handle| MonitoredItemNotification {
                client_handle: handle,
                value: DataValue::new(f64::from(handle)).at(UtcTime::from_ticks(1), UtcTime::from_ticks(2)),
            })
            .collect();
        let changes = DataChangeNotification { monitored_items, diagnostic_infos: vec![] };
        let status = StatusChangeNotification { status: StatusCode::BAD_TIMEOUT, ..Default::default() };
        PublishResponse {
            subscription_id: 7,
            available_sequence_numbers: vec![3, 4],
            notification_message: NotificationMessage {
                sequence_number: 4,
                publish_time: UtcTime::from_ticks(9),
                notification_data: vec![ExtensionObject::new(&changes), ExtensionObject::new(&status)],
            },
            ..Default::default()
        }
    }

    fn behind_header(response: &PublishResponse) -> Vec<u8> {
        let header_len = response.response_header.encode_to_vec().len();
        response.encode_to_vec().split_off(header_len)
    }

    #[test]
    fn views_match_the_encoding_and_refuse_truncation() {
        let bytes = behind_header(&response(3));
        let view = PublishView::parse(&mut Decoder::new(&bytes, DecodeLimits::DEFAULT)).unwrap();
        assert_eq!((view.subscription_id, view.message.sequence_number), (7, 4));
        assert_eq!(view.available().collect::<Vec<_>>(), [3, 4]);
        let kept = view.message.to_owned();
        let parts: Vec<_> = kept.view().parts(DecodeLimits::DEFAULT).collect();
        let [Part::DataChange(body), Part::StatusChange(StatusCode::BAD_TIMEOUT)] = parts[..] else {
            panic!("{parts:?}")
        };
        let fault = Cell::new(None);
        let changes = DataChanges::new(kept.view(), body, DecodeLimits::DEFAULT, &fault);
        assert_eq!(changes.len(), 3);
        let values: Vec<_> =
            changes.map(|change| change.unwrap()).map(|(handle, value)| (handle, value.value)).collect();
        assert_eq!(values[2], (2, Some(Variant::Double(2.0))));
        assert_eq!(fault.get(), None);
        let look = |body: &[u8]| {
            let mut seen = Vec::new();
            let changes = DataChanges::new(kept.view(), body, DecodeLimits::DEFAULT, &fault);
            changes.inspect_all(|handle, value| seen.push((handle, value.value.clone())));
            (seen, fault.take().is_some())
        };
        assert_eq!(look(body), (values.clone(), false));
        assert_eq!(look(&body[..body.len() - 20]), (values[..2].to_vec(), true));
        let cut = DataChanges::new(kept.view(), &body[..body.len() - 20], DecodeLimits::DEFAULT, &fault);
        assert!(cut.last().unwrap().is_err() && fault.get().is_some());
        let message_end = bytes.len() - 8;
        for cut in 0..message_end {
            assert!(PublishView::parse(&mut Decoder::new(&bytes[..cut], DecodeLimits::DEFAULT)).is_err());
        }
    }
}
