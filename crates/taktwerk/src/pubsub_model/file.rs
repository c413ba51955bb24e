//! The configuration as a file that can be read (Part 14 §9.1.3.7, Part 20 §4.2). It is not writable: ReserveIds,
//! Write and CloseAndUpdate are not executable.

use super::{administers, computed, lock};
use crate::error::BuildError;
use crate::space::{Space, ns0};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use taktwerk_pubsub::config::{Configuration, binary_file};
use taktwerk_schema::ids::{method_ids, variable_ids};
use taktwerk_server::callback::CallContext;
use taktwerk_types::{ByteString, NodeId, StatusCode, Variant};

/// Most handles that are open at the same time. A session that is gone leaves its handles behind: the oldest goes for
/// a new one.
const OPEN_MAX: usize = 64;
/// The bit of Open's mode that asks for reading.
const READ: u8 = 1;

struct Handle {
    session: NodeId,
    position: usize,
}

/// The file and who reads it.
struct File {
    bytes: Vec<u8>,
    next: u32,
    open: BTreeMap<u32, Handle>,
}

impl File {
    fn open(&mut self, caller: &CallContext, mode: u8) -> Result<u32, StatusCode> {
        match mode {
            READ => {}
            0 => return Err(StatusCode::BAD_INVALID_ARGUMENT),
            _ => return Err(StatusCode::BAD_NOT_WRITABLE),
        }
        if self.open.len() >= OPEN_MAX {
            self.open.pop_first();
        }
        let handle = self.next;
        self.next = self.next.checked_add(1).unwrap_or(1);
        self.open.insert(handle, Handle { session: caller.session_id.clone(), position: 0 });
        Ok(handle)
    }

    /// A handle belongs to the session that opened it.
    fn handle(&mut self, caller: &CallContext, handle: u32) -> Result<&mut Handle, StatusCode> {
        let found = self.open.get_mut(&handle).filter(|handle| handle.session == caller.session_id);
        found.ok_or(StatusCode::BAD_INVALID_ARGUMENT)
    }

    fn close(&mut self, caller: &CallContext, handle: u32) -> Result<(), StatusCode> {
        self.handle(caller, handle)?;
        self.open.remove(&handle);
        Ok(())
    }

    fn read(&mut self, caller: &CallContext, handle: u32, len: i32) -> Result<ByteString, StatusCode> {
        let len = usize::try_from(len).map_err(|_| StatusCode::BAD_INVALID_ARGUMENT)?;
        let position = self.handle(caller, handle)?.position;
        let end = position.saturating_add(len).min(self.bytes.len());
        let piece = self.bytes.get(position..end).unwrap_or_default().to_vec();
        self.handle(caller, handle)?.position = end;
        Ok(piece.into())
    }

    fn seek(&mut self, caller: &CallContext, handle: u32, position: u64) -> Result<(), StatusCode> {
        let end = self.bytes.len();
        // Beyond the end it is the end (Part 20 §4.2.8).
        let position = usize::try_from(position).unwrap_or(usize::MAX).min(end);
        self.handle(caller, handle)?.position = position;
        Ok(())
    }
}

/// The arguments of a call; their number and types were checked.
struct Inputs(std::vec::IntoIter<Variant>);

impl Inputs {
    fn take<T: TryFrom<Variant>>(&mut self) -> Result<T, StatusCode> {
        self.0.next().and_then(|value| value.try_into().ok()).ok_or(StatusCode::BAD_INVALID_ARGUMENT)
    }
}

type Run = fn(&mut File, &CallContext, Inputs) -> Result<Vec<Variant>, StatusCode>;

/// What each Method does.
const METHODS: [(u32, Run); 5] = [
    (method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_OPEN, |file, caller, mut inputs| {
        Ok(vec![file.open(caller, inputs.take()?)?.into()])
    }),
    (method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_CLOSE, |file, caller, mut inputs| {
        file.close(caller, inputs.take()?).map(|()| Vec::new())
    }),
    (method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_READ, |file, caller, mut inputs| {
        Ok(vec![file.read(caller, inputs.take()?, inputs.take()?)?.into()])
    }),
    (method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_GET_POSITION, |file, caller, mut inputs| {
        Ok(vec![(file.handle(caller, inputs.take()?)?.position as u64).into()])
    }),
    (method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_SET_POSITION, |file, caller, mut inputs| {
        file.seek(caller, inputs.take()?, inputs.take()?).map(|()| Vec::new())
    }),
];

/// Adds it.
pub(super) fn add(space: &Space, configuration: &Configuration) -> Result<(), BuildError> {
    let bytes = binary_file::write(configuration);
    let size = bytes.len() as u64;
    let file = Arc::new(Mutex::new(File { bytes, next: 1, open: BTreeMap::new() }));
    for (id, run) in METHODS {
        let file = Arc::clone(&file);
        let handler = move |caller: &CallContext, inputs: Vec<Variant>| {
            administers(caller)?;
            run(&mut lock(&file), caller, Inputs(inputs.into_iter()))
        };
        space.set_method(&ns0(id), Arc::new(handler))?;
    }
    computed(space, variable_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_SIZE, move || size)?;
    computed(space, variable_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_WRITABLE, || false)?;
    computed(space, variable_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_USER_WRITABLE, || false)?;
    computed(space, variable_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_OPEN_COUNT, move || {
        u16::try_from(lock(&file).open.len()).unwrap_or(u16::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(session: u32) -> CallContext {
        let mut caller = CallContext::default();
        caller.session_id = NodeId::numeric(1, session);
        caller
    }

    #[test]
    fn it_is_read_in_pieces_by_who_opened_it() {
        let mut file = File { bytes: b"0123456789".to_vec(), next: 1, open: BTreeMap::new() };
        let (one, two) = (caller(1), caller(2));
        assert_eq!(file.open(&one, 2), Err(StatusCode::BAD_NOT_WRITABLE));
        assert_eq!(file.open(&one, 0), Err(StatusCode::BAD_INVALID_ARGUMENT));
        let handle = file.open(&one, READ).unwrap();
        assert_eq!(file.read(&one, handle, 4).unwrap(), b"0123".to_vec().into());
        assert_eq!(file.read(&two, handle, 4), Err(StatusCode::BAD_INVALID_ARGUMENT));
        assert_eq!(file.read(&one, handle, -1), Err(StatusCode::BAD_INVALID_ARGUMENT));
        assert_eq!(file.read(&one, handle, i32::MAX).unwrap(), b"456789".to_vec().into());
        file.seek(&one, handle, u64::MAX).unwrap();
        assert_eq!(file.read(&one, handle, 4).unwrap(), Vec::new().into());
        file.seek(&one, handle, 8).unwrap();
        assert_eq!(file.read(&one, handle, 4).unwrap(), b"89".to_vec().into());
        file.close(&one, handle).unwrap();
        assert_eq!(file.close(&one, handle), Err(StatusCode::BAD_INVALID_ARGUMENT));
        for _ in 0..=OPEN_MAX {
            file.open(&two, READ).unwrap();
        }
        assert_eq!(file.open.len(), OPEN_MAX);
    }
}
