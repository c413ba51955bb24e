//! Servers with a configuration file that changes.

#![allow(dead_code)] // not every test uses everything

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use taktwerk_lab::program::{Program, Running};

pub(crate) const LIMIT: Duration = Duration::from_secs(120);
pub(crate) const BASE: &str = "[server]\nbind = [\"127.0.0.1:0\"]\nsimulated_plant = true\n[security]\npolicies = []\nnone = true\n\
                    [identities]\nanonymous = true\n[permissions]\nunspecified = \"open\"\n";

/// A folder with the configuration of a server.
pub(crate) struct Installation {
    pub(crate) folder: tempfile::TempDir,
}

impl Installation {
    pub(crate) fn new() -> Self {
        let installation = Self { folder: tempfile::tempdir().unwrap() };
        installation.write("");
        installation
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("server.toml")
    }

    pub(crate) fn write(&self, more: &str) {
        // Replaced atomically, because `--watch` must not see a partial file.
        let other = self.folder.path().join("other");
        std::fs::write(&other, format!("{BASE}{more}")).unwrap();
        std::fs::rename(other, self.file()).unwrap();
    }

    pub(crate) fn serve(&self, more: &[&str]) -> Running {
        let program = Program::new(env!("CARGO_BIN_EXE_taktwerk"));
        let program = program.args(["serve", "--exit-with-stdin", "--config"]).arg(self.file().display());
        program.args(more).serve(LIMIT).unwrap()
    }
}

/// Exit code and output of a command.
pub(crate) fn run(arguments: &[&str]) -> (i32, String) {
    let output = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(arguments).run(LIMIT).unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
}

pub(crate) fn apply(file: &Path) -> (i32, String) {
    run(&["config", "apply", file.to_str().unwrap()])
}

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A NodeSet with Variables: their numbers and values.
pub(crate) fn nodeset(variables: &[(u32, f64)]) -> String {
    let node = |(id, value): &(u32, f64)| {
        format!(
            "<UAVariable NodeId=\"ns=1;i={id}\" BrowseName=\"1:V{id}\" DataType=\"i=11\" AccessLevel=\"3\"><References>\
             <Reference ReferenceType=\"i=35\" IsForward=\"false\">i=85</Reference>\
             <Reference ReferenceType=\"i=40\">i=63</Reference></References>\
             <Value><Double xmlns=\"http://opcfoundation.org/UA/2008/02/Types.xsd\">{value}</Double></Value></UAVariable>"
        )
    };
    format!(
        "<UANodeSet xmlns=\"http://opcfoundation.org/UA/2011/03/UANodeSet.xsd\">\
         <NamespaceUris><Uri>urn:line</Uri></NamespaceUris><Models><Model ModelUri=\"urn:line\"/></Models>{}</UANodeSet>",
        variables.iter().map(node).collect::<String>()
    )
}

/// A folder with Variables: their numbers and values.
pub(crate) fn folder_of(variables: &[(u32, f64)]) -> String {
    let folder = "<UAObject NodeId=\"ns=1;i=100\" BrowseName=\"1:Line\"><References>\
                  <Reference ReferenceType=\"i=35\" IsForward=\"false\">i=85</Reference>\
                  <Reference ReferenceType=\"i=40\">i=61</Reference></References></UAObject>";
    let below = nodeset(variables).replace(">i=85<", ">ns=1;i=100<");
    below.replace("</Models>", &format!("</Models>{folder}"))
}
