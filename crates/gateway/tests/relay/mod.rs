//! A relay to a database whose connections break on one side only, as behind a firewall that drops connections silently.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};

/// The name of PostgreSQL's socket in its directory.
const SOCKET: &str = ".s.PGSQL.5432";

/// A socket in front of a database's socket.
pub(crate) struct Relay {
    folder: tempfile::TempDir,
    is_cut: watch::Sender<bool>,
    /// Client connections whose other side is closed: they stay open.
    _kept: Arc<mpsc::Sender<UnixStream>>,
}

impl Relay {
    pub(crate) fn start(database: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let target: PathBuf = database.join(SOCKET);
        let (is_cut, cut) = watch::channel(false);
        let (kept, mut streams) = mpsc::channel(100);
        let kept = Arc::new(kept);
        tokio::spawn(async move {
            let mut all = Vec::new();
            while let Some(stream) = streams.recv().await {
                all.push(stream);
            }
        });
        let keeps = Arc::clone(&kept);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (target, mut cut, keeps) = (target.clone(), cut.clone(), Arc::clone(&keeps));
                tokio::spawn(async move {
                    if !*cut.borrow() {
                        let mut server = UnixStream::connect(target).await.unwrap();
                        tokio::select! {
                            _ = copy_bidirectional(&mut client, &mut server) => return,
                            _ = cut.wait_for(|is_cut| *is_cut) => {}
                        }
                    }
                    // The database sees the end of the connection, the client does not.
                    keeps.send(client).await.unwrap();
                });
            }
        });
        Self { folder, is_cut, _kept: kept }
    }

    /// The URL for clients.
    pub(crate) fn url(&self) -> String {
        format!("host={} user=taktwerk dbname=postgres", self.folder.path().display())
    }

    /// Closes the connections on the database's side, and accepts no new ones.
    pub(crate) fn cut(&self) {
        self.is_cut.send_replace(true);
    }
}
