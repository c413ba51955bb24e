//! Finds the process that listens on a port, for the error message when the port is in use.

use std::fs;
use std::path::Path;

/// The socket state of listeners in the kernel's tables.
const LISTEN: &str = "0A";

/// `process 1234 (name)` that listens on a TCP port, if this user may see it.
pub(crate) fn find(port: u16) -> Option<String> {
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|table| listening_inode(table, port))?;
    let wanted = format!("socket:[{inode}]");
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) else {
            continue;
        };
        if has_descriptor(&entry.path(), &wanted) {
            let program = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            return Some(format!("process {pid} ({})", program.trim()));
        }
    }
    None
}

fn listening_inode(table: &str, port: u16) -> Option<String> {
    let suffix = format!(":{port:04X}");
    fs::read_to_string(table).ok()?.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace();
        let local = fields.nth(1)?;
        let state = fields.nth(1)?;
        let inode = fields.nth(5)?;
        (local.ends_with(&suffix) && state == LISTEN).then(|| inode.to_owned())
    })
}

fn has_descriptor(process: &Path, wanted: &str) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return false };
    descriptors
        .flatten()
        .any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target.as_os_str() == wanted))
}
