//! `taktwerk restore`: restores a backup.
//!
//! The whole archive is read and checked before anything is written. Only files that its configuration names are
//! restored. Files outside the directory of the configuration need `--outside`. Existing files are moved aside, not
//! replaced.

use super::archive::{self, Entry, Unpacked};
use super::named_files;
use crate::failure::Failure;
use crate::output::Output;
use crate::serve::control;
use clap::Args;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use taktwerk_config::{ConfigFile, FileKind, NamedFile, file};

/// Arguments of `taktwerk restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The archive that `taktwerk backup` wrote.
    #[arg(value_name = "FILE")]
    archive: PathBuf,

    /// Directory for the configuration and all files that it names by relative paths.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Also write files that the configuration names outside DIR, such as /var/lib/taktwerk/pki.
    #[arg(long)]
    outside: bool,

    /// Move existing files aside, to NAME.before-restore.
    #[arg(long)]
    force: bool,

    /// Only check the archive and say what would be written.
    #[arg(long)]
    dry_run: bool,
}

/// A file to restore.
struct Target {
    staged: PathBuf,
    path: PathBuf,
    mode: u32,
}

/// Restores an archive.
pub(crate) fn run(arguments: &RestoreArgs, output: Output) -> Result<(), Failure> {
    let was_there = arguments.folder.exists();
    let result = restore(arguments, output);
    if !was_there && (result.is_err() || arguments.dry_run) {
        // Removes the directory only if it was created here and is empty.
        let _ = fs::remove_dir(&arguments.folder);
    }
    result
}

fn restore(arguments: &RestoreArgs, output: Output) -> Result<(), Failure> {
    let failed = |path: &Path, error: io::Error| {
        Failure::Environment(format!("{}: {error}; nothing was restored", path.display()))
    };
    let folder = &arguments.folder;
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let folder = folder.canonicalize().map_err(|error| failed(folder, error))?;
    // In the target directory, to be on the same file system as most files.
    let staging = tempfile::Builder::new().prefix(".taktwerk-restore-").tempdir_in(&folder);
    let staging = staging.map_err(|error| failed(&folder, error))?;
    let Unpacked { manifest, configuration } = archive::read(&arguments.archive, staging.path())
        .map_err(|error| unreadable(&arguments.archive, &error))?;
    let name = file_name(&manifest.configuration).ok_or_else(|| {
        failed(&arguments.archive, io::Error::other("the configuration's name is not that of a file"))
    })?;
    let path = folder.join(name);
    if control::is_running(&path) {
        return Err(Failure::Usage(format!("a server runs with {}; stop it first", path.display())));
    }
    let config =
        ConfigFile::parse(&path, &configuration).map_err(|error| Failure::Usage(error.to_string()))?;
    let files = named_files(&config)?;
    let mut targets = Vec::new();
    for (index, entry) in manifest.files.iter().enumerate() {
        let (path, kind) = target(&config, &files, entry).ok_or_else(|| {
            let problem = format!("{} is not a file that its configuration names", entry.path.display());
            failed(&arguments.archive, io::Error::other(problem))
        })?;
        let staged = staging.path().join(index.to_string());
        targets.push(Target { staged, path, mode: mode(kind, entry) });
    }
    let staged = staging.path().join("configuration");
    fs::write(&staged, configuration).map_err(|error| failed(&staged, error))?;
    // The configuration is written last: without it, a server does not start with a partial installation.
    targets.push(Target { staged, path, mode: file::PUBLIC });
    refuse_outside(&targets, &folder, arguments.outside)?;
    let occupied = occupied(&config, &files, &targets);
    if let (Some(first), false) = (occupied.first(), arguments.force) {
        return Err(Failure::Usage(format!(
            "{} exists already{}; --force moves it aside",
            first.display(),
            match occupied.len() {
                1 => String::new(),
                count => format!(", and {} more", count - 1),
            }
        )));
    }
    if !arguments.dry_run {
        for path in &occupied {
            move_aside(path).map_err(|error| failed(path, error))?;
        }
        for target in &targets {
            install(target).map_err(|error| {
                let path = target.path.display();
                Failure::Environment(format!(
                    "{path}: {error}; the files before it are restored, it and the rest are not"
                ))
            })?;
        }
    }
    report(arguments, &targets, output)
}

/// The error for an unreadable archive.
fn unreadable(archive: &Path, error: &io::Error) -> Failure {
    let name = archive.display();
    Failure::Usage(match error.kind() {
        io::ErrorKind::NotFound => format!("{name}: the file does not exist; nothing was restored"),
        // Errors of the decompressor.
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            format!(
                "{name} is not an archive of `taktwerk backup`, or it is damaged: {error}; nothing was restored"
            )
        }
        _ => format!("{name}: {error}; nothing was restored"),
    })
}

/// A file name without directories.
fn file_name(name: &str) -> Option<&Path> {
    let path = Path::new(name);
    let mut components = path.components();
    (matches!(components.next(), Some(Component::Normal(_))) && components.next().is_none()).then_some(path)
}

/// The end of settings of files with secrets or states, which the program makes readable by their owner only.
const PRIVATE: [&str; 7] =
    ["users_file", "save_to", "alarms.file", "web.key", "password_file", "token_file", "headers_file"];

/// The permissions of a restored file: never more than the program itself would give. An archive may be forged.
fn mode(kind: FileKind, entry: &Entry) -> u32 {
    let is_key = entry.inner.as_ref().is_some_and(|inner| inner.iter().any(|part| part == "private"));
    let is_secret = PRIVATE.iter().any(|end| entry.setting.ends_with(end));
    let most = if is_key || is_secret || kind == FileKind::Database { 0o700 } else { 0o755 };
    entry.mode & most
}

/// The target of a file in the archive and its kind, if the configuration names it.
fn target(config: &ConfigFile, files: &[NamedFile], entry: &Entry) -> Option<(PathBuf, FileKind)> {
    let named = files.iter().find(|named| {
        named.named == entry.path
            && named.setting == entry.setting
            && named.kind.is_copied()
            && (named.kind == FileKind::Folder) == entry.inner.is_some()
    })?;
    let path = config.resolve(&named.named);
    let path = match &entry.inner {
        None => Some(path),
        Some(inner) => {
            let is_inside = inner.components().all(|component| matches!(component, Component::Normal(_)));
            (is_inside && inner.components().next().is_some()).then(|| path.join(inner))
        }
    };
    path.map(|path| (path, named.kind))
}

fn refuse_outside(targets: &[Target], folder: &Path, outside: bool) -> Result<(), Failure> {
    let is_inside = |path: &Path| {
        let has_parents = path.components().any(|component| component == Component::ParentDir);
        path.starts_with(folder) && !has_parents
    };
    match targets.iter().find(|target| !is_inside(&target.path)) {
        Some(target) if !outside => Err(Failure::Usage(format!(
            "the configuration names {}, which is not below {}; --outside restores it there",
            target.path.display(),
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// The existing files in the way: files, databases with their side files, and whole directories, so that no old
/// certificate stays trusted.
fn occupied(config: &ConfigFile, files: &[NamedFile], targets: &[Target]) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    for named in files {
        let path = config.resolve(&named.named);
        match named.kind {
            FileKind::Folder => drop(found.insert(path)),
            FileKind::Database => {
                for end in ["", "-wal", "-shm"] {
                    let mut name = path.clone().into_os_string();
                    name.push(end);
                    found.insert(name.into());
                }
            }
            FileKind::File | FileKind::Recording | FileKind::Program | FileKind::Queue | FileKind::Keys => {}
        }
    }
    let folders: Vec<PathBuf> = found.iter().cloned().collect();
    let loose = targets.iter().map(|target| &target.path);
    found.extend(loose.filter(|path| !folders.iter().any(|folder| path.starts_with(folder))).cloned());
    found.into_iter().filter(|path| path.symlink_metadata().is_ok()).collect()
}

/// Moves a file or directory aside, under the next free name.
fn move_aside(path: &Path) -> io::Result<()> {
    for number in 0u32.. {
        let mut name = path.as_os_str().to_owned();
        name.push(".before-restore");
        if number > 0 {
            name.push(format!("-{number}"));
        }
        if Path::new(&name).symlink_metadata().is_err() {
            return fs::rename(path, name);
        }
    }
    Ok(())
}

/// Moves a file to its target atomically.
fn install(target: &Target) -> io::Result<()> {
    let folder = target.path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let staged = tempfile::Builder::new().prefix(".taktwerk-restore-").tempfile_in(folder)?;
    io::copy(&mut File::open(&target.staged)?, &mut staged.as_file())?;
    staged.as_file().set_permissions(Permissions::from_mode(target.mode))?;
    staged.as_file().sync_all()?;
    staged.persist_noclobber(&target.path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

fn report(arguments: &RestoreArgs, targets: &[Target], output: Output) -> Result<(), Failure> {
    // Paths below the target directory are shown as the user named it, others in full.
    let real = arguments.folder.canonicalize().unwrap_or_else(|_| arguments.folder.clone());
    let shown = |path: &Path| match path.strip_prefix(&real) {
        Ok(inner) => arguments.folder.join(inner),
        Err(_) => path.to_owned(),
    };
    let paths: Vec<String> = targets.iter().map(|target| shown(&target.path).display().to_string()).collect();
    if output.is_json() {
        return output.document(&json!({ "Files": paths, "DryRun": arguments.dry_run }));
    }
    for path in &paths {
        output.text(path)?;
    }
    let what = if arguments.dry_run { "would be restored" } else { "are restored" };
    tell!(
        "{} files {what}; next: taktwerk config check {}",
        paths.len(),
        paths.last().map_or("", String::as_str)
    );
    Ok(())
}
