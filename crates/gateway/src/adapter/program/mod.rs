//! Runs any program as a child process that speaks JSON lines or CBOR on its standard input and output.
//!
//! The gateway first writes `{"type":"start",…}`, and `{"type":"write",…}` when a client writes. The program writes readings: one
//! object or a list of them per message. Its standard error is logged. `docs/gateway-programs.md` describes the protocol.
//! [`line`]: parses messages; [`frame`]: messages in CBOR; `cgroup`: limits for memory and processors.

mod cgroup;
pub mod frame;
pub mod line;

use crate::fault::{Fault, plain};
use crate::feed::{Feed, Reading, Writes};
use crate::fields::{Fields, Mistake};
use crate::settings::SourceSettings;
use crate::source::{Adapter, Advice, Placement};
use crate::statistics::Count;
use crate::tag::{Access, Tag};
use crate::value::{Kind, to_json};
use cgroup::{Group, Limits};
use core::time::Duration;
use futures_util::future::BoxFuture;
use line::{Entry, Named};
use serde_json::json;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use taktwerk_types::BuiltInType;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Longest line of a program's output, in bytes.
pub(crate) const LINE_LEN_MAX: u64 = 1 << 20;
/// Longest logged line of its standard error.
const LOG_LEN_MAX: usize = 500;
/// Readings stored before yielding to other sources: a flooding program always has more lines.
const READINGS_AT_ONCE: usize = 100;

/// The message format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// Lines of JSON.
    Json,
    /// CBOR (RFC 8949), each item with a length prefix.
    Cbor,
}

/// A program that is started and kept running.
#[derive(Debug)]
pub struct Program {
    command: Vec<String>,
    folder: PathBuf,
    environment: Vec<(String, String)>,
    format: Format,
    /// After this time without output the program is killed and restarted.
    silence_max: Option<Duration>,
    limits: Limits,
    /// Whether the missing support for limits was logged.
    is_told: bool,
    tags: Vec<ProgramTag>,
    by_name: HashMap<String, usize>,
}

#[derive(Debug)]
struct ProgramTag {
    name: String,
    address: Option<String>,
    kind: Kind,
    is_writable: bool,
}

/// A program with its child processes: killed on drop, with the session or the gateway.
struct Family(Option<u32>);

impl Drop for Family {
    fn drop(&mut self) {
        let id = self.0.and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(id) = id {
            // The processes may be gone already. The number is not reused soon, because the system counts up first.
            let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
    }
}

impl Program {
    /// Takes the settings of a source.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, _: &SourceSettings) -> Result<Self, Mistake> {
        let command = fields.texts("command")?.filter(|command| command.iter().any(|word| !word.is_empty()));
        let Some(command) = command else {
            let hint = "write command = [\"python3\", \"adapter.py\"]";
            let mistake = fields.misspelt(&["command"]);
            return Err(mistake.unwrap_or_else(|| fields.mistake("command is missing", hint)));
        };
        let mut environment = Vec::new();
        for entry in fields.texts("environment")?.unwrap_or_default() {
            match entry.split_once('=') {
                Some((name, value)) if !name.is_empty() && !entry.contains('\0') => {
                    environment.push((name.to_owned(), value.to_owned()));
                }
                _ => {
                    let hint = "write environment = [\"NAME=VALUE\"]";
                    return Err(fields.mistake(format!("{entry:?} is no variable of an environment"), hint));
                }
            }
        }
        let cpus = fields.number_at("cpu_max")?;
        if let Some((line, _)) = cpus.filter(|(_, cpus)| !(0.01..=1024.0).contains(cpus)) {
            let hint = "write processors, such as 0.5 for half of one";
            return Err(fields.mistake_in(line, "cpu_max", "is not between 0.01 and 1024", hint));
        }
        let memory = fields.integer("memory_max", 1 << 20, 1 << 50)?;
        let limits = Limits { memory, cpus: cpus.map(|(_, cpus)| cpus) };
        let folder = fields.path().parent().map(PathBuf::from).unwrap_or_default();
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        Ok(Self {
            command,
            folder,
            environment,
            format: fields
                .word("format", &[("json", Format::Json), ("cbor", Format::Cbor)])?
                .unwrap_or(Format::Json),
            silence_max: fields.span("silence_max")?,
            limits,
            is_told: false,
            tags: Vec::new(),
            by_name: HashMap::new(),
        })
    }

    /// Whether the program exists: as a path, or in one of the directories of `PATH`.
    fn is_there(&self, program: &str) -> bool {
        if program.contains('/') {
            return self.folder.join(program).is_file();
        }
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
    }

    fn start(&self) -> Result<Child, Fault> {
        let (program, arguments) = self.command.split_first().ok_or_else(|| Fault::Ended(String::new()))?;
        Command::new(program)
            .args(arguments)
            .envs(self.environment.iter().cloned())
            // Relative paths start from the directory of the configuration.
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Its child processes are killed with it.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Fault::Connect { target: program.clone(), reason: plain(&error) })
    }

    /// The control group for the program's limits. Without permission for one, the program runs without limits, which is logged
    /// once.
    fn group(&mut self, child: &Child, source: &str) -> Option<Group> {
        if self.limits == Limits::default() {
            return None;
        }
        let groups = std::fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string());
        let group =
            groups.and_then(|groups| Group::make(Path::new(cgroup::ROOT), &groups, source, self.limits));
        let group = group.and_then(|group| match child.id() {
            Some(process) => group.add(process).map(|()| group),
            None => Ok(group),
        });
        match group {
            Ok(group) => Some(group),
            Err(reason) => {
                if !core::mem::replace(&mut self.is_told, true) {
                    tracing::warn!(source, reason, "the program runs without memory_max and cpu_max");
                }
                None
            }
        }
    }

    /// The start message.
    fn greeting(&self, feed: &Feed) -> serde_json::Value {
        let tags = self.tags.iter().enumerate().map(|(id, tag)| {
            json!({
                "id": id,
                "name": tag.name,
                "address": tag.address,
                "type": tag.kind.element.to_string(),
                "array": tag.kind.is_array,
                "writable": tag.is_writable,
            })
        });
        let settings = feed.settings();
        json!({
            "type": "start",
            "version": 1,
            "source": settings.name,
            "interval_ms": settings.interval.map(|interval| interval.as_secs_f64() * 1e3),
            "tags": tags.collect::<Vec<_>>(),
        })
    }

    /// Encodes a message for the program.
    fn written(&self, message: &serde_json::Value) -> Vec<u8> {
        match self.format {
            Format::Json => (message.to_string() + "\n").into_bytes(),
            Format::Cbor => frame::write(message),
        }
    }

    async fn session(&mut self, feed: &Feed, writes: &mut Writes) -> Result<(), Fault> {
        let name = self.command.first().cloned().unwrap_or_default();
        let mut child = self.start()?;
        let _family = Family(child.id());
        let group = self.group(&child, &feed.settings().name);
        let _shown = Shown::new(feed, child.id());
        let closed = || Fault::Closed { target: name.clone() };
        let (Some(mut input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(closed());
        };
        let log = tokio::spawn(log(errors, feed.settings().name.clone()));
        let deadline = feed.settings().deadline;
        let greeting = self.written(&self.greeting(feed));
        let told = timeout(deadline, input.write_all(&greeting)).await;
        let outcome = match told {
            Err(_) => Err(Fault::NoAnswer { target: name.clone(), after: deadline }),
            // It may have exited immediately; its exit code is more informative.
            Ok(Err(_)) => Ok(()),
            Ok(Ok(())) => {
                feed.connected();
                self.talk(&mut input, BufReader::new(output), feed, writes, &name).await
            }
        };
        drop(input);
        let ended = timeout(Duration::from_millis(200), child.wait()).await;
        // The program does not exit by itself. This kills only our own child.
        let _ = child.start_kill();
        log.abort();
        if let Some(usage) = group.as_ref().map(Group::usage) {
            let (source, seconds) = (feed.settings().name.as_str(), usage.cpu.as_secs_f64());
            tracing::info!(
                source,
                cpu_seconds = seconds,
                memory_bytes = usage.memory,
                "the program has ended"
            );
            if usage.killed > 0 {
                let most = self.limits.memory.unwrap_or_default();
                return Err(Fault::other(
                    name,
                    format!("was ended because it needs more than {most} bytes; set memory_max"),
                ));
            }
        }
        outcome?;
        match ended {
            Ok(Ok(status)) if !status.success() => {
                Err(Fault::other(name, format!("has ended with {status}")))
            }
            Ok(_) => Err(Fault::Ended(name)),
            Err(_) => Err(closed()),
        }
    }

    /// Communicates with the program until its output ends.
    async fn talk(
        &self,
        input: &mut tokio::process::ChildStdin,
        mut output: BufReader<tokio::process::ChildStdout>,
        feed: &Feed,
        writes: &mut Writes,
        name: &str,
    ) -> Result<(), Fault> {
        let deadline = feed.settings().deadline;
        let mut line = Vec::new();
        let mut at_once = 0;
        loop {
            if at_once >= READINGS_AT_ONCE {
                at_once = 0;
                tokio::task::yield_now().await;
            }
            let silence = self.silence_max.unwrap_or(Duration::MAX);
            tokio::select! {
                // A partial line stays in `line` if another branch completes first.
                read = self.read(&mut output, &mut line) => match read {
                    Err(error) => return Err(Fault::other(name, plain(&error))),
                    Ok(false) => return Ok(()),
                    Ok(true) => {
                        at_once += self.take_line(&line, feed, name).max(1);
                        line.clear();
                    }
                },
                write = writes.next() => {
                    let message = json!({
                        "type": "write",
                        "id": write.position,
                        "name": self.tags.get(write.position).map(|tag| tag.name.as_str()),
                        "value": to_json(&write.value),
                    });
                    match timeout(deadline, input.write_all(&self.written(&message))).await {
                        Ok(Ok(())) => feed.statistics().add(Count::Writes, 1),
                        Ok(Err(_)) => {
                            feed.statistics().add(Count::WriteErrors, 1);
                            return Ok(());
                        }
                        Err(_) => {
                            feed.statistics().add(Count::WriteErrors, 1);
                            return Err(Fault::NoAnswer { target: name.to_owned(), after: deadline });
                        }
                    }
                }
                () = tokio::time::sleep(silence.min(Duration::from_secs(1 << 30))) => {
                    return Err(Fault::NoAnswer { target: name.to_owned(), after: silence });
                }
            }
        }
    }

    /// Reads until the end of a message; false at the end of the output.
    async fn read<R: tokio::io::AsyncBufRead + Unpin>(
        &self,
        from: &mut R,
        message: &mut Vec<u8>,
    ) -> std::io::Result<bool> {
        match self.format {
            Format::Json => read_line(from, message).await,
            Format::Cbor => frame::read(from, message).await,
        }
    }

    /// Stores the readings of a message; returns the number of its entries.
    fn take_line(&self, line: &[u8], feed: &Feed, name: &str) -> usize {
        let (entries, wrong) = match self.format {
            Format::Json if line.trim_ascii().is_empty() => return 0,
            Format::Json => (line::read(line.trim_ascii()), "wrote a line that is not JSON"),
            Format::Cbor => (frame::entries(line), "wrote a message that is not CBOR"),
        };
        let Some(entries) = entries else {
            feed.statistics().add(Count::Invalid, 1);
            feed.failed(&Fault::other(name, wrong));
            return 0;
        };
        let mut readings = Vec::new();
        for entry in &entries {
            match entry.as_ref().and_then(|entry| self.reading(entry)) {
                Some(reading) => readings.push(reading),
                None => feed.statistics().add(Count::Invalid, 1),
            }
        }
        // A message without a reading does not count as an answer: a program that writes only those is restarted with growing
        // pauses.
        if !readings.is_empty() {
            feed.deliver(readings);
        }
        entries.len()
    }

    /// A reading of a message; `None` if it is invalid or its tag is unknown.
    fn reading(&self, entry: &Entry) -> Option<(usize, Reading)> {
        let position = match &entry.tag {
            Named::Id(id) => *id,
            Named::Name(name) => *self.by_name.get(name)?,
        };
        Some((position, entry.reading(self.tags.get(position)?.kind)?))
    }
}

/// Shows the process id in the statistics while it runs, even if the task is aborted.
struct Shown(Feed);

impl Shown {
    fn new(feed: &Feed, process: Option<u32>) -> Self {
        feed.statistics().set_process(process);
        Self(feed.clone())
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.statistics().set_process(None);
    }
}

/// Reads until the end of a line; false at the end of the output.
async fn read_line<R: tokio::io::AsyncBufRead + Unpin>(
    from: &mut R,
    line: &mut Vec<u8>,
) -> std::io::Result<bool> {
    let left = LINE_LEN_MAX.saturating_sub(line.len() as u64);
    let count = from.take(left).read_until(b'\n', line).await?;
    match line.last() {
        Some(b'\n') => Ok(true),
        _ if line.len() as u64 >= LINE_LEN_MAX => {
            Err(std::io::Error::other(format!("wrote a line of more than {LINE_LEN_MAX} bytes")))
        }
        // The last line may lack a line end.
        _ => Ok(count > 0 && !line.is_empty()),
    }
}

async fn log(errors: tokio::process::ChildStderr, source: String) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    while let Ok(true) = read_line(&mut errors, &mut line).await {
        let text = String::from_utf8_lossy(&line);
        let text: String = text.trim().chars().filter(|char| !char.is_control()).take(LOG_LEN_MAX).collect();
        tracing::info!(source, program = text, "says");
        line.clear();
        // As for readings: a flooding program always has more lines.
        tokio::task::yield_now().await;
    }
}

impl Adapter for Program {
    fn describe(&self) -> String {
        format!("program {}", self.command.join(" "))
    }

    fn review(&self, _: &SourceSettings, _: &[String]) -> Vec<Advice> {
        let Some(program) = self.command.first().filter(|program| !self.is_there(program)) else {
            return Vec::new();
        };
        let words: Vec<&str> = program.split_whitespace().collect();
        let hint = if words.len() > 1 {
            format!("write each argument as a separate text: command = {words:?}")
        } else {
            "install it, or write its path; relative paths start from the folder of this file".to_owned()
        };
        let problem = format!("there is no program {program:?} now");
        vec![Advice { position: None, key: "command", problem, hint }]
    }

    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields, position: usize) -> Result<Placement, Mistake> {
        let kind = Kind {
            element: match tag.kind {
                // The program sends the unscaled number.
                Some(_) | None if !tag.scaling.is_identity() => BuiltInType::Double,
                Some(kind) => kind,
                None => BuiltInType::Double,
            },
            is_array: fields.flag("array")?.unwrap_or(false),
        };
        let address = fields.text("address")?;
        self.by_name.insert(tag.name.clone(), position);
        let is_writable = tag.access == Access::ReadWrite;
        self.tags.push(ProgramTag { name: tag.name.clone(), address, kind, is_writable });
        Ok(Placement::Variable(kind))
    }

    fn finds_variables(&self) -> bool {
        true
    }

    fn adds(&self) -> Option<&'static str> {
        // Those that have tags usually add none.
        self.tags.is_empty().then_some("the tags of the program")
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(self.session(feed, writes))
    }
}
