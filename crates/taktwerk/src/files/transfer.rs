//! Temporary files (TemporaryFileTransferType, Part 20 §4.4): content that the application makes when a client asks for it, or
//! takes when a client commits it.
//!
//! A file belongs to the session that asked for it, lies in memory and is charged to the session. It goes when it is closed,
//! when the session ends, and when its client is silent for too long.

use super::FolderOptions;
use crate::lock::lock;
use crate::space::Space;
use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use taktwerk_server::account::{Charge, HeapSize};
use taktwerk_server::callback::{CallContext, SessionLife};
use taktwerk_types::{NodeId, StatusCode, Variant};

/// Files of one session.
const PER_SESSION_MAX: usize = 4;
/// Files of all sessions.
const FILES_MAX: usize = 64;
/// What a file is charged with beside its content: its node and what is kept of it here.
const FILE_BYTES: usize = 2048;
/// Bytes of one Read.
const READ_MAX: usize = 1 << 20;
/// Content grows by at least so much, so that small writes do not copy it each time.
const GROWTH: usize = 64 << 10;

/// Makes the content of a file from the client's generateOptions.
type Generate = dyn Fn(&CallContext, &Variant) -> Result<Vec<u8>, StatusCode> + Send + Sync;
/// Takes the content that a client has written, with the generateOptions that it began with.
type Commit = dyn Fn(&CallContext, &Variant, Vec<u8>) -> Result<(), StatusCode> + Send + Sync;

/// What the application does when clients transfer files. Its functions run on worker threads and may wait.
#[derive(Clone)]
pub struct Transfer {
    pub(super) options: FolderOptions,
    pub(super) timeout: Duration,
    pub(super) is_asynchronous: bool,
    generate: Option<Arc<Generate>>,
    commit: Option<Arc<Commit>>,
}

impl fmt::Debug for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (options, timeout) = (&self.options, &self.timeout);
        f.debug_struct("Transfer").field("options", options).field("timeout", timeout).finish_non_exhaustive()
    }
}

impl Transfer {
    /// Nothing can be transferred yet. Of the options, `read` says who may read, `write` who may write, and
    /// `file_bytes_max` how large a file may be. A client that is silent for a minute loses its file.
    #[must_use]
    pub fn new(options: FolderOptions) -> Self {
        Self {
            options,
            timeout: Duration::from_secs(60),
            is_asynchronous: false,
            generate: None,
            commit: None,
        }
    }

    /// Makes content that takes longer than clients wait for an answer: GenerateFileForRead answers at once with a state
    /// machine (FileTransferStateMachineType, Part 20 §4.4.6), and the content can be read when that is in ReadTransfer.
    #[must_use]
    pub fn asynchronous(mut self) -> Self {
        self.is_asynchronous = true;
        self
    }

    /// How long a client may be silent (ClientProcessingTimeout).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// GenerateFileForRead: makes the content.
    #[must_use]
    pub fn on_read(
        mut self,
        generate: impl Fn(&CallContext, &Variant) -> Result<Vec<u8>, StatusCode> + Send + Sync + 'static,
    ) -> Self {
        self.generate = Some(Arc::new(generate));
        self
    }

    /// GenerateFileForWrite and CloseAndCommit: takes the content. An error is what the client gets.
    #[must_use]
    pub fn on_commit(
        mut self,
        commit: impl Fn(&CallContext, &Variant, Vec<u8>) -> Result<(), StatusCode> + Send + Sync + 'static,
    ) -> Self {
        self.commit = Some(Arc::new(commit));
        self
    }
}

/// A temporary file.
struct TemporaryFile {
    session: NodeId,
    life: SessionLife,
    handle: u32,
    /// The transfer object.
    of: NodeId,
    used: Instant,
    timeout: Duration,
    content: Arc<Mutex<Content>>,
    /// The nodes of its state machine, itself first, if it has one.
    machine: Vec<NodeId>,
}

/// How far the content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The application makes it.
    Preparing,
    /// It is complete, or the client writes it.
    Ready,
    /// The application could not make it.
    Failed(StatusCode),
    /// The client has reset the failure. There is nothing to be read.
    Reset,
}

/// What is in it, and what it was generated with.
pub(super) struct Content {
    pub(super) phase: Phase,
    bytes: Vec<u8>,
    position: usize,
    size_max: usize,
    is_for_write: bool,
    options: Variant,
    /// `None` for callers without a session.
    charge: Option<Charge>,
}

impl Content {
    /// Up to `len` bytes from the position on; fewer at the end.
    pub(super) fn read(&mut self, len: i32) -> Result<Vec<u8>, StatusCode> {
        let len = usize::try_from(len).map_err(|_| StatusCode::BAD_INVALID_ARGUMENT)?;
        match self.phase {
            Phase::Ready if !self.is_for_write => {}
            Phase::Failed(status) => return Err(status),
            _ => return Err(StatusCode::BAD_INVALID_STATE),
        }
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let part = rest.get(..len.min(READ_MAX).min(rest.len())).unwrap_or_default().to_vec();
        self.position += part.len();
        Ok(part)
    }

    /// Takes what the application has made, or why it has not. Says whether that is complete now.
    pub(super) fn complete(&mut self, made: Result<Made, StatusCode>) -> bool {
        match made {
            Ok((bytes, charge)) => {
                (self.bytes, self.charge, self.phase) = (bytes, charge, Phase::Ready);
                true
            }
            Err(status) => {
                self.phase = Phase::Failed(status);
                false
            }
        }
    }

    /// Writes at the position. The session pays for what is there before it is kept.
    pub(super) fn write(&mut self, data: &[u8], caller: &CallContext) -> Result<(), StatusCode> {
        if !self.is_for_write {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        let end = self.position.saturating_add(data.len());
        if end > self.size_max {
            return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
        }
        if end > self.bytes.capacity() {
            let capacity = end.max(2 * self.bytes.capacity()).max(GROWTH).min(self.size_max.max(end));
            // The old content is there until it is copied.
            let charge = caller.session_account.charge(FILE_BYTES + self.options.heap_size() + capacity)?;
            self.bytes.reserve_exact(capacity - self.bytes.len());
            self.charge = charge;
        }
        self.bytes.resize(self.bytes.len().max(end), 0);
        if let Some(place) = self.bytes.get_mut(self.position..end) {
            place.copy_from_slice(data);
        }
        self.position = end;
        Ok(())
    }

    pub(super) fn position(&self) -> u64 {
        self.position as u64
    }

    /// Beyond the end it is the end (Part 20 §4.2.8).
    pub(super) fn seek(&mut self, position: u64) {
        self.position = usize::try_from(position).unwrap_or(usize::MAX).min(self.bytes.len());
    }
}

/// All transfer objects and their files.
#[derive(Default)]
pub(super) struct Transfers {
    objects: BTreeMap<NodeId, Arc<Transfer>>,
    files: BTreeMap<NodeId, TemporaryFile>,
    /// The sessions for which the application makes content now, whether they still want it or not.
    making: Vec<NodeId>,
    next: u32,
}

/// Content with what the session pays for it.
pub(super) type Made = (Vec<u8>, Option<Charge>);

/// A file that is gone: its node is to be deleted.
#[must_use]
pub(super) struct Gone(Vec<NodeId>);

impl Gone {
    pub(super) fn forget(self, space: &Space) {
        for id in self.0 {
            // Somebody else may have deleted it.
            let _ = space.delete_node(&id);
        }
    }
}

impl Transfers {
    pub(super) fn add(&mut self, id: NodeId, transfer: Transfer) {
        self.objects.insert(id, Arc::new(transfer));
    }

    pub(super) fn object(&self, id: &NodeId) -> Result<Arc<Transfer>, StatusCode> {
        self.objects.get(id).cloned().ok_or(StatusCode::BAD_NOT_SUPPORTED)
    }

    /// Whether the node is a temporary file, of whichever session.
    pub(super) fn is_file(&self, id: &NodeId) -> bool {
        self.files.contains_key(id)
    }

    /// Removes files whose session has ended or whose client has been silent for too long.
    pub(super) fn tidy(&mut self, now: Instant) -> Gone {
        let is_over = |file: &TemporaryFile| {
            // Who waits for the application has nothing to say.
            let is_waiting = || lock(&file.content).phase == Phase::Preparing;
            file.life.is_over() || now.saturating_duration_since(file.used) > file.timeout && !is_waiting()
        };
        let ids: Vec<NodeId> =
            self.files.iter().filter(|(_, file)| is_over(file)).map(|(id, _)| id.clone()).collect();
        let gone = ids.into_iter().filter_map(|id| self.remove(&id));
        Gone(gone.flat_map(|(Gone(nodes), _)| nodes).collect())
    }

    fn remove(&mut self, id: &NodeId) -> Option<(Gone, Arc<Mutex<Content>>)> {
        let (id, mut file) = self.files.remove_entry(id)?;
        file.machine.push(id);
        Some((Gone(file.machine), file.content))
    }

    /// Adds a file for a session. Gives its id, whose node is to be added, and its handle.
    pub(super) fn begin(
        &mut self,
        caller: &CallContext,
        transfer: &Transfer,
        ((bytes, charge), phase): (Made, Phase),
        (is_for_write, options): (bool, Variant),
        now: Instant,
    ) -> Result<(NodeId, u32), StatusCode> {
        self.has_room(caller)?;
        self.next = self.next.checked_add(1).unwrap_or(1);
        let id = super::nodes::child_id(&caller.object_id, &format!("{}", self.next));
        let size_max = usize::try_from(transfer.options.file_bytes_max).unwrap_or(usize::MAX);
        let content = Content { phase, bytes, position: 0, size_max, is_for_write, options, charge };
        let file = TemporaryFile {
            session: caller.session_id.clone(),
            life: caller.session_life.clone(),
            handle: self.next,
            of: caller.object_id.clone(),
            used: now,
            timeout: transfer.timeout,
            content: Arc::new(Mutex::new(content)),
            machine: Vec::new(),
        };
        self.files.insert(id.clone(), file);
        Ok((id, self.next))
    }

    /// Whether the caller may have one more file.
    pub(super) fn has_room(&self, caller: &CallContext) -> Result<(), StatusCode> {
        let own = self.files.values().filter(|file| file.session == caller.session_id).count();
        let making = self.making.iter().filter(|session| **session == caller.session_id).count();
        if own.max(making) >= PER_SESSION_MAX || self.files.len().max(self.making.len()) >= FILES_MAX {
            return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
        }
        Ok(())
    }

    /// The application begins to make content for the file's session. Its state machine has these nodes.
    pub(super) fn prepare(
        &mut self,
        id: &NodeId,
        machine: Vec<NodeId>,
    ) -> Result<Arc<Mutex<Content>>, (Gone, StatusCode)> {
        // The session may have ended meanwhile, and the file with it.
        let Some(file) = self.files.get_mut(id) else {
            return Err((Gone(machine), StatusCode::BAD_SESSION_CLOSED));
        };
        file.machine = machine;
        self.making.push(file.session.clone());
        Ok(Arc::clone(&file.content))
    }

    /// The application has made content for a session, or given up. If there is still such a file, its client has time from
    /// now on.
    pub(super) fn prepared(&mut self, id: &NodeId, session: &NodeId, now: Instant) {
        if let Some(at) = self.making.iter().position(|making| making == session) {
            self.making.swap_remove(at);
        }
        if let Some(file) = self.files.get_mut(id) {
            file.used = now;
        }
    }

    /// Reset (Part 20 §4.4.7), called on the state machine of a file.
    pub(super) fn reset(&mut self, caller: &CallContext) -> Result<(), StatusCode> {
        let is_it = |file: &&TemporaryFile| {
            file.machine.first() == Some(&caller.object_id) && file.session == caller.session_id
        };
        let file = self.files.values().find(is_it).ok_or(StatusCode::BAD_INVALID_ARGUMENT)?;
        let mut content = lock(&file.content);
        if !matches!(content.phase, Phase::Failed(_)) {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        content.phase = Phase::Reset;
        Ok(())
    }

    /// Whether there is such a file.
    pub(super) fn has(&self, id: &NodeId) -> bool {
        self.files.contains_key(id)
    }

    /// The file of a call, which counts as a sign of life.
    pub(super) fn get(
        &mut self,
        caller: &CallContext,
        handle: u32,
        now: Instant,
    ) -> Result<Arc<Mutex<Content>>, StatusCode> {
        let file = self.files.get_mut(&caller.object_id).filter(|file| is_own(file, caller, handle));
        let file = file.ok_or(StatusCode::BAD_INVALID_ARGUMENT)?;
        file.used = now;
        Ok(Arc::clone(&file.content))
    }

    /// Close (Part 20 §4.2.3): the file goes, and what was written with it.
    pub(super) fn close(&mut self, caller: &CallContext, handle: u32) -> Result<Gone, StatusCode> {
        let file = self.files.get(&caller.object_id).filter(|file| is_own(file, caller, handle));
        file.ok_or(StatusCode::BAD_INVALID_ARGUMENT)?;
        let gone = self.remove(&caller.object_id).ok_or(StatusCode::BAD_INVALID_ARGUMENT)?;
        Ok(gone.0)
    }

    /// CloseAndCommit (Part 20 §4.4.5), called on the transfer object: takes a file that was written out.
    pub(super) fn take(
        &mut self,
        caller: &CallContext,
        handle: u32,
    ) -> Result<(Gone, Arc<Mutex<Content>>), StatusCode> {
        let is_it = |file: &TemporaryFile| file.of == caller.object_id && is_own(file, caller, handle);
        let found = self.files.iter().find(|(_, file)| is_it(file)).map(|(id, _)| id.clone());
        let id = found.ok_or(StatusCode::BAD_INVALID_ARGUMENT)?;
        self.remove(&id).ok_or(StatusCode::BAD_INVALID_ARGUMENT)
    }
}

/// A handle is good for the session that has it.
fn is_own(file: &TemporaryFile, caller: &CallContext, handle: u32) -> bool {
    file.handle == handle && file.session == caller.session_id
}

/// Makes the content for a reader, and charges it.
pub(super) fn generate(
    transfer: &Transfer,
    caller: &CallContext,
    options: &Variant,
) -> Result<Made, StatusCode> {
    transfer.options.check_read(caller)?;
    let generate = transfer.generate.as_ref().ok_or(StatusCode::BAD_NOT_SUPPORTED)?;
    let bytes = generate(caller, options)?;
    if bytes.len() as u64 > transfer.options.file_bytes_max {
        return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
    }
    let charge = caller.session_account.charge(FILE_BYTES + bytes.capacity())?;
    Ok((bytes, charge))
}

/// An empty file for a reader whose content is made later.
pub(super) fn unmade(transfer: &Transfer, caller: &CallContext) -> Result<Made, StatusCode> {
    transfer.options.check_read(caller)?;
    if transfer.generate.is_none() {
        return Err(StatusCode::BAD_NOT_SUPPORTED);
    }
    Ok((Vec::new(), caller.session_account.charge(FILE_BYTES)?))
}

/// An empty file for a writer.
pub(super) fn empty(
    transfer: &Transfer,
    caller: &CallContext,
    options: &Variant,
) -> Result<Made, StatusCode> {
    transfer.options.check_write(caller)?;
    if transfer.commit.is_none() {
        return Err(StatusCode::BAD_NOT_SUPPORTED);
    }
    // The options are kept until the file is committed.
    Ok((Vec::new(), caller.session_account.charge(FILE_BYTES + options.heap_size())?))
}

/// Gives what a client has written to the application. Of a file that was read, nothing is left to do.
pub(super) fn commit(
    transfer: &Transfer,
    caller: &CallContext,
    content: &mut Content,
) -> Result<(), StatusCode> {
    if !content.is_for_write {
        return Ok(());
    }
    // Roles may have changed since it was begun.
    transfer.options.check_write(caller)?;
    let commit = transfer.commit.as_ref().ok_or(StatusCode::BAD_NOT_SUPPORTED)?;
    commit(caller, &core::mem::take(&mut content.options), core::mem::take(&mut content.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(session: u32, object: &NodeId) -> CallContext {
        let mut caller = CallContext::in_process(object.clone(), &[NodeId::numeric(0, 1)], false);
        caller.session_id = NodeId::numeric(1, session);
        caller
    }

    #[test]
    fn files_belong_to_a_session_and_go_with_time() {
        let object = NodeId::string(1, "Export");
        let options = FolderOptions::default().write([NodeId::numeric(0, 1)]);
        let transfer = Transfer::new(options).timeout(Duration::from_secs(10)).on_commit(|_, _, _| Ok(()));
        let start = Instant::now();
        let mut all = Transfers::default();
        let begin = |all: &mut Transfers, session, now| {
            let caller = caller(session, &object);
            all.begin(
                &caller,
                &transfer,
                (empty(&transfer, &caller, &Variant::Empty)?, Phase::Ready),
                (true, Variant::Empty),
                now,
            )
        };
        let (id, handle) = begin(&mut all, 1, start).unwrap();
        let invalid = Some(StatusCode::BAD_INVALID_ARGUMENT);
        assert_eq!(all.get(&caller(2, &id), handle, start).err(), invalid, "another session");
        assert_eq!(all.get(&caller(1, &id), handle + 1, start).err(), invalid, "another handle");
        assert!(all.take(&caller(1, &id), handle).is_err(), "not the transfer object");
        let content = all.get(&caller(1, &id), handle, start + Duration::from_secs(9)).unwrap();
        lock(&content).write(b"abc", &caller(1, &id)).unwrap();
        lock(&content).seek(1);
        lock(&content).write(b"xyz", &caller(1, &id)).unwrap();
        assert_eq!(lock(&content).position(), 4);
        assert_eq!(lock(&content).bytes, b"axyz");
        assert_eq!(lock(&content).read(1), Err(StatusCode::BAD_INVALID_STATE));
        // Each use is a sign of life.
        assert!(all.tidy(start + Duration::from_secs(19)).0.is_empty());
        assert_eq!(all.tidy(start + Duration::from_secs(20)).0, [id]);
        for _ in 0..PER_SESSION_MAX {
            begin(&mut all, 1, start).unwrap();
        }
        assert_eq!(begin(&mut all, 1, start).err(), Some(StatusCode::BAD_TOO_MANY_OPERATIONS));
        assert!(begin(&mut all, 2, start).is_ok());
    }

    #[test]
    fn a_file_has_a_largest_size() {
        let object = NodeId::string(1, "Import");
        let mut content = Content {
            phase: Phase::Ready,
            bytes: Vec::new(),
            position: 0,
            size_max: 100_000,
            is_for_write: true,
            options: Variant::Empty,
            charge: None,
        };
        let caller = caller(1, &object);
        content.write(&[1; 70_000], &caller).unwrap();
        content.write(&[2; 30_000], &caller).unwrap();
        assert_eq!(content.write(&[3], &caller), Err(StatusCode::BAD_RESOURCE_UNAVAILABLE));
        assert_eq!((content.bytes.len(), content.bytes.capacity()), (100_000, 100_000));
    }
}
