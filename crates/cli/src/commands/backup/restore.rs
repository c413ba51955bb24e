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
        let path = target(&config, &files, entry).ok_or_else(|| {
            let problem = format!("{} is not a file that its configuration names", entry.path.display());
            failed(&arguments.archive, io::Error::other(problem))
        })?;
        let staged = staging.path().join(index.to_string());
        let mode = mode(&config, &files, (entry, &path));
        targets.push(Target { staged, path, mode });
    }
    let staged = staging.path().join("configuration");
    fs::write(&staged, configuration).map_err(|error| failed(&staged, error))?;
    // The configuration is written last: without it, a server does not start with a partial installation.
    targets.push(Target { staged, path, mode: file::PUBLIC });
    refuse_outside(&targets, &folder, arguments.outside)?;
    let occupied = occupied(&config, &files, &targets, &folder);
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
        move_all_aside(&occupied).map_err(|(path, error)| failed(&path, error))?;
        for target in &targets {
            install(target).map_err(|error| {
                let path = target.path.display();
                Failure::Environment(format!(
                    "{path}: {error}; the files before it are restored, it and the rest are not"
                ))
            })?;
        }
    }
    let folders = required_folders(&config, &files, &targets);
    if !arguments.dry_run {
        for (path, _) in folders.iter().filter(|(path, _)| is_inside(path, &folder)) {
            fs::create_dir_all(path).map_err(|error| {
                let path = path.display();
                Failure::Environment(format!("{path}: {error}; all files are restored; create this folder"))
            })?;
        }
    }
    report(arguments, (&targets, &folders), output)
}

/// Folders without which a server does not start, and of which the archive has no files.
fn required_folders(
    config: &ConfigFile,
    files: &[NamedFile],
    targets: &[Target],
) -> Vec<(PathBuf, FileKind)> {
    let named = files.iter().filter(|named| named.is_required_folder());
    let paths = named.map(|named| (config.resolve(&named.named), named.kind));
    paths
        .filter(|(path, _)| !path.is_dir() && !targets.iter().any(|target| target.path.starts_with(path)))
        .collect()
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

/// The permissions of a restored file: never more than the program itself would give. An archive may be forged.
fn mode(config: &ConfigFile, files: &[NamedFile], (entry, path): (&Entry, &Path)) -> u32 {
    let is_key = entry.inner.as_ref().is_some_and(|inner| inner.iter().any(|part| part == "private"));
    // Several settings may name one file, or a file and its directory.
    let is_private = files.iter().any(|named| {
        matches!(named.kind, FileKind::Private | FileKind::Database) && config.resolve(&named.named) == path
    });
    entry.mode & if is_key || is_private { 0o700 } else { 0o755 }
}

/// The target of a file in the archive, if the configuration names it.
fn target(config: &ConfigFile, files: &[NamedFile], entry: &Entry) -> Option<PathBuf> {
    let named = files.iter().find(|named| {
        // Whether it names a directory is only known if that exists.
        let is_either = named.setting == "server.nodesets";
        let is_folder = named.kind == FileKind::Folder;
        named.named == entry.path
            && named.setting == entry.setting
            && named.kind.is_copied()
            && (is_either || is_folder == entry.inner.is_some())
    })?;
    let path = config.resolve(&named.named);
    match &entry.inner {
        None => Some(path),
        Some(inner) => {
            let is_inside = inner.components().all(|component| matches!(component, Component::Normal(_)));
            (is_inside && inner.components().next().is_some()).then(|| path.join(inner))
        }
    }
}

/// Whether a path is below a directory.
fn is_inside(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder) && !path.components().any(|component| component == Component::ParentDir)
}

fn refuse_outside(targets: &[Target], folder: &Path, outside: bool) -> Result<(), Failure> {
    match targets.iter().find(|target| !is_inside(&target.path, folder)) {
        Some(target) if !outside => Err(Failure::Usage(format!(
            "the configuration names {}, which is not below {}; --outside restores it there",
            target.path.display(),
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// The existing files in the way: files, databases with their side files, and whole directories, so that no old
/// certificate stays trusted. Outside of `folder` only those of which the archive has files: it may name any directory.
fn occupied(config: &ConfigFile, files: &[NamedFile], targets: &[Target], folder: &Path) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    for named in files {
        let path = config.resolve(&named.named);
        if !is_inside(&path, folder) && !targets.iter().any(|target| target.path.starts_with(&path)) {
            continue;
        }
        match named.kind {
            FileKind::Folder => drop(found.insert(path)),
            FileKind::Database => {
                for end in ["", "-wal", "-shm"] {
                    let mut name = path.clone().into_os_string();
                    name.push(end);
                    found.insert(name.into());
                }
            }
            FileKind::File
            | FileKind::Private
            | FileKind::Recording
            | FileKind::Program
            | FileKind::Queue
            | FileKind::Share
            | FileKind::Data
            | FileKind::Record
            | FileKind::Keys => {}
        }
    }
    let folders: Vec<PathBuf> = found.iter().cloned().collect();
    let loose = targets.iter().map(|target| &target.path);
    found.extend(loose.filter(|path| !folders.iter().any(|folder| path.starts_with(folder))).cloned());
    found.into_iter().filter(|path| path.symlink_metadata().is_ok()).collect()
}

/// Moves all files and directories aside, or none.
fn move_all_aside(paths: &[PathBuf]) -> Result<(), (PathBuf, io::Error)> {
    let mut moved: Vec<(&PathBuf, PathBuf)> = Vec::new();
    for path in paths {
        // A directory below one that was moved is not here any more.
        if path.symlink_metadata().is_err() {
            continue;
        }
        match move_aside(path) {
            Ok(aside) => moved.push((path, aside)),
            Err(error) => {
                for (path, aside) in moved.into_iter().rev() {
                    fs::rename(&aside, path).map_err(|error| (aside, error))?;
                }
                return Err((path.clone(), error));
            }
        }
    }
    Ok(())
}

/// Moves a file or directory aside, under the next free name. Returns that name.
fn move_aside(path: &Path) -> io::Result<PathBuf> {
    for number in 0u32.. {
        let mut name = path.as_os_str().to_owned();
        name.push(".before-restore");
        if number > 0 {
            name.push(format!("-{number}"));
        }
        if Path::new(&name).symlink_metadata().is_err() {
            fs::rename(path, &name)?;
            return Ok(name.into());
        }
    }
    Err(io::Error::other("there are too many copies of it"))
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

fn report(
    arguments: &RestoreArgs,
    (targets, folders): (&[Target], &[(PathBuf, FileKind)]),
    output: Output,
) -> Result<(), Failure> {
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
    for (path, kind) in folders {
        let content = match kind {
            FileKind::Share => ": the archive does not have its content; copy it from the old folder",
            _ => "",
        };
        // Those elsewhere may belong to other programs.
        match (is_inside(path, &real), content) {
            (true, "") => {}
            (true, _) => tell!("{} is empty{content}", shown(path).display()),
            (false, _) => tell!("{} must be created{content}", shown(path).display()),
        }
    }
    let what = if arguments.dry_run { "would be restored" } else { "are restored" };
    tell!(
        "{} files {what}; next: taktwerk config check {}",
        paths.len(),
        paths.last().map_or("", String::as_str)
    );
    Ok(())
}
