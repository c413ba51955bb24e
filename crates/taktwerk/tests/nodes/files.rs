//! Shared directories from a client's view: files, directories, permissions, and protection of everything outside.

use core::time::Duration;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use taktwerk::files::{FileSystem, FolderOptions, Transfer};
use taktwerk::schema::ids::{method_ids as m, object_ids, object_ids as o};
use taktwerk::server::Authorization;
use taktwerk::server::authorization::IdentityRule;
use taktwerk::types::ByteString;
use taktwerk::{Client, NodeId, RunningServer, Server, StatusCode, Variant};

/// A directory that is removed when the test ends.
struct Disk(PathBuf);

impl Disk {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("taktwerk-share-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("shared/inner")).unwrap();
        std::fs::write(path.join("secret"), "secret").unwrap();
        std::fs::write(path.join("shared/a.txt"), "0123456789").unwrap();
        std::fs::write(path.join("shared/inner/b.txt"), "b").unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join("shared").join(name)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const fn role(id: u32) -> NodeId {
    NodeId::numeric(0, id)
}

const OBSERVER: NodeId = role(object_ids::WELL_KNOWN_ROLE_OBSERVER);
const ENGINEER: NodeId = role(object_ids::WELL_KNOWN_ROLE_ENGINEER);

struct Plant {
    disk: Disk,
    server: RunningServer,
    files: FileSystem,
}

impl Plant {
    /// Everyone may call methods; "olga" may read the directory, "emil" may write to it.
    fn new(name: &str, change: impl FnOnce(FolderOptions) -> FolderOptions) -> Self {
        let disk = Disk::new(name);
        let mut authorization = Authorization::open();
        for (role, user) in [("Observer", "olga"), ("Engineer", "emil")] {
            let role = authorization.role_mut(role).unwrap();
            role.identities.push(IdentityRule::UserName(user.to_owned()));
        }
        let server = Server::builder()
            .bind("127.0.0.1:0")
            .users(|_: &str, _: &[u8]| Ok(()))
            .allow_clear_passwords()
            .authorization(authorization)
            .build()
            .unwrap();
        let files = FileSystem::new(&server).unwrap();
        let options = change(FolderOptions::default().read([OBSERVER]).write([ENGINEER]));
        let parent = server.namespace("urn:plant").folder("Plant").unwrap();
        files.share(&parent, "Recipes", disk.at(""), options).unwrap();
        Self { disk, server: server.spawn().unwrap(), files }
    }

    async fn log_on(&self, user: &str) -> Session {
        let client =
            Client::builder(&self.server.url()).unsecured().user(user, "x").allow_plaintext_password();
        Session(client.connect().await.unwrap())
    }
}

fn node(path: &str) -> NodeId {
    NodeId::string(
        2,
        if path.is_empty() { "Plant/Recipes".to_owned() } else { format!("Plant/Recipes/{path}") },
    )
}

struct Session(Client);

impl Session {
    async fn call(
        &self,
        object: &NodeId,
        method: u32,
        inputs: Vec<Variant>,
    ) -> Result<Vec<Variant>, StatusCode> {
        let method = NodeId::numeric(0, method);
        self.0.call_variants(object.clone(), method, inputs).await.map_err(|error| error.status())
    }

    async fn open(&self, path: &str, mode: u8) -> Result<u32, StatusCode> {
        let outputs = self.call(&node(path), m::FILE_TYPE_OPEN, vec![mode.into()]).await?;
        Ok(u32::try_from(outputs[0].clone()).unwrap())
    }

    async fn read(&self, path: &str, handle: u32, len: i32) -> Result<Vec<u8>, StatusCode> {
        let outputs = self.call(&node(path), m::FILE_TYPE_READ, vec![handle.into(), len.into()]).await?;
        Ok(ByteString::try_from(outputs[0].clone()).unwrap().as_bytes().to_vec())
    }

    async fn write(&self, path: &str, handle: u32, data: &[u8]) -> Result<(), StatusCode> {
        let inputs = vec![handle.into(), ByteString::from(data.to_vec()).into()];
        self.call(&node(path), m::FILE_TYPE_WRITE, inputs).await.map(drop)
    }

    async fn close(&self, path: &str, handle: u32) -> Result<(), StatusCode> {
        self.call(&node(path), m::FILE_TYPE_CLOSE, vec![handle.into()]).await.map(drop)
    }

    async fn create_file(&self, directory: &str, name: &str) -> Result<NodeId, StatusCode> {
        let inputs = vec![name.into(), false.into()];
        let outputs = self.call(&node(directory), m::FILE_DIRECTORY_TYPE_CREATE_FILE, inputs).await?;
        Ok(NodeId::try_from(outputs[0].clone()).unwrap())
    }

    async fn create_directory(&self, directory: &str, name: &str) -> Result<NodeId, StatusCode> {
        let method = m::FILE_DIRECTORY_TYPE_CREATE_DIRECTORY;
        let outputs = self.call(&node(directory), method, vec![name.into()]).await?;
        Ok(NodeId::try_from(outputs[0].clone()).unwrap())
    }

    async fn delete(&self, directory: &str, object: NodeId) -> Result<(), StatusCode> {
        let method = m::FILE_DIRECTORY_TYPE_DELETE_FILE_SYSTEM_OBJECT;
        self.call(&node(directory), method, vec![object.into()]).await.map(drop)
    }

    async fn take(
        &self,
        from: &str,
        object: NodeId,
        to: &str,
        copy: bool,
        name: &str,
    ) -> Result<NodeId, StatusCode> {
        let inputs = vec![object.into(), node(to).into(), copy.into(), name.into()];
        let outputs = self.call(&node(from), m::FILE_DIRECTORY_TYPE_MOVE_OR_COPY, inputs).await?;
        Ok(NodeId::try_from(outputs[0].clone()).unwrap())
    }

    async fn property<T: taktwerk::Value>(&self, path: &str, name: &str) -> T {
        let id = node(&format!("{path}/{name}"));
        self.0.read_value(id).await.unwrap()
    }
}

#[tokio::test]
async fn files_are_read_and_written_in_pieces() {
    let plant = Plant::new("pieces", |options| options);
    let (olga, emil) = (plant.log_on("olga").await, plant.log_on("emil").await);
    let handle = olga.open("a.txt", 1).await.unwrap();
    assert_eq!(olga.read("a.txt", handle, 4).await.unwrap(), b"0123");
    assert_eq!(olga.read("a.txt", handle, 100).await.unwrap(), b"456789");
    assert_eq!(olga.property::<u64>("a.txt", "Size").await, 10);
    assert_eq!(olga.property::<u16>("a.txt", "OpenCount").await, 1);
    assert!(olga.property::<bool>("a.txt", "Writable").await);
    let position = vec![handle.into(), 8u64.into()];
    olga.call(&node("a.txt"), m::FILE_TYPE_SET_POSITION, position).await.unwrap();
    let position = olga.call(&node("a.txt"), m::FILE_TYPE_GET_POSITION, vec![handle.into()]).await.unwrap();
    assert_eq!(position, [Variant::UInt64(8)]);
    assert_eq!(olga.read("a.txt", handle, 100).await.unwrap(), b"89");
    // A handle is not valid for another session, another file, or for writing.
    assert_eq!(emil.read("a.txt", handle, 1).await, Err(StatusCode::BAD_INVALID_ARGUMENT));
    assert_eq!(olga.read("inner/b.txt", handle, 1).await, Err(StatusCode::BAD_INVALID_ARGUMENT));
    assert_eq!(emil.open("a.txt", 2).await, Err(StatusCode::BAD_NOT_WRITABLE));
    olga.close("a.txt", handle).await.unwrap();
    assert_eq!(olga.close("a.txt", handle).await, Err(StatusCode::BAD_INVALID_ARGUMENT));

    let handle = emil.open("a.txt", 6).await.unwrap();
    assert_eq!(olga.open("a.txt", 1).await, Err(StatusCode::BAD_NOT_READABLE));
    emil.write("a.txt", handle, b"new").await.unwrap();
    emil.write("a.txt", handle, b" text").await.unwrap();
    emil.close("a.txt", handle).await.unwrap();
    assert_eq!(std::fs::read(plant.disk.at("a.txt")).unwrap(), b"new text");
    let handle = emil.open("a.txt", 10).await.unwrap();
    emil.write("a.txt", handle, b"!").await.unwrap();
    assert_eq!(std::fs::read(plant.disk.at("a.txt")).unwrap(), b"new text!");
    // Files left open are closed when the session ends.
    drop(emil);
    loop {
        match olga.open("a.txt", 1).await {
            Ok(_) => break,
            Err(status) => assert_eq!(status, StatusCode::BAD_NOT_READABLE),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn directories_are_changed_and_shown() {
    let plant = Plant::new("directories", |options| options);
    let emil = plant.log_on("emil").await;
    let created = emil.create_directory("", "new").await.unwrap();
    assert_eq!(created, node("new"));
    assert_eq!(emil.create_directory("", "new").await, Err(StatusCode::BAD_BROWSE_NAME_DUPLICATED));
    let inputs = vec!["c.txt".into(), true.into()];
    let outputs = emil.call(&node("new"), m::FILE_DIRECTORY_TYPE_CREATE_FILE, inputs).await.unwrap();
    let handle = u32::try_from(outputs[1].clone()).unwrap();
    emil.write("new/c.txt", handle, b"abc").await.unwrap();
    // Open files cannot be moved or deleted.
    assert_eq!(emil.delete("", node("new")).await, Err(StatusCode::BAD_INVALID_STATE));
    let moved = emil.take("new", node("new/c.txt"), "", false, "").await;
    assert_eq!(moved, Err(StatusCode::BAD_INVALID_STATE));
    emil.close("new/c.txt", handle).await.unwrap();
    let copied = emil.take("new", node("new/c.txt"), "inner", true, "d.txt").await.unwrap();
    assert_eq!(
        (copied, std::fs::read(plant.disk.at("inner/d.txt")).unwrap()),
        (node("inner/d.txt"), b"abc".to_vec())
    );
    let again = emil.take("new", node("new/c.txt"), "inner", true, "d.txt").await;
    assert_eq!(again, Err(StatusCode::BAD_BROWSE_NAME_DUPLICATED));
    let moved = emil.take("", node("inner"), "new", false, "").await.unwrap();
    assert_eq!(moved, node("new/inner"));
    assert!(plant.disk.at("new/inner/b.txt").exists());
    // The content of the directory is shown under its new route.
    assert_eq!(emil.property::<u64>("new/inner/d.txt", "Size").await, 3);
    let handle = emil.open("new/inner/d.txt", 1).await.unwrap();
    emil.close("new/inner/d.txt", handle).await.unwrap();
    assert!(emil.0.browse(node("inner")).await.is_err());
    assert!(emil.0.browse(node("inner/b.txt")).await.is_err());
    assert_eq!(
        emil.take("", node("new"), "new/inner", false, "").await,
        Err(StatusCode::BAD_INVALID_ARGUMENT)
    );
    assert_eq!(emil.take("", node("new"), "", true, "copy").await, Err(StatusCode::BAD_NOT_SUPPORTED));
    assert_eq!(emil.delete("", node("new/c.txt")).await, Err(StatusCode::BAD_NOT_FOUND), "not in this one");
    let children: Vec<String> = emil
        .0
        .browse(node("new"))
        .await
        .unwrap()
        .iter()
        .map(|one| one.browse_name.name.to_string())
        .collect();
    assert!(
        ["c.txt", "inner", "CreateFile", "Delete"].iter().all(|name| children.contains(&(*name).to_owned()))
    );
    emil.delete("", node("new")).await.unwrap();
    assert!(!plant.disk.at("new").exists());
    assert!(emil.0.browse(node("new/inner")).await.is_err());
    // Changes by other programs are shown after a refresh.
    std::fs::write(plant.disk.at("other.txt"), "x").unwrap();
    std::fs::remove_file(plant.disk.at("a.txt")).unwrap();
    assert_eq!(emil.open("a.txt", 1).await, Err(StatusCode::BAD_NOT_FOUND));
    plant.files.refresh().unwrap();
    assert_eq!(emil.property::<u64>("other.txt", "Size").await, 1);
    assert!(emil.0.browse(node("a.txt")).await.is_err());
}

#[tokio::test]
async fn permissions_are_enforced() {
    let plant = Plant::new("permissions", |options| options);
    let (olga, anton) = (plant.log_on("olga").await, plant.log_on("anton").await);
    let denied = StatusCode::BAD_USER_ACCESS_DENIED;
    assert_eq!(olga.open("a.txt", 2).await, Err(denied));
    assert_eq!(olga.create_file("", "x").await, Err(denied));
    assert_eq!(olga.create_directory("", "x").await, Err(denied));
    assert_eq!(olga.delete("", node("a.txt")).await, Err(denied));
    assert_eq!(olga.take("", node("a.txt"), "inner", true, "x").await, Err(denied));
    // A user without either role does not learn that the directory exists.
    assert_eq!(anton.open("a.txt", 1).await, Err(StatusCode::BAD_NODE_ID_UNKNOWN));
    assert!(anton.0.browse(node("")).await.is_err());
    assert_eq!(std::fs::read_dir(plant.disk.at("")).unwrap().count(), 2, "nothing has changed");
    let read_only = Plant::new("read-only", |options| options.write([]));
    let emil = read_only.log_on("olga").await;
    assert!(!emil.property::<bool>("a.txt", "Writable").await);
    assert_eq!(emil.open("a.txt", 3).await, Err(denied));
    assert!(emil.open("a.txt", 1).await.is_ok());
}

/// Names and links that lead out of the directory, with every Method that takes them.
#[tokio::test]
async fn nothing_outside_of_the_directory_is_reachable() {
    let plant = Plant::new("attack", |options| options);
    let emil = plant.log_on("emil").await;
    let names = [
        "..",
        ".",
        "",
        "../new",
        "/tmp/new",
        "inner/new",
        "..\\new",
        "a\0b",
        "\u{1}",
        "../../secret",
        &"x".repeat(300),
    ];
    for name in names {
        let invalid = Err(StatusCode::BAD_BROWSE_NAME_INVALID);
        assert_eq!(emil.create_file("", name).await, invalid, "{name:?}");
        assert_eq!(emil.create_directory("inner", name).await, invalid, "{name:?}");
        if !name.is_empty() {
            assert_eq!(emil.take("", node("a.txt"), "inner", true, name).await, invalid, "{name:?}");
            assert_eq!(emil.take("", node("a.txt"), "inner", false, name).await, invalid, "{name:?}");
        }
    }
    // Links created by local users, also in place of files that are shown already.
    std::os::unix::fs::symlink(plant.disk.0.join("secret"), plant.disk.at("link")).unwrap();
    std::fs::remove_file(plant.disk.at("a.txt")).unwrap();
    std::os::unix::fs::symlink(plant.disk.0.join("secret"), plant.disk.at("a.txt")).unwrap();
    std::fs::remove_dir_all(plant.disk.at("inner")).unwrap();
    std::os::unix::fs::symlink(&plant.disk.0, plant.disk.at("inner")).unwrap();
    assert!(emil.open("a.txt", 1).await.is_err());
    assert!(emil.open("a.txt", 6).await.is_err());
    assert!(emil.open("inner/b.txt", 1).await.is_err());
    assert!(emil.create_file("inner", "new").await.is_err());
    plant.files.refresh().unwrap();
    for path in ["link", "a.txt", "inner", "inner/secret"] {
        assert!(emil.0.browse(node(path)).await.is_err(), "{path}");
    }
    assert_eq!(std::fs::read(plant.disk.0.join("secret")).unwrap(), b"secret");
    let beside: Vec<_> =
        std::fs::read_dir(&plant.disk.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside.len(), 2, "{beside:?}");
}

#[tokio::test]
async fn disk_space_and_handles_are_limited() {
    let plant = Plant::new("limits", |options| options.bytes_max(20));
    let emil = plant.log_on("emil").await;
    let full = Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
    emil.create_file("", "big").await.unwrap();
    let handle = emil.open("big", 2).await.unwrap();
    // 11 bytes are used already.
    emil.write("big", handle, b"123456789").await.unwrap();
    assert_eq!(emil.write("big", handle, b"1").await, full);
    assert_eq!(emil.take("", node("a.txt"), "", true, "copy").await.map(drop), full);
    emil.close("big", handle).await.unwrap();
    // Rewriting a file repeatedly does not use more space.
    for _ in 0..3 {
        let handle = emil.open("big", 6).await.unwrap();
        emil.write("big", handle, b"123456789").await.unwrap();
        assert_eq!(emil.write("big", handle, b"1").await, full);
        emil.close("big", handle).await.unwrap();
    }
    emil.delete("", node("big")).await.unwrap();
    emil.take("", node("inner/b.txt"), "", true, "copy").await.unwrap_err();
    emil.take("inner", node("inner/b.txt"), "", true, "copy").await.unwrap();
    let mut open = Vec::new();
    let refused = loop {
        match emil.open("a.txt", 1).await {
            Ok(handle) => open.push(handle),
            Err(status) => break status,
        }
    };
    assert_eq!((open.len(), refused), (16, StatusCode::BAD_TOO_MANY_OPERATIONS));
    // Another session has its own limit.
    assert!(plant.log_on("olga").await.open("a.txt", 1).await.is_ok());
}

/// The user who committed a file, and its content.
type Taken = (String, Vec<u8>);

#[tokio::test]
async fn temporary_files_are_generated_and_processed_by_the_application() {
    let disk = Disk::new("temporary");
    let mut authorization = Authorization::open();
    for (role, user) in [("Observer", "olga"), ("Engineer", "emil")] {
        let role = authorization.role_mut(role).unwrap();
        role.identities.push(IdentityRule::UserName(user.to_owned()));
    }
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .users(|_: &str, _: &[u8]| Ok(()))
        .allow_clear_passwords()
        .authorization(authorization)
        .build()
        .unwrap();
    let files = FileSystem::new(&server).unwrap();
    let options = FolderOptions::default().bytes_max(1000);
    let taken: Arc<Mutex<Vec<Taken>>> = Arc::default();
    let log = Arc::clone(&taken);
    let made = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&made);
    let transfer = Transfer::new(options.read([OBSERVER]).write([ENGINEER]))
        .timeout(Duration::from_secs(30))
        .on_read(move |_, options| match options {
            Variant::Empty => {
                counter.fetch_add(1, Ordering::Relaxed);
                Ok(b"0123456789".to_vec())
            }
            _ => Err(StatusCode::BAD_INVALID_ARGUMENT),
        })
        .on_commit(move |caller, _, bytes| {
            if bytes.is_empty() {
                return Err(StatusCode::BAD_DATA_ENCODING_INVALID);
            }
            log.lock().unwrap().push((caller.user.as_deref().unwrap_or_default().to_owned(), bytes));
            Ok(())
        });
    let parent = server.namespace("urn:plant").folder("Plant").unwrap();
    let object = files.transfer(&parent, "Backup", transfer).unwrap().id().clone();
    let plant = Plant { disk, server: server.spawn().unwrap(), files };
    let (olga, emil) = (plant.log_on("olga").await, plant.log_on("emil").await);
    let timeout: f64 =
        olga.0.read_value(NodeId::string(2, "Plant/Backup/ClientProcessingTimeout")).await.unwrap();
    assert_eq!(timeout, 30_000.0);

    let read = m::TEMPORARY_FILE_TRANSFER_TYPE_GENERATE_FILE_FOR_READ;
    let write = m::TEMPORARY_FILE_TRANSFER_TYPE_GENERATE_FILE_FOR_WRITE;
    let commit = m::TEMPORARY_FILE_TRANSFER_TYPE_CLOSE_AND_COMMIT;
    let begun = |outputs: Vec<Variant>| {
        (NodeId::try_from(outputs[0].clone()).unwrap(), u32::try_from(outputs[1].clone()).unwrap())
    };
    let outputs = olga.call(&object, read, vec![Variant::Empty]).await.unwrap();
    assert_eq!(outputs[2], Variant::from(NodeId::NULL));
    let (file, handle) = begun(outputs);
    let part = |len: i32| vec![Variant::from(handle), len.into()];
    let bytes = |text: &str| vec![Variant::from(ByteString::from(text.as_bytes().to_vec()))];
    assert_eq!(olga.call(&file, m::FILE_TYPE_READ, part(4)).await.unwrap(), bytes("0123"));
    assert_eq!(
        olga.call(&file, m::FILE_TYPE_GET_POSITION, vec![handle.into()]).await.unwrap(),
        [4u64.into()]
    );
    assert_eq!(olga.call(&file, m::FILE_TYPE_READ, part(100)).await.unwrap(), bytes("456789"));
    assert_eq!(
        olga.call(&file, m::FILE_TYPE_OPEN, vec![1u8.into()]).await,
        Err(StatusCode::BAD_INVALID_STATE)
    );
    // The file belongs to one session, and cannot be browsed to.
    assert_eq!(emil.call(&file, m::FILE_TYPE_READ, part(1)).await, Err(StatusCode::BAD_INVALID_ARGUMENT));
    assert!(
        olga.0
            .browse(object.clone())
            .await
            .unwrap()
            .iter()
            .all(|child| child.browse_name.name.as_str() != "File")
    );
    olga.call(&file, m::FILE_TYPE_CLOSE, vec![handle.into()]).await.unwrap();
    assert_eq!(olga.call(&file, m::FILE_TYPE_READ, part(1)).await, Err(StatusCode::BAD_NODE_ID_UNKNOWN));
    // Errors of the application, and permissions.
    assert_eq!(olga.call(&object, read, vec![1.into()]).await, Err(StatusCode::BAD_INVALID_ARGUMENT));
    assert_eq!(
        olga.call(&object, write, vec![Variant::Empty]).await,
        Err(StatusCode::BAD_USER_ACCESS_DENIED)
    );

    let (file, handle) = begun(emil.call(&object, write, vec![Variant::Empty]).await.unwrap());
    let put = |data: &[u8]| vec![Variant::from(handle), ByteString::from(data.to_vec()).into()];
    emil.call(&file, m::FILE_TYPE_WRITE, put(b"new ")).await.unwrap();
    emil.call(&file, m::FILE_TYPE_WRITE, put(b"text")).await.unwrap();
    let large = emil.call(&file, m::FILE_TYPE_WRITE, put(&[0; 1000])).await;
    assert_eq!(large, Err(StatusCode::BAD_RESOURCE_UNAVAILABLE));
    assert!(taken.lock().unwrap().is_empty(), "not before it is committed");
    assert_eq!(olga.call(&object, commit, vec![handle.into()]).await, Err(StatusCode::BAD_INVALID_ARGUMENT));
    let outputs = emil.call(&object, commit, vec![handle.into()]).await.unwrap();
    assert_eq!(outputs, [NodeId::NULL.into()]);
    assert_eq!(*taken.lock().unwrap(), [("emil".to_owned(), b"new text".to_vec())]);
    assert_eq!(emil.call(&object, commit, vec![handle.into()]).await, Err(StatusCode::BAD_INVALID_ARGUMENT));
    // Rejected files are removed, and so are files closed without a commit.
    let (_, handle) = begun(emil.call(&object, write, vec![Variant::Empty]).await.unwrap());
    let refused = emil.call(&object, commit, vec![handle.into()]).await;
    assert_eq!(refused, Err(StatusCode::BAD_DATA_ENCODING_INVALID));
    let (file, handle) = begun(emil.call(&object, write, vec![Variant::Empty]).await.unwrap());
    emil.call(&file, m::FILE_TYPE_CLOSE, vec![handle.into()]).await.unwrap();
    assert_eq!(taken.lock().unwrap().len(), 1);
    // The number of files per session is limited; they end with the session.
    let mut files = Vec::new();
    let refused = loop {
        match emil.call(&object, write, vec![Variant::Empty]).await {
            Ok(outputs) => files.push(begun(outputs).0),
            Err(status) => break status,
        }
    };
    assert_eq!((files.len(), refused), (4, StatusCode::BAD_TOO_MANY_OPERATIONS));
    // The application generates nothing for a session at its limit.
    let before = made.load(Ordering::Relaxed);
    let mut results = Vec::new();
    for _ in 0..6 {
        results.push(olga.call(&object, read, vec![Variant::Empty]).await.map(drop));
    }
    assert_eq!(
        results[3..],
        [Ok(()), Err(StatusCode::BAD_TOO_MANY_OPERATIONS), Err(StatusCode::BAD_TOO_MANY_OPERATIONS)]
    );
    assert_eq!(made.load(Ordering::Relaxed) - before, 4);
    drop(emil);
    let space = plant.server.space();
    while files.iter().any(|file| space.contains(file)) {
        plant.files.refresh().unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn content_can_be_generated_asynchronously() {
    let disk = Disk::new("asynchronous");
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .users(|_: &str, _: &[u8]| Ok(()))
        .allow_clear_passwords()
        .build()
        .unwrap();
    let files = FileSystem::new(&server).unwrap();
    let (finish, asked) = std::sync::mpsc::channel();
    let asked = Mutex::new(asked);
    let transfer = Transfer::new(FolderOptions::default()).asynchronous().on_read(move |_, _| {
        // Blocks until the test provides the result.
        let content: Option<Vec<u8>> = asked.lock().unwrap().recv().map_err(|_| StatusCode::BAD_SHUTDOWN)?;
        Ok(content.expect("the application has a fault"))
    });
    let parent = server.namespace("urn:plant").folder("Plant").unwrap();
    let object = files.transfer(&parent, "Report", transfer).unwrap().id().clone();
    let plant = Plant { disk, server: server.spawn().unwrap(), files };
    let (olga, emil) = (plant.log_on("olga").await, plant.log_on("emil").await);
    let generate = m::TEMPORARY_FILE_TRANSFER_TYPE_GENERATE_FILE_FOR_READ;
    let reset = m::FILE_TRANSFER_STATE_MACHINE_TYPE_RESET;
    let invalid_state = Err(StatusCode::BAD_INVALID_STATE);
    let begin = async || {
        let outputs = olga.call(&object, generate, vec![Variant::Empty]).await.unwrap();
        let id = |at: usize| NodeId::try_from(outputs[at].clone()).unwrap();
        (id(0), u32::try_from(outputs[1].clone()).unwrap(), id(2))
    };
    let state = async |machine: &NodeId| {
        let id = olga.0.find(machine.clone(), "0:CurrentState/0:Id").await.unwrap();
        olga.0.read_value::<NodeId>(id).await.unwrap().ns0().unwrap()
    };
    let becomes = async |machine: &NodeId, wanted: u32| {
        let wait = async {
            while state(machine).await != wanted {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap();
    };
    let (file, handle, machine) = begin().await;
    let read = || vec![Variant::from(handle), 100i32.into()];
    assert_eq!(state(&machine).await, o::FILE_TRANSFER_STATE_MACHINE_TYPE_READ_PREPARE);
    assert_eq!(olga.call(&file, m::FILE_TYPE_READ, read()).await, invalid_state);
    assert_eq!(olga.call(&machine, reset, Vec::new()).await, invalid_state);
    finish.send(Some(b"late".to_vec())).unwrap();
    becomes(&machine, o::FILE_TRANSFER_STATE_MACHINE_TYPE_READ_TRANSFER).await;
    let bytes = Variant::from(ByteString::from(b"late".to_vec()));
    assert_eq!(olga.call(&file, m::FILE_TYPE_READ, read()).await.unwrap(), [bytes]);
    olga.call(&file, m::FILE_TYPE_CLOSE, vec![handle.into()]).await.unwrap();
    // The state machine is deleted with the file.
    for node in [&file, &machine] {
        let read = olga.0.read_attribute(node.clone(), taktwerk::client::Attribute::BrowseName).await;
        assert_eq!(read.unwrap().status, Some(StatusCode::BAD_NODE_ID_UNKNOWN));
    }

    // A failure is reported on reading, even if the application panics.
    let (file, handle, machine) = begin().await;
    let read = || vec![Variant::from(handle), 100i32.into()];
    finish.send(None).unwrap();
    becomes(&machine, o::FILE_TRANSFER_STATE_MACHINE_TYPE_ERROR).await;
    assert_eq!(olga.call(&file, m::FILE_TYPE_READ, read()).await, Err(StatusCode::BAD_INTERNAL_ERROR));
    let stranger = emil.call(&machine, reset, Vec::new()).await;
    assert_eq!(stranger, Err(StatusCode::BAD_INVALID_ARGUMENT), "it is another session's");
    olga.call(&machine, reset, Vec::new()).await.unwrap();
    assert_eq!(state(&machine).await, o::FILE_TRANSFER_STATE_MACHINE_TYPE_IDLE);
    assert_eq!(olga.call(&file, m::FILE_TYPE_READ, read()).await, invalid_state);
    olga.call(&file, m::FILE_TYPE_CLOSE, vec![handle.into()]).await.unwrap();

    // Abandoned work of the application counts for the session until it is done.
    for _ in 0..4 {
        let (file, handle, _) = begin().await;
        olga.call(&file, m::FILE_TYPE_CLOSE, vec![handle.into()]).await.unwrap();
    }
    let one_more = || olga.call(&object, generate, vec![Variant::Empty]);
    assert_eq!(one_more().await, Err(StatusCode::BAD_TOO_MANY_OPERATIONS));
    drop(finish);
    let again = async { while one_more().await.is_err() {} };
    tokio::time::timeout(Duration::from_secs(20), again).await.unwrap();
}

#[tokio::test]
async fn content_can_be_processed_asynchronously() {
    let disk = Disk::new("applied");
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .anonymous()
        .users(|_: &str, _: &[u8]| Ok(()))
        .allow_clear_passwords()
        .build()
        .unwrap();
    let files = FileSystem::new(&server).unwrap();
    let (finish, asked) = std::sync::mpsc::channel();
    let asked = Mutex::new(asked);
    let installed = Arc::new(Mutex::new(Vec::new()));
    let result = Arc::clone(&installed);
    let users = role(o::WELL_KNOWN_ROLE_AUTHENTICATED_USER);
    let options = FolderOptions::default().read([users.clone()]).write([users]);
    let transfer = Transfer::new(options).asynchronous().on_commit(move |_, options, content| {
        // Blocks until the test decides on the outcome.
        let outcome: Result<(), StatusCode> =
            asked.lock().unwrap().recv().map_err(|_| StatusCode::BAD_SHUTDOWN)?;
        result.lock().unwrap().push((options.clone(), content));
        outcome
    });
    let parent = server.namespace("urn:plant").folder("Plant").unwrap();
    let object = files.transfer(&parent, "Firmware", transfer).unwrap().id().clone();
    let plant = Plant { disk, server: server.spawn().unwrap(), files };
    let (olga, emil) = (plant.log_on("olga").await, plant.log_on("emil").await);
    let commit = m::TEMPORARY_FILE_TRANSFER_TYPE_CLOSE_AND_COMMIT;
    let invalid_state = Err(StatusCode::BAD_INVALID_STATE);
    let invalid_argument = Err(StatusCode::BAD_INVALID_ARGUMENT);
    // Writes a file and commits it. Returns the file, its handle and the state machine.
    let send = async |text: &str| {
        let generate = m::TEMPORARY_FILE_TRANSFER_TYPE_GENERATE_FILE_FOR_WRITE;
        let outputs = olga.call(&object, generate, vec!["v2".into()]).await?;
        let file = NodeId::try_from(outputs[0].clone()).unwrap();
        let handle = u32::try_from(outputs[1].clone()).unwrap();
        let data = Variant::from(ByteString::from(text.as_bytes().to_vec()));
        olga.call(&file, m::FILE_TYPE_WRITE, vec![handle.into(), data]).await?;
        let outputs = olga.call(&object, commit, vec![handle.into()]).await?;
        Ok::<_, StatusCode>((file, handle, NodeId::try_from(outputs[0].clone()).unwrap()))
    };
    let number = async |node: &NodeId, path: &str| {
        let id = olga.0.find(node.clone(), path).await.unwrap();
        olga.0.read_value::<u32>(id).await.unwrap()
    };
    let becomes = async |machine: &NodeId, wanted: u32| {
        let wait = async {
            while number(machine, "0:CurrentState/0:Number").await != wanted {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap();
    };
    // The last transition has the number that the type gives it.
    let has_passed = async |machine: &NodeId, transition: u32| {
        let known = number(&NodeId::numeric(0, transition), "0:TransitionNumber").await;
        assert_eq!(number(machine, "0:LastTransition/0:Number").await, known);
    };

    let (file, handle, machine) = send("one").await.unwrap();
    becomes(&machine, 4).await;
    has_passed(&machine, o::FILE_TRANSFER_STATE_MACHINE_TYPE_IDLE_TO_APPLY_WRITE).await;
    assert_eq!(
        olga.call(&file, m::FILE_TYPE_CLOSE, vec![handle.into()]).await,
        invalid_argument,
        "it is closed"
    );
    assert_eq!(olga.call(&object, commit, vec![handle.into()]).await, invalid_state, "it is being processed");
    assert_eq!(emil.call(&object, commit, vec![handle.into()]).await, invalid_argument, "another session");
    // Who may not see files may not see what is done with them either.
    let stranger = Client::builder(&plant.server.url()).connect().await.unwrap();
    for path in ["0:CurrentState", "0:CurrentState/0:Number", "0:LastTransition/0:Id"] {
        let node = olga.0.find(machine.clone(), path).await.unwrap();
        assert!(olga.0.read(node.clone()).await.unwrap().status.unwrap_or_default().is_good(), "{path}");
        let hidden = stranger.read(node).await.map(|value| value.status);
        let refused = [StatusCode::BAD_USER_ACCESS_DENIED, StatusCode::BAD_NODE_ID_UNKNOWN];
        assert!(
            hidden.as_ref().is_ok_and(|status| status.is_some_and(|it| refused.contains(&it))),
            "{path}: {hidden:?}"
        );
    }
    finish.send(Ok(())).unwrap();
    becomes(&machine, 1).await;
    has_passed(&machine, o::FILE_TRANSFER_STATE_MACHINE_TYPE_APPLY_WRITE_TO_IDLE).await;
    assert_eq!(*installed.lock().unwrap(), [(Variant::from("v2"), b"one".to_vec())]);
    assert_eq!(olga.call(&object, commit, vec![handle.into()]).await, invalid_state, "it is processed once");

    // CloseAndCommit returns the error again until Reset.
    finish.send(Err(StatusCode::BAD_DATA_LOST)).unwrap();
    let (_, handle, machine) = send("two").await.unwrap();
    becomes(&machine, 5).await;
    has_passed(&machine, o::FILE_TRANSFER_STATE_MACHINE_TYPE_APPLY_WRITE_TO_ERROR).await;
    let again = olga.call(&object, commit, vec![handle.into()]).await;
    assert_eq!(again, Err(StatusCode::BAD_DATA_LOST));
    let reset = m::FILE_TRANSFER_STATE_MACHINE_TYPE_RESET;
    olga.call(&machine, reset, Vec::new()).await.unwrap();
    becomes(&machine, 1).await;
    has_passed(&machine, o::FILE_TRANSFER_STATE_MACHINE_TYPE_ERROR_TO_IDLE).await;

    // New files evict processed files of their session, but not those with which the application is occupied.
    for _ in 0..8 {
        finish.send(Ok(())).unwrap();
        let (_, _, machine) = send("more").await.unwrap();
        becomes(&machine, 1).await;
    }
    for _ in 0..4 {
        send("late").await.unwrap();
    }
    assert_eq!(send("too many").await.err(), Some(StatusCode::BAD_TOO_MANY_OPERATIONS));
    drop(finish);
}
