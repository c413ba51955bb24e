//! The configuration as a file (Part 14 §9.1.3.7, Part 20 §4.2), which can be read, or written and applied in part.

use super::authorized::Caller;
use super::live::Live;
use super::methods::{Inputs, Outcome, blocking};
use super::{administers, computed, has_role, lock};
use crate::error::BuildError;
use crate::space::{Space, ns0};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use taktwerk_net::clock;
use taktwerk_pubsub::config::update::{Context, REFERENCES_MAX, Update, update};
use taktwerk_pubsub::config::{Configuration, binary_file};
use taktwerk_schema::PubSubConfigurationRefDataType;
use taktwerk_schema::ids::{method_ids, object_ids, variable_ids};
use taktwerk_server::callback::{CallContext, SessionLife};
use taktwerk_types::{ByteString, Instant, NodeId, StatusCode, Variant};

/// Most open handles; a new one replaces the oldest.
const OPEN_MAX: usize = 64;
/// Longest file that clients can write, in bytes.
const WRITTEN_MAX: usize = 16 << 20;
/// A writer that is idle for this time loses its lock.
const PATIENCE: Duration = Duration::from_secs(60);
/// Mode of Open for reading.
const READ: u8 = 1;
/// Mode of Open for writing new content.
const WRITE: u8 = 2 | 4;

enum Content {
    /// The configuration at the time of opening.
    Read(Arc<[u8]>),
    Written(Vec<u8>),
}

impl Content {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Read(bytes) => bytes,
            Self::Written(bytes) => bytes,
        }
    }
}

struct Handle {
    session: NodeId,
    life: SessionLife,
    content: Content,
    position: usize,
    used: Instant,
}

/// The open handles.
#[derive(Default)]
struct File {
    next: u32,
    open: BTreeMap<u32, Handle>,
}

impl File {
    fn open(
        &mut self,
        caller: &CallContext,
        mode: u8,
        now: Instant,
        bytes: impl FnOnce() -> Vec<u8>,
    ) -> Result<u32, StatusCode> {
        self.tidy();
        let content = match mode {
            READ => Content::Read(bytes().into()),
            WRITE => {
                let writes = |handle: &Handle| matches!(handle.content, Content::Written(_));
                // Part 20 §4.2.2: one writer at a time.
                self.open.retain(|_, handle| !writes(handle) || now.since(handle.used) < PATIENCE);
                if self.open.values().any(writes) {
                    return Err(StatusCode::BAD_NOT_WRITABLE);
                }
                Content::Written(Vec::new())
            }
            _ => return Err(StatusCode::BAD_INVALID_ARGUMENT),
        };
        if self.open.len() >= OPEN_MAX {
            self.open.pop_first();
        }
        let handle = self.next.max(1);
        self.next = handle.checked_add(1).unwrap_or(1);
        let (session, life) = (caller.session_id.clone(), caller.session_life.clone());
        self.open.insert(handle, Handle { session, life, content, position: 0, used: now });
        Ok(handle)
    }

    /// Closes handles of ended sessions.
    fn tidy(&mut self) {
        self.open.retain(|_, handle| !handle.life.is_over());
    }

    /// A handle is valid only for the session that opened it.
    fn handle(&mut self, caller: &CallContext, handle: u32, now: Instant) -> Result<&mut Handle, StatusCode> {
        let found = self.open.get_mut(&handle).filter(|handle| handle.session == caller.session_id);
        let found = found.ok_or(StatusCode::BAD_INVALID_ARGUMENT)?;
        found.used = now;
        Ok(found)
    }

    fn close(&mut self, caller: &CallContext, handle: u32, now: Instant) -> Result<Content, StatusCode> {
        self.handle(caller, handle, now)?;
        let closed = self.open.remove(&handle);
        Ok(closed.ok_or(StatusCode::BAD_INVALID_ARGUMENT)?.content)
    }
}

impl Handle {
    fn read(&mut self, len: i32) -> Result<ByteString, StatusCode> {
        let len = usize::try_from(len).map_err(|_| StatusCode::BAD_INVALID_ARGUMENT)?;
        let Content::Read(bytes) = &self.content else { return Err(StatusCode::BAD_INVALID_STATE) };
        let end = self.position.saturating_add(len).min(bytes.len());
        let piece = bytes.get(self.position..end).unwrap_or_default().to_vec();
        self.position = end;
        Ok(piece.into())
    }

    fn write(&mut self, data: &[u8]) -> Result<(), StatusCode> {
        let Content::Written(bytes) = &mut self.content else { return Err(StatusCode::BAD_INVALID_STATE) };
        let end = self.position.saturating_add(data.len());
        if end > WRITTEN_MAX {
            return Err(StatusCode::BAD_REQUEST_TOO_LARGE);
        }
        bytes.resize(bytes.len().max(end), 0);
        if let Some(place) = bytes.get_mut(self.position..end) {
            place.copy_from_slice(data);
        }
        self.position = end;
        Ok(())
    }

    fn seek(&mut self, position: u64) {
        // A position beyond the end is set to the end (Part 20 §4.2.8).
        self.position = usize::try_from(position).unwrap_or(usize::MAX).min(self.content.bytes().len());
    }
}

type Run = fn(&Arc<Live>, &Mutex<File>, &CallContext, &mut Inputs) -> Outcome;

/// The implementation of each Method.
const METHODS: [(u32, Run); 8] = [
    (method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_OPEN, |live, file, caller, inputs| {
        let space = live.space()?;
        let bytes = || {
            let mut shown = (*live.states.configuration()).clone();
            Caller::new(&space, &caller.roles).redact(&mut shown);
            binary_file::write(&shown)
        };
        Ok(vec![lock(file).open(caller, inputs.take()?, clock::monotonic(), bytes)?.into()])
    }),
    (method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_CLOSE, |_, file, caller, inputs| {
        lock(file).close(caller, inputs.take()?, clock::monotonic()).map(|_| Vec::new())
    }),
    (method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_READ, |_, file, caller, inputs| {
        let (handle, len) = (inputs.take()?, inputs.take()?);
        Ok(vec![lock(file).handle(caller, handle, clock::monotonic())?.read(len)?.into()])
    }),
    (method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_WRITE, |_, file, caller, inputs| {
        let (handle, data): (u32, ByteString) = (inputs.take()?, inputs.take()?);
        lock(file).handle(caller, handle, clock::monotonic())?.write(data.as_bytes())?;
        Ok(Vec::new())
    }),
    (method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_GET_POSITION, |_, file, caller, inputs| {
        let mut file = lock(file);
        let handle = file.handle(caller, inputs.take()?, clock::monotonic())?;
        Ok(vec![(handle.position as u64).into()])
    }),
    (method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_SET_POSITION, |_, file, caller, inputs| {
        let (handle, position) = (inputs.take()?, inputs.take()?);
        lock(file).handle(caller, handle, clock::monotonic())?.seek(position);
        Ok(Vec::new())
    }),
    (method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_RESERVE_IDS, |live, _, caller, inputs| {
        reserve_ids(live, caller, inputs)
    }),
    (method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_CLOSE_AND_UPDATE, close_and_update),
];

/// ReserveIds (Part 14 §9.1.3.7.5).
fn reserve_ids(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let profile = inputs.text()?;
    if !super::nodes::PROFILES.contains(&profile.as_str()) {
        return Err(StatusCode::BAD_INVALID_ARGUMENT);
    }
    let (groups, writers): (u16, u16) = (inputs.take()?, inputs.take()?);
    let configuration = live.states.configuration();
    let (groups, writers) = {
        let mut inner = live.inner();
        let session = &caller.session_id;
        let reserved = inner.reservations.reserve(session, &configuration, groups, writers)?;
        if !inner.reserving.iter().any(|(known, _)| known == session) {
            inner.reserving.push((session.clone(), caller.session_life.clone()));
        }
        reserved
    };
    let publisher_id = live.default_publisher_id(&profile).to_variant();
    Ok(vec![publisher_id, groups.into(), writers.into()])
}

/// CloseAndUpdate (Part 14 §9.1.3.7.6).
fn close_and_update(
    live: &Arc<Live>,
    file: &Mutex<File>,
    caller: &CallContext,
    inputs: &mut Inputs,
) -> Outcome {
    let (handle, complete): (u32, bool) = (inputs.take()?, inputs.take()?);
    let references: Vec<PubSubConfigurationRefDataType> = inputs.structures()?;
    let is_written = {
        let mut file = lock(file);
        matches!(file.handle(caller, handle, clock::monotonic())?.content, Content::Written(_))
    };
    if !is_written {
        return Err(StatusCode::BAD_INVALID_STATE);
    }
    if references.is_empty() {
        return Err(StatusCode::BAD_NOTHING_TO_DO);
    }
    if references.len() > REFERENCES_MAX {
        return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
    }
    let content = lock(file).close(caller, handle, clock::monotonic())?;
    let written = binary_file::read(content.bytes()).map_err(|error| {
        tracing::info!(%error, "a written PubSub configuration cannot be read");
        StatusCode::BAD_TYPE_MISMATCH
    })?;
    // Part 14 §8.5.2: changes concerning keys require an encrypted channel.
    let key_admins =
        [object_ids::WELL_KNOWN_ROLE_SECURITY_KEY_SERVER_ADMIN, object_ids::WELL_KNOWN_ROLE_SECURITY_ADMIN];
    let permits_security = caller.encrypted && has_role(caller, &key_admins);
    let apply = |configuration: &mut Configuration, reservations: &_| {
        let context = Context {
            session: &caller.session_id,
            reservations,
            default_publisher_id: &|profile| live.default_publisher_id(profile),
            permits_security,
        };
        let update = update(configuration, &written, &references, complete, &context);
        *configuration = update.configuration.clone();
        update
    };
    let done = live.change_for(caller, |configuration, inner| Ok(apply(configuration, &inner.reservations)));
    match done {
        Ok(update) => Ok(results(live, &update)),
        // The content is valid, but cannot run: addresses, Variables, names.
        Err(status) => {
            let update = Update {
                configuration: Configuration::default(),
                is_changed: false,
                results: vec![status; references.len()],
                values: Vec::new(),
                elements: vec![None; references.len()],
            };
            Ok(results(live, &update))
        }
    }
}

fn results(live: &Live, update: &Update) -> Vec<Variant> {
    let nodes: Vec<NodeId> = update
        .elements
        .iter()
        .map(|element| element.as_ref().map(|element| live.node(element)).unwrap_or_default())
        .collect();
    vec![
        update.is_changed.into(),
        update.results.clone().into(),
        Variant::from_structures(&update.values),
        nodes.into(),
    ]
}

/// Adds the file object.
pub(super) fn add(space: &Space, live: &Arc<Live>) -> Result<(), BuildError> {
    let file = Arc::new(Mutex::new(File::default()));
    for (id, run) in METHODS {
        let (live, file) = (Arc::clone(live), Arc::clone(&file));
        let handler = move |caller: &CallContext, mut inputs: Inputs| {
            administers(caller)?;
            run(&live, &file, caller, &mut inputs)
        };
        space.set_method(&ns0(id), blocking(handler))?;
    }
    let shown = Arc::clone(live);
    computed(space, variable_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_SIZE, move || {
        binary_file::write(&shown.states.configuration()).len() as u64
    })?;
    computed(space, variable_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_WRITABLE, || true)?;
    computed(space, variable_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_USER_WRITABLE, || true)?;
    computed(space, variable_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_OPEN_COUNT, move || {
        let mut file = lock(&file);
        file.tidy();
        u16::try_from(file.open.len()).unwrap_or(u16::MAX)
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

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn content() -> Vec<u8> {
        b"0123456789".to_vec()
    }

    #[test]
    fn only_the_session_that_opened_the_file_can_read_it() {
        let mut file = File::default();
        let (one, two) = (caller(1), caller(2));
        for mode in [0, 2, 3, 8, 255] {
            assert_eq!(file.open(&one, mode, at(0), content), Err(StatusCode::BAD_INVALID_ARGUMENT));
        }
        let handle = file.open(&one, READ, at(0), content).unwrap();
        let mut read = |caller: &CallContext, len| file.handle(caller, handle, at(0))?.read(len);
        assert_eq!(read(&one, 4).unwrap(), b"0123".to_vec().into());
        assert_eq!(read(&two, 4), Err(StatusCode::BAD_INVALID_ARGUMENT));
        assert_eq!(read(&one, -1), Err(StatusCode::BAD_INVALID_ARGUMENT));
        assert_eq!(read(&one, i32::MAX).unwrap(), b"456789".to_vec().into());
        file.handle(&one, handle, at(0)).unwrap().seek(u64::MAX);
        assert_eq!(file.handle(&one, handle, at(0)).unwrap().read(4).unwrap(), Vec::new().into());
        file.handle(&one, handle, at(0)).unwrap().seek(8);
        assert_eq!(file.handle(&one, handle, at(0)).unwrap().read(4).unwrap(), b"89".to_vec().into());
        assert_eq!(file.handle(&one, handle, at(0)).unwrap().write(b"x"), Err(StatusCode::BAD_INVALID_STATE));
        file.close(&one, handle, at(0)).unwrap();
        assert_eq!(file.close(&one, handle, at(0)).err(), Some(StatusCode::BAD_INVALID_ARGUMENT));
        for _ in 0..=OPEN_MAX {
            file.open(&two, READ, at(0), content).unwrap();
        }
        assert_eq!(file.open.len(), OPEN_MAX);
    }

    #[test]
    fn one_writer_at_a_time_and_an_idle_one_loses_its_lock() {
        let mut file = File::default();
        let (one, two) = (caller(1), caller(2));
        let handle = file.open(&one, WRITE, at(0), content).unwrap();
        let open = file.handle(&one, handle, at(0)).unwrap();
        open.write(b"abcdef").unwrap();
        open.seek(2);
        open.write(b"XY").unwrap();
        assert_eq!((open.content.bytes(), open.position), (b"abXYef".as_slice(), 4));
        assert_eq!(open.read(1), Err(StatusCode::BAD_INVALID_STATE));
        assert_eq!(open.write(&vec![0; WRITTEN_MAX]), Err(StatusCode::BAD_REQUEST_TOO_LARGE));
        assert_eq!(file.open(&two, WRITE, at(30), content), Err(StatusCode::BAD_NOT_WRITABLE));
        file.open(&two, READ, at(30), content).unwrap();
        file.open(&two, WRITE, at(60), content).unwrap();
        assert!(file.handle(&one, handle, at(61)).is_err(), "it was taken away");
    }
}
