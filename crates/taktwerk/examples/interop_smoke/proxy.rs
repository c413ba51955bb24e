//! A TCP proxy that can cut connections, refuse new ones for a while, and forward bytes in small pieces.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A proxy in front of a server. Its threads end with the process.
pub(crate) struct Proxy {
    pub(crate) url: String,
    state: Arc<State>,
}

struct State {
    server: String,
    /// Bytes per piece.
    piece: usize,
    refuses: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// Listens on a free port for clients of the server at `url`.
    pub(crate) fn start(url: &str, piece: usize) -> io::Result<Self> {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let server = rest.split('/').next().unwrap_or(rest).to_owned();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("opc.tcp://{}", listener.local_addr()?);
        let state = State { server, piece, refuses: AtomicBool::new(false), open: Mutex::default() };
        let state = Arc::new(state);
        let accepting = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if accepting.refuses.load(Ordering::Relaxed) {
                    continue;
                }
                // The client sees a closed connection if the server is down.
                let _ = accepting.join(client);
            }
        });
        Ok(Self { url, state })
    }

    /// Cuts all connections and accepts no new ones until [`Self::mend`].
    pub(crate) fn cut(&self) {
        self.state.refuses.store(true, Ordering::Relaxed);
        let mut open = self.state.open.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in open.drain(..) {
            // The connection may have ended already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn mend(&self) {
        self.state.refuses.store(false, Ordering::Relaxed);
    }
}

impl State {
    fn join(&self, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(&self.server)?;
        // Otherwise the kernel would join the pieces.
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.extend([client.try_clone()?, server.try_clone()?]);
        drop(open);
        for (mut from, mut to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
            let piece = self.piece;
            thread::spawn(move || {
                let mut buffer = vec![0; 64 * 1024];
                while let Ok(count @ 1..) = from.read(&mut buffer) {
                    if buffer[..count].chunks(piece).any(|bytes| to.write_all(bytes).is_err()) {
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Both);
                let _ = from.shutdown(Shutdown::Both);
            });
        }
        Ok(())
    }
}
