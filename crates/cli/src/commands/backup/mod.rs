//! `taktwerk backup` and `taktwerk restore`: an installation of a server in one file.
//!
//! - `archive`: the file's format; `restore`: putting it back.
//!
//! The configuration says which files belong to it ([`ConfigFile::files`]). A history that a running server writes to is
//! copied as of one moment.

mod archive;
pub(crate) mod restore;

use crate::failure::Failure;
use crate::output::Output;
use archive::{Entry, Manifest};
use clap::Args;
use serde_json::json;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use taktwerk_config::{ConfigFile, FileKind, NamedFile, file};

/// Arguments of `taktwerk backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The configuration that the server runs with.
    #[arg(value_name = "CONFIG")]
    config: PathBuf,

    /// The archive to write, a .tar.gz; it must not exist. It holds private keys: only you can read it.
    #[arg(value_name = "FILE")]
    archive: PathBuf,
}

/// A file to be written, and what the archive says about it.
struct Source {
    path: PathBuf,
    entry: Entry,
}

/// Writes an archive.
pub(crate) fn run(arguments: &BackupArgs, output: Output) -> Result<(), Failure> {
    let config = crate::config_file::load(&arguments.config)?;
    let target = &arguments.archive;
    if target.exists() {
        return Err(Failure::Usage(format!("{} exists already; name another file", target.display())));
    }
    // Snapshots and the unfinished archive go beside the finished one: there is room for it there, or nowhere.
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |path: &Path, error: io::Error| {
        Failure::Environment(format!("{}: {error}; nothing was written", path.display()))
    };
    let scratch = tempfile::Builder::new().prefix(".taktwerk-backup-").tempdir_in(folder);
    let scratch = scratch.map_err(|error| failed(folder, error))?;
    let (mut sources, mut missing) = (Vec::new(), Vec::new());
    for named in config.files() {
        let path = config.resolve(&named.named);
        match collect(&named, &path, scratch.path(), &mut sources) {
            Ok(true) => {}
            Ok(false) => missing.push(named),
            Err(error) => return Err(error),
        }
    }
    let text = fs::read(&arguments.config).map_err(|error| failed(&arguments.config, error))?;
    let manifest = Manifest {
        version: archive::VERSION,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        configuration: arguments.config.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        files: sources.iter().map(|source| source.entry.clone()).collect(),
    };
    let unfinished = scratch.path().join("archive");
    let written = fs::OpenOptions::new().write(true).create_new(true).mode(file::PRIVATE).open(&unfinished);
    let written = written.and_then(|to: File| {
        let paths = sources.iter().map(|source| source.path.as_path());
        archive::write(&to, &manifest, &text, paths)?;
        to.sync_all()
    });
    // A link and no rename: it fails if somebody has made the file meanwhile.
    written.and_then(|()| fs::hard_link(&unfinished, target)).map_err(|error| failed(target, error))?;
    report(&config, &sources, &missing, target, output)
}

/// Adds a file, or all files of a folder; whether there is any.
fn collect(
    named: &NamedFile,
    path: &Path,
    scratch: &Path,
    sources: &mut Vec<Source>,
) -> Result<bool, Failure> {
    let failed =
        |error: io::Error| Failure::Environment(format!("{}: {error}; nothing was written", path.display()));
    if !path.try_exists().map_err(failed)? {
        return Ok(false);
    }
    let mut add = |path: PathBuf, inner: Option<PathBuf>, mode: u32| -> io::Result<()> {
        let len = fs::metadata(&path)?.len();
        let entry = Entry {
            setting: named.setting.to_owned(),
            path: named.named.clone(),
            inner,
            mode: mode & 0o777,
            len,
        };
        sources.push(Source { path, entry });
        Ok(())
    };
    match named.kind {
        FileKind::File => {
            let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
            add(path.to_owned(), None, mode).map_err(failed)?;
        }
        FileKind::Folder => {
            for file in files_below(path).map_err(failed)? {
                let mode = fs::metadata(&file).map_err(failed)?.permissions().mode();
                let inner = file.strip_prefix(path).unwrap_or(&file).to_owned();
                add(file, Some(inner), mode).map_err(failed)?;
            }
        }
        FileKind::Database => {
            let copy = scratch.join(format!("snapshot-{}", fs::read_dir(scratch).map_err(failed)?.count()));
            let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
            taktwerk_history::snapshot(path, &copy)
                .map_err(|error| Failure::Environment(format!("{}; nothing was written", error.message)))?;
            add(copy, None, mode).map_err(failed)?;
        }
    }
    Ok(true)
}

/// All files below a folder, in the order of their names. Links are left where they are.
fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn report(
    config: &ConfigFile,
    sources: &[Source],
    missing: &[NamedFile],
    target: &Path,
    output: Output,
) -> Result<(), Failure> {
    let keys = &config.config().pubsub.keys;
    let size = fs::metadata(target).map_or(0, |metadata| metadata.len());
    if output.is_json() {
        return output.document(&json!({
            "Archive": target.display().to_string(),
            "Bytes": size,
            "Files": sources.len() + 1,
            "Missing": missing.iter().map(|named| named.named.display().to_string()).collect::<Vec<_>>(),
            "LeftOut": keys.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        }));
    }
    output.text(&format!("wrote {}: {} files, {size} bytes", target.display(), sources.len() + 1))?;
    for named in missing.iter().filter(|named| named.setting != "security.pki") {
        tell!("{}: there is no {} yet", named.setting, named.named.display());
    }
    for path in keys {
        tell!(
            "left out: {} (keys of PubSub must not be used again from an earlier state; make new ones after a restore with \
             `taktwerk pubsub keys`)",
            path.display()
        );
    }
    Ok(())
}
