//! The headers of Actions.

use taktwerk_pubsub::uadp::action::{ActionBody, ActionHeader};
use taktwerk_types::Decoder;

/// What is read is written and read again.
pub fn run(data: &[u8]) {
    let mut decoder = Decoder::new(data, Default::default());
    let Ok(header) = ActionHeader::decode(&mut decoder) else { return };
    let mut written = Vec::new();
    header.encode(&mut written);
    let body = ActionBody::decode(&mut decoder);
    if let Ok(body) = &body {
        body.encode(&mut written);
    }
    let mut again = Decoder::new(&written, Default::default());
    let mut twice = Vec::new();
    ActionHeader::decode(&mut again).expect("what was written can be read").encode(&mut twice);
    if body.is_ok() {
        let again = ActionBody::decode(&mut again);
        assert_eq!(again, body);
        body.expect("it is").encode(&mut twice);
    }
    assert_eq!(written, twice);
    assert_eq!(again.remaining(), 0);
}
