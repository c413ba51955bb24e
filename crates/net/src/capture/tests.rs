use super::*;
use frame::checksum;
use taktwerk_crypto::{DisclosedKeys, MessageSecurityMode, SecurityPolicy, TokenKeys};

/// The packets of a capture, from the link layer up.
fn packets(bytes: &[u8]) -> Vec<&[u8]> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((word(0), word(4), word(20)), (0xa1b2_c3d4, 2 | 4 << 16, 1));
    let mut at = 24;
    let mut all = Vec::new();
    while at < bytes.len() {
        let len = word(at + 8) as usize;
        assert_eq!(len, word(at + 12) as usize);
        all.push(&bytes[at + 16..at + 16 + len]);
        at += 16 + len;
    }
    assert_eq!(at, bytes.len());
    all
}

/// The bytes each side has sent, reassembled by sequence number. Also verifies checksums and that there are no gaps.
fn reassemble(bytes: &[u8], ip_len: usize) -> [Vec<u8>; 2] {
    let mut sides: [(Option<u32>, Vec<u8>); 2] = Default::default();
    let mut server_port = None;
    for packet in packets(bytes) {
        let ip = &packet[14..14 + ip_len];
        let tcp = &packet[14 + ip_len..];
        let (from, to) = if ip_len == 20 {
            assert_eq!((&packet[12..14], ip[0], checksum(&[ip])), (&[8, 0][..], 0x45, 0));
            assert_eq!(usize::from(u16::from_be_bytes([ip[2], ip[3]])), 20 + tcp.len());
            (&ip[12..16], &ip[16..20])
        } else {
            assert_eq!((&packet[12..14], ip[0] >> 4), (&[0x86, 0xdd][..], 6));
            assert_eq!(usize::from(u16::from_be_bytes([ip[4], ip[5]])), tcp.len());
            (&ip[8..24], &ip[24..40])
        };
        let len = (tcp.len() as u32).to_be_bytes();
        assert_eq!(checksum(&[from, to, &[0, 6], &len[2..], &len[..2], tcp]), 0);
        let port = u16::from_be_bytes([tcp[2], tcp[3]]);
        let side = usize::from(port != *server_port.get_or_insert(port));
        let sequence = u32::from_be_bytes(tcp[4..8].try_into().unwrap());
        let (next, sent) = &mut sides[side];
        assert_eq!(*next.get_or_insert(sequence), sequence, "a gap");
        let counts = u32::from(tcp[13] & 3 != 0);
        *next = Some(sequence.wrapping_add(counts + (tcp.len() - 20) as u32));
        sent.extend_from_slice(&tcp[20..]);
    }
    sides.map(|(_, sent)| sent)
}

#[test]
fn captures_can_be_reassembled() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    for (client, server, ip_len) in [
        ("10.0.0.1:50000", "10.0.0.2:4840", 20),
        ("[::1]:50000", "[::1]:4840", 40),
        ("[::ffff:10.0.0.1]:1", "10.0.0.2:4840", 20),
        ("[fe80::1]:1", "10.0.0.2:4840", 40),
    ] {
        let path = folder.path().join("capture.pcap");
        let capture = Capture::create(&path).unwrap();
        let mut stream = capture.stream(client.parse().unwrap(), server.parse().unwrap());
        let long: Vec<u8> = (0..100_001u32).map(|number| number as u8).collect();
        stream.client_says(b"HEL");
        stream.server_says(b"ACK");
        stream.server_says(&long);
        stream.client_says(b"!");
        drop(stream);
        let bytes = std::fs::read(&path).unwrap();
        let [to_server, to_client] = reassemble(&bytes, ip_len);
        assert_eq!(to_server, b"HEL!");
        assert_eq!(to_client, [b"ACK".as_slice(), &long].concat());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn keys_are_written_in_wireshark_format() {
    let keys = |byte: u8| DisclosedKeys {
        signing_key: vec![9; 32].into(),
        encrypting_key: vec![byte; 32].into(),
        iv: vec![byte + 1; 16].into(),
    };
    let (client, server) = (keys(0xa0), keys(0x0b));
    let policy = SecurityPolicy::Basic256Sha256;
    let token = TokenKeys::new((7, 3), policy, MessageSecurityMode::SignAndEncrypt, (&client, &server));
    let text = super::keys::lines(&token);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[0], format!("client_iv_7_3: {}", "A1".repeat(16)));
    assert_eq!(lines[1], format!("client_key_7_3: {}", "A0".repeat(32)));
    assert_eq!(lines[2], "client_siglen_7_3: 32");
    assert_eq!(lines[3], format!("server_iv_7_3: {}", "0C".repeat(16)));
    assert_eq!(lines[4], format!("server_key_7_3: {}", "0B".repeat(32)));
    // Wireshark reads names of at most 32 and values of at most 64 characters.
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        assert!(name.len() <= 32 && value.len() <= 64 && name.split('_').count() == 4);
    }
    assert!(!format!("{token:?}").contains("160"), "Debug does not print keys");
}

#[test]
fn files_readable_by_others_are_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, "before").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let link = folder.path().join("link");
    symlink(&path, &link).unwrap();
    for path in [&path, &link] {
        for error in [Capture::create(path).err().unwrap(), KeyLogFile::open(path).err().unwrap()] {
            assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}");
        }
    }
    // The existing content is kept, too.
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    KeyLogFile::open(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
    Capture::create(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 24);
}
