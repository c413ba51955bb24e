//! Starts a PostgreSQL server for tests of this crate and of the gateway, which includes this file. Tests are skipped if the
//! programs `initdb` and `postgres` are missing, or fail if TAKTWERK_TEST_POSTGRES is "required". PostgreSQL refuses to run as
//! root; under root it runs as the user of its package, or as `nobody`.

#![allow(dead_code, clippy::print_stderr)] // each test uses some of it; a test that is skipped says why

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A database server in its own directory, reached through a Unix socket there.
pub(crate) struct Database {
    folder: tempfile::TempDir,
    child: Child,
    owner: Option<(u32, u32)>,
    /// The TCP port on which it also listens, with TLS only.
    port: Option<u16>,
}

/// The path of a program. Debian keeps these programs out of the search path.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = std::env::split_paths(&path).chain(versions.map(|version| version.path().join("bin")));
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// The user and group for the server, if the tests run as root.
fn owner(folder: &Path) -> Option<(u32, u32)> {
    if folder.metadata().unwrap().uid() != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = users.lines().find(|line| line.starts_with("postgres:"));
    let ids: Vec<u32> = user.map_or_else(Vec::new, |line| {
        line.split(':').skip(2).take(2).filter_map(|id| id.parse().ok()).collect()
    });
    Some(match ids.as_slice() {
        [user, group] => (*user, *group),
        _ => (65_534, 65_534),
    })
}

/// Skips the test, or fails if a database is required.
fn skipped(why: &str) -> Option<Database> {
    assert!(std::env::var_os("TAKTWERK_TEST_POSTGRES").is_none_or(|wish| wish != "required"), "{why}");
    eprintln!("skipped: {why}");
    None
}

fn command(program: &Path, owner: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    if let Some((user, group)) = owner {
        command.uid(user).gid(group).current_dir("/");
    }
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

impl Database {
    /// Starts a server. It accepts connections a moment later.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(None)
    }

    /// Starts a server that also listens on a local TCP port with TLS. Certificate and key are PEM.
    pub(crate) fn start_with_tls(port: u16, certificate: &str, key: &str) -> Option<Self> {
        Self::start_with(Some((port, certificate, key)))
    }

    fn start_with(tls: Option<(u16, &str, &str)>) -> Option<Self> {
        let (Some(initdb), Some(postgres)) = (program("initdb"), program("postgres")) else {
            return skipped("initdb and postgres are not installed (apt install postgresql)");
        };
        let folder = tempfile::tempdir().unwrap();
        let owner = owner(folder.path());
        if let Some((user, group)) = owner {
            chown(folder.path(), Some(user), Some(group)).unwrap();
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let made = command(&initdb, owner)
            .args(["-A", "trust", "-U", "taktwerk", "--no-sync", "-E", "UTF8", "-D"])
            .arg(folder.path().join("data"))
            .status();
        if !made.is_ok_and(|status| status.success()) {
            return skipped("initdb fails here");
        }
        if let Some((_, certificate, key)) = tls {
            for (name, text) in [("server.crt", certificate), ("server.key", key)] {
                let file = folder.path().join("data").join(name);
                std::fs::write(&file, text).unwrap();
                std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
                if let Some((user, group)) = owner {
                    chown(&file, Some(user), Some(group)).unwrap();
                }
            }
        }
        let port = tls.map(|(port, ..)| port);
        let child = Self::run(&postgres, folder.path(), owner, port);
        Some(Self { folder, child, owner, port })
    }

    fn run(postgres: &Path, folder: &Path, owner: Option<(u32, u32)>, port: Option<u16>) -> Child {
        let mut command = command(postgres, owner);
        command.arg("-D").arg(folder.join("data")).arg("-k").arg(folder).arg("-F");
        match port {
            Some(port) => command.args(["-h", "127.0.0.1", "-c", "ssl=on", "-p", &port.to_string()]),
            None => command.args(["-h", ""]),
        };
        // With TimescaleDB if it is installed: its tests are skipped otherwise.
        let config = postgres.canonicalize().unwrap().with_file_name("pg_config");
        let libraries = Command::new(config).arg("--pkglibdir").output();
        let libraries = libraries.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        if libraries.is_ok_and(|libraries| Path::new(&libraries).join("timescaledb.so").is_file()) {
            command.args(["-c", "shared_preload_libraries=timescaledb"]);
            command.args(["-c", "timescaledb.telemetry_level=off"]);
        }
        command.spawn().unwrap()
    }

    /// The directory of its socket.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The URL for clients.
    pub(crate) fn url(&self) -> String {
        let port = self.port.map_or_else(String::new, |port| format!(" port={port}"));
        format!("host={} user=taktwerk dbname=postgres{port}", self.folder.path().display())
    }

    /// Simulates a power failure: kills the processes that serve connections too, which would otherwise finish their work.
    pub(crate) fn kill(&mut self) {
        let pid = self.child.id();
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        self.child.kill().unwrap();
        // Some exit by themselves when their parent is gone.
        let _ = Command::new("kill")
            .arg("-KILL")
            .args(children.split_whitespace())
            .stderr(Stdio::null())
            .status();
        self.child.wait().unwrap();
    }

    /// Stops all processes of the server, or lets them go on: a database that hangs.
    pub(crate) fn freeze(&self, is_frozen: bool) {
        let pid = self.child.id().to_string();
        let signal = if is_frozen { "-STOP" } else { "-CONT" };
        let send = |pid: &str| {
            Command::new("kill").args([signal, pid]).stderr(Stdio::null()).status().unwrap().success()
        };
        // The parent first, so that it starts no others.
        assert!(send(&pid));
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        for child in children.split_whitespace() {
            // It may just have ended.
            assert!(send(child) || !std::path::Path::new("/proc").join(child).exists(), "{child}");
        }
    }

    /// Starts the server again if it has ended: processes of a killed one can still have its memory.
    pub(crate) fn start_if_ended(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            self.go_on();
        }
    }

    /// Starts the server again after [`Self::kill`].
    pub(crate) fn go_on(&mut self) {
        // The killed server left its lock files. A process with its number would keep a new one from starting.
        let port = self.port.unwrap_or(5432);
        for left in ["data/postmaster.pid".to_owned(), format!(".s.PGSQL.{port}.lock")] {
            std::fs::remove_file(self.folder.path().join(left)).ok();
        }
        self.child = Self::run(&program("postgres").unwrap(), self.folder.path(), self.owner, self.port);
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The postmaster ends its child processes.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
