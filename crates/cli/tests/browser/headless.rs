//! The browser of this machine.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Names of the browser in packages.
const NAMES: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome-headless-shell"];

/// Set if a browser is required: .ci/run installs one.
const REQUIRED: &str = "TAKTWERK_TEST_BROWSER";

/// The browser. A missing one is a failure if required, else a message.
pub(crate) fn browser() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = NAMES.iter().find_map(|name| {
        env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
    });
    if found.is_none() {
        assert!(env::var_os(REQUIRED).is_none(), "no Chromium here, and {REQUIRED} is set: install chromium");
        eprintln!("skipped: no Chromium here, so no page is looked at (Debian: apt-get install chromium)");
    }
    found
}

/// The output of the browser for the page of a URL, in a window of this width and height.
pub(crate) fn run(
    browser: &Path,
    arguments: &[&str],
    (width, height): (u32, u32),
    url: &str,
    folder: &Path,
) -> String {
    let written = folder.join("browser.out");
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("--user-data-dir={}", folder.join("browser").display()))
        .args(arguments)
        .arg(url)
        // Chromium leaves folders in the one for temporary files.
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .stdout(File::create(&written).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(120);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the browser does not end");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    fs::read_to_string(&written).unwrap()
}
