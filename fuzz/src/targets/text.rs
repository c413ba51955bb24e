//! Text input of users and peers: node ids and index ranges.

use crate::input::Input;
use core::fmt::{Debug, Display};
use core::str::FromStr;
use taktwerk_client::event_query;
use taktwerk_schema::{ContentFilter, ElementOperand};
use taktwerk_types::{Decode, DecodeLimits, Encode, ExpandedNodeId, NodeId, NumericRange, Variant};

/// A parsed id is printed so that parsing gives the same id.
pub fn node_id(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    round_trip::<NodeId>(text);
    round_trip::<ExpandedNodeId>(text);
}

/// A condition on events is parsed, or the error position is within it. A parsed one is an encodable filter whose
/// elements refer only to later ones (Part 4 §7.7.1).
pub fn event_condition(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let filter = match event_query::parse(text) {
        Ok(filter) => filter,
        Err(error) => {
            let end = text.chars().count() + 1;
            assert!((1..=end).contains(&error.at), "{error}, which is not within {text:?}");
            return;
        }
    };
    for (at, element) in filter.elements.iter().enumerate() {
        for operand in &element.filter_operands {
            if let Ok(ElementOperand { index }) = operand.decode::<ElementOperand>() {
                let index = index as usize;
                assert!(at < index && index < filter.elements.len(), "{text:?}: {at} refers to {index}");
            }
        }
    }
    let mut bytes = Vec::new();
    filter.encode(&mut bytes);
    let again = ContentFilter::decode_from(&bytes, DecodeLimits::default());
    assert_eq!(again.ok(), Some(filter), "{text:?}");
}

fn round_trip<T: FromStr + Display + Debug + PartialEq>(text: &str) {
    let Ok(id) = text.parse::<T>() else { return };
    let printed = id.to_string();
    match printed.parse::<T>() {
        Ok(again) => assert_eq!(again, id, "{text:?} was printed as {printed:?}"),
        Err(_) => panic!("{text:?} was printed as {printed:?}, which cannot be parsed"),
    }
}

/// An index range, applied to a value from the input.
pub fn numeric_range(data: &[u8]) {
    let mut input = Input::new(data);
    let Ok(text) = core::str::from_utf8(input.piece()) else { return };
    let Ok(Some(range)) = NumericRange::parse(text) else { return };
    let mut values = [(); 2].map(|()| {
        let piece = input.piece();
        match Variant::decode_from(piece, DecodeLimits::DEFAULT) {
            Ok(value) => value,
            Err(_) => Variant::from(piece.iter().map(|byte| u32::from(*byte)).collect::<Vec<_>>()),
        }
    });
    for value in &values {
        let _ = range.read(value);
    }
    let [target, source] = &mut values;
    let before = target.clone();
    match range.write(target, source) {
        // A written range reads back as the same value.
        Ok(()) => {
            let written = range.read(target).expect("what was written can be read");
            assert_eq!(written.type_name().split('[').next(), before.type_name().split('[').next());
        }
        Err(_) => assert!(target.same_as(&before), "a refused write changes nothing"),
    }
}
