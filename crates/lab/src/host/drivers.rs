//! What the system takes for a message over loopback: the part of a turn that is not the core's.

use super::cores::Extent;
use super::fit::quantile;
use rustix::event::epoll;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Instant;
use taktwerk_model::host::Cost;

/// Bytes of a message: a Publish response with a few values.
const MESSAGE: usize = 256;

/// Nanoseconds of processor time, and of waiting.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Drivers {
    pub(super) wake: f64,
    pub(super) turn: f64,
    pub(super) receive: f64,
    pub(super) send: f64,
    /// From waking a thread until it runs.
    pub(super) latency: Cost,
}

fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    let (other, _) = listener.accept()?;
    for stream in [&one, &other] {
        stream.set_nodelay(true)?;
    }
    Ok((one, other))
}

fn poller(stream: &TcpStream) -> io::Result<OwnedFd> {
    let poller = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&poller, stream, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    Ok(poller)
}

fn wait(poller: &OwnedFd) -> io::Result<()> {
    let mut events = Vec::with_capacity(8);
    epoll::wait(poller, rustix::buffer::spare_capacity(&mut events), None)?;
    Ok(())
}

/// Nanoseconds that this thread has had a processor, as the kernel counts them.
fn processor_time() -> io::Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split_whitespace().next().and_then(|word| word.parse().ok());
    first.ok_or_else(|| io::Error::other("/proc/thread-self/schedstat has no number"))
}

/// Measures it.
pub(super) fn measure(extent: Extent) -> io::Result<Drivers> {
    let rounds = if extent == Extent::Full { 20_000 } else { 200 };
    let (mut sends, mut turns, mut receives) = (Vec::new(), Vec::new(), Vec::new());
    let (mut from, mut to) = pair()?;
    let events = poller(&to)?;
    let mut bytes = [0; MESSAGE];
    for _ in 0..rounds {
        let began = Instant::now();
        from.write_all(&bytes)?;
        let sent = Instant::now();
        wait(&events)?;
        let woken = Instant::now();
        to.read_exact(&mut bytes)?;
        let received = Instant::now();
        let nanos = |from: Instant, to: Instant| to.duration_since(from).as_secs_f64() * 1e9;
        sends.push(nanos(began, sent));
        turns.push(nanos(sent, woken));
        receives.push(nanos(woken, received));
    }
    let median = |values: Vec<f64>| quantile(values, 0.5).unwrap_or(0.0);
    let (send, turn, receive) = (median(sends), median(turns), median(receives));
    let (per_turn, mut trips) = echo(rounds)?;
    let work = send + turn + receive;
    // A round trip is two wakes and the work of both ends.
    trips.iter_mut().for_each(|trip| *trip = ((*trip - 2.0 * work) / 2.0).max(0.0));
    let latency = crate::host::fit::distribution(trips);
    Ok(Drivers { wake: (per_turn - work).max(0.0), turn, receive, send, latency })
}

/// Messages to a thread that sleeps in between and answers each: processor time of a turn, and all round trips.
fn echo(rounds: usize) -> io::Result<(f64, Vec<f64>)> {
    let (mut asks, mut answers) = pair()?;
    let thread = std::thread::spawn(move || -> io::Result<f64> {
        let events = poller(&answers)?;
        let mut bytes = [0; MESSAGE];
        let before = processor_time()?;
        for _ in 0..rounds {
            wait(&events)?;
            answers.read_exact(&mut bytes)?;
            answers.write_all(&bytes)?;
        }
        Ok((processor_time()? - before) / rounds as f64)
    });
    let mut bytes = [0; MESSAGE];
    let mut trips = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let began = Instant::now();
        asks.write_all(&bytes)?;
        asks.read_exact(&mut bytes)?;
        trips.push(began.elapsed().as_secs_f64() * 1e9);
    }
    let per_turn = thread.join().map_err(|_| io::Error::other("the measuring thread panicked"))??;
    Ok((per_turn, trips))
}
