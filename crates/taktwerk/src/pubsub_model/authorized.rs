//! Permissions for configuring PubSub, which reads, writes and calls on behalf of the caller that configured it.
//!
//! A change is checked with the caller's permissions for all nodes that it newly uses: Read for published Variables, Write for
//! target Variables, Call for Methods of Actions. The destination or origin of messages matters too: for AccessRestrictions, a
//! WriterGroup without security counts as a channel without security. Nodes that the caller may not see are treated as nodes that
//! do not exist.
//!
//! Unchanged parts are not checked again. Configurations of the application and of the operator's own file are not checked at
//! all. A configuration that clients have changed is checked at the next start with [`not_permitted`].

use super::nodes::extension_field_of;
use crate::pubsub::channel_mode;
use crate::pubsub::target::mirror_id;
use std::collections::BTreeSet;
use std::sync::Arc;
use taktwerk_pubsub::ReaderIndex;
use taktwerk_pubsub::config::{
    Configuration, Connection, DataSetReader, DataSetSource, DataSetWriter, Element, PublishedDataSet,
    ReaderGroup, SubscribedDataSet, WriterGroup,
};
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_schema::ids::object_ids;
use taktwerk_schema::{PermissionType, StandaloneSubscribedDataSetDataType, TargetVariablesDataType};
use taktwerk_server::space::{AddressSpace, Rights};
use taktwerk_types::{ExtensionObject, NodeId, StatusCode};

/// Nodes with the required permissions.
type Needs<'a> = Vec<(&'a NodeId, PermissionType)>;

/// A caller's permissions, by message security.
pub(super) struct Caller<'a> {
    space: &'a AddressSpace,
    by_mode: [Rights; 3],
}

const MODES: [SecurityMode; 3] = [SecurityMode::None, SecurityMode::Sign, SecurityMode::SignAndEncrypt];

impl<'a> Caller<'a> {
    pub(super) fn new(space: &'a AddressSpace, roles: &[NodeId]) -> Self {
        Self { space, by_mode: MODES.map(|mode| space.rights(roles, channel_mode(mode))) }
    }

    fn rights(&self, mode: SecurityMode) -> &Rights {
        let [none, sign, encrypt] = &self.by_mode;
        match mode {
            SecurityMode::None => none,
            SecurityMode::Sign => sign,
            SecurityMode::SignAndEncrypt => encrypt,
        }
    }

    /// Checks a permission for a node, given the security of the messages.
    pub(super) fn check(
        &self,
        mode: SecurityMode,
        node: &NodeId,
        permission: PermissionType,
    ) -> Result<(), StatusCode> {
        self.space.check_rights(self.rights(mode), node, permission)
    }

    /// Checks what is needed now and was not needed before. `made` are nodes that the change itself creates.
    fn check_new(
        &self,
        mode: SecurityMode,
        needs: &Needs<'_>,
        before: &Needs<'_>,
        made: &BTreeSet<NodeId>,
    ) -> Result<(), StatusCode> {
        let before: BTreeSet<(&NodeId, u32)> = before.iter().map(|(node, need)| (*node, need.0)).collect();
        let mut new = needs.iter().filter(|(node, need)| !before.contains(&(*node, need.0)));
        new.try_for_each(|(node, permission)| match self.check(mode, node, *permission) {
            Err(_) if made.contains(*node) && self.space.node_class(node).is_none() => Ok(()),
            result => result,
        })
    }

    /// Checks nodes that a change newly uses, or whose values it sends to or takes from somewhere else.
    ///
    /// # Errors
    /// The status of the first refused node.
    pub(super) fn check_change(&self, old: &Configuration, new: &Configuration) -> Result<(), StatusCode> {
        // The server has checked the channel of the call; the security of messages is checked below.
        let strongest = SecurityMode::SignAndEncrypt;
        let made = made_by(new);
        for set in &new.data_sets {
            let before = old.data_set(&set.name).map(needs_of_set).unwrap_or_default();
            self.check_new(strongest, &needs_of_set(set), &before, &made)?;
        }
        for set in &new.subscribed_data_sets {
            let before = old.subscribed_data_sets.iter().find(|other| other.name == set.name);
            let before = before.map(targets_of_standalone).unwrap_or_default();
            for target in targets_of_standalone(set).iter().filter(|target| !before.contains(target)) {
                self.check(strongest, target, PermissionType::WRITE)?;
            }
        }
        for connection in &new.connections {
            let of_old = old.connection(&connection.name);
            for group in &connection.writer_groups {
                let group_of_old = of_old.and_then(|old| old.writer_group(&group.name));
                for writer in &group.writers {
                    let before = of_old.zip(group_of_old).and_then(|(connection_of_old, group_of_old)| {
                        let writer_of_old = group_of_old.writer(&writer.name)?;
                        let is_same_way = sends_alike(
                            (connection_of_old, group_of_old, writer_of_old),
                            (connection, group, writer),
                        );
                        is_same_way.then(|| old.data_set(&writer_of_old.data_set_name)).flatten()
                    });
                    let before = before.map(needs_of_set).unwrap_or_default();
                    let needs = new.data_set(&writer.data_set_name).map(needs_of_set).unwrap_or_default();
                    self.check_new(group.security.mode, &needs, &before, &made)?;
                }
            }
            for group in &connection.reader_groups {
                let group_of_old = of_old.and_then(|old| old.reader_group(&group.name));
                for reader in &group.readers {
                    let is_same =
                        of_old.zip(group_of_old).is_some_and(|(connection_of_old, group_of_old)| {
                            let known = group_of_old.reader(&reader.name);
                            known.is_some_and(|known| {
                                receives_alike(
                                    (connection_of_old, group_of_old, known),
                                    (connection, group, reader),
                                )
                            })
                        });
                    if !is_same {
                        for target in targets_of(&reader.subscribed_data_set) {
                            self.check(mode_of(group, reader), target, PermissionType::WRITE)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The weakest security with which the fields of a data set are sent.
    pub(super) fn weakest_mode(configuration: &Configuration, data_set: &str) -> SecurityMode {
        let groups = configuration.connections.iter().flat_map(|connection| &connection.writer_groups);
        let sending =
            groups.filter(|group| group.writers.iter().any(|writer| writer.data_set_name == data_set));
        sending.map(|group| group.security.mode).min().unwrap_or(SecurityMode::SignAndEncrypt)
    }

    /// Removes nodes that the caller may not see.
    pub(super) fn redact(&self, configuration: &mut Configuration) {
        let rights = self.rights(SecurityMode::SignAndEncrypt);
        let hide = |node: &mut NodeId| {
            if !self.space.may_know(rights, node) {
                *node = NodeId::NULL;
            }
        };
        let hide_targets = |targets: &mut TargetVariablesDataType| {
            targets.target_variables.iter_mut().for_each(|target| hide(&mut target.target_node_id));
        };
        for set in &mut configuration.data_sets {
            match &mut set.source {
                DataSetSource::Items(items) => {
                    items.iter_mut().for_each(|item| hide(&mut item.published_variable));
                }
                DataSetSource::Events(events) => hide(&mut events.event_notifier),
                DataSetSource::ActionMethods(actions) => {
                    for method in &mut actions.action_methods {
                        hide(&mut method.object_id);
                        hide(&mut method.method_id);
                    }
                }
                _ => {}
            }
        }
        for set in &mut configuration.subscribed_data_sets {
            if let Ok(mut targets) = set.subscribed_data_set.decode::<TargetVariablesDataType>() {
                hide_targets(&mut targets);
                set.subscribed_data_set = ExtensionObject::new(&targets);
            }
        }
        let groups =
            configuration.connections.iter_mut().flat_map(|connection| &mut connection.reader_groups);
        for reader in groups.flat_map(|group| &mut group.readers) {
            if let SubscribedDataSet::TargetVariables(targets) = &mut reader.subscribed_data_set {
                hide_targets(targets);
            }
        }
    }
}

/// The Variables that a configuration creates and may use itself: extension fields and mirrors.
fn made_by(configuration: &Configuration) -> BTreeSet<NodeId> {
    let mut made = BTreeSet::new();
    for set in &configuration.data_sets {
        let element = Element::DataSet { name: set.name.clone() };
        made.extend(set.extension_fields.iter().map(|field| extension_field_of(&element, &field.key)));
    }
    for connection in &configuration.connections {
        for group in &connection.reader_groups {
            for reader in &group.readers {
                let SubscribedDataSet::Mirror(mirror) = &reader.subscribed_data_set else { continue };
                let fields = reader.meta_data.fields.iter();
                made.extend(fields.map(|field| {
                    mirror_id(&connection.name, &group.name, &reader.name, mirror, field.name.as_str())
                }));
            }
        }
    }
    made
}

/// The nodes that a data set uses.
fn needs_of_set(set: &PublishedDataSet) -> Needs<'_> {
    match &set.source {
        DataSetSource::Items(items) => {
            items.iter().map(|item| (&item.published_variable, PermissionType::READ)).collect()
        }
        DataSetSource::Events(events) => vec![(&events.event_notifier, PermissionType::RECEIVE_EVENTS)],
        DataSetSource::ActionMethods(actions) => actions
            .action_methods
            .iter()
            .flat_map(|method| [&method.object_id, &method.method_id])
            .map(|node| (node, PermissionType::CALL))
            .collect(),
        _ => Vec::new(),
    }
}

/// The Variables to which received values are written; empty if there are none.
fn targets_of(subscribed: &SubscribedDataSet) -> Vec<&NodeId> {
    match subscribed {
        SubscribedDataSet::TargetVariables(targets) => targets
            .target_variables
            .iter()
            .map(|target| &target.target_node_id)
            .filter(|target| !target.is_null())
            .collect(),
        _ => Vec::new(),
    }
}

fn targets_of_standalone(set: &StandaloneSubscribedDataSetDataType) -> Vec<NodeId> {
    let targets = set.subscribed_data_set.decode::<TargetVariablesDataType>().unwrap_or_default();
    let targets = targets.target_variables.into_iter().map(|target| target.target_node_id);
    targets.filter(|target| !target.is_null()).collect()
}

/// The security of received messages.
fn mode_of(group: &ReaderGroup, reader: &DataSetReader) -> SecurityMode {
    reader.security.as_ref().unwrap_or(&group.security).mode
}

type Sending<'a> = (&'a Connection, &'a WriterGroup, &'a DataSetWriter);

/// Whether two DataSetWriters send to the same destination in the same way.
fn sends_alike(old: Sending<'_>, new: Sending<'_>) -> bool {
    let ((old_connection, old_group, old_writer), (new_connection, new_group, new_writer)) = (old, new);
    goes_alike(old_connection, new_connection)
        && old_group.security == new_group.security
        && old_group.transport == new_group.transport
        && old_writer.transport == new_writer.transport
}

fn goes_alike(old: &Connection, new: &Connection) -> bool {
    old.url == new.url
        && old.transport_profile_uri == new.transport_profile_uri
        && old.network_interface == new.network_interface
        && old.transport == new.transport
        && old.properties == new.properties
}

type Receiving<'a> = (&'a Connection, &'a ReaderGroup, &'a DataSetReader);

/// Whether two DataSetReaders receive the same from the same origin. Only `enabled` may differ.
fn receives_alike(old: Receiving<'_>, new: Receiving<'_>) -> bool {
    let ((old_connection, old_group, old_reader), (new_connection, new_group, new_reader)) = (old, new);
    let as_enabled = |reader: &DataSetReader| DataSetReader { enabled: true, ..reader.clone() };
    goes_alike(old_connection, new_connection)
        && old_group.security == new_group.security
        && old_group.transport == new_group.transport
        && as_enabled(old_reader) == as_enabled(new_reader)
}

/// Parts of a configuration that no administrator is permitted to configure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotPermitted {
    /// PublishedDataSets, the first refused node of each, and the status.
    pub data_sets: Vec<(String, NodeId, StatusCode)>,
    /// DataSetReaders, likewise.
    pub readers: Vec<(ReaderIndex, NodeId, StatusCode)>,
}

/// Finds the parts of a configuration changed by clients that must not run, because permissions may have changed since. The
/// author of a part is not stored. So the permissions of the roles that can change the configuration are checked: ConfigureAdmin
/// and SecurityAdmin. Parts that `trusted`, the operator's own file, contains may run in any case. Nodes that do not exist are
/// not reported.
#[must_use]
pub fn not_permitted(
    configuration: &Configuration,
    trusted: Option<&Configuration>,
    space: &Arc<AddressSpace>,
) -> NotPermitted {
    let roles = [object_ids::WELL_KNOWN_ROLE_CONFIGURE_ADMIN, object_ids::WELL_KNOWN_ROLE_SECURITY_ADMIN];
    let caller = Caller::new(space, &roles.map(NodeId::from));
    let is_trusted_way = |writing: Sending<'_>| {
        let (connection, group, writer) = writing;
        let known = trusted.and_then(|trusted| trusted.connection(&connection.name));
        let known = known.and_then(|known| Some((known, known.writer_group(&group.name)?)));
        known.is_some_and(|(of, in_group)| {
            let writer_of = in_group.writer(&writer.name);
            writer_of.is_some_and(|one| {
                one.data_set_name == writer.data_set_name && sends_alike((of, in_group, one), writing)
            })
        })
    };
    let refused = |mode, node: &NodeId, permission| match space.node_class(node) {
        None => None,
        Some(_) => caller.check(mode, node, permission).err(),
    };
    let mut found = NotPermitted::default();
    for set in &configuration.data_sets {
        let known =
            trusted.and_then(|trusted| trusted.data_set(&set.name)).map(needs_of_set).unwrap_or_default();
        for need in needs_of_set(set) {
            let (node, permission) = need;
            let mut modes = Vec::new();
            if !known.contains(&need) {
                modes.push(SecurityMode::SignAndEncrypt);
            }
            for connection in &configuration.connections {
                for group in &connection.writer_groups {
                    let mut writers = group.writers.iter().filter(|writer| writer.data_set_name == set.name);
                    let is_new = |writer: &DataSetWriter| {
                        !(known.contains(&need) && is_trusted_way((connection, group, writer)))
                    };
                    if writers.any(is_new) {
                        modes.push(group.security.mode);
                    }
                }
            }
            if let Some(status) = modes.into_iter().find_map(|mode| refused(mode, node, permission)) {
                found.data_sets.push((set.name.clone(), node.clone(), status));
                break;
            }
        }
    }
    for (connection, of) in configuration.connections.iter().enumerate() {
        let known = trusted.and_then(|trusted| trusted.connection(&of.name));
        for (group, of_group) in of.reader_groups.iter().enumerate() {
            let known = known.and_then(|known| Some((known, known.reader_group(&of_group.name)?)));
            for (position, reader) in of_group.readers.iter().enumerate() {
                let is_trusted = known.is_some_and(|(of_known, group_of_known)| {
                    group_of_known.reader(&reader.name).is_some_and(|known| {
                        receives_alike((of_known, group_of_known, known), (of, of_group, reader))
                    })
                });
                let refusal = targets_of(&reader.subscribed_data_set).into_iter().find_map(|target| {
                    let status = refused(mode_of(of_group, reader), target, PermissionType::WRITE)?;
                    Some((target.clone(), status))
                });
                if let (false, Some((node, status))) = (is_trusted, refusal) {
                    found.readers.push((ReaderIndex { connection, group, reader: position }, node, status));
                }
            }
        }
    }
    found
}
