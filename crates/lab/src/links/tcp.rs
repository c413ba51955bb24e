//! The TCP model of [`taktwerk_netem`] beside the TCP of this kernel, over the same emulated link with the same losses.

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

/// A transfer that hangs ends after this time.
const PATIENCE: Duration = Duration::from_secs(120);
/// Socket buffers of the model: as large as the kernel's own become.
const BUFFERS: usize = 4 << 20;

/// What the model and the kernel took.
#[derive(Debug, Clone, Serialize)]
pub struct Compared {
    /// Bytes of a request and a response, and how many of both.
    pub request: usize,
    /// Bytes of a response.
    pub response: usize,
    /// Requests in each repetition.
    pub count: usize,
    /// Seconds of each repetition, by the kernel.
    pub kernel_s: Vec<f64>,
    /// Seconds of each repetition, by the model.
    pub model_s: Vec<f64>,
    /// Packets that the kernel sent, both ways, in all repetitions.
    pub kernel_packets: u64,
    /// Packets that the model sent.
    pub model_packets: u64,
}

impl Compared {
    /// Mean seconds of a repetition by the kernel.
    #[must_use]
    pub fn kernel_mean(&self) -> f64 {
        self.kernel_s.iter().sum::<f64>() / self.kernel_s.len().max(1) as f64
    }

    /// Mean seconds of a repetition by the model.
    #[must_use]
    pub fn model_mean(&self) -> f64 {
        self.model_s.iter().sum::<f64>() / self.model_s.len().max(1) as f64
    }

    /// By how much the model is off, as a share of the kernel's time.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.model_mean() / self.kernel_mean() - 1.0
    }
}

/// By how much packets of a link that is made here are later than asked for: the emulator is a program among others.
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

/// Sends the same over the same link by the kernel and by the model. Every repetition has a link of its own, with losses by
/// its own seed: the same for both. The model's packets are `late` by so much more than asked for: see [`lateness`].
///
/// # Errors
/// The link cannot be made (it takes root), or a transfer fails.
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
    // What the model is: the default of most systems, but not of all.
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
    fn the_model_is_close_where_links_can_be_made() {
        let profile = "rate=10mbit,delay=10ms".parse().unwrap();
        let what = Exchange { request: 100, response: 1000, count: 10 };
        match compare(&profile, &what, 1, 1, Duration::ZERO) {
            // The machine may be busy: this looks for a wrong model, not for its error.
            Ok(compared) => assert!(compared.error().abs() < 0.5, "{compared:?}"),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
