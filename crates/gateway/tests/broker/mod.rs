//! A real broker, mosquitto.

#![allow(dead_code)] // each test uses some of it

use crate::missing;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A broker. It is killed on drop unless it was stopped.
pub(crate) struct Broker(Child);

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Broker {
    /// `None` if mosquitto is not installed. `more` is added to its configuration.
    pub(crate) fn start(folder: &Path, port: u16, more: &str) -> Option<Self> {
        let file = folder.join("mosquitto.conf");
        let user = if is_root() { "user root\n" } else { "" };
        let text = format!("listener {port} 127.0.0.1\nallow_anonymous true\n{user}{more}");
        std::fs::write(&file, text).unwrap();
        let program = ["mosquitto", "/usr/sbin/mosquitto"].iter().find_map(|name| {
            Command::new(name).arg("-c").arg(&file).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
        });
        let Some(program) = program else {
            missing::skip(missing::MOSQUITTO, "mosquitto is not installed (apt-get install mosquitto)");
            return None;
        };
        let broker = Self(program);
        let end = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "mosquitto does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(broker)
    }

    /// Stops the broker properly, so that it saves its state.
    pub(crate) fn stop(mut self) {
        let kill = Command::new("kill").arg(self.0.id().to_string()).status().unwrap();
        assert!(kill.success());
        self.0.wait().unwrap();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|of| std::os::unix::fs::MetadataExt::uid(&of) == 0)
}
