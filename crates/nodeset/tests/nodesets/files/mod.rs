//! Location of the published NodeSet files. They are not in the repository: `cargo xtask nodesets` fetches them, and
//! TAKTWERK_NODESETS sets another directory.

use std::path::PathBuf;
use taktwerk_nodeset::NodeSet;

pub(crate) fn directory() -> PathBuf {
    if let Some(directory) = std::env::var_os("TAKTWERK_NODESETS") {
        return directory.into();
    }
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packages = std::fs::read_dir(workspace.join("target/codegen")).into_iter().flatten().flatten();
    let found = packages
        .map(|package| package.path().join("package/nodesets"))
        .find(|directory| directory.join("Opc.Ua.NodeSet2.xml").is_file());
    found.unwrap_or_else(|| {
        panic!("the published NodeSets are missing: run `cargo xtask nodesets`, or set TAKTWERK_NODESETS to a directory")
    })
}

pub(crate) fn load(name: &str) -> NodeSet {
    let path = directory().join(name);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask nodesets`", path.display()));
    NodeSet::parse(name, &text).unwrap_or_else(|error| panic!("{error}"))
}
