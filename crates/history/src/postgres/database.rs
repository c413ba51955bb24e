//! A PostgreSQL server of the test's own, for this crate's tests and those of the gateway, which take this file. Without the
//! programs `initdb` and `postgres` there is none, or the test fails if TAKTWERK_TEST_POSTGRES is "required". PostgreSQL does
//! not run as root: then it runs as the user of its package, or as nobody.

#![allow(dead_code, clippy::print_stderr)] // each test uses some of it; a test that is skipped says why

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A database server in a folder of its own, on a Unix socket there.
pub(crate) struct Database {
    folder: tempfile::TempDir,
    child: Child,
    owner: Option<(u32, u32)>,
    /// Where it also listens, with TLS only.
    port: Option<u16>,
}

/// Where the programs are; Debian keeps them out of the search path.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = std::env::split_paths(&path).chain(versions.map(|version| version.path().join("bin")));
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// The user and group to run as, if this is root.
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

/// Without a server there is nothing to test, which may be all right or not.
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
    /// Starts one. It takes connections a moment later.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(None)
    }

    /// Starts one that also listens on a port of this machine, with TLS: its number, the certificate and its key, as PEM.
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
        command.spawn().unwrap()
    }

    /// Where its socket is.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What clients connect to.
    pub(crate) fn url(&self) -> String {
        let port = self.port.map_or_else(String::new, |port| format!(" port={port}"));
        format!("host={} user=taktwerk dbname=postgres{port}", self.folder.path().display())
    }

    /// Ends it as a loss of power would: with the processes that serve connections, which would finish what they do first.
    pub(crate) fn kill(&mut self) {
        let pid = self.child.id();
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        self.child.kill().unwrap();
        // Some end by themselves when they find that they have no parent.
        let _ = Command::new("kill")
            .arg("-KILL")
            .args(children.split_whitespace())
            .stderr(Stdio::null())
            .status();
        self.child.wait().unwrap();
    }

    /// Starts it again after [`Self::kill`].
    pub(crate) fn go_on(&mut self) {
        // What a server that was killed leaves behind.
        std::fs::remove_file(self.folder.path().join("data/postmaster.pid")).ok();
        self.child = Self::run(&program("postgres").unwrap(), self.folder.path(), self.owner, self.port);
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The postmaster takes its children with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
