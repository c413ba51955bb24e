//! The archive with the static program, to be unpacked under any prefix.

use super::stage::Stage;
use super::{Machine, Place, write};
use crate::Failure;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;
use tar::{Builder, EntryType, Header};

/// A tar archive whose bytes depend only on its contents.
pub(super) struct Archive {
    builder: Builder<Vec<u8>>,
    time: u64,
}

/// Owner and permissions of a file.
#[derive(Clone, Copy)]
pub(super) struct Rights {
    pub(super) mode: u32,
    /// Id of the user and of the group.
    pub(super) owner: u64,
}

impl Archive {
    pub(super) fn new(time: u64) -> Self {
        Self { builder: Builder::new(Vec::new()), time }
    }

    fn add(&mut self, path: &str, kind: EntryType, rights: Rights, bytes: &[u8]) -> Result<(), Failure> {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(rights.mode);
        header.set_uid(rights.owner);
        header.set_gid(rights.owner);
        header.set_mtime(self.time);
        header.set_size(bytes.len() as u64);
        self.builder.append_data(&mut header, path, bytes).map_err(|error| format!("{path}: {error}"))
    }

    pub(super) fn file(&mut self, path: &str, rights: Rights, bytes: &[u8]) -> Result<(), Failure> {
        self.add(path, EntryType::Regular, rights, bytes)
    }

    pub(super) fn folder(&mut self, path: &str, rights: Rights) -> Result<(), Failure> {
        self.add(&format!("{path}/"), EntryType::Directory, rights, &[])
    }

    pub(super) fn finish(self) -> Result<Vec<u8>, Failure> {
        self.builder.into_inner().map_err(|error| format!("the archive cannot be finished: {error}"))
    }
}

/// Compresses without file name and time in the header.
pub(super) fn compressed(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|error| format!("gzip: {error}"))
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Makes the archive.
pub(super) fn make(place: &Place, stage: &Stage, program: &Path, machine: Machine) -> Result<(), Failure> {
    let mut archive = Archive::new(place.time);
    let name = format!("taktwerk-{}-{}-linux", place.version, machine.name());
    for (path, source, mode) in stage.with_program(program) {
        archive.file(&format!("{name}/{path}"), Rights { mode, owner: 0 }, &read(&source)?)?;
    }
    write(&place.output.join(format!("{name}.tar.gz")), &compressed(&archive.finish()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_contents_give_the_same_bytes() {
        let make = || {
            let mut archive = Archive::new(1_800_000_000);
            archive.folder("a", Rights { mode: 0o755, owner: 0 }).unwrap();
            archive
                .file(&format!("a/{}", "b".repeat(150)), Rights { mode: 0o644, owner: 7 }, b"text")
                .unwrap();
            compressed(&archive.finish().unwrap()).unwrap()
        };
        let bytes = make();
        assert_eq!(bytes, make());
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
        let entries: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.path().unwrap().display().to_string(), entry.header().uid().unwrap(), entry.size())
            })
            .collect();
        assert_eq!(entries, [("a/".to_owned(), 0, 0), (format!("a/{}", "b".repeat(150)), 7, 4)]);
    }
}
