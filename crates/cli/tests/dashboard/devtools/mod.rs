//! A remote-controlled browser that reports received bytes and paint times.
//!
//! Commands use the debugging pipe, so that no port is needed. A shell passes the pipe as the two required file
//! descriptors.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Timeout on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser and its current page.
pub(crate) struct Devtools {
    browser: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    sent: u64,
    /// Number of bytes received for the page, including headers.
    received: u64,
}

impl Drop for Devtools {
    fn drop(&mut self) {
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}

#[allow(dead_code)] // each test uses some of it
impl Devtools {
    /// Starts the browser with an empty page.
    pub(crate) fn start(browser: &Path, folder: &Path) -> Self {
        let mut browser = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null"])
            .arg(browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", folder.join("devtools").display()))
            .arg("about:blank")
            // Chromium leaves folders in the one for temporary files.
            .env("TMPDIR", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (commands, answers) = (browser.stdin.take().unwrap(), browser.stdout.take().unwrap());
        let (told, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(answers).split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { continue };
                if told.send(message).is_err() {
                    break;
                }
            }
        });
        let mut devtools = Self { browser, commands, messages, session: None, sent: 0, received: 0 };
        devtools.another_page();
        devtools
    }

    /// Opens an empty page, which receives all later commands. Earlier pages stay open.
    pub(crate) fn another_page(&mut self) {
        self.session = None;
        // In a new window, so that all pages are visible at once.
        let target = self.call("Target.createTarget", json!({"url": "about:blank", "newWindow": true}));
        let attached =
            self.call("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        assert!(self.session.is_some(), "{attached}");
        for domain in ["Network.enable", "Page.enable", "Runtime.enable"] {
            self.call(domain, json!({}));
        }
        // Without cache, as if opened for the first time.
        self.call("Network.setCacheDisabled", json!({"cacheDisabled": true}));
    }

    /// Sends a command, and returns its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let mut command = json!({"id": self.sent, "method": method, "params": params});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&command).unwrap();
        bytes.push(0);
        self.commands.write_all(&bytes).unwrap();
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let message =
                self.messages.recv_timeout(left).unwrap_or_else(|_| panic!("no answer to {method}"));
            if message["id"] == json!(self.sent) {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.count(&message);
        }
    }

    fn count(&mut self, message: &Value) {
        if message["sessionId"].as_str() != self.session.as_deref() {
            return;
        }
        let params = &message["params"];
        let bytes = match message["method"].as_str() {
            Some("Network.responseReceived") => &params["response"]["encodedDataLength"],
            Some("Network.dataReceived") => &params["encodedDataLength"],
            _ => return,
        };
        // Integers, but some versions write them with a fraction.
        self.received += bytes.as_f64().unwrap_or(0.0) as u64;
    }

    /// The result of a script in the page.
    pub(crate) fn evaluate(&mut self, script: &str) -> Value {
        let asked = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{script}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Opens a page in a window of this width, and resets the number of received bytes.
    pub(crate) fn open(&mut self, url: &str, width: u32) {
        // A changed fragment alone would not reload the page.
        self.call("Page.navigate", json!({"url": "about:blank"}));
        let screen = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", screen);
        self.received = 0;
        self.call("Page.navigate", json!({"url": url}));
    }

    /// Waits until a script in the page returns true.
    pub(crate) fn wait_for(&mut self, script: &str) {
        let end = Instant::now() + PATIENCE;
        while self.evaluate(script) != json!(true) {
            let page = || "the page does not become as expected";
            assert!(
                Instant::now() < end,
                "{}: {script}: {}",
                page(),
                self.evaluate("document.body.innerText")
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Number of bytes received since the page was opened.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Milliseconds from the navigation to the first contentful paint.
    pub(crate) fn first_paint(&mut self) -> f64 {
        self.wait_for("performance.getEntriesByName('first-contentful-paint').length > 0");
        self.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime").as_f64().unwrap()
    }

    /// Saves a screenshot if `TAKTWERK_KEEP_SCREENSHOTS` names a directory.
    pub(crate) fn keep(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("TAKTWERK_KEEP_SCREENSHOTS") else { return };
        let picture = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let bytes = base64::Engine::decode(
            &base64::prelude::BASE64_STANDARD,
            picture["data"].as_str().unwrap_or_default(),
        );
        std::fs::write(Path::new(&folder).join(name), bytes.unwrap()).unwrap();
    }
}
