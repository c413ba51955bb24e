//! `cargo xtask dist`: builds everything that is distributed, in `target/dist`.
//!
//! For each processor: a Debian package, an archive with a static program, and a container image with the same program.
//! In addition, a bill of materials and the checksums. Each step is a module; [`trial`] installs and runs the results.

use crate::Failure;
use std::path::{Path, PathBuf};
use std::process::Command;

mod archive;
mod build;
mod image;
mod licences;
mod materials;
mod package;
mod stage;
mod symbols;
mod tools;
mod trial;

pub(crate) const USAGE: &str = "usage: cargo xtask dist [--machine x86_64|aarch64] [--no-trial]
       cargo xtask dist --development [--no-trial]

Makes packages, archives and container images in target/dist, and installs and runs those for this machine.
It needs cargo, rustup, Python 3 with venv, and, for the packages, dpkg.

  --machine NAME    only for this processor; may be given twice
  --development     package the program in target/debug instead of building: tests the packaging itself in a minute
  --no-trial        do not install what was made";

/// A supported processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Machine {
    X86_64,
    Aarch64,
}

impl Machine {
    const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// Its name in Rust targets and file names.
    const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Its name in containers and Debian.
    const fn architecture(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|machine| machine.name() == name)
    }

    /// The processor of this machine.
    fn own() -> Result<Self, Failure> {
        Self::named(std::env::consts::ARCH)
            .ok_or_else(|| format!("there are no packages for {}", std::env::consts::ARCH))
    }
}

/// The command line options.
struct Options {
    machines: Vec<Machine>,
    is_development: bool,
    has_trial: bool,
}

impl Options {
    fn parse(arguments: &[&str]) -> Result<Self, Failure> {
        let mut options = Self { machines: Vec::new(), is_development: false, has_trial: true };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match *argument {
                "--machine" => {
                    let name = arguments.next().ok_or("--machine needs a name: x86_64 or aarch64")?;
                    let machine = Machine::named(name)
                        .ok_or_else(|| format!("--machine {name}: only x86_64 and aarch64 are built for"))?;
                    options.machines.push(machine);
                }
                "--development" => options.is_development = true,
                "--no-trial" => options.has_trial = false,
                other => return Err(format!("unknown option {other}\n\n{USAGE}")),
            }
        }
        if options.is_development {
            if !options.machines.is_empty() {
                return Err("--development builds for this machine only: remove --machine".to_owned());
            }
            options.machines.push(Machine::own()?);
        } else if options.machines.is_empty() {
            options.machines.extend(Machine::ALL);
        }
        Ok(options)
    }
}

/// Data shared by the steps.
pub(crate) struct Place {
    /// The checkout.
    root: PathBuf,
    /// The output folder.
    output: PathBuf,
    /// The version of the workspace.
    version: String,
    /// Time of the last commit, in seconds since 1970: the time of all files in archives, so that the same sources give
    /// the same archives.
    time: u64,
}

impl Place {
    fn new(root: &Path) -> Result<Self, Failure> {
        let manifest = root.join("Cargo.toml");
        let text =
            std::fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
        let version = text
            .lines()
            .find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
            .ok_or_else(|| format!("{}: there is no line version = \"…\"", manifest.display()))?;
        let time = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(time) => time,
            Err(_) => captured(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root))?,
        };
        let time = time.trim();
        let time =
            time.parse().map_err(|_| format!("SOURCE_DATE_EPOCH or git's time {time:?} is not a number"))?;
        Ok(Self {
            root: root.to_owned(),
            output: root.join("target").join("dist"),
            version: version.to_owned(),
            time,
        })
    }

    /// The path of a result file, such as `taktwerk-0.1.0-x86_64-linux.tar.gz`.
    fn result(&self, rest: &str) -> PathBuf {
        self.output.join(format!("taktwerk-{}-{rest}", self.version))
    }
}

/// Builds the requested packages.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let options = Options::parse(arguments)?;
    let place = Place::new(root)?;
    // Remove results of earlier runs, which could be mistaken for new ones.
    let _ = std::fs::remove_dir_all(&place.output);
    std::fs::create_dir_all(&place.output).map_err(|error| format!("{}: {error}", place.output.display()))?;
    for machine in &options.machines {
        let programs = if options.is_development {
            build::development(&place)?
        } else {
            build::release(&place, *machine)?
        };
        let stage = stage::fill(&place, &programs)?;
        package::make(&place, &stage, &programs.dynamic, *machine)?;
        archive::make(&place, &stage, &programs.fixed, *machine)?;
        image::make(&place, &stage, &programs.fixed, *machine)?;
    }
    if !options.is_development {
        materials::make(&place)?;
    }
    sums(&place)?;
    if options.has_trial { trial::run(&place, options.is_development) } else { Ok(()) }
}

/// Writes the checksums of all results and prints them.
fn sums(place: &Place) -> Result<(), Failure> {
    let results = files(&place.output)?;
    let mut text = String::new();
    println!();
    for path in results {
        let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        text.push_str(&format!("{}  {name}\n", crate::inputs::digest(&bytes)));
        #[allow(clippy::cast_precision_loss)] // megabytes for people
        let size = bytes.len() as f64 / 1e6;
        println!("{size:8.1} MB  {name}");
    }
    write(&place.output.join("SHA256SUMS"), text.as_bytes())
}

/// The files of a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    Ok(files)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs a program with visible output.
fn shown(command: &mut Command) -> Result<(), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("{name} does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} ended with {status}")) }
}

/// The standard output of a program.
fn captured(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name} does not start: {error}"))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name} ended with {}: {}", output.status, reason.trim()));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{name} wrote something that is no UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let options = Options::parse(&[]).unwrap();
        assert!(options.machines == Machine::ALL && options.has_trial && !options.is_development);
        let options = Options::parse(&["--machine", "aarch64", "--no-trial"]).unwrap();
        assert!(options.machines == [Machine::Aarch64] && !options.has_trial);
        for wrong in [
            &["--machine"][..],
            &["--machine", "sparc"],
            &["--all"],
            &["--development", "--machine", "x86_64"],
        ] {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_place_knows_version_and_time() {
        let place = Place::new(&crate::workspace_root()).unwrap();
        assert_eq!(place.version, env!("CARGO_PKG_VERSION"));
        assert!(place.time > 1_700_000_000);
        assert!(place.result("x").ends_with(format!("target/dist/taktwerk-{}-x", place.version)));
    }
}
