//! An event in its stored form.

use crate::account::{HeapSize, allocation};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{
    ByteString, Decode, DecodeError, DecodeLimits, Decoder, Encode, NodeId, QualifiedName, UtcTime, Variant,
};

/// An event in its stored form.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// The condition that it is a notification of.
    pub condition: Option<NodeId>,
    /// All its fields: the browse path from the EventType, and the value.
    pub fields: Vec<(Vec<QualifiedName>, Variant)>,
}

impl HeapSize for StoredEvent {
    fn heap_size(&self) -> usize {
        let fields =
            self.fields.iter().map(|(path, value)| path.heap_size().saturating_add(value.heap_size()));
        let list = allocation(self.fields.capacity() * size_of::<(Vec<QualifiedName>, Variant)>());
        fields.fold(list.saturating_add(self.condition.heap_size()), usize::saturating_add)
    }
}

impl StoredEvent {
    /// The value of a field of namespace 0.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Variant> {
        let is_it = |path: &[QualifiedName]| match path {
            [only] => only.namespace_index == 0 && only.name.as_str() == name,
            _ => false,
        };
        self.fields.iter().find(|(path, _)| is_it(path)).map(|(_, value)| value)
    }

    /// Its Time; null without one.
    #[must_use]
    pub fn time(&self) -> UtcTime {
        match self.field("Time") {
            Some(Variant::DateTime(time)) => *time,
            _ => UtcTime::NULL,
        }
    }

    /// Its EventId; empty without one.
    #[must_use]
    pub fn event_id(&self) -> ByteString {
        match self.field("EventId") {
            Some(Variant::ByteString(id)) => id.clone(),
            _ => ByteString::default(),
        }
    }

    /// Sets a field, or adds it.
    pub fn set(&mut self, path: Vec<QualifiedName>, value: Variant) {
        match self.fields.iter_mut().find(|(known, _)| *known == path) {
            Some((_, known)) => *known = value,
            None => self.fields.push((path, value)),
        }
    }

    /// Appends the binary encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let fields = self.fields.iter().map(|(path, value)| (path.as_slice(), value));
        encode_event(self.condition.as_ref(), fields, out);
    }

    /// Reads the binary encoding.
    ///
    /// # Errors
    /// The bytes are not in the format of [`Self::encode`].
    pub fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let condition =
            if bool::decode(decoder)? { Some(<NodeId as Decode>::decode(decoder)?) } else { None };
        let count = decoder.array_len(5)?.unwrap_or(0);
        decoder.allocate(count.saturating_mul(size_of::<(Vec<QualifiedName>, Variant)>()))?;
        let fields = (0..count).map(|_| Ok((decoder.array()?, Variant::decode(decoder)?)));
        Ok(Self { condition, fields: fields.collect::<Result<_, DecodeError>>()? })
    }

    /// Reads an event that occupies all of `bytes`.
    ///
    /// # Errors
    /// The bytes are not in the format of [`Self::encode`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::decode(&mut Decoder::new(bytes, DecodeLimits::DEFAULT))
    }
}

/// Appends the binary encoding of an event without copying it.
pub(crate) fn encode_event<'a>(
    condition: Option<&NodeId>,
    fields: impl ExactSizeIterator<Item = (&'a [QualifiedName], &'a Variant)>,
    out: &mut Vec<u8>,
) {
    condition.is_some().encode(out);
    if let Some(condition) = condition {
        condition.encode(out);
    }
    encode_len(fields.len(), out);
    for (path, value) in fields {
        path.encode(out);
        value.encode(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_encoding() {
        let mut event = StoredEvent { condition: Some(NodeId::numeric(1, 5)), fields: Vec::new() };
        let name = |text: &str| vec![QualifiedName::new(0, text)];
        event.set(name("Time"), UtcTime::from_ticks(7).into());
        event.set(name("EventId"), ByteString::from(vec![1]).into());
        event.set(name("Time"), UtcTime::from_ticks(8).into());
        event.set(vec![QualifiedName::new(2, "A"), QualifiedName::new(0, "Id")], 1.5.into());
        let mut bytes = Vec::new();
        event.encode(&mut bytes);
        assert_eq!(StoredEvent::from_bytes(&bytes).unwrap(), event);
        assert_eq!((event.time(), event.event_id().as_bytes()), (UtcTime::from_ticks(8), [1].as_slice()));
        assert!((0..bytes.len()).all(|len| StoredEvent::from_bytes(&bytes[..len]).is_err()));
    }
}
