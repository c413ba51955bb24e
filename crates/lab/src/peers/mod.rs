//! Other stacks and brokers as programs, installed in a pinned version from their usual registries and started through
//! one interface.
//!
//! - [`catalogue`]: all peers and their requirements;
//! - [`install`]: installation; [`tools`]: required tools;
//! - [`start`]: starting them with a port, N variables, an update interval, and the devices that a gateway reads. They
//!   print `READY` when they listen. They end on request, and when the process that started them has ended.
//!
//! Nothing of a peer is linked into Taktwerk. The programs around their libraries are ours, in `interop/`. They are
//! embedded in this crate as text, so that an installed `taktwerk` needs no checkout.

pub mod catalogue;
pub mod install;
mod sources;
pub mod start;
pub mod tools;

pub use catalogue::{PEERS, Peer, Role, find};
pub use install::{InstallError, State, install, install_unless, state};
pub use start::{LIMIT, PeerOptions, StartError, program, start};

use std::path::{Path, PathBuf};

/// The environment variable that overrides the directory of peers.
pub const DIRECTORY: &str = "TAKTWERK_PEERS";

/// The directory of installed peers: the value of `TAKTWERK_PEERS`, `target/peers` in the checkout around the working
/// directory, or the user's data directory.
#[must_use]
pub fn directory() -> PathBuf {
    if let Some(named) = std::env::var_os(DIRECTORY) {
        return PathBuf::from(named);
    }
    let here = std::env::current_dir().unwrap_or_default();
    let is_checkout = |path: &&Path| path.join("interop/open62541/build.sh").is_file();
    if let Some(checkout) = here.ancestors().find(is_checkout) {
        return checkout.join("target/peers");
    }
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    data.or_else(home).unwrap_or_else(std::env::temp_dir).join("taktwerk/peers")
}

#[cfg(test)]
mod tests;
