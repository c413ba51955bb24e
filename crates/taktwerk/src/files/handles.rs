//! Files opened by clients (Part 20 §4.2).

use super::disk::Route;
use core::fmt;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};
use taktwerk_server::account::Charge;
use taktwerk_server::callback::{CallContext, SessionLife};
use taktwerk_types::{NodeId, StatusCode};

/// Most files that one session may have open.
const PER_SESSION_MAX: usize = 16;
/// Most files that all sessions together may have open.
const OPEN_MAX: usize = 256;
/// Bytes charged for an open file: its state here and in the operating system.
const HANDLE_BYTES: usize = 1024;
/// Longest Read in bytes.
const READ_MAX: usize = 1 << 20;

/// The bits of Open's mode (Part 20 §4.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenMode {
    pub(super) read: bool,
    pub(super) write: bool,
    pub(super) erase: bool,
    pub(super) append: bool,
}

impl OpenMode {
    /// # Errors
    /// Bad_InvalidArgument for an invalid combination of bits.
    pub(super) fn new(bits: u8) -> Result<Self, StatusCode> {
        let has = |bit: u8| bits & bit != 0;
        let mode = Self { read: has(1), write: has(2), erase: has(4), append: has(8) };
        let is_mode = bits < 16
            && (mode.read || mode.write)
            && (mode.write || !(mode.erase || mode.append))
            && !(mode.erase && mode.append);
        if is_mode { Ok(mode) } else { Err(StatusCode::BAD_INVALID_ARGUMENT) }
    }
}

/// An open file.
pub(super) struct Open {
    file: File,
    mode: OpenMode,
    position: u64,
    /// Maximum size of the file.
    size_max: u64,
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open")
            .field("mode", &self.mode)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

/// The status code for an error of the operating system.
pub(super) fn status_of(error: &std::io::Error) -> StatusCode {
    use std::io::ErrorKind as E;
    match error.kind() {
        E::NotFound | E::NotADirectory => StatusCode::BAD_NOT_FOUND,
        E::AlreadyExists => StatusCode::BAD_BROWSE_NAME_DUPLICATED,
        E::PermissionDenied | E::ReadOnlyFilesystem => StatusCode::BAD_USER_ACCESS_DENIED,
        _ => {
            tracing::warn!(%error, "a file cannot be used");
            StatusCode::BAD_RESOURCE_UNAVAILABLE
        }
    }
}

impl Open {
    pub(super) fn new(file: File, mode: OpenMode, size_max: u64) -> std::io::Result<Self> {
        let position = if mode.append { file.metadata()?.len() } else { 0 };
        Ok(Self { file, mode, position, size_max })
    }

    /// Up to `len` bytes from the position; fewer at the end of the file.
    pub(super) fn read(&mut self, len: i32) -> Result<Vec<u8>, StatusCode> {
        let len = usize::try_from(len).map_err(|_| StatusCode::BAD_INVALID_ARGUMENT)?;
        if !self.mode.read {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        // Allocate no more than the file has: the client chooses the length.
        let size = self.file.metadata().map_err(|error| status_of(&error))?.len();
        let left = usize::try_from(size.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len.min(left).min(READ_MAX)];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, self.position + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(status_of(&error)),
            }
        }
        bytes.truncate(filled);
        self.position += filled as u64;
        Ok(bytes)
    }

    /// Writes at the position. `grow` checks whether the directory may grow by that many bytes.
    pub(super) fn write(
        &mut self,
        data: &[u8],
        grow: impl FnOnce(u64) -> Result<(), StatusCode>,
    ) -> Result<(), StatusCode> {
        if !self.mode.write {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        let end = self.position.saturating_add(data.len() as u64);
        if end > self.size_max {
            return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
        }
        let size = self.file.metadata().map_err(|error| status_of(&error))?.len();
        grow(end.saturating_sub(size))?;
        self.file.write_all_at(data, self.position).map_err(|error| status_of(&error))?;
        self.position = end;
        Ok(())
    }

    /// Truncates the file. Returns its previous size.
    pub(super) fn erase(&mut self) -> Result<u64, StatusCode> {
        let size = self.file.metadata().map_err(|error| status_of(&error))?.len();
        self.file.set_len(0).map_err(|error| status_of(&error))?;
        Ok(size)
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// A position beyond the end is set to the end (Part 20 §4.2.8).
    pub(super) fn seek(&mut self, position: u64) -> Result<(), StatusCode> {
        let size = self.file.metadata().map_err(|error| status_of(&error))?.len();
        self.position = position.min(size);
        Ok(())
    }
}

struct Handle {
    session: NodeId,
    life: SessionLife,
    folder: usize,
    route: Route,
    writes: bool,
    open: Arc<Mutex<Open>>,
    _charge: Option<Charge>,
}

/// All open files.
#[derive(Default)]
pub(super) struct Handles {
    next: u32,
    open: BTreeMap<u32, Handle>,
}

impl Handles {
    /// Closes files of ended sessions.
    fn tidy(&mut self) {
        self.open.retain(|_, handle| !handle.life.is_over());
    }

    fn of<'a>(&'a self, folder: usize, route: &'a Route) -> impl Iterator<Item = &'a Handle> {
        self.open.values().filter(move |handle| handle.folder == folder && handle.route == *route)
    }

    /// How many times a file is open.
    pub(super) fn count(&mut self, folder: usize, route: &Route) -> u16 {
        self.tidy();
        u16::try_from(self.of(folder, route).count()).unwrap_or(u16::MAX)
    }

    /// Whether a file at or below a route is open.
    pub(super) fn is_used(&mut self, folder: usize, route: &Route) -> bool {
        self.tidy();
        self.open.values().any(|handle| handle.folder == folder && handle.route.is_within(route))
    }

    /// Opens a file for a session: any number of readers, or one writer (Part 20 §4.2.2).
    pub(super) fn open(
        &mut self,
        caller: &CallContext,
        (folder, route): (usize, &Route),
        mode: OpenMode,
        open: Open,
    ) -> Result<(u32, Arc<Mutex<Open>>), StatusCode> {
        self.tidy();
        let is_written = self.of(folder, route).any(|handle| handle.writes);
        if mode.write && self.of(folder, route).next().is_some() {
            return Err(StatusCode::BAD_NOT_WRITABLE);
        }
        if is_written {
            return Err(StatusCode::BAD_NOT_READABLE);
        }
        let own = self.open.values().filter(|handle| handle.session == caller.session_id).count();
        if own >= PER_SESSION_MAX || self.open.len() >= OPEN_MAX {
            return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
        }
        let charge = caller.session_account.charge(HANDLE_BYTES)?;
        let open = Arc::new(Mutex::new(open));
        let handle = Handle {
            session: caller.session_id.clone(),
            life: caller.session_life.clone(),
            folder,
            route: route.clone(),
            writes: mode.write,
            open: Arc::clone(&open),
            _charge: charge,
        };
        let mut number = self.next.max(1);
        while self.open.contains_key(&number) {
            number = number.checked_add(1).unwrap_or(1);
        }
        self.next = number.checked_add(1).unwrap_or(1);
        self.open.insert(number, handle);
        Ok((number, open))
    }

    /// A handle is valid only for its session and its file.
    pub(super) fn get(
        &self,
        caller: &CallContext,
        (folder, route): (usize, &Route),
        number: u32,
    ) -> Result<Arc<Mutex<Open>>, StatusCode> {
        let found = self.open.get(&number).filter(|handle| {
            handle.session == caller.session_id && handle.folder == folder && handle.route == *route
        });
        found.map(|handle| Arc::clone(&handle.open)).ok_or(StatusCode::BAD_INVALID_ARGUMENT)
    }

    pub(super) fn close(
        &mut self,
        caller: &CallContext,
        file: (usize, &Route),
        number: u32,
    ) -> Result<(), StatusCode> {
        self.get(caller, file, number)?;
        self.open.remove(&number);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn caller(session: u32) -> CallContext {
        let mut caller = CallContext::default();
        caller.session_id = NodeId::numeric(1, session);
        caller
    }

    fn temporary(content: &[u8]) -> File {
        let path = std::env::temp_dir().join(format!(
            "taktwerk-handle-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let mut file =
            File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        // The file is deleted when it is closed.
        std::fs::remove_file(path).unwrap();
        file.write_all(content).unwrap();
        file
    }

    fn open(content: &[u8], bits: u8) -> Open {
        Open::new(temporary(content), OpenMode::new(bits).unwrap(), 10).unwrap()
    }

    #[test]
    fn modes_are_those_of_the_specification() {
        let good: Vec<u8> = (0..=255).filter(|bits| OpenMode::new(*bits).is_ok()).collect();
        assert_eq!(good, [1, 2, 3, 6, 7, 10, 11]);
    }

    #[test]
    fn bytes_are_read_and_written_at_the_position() {
        let mut file = open(b"0123456789", 1);
        assert_eq!(file.read(4).unwrap(), b"0123");
        assert_eq!(file.read(i32::MAX).unwrap(), b"456789");
        assert_eq!(file.read(1).unwrap(), b"");
        assert_eq!(file.read(-1), Err(StatusCode::BAD_INVALID_ARGUMENT));
        file.seek(8).unwrap();
        assert_eq!((file.position(), file.read(9).unwrap()), (8, b"89".to_vec()));
        file.seek(u64::MAX).unwrap();
        assert_eq!(file.position(), 10);
        assert_eq!(file.write(b"x", |_| Ok(())), Err(StatusCode::BAD_INVALID_STATE));
        let mut file = open(b"01234", 3);
        let mut grown = Vec::new();
        file.seek(3).unwrap();
        file.write(b"abcd", |bytes| {
            grown.push(bytes);
            Ok(())
        })
        .unwrap();
        assert_eq!((grown.as_slice(), file.position()), ([2].as_slice(), 7));
        assert_eq!(file.write(b"more", |_| Ok(())), Err(StatusCode::BAD_RESOURCE_UNAVAILABLE), "too large");
        let full = file.write(b"x", |_| Err(StatusCode::BAD_RESOURCE_UNAVAILABLE));
        assert_eq!((full, file.position()), (Err(StatusCode::BAD_RESOURCE_UNAVAILABLE), 7));
        file.seek(0).unwrap();
        assert_eq!(file.read(10).unwrap(), b"012abcd");
        let mut end = open(b"ab", 10);
        end.write(b"c", |_| Ok(())).unwrap();
        assert_eq!((end.position(), end.read(1)), (3, Err(StatusCode::BAD_INVALID_STATE)));
    }

    #[test]
    fn handles_belong_to_a_session_and_a_file() {
        let (a, b) = (Route::default().join("a").unwrap(), Route::default().join("b").unwrap());
        let (one, two) = (caller(1), caller(2));
        let (reading, writing) = (OpenMode::new(1).unwrap(), OpenMode::new(2).unwrap());
        let mut all = Handles::default();
        let (first, _) = all.open(&one, (0, &a), reading, open(b"x", 1)).unwrap();
        all.open(&two, (0, &a), reading, open(b"x", 1)).unwrap();
        assert_eq!(all.open(&two, (0, &a), writing, open(b"x", 1)).err(), Some(StatusCode::BAD_NOT_WRITABLE));
        let (written, _) = all.open(&two, (0, &b), writing, open(b"x", 1)).unwrap();
        assert_eq!(all.open(&one, (0, &b), reading, open(b"x", 1)).err(), Some(StatusCode::BAD_NOT_READABLE));
        all.open(&one, (1, &b), reading, open(b"x", 1)).unwrap();
        assert_eq!((all.count(0, &a), all.count(0, &b), all.count(1, &a)), (2, 1, 0));
        assert!(all.is_used(0, &Route::default()) && !all.is_used(2, &Route::default()));
        let invalid = Some(StatusCode::BAD_INVALID_ARGUMENT);
        assert_eq!(all.get(&two, (0, &a), first).err(), invalid, "another session");
        assert_eq!(all.get(&one, (0, &b), first).err(), invalid, "another file");
        assert_eq!(all.get(&one, (1, &a), first).err(), invalid, "another folder");
        all.close(&one, (0, &a), first).unwrap();
        assert_eq!(all.close(&one, (0, &a), first), Err(StatusCode::BAD_INVALID_ARGUMENT));
        all.close(&two, (0, &b), written).unwrap();
        assert!(all.open(&one, (0, &b), writing, open(b"x", 1)).is_ok());
    }

    #[test]
    fn a_session_cannot_use_up_all_handles() {
        let mut all = Handles::default();
        let reading = OpenMode::new(1).unwrap();
        let route = |number: usize| Route::default().join(&number.to_string()).unwrap();
        let mut open_one =
            |session, number| all.open(&caller(session), (0, &route(number)), reading, open(b"", 1));
        for number in 0..PER_SESSION_MAX {
            open_one(1, number).unwrap();
        }
        assert_eq!(open_one(1, 99).err(), Some(StatusCode::BAD_TOO_MANY_OPERATIONS));
        assert!(open_one(2, 99).is_ok());
    }
}
