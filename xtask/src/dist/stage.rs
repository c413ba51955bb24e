//! The files distributed beside the program: manual pages, completions, licences, the unit file.

use super::build::Programs;
use super::{Place, captured, files, licences, shown, write};
use crate::Failure;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file to distribute.
pub(super) struct Item {
    /// Its current path.
    pub(super) source: PathBuf,
    /// Its path under a prefix such as `/usr`.
    pub(super) path: String,
}

/// The files distributed with every program.
pub(super) struct Stage {
    /// The folder in which they are collected.
    pub(super) folder: PathBuf,
    /// Files under a prefix, without the program itself.
    pub(super) items: Vec<Item>,
}

/// The shells and their completion folders under a prefix.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/taktwerk"),
    ("zsh", "share/zsh/site-functions/_taktwerk"),
    ("fish", "share/fish/vendor_completions.d/taktwerk.fish"),
];

/// Collects the files.
pub(super) fn fill(place: &Place, programs: &Programs) -> Result<Stage, Failure> {
    let folder = place.root.join("target").join("dist-stage");
    let _ = std::fs::remove_dir_all(&folder);
    let mut items = Vec::new();
    let pages = folder.join("man1");
    std::fs::create_dir_all(&pages).map_err(|error| format!("{}: {error}", pages.display()))?;
    shown(Command::new(&programs.own).args(["-q", "man"]).arg(&pages))?;
    for source in files(&pages)? {
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        items.push(Item { source, path: format!("share/man/man1/{name}") });
    }
    for (shell, path) in SHELLS {
        let text = captured(Command::new(&programs.own).args(["completions", shell]))?;
        let source = folder.join("completions").join(shell);
        write(&source, text.as_bytes())?;
        items.push(Item { source, path: path.to_owned() });
    }
    let notices = folder.join("THIRD-PARTY");
    write(&notices, licences::text(place)?.as_bytes())?;
    items.push(Item { source: notices, path: "share/doc/taktwerk/THIRD-PARTY".to_owned() });
    let copyright = folder.join("copyright");
    write(&copyright, licences::copyright(place)?.as_bytes())?;
    for name in ["LICENSE-APACHE", "LICENSE-MIT", "NOTICE"] {
        items.push(Item { source: place.root.join(name), path: format!("share/doc/taktwerk/{name}") });
    }
    let unit = place.root.join("packaging").join("systemd").join("taktwerk.service");
    items.push(Item { source: unit, path: "share/doc/taktwerk/examples/taktwerk.service".to_owned() });
    Ok(Stage { folder, items })
}

impl Stage {
    /// The program and all other files.
    pub(super) fn with_program(&self, program: &Path) -> impl Iterator<Item = (String, PathBuf, u32)> {
        std::iter::once(("bin/taktwerk".to_owned(), program.to_owned(), 0o755))
            .chain(self.items.iter().map(|item| (item.path.clone(), item.source.clone(), 0o644)))
    }
}
