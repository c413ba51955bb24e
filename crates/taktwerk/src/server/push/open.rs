//! The trust lists opened by clients. They are small, so each open one is a copy in memory.

use super::TRUST_LIST_BYTES_MAX;
use core::time::Duration;
use std::collections::BTreeMap;
use std::time::Instant;
use taktwerk_pki::Group;
use taktwerk_server::account::Charge;
use taktwerk_server::callback::{CallContext, SessionLife};
use taktwerk_types::{NodeId, StatusCode};

/// Most open trust lists of all sessions.
const OPEN_MAX: usize = 16;
/// Most open trust lists of one session.
const OPEN_PER_SESSION_MAX: usize = 4;
/// Longest Read in bytes.
const READ_MAX: usize = 1 << 20;
/// Bytes charged for an open trust list in addition to its content.
const HANDLE_BYTES: usize = 256;
/// ActivityTimeout (Part 12 §7.8.2.1): an idle trust list is closed after this time.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// An open trust list.
pub(super) struct Open {
    group: Group,
    session: NodeId,
    life: SessionLife,
    pub(super) is_written: bool,
    pub(super) content: Vec<u8>,
    position: usize,
    /// The charge for handle and content.
    charge: Option<Charge>,
    used: Instant,
}

impl Open {
    /// The next bytes.
    pub(super) fn read(&mut self, len: i32) -> Result<Vec<u8>, StatusCode> {
        if self.is_written {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        let len = usize::try_from(len).ok().filter(|len| *len > 0).ok_or(StatusCode::BAD_INVALID_ARGUMENT)?;
        let end = self.content.len().min(self.position.saturating_add(len.min(READ_MAX)));
        let bytes = self.content.get(self.position..end).unwrap_or_default().to_vec();
        self.position = end;
        Ok(bytes)
    }

    /// Writes at the position.
    pub(super) fn write(&mut self, caller: &CallContext, bytes: &[u8]) -> Result<(), StatusCode> {
        if !self.is_written {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        let end = self.position.saturating_add(bytes.len());
        if end > TRUST_LIST_BYTES_MAX {
            return Err(StatusCode::BAD_REQUEST_TOO_LARGE);
        }
        let len = end.max(self.content.len());
        if len > self.content.len() {
            self.charge = caller.session_account.charge(HANDLE_BYTES + len)?;
        }
        self.content.resize(len, 0);
        if let Some(place) = self.content.get_mut(self.position..end) {
            place.copy_from_slice(bytes);
        }
        self.position = end;
        Ok(())
    }

    pub(super) fn position(&self) -> u64 {
        self.position as u64
    }

    /// A position beyond the end is set to the end.
    pub(super) fn set_position(&mut self, position: u64) {
        self.position = usize::try_from(position).unwrap_or(usize::MAX).min(self.content.len());
    }
}

/// All open trust lists, by handle.
#[derive(Default)]
pub(super) struct Handles {
    open: BTreeMap<u32, Open>,
    last: u32,
}

impl Handles {
    /// Closes trust lists of ended or idle sessions. Returns whether any were closed.
    pub(super) fn tidy(&mut self, now: Instant) -> bool {
        let before = self.open.len();
        let is_used = |open: &Open| now.saturating_duration_since(open.used) < IDLE_MAX;
        self.open.retain(|_, open| !open.life.is_over() && is_used(open));
        self.open.len() != before
    }

    /// The number of open handles for a group.
    pub(super) fn count(&self, group: Group) -> u16 {
        let count = self.open.values().filter(|open| open.group == group).count();
        u16::try_from(count).unwrap_or(u16::MAX)
    }

    /// Whether a session is writing the trust list of a group.
    pub(super) fn is_written(&self, group: Group) -> bool {
        self.open.values().any(|open| open.group == group && open.is_written)
    }

    /// Whether a session is writing a trust list.
    pub(super) fn are_written(&self) -> bool {
        self.open.values().any(|open| open.is_written)
    }

    /// Whether another session is writing a trust list.
    pub(super) fn are_written_by_others(&self, caller: &CallContext) -> bool {
        self.open.values().any(|open| open.is_written && open.session != caller.session_id)
    }

    /// Opens a trust list. One client at a time writes; others can read the current list in the meantime.
    ///
    /// # Errors
    /// Bad_NotWritable if the session writes it already, or a limit is reached.
    pub(super) fn open(
        &mut self,
        caller: &CallContext,
        group: Group,
        is_written: bool,
        content: Vec<u8>,
        now: Instant,
    ) -> Result<u32, StatusCode> {
        if is_written && self.is_written(group) {
            return Err(StatusCode::BAD_NOT_WRITABLE);
        }
        let own = self.open.values().filter(|open| open.session == caller.session_id).count();
        if self.open.len() >= OPEN_MAX || own >= OPEN_PER_SESSION_MAX {
            return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
        }
        let charge = caller.session_account.charge(HANDLE_BYTES + content.len())?;
        self.last = self.last.wrapping_add(1).max(1);
        while self.open.contains_key(&self.last) {
            self.last = self.last.wrapping_add(1).max(1);
        }
        let (session, life) = (caller.session_id.clone(), caller.session_life.clone());
        let open = Open { group, session, life, is_written, content, position: 0, charge, used: now };
        self.open.insert(self.last, open);
        Ok(self.last)
    }

    /// An open trust list of the caller's session.
    ///
    /// # Errors
    /// Bad_InvalidArgument if the session has no such handle.
    pub(super) fn get(
        &mut self,
        caller: &CallContext,
        group: Group,
        handle: u32,
        now: Instant,
    ) -> Result<&mut Open, StatusCode> {
        let open = self.open.get_mut(&handle);
        let open = open.filter(|open| open.group == group && open.session == caller.session_id);
        let open = open.ok_or(StatusCode::BAD_INVALID_ARGUMENT)?;
        open.used = now;
        Ok(open)
    }

    /// Closes a trust list.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(super) fn close(
        &mut self,
        caller: &CallContext,
        group: Group,
        handle: u32,
        now: Instant,
    ) -> Result<Open, StatusCode> {
        self.get(caller, group, handle, now)?;
        self.open.remove(&handle).ok_or(StatusCode::BAD_INVALID_ARGUMENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: u32) -> CallContext {
        let mut caller = CallContext::in_process(NodeId::NULL, &[], true);
        caller.session_id = NodeId::numeric(1, id);
        caller
    }

    const GROUP: Group = Group::Applications;

    #[test]
    fn open_trust_lists_are_limited_per_session_and_in_total() {
        let (mut handles, now) = (Handles::default(), Instant::now());
        let full = StatusCode::BAD_RESOURCE_UNAVAILABLE;
        for id in 0..4 {
            for _ in 0..OPEN_PER_SESSION_MAX {
                handles.open(&session(id), GROUP, false, Vec::new(), now).unwrap();
            }
            assert_eq!(handles.open(&session(id), GROUP, false, Vec::new(), now), Err(full));
        }
        assert_eq!(handles.open(&session(9), GROUP, false, Vec::new(), now), Err(full));
        assert_eq!(usize::from(handles.count(GROUP)), OPEN_MAX);
        assert_eq!(handles.count(Group::Users), 0);
        let handle = *handles.open.keys().next().unwrap();
        assert!(handles.close(&session(0), GROUP, handle, now).is_ok());
        handles.open(&session(9), GROUP, false, Vec::new(), now).unwrap();
    }

    #[test]
    fn an_idle_trust_list_is_closed_and_one_in_use_is_not() {
        let (mut handles, start) = (Handles::default(), Instant::now());
        let first = handles.open(&session(1), GROUP, true, Vec::new(), start).unwrap();
        let second = handles.open(&session(2), GROUP, false, Vec::new(), start).unwrap();
        let later = start + IDLE_MAX / 2;
        handles.get(&session(1), GROUP, first, later).unwrap();
        assert!(!handles.tidy(later));
        assert!(handles.tidy(start + IDLE_MAX));
        assert!(handles.get(&session(2), GROUP, second, later).is_err());
        assert!(handles.is_written(GROUP));
        assert!(handles.tidy(later + IDLE_MAX) && !handles.are_written());
    }

    #[test]
    fn handles_belong_to_their_session_and_group() {
        let (mut handles, now) = (Handles::default(), Instant::now());
        let handle = handles.open(&session(1), GROUP, true, Vec::new(), now).unwrap();
        let refused = Err(StatusCode::BAD_INVALID_ARGUMENT);
        assert_eq!(handles.get(&session(2), GROUP, handle, now).map(|_| ()), refused);
        assert_eq!(handles.get(&session(1), Group::Users, handle, now).map(|_| ()), refused);
        assert_eq!(handles.close(&session(2), GROUP, handle, now).map(|_| ()), refused);
        assert!(handles.are_written_by_others(&session(2)) && !handles.are_written_by_others(&session(1)));
        assert!(handles.get(&session(1), GROUP, handle, now).is_ok());
    }

    /// The size is limited, wherever the client writes.
    #[test]
    fn writes_are_bounded() {
        let (mut handles, now, caller) = (Handles::default(), Instant::now(), session(1));
        let handle = handles.open(&caller, GROUP, true, Vec::new(), now).unwrap();
        let open = handles.get(&caller, GROUP, handle, now).unwrap();
        let piece = vec![7; 1 << 20];
        for _ in 0..TRUST_LIST_BYTES_MAX / piece.len() {
            open.write(&caller, &piece).unwrap();
        }
        assert_eq!(open.write(&caller, &[7]), Err(StatusCode::BAD_REQUEST_TOO_LARGE));
        assert_eq!(open.content.len(), TRUST_LIST_BYTES_MAX);
        open.set_position(u64::MAX);
        assert_eq!(open.position(), TRUST_LIST_BYTES_MAX as u64);
        open.set_position(1);
        open.write(&caller, &[1, 2]).unwrap();
        assert_eq!((&open.content[..4], open.content.len()), (&[7, 1, 2, 7][..], TRUST_LIST_BYTES_MAX));
        assert_eq!(open.read(1), Err(StatusCode::BAD_INVALID_STATE));
    }
}
