//! A browser that is told what to do, and says what it has received and when it has painted.
//!
//! The commands go through its debugging pipe, so that nothing listens on a port. The shell gives it the pipe as the two file
//! descriptors that it wants.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser, and the page that commands go to.
pub(crate) struct Devtools {
    browser: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    sent: u64,
    /// What has been received for the page: bytes as they were on the wire, headers too.
    received: u64,
}

impl Drop for Devtools {
    fn drop(&mut self) {
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}

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

    /// Opens an empty page, which all commands go to from now on. Pages before it stay open.
    pub(crate) fn another_page(&mut self) {
        self.session = None;
        // In a window of its own, so that it can be seen together with the others.
        let target = self.call("Target.createTarget", json!({"url": "about:blank", "newWindow": true}));
        let attached =
            self.call("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        assert!(self.session.is_some(), "{attached}");
        for domain in ["Network.enable", "Page.enable", "Runtime.enable"] {
            self.call(domain, json!({}));
        }
        // Each page is opened as by a browser that has never seen it.
        self.call("Network.setCacheDisabled", json!({"cacheDisabled": true}));
    }

    /// Sends a command, and gives its result.
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
        // Whole numbers, but written with a fraction by some versions.
        self.received += bytes.as_f64().unwrap_or(0.0) as u64;
    }

    /// What a script in the page gives.
    pub(crate) fn evaluate(&mut self, script: &str) -> Value {
        let asked = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{script}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Opens a page in a window of this width, and counts from now on what it receives.
    pub(crate) fn open(&mut self, url: &str, width: u32) {
        // A part of an address alone would not load the page again.
        self.call("Page.navigate", json!({"url": "about:blank"}));
        let screen = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", screen);
        self.received = 0;
        self.call("Page.navigate", json!({"url": url}));
    }

    /// Waits until a script in the page gives true.
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

    /// Bytes that the page has received since it was opened.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Milliseconds from the navigation to the first paint of something that has content.
    pub(crate) fn first_paint(&mut self) -> f64 {
        self.wait_for("performance.getEntriesByName('first-contentful-paint').length > 0");
        self.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime").as_f64().unwrap()
    }

    /// Keeps a picture of the page if `TAKTWERK_KEEP_SCREENSHOTS` names a folder.
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
