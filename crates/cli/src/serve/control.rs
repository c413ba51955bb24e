//! The socket of a running server for `taktwerk config apply`.
//!
//! It is an abstract Unix socket, named by the directory (device and inode) and the name of the configuration file. No
//! file is created, and any path to the same configuration finds the server. Only root and the server's user are
//! accepted.

use crate::failure::Failure;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// The only request.
const APPLY: &str = "apply\n";
/// Timeout for the request of a connected command.
const PATIENCE: Duration = Duration::from_secs(2);
/// Timeout for the response, including the checks of a large file.
const ANSWER: Duration = Duration::from_secs(60);
/// Maximum length of a response.
const ANSWER_LEN_MAX: u64 = 1 << 20;

/// The result of applying a configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Outcome {
    /// Settings that the running server has applied.
    pub(crate) applied: Vec<String>,
    /// Settings that need a restart.
    pub(crate) waiting: Vec<String>,
    /// What remains to be known, such as queues that are no longer used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) remarks: Vec<String>,
    /// Why nothing was applied.
    pub(crate) problem: Option<String>,
}

/// A request, with the channel for its response.
pub(super) type Request = Sender<Outcome>;

/// The receiver of requests.
pub(super) struct Control {
    requests: Receiver<Request>,
    address: SocketAddr,
    end: Arc<AtomicBool>,
}

impl Control {
    /// The next request, if any.
    pub(super) fn next(&self) -> Option<Request> {
        self.requests.try_recv().ok()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        // Wakes the thread, so that it ends and releases the name.
        let _ = UnixStream::connect_addr(&self.address);
    }
}

/// Listens for commands that name this file.
///
/// # Errors
/// Another server uses the file, or the file does not exist.
pub(super) fn listen(file: &Path) -> io::Result<Control> {
    let address = address(file)?;
    let listener = UnixListener::bind_addr(&address)?;
    let (requests, received) = channel();
    let end = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&end);
    let work = move || {
        for stream in listener.incoming() {
            if ended.load(Ordering::Relaxed) {
                return;
            }
            let Ok(stream) = stream else {
                // For example, no file descriptors are left: retry later.
                std::thread::sleep(PATIENCE);
                continue;
            };
            if let Err(error) = answer(&stream, &requests) {
                tracing::warn!(%error, "cannot respond to a request to apply the configuration");
            }
        }
    };
    std::thread::Builder::new().name("control".to_owned()).stack_size(128 << 10).spawn(work)?;
    Ok(Control { requests: received, address, end })
}

fn answer(mut stream: &UnixStream, requests: &Sender<Request>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let peer = socket_peercred(stream)?.uid;
    if !peer.is_root() && peer != geteuid() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it came from another user"));
    }
    let mut question = String::new();
    BufReader::new(stream.take(APPLY.len() as u64)).read_line(&mut question)?;
    if question.is_empty() {
        // The peer only checked whether a server runs.
        return Ok(());
    }
    let outcome = if question == APPLY {
        let (reply, received) = channel();
        requests.send(reply).map_err(io::Error::other)?;
        received.recv_timeout(ANSWER).map_err(io::Error::other)?
    } else {
        Outcome { problem: Some("this server does not support the request".to_owned()), ..Outcome::default() }
    };
    serde_json::to_writer(stream, &outcome)?;
    stream.write_all(b"\n")
}

/// Whether a server runs with this file.
pub(crate) fn is_running(file: &Path) -> bool {
    address(file).is_ok_and(|address| UnixStream::connect_addr(&address).is_ok())
}

/// Requests the server that runs with this file to apply it.
pub(crate) fn apply(file: &Path) -> Result<Outcome, Failure> {
    let lost = |error: io::Error| {
        Failure::Environment(format!("the server of {} did not answer: {error}; see its log", file.display()))
    };
    let address = address(file).map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))?;
    let mut stream = UnixStream::connect_addr(&address).map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => Failure::Environment(format!(
            "no server runs with {} on this machine; `taktwerk serve --config {}` starts one",
            file.display(),
            file.display()
        )),
        _ => lost(error),
    })?;
    let owner = std::fs::metadata(file).map_err(lost)?.uid();
    let peer = socket_peercred(&stream).map_err(|error| lost(error.into()))?.uid;
    if !(geteuid().is_root() || peer.is_root() || peer == geteuid() || peer.as_raw() == owner) {
        return Err(Failure::Environment(format!(
            "the program that runs with {} belongs to user {}, who does not own the file: no request was sent",
            file.display(),
            peer.as_raw()
        )));
    }
    stream.set_read_timeout(Some(ANSWER)).map_err(lost)?;
    stream.write_all(APPLY.as_bytes()).map_err(lost)?;
    let mut answer = String::new();
    BufReader::new((&stream).take(ANSWER_LEN_MAX)).read_line(&mut answer).map_err(lost)?;
    if answer.is_empty() {
        return Err(Failure::Environment(format!(
            "the server of {} did not respond; it accepts requests only from root and from the user that it runs as",
            file.display()
        )));
    }
    serde_json::from_str(&answer).map_err(|error| lost(error.into()))
}

/// The socket's name has at most 107 bytes, so only the end of a long file name is used.
fn address(file: &Path) -> io::Result<SocketAddr> {
    let file = file.canonicalize()?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let folder = std::fs::metadata(folder)?;
    let name = file.file_name().unwrap_or_default().as_encoded_bytes();
    let name = &name[name.len().saturating_sub(60)..];
    let mut full = format!("taktwerk/{:x}/{:x}/", folder.dev(), folder.ino()).into_bytes();
    full.extend_from_slice(name);
    SocketAddr::from_abstract_name(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_find_only_the_server_of_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("server.toml");
        std::fs::write(&file, "").unwrap();
        let unanswered = apply(&file).unwrap_err().to_string();
        assert!(unanswered.contains("no server runs with"), "{unanswered}");
        let requests = listen(&file).unwrap();
        let outcome = Outcome { applied: vec!["role".to_owned()], ..Outcome::default() };
        let told = outcome.clone();
        let server = std::thread::spawn(move || {
            requests.requests.recv().unwrap().send(told).unwrap();
            requests
        });
        let same = folder.path().join("./server.toml");
        assert_eq!(apply(&same).unwrap(), outcome);
        let requests = server.join().unwrap();
        assert!(listen(&file).is_err(), "a second server with the same file");
        let other = folder.path().join("other.toml");
        std::fs::write(&other, "").unwrap();
        assert!(apply(&other).unwrap_err().to_string().contains("no server runs with"));
        assert!(apply(&folder.path().join("missing.toml")).is_err());
        // A server that has ended releases the name.
        drop(requests);
        let end = std::time::Instant::now() + ANSWER;
        while listen(&file).is_err() {
            assert!(std::time::Instant::now() < end);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn invalid_requests_are_answered_and_later_ones_accepted() {
        let folder = tempfile::tempdir().unwrap();
        // A name that no other test uses, because a directory may reuse the inode of a deleted one.
        let file = folder.path().join("asked.toml");
        std::fs::write(&file, "").unwrap();
        let requests = listen(&file).unwrap();
        let mut stream = UnixStream::connect_addr(&address(&file).unwrap()).unwrap();
        stream.write_all(b"reboot").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("does not support"), "{answer}");
        // Silent connections time out.
        let silent = UnixStream::connect_addr(&address(&file).unwrap()).unwrap();
        let server = std::thread::spawn(move || {
            requests.requests.recv().unwrap().send(Outcome::default()).unwrap();
            requests
        });
        assert_eq!(apply(&file).unwrap(), Outcome::default());
        drop(server.join().unwrap());
        drop(silent);
    }

    #[test]
    fn long_names_fit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x".repeat(250));
        std::fs::write(&file, "").unwrap();
        assert!(address(&file).is_ok());
    }
}
