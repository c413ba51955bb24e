//! Checks that a program has no symbol table, which only debuggers need and which is a third of the program.

use crate::Failure;
use std::path::Path;

/// `SHT_SYMTAB` of the ELF specification: the table that `strip` removes.
const SYMBOLS: u32 = 2;

/// Fails if a program has symbols.
pub(super) fn refuse(program: &Path) -> Result<(), Failure> {
    let bytes = std::fs::read(program).map_err(|error| format!("{}: {error}", program.display()))?;
    match has_symbols(&bytes) {
        Some(false) => Ok(()),
        Some(true) => Err(format!(
            "{} has symbols: set `strip` for the command in [profile.release.package] of Cargo.toml",
            program.display()
        )),
        None => Err(format!("{} is not a 64-bit little-endian ELF program", program.display())),
    }
}

/// Reads the section headers of a 64-bit little-endian ELF file.
fn has_symbols(bytes: &[u8]) -> Option<bool> {
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let start = usize::try_from(u64::from_le_bytes(*bytes.get(0x28..)?.first_chunk()?)).ok()?;
    let size = usize::from(u16::from_le_bytes(*bytes.get(0x3A..)?.first_chunk()?));
    let count = usize::from(u16::from_le_bytes(*bytes.get(0x3C..)?.first_chunk()?));
    for index in 0..count {
        let header = bytes.get(start.checked_add(index * size)?..)?;
        if u32::from_le_bytes(*header.get(4..)?.first_chunk()?) == SYMBOLS {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::has_symbols;

    /// An ELF file of headers only, with sections of these types.
    fn elf(types: &[u32]) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        bytes.resize(0x40, 0);
        bytes[0x28] = 0x40;
        bytes[0x3A] = 0x40;
        bytes[0x3C] = u8::try_from(types.len()).unwrap();
        for kind in types {
            let mut header = [0; 0x40];
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            bytes.extend_from_slice(&header);
        }
        bytes
    }

    #[test]
    fn a_table_of_symbols_is_found() {
        assert_eq!(has_symbols(&elf(&[0, 1, 2, 3])), Some(true));
        // The symbol table of dynamic linking is a different one and stays.
        assert_eq!(has_symbols(&elf(&[0, 1, 11, 3])), Some(false));
    }

    #[test]
    fn other_files_are_refused() {
        assert_eq!(has_symbols(b"#!/bin/sh\n"), None);
        let mut cut = elf(&[0, 2]);
        cut.truncate(0x41);
        assert_eq!(has_symbols(&cut), None);
    }

    #[test]
    fn real_programs_are_read() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        // Release builds strip tests, too.
        assert_eq!(has_symbols(&own), Some(cfg!(debug_assertions)));
    }
}
