//! The messages of Sparkplug B (`sparkplug_b.proto` of Eclipse Tahu), restricted to what values need.

use super::datatype;
use prost::{Message, Oneof};

/// A message.
#[derive(Clone, PartialEq, Message)]
pub struct Payload {
    /// Milliseconds since 1970.
    #[prost(uint64, optional, tag = "1")]
    pub timestamp: Option<u64>,
    /// The values.
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<Metric>,
    /// Sequence number of an edge node's messages, from 0 to 255.
    #[prost(uint64, optional, tag = "3")]
    pub seq: Option<u64>,
}

/// A metric: a value with its description.
#[derive(Clone, PartialEq, Message)]
pub struct Metric {
    /// Its name; data messages may omit it if there is an alias.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// A number that replaces the name.
    #[prost(uint64, optional, tag = "2")]
    pub alias: Option<u64>,
    /// Milliseconds since 1970.
    #[prost(uint64, optional, tag = "3")]
    pub timestamp: Option<u64>,
    /// The type, of [`super::datatype`].
    #[prost(uint32, optional, tag = "4")]
    pub datatype: Option<u32>,
    /// Whether it is not the current value.
    #[prost(bool, optional, tag = "5")]
    pub is_historical: Option<bool>,
    /// Whether there is no value.
    #[prost(bool, optional, tag = "7")]
    pub is_null: Option<bool>,
    /// Quality, engineering unit and others.
    #[prost(message, optional, tag = "9")]
    pub properties: Option<PropertySet>,
    /// The value.
    #[prost(oneof = "Value", tags = "10, 11, 12, 13, 14, 15, 16, 18")]
    pub value: Option<Value>,
}

/// An encoded value.
#[derive(Clone, PartialEq, Oneof)]
pub enum Value {
    /// Integers up to 32 bits, in two's complement.
    #[prost(uint32, tag = "10")]
    Int(u32),
    /// Integers of 64 bits, in two's complement, and times.
    #[prost(uint64, tag = "11")]
    Long(u64),
    /// Float
    #[prost(float, tag = "12")]
    Float(f32),
    /// Double
    #[prost(double, tag = "13")]
    Double(f64),
    /// Boolean
    #[prost(bool, tag = "14")]
    Boolean(bool),
    /// String, Text, UUID
    #[prost(string, tag = "15")]
    Text(String),
    /// Bytes, arrays
    #[prost(bytes = "vec", tag = "16")]
    Bytes(Vec<u8>),
    /// An instance of a template, or its definition.
    #[prost(message, tag = "18")]
    Template(Template),
}

/// A group of metrics.
#[derive(Clone, PartialEq, Message)]
pub struct Template {
    /// The members.
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<Metric>,
    /// Whether it is a definition and not an instance.
    #[prost(bool, optional, tag = "5")]
    pub is_definition: Option<bool>,
}

/// Properties of a metric.
#[derive(Clone, PartialEq, Message)]
pub struct PropertySet {
    /// Their names.
    #[prost(string, repeated, tag = "1")]
    pub keys: Vec<String>,
    /// Their values, in the same order.
    #[prost(message, repeated, tag = "2")]
    pub values: Vec<PropertyValue>,
}

/// The value of a property.
#[derive(Clone, PartialEq, Message)]
pub struct PropertyValue {
    /// The type, of [`super::datatype`].
    #[prost(uint32, optional, tag = "1")]
    pub datatype: Option<u32>,
    /// The value.
    #[prost(oneof = "Property", tags = "3, 4, 8")]
    pub value: Option<Property>,
}

/// An encoded property; unused types are omitted.
#[derive(Clone, PartialEq, Oneof)]
pub enum Property {
    /// Integers up to 32 bits.
    #[prost(uint32, tag = "3")]
    Int(u32),
    /// Integers of 64 bits.
    #[prost(uint64, tag = "4")]
    Long(u64),
    /// Texts.
    #[prost(string, tag = "8")]
    Text(String),
}

impl Metric {
    /// A metric with a value.
    #[must_use]
    pub fn new(name: &str, datatype: u32, value: Value) -> Self {
        Self { name: Some(name.to_owned()), datatype: Some(datatype), value: Some(value), ..Self::default() }
    }

    /// A property.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&Property> {
        let properties = self.properties.as_ref()?;
        let index = properties.keys.iter().position(|key| key == name)?;
        properties.values.get(index)?.value.as_ref()
    }
}

impl PropertySet {
    /// The property `Quality`: 192 is good, 0 bad, 500 stale.
    #[must_use]
    pub fn quality(quality: u32) -> Self {
        let value = PropertyValue { datatype: Some(3), value: Some(Property::Int(quality)) };
        Self { keys: vec!["Quality".to_owned()], values: vec![value] }
    }
}

/// The command that requests a rebirth: the edge node publishes all its metrics again.
#[must_use]
pub fn rebirth(millis: u64) -> Vec<u8> {
    let metric = Metric::new("Node Control/Rebirth", datatype::BOOLEAN, Value::Boolean(true));
    let payload = Payload { timestamp: Some(millis), metrics: vec![metric], seq: None };
    payload.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_follow_the_schema() {
        // timestamp = 5, metrics { name = "T", alias = 1, datatype = 9, float_value = 1.5 }, seq = 3; written by hand.
        let bytes =
            [0x08, 5, 0x12, 12, 0x0A, 1, b'T', 0x10, 1, 0x20, 9, 0x65, 0, 0, 0xC0, 0x3F, 0x18, 3].as_slice();
        let payload = Payload::decode(bytes).unwrap();
        assert_eq!((payload.timestamp, payload.seq), (Some(5), Some(3)));
        let metric = &payload.metrics[0];
        assert_eq!((metric.name.as_deref(), metric.alias, metric.datatype), (Some("T"), Some(1), Some(9)));
        assert_eq!(metric.value, Some(Value::Float(1.5)));
        assert_eq!(payload.encode_to_vec(), bytes);
        // Unknown fields are skipped; an invalid message is an error.
        assert!(Payload::decode([0x22, 1, b'u'].as_slice()).is_ok());
        assert!(Payload::decode([0x12, 200].as_slice()).is_err());
    }
}
