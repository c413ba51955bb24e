//! Tests of the relay on loopback. They check that data arrives and is not early; they set no upper limit on time.

use super::*;
use std::io::{Read, Write};
use std::net::TcpStream;

fn profile(text: &str) -> Profile {
    text.parse().unwrap()
}

/// A server that echoes everything.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().take(16) {
            thread::spawn(move || {
                let (mut read, mut write) = (stream.as_ref().unwrap(), stream.as_ref().unwrap());
                io::copy(&mut read, &mut write).unwrap();
                write.shutdown(std::net::Shutdown::Write).unwrap();
            });
        }
    });
    address
}

#[test]
fn bytes_arrive_complete_in_order_and_not_too_early() {
    let proxy = Proxy::start(&profile("rate=50mbit,delay=15ms,jitter=1ms,loss=2%"), 1).unwrap();
    let address = proxy.tcp(None, echo()).unwrap();
    let sent: Vec<u8> = (0..200_000u32).map(|index| (index % 251) as u8).collect();
    let start = clock::monotonic();
    let mut stream = TcpStream::connect(address).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let payload = sent.clone();
    let writing = thread::spawn(move || {
        writer.write_all(&payload).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
    // One round trip for the handshake and one for the bytes, 30 ms each, minus a few milliseconds of jitter.
    assert!(clock::monotonic() - start > 50_000_000);
    let [up, down] = proxy.counters();
    assert!(up.bytes >= 200_000 && down.bytes >= 200_000);
    assert!(up.lost + down.lost > 0, "{up:?} {down:?}");
}

#[test]
fn several_connections_share_the_line() {
    let proxy = Proxy::start(&profile("rate=8mbit"), 1).unwrap();
    let address = proxy.tcp(None, echo()).unwrap();
    let start = clock::monotonic();
    let clients: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                stream.write_all(&[7; 25_000]).unwrap();
                let mut back = vec![0; 25_000];
                stream.read_exact(&mut back).unwrap();
                assert!(back.iter().all(|byte| *byte == 7));
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    // 100 000 bytes at 1 MB/s.
    assert!(clock::monotonic() - start > 95_000_000);
}

/// Regression: a deadline that became due between two readings of the clock was once lost, and the relay stalled.
#[test]
fn many_round_trips_do_not_stall() {
    for conditions in ["rate=1gbit", "rate=200mbit,delay=50us", "delay=20us,jitter=10us"] {
        let proxy = Proxy::start(&profile(conditions), 1).unwrap();
        let mut stream = TcpStream::connect(proxy.tcp(None, echo()).unwrap()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        for number in 0..2_000u32 {
            stream.write_all(&number.to_be_bytes()).unwrap();
            let mut back = [0; 4];
            stream.read_exact(&mut back).unwrap_or_else(|error| panic!("{conditions}: {number}: {error}"));
            assert_eq!(u32::from_be_bytes(back), number);
        }
    }
}

#[test]
fn datagrams_are_lost_and_doubled() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = server.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok((count, from)) = server.recv_from(&mut buffer) {
            if server.send_to(&buffer[..count], from).is_err() {
                return;
            }
        }
    });
    let proxy = Proxy::start(&profile("up-loss=30%,duplicate=20%"), 3).unwrap();
    let address = proxy.udp(None, target).unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut arrived = 0u64;
    let mut buffer = [0; 64];
    for number in 0..200u8 {
        client.send(&[number]).unwrap();
    }
    // The test ends when the relay has counted everything, not after a fixed time.
    let mut quiet = 0;
    while quiet < 2 {
        match client.recv(&mut buffer) {
            Ok(_) => arrived += 1,
            Err(_) => quiet += 1,
        }
        let [up, down] = proxy.counters();
        let expected = down.packets + down.duplicated;
        if up.packets == 200 && down.packets == 200 - up.lost + up.duplicated && arrived == expected {
            break;
        }
    }
    let [up, down] = proxy.counters();
    assert_eq!(up.packets, 200);
    assert!((30..90).contains(&up.lost) && up.duplicated > 10 && down.duplicated > 10, "{up:?} {down:?}");
    assert_eq!(arrived, down.packets + down.duplicated);
}

#[test]
fn connections_end_if_the_server_is_missing() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = Proxy::start(&profile("delay=1ms"), 1).unwrap();
    let mut stream = TcpStream::connect(proxy.tcp(None, nobody).unwrap()).unwrap();
    let mut end = Vec::new();
    assert!(matches!(stream.read_to_end(&mut end), Ok(0) | Err(_)));
    drop(proxy);
}
