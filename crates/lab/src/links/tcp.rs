//! Compares the TCP model of [`taktwerk_netem`] with this kernel's TCP over the same emulated link with the same
//! losses.

use super::link::{Link, Method};
use crate::clock;
use rustix::net::sockopt;
use serde::Serialize;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use taktwerk_netem::emulator::loss::Loss;
use taktwerk_netem::profile::Profile;
use taktwerk_netem::tcp::{Config, Exchange, exchange};

/// Timeout of a transfer.
const PATIENCE: Duration = Duration::from_secs(120);
/// Socket buffers of the model, as large as the kernel's buffers grow.
const BUFFERS: usize = 4 << 20;

/// Results of the model and the kernel.
#[derive(Debug, Clone, Serialize)]
pub struct Compared {
    /// Bytes of a request.
    pub request: usize,
    /// Bytes of a response.
    pub response: usize,
    /// Requests in each repetition.
    pub count: usize,
    /// Duration of each repetition with the kernel, in seconds.
    pub kernel_s: Vec<f64>,
    /// Duration of each repetition with the model, in seconds.
    pub model_s: Vec<f64>,
    /// Packets that the kernel sent, both directions, all repetitions.
    pub kernel_packets: u64,
    /// The same for the model.
    pub model_packets: u64,
}

impl Compared {
    /// Mean duration of a repetition with the kernel, in seconds.
    #[must_use]
    pub fn kernel_mean(&self) -> f64 {
        self.kernel_s.iter().sum::<f64>() / self.kernel_s.len().max(1) as f64
    }

    /// Mean duration of a repetition with the model, in seconds.
    #[must_use]
    pub fn model_mean(&self) -> f64 {
        self.model_s.iter().sum::<f64>() / self.model_s.len().max(1) as f64
    }

    /// Error of the model relative to the kernel's time.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.model_mean() / self.kernel_mean() - 1.0
    }
}

/// Additional delay of packets on a link created here, because the emulator is an ordinary program.
///
/// # Errors
/// As [`compare`].
pub fn lateness(profile: &Profile, seed: u64) -> io::Result<Duration> {
    let mut clean = profile.clone();
    (clean.up.loss, clean.down.loss) = (Loss::None, Loss::None);
    let small = Exchange { request: 1, response: 1, count: 50 };
    let compared = compare(&clean, &small, 1, seed, Duration::ZERO)?;
    let late = (compared.kernel_mean() - compared.model_mean()) / (2.0 * small.count as f64);
    Ok(Duration::try_from_secs_f64(late).unwrap_or_default())
}

/// Sends the same data over the same link with the kernel and with the model. Each repetition has a new link and seed;
/// both use the same losses. The model delays packets additionally by `late`: see [`lateness`].
///
/// # Errors
/// The link cannot be created (it needs root), or a transfer fails.
pub fn compare(
    profile: &Profile,
    what: &Exchange,
    repetitions: u32,
    seed: u64,
    late: Duration,
) -> io::Result<Compared> {
    let mut compared = Compared {
        request: what.request,
        response: what.response,
        count: what.count,
        kernel_s: Vec::new(),
        model_s: Vec::new(),
        kernel_packets: 0,
        model_packets: 0,
    };
    let config = Config { send_buffer: BUFFERS, receive_buffer: BUFFERS, ..Config::linux(profile.mtu) };
    let mut delayed = profile.clone();
    delayed.up.delay.base += late;
    delayed.down.delay.base += late;
    for repetition in 0..u64::from(repetitions) {
        let seed = seed.wrapping_add(repetition.wrapping_mul(1_000_003));
        let link = Link::by(Method::Tun, profile, seed).map_err(io::Error::other)?;
        compared.kernel_s.push(by_kernel(&link, what)?);
        compared.kernel_packets += link.counters().iter().map(|way| way.packets).sum::<u64>();
        let model = exchange(&delayed, &config, what, seed).map_err(io::Error::other)?;
        compared.model_s.push(model.took as f64 / 1e9);
        compared.model_packets += model.lines.iter().map(|way| way.packets).sum::<u64>();
    }
    Ok(compared)
}

/// Seconds from the first byte of the first request to the last of the last response.
fn by_kernel(link: &Link, what: &Exchange) -> io::Result<f64> {
    let missing = || io::Error::other("the link has no networks of its own");
    let (near, far) = (link.client_place().ok_or_else(missing)?, link.server_place().ok_or_else(missing)?);
    let listener = far.inside(|| TcpListener::bind((link.server_address(), 0)))??;
    // The model implements CUBIC, the default of most systems but not all.
    sockopt::set_tcp_congestion(&listener, "cubic")?;
    let address = listener.local_addr()?;
    let what = *what;
    let server = thread::spawn(move || serve(&listener, &what));
    let took = near.inside(|| ask(address, &what))?;
    server.join().map_err(|_| io::Error::other("the thread panicked"))??;
    took
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

fn serve(listener: &TcpListener, what: &Exchange) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    prepare(&stream)?;
    let (mut request, response) = (vec![0; what.request], vec![0; what.response]);
    for _ in 0..what.count {
        stream.read_exact(&mut request)?;
        stream.write_all(&response)?;
    }
    Ok(())
}

fn ask(address: SocketAddr, what: &Exchange) -> io::Result<f64> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    sockopt::set_tcp_congestion(&stream, "cubic")?;
    prepare(&stream)?;
    let (request, mut response) = (vec![0; what.request], vec![0; what.response]);
    let began = clock::monotonic();
    for _ in 0..what.count {
        stream.write_all(&request)?;
        stream.read_exact(&mut response)?;
    }
    Ok((clock::monotonic() - began) as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_close_if_links_can_be_created() {
        let profile = "rate=10mbit,delay=10ms".parse().unwrap();
        let what = Exchange { request: 100, response: 1000, count: 10 };
        match compare(&profile, &what, 1, 1, Duration::ZERO) {
            // The machine may be busy, so the test only detects a wrong model.
            Ok(compared) => assert!(compared.error().abs() < 0.5, "{compared:?}"),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
