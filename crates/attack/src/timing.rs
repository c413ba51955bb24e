//! Invalid handshakes with a trusted certificate: whether the time of a refusal reveals at which step the server failed
//! (Part 6 §6.7.7; Bleichenbacher, Manger).

use crate::Run;
use crate::report::{Findings, Tally};
use crate::wire::{Raw, dial, hello, open};
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use taktwerk_crypto::{Provider, SecurityPolicy};
use taktwerk_lab::statistics::{median, median_ratio};

pub(crate) const POLICY: SecurityPolicy = SecurityPolicy::Basic256Sha256;
/// How long the server may take to refuse.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum difference of the medians, as a share of a handshake. One more key operation would show much more.
const DIFFERENCE_MAX: f64 = 0.03;
/// Length of an Acknowledge message, in bytes.
const ACKNOWLEDGE_LEN: usize = 28;

/// The fault of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Not encrypted for the server: the decryption fails.
    Cipher,
    /// Only the last block is wrong: the first one can be decrypted.
    LastBlock,
    /// Can be decrypted, but the signature is wrong.
    Signature,
    /// Can be decrypted and the signature is valid, but the padding is wrong.
    Padding,
}

const KINDS: [(Broken, &str); 4] = [
    (Broken::Cipher, "not encrypted for it"),
    (Broken::LastBlock, "the last block is not"),
    (Broken::Signature, "signature wrong"),
    (Broken::Padding, "padding wrong"),
];

pub(crate) fn handshakes(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let mut times: [Vec<f64>; 4] = Default::default();
    let mut tally = Tally::default();
    let mut failed = 0u64;
    // All messages are built in advance. Work between two handshakes would influence CPU state and placement of the
    // server.
    let provider = run.keys.canary();
    let own = provider.own_certificate(POLICY).ok_or("there is no certificate")?;
    let mut messages = Vec::with_capacity(run.connections);
    for (number, at) in turns(run.connections).into_iter().enumerate() {
        if let Some((kind, _)) = KINDS.get(at) {
            messages.push((at, message(run, own, *kind, number)?));
        }
    }
    for (number, (at, message)) in messages.iter().enumerate() {
        if run.is_over() {
            break;
        }
        match refusal(run, number, message) {
            Ok((took, raw)) => {
                tally.status(raw.error());
                times.get_mut(*at).into_iter().for_each(|times| times.push(took.as_secs_f64() * 1e6));
            }
            Err(_) => failed += 1,
        }
    }
    let [first, ..] = &times;
    let mut largest = 0.0f64;
    for ((_, name), times) in KINDS.iter().zip(&times) {
        let (ratio, (low, high)) = median_ratio(times, first).ok_or("no handshake was refused")?;
        let median = median(times).unwrap_or_default();
        largest = largest.max((ratio - 1.0).abs());
        let ratio = format!("{ratio:.3} of the first (between {low:.3} and {high:.3})");
        findings.fact(name, format!("{}: median {median:.1} us, {ratio}", times.len()));
    }
    findings.fact("told", format!("{tally}, failed: {failed}"));
    findings.claim("all get the same status", tally.kinds().len() == 1);
    if run.judges_times {
        let claim = format!("the medians differ by at most {:.0} %", DIFFERENCE_MAX * 100.0);
        findings.claim(claim, largest <= DIFFERENCE_MAX);
    }
    Ok(findings)
}

/// The order of the kinds. Every group contains each kind once, so that a slower machine affects all alike. The order
/// varies, so that no kind always follows the same other kind.
fn turns(count: usize) -> Vec<usize> {
    let mut noise = Noise(1);
    let mut turns = Vec::with_capacity(count);
    while turns.len() < count {
        let mut group: [usize; KINDS.len()] = core::array::from_fn(|at| at);
        for last in (1..group.len()).rev() {
            group.swap(last, noise.next() as usize % (last + 1));
        }
        turns.extend(group);
    }
    turns.truncate(count);
    turns
}

/// Reproducible pseudo-random numbers.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u8 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 56) as u8
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.iter_mut().for_each(|byte| *byte = self.next());
    }
}

/// An OpenSecureChannel request with the trusted certificate and one fault.
pub(crate) fn message(
    run: &Run<'_>,
    certificate: &[u8],
    kind: Broken,
    number: usize,
) -> Result<Vec<u8>, String> {
    let text = |error: taktwerk_crypto::CryptoError| error.to_string();
    let provider = run.keys.canary();
    let provider: &dyn Provider = provider.as_ref();
    let server = run.keys.server_certificate(POLICY).ok_or("the server has no certificate")?;
    let receiver = provider.peer_key(POLICY, server).map_err(text)?;
    let signature_len = provider.signature_len(POLICY).map_err(text)?;
    let (plain_block, cipher_block) = (receiver.plain_block_len(), receiver.cipher_block_len());
    // Two blocks, as in a valid request. The number makes each message unique.
    let (blocks, mut noise) = (2, Noise(number as u64));
    let mut message = open(
        POLICY.uri(),
        Some(certificate),
        Some(&provider.thumbprint(server)),
        &vec![0; blocks * cipher_block],
    );
    let headers_len = message.len() - blocks * cipher_block;
    let mut plain = vec![0; blocks * plain_block - signature_len];
    noise.fill(&mut plain);
    // The last byte before the signature is the padding size.
    if let Some(last) = plain.last_mut() {
        *last = 9;
    }
    let mut signature = Vec::new();
    if kind == Broken::Padding {
        let signed = [message.get(..headers_len).unwrap_or_default(), &plain].concat();
        provider.sign(POLICY, &[&signed], &mut signature).map_err(text)?;
    } else {
        signature.resize(signature_len, 0);
        noise.fill(&mut signature);
        // A number below the modulus, like a signature.
        signature.iter_mut().take(1).for_each(|byte| *byte &= 0x3f);
    }
    plain.extend_from_slice(&signature);
    let mut cipher = Vec::new();
    receiver.encrypt(&plain, &mut cipher).map_err(text)?;
    let spoiled = match kind {
        Broken::Cipher => cipher.get_mut(..),
        Broken::LastBlock => cipher.get_mut(cipher_block..),
        Broken::Signature | Broken::Padding => None,
    };
    for block in spoiled.unwrap_or_default().chunks_mut(cipher_block) {
        noise.fill(block);
        block.iter_mut().take(1).for_each(|byte| *byte &= 0x3f);
    }
    message.truncate(headers_len);
    message.extend_from_slice(&cipher);
    Ok(message)
}

/// Sends a request after a Hello. Returns the time until the server has closed the connection.
pub(crate) fn refusal(run: &Run<'_>, number: usize, message: &[u8]) -> std::io::Result<(Duration, Raw)> {
    let mut stream = dial(run.address, run.source(number % 1_000, 1), None)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&hello())?;
    stream.read_exact(&mut [0; ACKNOWLEDGE_LEN])?;
    let began = Instant::now();
    stream.write_all(message)?;
    let mut heard = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            count => heard.extend_from_slice(buffer.get(..count).unwrap_or_default()),
        }
    }
    let took = began.elapsed();
    let mut raw = Raw::new(stream)?;
    raw.heard = heard;
    Ok((took, raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_balanced_in_frequency_and_order() {
        let turns = turns(4_000);
        let mut behind = [[0; KINDS.len()]; KINDS.len()];
        for pair in turns.windows(2) {
            behind[pair[0]][pair[1]] += 1;
        }
        for (first, row) in behind.iter().enumerate() {
            assert_eq!(turns.iter().filter(|at| **at == first).count(), 1_000);
            for (second, count) in row.iter().enumerate() {
                let usual = if first == second { 30..150 } else { 230..400 };
                assert!(usual.contains(count), "{first} {second} {behind:?}");
            }
        }
    }
}
