//! Counts the elements of a message before decoding. An empty metric takes two bytes in a message but two hundred in memory, so a
//! message within `payload_max` could need a hundred times its size.

/// Most metrics, members of templates, and properties in one message.
pub const ELEMENTS_MAX: usize = 65_536;
/// Deepest nesting; the decoder has the same limit.
const DEPTH_MAX: usize = 100;

/// Message types that contain others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A payload or a template: field 2 is a metric.
    Metrics,
    /// Field 9 has the properties, field 18 is a template.
    Metric,
    /// Fields 1 and 2 are keys and values.
    Properties,
}

/// Whether a message is well-formed protobuf and has at most [`ELEMENTS_MAX`] elements.
#[must_use]
pub fn are_few(payload: &[u8]) -> bool {
    scan(payload).is_some_and(|elements| elements <= ELEMENTS_MAX)
}

/// The number of elements; `None` if the message is malformed or nested too deeply. Stops at the limit.
fn scan(payload: &[u8]) -> Option<usize> {
    let mut elements = 0;
    let mut open = vec![(payload, Shape::Metrics)];
    while let Some((rest, shape)) = open.last_mut() {
        if rest.is_empty() {
            open.pop();
            continue;
        }
        let key = varint(rest)?;
        match key & 7 {
            0 => drop(varint(rest)?),
            1 => drop(take(rest, 8)?),
            5 => drop(take(rest, 4)?),
            2 => {
                let len = usize::try_from(varint(rest)?).ok()?;
                let body = take(rest, len)?;
                let inner = match (*shape, key >> 3) {
                    (Shape::Metrics, 2) => Some(Shape::Metric),
                    (Shape::Metric, 9) => Some(Shape::Properties),
                    (Shape::Metric, 18) => Some(Shape::Metrics),
                    (Shape::Properties, 1 | 2) => {
                        elements += 1;
                        None
                    }
                    _ => None,
                };
                elements += usize::from(inner == Some(Shape::Metric));
                if elements > ELEMENTS_MAX {
                    return Some(elements);
                }
                if let Some(inner) = inner {
                    open.push((body, inner));
                    if open.len() > DEPTH_MAX {
                        return None;
                    }
                }
            }
            // The decoder skips groups. Counting them too can only overestimate.
            3 | 4 => {}
            _ => return None,
        }
    }
    Some(elements)
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(len)?;
    *rest = left;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for at in 0..10 {
        let (byte, left) = rest.split_first()?;
        *rest = left;
        value |= u64::from(byte & 0x7F) << (7 * at);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::payload::{Metric, Payload, Property, PropertySet, PropertyValue, Template, Value};
    use super::*;
    use prost::Message;

    #[test]
    fn metrics_members_and_properties_are_counted() {
        let property = PropertyValue { value: Some(Property::Int(192)), ..PropertyValue::default() };
        let properties = PropertySet { keys: vec!["Quality".to_owned()], values: vec![property] };
        let member =
            Metric { properties: Some(properties.clone()), ..Metric::new("m", 10, Value::Double(1.0)) };
        let template = Template { metrics: vec![member.clone(), member], is_definition: None };
        let metrics = vec![
            Metric { properties: Some(properties), ..Metric::new("a", 3, Value::Int(1)) },
            Metric::new("t", 19, Value::Template(template)),
            Metric::new("b", 12, Value::Text("\u{12}\0".to_owned())),
        ];
        let bytes = Payload { timestamp: Some(1), metrics, seq: Some(0) }.encode_to_vec();
        // Three metrics, two members, and three properties of a key and a value each.
        assert_eq!(scan(&bytes), Some(3 + 2 + 3 * 2));
        for len in 0..bytes.len() {
            assert!(scan(&bytes[..len]).is_none_or(|found| found <= 11), "{len}");
        }
    }

    #[test]
    fn a_message_of_empty_metrics_is_refused() {
        let empty = |count: usize| [0x12, 0].repeat(count);
        assert!(are_few(&empty(ELEMENTS_MAX)));
        assert!(!are_few(&empty(ELEMENTS_MAX + 1)));
        // The same within a template.
        let mut body = vec![0x92, 0x01];
        prost::encoding::encode_varint(2 * (ELEMENTS_MAX as u64 + 1), &mut body);
        body.extend(empty(ELEMENTS_MAX + 1));
        let mut payload = vec![0x12];
        prost::encoding::encode_varint(body.len() as u64, &mut payload);
        payload.extend(body);
        assert!(Payload::decode(&*payload).is_ok() && !are_few(&payload));
    }

    #[test]
    fn deep_and_broken_messages_are_refused() {
        let mut nested = Vec::new();
        for _ in 0..DEPTH_MAX {
            let mut outer = vec![0x12];
            let mut template = vec![0x92, 0x01];
            prost::encoding::encode_varint(nested.len() as u64, &mut template);
            template.append(&mut nested);
            prost::encoding::encode_varint(template.len() as u64, &mut outer);
            outer.append(&mut template);
            nested = outer;
        }
        assert!(!are_few(&nested) && Payload::decode(&*nested).is_err());
        for broken in [&[0x12, 200][..], &[0x12], &[0x0F], &[0x80; 11], &[0x09, 1]] {
            assert!(!are_few(broken), "{broken:x?}");
        }
    }
}
