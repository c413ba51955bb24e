//! The published inputs of code generation: npm packages, fetched once into `target/codegen`, pinned by version and
//! digest. They are not part of the repository.

use crate::Failure;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An npm package at a version, with the SHA-256 of its archive.
pub(crate) struct Package {
    name: &'static str,
    version: &'static str,
    sha256: &'static str,
}

/// NodeSet2 files and the binary type dictionary of OPC UA 1.05.07, and companion specifications.
pub(crate) const NODESETS: Package = Package {
    name: "node-opcua-nodesets",
    version: "2.185.0",
    sha256: "c32b8b760a0cad4064a6c9d73d52547e3ce1933974df354998cabdfe826837d3",
};

/// The status codes with their descriptions.
pub(crate) const STATUS_CODES: Package = Package {
    name: "node-opcua-status-code",
    version: "2.181.0",
    sha256: "d507428a7fa0e16ab0dcf21c3ea537c362ccf8b8c9006ed1e9e9d3d9a51fa334",
};

/// The published numeric ids, for the data types of services, which the NodeSet omits.
pub(crate) const NODE_IDS: Package = Package {
    name: "node-opcua-constants",
    version: "2.185.0",
    sha256: "09968c02ba3a938ace00b24b031751bf96e9e46999936121ab7439910d7421c2",
};

impl Package {
    /// The unpacked package; fetches it on first use.
    pub(crate) fn directory(&self, root: &Path) -> Result<PathBuf, Failure> {
        let cache = root.join("target").join("codegen");
        let directory = cache.join(format!("{}-{}", self.name, self.version));
        let contents = directory.join("package");
        if contents.is_dir() {
            return Ok(contents);
        }
        std::fs::create_dir_all(&cache).map_err(|error| format!("{}: {error}", cache.display()))?;
        let archive = self.archive(&cache)?;
        // Unpacked beside its place and renamed, so that an interrupted run leaves nothing that looks complete.
        let partial = cache.join(format!("{}-{}.partial", self.name, self.version));
        let _ = std::fs::remove_dir_all(&partial);
        std::fs::create_dir_all(&partial).map_err(|error| format!("{}: {error}", partial.display()))?;
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(&archive).arg("-C").arg(&partial);
        run(&mut tar, "tar is needed to unpack npm packages")?;
        std::fs::rename(&partial, &directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        Ok(contents)
    }

    fn archive(&self, cache: &Path) -> Result<PathBuf, Failure> {
        let archive = cache.join(format!("{}-{}.tgz", self.name, self.version));
        if !archive.is_file() {
            eprintln!("fetching {}@{} with npm", self.name, self.version);
            let mut npm = Command::new("npm");
            npm.arg("pack").arg("--silent").arg("--pack-destination").arg(cache);
            npm.arg(format!("{}@{}", self.name, self.version)).current_dir(cache);
            run(
                &mut npm,
                "npm is needed to fetch the NodeSet files; install Node.js, or put the packed package \
                 (<name>-<version>.tgz) into target/codegen yourself",
            )?;
        }
        let bytes = std::fs::read(&archive).map_err(|error| format!("{}: {error}", archive.display()))?;
        let digest = digest(&bytes);
        if digest != self.sha256 {
            return Err(format!(
                "{} has SHA-256 {digest}, not {}: remove it and try again; if it stays so, the registry serves \
                 another package than the pinned one",
                archive.display(),
                self.sha256
            ));
        }
        Ok(archive)
    }

    /// The text of a file of the package.
    pub(crate) fn read(&self, root: &Path, path: &str) -> Result<String, Failure> {
        let path = self.directory(root)?.join(path);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// The directory of the NodeSet2 files for tests.
pub(crate) fn nodesets(root: &Path) -> Result<PathBuf, Failure> {
    Ok(NODESETS.directory(root)?.join("nodesets"))
}

fn run(command: &mut Command, missing: &str) -> Result<(), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("cannot start {name} ({error}): {missing}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// The SHA-256 of bytes, in hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
