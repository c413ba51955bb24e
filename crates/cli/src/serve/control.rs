//! The socket on which a running server takes `taktwerk config apply`.
//!
//! It is an abstract Unix socket, named by the folder (device and inode) and the name of the configuration file: no file has
//! to be made and none is left behind, and whoever names the same file, by whatever path, finds the server. Only the user
//! that the server runs as and root are heard.

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

/// What is asked for. There is one thing so far.
const APPLY: &str = "apply\n";
/// How long a server waits for the question of one that has connected.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a command waits for the answer: for the checks of a large file.
const ANSWER: Duration = Duration::from_secs(60);
/// Longest answer.
const ANSWER_LEN_MAX: u64 = 1 << 20;

/// What became of a configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Outcome {
    /// Settings that the running server has taken over.
    pub(crate) applied: Vec<String>,
    /// Settings that wait for a restart.
    pub(crate) waiting: Vec<String>,
    /// Why nothing was taken over.
    pub(crate) problem: Option<String>,
}

/// The question of a command, and where its answer goes.
pub(super) type Request = Sender<Outcome>;

/// Where the questions come from.
pub(super) struct Control {
    requests: Receiver<Request>,
    address: SocketAddr,
    end: Arc<AtomicBool>,
}

impl Control {
    /// The next question, if there is one.
    pub(super) fn next(&self) -> Option<Request> {
        self.requests.try_recv().ok()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        // Wakes the thread, which sees that and gives the name free.
        let _ = UnixStream::connect_addr(&self.address);
    }
}

/// Listens for the commands that name this file.
///
/// # Errors
/// Another server runs with the file, or there is no such file.
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
                // No descriptors are left, for example: later there may be some.
                std::thread::sleep(PATIENCE);
                continue;
            };
            if let Err(error) = answer(&stream, &requests) {
                tracing::warn!(%error, "a request to apply the configuration was not answered");
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
        // It only wanted to know whether there is a server.
        return Ok(());
    }
    let outcome = if question == APPLY {
        let (reply, received) = channel();
        requests.send(reply).map_err(io::Error::other)?;
        received.recv_timeout(ANSWER).map_err(io::Error::other)?
    } else {
        Outcome { problem: Some("this server does not know that request".to_owned()), ..Outcome::default() }
    };
    serde_json::to_writer(stream, &outcome)?;
    stream.write_all(b"\n")
}

/// Whether a server runs with a file.
pub(crate) fn is_running(file: &Path) -> bool {
    address(file).is_ok_and(|address| UnixStream::connect_addr(&address).is_ok())
}

/// Has the server that runs with a file take it over.
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
            "the program that runs with {} belongs to the user {}, who does not own that file: no request was sent",
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
            "the server of {} did not answer; it takes requests only of root and of the user that it runs as",
            file.display()
        )));
    }
    serde_json::from_str(&answer).map_err(|error| lost(error.into()))
}

/// The socket's name: at most 107 bytes, so that of a very long name only the end counts.
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
    fn a_command_finds_the_server_of_its_file_and_no_other() {
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
        assert!(listen(&file).is_err(), "two servers with one file");
        let other = folder.path().join("other.toml");
        std::fs::write(&other, "").unwrap();
        assert!(apply(&other).unwrap_err().to_string().contains("no server runs with"));
        assert!(apply(&folder.path().join("missing.toml")).is_err());
        // A server that has ended gives the name free.
        drop(requests);
        let end = std::time::Instant::now() + ANSWER;
        while listen(&file).is_err() {
            assert!(std::time::Instant::now() < end);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_makes_no_sense_is_answered_and_the_next_one_heard() {
        let folder = tempfile::tempdir().unwrap();
        // No other test has this name: a folder may get the inode of one that was just deleted.
        let file = folder.path().join("asked.toml");
        std::fs::write(&file, "").unwrap();
        let requests = listen(&file).unwrap();
        let mut stream = UnixStream::connect_addr(&address(&file).unwrap()).unwrap();
        stream.write_all(b"reboot").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("does not know"), "{answer}");
        // One that says nothing is left after a while.
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
