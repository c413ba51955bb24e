//! An emulated link for real IP packets: two namespaces, each with one end of a tunnel (TUN), and the emulator between
//! them. TCP, UDP and multicast use the kernel's own protocol stacks and see a real network; TCP retransmits lost
//! segments.

use super::driver::{Waiting, Waker, precise_timers};
use super::namespace::Namespace;
use crate::clock;
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use taktwerk_netem::emulator::{Counters, Emulator};
use taktwerk_netem::profile::Profile;
use tun_rs::{DeviceBuilder, SyncDevice};

/// Name of the interface at both ends.
pub(super) const INTERFACE: &str = "link0";
/// The client's address.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 198, 77, 1);
/// The server's address.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 198, 77, 2);
/// Prefix length of the network.
pub(super) const PREFIX: u8 = 30;

/// The largest IP packet.
const PACKET: usize = 65_536;
/// Packets taken from one end before the other end is served.
const BATCH: usize = 64;

/// A running link. It is removed when dropped.
#[derive(Debug)]
pub(super) struct Tun {
    pub(super) client: Namespace,
    pub(super) server: Namespace,
    stop: Arc<AtomicBool>,
    waker: Waker,
    counters: Arc<Mutex<[Counters; 2]>>,
    thread: Option<JoinHandle<()>>,
}

impl Tun {
    pub(super) fn start(profile: &Profile, seed: u64) -> io::Result<Self> {
        let (client, server) = (Namespace::new()?, Namespace::new()?);
        let near = end(&client, CLIENT, profile.mtu)?;
        let far = end(&server, SERVER, profile.mtu)?;
        let waiting = Waiting::new()?;
        let (waker, stop) = (waiting.waker(), Arc::new(AtomicBool::new(false)));
        let counters = Arc::new(Mutex::new([Counters::default(); 2]));
        waiting.add_readable(&near, 0)?;
        waiting.add_readable(&far, 1)?;
        let mut pump = Pump {
            up: Emulator::new(profile.up.clone(), seed),
            down: Emulator::new(profile.down.clone(), seed.wrapping_add(1)),
            near,
            far,
            buffer: vec![0; PACKET],
        };
        let (stopped, shared) = (Arc::clone(&stop), Arc::clone(&counters));
        let thread = thread::Builder::new().name(format!("{}tun", super::THREADS)).spawn(move || {
            precise_timers();
            let mut happened = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                pump.turn();
                *shared.lock().unwrap_or_else(PoisonError::into_inner) =
                    [pump.up.counters(), pump.down.counters()];
                if waiting.wait(pump.deadline(), &mut happened).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { client, server, stop, waker, counters, thread: Some(thread) })
    }

    pub(super) fn counters(&self) -> [Counters; 2] {
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Tun {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Creates one end in its namespace. The interface disappears when the device is closed.
fn end(namespace: &Namespace, address: Ipv4Addr, mtu: u16) -> io::Result<SyncDevice> {
    let device = namespace.inside(|| -> io::Result<SyncDevice> {
        let device =
            DeviceBuilder::new().name(INTERFACE).ipv4(address, PREFIX, None).mtu(mtu).build_sync()?;
        device.set_nonblocking(true)?;
        Ok(device)
    })??;
    prepare(namespace)?;
    Ok(device)
}

/// Enables loopback and a multicast route.
pub(super) fn prepare(namespace: &Namespace) -> io::Result<()> {
    namespace.tool("ip", &["link", "set", "lo", "up"])?;
    namespace.tool("ip", &["route", "add", "default", "dev", INTERFACE])?;
    Ok(())
}

struct Pump {
    near: SyncDevice,
    far: SyncDevice,
    up: Emulator<Vec<u8>>,
    down: Emulator<Vec<u8>>,
    buffer: Vec<u8>,
}

impl Pump {
    fn turn(&mut self) {
        take(&self.near, &mut self.up, &mut self.buffer);
        take(&self.far, &mut self.down, &mut self.buffer);
        give(&mut self.up, &self.far);
        give(&mut self.down, &self.near);
    }

    fn deadline(&self) -> Option<u64> {
        [self.up.next_arrival(), self.down.next_arrival()].into_iter().flatten().min()
    }
}

/// Takes the packets that the kernel sends.
fn take(from: &SyncDevice, way: &mut Emulator<Vec<u8>>, buffer: &mut [u8]) {
    for _ in 0..BATCH {
        let Ok(count) = from.recv(buffer) else { return };
        let packet = buffer.get(..count).unwrap_or_default();
        // The kernel sends IPv6 neighbour discovery on every interface; drop it.
        if packet.first().is_some_and(|byte| byte >> 4 == 4) {
            way.send(clock::monotonic(), count, packet.to_vec());
        }
    }
}

/// Passes arrived packets to the kernel.
fn give(way: &mut Emulator<Vec<u8>>, to: &SyncDevice) {
    while let Some(packet) = way.receive(clock::monotonic()) {
        // A full receiver drops packets, as network cards do.
        let _ = to.send(&packet);
    }
}
