//! The format of a backup: a tar.gz file. `manifest.json` comes first, then `configuration`, then `files/0` and so on
//! in the order of the manifest. Only the manifest contains paths of the installation, so unpacking cannot write
//! anywhere else.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use taktwerk_config::FILE_LEN_MAX;

/// The version of the format.
pub(super) const VERSION: u32 = 1;
/// Largest manifest in bytes: a hundred thousand files.
const MANIFEST_LEN_MAX: u64 = 32 << 20;

/// The manifest of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct Manifest {
    /// The version of the format.
    pub(super) version: u32,
    /// The version of the program that wrote it.
    pub(super) program: String,
    /// The name of the configuration file.
    pub(super) configuration: String,
    /// The other files.
    pub(super) files: Vec<Entry>,
}

/// A file in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct Entry {
    /// The setting that names the file.
    pub(super) setting: String,
    /// The path in the configuration.
    pub(super) path: PathBuf,
    /// The path within the directory, if the setting names a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) inner: Option<PathBuf>,
    /// Its permissions.
    pub(super) mode: u32,
    /// Its length in bytes.
    pub(super) len: u64,
}

/// Writes an archive; `paths` are the locations of the manifest's files.
pub(super) fn write<'a>(
    to: &File,
    manifest: &Manifest,
    configuration: &[u8],
    paths: impl Iterator<Item = &'a Path>,
) -> io::Result<()> {
    let mut tar = tar::Builder::new(GzEncoder::new(BufWriter::new(to), Compression::default()));
    let described = serde_json::to_vec_pretty(manifest)?;
    append(&mut tar, "manifest.json", described.len() as u64, described.as_slice())?;
    append(&mut tar, "configuration", configuration.len() as u64, configuration)?;
    for (index, (path, entry)) in paths.zip(&manifest.files).enumerate() {
        // If a file has changed its length since the manifest was written, no archive is written.
        let from = File::open(path)?;
        if from.metadata()?.len() != entry.len {
            return Err(io::Error::other(format!("{} is changing; try again", path.display())));
        }
        append(&mut tar, &format!("files/{index}"), entry.len, from.take(entry.len))?;
    }
    tar.into_inner()?.finish()?.flush()
}

fn append(tar: &mut tar::Builder<impl Write>, name: &str, len: u64, from: impl Read) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(len);
    header.set_mode(0o600);
    header.set_cksum();
    tar.append_data(&mut header, name, from)
}

/// An unpacked archive. Its files are in a directory, named by their numbers.
#[derive(Debug)]
pub(super) struct Unpacked {
    pub(super) manifest: Manifest,
    pub(super) configuration: String,
}

/// Unpacks an archive into a directory: `0`, `1` and so on.
///
/// # Errors
/// The file is not a backup, is damaged or incomplete, or does not fit on the disk.
pub(super) fn read(from: &Path, folder: &Path) -> io::Result<Unpacked> {
    let damaged = |what: &str| io::Error::other(format!("the archive is damaged: {what}"));
    let mut tar = tar::Archive::new(GzDecoder::new(BufReader::new(File::open(from)?)));
    let mut manifest: Option<Manifest> = None;
    let mut configuration = None;
    let mut next = 0;
    for entry in tar.entries()? {
        let mut entry = entry?;
        let name = entry.path()?.to_string_lossy().into_owned();
        match (name.as_str(), &manifest) {
            ("manifest.json", None) => {
                let mut text = Vec::new();
                (&mut entry).take(MANIFEST_LEN_MAX).read_to_end(&mut text)?;
                let read: Manifest = serde_json::from_slice(&text)
                    .map_err(|error| damaged(&format!("manifest.json: {error}")))?;
                if read.version != VERSION {
                    return Err(io::Error::other(format!(
                        "the archive has the format {}, this program reads {VERSION}; use the version {} of the program",
                        read.version, read.program
                    )));
                }
                manifest = Some(read);
            }
            (_, None) => {
                return Err(io::Error::other("this is not a backup: it does not begin with a manifest"));
            }
            ("configuration", Some(_)) => {
                let mut text = String::new();
                (&mut entry).take(FILE_LEN_MAX + 1).read_to_string(&mut text)?;
                if text.len() as u64 > FILE_LEN_MAX {
                    return Err(damaged(&format!("its configuration is longer than {FILE_LEN_MAX} bytes")));
                }
                configuration = Some(text);
            }
            (name, Some(manifest)) => {
                let described = manifest.files.get(next).filter(|_| name == format!("files/{next}"));
                let described =
                    described.ok_or_else(|| damaged(&format!("{name} is not in its manifest")))?;
                let mut to = File::create_new(folder.join(next.to_string()))?;
                // One more, to notice a file that is longer. The manifest may claim any length.
                let most = described.len.saturating_add(1);
                if io::copy(&mut (&mut entry).take(most), &mut to)? != described.len {
                    return Err(damaged(&format!("{name} has another length than the manifest says")));
                }
                next += 1;
            }
        }
    }
    // The checksum is at the end, after the data that tar reads.
    io::copy(&mut tar.into_inner(), &mut io::sink())?;
    match (manifest, configuration) {
        (Some(manifest), Some(configuration)) if next == manifest.files.len() => {
            Ok(Unpacked { manifest, configuration })
        }
        (None, _) => Err(io::Error::other("this is not a backup: it does not begin with a manifest")),
        _ => Err(damaged("files are missing at its end")),
    }
}
