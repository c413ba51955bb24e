//! Child processes: started on given CPUs, waited for, and always ended.

use crate::links::Namespace;
use crate::orphans;
use crate::pin::{CpuList, PinError};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Time for a program to end after a signal.
const GRACE: Duration = Duration::from_secs(5);
/// Interval for checking whether to stop a program.
const LOOK: Duration = Duration::from_millis(20);

/// Why a program failed.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It cannot be started.
    #[error("cannot start {path}: {source}")]
    Start {
        /// The program.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It cannot run on the requested CPUs.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// It cannot run in the requested network namespace.
    #[error("cannot start {path} in a network of its own: {source}")]
    Network {
        /// The program.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It ended before it was ready.
    #[error("{path} ended before it was ready ({status}): {stderr}")]
    Early {
        /// The program.
        path: PathBuf,
        /// Its exit status.
        status: String,
        /// The end of its error output.
        stderr: String,
    },
    /// It was stopped on request.
    #[error("{path} was stopped")]
    Stopped {
        /// The program.
        path: PathBuf,
    },
    /// It exceeded its timeout.
    #[error("{path} did not {what} within {seconds} s and was stopped")]
    TimedOut {
        /// The program.
        path: PathBuf,
        /// The action it did not complete.
        what: &'static str,
        /// The timeout.
        seconds: u64,
    },
}

/// Hash of a program's file, to distinguish builds (FNV-1a, 64 bits; not cryptographic).
///
/// # Errors
/// If it cannot be read.
pub fn digest(path: &Path) -> io::Result<u64> {
    const PRIME: u64 = 0x0100_0000_01b3;
    let mut file = File::open(path)?;
    let (mut digest, mut block) = (0xcbf2_9ce4_8422_2325_u64, vec![0u8; 1 << 20]);
    loop {
        let count = file.read(&mut block)?;
        if count == 0 {
            return Ok(digest);
        }
        for byte in block.get(..count).unwrap_or_default() {
            digest = (digest ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }
}

/// A program with its arguments and environment.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<String>,
    cpus: Option<CpuList>,
    network: Option<Namespace>,
    directory: Option<PathBuf>,
    input: Option<String>,
}

impl Program {
    /// A program by its path.
    #[must_use]
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            arguments: Vec::new(),
            cpus: None,
            network: None,
            directory: None,
            input: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl ToString) -> Self {
        self.arguments.push(argument.to_string());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<T: ToString>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.to_string()));
        self
    }

    /// Restricts it to these CPUs.
    #[must_use]
    pub fn on(mut self, cpus: CpuList) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// Runs it in this network namespace.
    #[must_use]
    pub fn within(mut self, network: &Namespace) -> Self {
        self.network = Some(network.clone());
        self
    }

    /// Sets its working directory.
    #[must_use]
    pub fn in_directory(mut self, directory: impl AsRef<Path>) -> Self {
        self.directory = Some(directory.as_ref().to_owned());
        self
    }

    /// Writes a line to its standard input, which stays open.
    #[must_use]
    pub fn input(mut self, line: String) -> Self {
        self.input = Some(line);
        self
    }

    /// The command line, for messages.
    #[must_use]
    pub fn line(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy();
        format!("{name} {}", self.arguments.join(" "))
    }

    fn spawn(&self, stdin: Stdio) -> Result<Child, ProgramError> {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Identifies the owner of the program: see [`crate::orphans`].
        command.env(orphans::OWNER, orphans::owner());
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let failed = |source| ProgramError::Start { path: self.path.clone(), source };
        if self.cpus.is_none() && self.network.is_none() {
            return command.spawn().map_err(failed);
        }
        // A child inherits CPUs and network of the thread that starts it. Moving a short-lived thread first ensures
        // that the child never runs elsewhere.
        let (cpus, network, path) = (self.cpus.clone(), self.network.clone(), self.path.clone());
        let started = thread::spawn(move || -> Result<io::Result<Child>, ProgramError> {
            if let Some(cpus) = cpus {
                cpus.pin()?;
            }
            if let Some(network) = network {
                network.enter().map_err(|source| ProgramError::Network { path, source })?;
            }
            Ok(command.spawn())
        });
        let panicked = || Ok(Err(io::Error::other("the starting thread panicked")));
        started.join().unwrap_or_else(|_| panicked())?.map_err(failed)
    }

    /// Starts a server and waits for its line `READY <url>` on standard output.
    ///
    /// The program's standard input stays open as long as [`Running`] lives. Servers that exit when it closes do not
    /// outlive this process, even if it is killed.
    ///
    /// # Errors
    /// If it cannot start, ends early, or is not ready within `limit`; it is stopped in this case.
    pub fn serve(&self, limit: Duration) -> Result<Running, ProgramError> {
        self.serve_unless(limit, None)
    }

    /// Like [`Self::serve`], but stops the program when `stop` is set before it is ready.
    ///
    /// # Errors
    /// As [`Self::serve`], and [`ProgramError::Stopped`].
    pub fn serve_unless(&self, limit: Duration, stop: Option<&AtomicBool>) -> Result<Running, ProgramError> {
        let mut child = self.spawn(Stdio::piped())?;
        let stdin = child.stdin.take();
        let (lines, ready) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            // Reads until the end, so that the program never blocks on a full pipe.
            thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if let Some((word, rest)) = line.split_once(' ') {
                        let _ = lines.send((word.to_owned(), rest.trim().to_owned()));
                    }
                }
            });
        }
        let tail = child.stderr.take().map(collect_tail);
        let mut running =
            Running { child, stdin, url: String::new(), notes: Vec::new(), path: self.path.clone() };
        let end = Instant::now() + limit;
        let said = loop {
            let left = end.saturating_duration_since(Instant::now());
            if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Err(ProgramError::Stopped { path: self.path.clone() });
            }
            let wait = if stop.is_some() { left.min(LOOK) } else { left };
            match ready.recv_timeout(wait) {
                Ok((word, url)) if word == "READY" => break Ok(url),
                // Lines before `READY` describe the server: process id, nodes.
                Ok(note) => running.notes.push(note),
                Err(mpsc::RecvTimeoutError::Timeout) if wait < left => {}
                Err(error) => break Err(error),
            }
        };
        match said {
            Ok(url) => {
                running.url = url;
                Ok(running)
            }
            Err(mpsc::RecvTimeoutError::Timeout) => Err(ProgramError::TimedOut {
                path: self.path.clone(),
                what: "become ready",
                seconds: limit.as_secs(),
            }),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let status = running.child.wait().map_or_else(|error| error.to_string(), |s| s.to_string());
                let stderr = tail.and_then(|tail| tail.join().ok()).unwrap_or_default();
                Err(ProgramError::Early { path: self.path.clone(), status, stderr })
            }
        }
    }

    /// Runs it until it ends.
    ///
    /// # Errors
    /// If it cannot start or exceeds `limit`; it is stopped in this case.
    pub fn run(&self, limit: Duration) -> Result<Output, ProgramError> {
        self.run_unless(limit, None)
    }

    /// Like [`Self::run`], but stops the program when `stop` is set.
    ///
    /// # Errors
    /// As [`Self::run`], and [`ProgramError::Stopped`].
    pub fn run_unless(&self, limit: Duration, stop: Option<&AtomicBool>) -> Result<Output, ProgramError> {
        let mut child = self.spawn(Stdio::piped())?;
        // Kept open until the end, so that programs that exit with their standard input do not outlive this one.
        let mut stdin = child.stdin.take();
        if let (Some(stdin), Some(line)) = (&mut stdin, &self.input) {
            // A program that does not read its input reports the reason when it ends.
            let _ = writeln!(stdin, "{line}");
        }
        let pid = child.id();
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || {
            let _ = sender.send(child.wait_with_output());
        });
        let failed = |source| ProgramError::Start { path: self.path.clone(), source };
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let is_stopped = stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
            if !left.is_zero() && !is_stopped {
                let wait = if stop.is_some() { left.min(LOOK) } else { left };
                if let Ok(output) = ended.recv_timeout(wait) {
                    return output.map_err(failed);
                }
                continue;
            }
            signal(pid, Signal::TERM);
            if ended.recv_timeout(GRACE).is_err() {
                signal(pid, Signal::KILL);
                let _ = ended.recv_timeout(GRACE);
            }
            let path = self.path.clone();
            return Err(match is_stopped {
                true => ProgramError::Stopped { path },
                false => ProgramError::TimedOut { path, what: "end", seconds: limit.as_secs() },
            });
        }
    }
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended in the meantime.
        let _ = kill_process(pid, signal);
    }
}

/// Reads a stream until its end and keeps the last 2 000 bytes.
fn collect_tail(mut stream: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    const KEEP: usize = 2_000;
    thread::spawn(move || {
        let mut kept = Vec::new();
        let mut block = [0u8; 4096];
        while let Ok(count @ 1..) = stream.read(&mut block) {
            kept.extend_from_slice(block.get(..count).unwrap_or_default());
            let surplus = kept.len().saturating_sub(KEEP);
            kept.drain(..surplus);
        }
        String::from_utf8_lossy(&kept).trim().to_owned()
    })
}

/// A running server. It is stopped when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    url: String,
    /// Lines before `READY`: first word and rest.
    notes: Vec<(String, String)>,
    path: PathBuf,
}

impl Running {
    /// The URL that it printed.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The rest of a line before `READY` that starts with this word.
    #[must_use]
    pub fn note(&self, word: &str) -> Option<&str> {
        self.notes.iter().find(|(it, _)| it == word).map(|(_, rest)| rest.as_str())
    }

    /// The first variable that changes: `ns=1;i=100000`, unless the server printed another one (`NODE ns=2;i=100000`).
    #[must_use]
    pub fn first_signal(&self) -> &str {
        self.note("NODE").unwrap_or("ns=1;i=100000")
    }

    /// The id of the serving process. For a program behind a script, the id that the script printed (`PID 17`).
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.note("PID").and_then(|pid| pid.parse().ok()).unwrap_or_else(|| self.child.id())
    }

    /// Whether it still runs. An ended process that was not waited for still has an entry below `/proc`.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it to end and waits; kills it after five seconds.
    ///
    /// # Errors
    /// If it had to be killed.
    pub fn stop(mut self) -> Result<(), ProgramError> {
        if self.end() {
            return Ok(());
        }
        Err(ProgramError::TimedOut { path: self.path.clone(), what: "end", seconds: GRACE.as_secs() })
    }

    /// Whether it ended before the timeout.
    fn end(&mut self) -> bool {
        drop(self.stdin.take());
        if let Ok(Some(_)) = self.child.try_wait() {
            return true;
        }
        signal(self.child.id(), Signal::TERM);
        let step = Duration::from_millis(10);
        for _ in 0..GRACE.as_millis() / step.as_millis() {
            if let Ok(Some(_)) = self.child.try_wait() {
                return true;
            }
            thread::sleep(step);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        false
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program::new("/bin/sh").args(["-c", script])
    }

    #[test]
    fn builds_have_different_digests() {
        let path = std::env::temp_dir().join(format!("taktwerk-digest-{}", std::process::id()));
        std::fs::write(&path, "a").unwrap();
        // The published test vector of FNV-1a.
        assert_eq!(digest(&path).unwrap(), 0xaf63_dc4c_8601_ec8c);
        std::fs::write(&path, vec![7u8; 3 << 20]).unwrap();
        let long = digest(&path).unwrap();
        std::fs::write(&path, vec![7u8; (3 << 20) + 1]).unwrap();
        assert_ne!(digest(&path).unwrap(), long);
        std::fs::remove_file(&path).unwrap();
        assert!(digest(&path).is_err());
    }

    #[test]
    fn serves_and_stops() {
        let running = shell("echo warming up; echo NODE ns=2;echo READY opc.tcp://here:1; exec sleep 60")
            .serve(Duration::from_secs(5))
            .unwrap();
        assert_eq!(running.url(), "opc.tcp://here:1");
        assert_eq!((running.first_signal(), running.note("warming")), ("ns=2", Some("up")));
        let pid = running.pid();
        running.stop().unwrap();
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn ended_programs_are_not_running() {
        let mut running = shell("echo READY x; read line").serve(Duration::from_secs(5)).unwrap();
        assert!(running.is_running());
        drop(running.stdin.take());
        let began = Instant::now();
        while running.is_running() {
            assert!(began.elapsed() < Duration::from_secs(10), "it exits when its standard input closes");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn early_exit_and_timeout_are_different_errors() {
        let error = shell("echo no such port >&2; exit 3").serve(Duration::from_secs(5)).unwrap_err();
        assert!(error.to_string().contains("no such port"), "{error}");
        let error = shell("exec sleep 60").serve(Duration::from_millis(100)).unwrap_err();
        assert!(matches!(error, ProgramError::TimedOut { .. }), "{error}");
        assert!(matches!(
            Program::new("/no/such/program").serve(Duration::from_secs(1)),
            Err(ProgramError::Start { .. })
        ));
    }

    #[test]
    fn runs_to_the_end_on_its_cpu() {
        let first = CpuList::single(CpuList::allowed().cpus()[0]);
        let output = shell("grep Cpus_allowed_list /proc/self/status").on(first.clone());
        let output = output.run(Duration::from_secs(5)).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.split_whitespace().last(), Some(first.to_string().as_str()));
        let error = shell("exec sleep 60").run(Duration::from_millis(100)).unwrap_err();
        assert!(matches!(error, ProgramError::TimedOut { .. }), "{error}");
    }

    #[test]
    fn stopped_programs_end_early() {
        let stop = AtomicBool::new(false);
        let output = shell("echo done").run_unless(Duration::from_secs(20), Some(&stop)).unwrap();
        assert_eq!(output.stdout, b"done\n");
        stop.store(true, Ordering::Relaxed);
        let error = shell("exec sleep 60").run_unless(Duration::from_secs(60), Some(&stop)).unwrap_err();
        assert!(matches!(error, ProgramError::Stopped { .. }), "{error}");
        // The same for a server that is slow to start. Checking does not disturb a server that starts.
        let error = shell("exec sleep 60").serve_unless(Duration::from_secs(60), Some(&stop)).unwrap_err();
        assert!(matches!(error, ProgramError::Stopped { .. }), "{error}");
        stop.store(false, Ordering::Relaxed);
        let late = shell("sleep 0.1; echo READY here; exec sleep 60");
        assert_eq!(late.serve_unless(Duration::from_secs(20), Some(&stop)).unwrap().url(), "here");
        let error = shell("exec sleep 60").serve_unless(Duration::from_millis(50), Some(&stop)).unwrap_err();
        assert!(matches!(error, ProgramError::TimedOut { .. }), "{error}");
    }
}
