//! A real NATS server.

use crate::missing;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Path of the server: where interop/servers.sh installs it, or in the search path.
pub(crate) fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/nats");
    let mut folders = std::env::split_paths(&path).chain([built]);
    let found =
        folders.find_map(|folder| Some(folder.join("nats-server")).filter(|program| program.is_file()));
    if found.is_none() {
        missing::skip(missing::SERVERS, "nats-server is not installed (interop/servers.sh builds it)");
    }
    found
}

/// A server, which is killed on drop.
pub(crate) struct Server(Child);

impl Server {
    pub(crate) fn start(program: &Path, folder: &Path, port: u16) -> Self {
        let file = folder.join("nats.conf");
        // Each message is on disk before it is confirmed, so that a kill loses none.
        let text = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}/js\", sync_interval: always }}\n",
            folder.display()
        );
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(program);
        command.arg("-c").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Self(command.spawn().unwrap());
        let end = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "nats-server does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
