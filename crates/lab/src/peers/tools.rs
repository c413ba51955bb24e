//! Tools required to install and run peers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A tool, how to detect it, and how to install it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Command that succeeds if the tool is available; the first word is the program.
    check: &'static [&'static str],
    from: Origin,
}

/// Source of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Debian packages.
    Debian(&'static [&'static str]),
    /// Name and website, because Debian's version is too old.
    Site(&'static str),
}

/// How to install these tools on Debian: one shell command; other sources follow in a comment.
#[must_use]
pub fn mend(tools: &[Tool]) -> String {
    let (mut packages, mut sites) = (BTreeSet::new(), BTreeSet::new());
    for tool in tools {
        match tool.from {
            Origin::Debian(names) => packages.extend(names),
            Origin::Site(what) => _ = sites.insert(what),
        }
    }
    let sites = sites.into_iter().collect::<Vec<_>>().join(", ");
    let packages = packages.into_iter().copied().collect::<Vec<&str>>().join(" ");
    match (packages.is_empty(), sites.is_empty()) {
        (true, _) => sites,
        (false, true) => format!("apt-get install {packages}"),
        (false, false) => format!("apt-get install {packages}  # and {sites}"),
    }
}

impl Tool {
    /// Whether the tool is available.
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

/// Finds a program on the search path or in the directories of daemons.
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
    Tool { name: "cargo", check: &["cargo"], from: Origin::Site("Rust from https://rustup.rs") };
pub(super) const CMAKE: Tool = Tool { name: "cmake", check: &["cmake"], from: Origin::Debian(&["cmake"]) };
pub(super) const COMPILER: Tool =
    Tool { name: "a C compiler", check: &["cc"], from: Origin::Debian(&["gcc", "libc6-dev"]) };
pub(super) const MAKE: Tool = Tool { name: "make", check: &["make"], from: Origin::Debian(&["make"]) };
pub(super) const OPENSSL: Tool = Tool {
    name: "the OpenSSL headers",
    check: &["sh", "-c", "echo '#include <openssl/ssl.h>' | cc -E -x c -"],
    from: Origin::Debian(&["libssl-dev"]),
};
pub(super) const PYTHON: Tool = Tool {
    name: "python3 with venv",
    check: &["python3", "-c", "import ensurepip, venv"],
    from: Origin::Debian(&["python3", "python3-venv"]),
};
pub(super) const MAVEN: Tool = Tool { name: "mvn", check: &["mvn"], from: Origin::Debian(&["maven"]) };
pub(super) const JAVAC: Tool =
    Tool { name: "javac", check: &["javac"], from: Origin::Debian(&["openjdk-17-jdk-headless"]) };
pub(super) const NODE: Tool = Tool { name: "node", check: &["node"], from: Origin::Debian(&["nodejs"]) };
pub(super) const NPM: Tool = Tool { name: "npm", check: &["npm"], from: Origin::Debian(&["npm"]) };
pub(super) const GO: Tool = Tool { name: "go", check: &["go"], from: Origin::Debian(&["golang-go"]) };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_found_or_not() {
        assert!(which("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(which("no-such-program-here"), None);
        let check = |check| Tool { name: "x", check, from: Origin::Site("y") }.is_there();
        assert!(check(&["sh"]) && check(&["sh", "-c", "exit 0"]));
        assert!(!check(&["sh", "-c", "exit 1"]) && !check(&["no-such-program-here"]) && !check(&[]));
    }

    #[test]
    fn missing_tools_need_one_command() {
        assert_eq!(mend(&[MAVEN, JAVAC]), "apt-get install maven openjdk-17-jdk-headless");
        assert_eq!(mend(&[CARGO]), "Rust from https://rustup.rs");
        // One shell command that names each package once.
        let all = mend(&[CARGO, CMAKE, COMPILER, CMAKE]);
        assert_eq!(all, "apt-get install cmake gcc libc6-dev  # and Rust from https://rustup.rs");
        assert_eq!(mend(&[]), "");
    }
}
