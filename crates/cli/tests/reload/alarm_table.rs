//! The interactive table of `taktwerk alarms` on a pseudo terminal.

use crate::installation::{Installation, LIMIT, run, until};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// `taktwerk alarms` on a terminal of 80 columns.
struct Table {
    child: Child,
    keys: File,
    kept: File,
    before: Termios,
    shown: Arc<Mutex<String>>,
}

impl Table {
    fn start(url: &str) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let end = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let kept = end();
        let before = tcgetattr(&kept).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_taktwerk"))
            .args(["alarms", url, "-I", "50", "--policy", "None"])
            .env("TERM", "xterm")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let keys = File::from(rustix::io::dup(&terminal).unwrap());
        let (shown, mut terminal) = (Arc::<Mutex<String>>::default(), File::from(terminal));
        let screen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(count @ 1..) = terminal.read(&mut block) {
                screen.lock().unwrap().push_str(&String::from_utf8_lossy(&block[..count]));
            }
        });
        Self { child, keys, kept, before, shown }
    }

    /// Everything that was written to the terminal.
    fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end, and checks that the terminal is as before.
    fn end(mut self) -> ExitStatus {
        let end = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "it does not end: {}", self.shown());
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(tcgetattr(&self.kept).unwrap().local_modes, self.before.local_modes);
        until("the main screen", || {
            let shown = self.shown();
            let last = |code: &str| shown.rfind(code);
            last("\u{1b}[?1049l") > last("\u{1b}[?1049h") && last("\u{1b}[?25h") > last("\u{1b}[?25l")
        });
        status
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_operator_acknowledges_comments_and_shelves_with_keys() {
    let installation = Installation::new();
    // A demo plant with an alarm that stays active.
    installation.write(
        "[[alarms.alarm]]\nvariable = \"nsu=urn:taktwerk:demo-plant;s=Plant/Cycles\"\nname = \"Running\"\n\
         high = 1.0\nseverity = 990\n",
    );
    let server = installation.serve(&[]);
    let url = server.url().to_owned();
    let alarm = || -> Option<Value> {
        let (code, text) = run(&["alarms", &url, "--list", "--json", "-I", "50"]);
        assert_eq!(code, 0, "{text}");
        let list: Vec<Value> = serde_json::from_str(&text).unwrap();
        list.into_iter().find(|alarm| alarm["ConditionName"] == "Running")
    };
    let is = |field: &str, value: Value| alarm().is_some_and(|alarm| alarm[field] == value);
    until("the alarm", || is("Acknowledged", false.into()));

    let mut table = Table::start(&url);
    until("the table", || table.shown().contains("Running") && table.shown().contains("acknowledge"));
    let modes = tcgetattr(&table.kept).unwrap().local_modes;
    assert!(!modes.intersects(LocalModes::ECHO | LocalModes::ICANON), "the terminal is not raw");
    // Others may be more severe for a moment, so it is found by its name.
    table.press("/running\ra");
    until("it is acknowledged", || is("Acknowledged", true.into()));
    // Refused by the server: the view goes on.
    table.press("a");
    until("the reason", || table.shown().contains("AlreadyAcked"));
    table.press("mon my way\r");
    until("the comment", || is("Comment", "on my way".into()));
    table.press("t5\r");
    until("it is shelved", || is("Shelving", "Timed Shelved".into()));
    table.press("u");
    until("it is unshelved", || is("Shelving", "Unshelved".into()));
    table.press("dy");
    until("it is disabled", || alarm().is_none());
    table.press("e");
    until("it is enabled", || alarm().is_some());
    table.press("q");
    assert_eq!(table.end().code(), Some(0));

    // Ctrl-C, and a signal.
    let mut table = Table::start(&url);
    until("the table", || table.shown().contains("Running"));
    table.press("\x03");
    assert_eq!(table.end().code(), Some(130));
    let table = Table::start(&url);
    until("the table", || table.shown().contains("Running"));
    let pid = Pid::from_raw(table.child.id().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(table.end().code(), Some(130));
}
