//! Sparkplug B programs based on another library.

#![allow(dead_code)] // each test uses some of it

use crate::missing;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A program of `interop/sparkplug`.
pub(crate) struct Foreign {
    program: Child,
    lines: Receiver<String>,
}

impl Foreign {
    /// `None` if its library is not installed.
    pub(crate) fn start(script: &str, arguments: &[&str]) -> Option<Self> {
        let python = missing::python("TAKTWERK_SPARKPLUG_PYTHON", "pysparkplug", "sparkplug")?;
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../interop/sparkplug/");
        let mut program = Command::new(python)
            .arg(format!("{folder}{script}"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(program.stdout.take().unwrap());
        let (out, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if out.send(line).is_err() {
                    return;
                }
            }
        });
        Some(Self { program, lines })
    }

    /// Its standard input.
    pub(crate) fn input(&mut self) -> &mut ChildStdin {
        self.program.stdin.as_mut().unwrap()
    }

    /// Waits for a line.
    pub(crate) fn until(&self, wanted: &str) {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(Duration::from_secs(60)) {
                Ok(line) if line == wanted => return,
                Ok(line) => seen.push(line),
                Err(_) => panic!("{wanted} does not come: {seen:?}"),
            }
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
