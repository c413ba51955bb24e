//! A small server for simulations, with variables under the Objects folder.

use std::sync::Arc;
use taktwerk_crypto::Entropy;
use taktwerk_schema::ids::{object_ids, reference_type_ids, variable_type_ids};
use taktwerk_schema::{
    AccessLevelType, MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, ReadValueId,
};
use taktwerk_server::space::build::Under;
use taktwerk_server::space::{NodeError, NodeSpec, QUEUED_CHANGES_MAX, VariableHandle};
use taktwerk_server::{AddressSpace, ServerConfig, ServerShared, Shard};
use taktwerk_types::{NodeId, QualifiedName, UtcTime, Variant};

/// The namespace of the server's own nodes.
const NAMESPACE: u16 = 1;
/// AttributeId of Value (Part 6 Annex A).
const VALUE: u32 = 13;

/// A server that is not running yet.
#[derive(Debug)]
pub struct Plant {
    /// The first shard, to be added to a world.
    pub shard: Shard,
    /// Further shards, if it has several.
    pub more_shards: Vec<Shard>,
    /// The address space, to be extended.
    pub space: Arc<AddressSpace>,
    /// The variables: Int64 with the value 0.
    pub variables: Vec<VariableHandle>,
}

impl Plant {
    /// A server called `name` with some variables. `change` modifies the configuration.
    ///
    /// # Errors
    /// A variable cannot be added.
    pub fn new(
        name: &str,
        variables: u32,
        utc_origin: UtcTime,
        entropy: Box<dyn Entropy>,
        change: impl FnOnce(&mut ServerConfig),
    ) -> Result<Self, NodeError> {
        Self::of_shards(name, variables, utc_origin, entropy, Vec::new(), change)
    }

    /// Like [`Self::new`], with a further shard for each source of entropy in `more`.
    ///
    /// # Errors
    /// A variable cannot be added.
    pub fn of_shards(
        name: &str,
        variables: u32,
        utc_origin: UtcTime,
        entropy: Box<dyn Entropy>,
        more: Vec<Box<dyn Entropy>>,
        change: impl FnOnce(&mut ServerConfig),
    ) -> Result<Self, NodeError> {
        Self::with_queues(name, variables, utc_origin, (entropy, more), QUEUED_CHANGES_MAX, change)
    }

    /// Like [`Self::of_shards`], with a limit for queued changes per shard.
    ///
    /// # Errors
    /// A variable cannot be added.
    pub fn with_queues(
        name: &str,
        variables: u32,
        utc_origin: UtcTime,
        (entropy, more): (Box<dyn Entropy>, Vec<Box<dyn Entropy>>),
        queued_changes_max: usize,
        change: impl FnOnce(&mut ServerConfig),
    ) -> Result<Self, NodeError> {
        let space = AddressSpace::new(1 + more.len(), queued_changes_max, &uri(name));
        Self::with_space(name, variables, utc_origin, (entropy, more), space, change)
    }

    /// Like [`Self::of_shards`] without variables, and with a recorder of history with this queue length.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_recorder(
        name: &str,
        utc_origin: UtcTime,
        (entropy, more): (Box<dyn Entropy>, Vec<Box<dyn Entropy>>),
        queue_len: usize,
        change: impl FnOnce(&mut ServerConfig),
    ) -> Result<Self, NodeError> {
        let space = AddressSpace::with_recorder(1 + more.len(), QUEUED_CHANGES_MAX, queue_len, &uri(name));
        Self::with_space(name, 0, utc_origin, (entropy, more), space, change)
    }

    fn with_space(
        name: &str,
        variables: u32,
        utc_origin: UtcTime,
        (entropy, more): (Box<dyn Entropy>, Vec<Box<dyn Entropy>>),
        space: AddressSpace,
        change: impl FnOnce(&mut ServerConfig),
    ) -> Result<Self, NodeError> {
        let count = 1 + more.len();
        let mut config = ServerConfig::new(name, &uri(name), &url(name), utc_origin);
        change(&mut config);
        let space = Arc::new(space);
        let handles =
            (0..variables).map(|number| add_variable(&space, number, Variant::from(0i64), utc_origin));
        let handles = handles.collect::<Result<_, _>>()?;
        let shared = ServerShared::new(config, Arc::clone(&space), count, utc_origin);
        // Stores of simulations are in memory: they cannot fail. Without a store there is nothing to load.
        let loaded = shared.load_durable();
        debug_assert!(loaded.is_ok(), "{loaded:?}");
        let shard = Shard::new(0, Arc::clone(&shared), entropy);
        let more = (1..).zip(more);
        let more_shards =
            more.map(|(number, entropy)| Shard::new(number, Arc::clone(&shared), entropy)).collect();
        Ok(Self { shard, more_shards, space, variables: handles })
    }

    /// All shards.
    #[must_use]
    pub fn into_shards(self) -> Vec<Shard> {
        let mut shards = vec![self.shard];
        shards.extend(self.more_shards);
        shards
    }
}

/// The URL of a server in a world.
#[must_use]
pub fn url(name: &str) -> String {
    format!("opc.tcp://{name}:4840")
}

fn uri(name: &str) -> String {
    format!("urn:{name}")
}

/// The id of a variable.
#[must_use]
pub const fn variable_id(number: u32) -> NodeId {
    NodeId::numeric(NAMESPACE, 1000 + number)
}

/// Adds a variable with an initial value, which determines its type. Its id is [`variable_id`] of `number`.
///
/// # Errors
/// The variable exists already.
pub fn add_variable(
    space: &AddressSpace,
    number: u32,
    value: Variant,
    now: UtcTime,
) -> Result<VariableHandle, NodeError> {
    let id = variable_id(number);
    let name = format!("V{number}");
    let shape = space.shape_of(&value);
    let spec = NodeSpec::variable(id.clone(), QualifiedName::new(NAMESPACE, name), NodeId::NULL, Some(value))
        .shape(shape)
        .access_level(AccessLevelType(AccessLevelType::CURRENT_READ.0 | AccessLevelType::CURRENT_WRITE.0));
    let under = Under {
        parent: &NodeId::numeric(0, object_ids::OBJECTS_FOLDER),
        reference_type: &NodeId::numeric(0, reference_type_ids::ORGANIZES),
        type_definition: Some(&NodeId::numeric(0, variable_type_ids::BASE_DATA_VARIABLE_TYPE)),
    };
    space.add_node(spec, under, now)?;
    space.variable(&id)
}

/// A read of a variable's value.
#[must_use]
pub fn value_of(number: u32) -> ReadValueId {
    ReadValueId { node_id: variable_id(number), attribute_id: VALUE, ..ReadValueId::default() }
}

/// A request to monitor a variable, reporting every change. Its number becomes the client handle.
#[must_use]
pub fn monitor(number: u32, queue_size: u32) -> MonitoredItemCreateRequest {
    MonitoredItemCreateRequest {
        item_to_monitor: value_of(number),
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle: number,
            sampling_interval: 0.0,
            queue_size,
            discard_oldest: true,
            ..MonitoringParameters::default()
        },
    }
}
