//! Tests the event loop with a core that echoes frames: a length byte and that many bytes.

use super::core::Core;
use super::{ServerOptions, Threads};
use crate::socket::{Listener, SocketOptions};
use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant as StdInstant;
use taktwerk_server::{Effect, JobResult, Now, Token};
use taktwerk_types::Instant;

/// Frames of this length make the core stop reading the connection for a while.
const PAUSE: u8 = 200;
/// Frames of this length make the core close the connection after the echo.
const CLOSE: u8 = 201;
/// Frames of this length send the connection to the next shard.
const MOVE: u8 = 202;
/// Frames of this length are answered with a quarter of a megabyte.
const FLOOD: u8 = 203;
/// After a frame of this length the core reads nothing until its echo is sent.
const FULL: u8 = 205;
/// Frames of this length make the core panic.
const PANIC: u8 = 206;
/// Frames of this length block the loop until the test releases it.
const HOLD: u8 = 204;

#[derive(Default)]
struct Echo {
    shard: usize,
    shards: usize,
    connections: BTreeMap<usize, Peer>,
    transmit: VecDeque<usize>,
    close: VecDeque<usize>,
    moves: VecDeque<(usize, usize)>,
    resume_at: Option<Instant>,
    /// Tells the test that the loop is blocked, and waits until it is released.
    hold: Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>,
    /// The core's answer to whether a connection may wait.
    may_wait: Arc<AtomicBool>,
    /// The connection and the number of used bytes of each read, in order.
    log: Arc<Mutex<Vec<(usize, usize)>>>,
}

#[derive(Default)]
struct Peer {
    out: Vec<u8>,
    is_paused: bool,
    is_full: bool,
    is_blocked: bool,
}

impl Core for Echo {
    type Id = usize;
    type Moved = (usize, Vec<u8>);
    type Message = ();

    fn index(id: usize) -> usize {
        id
    }
    fn opened(&mut self, _: SocketAddr, _: Now) -> usize {
        let id = (0..).find(|id| !self.connections.contains_key(id)).unwrap();
        self.connections.insert(id, Peer::default());
        id
    }
    fn received(&mut self, id: usize, bytes: &mut [u8], now: Now) -> usize {
        let mut used = 0;
        let Some(peer) = self.connections.get_mut(&id) else { return bytes.len() };
        while !peer.is_paused && !peer.is_full {
            let Some(len) = bytes.get(used).copied() else { break };
            let Some(frame) = bytes.get(used..used + 1 + usize::from(len)) else { break };
            peer.out.extend_from_slice(frame);
            used += frame.len();
            match len {
                PAUSE => {
                    peer.is_paused = true;
                    self.resume_at = Some(now.instant + Duration::from_millis(20));
                }
                CLOSE => {
                    peer.is_paused = true;
                    self.close.push_back(id);
                }
                MOVE => {
                    self.moves.push_back((id, (self.shard + 1) % self.shards));
                    break;
                }
                FLOOD => peer.out.extend(std::iter::repeat_n(7, 1 << 18)),
                FULL => peer.is_full = true,
                PANIC => panic!("a frame that makes the core panic"),
                HOLD => {
                    if let Some((held, go_on)) = &self.hold {
                        held.send(()).unwrap();
                        go_on.recv().unwrap();
                    }
                }
                _ => {}
            }
        }
        self.log.lock().unwrap().push((id, used));
        self.transmit.push_back(id);
        used
    }
    fn closed(&mut self, id: usize, _: Now) {
        assert!(self.connections.remove(&id).is_some());
    }
    fn timer(&mut self, now: Now) {
        if self.resume_at.is_some_and(|at| at <= now.instant) {
            self.resume_at = None;
            self.connections.values_mut().for_each(|peer| peer.is_paused = false);
        }
    }
    fn done(&mut self, _: Token, _: JobResult, _: Now) {}
    fn shut_down(&mut self, _: Now) {}
    fn poll_transmit(&mut self) -> Option<usize> {
        while let Some(id) = self.transmit.pop_front() {
            if self.connections.get(&id).is_some_and(|peer| !peer.out.is_empty() && !peer.is_blocked) {
                return Some(id);
            }
        }
        None
    }
    fn unsent(&self, id: usize) -> &[u8] {
        self.connections.get(&id).map_or(&[], |peer| &peer.out)
    }
    fn sent(&mut self, id: usize, count: usize) {
        let peer = self.connections.get_mut(&id).unwrap();
        peer.out.drain(..count);
        peer.is_full &= !peer.out.is_empty();
        if !peer.out.is_empty() && !peer.is_blocked {
            self.transmit.push_back(id);
        }
    }
    fn blocked(&mut self, id: usize, _: Now) {
        self.connections.get_mut(&id).unwrap().is_blocked = true;
    }
    fn writable(&mut self, id: usize) {
        let peer = self.connections.get_mut(&id).unwrap();
        assert!(peer.is_blocked);
        peer.is_blocked = false;
        self.transmit.push_back(id);
    }
    fn wants_read(&self, id: usize) -> bool {
        self.connections.get(&id).is_some_and(|peer| !peer.is_paused && !peer.is_full)
    }
    fn may_wait(&self, _: usize, _: Now) -> bool {
        self.may_wait.load(Ordering::Relaxed)
    }
    fn poll_close(&mut self) -> Option<usize> {
        let id = self.close.pop_front()?;
        assert!(self.connections.remove(&id).unwrap().out.is_empty());
        Some(id)
    }
    fn poll_effect(&mut self) -> Option<Effect> {
        None
    }
    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.resume_at.map(|at| (at, "resume"))
    }
    fn poll_message(&mut self) -> Option<(usize, ())> {
        None
    }
    fn message(&mut self, (): (), _: Now) {}
    fn poll_move(&mut self) -> Option<(usize, usize)> {
        self.moves.pop_front()
    }
    fn export(&mut self, id: usize, _: Now) -> Option<(usize, Vec<u8>)> {
        Some((self.shard, self.connections.remove(&id)?.out))
    }
    fn import(&mut self, (from, out): (usize, Vec<u8>), now: Now) -> usize {
        assert_ne!(from, self.shard);
        let id = self.opened("127.0.0.1:1".parse().unwrap(), now);
        self.connections.get_mut(&id).unwrap().out = out;
        self.transmit.push_back(id);
        id
    }
}

fn start(shards: usize, options: ServerOptions) -> (Threads<Echo>, SocketAddr) {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), 1024).unwrap();
    let cores = (0..shards).map(|shard| Echo { shard, shards, ..Echo::default() }).collect();
    let threads = Threads::start(cores, vec![listener], options, |_, _| {}).unwrap();
    let address = threads.addresses()[0];
    (threads, address)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

fn frame(len: u8) -> Vec<u8> {
    let mut bytes = vec![len];
    bytes.extend(std::iter::repeat_n(len ^ 0x55, usize::from(len)));
    bytes
}

fn expect(stream: &mut TcpStream, bytes: &[u8]) {
    let mut got = vec![0; bytes.len()];
    stream.read_exact(&mut got).unwrap();
    assert!(got == bytes, "other bytes came back");
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = StdInstant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(10), "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn fragmented_frames_are_reassembled() {
    let (threads, address) = start(2, ServerOptions::default());
    let mut streams: Vec<TcpStream> = (0..8).map(|_| connect(address)).collect();
    wait_until("all are accepted", || threads.connections() == 8);
    let message: Vec<u8> = [frame(0), frame(1), frame(100), frame(7)].concat();
    for cut in 0..message.len() {
        let at = cut % streams.len();
        let stream = &mut streams[at];
        stream.write_all(&message[..cut]).unwrap();
        if cut % 10 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        stream.write_all(&message[cut..]).unwrap();
        expect(stream, &message);
    }
    drop(streams);
    wait_until("all are gone", || threads.connections() == 0);
}

#[test]
fn a_shard_that_panics_ends_the_whole_server() {
    let (threads, address) = start(2, ServerOptions::default());
    let mut streams: Vec<TcpStream> = (0..4).map(|_| connect(address)).collect();
    wait_until("all are accepted", || threads.connections() == 4);
    assert!(!threads.has_ended());
    streams[0].write_all(&frame(PANIC)).unwrap();
    // Connections of both shards end.
    for stream in &mut streams {
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    }
    wait_until("it has ended", || threads.has_ended());
}

#[test]
fn a_paused_connection_resumes_with_buffered_bytes() {
    let (_threads, address) = start(1, ServerOptions::default());
    let mut stream = connect(address);
    let message = [frame(3), frame(PAUSE), frame(4), frame(5)].concat();
    let start = StdInstant::now();
    stream.write_all(&message).unwrap();
    expect(&mut stream, &message);
    assert!(start.elapsed() >= Duration::from_millis(18), "{:?}", start.elapsed());
    stream.write_all(&frame(9)).unwrap();
    expect(&mut stream, &frame(9));
    // More than one read takes, so the pause happens while there is more to read.
    let message = [frame(PAUSE), core::iter::repeat_n(frame(150), 2000).flatten().collect()].concat();
    let mut writer = stream.try_clone().unwrap();
    let sent = message.clone();
    let writing = std::thread::spawn(move || writer.write_all(&sent).unwrap());
    expect(&mut stream, &message);
    writing.join().unwrap();
}

/// Regression: when the core stops reading because it has too much unsent output, buffered requests must be processed
/// as soon as the output is sent, without further input.
#[test]
fn buffered_requests_continue_after_output_is_sent() {
    let (_threads, address) = start(1, ServerOptions::default());
    let mut stream = connect(address);
    let message = [frame(FULL), frame(4), frame(FULL), frame(FULL), frame(5)].concat();
    for _ in 0..20 {
        stream.write_all(&message).unwrap();
        expect(&mut stream, &message);
    }
    let mut writer = stream.try_clone().unwrap();
    let many: Vec<u8> = core::iter::repeat_n(message, 2000).flatten().collect();
    let sent = many.clone();
    let writing = std::thread::spawn(move || writer.write_all(&sent).unwrap());
    expect(&mut stream, &many);
    writing.join().unwrap();
}

#[test]
fn last_bytes_arrive_while_the_peer_is_still_sending() {
    let (threads, address) = start(1, ServerOptions::default());
    let mut stream = connect(address);
    let mut message = frame(CLOSE);
    message.extend_from_slice(&[255; 100]);
    stream.write_all(&message).unwrap();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    assert_eq!(got, frame(CLOSE));
    wait_until("it is gone", || threads.connections() == 0);
}

#[test]
fn connections_are_spread_and_can_move() {
    let (threads, address) = start(3, ServerOptions::default());
    let mut streams: Vec<TcpStream> = (0..9).map(|_| connect(address)).collect();
    wait_until("all are accepted", || threads.connections() == 9);
    assert!(threads.mailboxes.iter().all(|mailbox| mailbox.connections() == 3));
    // Bytes directly behind the frame that moves the connection must not be lost.
    let message = [frame(1), frame(MOVE), frame(2)].concat();
    for _ in 0..20 {
        streams[0].write_all(&message).unwrap();
        expect(&mut streams[0], &message);
    }
    assert_eq!(threads.connections(), 9);
}

#[test]
fn a_client_that_stops_reading_does_not_delay_others() {
    let socket = SocketOptions { send_buffer: Some(16 << 10), ..SocketOptions::default() };
    let (_threads, address) = start(1, ServerOptions { socket, ..ServerOptions::default() });
    let mut slow = connect(address);
    let mut quick = connect(address);
    for _ in 0..16 {
        slow.write_all(&frame(FLOOD)).unwrap();
        quick.write_all(&frame(10)).unwrap();
        expect(&mut quick, &frame(10));
    }
    let mut all = vec![0; (1 << 18) + frame(FLOOD).len()];
    for _ in 0..16 {
        slow.read_exact(&mut all).unwrap();
        assert!(all.starts_with(&frame(FLOOD)) && all.ends_with(&[7; 100]));
    }
    slow.write_all(&frame(8)).unwrap();
    expect(&mut slow, &frame(8));
}

/// Everything sent fits into the kernel's buffer, so only the kernel can notice the stalled peer (TCP_USER_TIMEOUT).
#[test]
fn a_client_that_never_reads_is_disconnected() {
    let socket = SocketOptions { user_timeout: Some(Duration::from_millis(300)), ..SocketOptions::default() };
    let (threads, address) = start(1, ServerOptions { socket, ..ServerOptions::default() });
    let stuck = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None);
    let stuck = stuck.unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&stuck, 4096).unwrap();
    rustix::net::connect(&stuck, &address).unwrap();
    let mut stuck = TcpStream::from(stuck);
    let mut quick = connect(address);
    stuck.write_all(&frame(FLOOD)).unwrap();
    wait_until("both are there", || threads.connections() == 2);
    wait_until("one is closed", || threads.connections() == 1);
    quick.write_all(&frame(10)).unwrap();
    expect(&mut quick, &frame(10));
    drop(stuck);
}

#[test]
fn a_storm_of_connections_is_served() {
    let (threads, address) = start(2, ServerOptions::default());
    let mut streams: Vec<TcpStream> = (0..300).map(|_| connect(address)).collect();
    for stream in &mut streams {
        stream.write_all(&frame(20)).unwrap();
    }
    for stream in &mut streams {
        expect(stream, &frame(20));
    }
    drop(streams);
    wait_until("all are gone", || threads.connections() == 0);
    let mut next = connect(address);
    next.write_all(&frame(1)).unwrap();
    expect(&mut next, &frame(1));
}

/// While the loop is blocked, many connections send all that the kernel accepts; then one connection sends a single
/// frame. It must wait only for each connection's share, not for everything they have sent.
#[test]
fn flooding_clients_share_a_turn() {
    const GREEDY: usize = 40;
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), 1024).unwrap();
    let (hold, held) = mpsc::channel();
    let (go_on, gate) = mpsc::channel();
    let core = Echo { shards: 1, hold: Some((hold, gate)), ..Echo::default() };
    let log = Arc::clone(&core.log);
    let mut threads =
        Threads::start(vec![core], vec![listener], ServerOptions::default(), |_, _| {}).unwrap();
    let address = threads.addresses()[0];
    let mut modest = connect(address);
    modest.write_all(&frame(1)).unwrap();
    expect(&mut modest, &frame(1));
    let greedy: Vec<TcpStream> = (0..GREEDY).map(|_| connect(address)).collect();
    wait_until("all are there", || threads.connections() == GREEDY + 1);
    let [(first, _)] = log.lock().unwrap()[..] else { panic!("only one has said something") };
    modest.write_all(&frame(HOLD)).unwrap();
    held.recv().unwrap();
    let many: Vec<u8> = core::iter::repeat_n(frame(99), 10_000).flatten().collect();
    for stream in &greedy {
        stream.set_nonblocking(true).unwrap();
        let sent = (&*stream).write(&many).unwrap();
        assert!(sent >= 4 * super::turn::share(GREEDY), "the kernel takes only {sent} bytes");
    }
    modest.write_all(&frame(2)).unwrap();
    log.lock().unwrap().clear();
    go_on.send(()).unwrap();
    expect(&mut modest, &frame(HOLD));
    expect(&mut modest, &frame(2));
    let log = log.lock().unwrap().clone();
    let turn = log.iter().position(|(id, used)| *id == first && *used == 3).unwrap();
    let before = |id: usize| log[..turn].iter().filter(|(other, _)| *other == id).map(|(_, used)| used).sum();
    for id in (0..=GREEDY).filter(|id| *id != first) {
        let used: usize = before(id);
        // Two turns, if the first one began before all had sent.
        assert!(used <= 2 * super::turn::share(GREEDY), "{used} bytes of connection {id} came first");
    }
    drop(greedy);
    threads.stop(Duration::ZERO);
}

#[test]
fn a_share_holds_at_least_one_request() {
    assert_eq!(super::turn::share(0), super::turn::share(1));
    assert!((1..300).all(|count| super::turn::share(count) >= super::turn::share(count + 1)));
    assert_eq!(super::turn::share(usize::MAX), 8 << 10);
}

#[test]
fn busy_polling_answers_and_goes_to_sleep() {
    let options = ServerOptions { busy_poll: Duration::from_millis(2), ..ServerOptions::default() };
    let (_threads, address) = start(1, options);
    let mut stream = connect(address);
    for _ in 0..3 {
        for _ in 0..50 {
            stream.write_all(&frame(30)).unwrap();
            expect(&mut stream, &frame(30));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// All clients are answered while they switch between coalesced and not coalesced, move to another shard, are closed by
/// the server, or disconnect.
#[test]
fn coalesced_connections_are_answered() {
    const COUNT: usize = 40;
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), 1024).unwrap();
    let may_wait = Arc::new(AtomicBool::new(true));
    let core = |shard| Echo { shard, shards: 2, may_wait: Arc::clone(&may_wait), ..Echo::default() };
    let mut threads =
        Threads::start(vec![core(0), core(1)], vec![listener], ServerOptions::default(), |_, _| {}).unwrap();
    let address = threads.addresses()[0];
    let mut streams: Vec<TcpStream> = (0..COUNT).map(|_| connect(address)).collect();
    let message = [frame(3), frame(MOVE), frame(4)].concat();
    for round in 0..30 {
        may_wait.store(round % 10 < 7, Ordering::Relaxed);
        for stream in &mut streams {
            stream.write_all(if round % 6 == 5 { &message } else { &message[..4] }).unwrap();
        }
        for stream in &mut streams {
            expect(stream, if round % 6 == 5 { &message } else { &message[..4] });
        }
    }
    may_wait.store(true, Ordering::Relaxed);
    for _ in 0..5 {
        // One at a time.
        for stream in streams.iter_mut().take(12) {
            stream.write_all(&frame(1)).unwrap();
            expect(stream, &frame(1));
        }
    }
    drop(streams.split_off(COUNT / 2));
    wait_until("half of them are gone", || threads.connections() == COUNT / 2);
    for stream in &mut streams {
        stream.write_all(&frame(CLOSE)).unwrap();
        expect(stream, &frame(CLOSE));
    }
    wait_until("all are gone", || threads.connections() == 0);
    threads.stop(Duration::ZERO);
}

#[test]
fn stopping_closes_the_listener_and_what_is_left() {
    let (mut threads, address) = start(2, ServerOptions::default());
    let mut stream = connect(address);
    stream.write_all(&frame(2)).unwrap();
    expect(&mut stream, &frame(2));
    let start = StdInstant::now();
    threads.stop(Duration::from_millis(50));
    assert!(start.elapsed() >= Duration::from_millis(45) && start.elapsed() < Duration::from_secs(5));
    assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
    assert!(TcpStream::connect(address).is_err());
}
