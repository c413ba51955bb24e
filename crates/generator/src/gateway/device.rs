//! Modbus TCP devices whose registers contain the time of their last change.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use taktwerk_load::clock;

/// Unit of the time in a register, in nanoseconds. 16 bits wrap after 6.5 seconds.
const UNIT: u64 = 100_000;
/// Interval between changes, in percent of the polling interval. Not 100, so that changes drift through all phases of
/// the polling.
const RHYTHM: u64 = 103;

/// Shared state of all devices.
#[derive(Debug)]
struct Plant {
    registers: u16,
    /// Nanoseconds between two changes of a device's registers.
    period: u64,
    /// Devices below this number do not answer while `hangs` is set.
    hanging: u32,
    hangs: AtomicBool,
}

/// Devices that run until the process ends.
#[derive(Debug)]
pub(super) struct Devices {
    plant: Arc<Plant>,
    addresses: Vec<SocketAddr>,
}

impl Devices {
    /// Starts the devices, each with its own address.
    pub(super) fn start(count: u32, registers: u16, interval: u64, hanging: u32) -> io::Result<Self> {
        let period = (interval / 100 * RHYTHM).max(UNIT);
        let plant = Arc::new(Plant { registers, period, hanging, hangs: AtomicBool::new(false) });
        let mut addresses = Vec::new();
        for number in 0..count {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            addresses.push(listener.local_addr()?);
            let plant = Arc::clone(&plant);
            // The phases of the devices are evenly spread.
            let phase = plant.period / u64::from(count.max(1)) * u64::from(number);
            let device = Device { plant, number, phase };
            thread::Builder::new().name("device".to_owned()).stack_size(128 << 10).spawn(move || {
                for stream in listener.incoming().flatten() {
                    // Errors end the connection, not the device.
                    let _ = device.talk(stream);
                }
            })?;
        }
        Ok(Self { plant, addresses })
    }

    /// Their addresses.
    pub(super) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Number of value changes in a time; all registers of a device change together.
    pub(super) fn changes(&self, span: Duration) -> f64 {
        let registers = self.addresses.len() as f64 * f64::from(self.plant.registers);
        registers * span.as_nanos() as f64 / self.plant.period as f64
    }

    /// From now on, the hanging devices do not answer.
    pub(super) fn hang(&self) {
        self.plant.hangs.store(true, Ordering::Relaxed);
    }
}

/// Time since the last change of a register with this value, in nanoseconds.
pub(super) fn age(value: u16, now: u64) -> u64 {
    let unit = u16::try_from(now / UNIT % 65_536).unwrap_or_default();
    u64::from(unit.wrapping_sub(value)) * UNIT + now % UNIT
}

struct Device {
    plant: Arc<Plant>,
    number: u32,
    phase: u64,
}

impl Device {
    /// The value of all registers: the time of the last change.
    fn value(&self, now: u64) -> u16 {
        let changes = now.saturating_sub(self.phase) / self.plant.period;
        let changed = changes * self.plant.period + self.phase;
        u16::try_from(changed / UNIT % 65_536).unwrap_or_default()
    }

    /// Answers on one connection until it ends.
    fn talk(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut request = [0u8; 12];
        loop {
            stream.read_exact(&mut request)?;
            while self.number < self.plant.hanging && self.plant.hangs.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(50));
            }
            let answer = self.answer(&request, clock::monotonic());
            stream.write_all(&answer)?;
        }
    }

    /// The answer to a request for registers: the transaction, the length, the unit, then the function and its data.
    fn answer(&self, request: &[u8; 12], now: u64) -> Vec<u8> {
        let word = |at: usize| u16::from_be_bytes([request[at], request[at + 1]]);
        let (function, first, count) = (request[7], word(8), word(10));
        let is_there = first.checked_add(count).is_some_and(|end| end <= self.plant.registers);
        let data: Vec<u8> = match function {
            3 | 4 if (1..=125).contains(&count) && is_there => {
                let value = self.value(now).to_be_bytes();
                let bytes = u8::try_from(count * 2).unwrap_or(u8::MAX);
                [function, bytes]
                    .into_iter()
                    .chain(std::iter::repeat_n(value, count.into()).flatten())
                    .collect()
            }
            3 | 4 => vec![function | 0x80, 2],
            _ => vec![function | 0x80, 1],
        };
        let len = u16::try_from(data.len() + 1).unwrap_or(u16::MAX).to_be_bytes();
        let head = [request[0], request[1], 0, 0, len[0], len[1], request[6]];
        head.into_iter().chain(data).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(phase: u64) -> Device {
        let plant = Plant { registers: 200, period: 103_000_000, hanging: 0, hangs: AtomicBool::new(false) };
        Device { plant: Arc::new(plant), number: 0, phase }
    }

    #[test]
    fn registers_contain_the_time_of_their_change() {
        let device = device(7_000_000);
        // The third change: 5 ms later its age is 5 ms, also after the 16-bit value has wrapped.
        for changed in [3 * 103_000_000 + 7_000_000, 1_000 * 103_000_000 + 7_000_000_u64] {
            for later in [0, 1, 5_000_000, 102_900_000] {
                let value = device.value(changed + later);
                let seen = age(value, changed + later);
                assert!(seen.abs_diff(later) <= UNIT, "{seen} {later}");
            }
            assert_ne!(device.value(changed), device.value(changed - 1));
        }
    }

    #[test]
    fn answers_are_those_of_the_protocol() {
        let device = device(0);
        let request = |function, first: u16, count: u16| {
            let (first, count) = (first.to_be_bytes(), count.to_be_bytes());
            [0, 9, 0, 0, 0, 6, 1, function, first[0], first[1], count[0], count[1]]
        };
        let answer = device.answer(&request(3, 100, 100), 103_000_000);
        assert_eq!(&answer[..9], &[0, 9, 0, 0, 0, 203, 1, 3, 200]);
        assert_eq!((answer.len(), &answer[9..13]), (209, &[4, 6, 4, 6][..]));
        assert_eq!(device.answer(&request(3, 150, 51), 0)[7..], [0x83, 2]);
        assert_eq!(device.answer(&request(3, u16::MAX, 2), 0)[7..], [0x83, 2]);
        assert_eq!(device.answer(&request(16, 0, 1), 0)[7..], [0x90, 1]);
    }
}
