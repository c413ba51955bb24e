//! Random bytes from the operating system.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use taktwerk_crypto::Entropy;

/// The kernel's random generator, suitable for nonces, tokens and keys.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            match getrandom(&mut *rest, GetRandomFlags::empty()) {
                Ok(count) => rest = rest.get_mut(count..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                // The call exists since Linux 3.17 and cannot fail otherwise. Continuing with predictable bytes would
                // be worse than a panic.
                Err(error) => panic!("the kernel gives no random bytes: {error}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_filled() {
        let mut bytes = [0u8; 300];
        OsEntropy.fill(&mut bytes);
        assert!(bytes.chunks(30).all(|chunk| chunk.iter().any(|byte| *byte != 0)));
    }
}
