//! Methods of files, directories and temporary files: nearly valid calls by two sessions, on a folder on disk.

use crate::input::Input;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use taktwerk::files::{FileSystem, FolderOptions, Transfer};
use taktwerk::server::Authorization;
use taktwerk::{CallContext, MessageSecurityMode, Server};
use taktwerk_schema::ids::{method_ids as m, object_ids};
use taktwerk_server::callback::MethodCall;
use taktwerk_types::{ByteString, Decode, DecodeLimits, NodeId, StatusCode, Variant};

const METHODS: [u32; 14] = [
    m::FILE_TYPE_OPEN,
    m::FILE_TYPE_CLOSE,
    m::FILE_TYPE_READ,
    m::FILE_TYPE_WRITE,
    m::FILE_TYPE_GET_POSITION,
    m::FILE_TYPE_SET_POSITION,
    m::FILE_DIRECTORY_TYPE_CREATE_DIRECTORY,
    m::FILE_DIRECTORY_TYPE_CREATE_FILE,
    m::FILE_DIRECTORY_TYPE_DELETE_FILE_SYSTEM_OBJECT,
    m::FILE_DIRECTORY_TYPE_MOVE_OR_COPY,
    m::TEMPORARY_FILE_TRANSFER_TYPE_GENERATE_FILE_FOR_READ,
    m::TEMPORARY_FILE_TRANSFER_TYPE_GENERATE_FILE_FOR_WRITE,
    m::TEMPORARY_FILE_TRANSFER_TYPE_CLOSE_AND_COMMIT,
    m::FILE_TRANSFER_STATE_MACHINE_TYPE_RESET,
];
/// Names, some of which must be refused.
const NAMES: [&str; 12] =
    ["a.txt", "b.txt", "inner", "deep", "", ".", "..", "../secret", "/secret", "inner/b.txt", "x\\y", "n\0l"];
const ENGINEER: NodeId = NodeId::numeric(0, object_ids::WELL_KNOWN_ROLE_ENGINEER);
/// Maximum size of the folder.
const BYTES_MAX: u64 = 2_000;
const SECRET: &str = "nobody reads this";

/// A folder that is removed at the end, with another file beside the shared one.
struct Disk(PathBuf);

impl Disk {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("taktwerk-fuzz-files-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("shared/inner")).expect("a temporary folder");
        for (name, content) in
            [("secret", SECRET), ("shared/a.txt", "0123456789"), ("shared/inner/b.txt", "b")]
        {
            std::fs::write(path.join(name), content).expect("a file in it");
        }
        Self(path)
    }

    /// Invariants after every call.
    fn check(&self) {
        let mut names: Vec<_> = std::fs::read_dir(&self.0)
            .expect("it is there")
            .map(|entry| entry.expect("it can be read").file_name())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["secret", "shared"], "nothing leads out of the folder");
        assert_eq!(std::fs::read_to_string(self.0.join("secret")).expect("it is there"), SECRET);
        assert!(bytes_in(&self.0.join("shared")) <= BYTES_MAX, "the size of the folder is limited");
    }
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let size = |path: PathBuf| match std::fs::symlink_metadata(&path) {
        Ok(data) if data.is_dir() => bytes_in(&path),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.map(|entry| size(entry.path())).sum()
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Calls Methods in any order.
pub fn methods(data: &[u8]) {
    let mut input = Input::new(data);
    let disk = Disk::new();
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .anonymous()
        .authorization(Authorization::open())
        .build()
        .expect("it is in order");
    let files = FileSystem::new(&server).expect("the types are there");
    let parent = server.namespace("urn:fuzz").folder("Files").expect("nothing else is there");
    let options = || FolderOptions::default().write([ENGINEER]).bytes_max(BYTES_MAX);
    let shared = files.share(&parent, "Shared", disk.0.join("shared"), options()).expect("it can be read");
    let transfer = Transfer::new(options()).on_read(|_, _| Ok(vec![7; 100])).on_commit(|_, _, content| {
        assert!(content.len() as u64 <= BYTES_MAX, "the size of a file is limited");
        Ok(())
    });
    let transfer = files.transfer(&parent, "Transfer", transfer).expect("the name is free");
    let mut nodes = vec![shared.id().clone(), transfer.id().clone()];
    nodes.extend(
        ["a.txt", "inner", "inner/b.txt"].map(|name| NodeId::string(2, format!("Files/Shared/{name}"))),
    );
    let mut handles = vec![0, 1];
    let space = server.space();
    for _ in 0..64 {
        if input.is_empty() {
            break;
        }
        let method = input.pick(&METHODS);
        let object = nodes[input.below(nodes.len())].clone();
        let roles: &[NodeId] = if input.one_in(8) { &[] } else { &[ENGINEER] };
        let mut caller = CallContext::in_process(object, roles, true);
        caller.session_id = NodeId::numeric(1, 1 + u32::from(input.one_in(4)));
        let inputs = arguments(method, &mut input, &nodes, &handles);
        let mode = MessageSecurityMode::SignAndEncrypt;
        let called = space.call_method(&caller, mode, &NodeId::numeric(0, method), inputs);
        let outcome = called.and_then(|call| match call {
            MethodCall::Now(outcome) => outcome,
            MethodCall::Blocking(run) => run(),
            _ => Err(StatusCode::BAD_NOT_SUPPORTED),
        });
        for output in outcome.unwrap_or_default() {
            match output {
                Variant::NodeId(id) if !id.is_null() && nodes.len() < 64 => nodes.push(*id),
                Variant::UInt32(handle) if handles.len() < 64 => handles.push(handle),
                Variant::ByteString(bytes) => {
                    assert_ne!(bytes.as_bytes(), SECRET.as_bytes(), "nothing leads out of the folder");
                }
                _ => {}
            }
        }
        disk.check();
    }
    // The address space shows the files on disk without refreshing.
    let shown = space.node_count();
    files.refresh().expect("it can be read");
    assert_eq!(space.node_count(), shown);
}

fn arguments(method: u32, input: &mut Input<'_>, nodes: &[NodeId], handles: &[u32]) -> Vec<Variant> {
    let node = |input: &mut Input<'_>| Variant::from(nodes[input.below(nodes.len())].clone());
    let handle = |input: &mut Input<'_>| {
        // Usually the newest handle.
        let back = if input.one_in(4) { input.below(handles.len()) } else { 0 };
        Variant::from(handles[handles.len() - 1 - back])
    };
    let name = |input: &mut Input<'_>| Variant::from(input.pick(&NAMES));
    let mut all = match method {
        m::FILE_TYPE_OPEN => vec![Variant::from(input.pick(&[1u8, 2, 3, 6, 7, 10, 0, 255]))],
        m::FILE_TYPE_READ => {
            vec![handle(input), Variant::from(input.pick(&[10i32, 1_000_000, 0, -1, i32::MAX]))]
        }
        m::FILE_TYPE_WRITE => {
            let data = if input.one_in(4) {
                vec![1; usize::from(input.u16() % 3_000)]
            } else {
                input.piece().to_vec()
            };
            vec![handle(input), ByteString::from(data).into()]
        }
        m::FILE_TYPE_SET_POSITION => {
            vec![handle(input), Variant::from(input.pick(&[0u64, 5, 1_000_000, u64::MAX]))]
        }
        m::FILE_TYPE_CLOSE | m::FILE_TYPE_GET_POSITION | m::TEMPORARY_FILE_TRANSFER_TYPE_CLOSE_AND_COMMIT => {
            vec![handle(input)]
        }
        m::FILE_DIRECTORY_TYPE_CREATE_DIRECTORY => vec![name(input)],
        m::FILE_DIRECTORY_TYPE_CREATE_FILE => vec![name(input), input.flag().into()],
        m::FILE_DIRECTORY_TYPE_DELETE_FILE_SYSTEM_OBJECT => vec![node(input)],
        m::FILE_DIRECTORY_TYPE_MOVE_OR_COPY => {
            vec![node(input), node(input), input.flag().into(), name(input)]
        }
        m::TEMPORARY_FILE_TRANSFER_TYPE_GENERATE_FILE_FOR_READ
        | m::TEMPORARY_FILE_TRANSFER_TYPE_GENERATE_FILE_FOR_WRITE => vec![Variant::Empty],
        _ => Vec::new(),
    };
    if input.one_in(16) {
        all.pop();
        all.push(Variant::decode_from(input.piece(), DecodeLimits::DEFAULT).unwrap_or_default());
    }
    all
}
