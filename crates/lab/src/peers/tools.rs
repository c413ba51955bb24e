//! What has to be on a machine in order to install and run peers.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A tool, how to see that it is there, and how to get it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What shows that it is there; the first word is the program.
    check: &'static [&'static str],
    /// The command that installs it on Debian.
    pub mend: &'static str,
}

impl Tool {
    /// Whether it is there.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let Some((program, arguments)) = self.check.split_first() else { return false };
        if arguments.is_empty() {
            return which(program).is_some();
        }
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }
}

/// The program of this name on the search path, or where daemons are.
#[must_use]
pub fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let daemons = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(daemons)
        .map(|folder| folder.join(program))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

pub(super) const CARGO: Tool =
    Tool { name: "cargo", check: &["cargo"], mend: "install Rust from https://rustup.rs" };
pub(super) const CMAKE: Tool = Tool { name: "cmake", check: &["cmake"], mend: "apt-get install cmake" };
pub(super) const COMPILER: Tool =
    Tool { name: "a C compiler", check: &["cc"], mend: "apt-get install gcc libc6-dev" };
pub(super) const MAKE: Tool = Tool { name: "make", check: &["make"], mend: "apt-get install make" };
pub(super) const OPENSSL: Tool = Tool {
    name: "the OpenSSL headers",
    check: &["sh", "-c", "echo '#include <openssl/ssl.h>' | cc -E -x c -"],
    mend: "apt-get install libssl-dev",
};
pub(super) const PYTHON: Tool = Tool {
    name: "python3 with venv",
    check: &["python3", "-c", "import ensurepip, venv"],
    mend: "apt-get install python3 python3-venv",
};
pub(super) const MAVEN: Tool = Tool { name: "mvn", check: &["mvn"], mend: "apt-get install maven" };
pub(super) const JAVAC: Tool =
    Tool { name: "javac", check: &["javac"], mend: "apt-get install openjdk-17-jdk-headless" };
pub(super) const NODE: Tool = Tool { name: "node", check: &["node"], mend: "apt-get install nodejs" };
pub(super) const NPM: Tool = Tool { name: "npm", check: &["npm"], mend: "apt-get install npm" };
pub(super) const GO: Tool = Tool { name: "go", check: &["go"], mend: "apt-get install golang-go" };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_found_or_not() {
        assert!(which("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(which("no-such-program-here"), None);
        let check = |check| Tool { name: "x", check, mend: "y" }.is_there();
        assert!(check(&["sh"]) && check(&["sh", "-c", "exit 0"]));
        assert!(!check(&["sh", "-c", "exit 1"]) && !check(&["no-such-program-here"]) && !check(&[]));
    }
}
