//! Installs peers from their registries.

use super::catalogue::{Peer, Recipe};
use super::sources;
use super::tools::{self, which};
use crate::orphans;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time for an installer to end after a signal.
const GRACE: Duration = Duration::from_secs(5);
/// Interval for checking whether it has ended or should be stopped.
const LOOK: Duration = Duration::from_millis(20);

/// Installation state of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum State {
    /// Installed in this version.
    Installed {
        /// The version; system packages report it themselves.
        version: String,
    },
    /// Not installed; all required tools are available.
    NotInstalled {
        /// The command that installs it.
        command: String,
    },
    /// Built from other sources than the current ones.
    Outdated {
        /// The command that rebuilds it.
        command: String,
    },
    /// Required tools are missing.
    Missing {
        /// The tools.
        tools: Vec<String>,
        /// The command that installs them.
        command: String,
    },
}

/// A peer could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Required tools are missing.
    #[error("{peer} needs {}: {command}", tools.join(" and "))]
    Missing {
        /// The peer.
        peer: &'static str,
        /// The tools.
        tools: Vec<String>,
        /// The command that installs them.
        command: String,
    },
    /// A step failed.
    #[error("installing {peer} failed at `{step}`; the last lines of {log}:\n{tail}")]
    Step {
        /// The peer.
        peer: &'static str,
        /// The command.
        step: String,
        /// The log file with the complete output.
        log: String,
        /// The last lines of the output.
        tail: String,
    },
    /// It was stopped on request.
    #[error("installing {peer} was stopped; the next attempt starts from the beginning")]
    Stopped {
        /// The peer.
        peer: &'static str,
    },
    /// A file could not be written or read.
    #[error("installing {peer}: {path}: {source}")]
    File {
        /// The peer.
        peer: &'static str,
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
}

/// The installation state of a peer.
#[must_use]
pub fn state(peer: &Peer, directory: &Path) -> State {
    if let Recipe::Debian { package, program } = peer.recipe {
        return match which(program) {
            Some(path) => State::Installed { version: own_version(&path) },
            None => State::NotInstalled { command: format!("apt-get install {package}") },
        };
    }
    let command = format!("taktwerk lab peers install {}", peer.name);
    let stamp = fs::read_to_string(stamp(peer, directory));
    if stamp.as_ref().is_ok_and(|text| *text == expected_stamp(peer)) {
        return State::Installed { version: peer.version.to_owned() };
    }
    let missing: Vec<_> = peer.needs.iter().copied().filter(|tool| !tool.is_there()).collect();
    if !missing.is_empty() {
        return State::Missing {
            tools: missing.iter().map(|tool| tool.name.to_owned()).collect(),
            command: tools::mend(&missing),
        };
    }
    if stamp.is_ok() { State::Outdated { command } } else { State::NotInstalled { command } }
}

/// The first number with a dot in a program's version output.
fn own_version(program: &Path) -> String {
    let output = Command::new(program).arg("-h").stdin(Stdio::null()).output();
    let said = output.map(|it| String::from_utf8_lossy(&it.stdout).into_owned()).unwrap_or_default();
    said.split_whitespace()
        .find(|word| word.contains('.') && word.starts_with(|it: char| it.is_ascii_digit()))
        .unwrap_or("unknown")
        .to_owned()
}

fn folder(recipe: Recipe) -> &'static str {
    match recipe {
        Recipe::Script { folder, .. }
        | Recipe::Python { folder }
        | Recipe::Maven { folder }
        | Recipe::Npm { folder }
        | Recipe::Go { folder, .. }
        | Recipe::Cargo { folder, .. } => folder,
        Recipe::Debian { package, .. } => package,
    }
}

fn stamp(peer: &Peer, directory: &Path) -> PathBuf {
    directory.join(peer.name).join("lab-stamp")
}

fn expected_stamp(peer: &Peer) -> String {
    format!("{} {:016x}\n", peer.version, sources::fingerprint(folder(peer.recipe)))
}

/// Installs a peer. Does nothing if it is installed. Restarts an interrupted installation from the beginning.
///
/// # Errors
/// If a tool is missing or a step fails; the output is in a log file next to the peer.
pub fn install(peer: &'static Peer, directory: &Path) -> Result<(), InstallError> {
    install_unless(peer, directory, None)
}

/// Like [`install`], but stops when `stop` is set.
///
/// # Errors
/// As [`install`], and [`InstallError::Stopped`].
pub fn install_unless(
    peer: &'static Peer,
    directory: &Path,
    stop: Option<&AtomicBool>,
) -> Result<(), InstallError> {
    let installing = Installing { peer, directory, home: directory.join(peer.name), stop };
    match state(peer, directory) {
        State::Installed { .. } => return installing.write_sources(),
        State::Missing { tools, command } => {
            return Err(InstallError::Missing { peer: peer.name, tools, command });
        }
        State::NotInstalled { .. } | State::Outdated { .. } => {}
    }
    // An installer of a killed laboratory may still write to the directory that is about to be cleared.
    let _ = orphans::clean();
    installing.run()?;
    if matches!(peer.recipe, Recipe::Debian { .. }) {
        return Ok(());
    }
    let stamp = stamp(peer, directory);
    fs::write(&stamp, expected_stamp(peer)).map_err(|source| installing.file(&stamp, source))
}

struct Installing<'a> {
    peer: &'static Peer,
    directory: &'a Path,
    home: PathBuf,
    /// Stops the installation when set.
    stop: Option<&'a AtomicBool>,
}

impl Installing<'_> {
    fn run(&self) -> Result<(), InstallError> {
        self.write_sources()?;
        let source = |name: &str| source(self.directory, name);
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let home = text(&self.home);
        match self.peer.recipe {
            Recipe::Script { folder, script } => {
                // npm keeps its own state and rebuilds what has changed.
                self.create(&self.home)?;
                self.step("sh", &[&text(&source(folder).join(script)), &home], self.directory)
            }
            Recipe::Python { folder } => {
                self.fresh()?;
                self.step("python3", &["-m", "venv", &home], self.directory)?;
                let requirements = text(&source(folder).join("requirements.txt"));
                let python = text(&self.home.join("bin/python"));
                self.step(
                    &python,
                    &["-m", "pip", "install", "--quiet", "--requirement", &requirements],
                    &self.home,
                )
            }
            Recipe::Maven { folder } => {
                self.fresh()?;
                let pom = text(&source(folder).join("pom.xml"));
                let (jars, classes) = (text(&self.home.join("lib")), text(&self.home.join("classes")));
                let output = format!("-DoutputDirectory={jars}");
                self.step(
                    "mvn",
                    &["-q", "-B", "-f", &pom, "dependency:copy-dependencies", &output],
                    &self.home,
                )?;
                let java = text(&source(folder).join("src/MiloServer.java"));
                self.step("javac", &["-d", &classes, "-cp", &format!("{jars}/*"), &java], &self.home)
            }
            Recipe::Npm { folder } => {
                self.fresh()?;
                for file in ["package.json", "package-lock.json", "server.js"] {
                    let (from, to) = (source(folder).join(file), self.home.join(file));
                    fs::copy(&from, &to).map_err(|error| self.file(&to, error))?;
                }
                self.step("npm", &["ci", "--no-audit", "--no-fund", "--loglevel=error"], &self.home)
            }
            Recipe::Go { folder, program } => {
                self.fresh()?;
                let output = text(&self.home.join(program));
                self.step("go", &["build", "-trimpath", "-o", &output, "."], &source(folder))
            }
            Recipe::Cargo { folder, program } => {
                self.create(&self.home)?;
                let manifest = text(&source(folder).join("Cargo.toml"));
                let target = text(&self.home.join("build"));
                let build =
                    ["build", "--release", "--locked", "--manifest-path", &manifest, "--target-dir", &target];
                self.step("cargo", &build, self.directory)?;
                let (built, kept) = (self.home.join("build/release").join(program), self.home.join(program));
                fs::copy(&built, &kept).map_err(|error| self.file(&kept, error))?;
                // The build directory is a hundred times the size of the result.
                fs::remove_dir_all(self.home.join("build")).map_err(|error| self.file(&self.home, error))
            }
            Recipe::Debian { package, .. } => {
                let options = ["install", "--yes", "--no-install-recommends", package];
                if !rustix::process::geteuid().is_root() || which("apt-get").is_none() {
                    return Err(InstallError::Missing {
                        peer: self.peer.name,
                        tools: vec![format!("the package {package}")],
                        command: format!("apt-get install {package}"),
                    });
                }
                match self.step("apt-get", &options, self.directory) {
                    Err(InstallError::Step { .. }) => {
                        self.step("apt-get", &["update"], self.directory)?;
                        self.step("apt-get", &options, self.directory)
                    }
                    done => done,
                }
            }
        }
    }

    /// Writes our programs next to the peers, as embedded in this version.
    fn write_sources(&self) -> Result<(), InstallError> {
        let folder = folder(self.peer.recipe);
        // The C peer's script also builds the TCP floor.
        let more = if folder == "open62541" { "floor" } else { folder };
        for (path, text) in sources::of(folder).chain(sources::of(more)) {
            let path = source(self.directory, path);
            if let Some(parent) = path.parent() {
                self.create(parent)?;
            }
            // Unchanged files keep their modification time, so that compilers do not rebuild them.
            if fs::read_to_string(&path).is_ok_and(|there| there == *text) {
                continue;
            }
            fs::write(&path, text).map_err(|source| self.file(&path, source))?;
        }
        Ok(())
    }

    /// Creates an empty directory, so that an interrupted attempt is not mistaken for a complete one.
    fn fresh(&self) -> Result<(), InstallError> {
        match fs::remove_dir_all(&self.home) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(self.file(&self.home, error)),
        }
        self.create(&self.home)
    }

    fn create(&self, folder: &Path) -> Result<(), InstallError> {
        fs::create_dir_all(folder).map_err(|source| self.file(folder, source))
    }

    fn file(&self, path: &Path, source: io::Error) -> InstallError {
        InstallError::File { peer: self.peer.name, path: path.display().to_string(), source }
    }

    /// Runs a command and logs its output. If the laboratory is killed, the next one ends the command.
    fn step(&self, program: &str, arguments: &[&str], directory: &Path) -> Result<(), InstallError> {
        self.create(self.directory)?;
        let log = self.directory.join(format!("{}.log", self.peer.name));
        let open = || fs::File::options().create(true).append(true).open(&log);
        let (out, errors) = match (open(), open()) {
            (Ok(out), Ok(errors)) => (out, errors),
            (Err(error), _) | (_, Err(error)) => return Err(self.file(&log, error)),
        };
        let started = Command::new(program)
            .args(arguments)
            .current_dir(directory)
            .env_remove("CARGO_TARGET_DIR")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env(orphans::OWNER, orphans::owner())
            // A separate process group, because installers start compilers and other programs.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(errors)
            .spawn();
        let status = match started.and_then(|child| self.wait(child)) {
            Ok(None) => return Err(InstallError::Stopped { peer: self.peer.name }),
            Ok(Some(status)) => Ok(status),
            Err(error) => Err(error),
        };
        if status.as_ref().is_ok_and(|status| status.success()) {
            return Ok(());
        }
        let said = fs::read(&log).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let mut tail: Vec<&str> = said.lines().rev().take(12).collect();
        tail.reverse();
        let mut tail = tail.join("\n");
        if let Err(error) = status {
            tail = format!("{tail}\n{error}");
        }
        Err(InstallError::Step {
            peer: self.peer.name,
            step: format!("{program} {}", arguments.join(" ")),
            log: log.display().to_string(),
            tail,
        })
    }
}

impl Installing<'_> {
    /// Waits for a command to end; `None` if it was stopped together with all its children.
    fn wait(&self, mut child: Child) -> io::Result<Option<ExitStatus>> {
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let tell = |signal: Signal| {
            if let Some(group) = group {
                // The group may have ended in the meantime.
                let _ = kill_process_group(group, signal);
            }
        };
        while !self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            thread::sleep(LOOK);
        }
        tell(Signal::TERM);
        let end = Instant::now() + GRACE;
        while child.try_wait()?.is_none() && Instant::now() < end {
            thread::sleep(LOOK);
        }
        // Even if the first process has ended, others of the group may ignore the first signal.
        tell(Signal::KILL);
        child.wait()?;
        Ok(None)
    }
}

/// Path at which one of our files is written.
pub(super) fn source(directory: &Path, path: &str) -> PathBuf {
    directory.join("src").join(path)
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;

    fn installing<'a>(directory: &'a Path, stop: &'a AtomicBool) -> Installing<'a> {
        let peer = find("gopcua").unwrap();
        Installing { peer, directory, home: directory.join(peer.name), stop: Some(stop) }
    }

    /// Number of processes whose command line contains a text.
    fn processes(text: &str) -> usize {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines.filter(|line| String::from_utf8_lossy(line).contains(text)).count()
    }

    #[test]
    fn stopped_steps_end_with_all_their_children() {
        let place = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let one = installing(place.path(), &stop);
        one.step("sh", &["-c", "echo \"$TAKTWERK_LAB_OWNER\"; exit 0"], place.path()).unwrap();
        let said = fs::read_to_string(place.path().join("gopcua.log")).unwrap();
        assert_eq!(said.trim(), orphans::owner());
        let failed = one.step("sh", &["-c", "echo no network; exit 3"], place.path()).unwrap_err();
        assert!(
            matches!(&failed, InstallError::Step { tail, .. } if tail.contains("no network")),
            "{failed}"
        );
        // A unique name, as an argument of a child that ignores SIGTERM.
        let mark = place.path().display().to_string();
        let script = format!("sh -c 'trap \"\" TERM; touch here; sleep 300; : {mark}' & wait");
        let stopped = thread::scope(|scope| {
            let step = scope.spawn(|| one.step("sh", &["-c", &script], place.path()));
            while !place.path().join("here").exists() {
                thread::sleep(LOOK);
            }
            stop.store(true, Ordering::Relaxed);
            step.join().unwrap()
        });
        assert!(matches!(stopped, Err(InstallError::Stopped { peer: "gopcua" })), "{stopped:?}");
        // A killed process remains until its parent waits for it, but its command line disappears almost at once.
        let end = Instant::now() + GRACE;
        while processes(&mark) > 0 {
            assert!(Instant::now() < end, "a process still runs");
            thread::sleep(LOOK);
        }
    }

    #[test]
    fn installers_of_killed_laboratories_end_before_their_directory_is_cleared() {
        let place = tempfile::tempdir().unwrap();
        let gone = orphans::tests::nobody().to_string();
        let mut left = Command::new("/bin/sleep").arg("300").env(orphans::OWNER, gone).spawn().unwrap();
        // The kernel writes the environment when the process has executed the other program.
        let line = format!("/proc/{}/cmdline", left.id());
        while !fs::read(&line).unwrap().starts_with(b"/bin/sleep") && left.try_wait().unwrap().is_none() {
            thread::sleep(LOOK);
        }
        let stop = AtomicBool::new(true);
        // The result is "stopped" or "missing tools", depending on this machine; tests install nothing.
        let result = install_unless(find("asyncua").unwrap(), place.path(), Some(&stop));
        match result {
            Err(InstallError::Stopped { .. }) => assert!(left.try_wait().unwrap().is_some()),
            Err(InstallError::Missing { .. }) => left.kill().unwrap(),
            other => panic!("{other:?}"),
        }
        left.wait().unwrap();
    }
}
