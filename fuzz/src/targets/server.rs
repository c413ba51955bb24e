//! The server: raw bytes, and requests in any order.

use crate::input::Input;
use crate::server::Server;
use core::time::Duration;

/// Maximum clients per input.
const CLIENTS: usize = 4;

/// Raw bytes, and messages of raw bytes on correct channels.
pub fn bytes(data: &[u8]) {
    let mut input = Input::new(data);
    let mut server = Server::new();
    server.connect();
    while !input.is_empty() {
        let client = input.below(CLIENTS);
        match input.below(8) {
            0 if server.connected() < CLIENTS => {
                server.connect();
            }
            0 | 1 => server.disconnect(client),
            2 => server.pass(Duration::from_millis(u64::from(input.edgy_u32()))),
            3 => server.raw(client, input.piece()),
            _ => {
                let len = usize::from(input.u16() % 1024);
                server.message(client, input.bytes(len));
            }
        }
    }
    finish(server);
}

/// After all clients have left, no state remains.
pub(crate) fn finish(mut server: Server) {
    for client in 0..8 {
        server.disconnect(client);
    }
    // Longer than any session timeout.
    server.pass(Duration::from_secs(2 * 3600));
    assert_eq!((server.shard.connection_count(), server.shard.session_count()), (0, 0));
}
