//! Texts that people and peers type: node ids and index ranges.

use crate::input::Input;
use core::fmt::{Debug, Display};
use core::str::FromStr;
use taktwerk_types::{Decode, DecodeLimits, ExpandedNodeId, NodeId, NumericRange, Variant};

/// What was parsed is printed so that it is parsed again to the same.
pub fn node_id(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    round_trip::<NodeId>(text);
    round_trip::<ExpandedNodeId>(text);
}

fn round_trip<T: FromStr + Display + Debug + PartialEq>(text: &str) {
    let Ok(id) = text.parse::<T>() else { return };
    let printed = id.to_string();
    match printed.parse::<T>() {
        Ok(again) => assert_eq!(again, id, "{text:?} was printed as {printed:?}"),
        Err(_) => panic!("{text:?} was printed as {printed:?}, which is not understood"),
    }
}

/// An index range, applied to a value that the input brings along.
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
        // What was written is what is read back.
        Ok(()) => {
            let written = range.read(target).expect("what was written can be read");
            assert_eq!(written.type_name().split('[').next(), before.type_name().split('[').next());
        }
        Err(_) => assert!(target.same_as(&before), "a refused write changes nothing"),
    }
}
