//! Measures the operating system's cost of a message over loopback: the part of a turn outside of the core.

use super::cores::{Extent, LONG_PAUSE, PAUSE};
use super::fit::{distribution, quantile};
use crate::pin::CpuList;
use rustix::event::epoll;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use taktwerk_model::host::Cost;

/// Size of a message in bytes: a Publish response with a few values.
const MESSAGE: usize = 256;

/// Computation of the sender between two messages, long enough for the receiver to fall asleep.
const BREATH: Duration = Duration::from_micros(50);

/// Processor time and waiting time, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Drivers {
    pub(super) wake: f64,
    pub(super) turn: f64,
    pub(super) receive: f64,
    pub(super) send: f64,
    /// Additional time of a turn after the processor has slept: cold caches and wake-up.
    pub(super) cold: f64,
    /// The same after a long sleep.
    pub(super) cold_deep: f64,
    /// Time from waking a thread until it runs.
    pub(super) latency: Cost,
    /// The same after the processor has slept.
    pub(super) latency_asleep: Cost,
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

/// Processor time of this thread in nanoseconds, from the kernel.
fn processor_time() -> io::Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split_whitespace().next().and_then(|word| word.parse().ok());
    first.ok_or_else(|| io::Error::other("/proc/thread-self/schedstat has no number"))
}

/// Measures with one processor per end, as in an installation in which server and clients do not share a processor, so
/// that a message wakes the other processor.
pub(super) fn measure(extent: Extent) -> io::Result<Drivers> {
    let cpus = CpuList::allowed().cpus().to_vec();
    // A separate thread, because it stays pinned.
    let thread = std::thread::spawn(move || {
        let other = cpus.get(1).or(cpus.first()).copied();
        place(cpus.first().copied())?;
        measure_from_here(extent, other)
    });
    thread.join().map_err(|_| io::Error::other("the measuring thread panicked"))?
}

fn place(cpu: Option<usize>) -> io::Result<()> {
    cpu.map_or(Ok(()), |cpu| CpuList::single(cpu).pin().map_err(io::Error::other))
}

fn measure_from_here(extent: Extent, other: Option<usize>) -> io::Result<Drivers> {
    let (rounds, paced, long) = if extent == Extent::Full { (20_000, 600, 40) } else { (200, 5, 1) };
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
    let awake = echo(rounds, Duration::ZERO, other)?;
    let asleep = echo(paced, PAUSE, other)?;
    let deep = echo(long, LONG_PAUSE, other)?;
    // The receiver's part of a turn and the sender's part. Waking a processor is work of the sender.
    let listening = listen(rounds / 4, other)?;
    let wake = (listening - turn - receive).max(0.0);
    let send = (awake.per_turn - listening).max(send);
    // A round trip is one turn of each end; the rest is waiting.
    let trip = quantile(awake.trips.clone(), 0.5).unwrap_or(0.0);
    let latency = |trip: f64| (trip / 2.0 - awake.per_turn).max(0.0);
    let typical = latency(trip);
    let cold = (asleep.per_turn - awake.per_turn).max(0.0);
    let cold_deep = (deep.per_turn - awake.per_turn).max(cold);
    // Here the first end has slept as well, but its own timer wakes it. When the answer arrives, it is awake or nearly
    // so.
    let first_send = quantile(asleep.sends, 0.5).unwrap_or(send) - quantile(awake.sends, 0.5).unwrap_or(send);
    let turns = asleep.per_turn + awake.per_turn + first_send.max(0.0);
    let trips = asleep.trips.into_iter();
    let latencies_asleep = trips.map(|trip| (trip - turns - typical).max(0.0)).collect();
    Ok(Drivers {
        wake,
        turn,
        receive,
        send,
        cold,
        cold_deep,
        latency: distribution(awake.trips.iter().copied().map(latency).collect()),
        latency_asleep: distribution(latencies_asleep),
    })
}

/// Processor time of a thread on another processor per received message; it does not answer and falls asleep again.
fn listen(rounds: usize, cpu: Option<usize>) -> io::Result<f64> {
    let (mut from, mut to) = pair()?;
    let thread = std::thread::spawn(move || -> io::Result<f64> {
        place(cpu)?;
        let events = poller(&to)?;
        let mut bytes = [0; MESSAGE];
        let before = processor_time()?;
        let mut turns = 0u32;
        let mut left = rounds;
        while left > 0 {
            wait(&events)?;
            let count = to.read(&mut bytes)?;
            if count == 0 {
                break;
            }
            left = left.saturating_sub(count.div_ceil(MESSAGE));
            turns += 1;
        }
        Ok((processor_time()? - before) / f64::from(turns.max(1)))
    });
    let bytes = [0; MESSAGE];
    for _ in 0..rounds {
        from.write_all(&bytes)?;
        let began = Instant::now();
        while began.elapsed() < BREATH {
            std::hint::spin_loop();
        }
    }
    thread.join().map_err(|_| io::Error::other("the measuring thread panicked"))?
}

/// Results for messages that are answered.
struct Echo {
    /// Processor time of the answering thread per turn.
    per_turn: f64,
    sends: Vec<f64>,
    trips: Vec<f64>,
}

/// Sends messages to a thread on another processor that sleeps in between and answers each one.
fn echo(rounds: usize, pause: Duration, cpu: Option<usize>) -> io::Result<Echo> {
    let (mut asks, mut answers) = pair()?;
    let thread = std::thread::spawn(move || -> io::Result<f64> {
        place(cpu)?;
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
    let (mut sends, mut trips) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    for _ in 0..rounds {
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
        let began = Instant::now();
        asks.write_all(&bytes)?;
        sends.push(began.elapsed().as_secs_f64() * 1e9);
        asks.read_exact(&mut bytes)?;
        trips.push(began.elapsed().as_secs_f64() * 1e9);
    }
    let per_turn = thread.join().map_err(|_| io::Error::other("the measuring thread panicked"))??;
    Ok(Echo { per_turn, sends, trips })
}
