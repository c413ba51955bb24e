//! What the system takes for a message over loopback: the part of a turn that is not the core's.

use super::cores::Extent;
use super::fit::{distribution, quantile};
use crate::pin::CpuList;
use rustix::event::epoll;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use taktwerk_model::host::Cost;

/// Bytes of a message: a Publish response with a few values.
const MESSAGE: usize = 256;

/// How long the answering thread sleeps between two messages where sleeping processors are measured: longer, and nothing gets
/// slower.
const PAUSE: Duration = Duration::from_millis(4);

/// Nanoseconds of processor time, and of waiting.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Drivers {
    pub(super) wake: f64,
    pub(super) turn: f64,
    pub(super) receive: f64,
    pub(super) send: f64,
    /// By how much a turn takes longer after the processor has slept: its caches are cold, and it has to be brought back.
    pub(super) cold: f64,
    /// From waking a thread until it runs.
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

/// Nanoseconds that this thread has had a processor, as the kernel counts them.
fn processor_time() -> io::Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split_whitespace().next().and_then(|word| word.parse().ok());
    first.ok_or_else(|| io::Error::other("/proc/thread-self/schedstat has no number"))
}

/// Measures it, with a processor for each end as in an installation where server and clients do not share one: a message wakes
/// the other processor.
pub(super) fn measure(extent: Extent) -> io::Result<Drivers> {
    let cpus = CpuList::allowed().cpus().to_vec();
    // A thread of its own, because it stays where it is put.
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
    let (rounds, paced) = if extent == Extent::Full { (20_000, 600) } else { (200, 5) };
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
    // What a round trip takes but for waiting: one end receives, and both send and are woken.
    let work = send + turn + receive;
    let trip = quantile(awake.trips.clone(), 0.5).unwrap_or(0.0);
    let latency = |trip: f64| ((trip - 2.0 * work) / 2.0).max(0.0);
    let typical = latency(trip);
    let cold = (asleep.per_turn - awake.per_turn).max(0.0);
    // Here the first end has slept as well, but nothing has to wake it: its own clock does. The answer finds it awake or nearly
    // so.
    let first_send = quantile(asleep.sends, 0.5).unwrap_or(send) - quantile(awake.sends, 0.5).unwrap_or(send);
    let asleep = asleep.trips.into_iter();
    let asleep = asleep.map(|trip| (trip - 2.0 * work - typical - cold - first_send.max(0.0)).max(0.0));
    Ok(Drivers {
        wake: (awake.per_turn - work).max(0.0),
        turn,
        receive,
        send,
        cold,
        latency: distribution(awake.trips.into_iter().map(latency).collect()),
        latency_asleep: distribution(asleep.collect()),
    })
}

/// What came of messages that are answered.
struct Echo {
    /// Processor time of a turn of the answering thread.
    per_turn: f64,
    sends: Vec<f64>,
    trips: Vec<f64>,
}

/// Messages to a thread on another processor that sleeps in between and answers each.
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
