//! A scripted Modbus TCP device: it answers, rejects, sends wrong data, closes connections, or is silent.

#![allow(dead_code)] // each test uses some of it

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The behaviour of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Answers,
    Hangs,
    HangsUp,
    /// Answers each request with this exception.
    Refuses(u8),
    /// Answers with the number of another request.
    Lies,
    /// Answers with a wrong length field.
    Short,
    /// Answers with a wrong number of registers.
    Fewer,
    More,
    /// Answers writes with another value.
    Miswrites,
    /// Answers this late.
    Late(Duration),
    /// Answers requests for register 400 a second time, 10 ms later.
    Stray,
}

#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) address: SocketAddr,
    pub(crate) holding: Mutex<Vec<u16>>,
    pub(crate) coils: Mutex<Vec<bool>>,
    pub(crate) mood: Mutex<Mood>,
    pub(crate) requests: AtomicUsize,
    /// Units that answer.
    pub(crate) units: Mutex<Vec<u8>>,
    /// Whether it supports function 22.
    pub(crate) masks: bool,
    /// Whether it supports device identification.
    pub(crate) identifies: bool,
    /// Whether a stray byte arrives every 100 ms, with RTU frames.
    pub(crate) is_noisy: AtomicBool,
}

impl Device {
    pub(crate) fn start(registers: usize) -> Arc<Self> {
        Self::with_framing(registers, false)
    }

    /// Uses RTU frames over TCP, as serial device servers do.
    pub(crate) fn start_rtu(registers: usize) -> Arc<Self> {
        Self::with_framing(registers, true)
    }

    fn with_framing(registers: usize, is_rtu: bool) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let device = Arc::new(Self {
            address: listener.local_addr().unwrap(),
            holding: Mutex::new(vec![0; registers]),
            coils: Mutex::new(vec![false; registers]),
            mood: Mutex::new(Mood::Answers),
            requests: AtomicUsize::new(0),
            units: Mutex::new((0..=255).collect()),
            masks: false,
            identifies: true,
            is_noisy: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&device);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(device) = weak.upgrade() else { return };
                std::thread::spawn(
                    move || {
                        if is_rtu { device.serve_rtu(stream) } else { device.serve(stream) }
                    },
                );
            }
        });
        device
    }

    pub(crate) fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    pub(crate) fn asked(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    fn serve(&self, mut stream: TcpStream) {
        loop {
            let mut header = [0; 7];
            if stream.read_exact(&mut header).is_err() {
                return;
            }
            let length = usize::from(u16::from_be_bytes([header[4], header[5]])) - 1;
            let mut request = vec![0; length];
            if stream.read_exact(&mut request).is_err() {
                return;
            }
            self.requests.fetch_add(1, Ordering::Relaxed);
            if !self.units.lock().unwrap().contains(&header[6]) {
                continue;
            }
            let mood = *self.mood.lock().unwrap();
            let mut answer = match mood {
                Mood::Hangs => continue,
                Mood::HangsUp => return,
                Mood::Refuses(code) => vec![request[0] | 0x80, code],
                _ => self.answer(&request),
            };
            match mood {
                Mood::Lies => header[1] = header[1].wrapping_add(7),
                Mood::Short => answer.truncate(answer.len() - 2),
                Mood::Fewer if request[0] <= 4 => {
                    answer.truncate(answer.len() - 2);
                    answer[1] -= 2;
                }
                Mood::More if request[0] <= 4 => {
                    answer.extend([0, 99]);
                    answer[1] += 2;
                }
                Mood::Miswrites if request[0] > 4 && answer[0] < 0x80 => *answer.last_mut().unwrap() ^= 1,
                _ => {}
            }
            header[4..6].copy_from_slice(&(answer.len() as u16 + 1).to_be_bytes());
            if stream.write_all(&[&header[..], &answer].concat()).is_err() {
                return;
            }
        }
    }

    fn serve_rtu(self: Arc<Self>, mut stream: TcpStream) {
        let (device, mut line) = (Arc::downgrade(&self), stream.try_clone().unwrap());
        std::thread::spawn(move || {
            while let Some(device) = device.upgrade() {
                if device.is_noisy.load(Ordering::Relaxed) && line.write_all(&[0]).is_err() {
                    return;
                }
                drop(device);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        loop {
            let mut frame = vec![0; 7];
            if stream.read_exact(&mut frame).is_err() {
                return;
            }
            // The rest is data and checksum.
            let rest = match frame[1] {
                15 | 16 => usize::from(frame[6]) + 2,
                22 => 3,
                43 => 0,
                _ => 1,
            };
            let mut end = vec![0; rest];
            if stream.read_exact(&mut end).is_err() {
                return;
            }
            frame.extend(end);
            let (body, sum) = frame.split_at(frame.len() - 2);
            assert_eq!(sum, crc(body), "{frame:?}");
            self.requests.fetch_add(1, Ordering::Relaxed);
            if !self.units.lock().unwrap().contains(&body[0]) {
                continue;
            }
            let mood = *self.mood.lock().unwrap();
            let answer = match mood {
                Mood::Hangs => continue,
                Mood::HangsUp => return,
                Mood::Refuses(code) => vec![body[1] | 0x80, code],
                _ => self.answer(&body[1..]),
            };
            let mut answer = [&body[..1], &answer].concat();
            let mut sum = crc(&answer);
            let mut times = 1;
            match mood {
                Mood::Lies => sum[0] ^= 1,
                Mood::Short => answer.truncate(answer.len() - 1),
                Mood::Late(by) => std::thread::sleep(by),
                Mood::Stray if frame[2..4] == 400u16.to_be_bytes() => times = 2,
                _ => {}
            }
            for at in 0..times {
                std::thread::sleep(Duration::from_millis(10 * at));
                if stream.write_all(&[&answer[..], &sum].concat()).is_err() {
                    return;
                }
            }
        }
    }

    fn answer(&self, request: &[u8]) -> Vec<u8> {
        let function = request[0];
        let number = |at: usize| usize::from(u16::from_be_bytes([request[at], request[at + 1]]));
        let refuse = |code| vec![function | 0x80, code];
        let mut holding = self.holding.lock().unwrap();
        let mut coils = self.coils.lock().unwrap();
        match function {
            1 => {
                let (first, count) = (number(1), number(3));
                let Some(bits) = coils.get(first..first + count) else { return refuse(2) };
                let mut bytes = vec![0u8; count.div_ceil(8)];
                for (at, bit) in bits.iter().enumerate() {
                    bytes[at / 8] |= u8::from(*bit) << (at % 8);
                }
                [&[function, bytes.len() as u8][..], &bytes].concat()
            }
            3 | 4 => {
                let (first, count) = (number(1), number(3));
                let Some(words) = holding.get(first..first + count) else { return refuse(2) };
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
                [&[function, bytes.len() as u8][..], &bytes].concat()
            }
            5 => {
                let Some(coil) = coils.get_mut(number(1)) else { return refuse(2) };
                *coil = number(3) == 0xFF00;
                request.to_vec()
            }
            6 => {
                let Some(word) = holding.get_mut(number(1)) else { return refuse(2) };
                *word = number(3) as u16;
                request.to_vec()
            }
            16 => {
                let (first, count) = (number(1), number(3));
                for at in 0..count {
                    let Some(word) = holding.get_mut(first + at) else { return refuse(2) };
                    *word = number(6 + at * 2) as u16;
                }
                request[..5].to_vec()
            }
            // Device identification: vendor and product.
            43 if self.identifies => {
                let mut answer = vec![43, 14, 1, 1, 0, 0, 2];
                for (id, text) in [(0, "Example"), (1, "Oven 7")] {
                    answer.extend([id, text.len() as u8]);
                    answer.extend(text.bytes());
                }
                answer
            }
            22 if self.masks => {
                let Some(word) = holding.get_mut(number(1)) else { return refuse(2) };
                *word = (*word & number(3) as u16) | (number(5) as u16 & !(number(3) as u16));
                request.to_vec()
            }
            _ => refuse(1),
        }
    }
}

/// The checksum of a frame (Modbus over Serial Line §6.2.2), low byte first.
fn crc(bytes: &[u8]) -> [u8; 2] {
    let mut sum = 0xFFFFu16;
    for byte in bytes {
        sum ^= u16::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0xA001 } else { sum >> 1 };
        }
    }
    sum.to_le_bytes()
}

#[test]
fn the_checksum_matches_the_specification() {
    assert_eq!(crc(&[0x02, 0x07]), [0x41, 0x12]);
}
