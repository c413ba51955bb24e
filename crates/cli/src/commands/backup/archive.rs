//! The format of a backup: a tar with gzip, which any system opens. `manifest.json` comes first, then `configuration`, then
//! `files/0` and so on in the manifest's order. Names of the installation stand in the manifest only, so that unpacking cannot
//! write anywhere else.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// The version of the format.
pub(super) const VERSION: u32 = 1;
/// Longest manifest: a hundred thousand files.
const MANIFEST_LEN_MAX: u64 = 32 << 20;
/// Longest configuration, as the reader of configurations has it.
const CONFIGURATION_LEN_MAX: u64 = 1 << 20;

/// What an archive says about itself.
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
    /// The setting that names it.
    pub(super) setting: String,
    /// The path as the configuration has it.
    pub(super) path: PathBuf,
    /// Where it is in the folder, if that path is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) inner: Option<PathBuf>,
    /// Its permissions.
    pub(super) mode: u32,
    /// Its length in bytes.
    pub(super) len: u64,
}

/// Writes an archive; `paths` are where the manifest's files are now.
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
        // Files that grow while they are read: the archive has what the manifest says, or none is written.
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

/// What was read of an archive; its files are in a folder by their number.
#[derive(Debug)]
pub(super) struct Unpacked {
    pub(super) manifest: Manifest,
    pub(super) configuration: String,
}

/// Unpacks a whole archive into a folder: `0`, `1` and so on.
///
/// # Errors
/// It is none, is damaged or incomplete, or does not fit on the disk.
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
                return Err(io::Error::other("this is no backup: it does not begin with a manifest"));
            }
            ("configuration", Some(_)) => {
                let mut text = String::new();
                (&mut entry).take(CONFIGURATION_LEN_MAX).read_to_string(&mut text)?;
                configuration = Some(text);
            }
            (name, Some(manifest)) => {
                let described = manifest.files.get(next).filter(|_| name == format!("files/{next}"));
                let described =
                    described.ok_or_else(|| damaged(&format!("{name} is not in its manifest")))?;
                let mut to = File::create_new(folder.join(next.to_string()))?;
                if io::copy(&mut (&mut entry).take(described.len + 1), &mut to)? != described.len {
                    return Err(damaged(&format!("{name} has another length than the manifest says")));
                }
                next += 1;
            }
        }
    }
    // The checksum stands at the end, behind what tar reads.
    io::copy(&mut tar.into_inner(), &mut io::sink())?;
    match (manifest, configuration) {
        (Some(manifest), Some(configuration)) if next == manifest.files.len() => {
            Ok(Unpacked { manifest, configuration })
        }
        (None, _) => Err(io::Error::other("this is no backup: it does not begin with a manifest")),
        _ => Err(damaged("files are missing at its end")),
    }
}
