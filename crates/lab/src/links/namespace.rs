//! Network namespaces without names: they are held by this process and by the programs in them, and the kernel takes
//! them away with the last of these, however it ends. Nothing has to be undone.

use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

/// A network of its own: no interface but its own loopback.
#[derive(Debug, Clone)]
pub struct Namespace(Arc<File>);

impl Namespace {
    /// A new one.
    ///
    /// # Errors
    /// Without the capability `CAP_SYS_ADMIN`, or where the kernel has no network namespaces.
    pub fn new() -> io::Result<Self> {
        // A thread has its own network namespace; the short-lived one leaves only the file behind.
        let made = thread::spawn(|| -> io::Result<File> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        });
        let file = made.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))?;
        Ok(Self(Arc::new(file)))
    }

    /// Moves the calling thread, and threads and programs that it starts from now on, into this network.
    ///
    /// # Errors
    /// Without the capability `CAP_SYS_ADMIN`.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(&*self.0, CloneFlags::CLONE_NEWNET)?)
    }

    /// Runs something in this network; sockets that it opens stay there.
    ///
    /// # Errors
    /// If the network cannot be entered.
    pub fn inside<T: Send>(&self, action: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| -> io::Result<T> {
                self.enter()?;
                Ok(action())
            });
            inside.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
        })
    }

    /// The path by which programs such as `ip` find this network while this process lives.
    #[must_use]
    pub fn path(&self) -> String {
        use std::os::fd::AsRawFd;
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Runs a tool in this network and gives what it wrote.
    ///
    /// # Errors
    /// If it is missing or fails; the message is what it said.
    pub fn tool(&self, name: &str, arguments: &[&str]) -> io::Result<String> {
        let output = self.inside(|| {
            Command::new(name).args(arguments).stdin(Stdio::null()).output().map_err(|error| {
                match error.kind() {
                    io::ErrorKind::NotFound => io::Error::new(
                        io::ErrorKind::NotFound,
                        format!("{name} is missing: install it (Debian: apt-get install iproute2)"),
                    ),
                    _ => error,
                }
            })
        })??;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(io::Error::other(format!("{name} {}: {said}", arguments.join(" "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn is_apart_and_goes_away_by_itself() {
        let before = std::fs::read_link("/proc/self/ns/net").unwrap();
        let Ok(namespace) = Namespace::new() else {
            // Without the capability there is nothing to see; that it is refused is what the caller relies on.
            assert!(!nix::unistd::geteuid().is_root());
            return;
        };
        let (inside, interfaces) = namespace
            .inside(|| {
                let net = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
                (net, std::fs::read_to_string("/proc/thread-self/net/dev").unwrap())
            })
            .unwrap();
        assert_ne!(inside, before);
        assert!(interfaces.contains("lo:") && !interfaces.contains("eth"), "{interfaces}");
        // Nothing is up in it, so nothing can be reached.
        let sent = namespace
            .inside(|| UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"x", "127.0.0.1:9"))
            .unwrap();
        assert!(sent.is_err());
        assert_eq!(std::fs::read_link("/proc/self/ns/net").unwrap(), before);
        let error = namespace.tool("no-such-tool", &[]).unwrap_err();
        assert!(error.to_string().contains("no-such-tool is missing"), "{error}");
    }
}
