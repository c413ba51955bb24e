//! Password prompt on the terminal without echo.

use crate::failure::Failure;
use rustix::termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcsetattr};
use std::io::{self, Read, Write};
use zeroize::Zeroizing;

/// Asks twice for a new password.
pub(super) fn new_password(name: &str) -> Result<Zeroizing<String>, Failure> {
    if !isatty(rustix::stdio::stdin()) {
        return Err(Failure::Usage(
            "there is no terminal to ask for a password: use --password-file".to_owned(),
        ));
    }
    let first = ask(&format!("new password of {name}: "))?;
    let second = ask("once more: ")?;
    if *first == *second {
        Ok(first)
    } else {
        Err(Failure::Usage("the two passwords differ; nothing was changed".to_owned()))
    }
}

/// Disables the terminal's echo until it is dropped.
struct Quiet(Termios);

impl Quiet {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(rustix::stdio::stdin())?;
        let mut quiet = before.clone();
        // Key by key, so that Ctrl-C is read as a key and cannot leave the terminal without echo.
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Self(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // An error means that the terminal is gone.
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.0);
    }
}

fn ask(question: &str) -> Result<Zeroizing<String>, Failure> {
    tell_part!("{question}");
    io::stderr().flush()?;
    let quiet = Quiet::begin().map_err(|error| Failure::Environment(format!("no terminal: {error}")))?;
    let typed = read_line(&mut io::stdin().lock());
    drop(quiet);
    tell!("");
    let text = core::str::from_utf8(&typed?).map(|text| Zeroizing::new(text.to_owned()));
    text.map_err(|_| Failure::Usage("the password is not UTF-8".to_owned()))
}

/// Reads keys up to Enter. Backspace deletes a character, Ctrl-U the line, Ctrl-C aborts.
fn read_line(keys: &mut impl Read) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let mut typed = Zeroizing::new(Vec::with_capacity(1024));
    let mut key = [0u8];
    loop {
        if keys.read(&mut key)? == 0 {
            return Ok(typed);
        }
        match key {
            [b'\r' | b'\n' | 0x04] => return Ok(typed),
            [0x03] => return Err(Failure::Interrupted),
            [0x15] => typed.clear(),
            [0x08 | 0x7f] => {
                // Deletes all bytes of the character.
                while typed.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
            }
            // Longer than any valid password: ignore the rest, so that the buffer does not grow.
            [_] if typed.len() >= 1024 => {}
            [byte] => typed.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[u8]) -> Option<Vec<u8>> {
        read_line(&mut &*keys).ok().map(|line| line.to_vec())
    }

    #[test]
    fn keys_become_a_line() {
        assert_eq!(typed(b"abc\nrest"), Some(b"abc".to_vec()));
        assert_eq!(typed("aé\u{7f}b\r".as_bytes()), Some(b"ab".to_vec()));
        assert_eq!(typed(b"abc\x15x\n"), Some(b"x".to_vec()));
        assert_eq!(typed(b"abc"), Some(b"abc".to_vec()));
        assert_eq!(typed(b"ab\x03c\n"), None);
        assert_eq!(typed(&[b'x'; 5000]).map(|line| line.len()), Some(1024));
    }
}
