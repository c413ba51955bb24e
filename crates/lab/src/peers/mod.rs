//! Other people's stacks and brokers, as programs beside ours: installed at a pinned version from their ordinary
//! registries, started through one interface.
//!
//! - [`catalogue`]: which there are, and what each needs;
//! - [`install`]: getting them; [`tools`]: what has to be on the machine for that;
//! - [`start`]: running them: a port, N variables, an update interval, the devices that a gateway reads, `READY` when they
//!   listen; they end when asked to, and when the process that started them is gone.
//!
//! Nothing of a peer is linked into Taktwerk. The programs around their libraries are ours and stand in `interop/`; they
//! are part of this crate as text, so that an installed `taktwerk` needs no checkout.

pub mod catalogue;
pub mod install;
mod sources;
pub mod start;
pub mod tools;

pub use catalogue::{PEERS, Peer, Role, find};
pub use install::{InstallError, State, install, install_unless, state};
pub use start::{LIMIT, PeerOptions, StartError, program, start};

use std::path::{Path, PathBuf};

/// The environment variable that names another place for peers.
pub const DIRECTORY: &str = "TAKTWERK_PEERS";

/// Where peers are installed: what the variable `TAKTWERK_PEERS` says, `target/peers` of the checkout around the working
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
