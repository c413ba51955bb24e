//! The responders of all Actions of a configuration, while it changes.

use super::{ActionResponder, ActionResponderBuilder, Legacy};
use crate::lock::lock;
use crate::pubsub::{KeySource, PubSubStartError, PublisherId};
use core::fmt;
use core::time::Duration;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use taktwerk_net::pubsub::PubSubError;
use taktwerk_pubsub::action::ActionDescription;
use taktwerk_pubsub::config::{Configuration, Connection};
use taktwerk_pubsub::security::SecurityKeys;
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_server::space::AddressSpace;
use taktwerk_types::{Encode, NodeId};

/// Creates a source of security group keys for each responder.
type Keys = Box<dyn Fn() -> io::Result<Box<dyn KeySource>> + Send + Sync>;

/// Settings of the responders. Each has a default.
#[must_use = "nothing happens before start()"]
pub struct ActionRespondersBuilder {
    space: Arc<AddressSpace>,
    roles: Vec<NodeId>,
    keys: Option<Keys>,
    allow_unsecured: bool,
    replay_floor: Option<PathBuf>,
    #[cfg(feature = "mqtt")]
    mqtt: taktwerk_net::pubsub::mqtt::MqttOptions,
}

impl fmt::Debug for ActionRespondersBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionRespondersBuilder").field("roles", &self.roles).finish_non_exhaustive()
    }
}

impl ActionRespondersBuilder {
    /// The roles whose permissions Method calls have. Default: none.
    pub fn roles(mut self, roles: &[NodeId]) -> Self {
        self.roles = roles.to_vec();
        self
    }

    /// The source of security group keys; the function is called once for each responder.
    pub fn keys<K: KeySource + 'static>(
        mut self,
        keys: impl Fn() -> io::Result<K> + Send + Sync + 'static,
    ) -> Self {
        self.keys = Some(Box::new(move || Ok(Box::new(keys()?))));
        self
    }

    /// Also answers where the configuration has no message security: anyone who can reach the address may invoke Actions.
    /// Default: no. JSON never has message security.
    pub fn allow_unsecured(mut self, allow: bool) -> Self {
        self.allow_unsecured = allow;
        self
    }

    /// Stores in files which secured messages were received, so that recorded requests are not executed again after a restart.
    /// Messages of the last second before a crash are not covered. Each responder has its own file: `path` with a suffix derived
    /// from PublisherId, connection and WriterGroup. Default: nothing is stored.
    pub fn replay_floor(mut self, path: impl Into<PathBuf>) -> Self {
        self.replay_floor = Some(path.into());
        self
    }

    /// Settings of broker connections.
    #[cfg(feature = "mqtt")]
    pub fn mqtt(mut self, options: taktwerk_net::pubsub::mqtt::MqttOptions) -> Self {
        self.mqtt = options;
        self
    }

    /// Starts the responders of a configuration.
    ///
    /// # Errors
    /// As [`ActionResponderBuilder::start`], for the first responder that fails.
    pub fn start(self, configuration: &Configuration) -> Result<ActionResponders, PubSubStartError> {
        let responders =
            ActionResponders { settings: self, running: Mutex::default(), past: Mutex::default() };
        responders.reconfigure(configuration)?;
        Ok(responders)
    }
}

/// The settings of a responder. If they are equal, it stays.
type Plan = (Connection, Vec<ActionDescription>);
/// The identity of a responder: its successor has the same PublisherId, connection and WriterGroup.
type Owner = (Option<PublisherId>, String, String);

/// Most stopped responders whose state is kept.
const PAST_MAX: usize = 64;

/// The responders of a configuration ([`ActionResponder::of`]), which follow its changes: see
/// [`crate::pubsub_model::PubSubModel::attach_responders`]. They stop on drop.
pub struct ActionResponders {
    settings: ActionRespondersBuilder,
    running: Mutex<Vec<(Plan, ActionResponder)>>,
    /// The state of stopped responders, for their successors.
    past: Mutex<Vec<(Owner, Legacy)>>,
}

/// A responder that failed to start.
#[derive(Debug)]
#[non_exhaustive]
pub struct FailedResponder {
    /// The name of its PubSubConnection.
    pub connection: String,
    /// The name of its WriterGroup.
    pub writer_group: String,
    /// Why.
    pub error: PubSubStartError,
}

impl fmt::Debug for ActionResponders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionResponders").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl ActionResponders {
    /// Responders for Methods of a server.
    pub fn builder(space: &Arc<AddressSpace>) -> ActionRespondersBuilder {
        ActionRespondersBuilder {
            space: Arc::clone(space),
            roles: Vec::new(),
            keys: None,
            allow_unsecured: false,
            replay_floor: None,
            #[cfg(feature = "mqtt")]
            mqtt: Default::default(),
        }
    }

    /// The number of responders: one for each WriterGroup with Actions.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.running).len()
    }

    /// Whether there are no responders.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Switches to another configuration. Unchanged responders continue. A changed one stops before its successor starts, so that
    /// nothing is executed twice. The successor, now or later, is the responder with the same PublisherId, connection and
    /// WriterGroup. It takes over the state: repeated requests are not executed again, and running executions are answered.
    ///
    /// # Errors
    /// The first responder that cannot start. The previous responders are then restored.
    pub fn reconfigure(&self, configuration: &Configuration) -> Result<(), PubSubStartError> {
        self.go_on(configuration, false).map(|_| ())
    }

    /// The same after something was enabled or disabled: responders that can start do so. Returns the others.
    pub fn switch(&self, configuration: &Configuration) -> Vec<FailedResponder> {
        // This mode returns no error.
        self.go_on(configuration, true).unwrap_or_default()
    }

    fn go_on(
        &self,
        configuration: &Configuration,
        is_lenient: bool,
    ) -> Result<Vec<FailedResponder>, PubSubStartError> {
        let settings = &self.settings;
        let mut running = lock(&self.running);
        let mut past = lock(&self.past);
        let mut fresh = Vec::new();
        let mut kept = Vec::new();
        let mut old = core::mem::take(&mut *running);
        for builder in ActionResponder::of(configuration, &settings.space, &settings.roles) {
            let plan = plan(&builder);
            match old.iter().position(|(known, _)| *known == plan) {
                Some(at) => kept.push(old.swap_remove(at)),
                None => fresh.push((plan, builder)),
            }
        }
        // They stop here.
        let mut ended: Vec<(Plan, Legacy)> =
            old.into_iter().map(|(plan, responder)| (plan, responder.hand_over())).collect();
        let mut started: Vec<(Plan, ActionResponder)> = Vec::new();
        let mut failed = Vec::new();
        for (plan, builder) in fresh {
            let owner = owner(&plan);
            let of_owner =
                |(before, legacy): &(Plan, Legacy)| (self::owner(before) == owner).then(|| legacy.clone());
            let legacy = ended.iter().find_map(of_owner).or_else(|| {
                past.iter().find(|(before, _)| *before == owner).map(|(_, legacy)| legacy.clone())
            });
            match self.begin(builder, legacy) {
                Ok(responder) => started.push((plan, responder)),
                Err(error) if is_lenient => failed.push(FailedResponder {
                    connection: plan.0.name.clone(),
                    writer_group: plan
                        .0
                        .writer_groups
                        .first()
                        .map_or_else(String::new, |one| one.name.clone()),
                    error,
                }),
                Err(error) => {
                    for (plan, responder) in started {
                        let (owner, legacy) = (self::owner(&plan), responder.hand_over());
                        if let Some((_, known)) = ended.iter_mut().find(|(old, _)| self::owner(old) == owner)
                        {
                            *known = legacy;
                        }
                    }
                    for (plan, legacy) in ended {
                        match self.begin(self.again(&plan), Some(legacy)) {
                            Ok(responder) => kept.push((plan, responder)),
                            Err(error) => tracing::error!(%error, "cannot restore a responder of Actions"),
                        }
                    }
                    *running = kept;
                    return Err(error);
                }
            }
        }
        for (plan, legacy) in ended {
            past.retain(|(known, _)| *known != owner(&plan));
            past.push((owner(&plan), legacy));
        }
        past.retain(|(known, _)| started.iter().all(|(plan, _)| owner(plan) != *known));
        let too_many = past.len().saturating_sub(PAST_MAX);
        past.drain(..too_many);
        kept.append(&mut started);
        *running = kept;
        Ok(failed)
    }

    /// Stops all, and waits at most for this time. For a process that ends while the owner of this hangs. Returns whether they
    /// have stopped. Then the files with the received sequence numbers are complete.
    pub fn end_within(&self, most: Duration) -> bool {
        let end = Instant::now() + most;
        let running = lock(&self.running);
        running
            .iter()
            .all(|(_, responder)| responder.end_within(end.saturating_duration_since(Instant::now())))
    }

    /// Requests new keys of a security group immediately, because they are known to have changed.
    pub fn refresh_keys(&self, security_group_id: &str) {
        for (_, responder) in lock(&self.running).iter() {
            responder.refresh_keys(security_group_id);
        }
    }

    /// Sets keys that a key service has pushed.
    pub fn set_keys(&self, security_group_id: &str, keys: &SecurityKeys) {
        for (_, responder) in lock(&self.running).iter() {
            responder.set_keys(security_group_id, keys.clone());
        }
    }

    fn begin(
        &self,
        builder: ActionResponderBuilder,
        legacy: Option<Legacy>,
    ) -> Result<ActionResponder, PubSubStartError> {
        let settings = &self.settings;
        let mut builder = if settings.allow_unsecured { builder.allow_unsecured() } else { builder };
        #[cfg(feature = "mqtt")]
        {
            builder = builder.mqtt(settings.mqtt.clone());
        }
        if let Some(keys) = &settings.keys {
            let keys = keys().map_err(|source| PubSubError::Thread { thread: "keys'", source })?;
            builder.common.options.keys = Some(keys);
        }
        if let Some(path) = &settings.replay_floor
            && builder.common.security.mode != SecurityMode::None
        {
            builder.common.options.replay_floor = Some(beside(path, &owner(&plan(&builder))));
        }
        builder.legacy = legacy;
        builder.start()
    }

    /// The builder for restoring a responder.
    fn again(&self, (connection, descriptions): &Plan) -> ActionResponderBuilder {
        let group = connection.writer_groups.first();
        let mut builder = match &connection.publisher_id {
            Some(id) => ActionResponder::builder(&connection.url, id.clone()),
            // Does not happen: every connection with responders has a PublisherId.
            None => ActionResponder::builder(&connection.url, 0),
        };
        for description in descriptions {
            builder = builder.methods(&self.settings.space, description.clone(), &self.settings.roles);
        }
        if let Some(group) = group {
            builder.follow(group);
        }
        builder.common.connection = connection.clone();
        builder
    }
}

fn owner((connection, _): &Plan) -> Owner {
    let group = connection.writer_groups.first().map_or_else(String::new, |group| group.name.clone());
    (connection.publisher_id.clone(), connection.name.clone(), group)
}

/// The file of one responder. Its name is unique within a configuration and stable across restarts.
fn beside(path: &Path, (publisher_id, connection, group): &Owner) -> PathBuf {
    let id = publisher_id.as_ref().map(|id| id.to_variant().encode_to_vec()).unwrap_or_default();
    let parts = [id.as_slice(), connection.as_bytes(), group.as_bytes()];
    // FNV-1a including the lengths, so that different parts yield different names.
    let hash = parts.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, part| {
        let length = (part.len() as u64).to_le_bytes();
        length
            .iter()
            .chain(part.iter())
            .fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
    });
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".actions-{hash:016x}"));
    path.with_file_name(name)
}

fn plan(builder: &ActionResponderBuilder) -> Plan {
    (builder.common.connection.clone(), builder.descriptions.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_responder_has_its_own_file() {
        let name = |id: Option<u16>, connection: &str, group: &str| {
            let owner = (id.map(PublisherId::UInt16), connection.to_owned(), group.to_owned());
            beside(Path::new("plant/line.replay"), &owner)
        };
        let one = name(Some(7), "udp", "actions");
        assert_eq!(one, name(Some(7), "udp", "actions"));
        assert_eq!(one.parent(), Some(Path::new("plant")));
        assert!(one.to_str().is_some_and(|name| name.starts_with("plant/line.replay.actions-")));
        let others =
            [name(Some(8), "udp", "actions"), name(Some(7), "udpa", "ctions"), name(None, "udp", "actions")];
        assert!(others.iter().all(|other| *other != one), "{others:?}");
    }
}
