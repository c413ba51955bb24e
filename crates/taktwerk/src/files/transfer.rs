//! Temporary files (TemporaryFileTransferType, Part 20 §4.4): the application generates content for a client, or processes
//! content that a client commits.
//!
//! A file is held in memory, belongs to the session that requested it, and is charged to that session. It is deleted when it is
//! closed, when the session ends, and when its client is silent for too long.

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

/// Most files of one session.
const PER_SESSION_MAX: usize = 4;
/// Most files of all sessions together.
const FILES_MAX: usize = 64;
/// Most files with which the application is occupied for one user.
const WORKING_PER_USER_MAX: usize = 16;
/// Bytes charged for a file in addition to its content: its node and state.
const FILE_BYTES: usize = 2048;
/// Longest Read in bytes.
const READ_MAX: usize = 1 << 20;
/// Content grows by at least this many bytes, so that small writes do not copy it each time.
const GROWTH: usize = 64 << 10;

/// Generates the content of a file from the client's generateOptions.
type Generate = dyn Fn(&CallContext, &Variant) -> Result<Vec<u8>, StatusCode> + Send + Sync;
/// Processes the content that a client has written, with the generateOptions of the transfer.
type Commit = dyn Fn(&CallContext, &Variant, Vec<u8>) -> Result<(), StatusCode> + Send + Sync;

/// The application's side of file transfers. Its functions run on worker threads and may block.
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
    /// A transfer without functions yet. Of the options, `read` and `write` restrict roles, and `file_bytes_max` limits the size
    /// of a file. A client that is silent for a minute loses its file.
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

    /// For content that takes longer to generate or process than clients wait for an answer. GenerateFileForRead and
    /// CloseAndCommit then return at once with a state machine (FileTransferStateMachineType, Part 20 §4.4.6). Content can be
    /// read in the state ReadTransfer, and is processed when the state changes from ApplyWrite to Idle.
    #[must_use]
    pub fn asynchronous(mut self) -> Self {
        self.is_asynchronous = true;
        self
    }

    /// How long a client may be silent before its file is deleted (ClientProcessingTimeout).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// GenerateFileForRead: generates the content.
    #[must_use]
    pub fn on_read(
        mut self,
        generate: impl Fn(&CallContext, &Variant) -> Result<Vec<u8>, StatusCode> + Send + Sync + 'static,
    ) -> Self {
        self.generate = Some(Arc::new(generate));
        self
    }

    /// GenerateFileForWrite and CloseAndCommit: processes the content. The client receives the returned error; from an
    /// asynchronous transfer, when it calls CloseAndCommit again.
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
    /// The nodes of its state machine, itself first; empty without one.
    machine: Vec<NodeId>,
    /// CloseAndCommit has closed the handle.
    is_committed: bool,
    /// Locked from a change of the phase until it is shown, so that transitions are shown in their order. Locked before all
    /// others.
    order: Arc<Mutex<()>>,
}

impl TemporaryFile {
    /// Whether it was processed and is kept only for its state machine.
    fn is_spent(&self) -> bool {
        self.is_committed && lock(&self.content).phase == Phase::Over
    }
}

/// The state of the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The application is generating it.
    Preparing,
    /// It is complete, or the client is writing it.
    Ready,
    /// The client has committed it, and the application is processing it.
    Applying,
    /// The application failed.
    Failed(StatusCode),
    /// The application has processed it, or the client has reset the failure. There is nothing to read or to write.
    Over,
}

/// The content of a file and its generateOptions.
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
    /// Up to `len` bytes from the position; fewer at the end.
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

    /// Takes the result of the application. Returns whether it is good.
    pub(super) fn complete(&mut self, done: Result<Done, StatusCode>) -> bool {
        match done {
            Ok(Done::Made((bytes, charge))) => {
                (self.bytes, self.charge, self.phase) = (bytes, charge, Phase::Ready);
                true
            }
            Ok(Done::Applied) => {
                self.phase = Phase::Over;
                true
            }
            Err(status) => {
                self.phase = Phase::Failed(status);
                false
            }
        }
    }

    /// Takes what the client has written, to pass it to the application. From now on, nothing can be written.
    fn taken(&mut self, caller: &CallContext) -> Result<Written, StatusCode> {
        let charge = caller.session_account.charge(FILE_BYTES)?;
        self.phase = Phase::Applying;
        Ok(Written {
            options: core::mem::take(&mut self.options),
            bytes: core::mem::take(&mut self.bytes),
            _charge: core::mem::replace(&mut self.charge, charge),
        })
    }

    /// Writes at the position. The session is charged before the data are stored.
    pub(super) fn write(&mut self, data: &[u8], caller: &CallContext) -> Result<(), StatusCode> {
        if !self.is_for_write || self.phase != Phase::Ready {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        let end = self.position.saturating_add(data.len());
        if end > self.size_max {
            return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
        }
        if end > self.bytes.capacity() {
            let capacity = end.max(2 * self.bytes.capacity()).max(GROWTH).min(self.size_max.max(end));
            // Charge old and new content, because both exist while copying.
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

    /// A position beyond the end is set to the end (Part 20 §4.2.8).
    pub(super) fn seek(&mut self, position: u64) {
        self.position = usize::try_from(position).unwrap_or(usize::MAX).min(self.bytes.len());
    }
}

/// All transfer objects and their files.
#[derive(Default)]
pub(super) struct Transfers {
    objects: BTreeMap<NodeId, Arc<Transfer>>,
    files: BTreeMap<NodeId, TemporaryFile>,
    /// What the application is working on, even if the file was deleted.
    working: Vec<Working>,
    next: u32,
}

/// Content with its charge to the session.
pub(super) type Made = (Vec<u8>, Option<Charge>);
/// What a client has written, to be processed. The session stays charged for it.
pub(super) struct Written {
    options: Variant,
    bytes: Vec<u8>,
    _charge: Option<Charge>,
}

/// A file with which the application is occupied.
struct Working {
    file: NodeId,
    session: NodeId,
    user: Option<Box<str>>,
}

/// What the application needs to begin.
pub(super) struct Begun {
    pub(super) content: Arc<Mutex<Content>>,
    pub(super) order: Arc<Mutex<()>>,
}

/// What the application has done.
pub(super) enum Done {
    /// It has generated content for a reader.
    Made(Made),
    /// It has processed what a client has written.
    Applied,
}

/// A file whose client has called CloseAndCommit.
pub(super) enum Committed {
    /// It is removed. A file for reading has nothing to process.
    Removed(Gone, Option<Written>),
    /// It stays until the client has seen the result, without an open handle.
    Kept(NodeId, Written),
}

/// A removed file whose nodes must still be deleted.
#[must_use]
pub(super) struct Gone(Vec<NodeId>);

impl Gone {
    pub(super) fn forget(self, space: &Space) {
        for id in self.0 {
            // The node may already be deleted.
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

    /// Whether the node is a temporary file of any session.
    pub(super) fn is_file(&self, id: &NodeId) -> bool {
        self.files.contains_key(id)
    }

    /// Removes files whose session has ended or whose client has been silent for too long.
    pub(super) fn tidy(&mut self, now: Instant) -> Gone {
        let is_over = |file: &TemporaryFile| {
            // A client that waits for the application is not silent.
            let is_waiting = || matches!(lock(&file.content).phase, Phase::Preparing | Phase::Applying);
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

    /// Adds a file for a session. Returns its id, for which the caller adds the node, and its handle, and the evicted file,
    /// whose nodes the caller deletes.
    pub(super) fn begin(
        &mut self,
        caller: &CallContext,
        transfer: &Transfer,
        ((bytes, charge), phase): (Made, Phase),
        (is_for_write, options): (bool, Variant),
        now: Instant,
    ) -> Result<(NodeId, u32, Gone), StatusCode> {
        self.has_room(caller)?;
        let gone = self.make_room(caller);
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
            is_committed: false,
            order: Arc::default(),
        };
        self.files.insert(id.clone(), file);
        Ok((id, self.next, gone))
    }

    /// Whether the caller may have another file. A file with which the application is occupied counts until it is done, even if
    /// it was deleted.
    pub(super) fn has_room(&self, caller: &CallContext) -> Result<(), StatusCode> {
        let is_working = |id: &NodeId| self.working.iter().any(|working| working.file == *id);
        let idle = self.files.iter().filter(|(id, file)| !file.is_spent() && !is_working(id));
        let own = idle.clone().filter(|(_, file)| file.session == caller.session_id).count();
        let working = self.working.iter().filter(|working| working.session == caller.session_id).count();
        // Sessions can end before the application does, and others can follow.
        let of_user = self.working.iter().filter(|working| working.user == caller.user).count();
        if own + working >= PER_SESSION_MAX
            || of_user >= WORKING_PER_USER_MAX
            || idle.count() + self.working.len() >= FILES_MAX
        {
            return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
        }
        Ok(())
    }

    /// Removes the oldest file that was processed if another one would be too many: one of the caller, or of any session.
    fn make_room(&mut self, caller: &CallContext) -> Gone {
        let is_own = |file: &TemporaryFile| file.session == caller.session_id;
        let is_full = self.files.len() >= FILES_MAX;
        if !is_full && self.files.values().filter(|file| is_own(file)).count() < PER_SESSION_MAX {
            return Gone(Vec::new());
        }
        let spent = self.files.iter().filter(|(_, file)| file.is_spent() && (is_full || is_own(file)));
        let oldest = spent.min_by_key(|(_, file)| file.used).map(|(id, _)| id.clone());
        oldest.map_or(Gone(Vec::new()), |id| self.drop_file(&id))
    }

    /// Records that the application begins to work for a session. `machine` are the nodes of the state machine.
    pub(super) fn occupy(
        &mut self,
        caller: &CallContext,
        id: &NodeId,
        machine: Vec<NodeId>,
    ) -> Result<Begun, (Gone, StatusCode)> {
        // The session and with it the file may have ended in the meantime.
        let Some(file) = self.files.get_mut(id) else {
            return Err((Gone(machine), StatusCode::BAD_SESSION_CLOSED));
        };
        file.machine = machine;
        let (session, user) = (file.session.clone(), caller.user.clone());
        self.working.push(Working { file: id.clone(), session, user });
        Ok(Begun { content: Arc::clone(&file.content), order: Arc::clone(&file.order) })
    }

    /// Takes what the application has done. Returns whether it is good. The client's timeout begins now, if the file still
    /// exists.
    pub(super) fn ended(
        &mut self,
        id: &NodeId,
        content: &Mutex<Content>,
        done: Result<Done, StatusCode>,
        now: Instant,
    ) -> bool {
        self.working.retain(|working| working.file != *id);
        if let Some(file) = self.files.get_mut(id) {
            file.used = now;
        }
        lock(content).complete(done)
    }

    /// The order of transitions of a state machine that belongs to the caller.
    pub(super) fn order(&self, caller: &CallContext) -> Result<Arc<Mutex<()>>, StatusCode> {
        self.of_machine(caller).map(|file| Arc::clone(&file.order))
    }

    fn of_machine(&self, caller: &CallContext) -> Result<&TemporaryFile, StatusCode> {
        let is_it = |file: &&TemporaryFile| {
            file.machine.first() == Some(&caller.object_id) && file.session == caller.session_id
        };
        self.files.values().find(is_it).ok_or(StatusCode::BAD_INVALID_ARGUMENT)
    }

    /// Reset (Part 20 §4.4.7), called on the state machine of a file.
    pub(super) fn reset(&mut self, caller: &CallContext) -> Result<(), StatusCode> {
        let file = self.of_machine(caller)?;
        let mut content = lock(&file.content);
        if !matches!(content.phase, Phase::Failed(_)) {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        content.phase = Phase::Over;
        Ok(())
    }

    /// Whether a file exists.
    pub(super) fn has(&self, id: &NodeId) -> bool {
        self.files.contains_key(id)
    }

    /// The file of a call. Resets the client's timeout.
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

    /// Close (Part 20 §4.2.3): deletes the file with its content.
    pub(super) fn close(&mut self, caller: &CallContext, handle: u32) -> Result<Gone, StatusCode> {
        let file = self.files.get(&caller.object_id).filter(|file| is_own(file, caller, handle));
        file.ok_or(StatusCode::BAD_INVALID_ARGUMENT)?;
        let gone = self.remove(&caller.object_id).ok_or(StatusCode::BAD_INVALID_ARGUMENT)?;
        Ok(gone.0)
    }

    /// CloseAndCommit (Part 20 §4.4.5), called on the transfer object. Afterwards the handle is no longer valid for the file.
    ///
    /// # Errors
    /// For a file that was committed before: Bad_InvalidState while the application is processing it, then its error.
    pub(super) fn commit(
        &mut self,
        caller: &CallContext,
        handle: u32,
        is_kept: bool,
        now: Instant,
    ) -> Result<Committed, StatusCode> {
        let is_it = |file: &TemporaryFile| {
            file.of == caller.object_id && file.handle == handle && file.session == caller.session_id
        };
        let found = self.files.iter_mut().find(|(_, file)| is_it(file));
        let (id, file) = found.ok_or(StatusCode::BAD_INVALID_ARGUMENT)?;
        let id = id.clone();
        let mut content = lock(&file.content);
        let written = match content.phase {
            _ if !content.is_for_write => None,
            Phase::Ready => Some(content.taken(caller)?),
            Phase::Failed(status) => return Err(status),
            _ => return Err(StatusCode::BAD_INVALID_STATE),
        };
        match written {
            Some(written) if is_kept => {
                drop(content);
                (file.is_committed, file.used) = (true, now);
                Ok(Committed::Kept(id, written))
            }
            written => {
                drop(content);
                Ok(Committed::Removed(self.drop_file(&id), written))
            }
        }
    }

    /// Removes a file of any session.
    pub(super) fn drop_file(&mut self, id: &NodeId) -> Gone {
        self.remove(id).map_or(Gone(Vec::new()), |(gone, _)| gone)
    }
}

/// A handle is valid only for its session.
fn is_own(file: &TemporaryFile, caller: &CallContext, handle: u32) -> bool {
    file.handle == handle && file.session == caller.session_id && !file.is_committed
}

/// Generates the content for a reader, and charges it.
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

/// An empty file for a reader whose content is generated asynchronously.
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
    // The options are stored until the file is committed.
    Ok((Vec::new(), caller.session_account.charge(FILE_BYTES + options.heap_size())?))
}

/// Passes the written content to the application.
pub(super) fn commit(transfer: &Transfer, caller: &CallContext, written: Written) -> Result<(), StatusCode> {
    // Roles may have changed since the transfer began.
    transfer.options.check_write(caller)?;
    let commit = transfer.commit.as_ref().ok_or(StatusCode::BAD_NOT_SUPPORTED)?;
    let Written { options, bytes, _charge } = written;
    commit(caller, &options, bytes)
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
    fn files_belong_to_a_session_and_expire() {
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
            .map(|(id, handle, gone)| {
                assert!(gone.0.is_empty());
                (id, handle)
            })
        };
        let (id, handle) = begin(&mut all, 1, start).unwrap();
        let invalid = Some(StatusCode::BAD_INVALID_ARGUMENT);
        assert_eq!(all.get(&caller(2, &id), handle, start).err(), invalid, "another session");
        assert_eq!(all.get(&caller(1, &id), handle + 1, start).err(), invalid, "another handle");
        assert!(all.commit(&caller(1, &id), handle, true, start).is_err(), "not the transfer object");
        let content = all.get(&caller(1, &id), handle, start + Duration::from_secs(9)).unwrap();
        lock(&content).write(b"abc", &caller(1, &id)).unwrap();
        lock(&content).seek(1);
        lock(&content).write(b"xyz", &caller(1, &id)).unwrap();
        assert_eq!(lock(&content).position(), 4);
        assert_eq!(lock(&content).bytes, b"axyz");
        assert_eq!(lock(&content).read(1), Err(StatusCode::BAD_INVALID_STATE));
        // Each use resets the timeout.
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
