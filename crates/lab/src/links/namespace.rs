//! Unnamed network namespaces. This process and the programs in a namespace hold it; the kernel removes it with the
//! last of them, so no clean-up is needed.

use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

/// A network namespace with only a loopback interface.
#[derive(Debug, Clone)]
pub struct Namespace(Arc<File>);

impl Namespace {
    /// Creates a namespace.
    ///
    /// # Errors
    /// Without the capability `CAP_SYS_ADMIN`, or if the kernel has no network namespaces.
    pub fn new() -> io::Result<Self> {
        // Network namespaces belong to threads. The short-lived thread leaves only the file.
        let made = thread::spawn(|| -> io::Result<File> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        });
        let file = made.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))?;
        Ok(Self(Arc::new(file)))
    }

    /// Moves the calling thread into this namespace, and all threads and programs that it starts from now on.
    ///
    /// # Errors
    /// Without the capability `CAP_SYS_ADMIN`.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(&*self.0, CloneFlags::CLONE_NEWNET)?)
    }

    /// Runs a function in this namespace; sockets that it opens stay there.
    ///
    /// # Errors
    /// If the namespace cannot be entered.
    pub fn inside<T: Send>(&self, action: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| -> io::Result<T> {
                self.enter()?;
                Ok(action())
            });
            inside.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
        })
    }

    /// Path of this namespace for programs such as `ip`, valid while this process lives.
    #[must_use]
    pub fn path(&self) -> String {
        use std::os::fd::AsRawFd;
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Runs a tool in this namespace and returns its output.
    ///
    /// # Errors
    /// If the tool is missing or fails; the message contains its output.
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
    fn namespaces_are_separate_and_removed_automatically() {
        let before = std::fs::read_link("/proc/self/ns/net").unwrap();
        let Ok(namespace) = Namespace::new() else {
            // Without the capability, the call fails; callers rely on this error.
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
        // No interface is up, so nothing is reachable.
        let sent = namespace
            .inside(|| UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"x", "127.0.0.1:9"))
            .unwrap();
        assert!(sent.is_err());
        assert_eq!(std::fs::read_link("/proc/self/ns/net").unwrap(), before);
        let error = namespace.tool("no-such-tool", &[]).unwrap_err();
        assert!(error.to_string().contains("no-such-tool is missing"), "{error}");
    }
}
