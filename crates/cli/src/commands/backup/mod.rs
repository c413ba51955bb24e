//! `taktwerk backup` and `taktwerk restore`: a server installation in one file.
//!
//! - `archive`: the file format; `restore`: restoring.
//!
//! The configuration determines the files ([`ConfigFile::files`], and those of the gateway). Databases that a running
//! server writes to are copied as consistent snapshots. What cannot be copied is reported.

mod archive;
pub(crate) mod restore;

use crate::failure::Failure;
use crate::output::Output;
use archive::{Entry, Manifest};
use clap::Args;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use taktwerk_config::{ConfigFile, FileKind, NamedFile, RECORDING_LEN_MAX, file};

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

/// The files that a configuration names, including those of the gateway.
fn named_files(config: &ConfigFile) -> Result<Vec<NamedFile>, Failure> {
    let mut files = config.files();
    files.extend(crate::serve::gateway::files(config)?);
    Ok(files)
}

/// What is not in an archive.
#[derive(Default)]
struct Absent {
    /// Files that do not exist.
    missing: Vec<NamedFile>,
    /// Files that are not copied, with the reason.
    left_out: Vec<(NamedFile, String)>,
}

/// A file to back up, and its entry in the manifest.
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
    // Snapshots and the unfinished archive are in the same directory as the archive, so they need space on the same
    // disk only.
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |path: &Path, error: io::Error| {
        Failure::Environment(format!("{}: {error}; nothing was written", path.display()))
    };
    let scratch = tempfile::Builder::new().prefix(".taktwerk-backup-").tempdir_in(folder);
    let scratch = scratch.map_err(|error| failed(folder, error))?;
    let (mut sources, mut absent) = (Vec::new(), Absent::default());
    let mut collected = BTreeSet::new();
    for named in named_files(&config)? {
        let path = config.resolve(&named.named);
        if let Some(reason) = reason_to_leave_out(&named, &path)? {
            absent.left_out.push((named, reason));
            continue;
        }
        let is_program = named.kind == FileKind::Program;
        if is_program && !is_below(&path, config.folder()) {
            continue;
        }
        // Several settings may name the same file.
        if !collect(&named, &path, scratch.path(), &mut collected, &mut sources)? && !is_program {
            absent.missing.push(named);
        }
    }
    let text = file::read_bytes(&arguments.config, taktwerk_config::FILE_LEN_MAX)
        .map_err(|error| failed(&arguments.config, error))?;
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
    // A hard link instead of a rename, because it fails if the file exists.
    written.and_then(|()| fs::hard_link(&unfinished, target)).map_err(|error| failed(target, error))?;
    report(&config, &sources, &absent, (target, output))
}

/// Why a file is not copied, if it exists.
fn reason_to_leave_out(named: &NamedFile, path: &Path) -> Result<Option<String>, Failure> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(None) };
    Ok(match named.kind {
        FileKind::Queue => Some(
            "values that are not sent yet: an older queue would give new values the keys of sent values, and the \
             destination would discard them. To move the queue, stop the gateway and move the file"
                .to_owned(),
        ),
        FileKind::Keys => Some(
            "keys of PubSub must not be used again from an earlier state; make new ones after a restore with \
             `taktwerk pubsub keys`"
                .to_owned(),
        ),
        FileKind::Share | FileKind::Data => Some(format!("data of {}, which may be large; copy this folder yourself", named.setting)),
        FileKind::Record => Some("the audit file; copy it yourself, with its older files".to_owned()),
        FileKind::Recording if metadata.len() > RECORDING_LEN_MAX => Some(format!(
            "a recording of {} MB, more than {} MB; copy it yourself",
            metadata.len() >> 20,
            RECORDING_LEN_MAX >> 20
        )),
        _ => None,
    })
}

/// Whether a path is that of a file below a directory, also if it is a symbolic link.
fn is_below(path: &Path, folder: &Path) -> bool {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    match (path.canonicalize(), folder.canonicalize()) {
        (Ok(path), Ok(folder)) => path.is_file() && path.starts_with(folder),
        _ => false,
    }
}

/// Adds a file, or all files of a directory, except those collected before. Returns whether there were any.
fn collect(
    named: &NamedFile,
    path: &Path,
    scratch: &Path,
    collected: &mut BTreeSet<PathBuf>,
    sources: &mut Vec<Source>,
) -> Result<bool, Failure> {
    let failed =
        |error: io::Error| Failure::Environment(format!("{}: {error}; nothing was written", path.display()));
    if !named.kind.is_copied() || !path.try_exists().map_err(failed)? {
        return Ok(false);
    }
    let mut add = |path: PathBuf, inner: Option<PathBuf>, mode: u32| -> io::Result<()> {
        let len = fs::metadata(&path)?.len();
        let entry = Entry {
            setting: named.setting.clone(),
            path: named.named.clone(),
            inner,
            mode: mode & 0o777,
            len,
        };
        sources.push(Source { path, entry });
        Ok(())
    };
    match named.kind {
        FileKind::Folder => {
            for file in files_below(path).map_err(failed)? {
                let mode = fs::metadata(&file).map_err(failed)?.permissions().mode();
                let inner = file.strip_prefix(path).unwrap_or(&file).to_owned();
                if collected.insert(file.clone()) {
                    add(file, Some(inner), mode).map_err(failed)?;
                }
            }
        }
        _ if !collected.insert(path.to_owned()) => {}
        FileKind::Database => {
            let copy = scratch.join(format!("snapshot-{}", fs::read_dir(scratch).map_err(failed)?.count()));
            let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
            taktwerk_history::snapshot(path, &copy)
                .map_err(|error| Failure::Environment(format!("{}; nothing was written", error.message)))?;
            add(copy, None, mode).map_err(failed)?;
        }
        _ => {
            let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
            add(path.to_owned(), None, mode).map_err(failed)?;
        }
    }
    Ok(true)
}

/// All files below a directory, sorted by name. Symbolic links are skipped.
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

/// The setting of a history in PostgreSQL, which tools of PostgreSQL back up. Its address may contain a password.
fn database(config: &ConfigFile) -> Option<&'static str> {
    config.config().history.postgresql.as_ref().map(|_| "history.postgresql")
}

fn report(
    config: &ConfigFile,
    sources: &[Source],
    absent: &Absent,
    (target, output): (&Path, Output),
) -> Result<(), Failure> {
    let size = fs::metadata(target).map_or(0, |metadata| metadata.len());
    // Servers and destinations create these themselves.
    let is_data = |kind| matches!(kind, FileKind::Queue | FileKind::Data | FileKind::Record);
    if output.is_json() {
        let path = |named: &NamedFile| named.named.display().to_string();
        let missing = absent.missing.iter().filter(|named| !is_data(named.kind));
        let left_out = absent.left_out.iter().map(|(named, _)| path(named));
        return output.document(&json!({
            "Archive": target.display().to_string(),
            "Bytes": size,
            "Files": sources.len() + 1,
            "Missing": missing.map(path).collect::<Vec<_>>(),
            "LeftOut": left_out.chain(database(config).map(str::to_owned)).collect::<Vec<_>>(),
        }));
    }
    output.text(&format!("wrote {}: {} files, {size} bytes", target.display(), sources.len() + 1))?;
    let is_created = |kind| kind == FileKind::Folder || is_data(kind);
    for named in absent.missing.iter().filter(|named| !is_created(named.kind)) {
        tell!("{}: there is no {} yet", named.setting, named.named.display());
    }
    for (named, reason) in &absent.left_out {
        tell!("left out: {} ({reason})", named.named.display());
    }
    if let Some(setting) = database(config) {
        tell!("left out: {setting} (the history in PostgreSQL; back it up with pg_dump)");
    }
    Ok(())
}
