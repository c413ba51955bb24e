//! A session for commands: one request after the other on the calling thread.

use crate::connection::{ConnectionArgs, SecurityArgs};
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::types::Types;
use std::sync::Arc;
use taktwerk_client::config::{Identity, ReconnectPolicy, Security, Target};
use taktwerk_client::{ClientConfig, ClientError, SecurityProblem, Splittable};
use taktwerk_net::client::BlockingClient;
use taktwerk_schema::ids::variable_ids;
use taktwerk_schema::{
    EndpointDescription, GetEndpointsRequest, ReadRequest, ReadValueId, TimestampsToReturn,
};
use taktwerk_types::{BuiltInType, DataValue, NodeId, Variant};

/// A connected session.
pub(crate) struct Session {
    client: BlockingClient,
    namespaces: Option<Vec<String>>,
    types: Types,
}

/// What becomes of a failed request.
pub(crate) fn failure(error: &ClientError) -> Failure {
    match error {
        ClientError::Service { .. } => Failure::BadStatus(describe(error)),
        _ => Failure::Connect(describe(error)),
    }
}

/// An error with what its status means.
fn describe(error: &ClientError) -> String {
    match error {
        ClientError::Service { status, .. } | ClientError::ServerClosed { status, .. } => {
            let why = status.description().unwrap_or_default();
            format!("{error}: {why}")
        }
        ClientError::Security(SecurityProblem::PlaintextPassword) => {
            format!("{error}: add --allow-plaintext-password if you trust the network")
        }
        other => other.to_string(),
    }
}

/// A client's settings for commands: fail soon and clearly, do not try again.
pub(crate) fn config(security: &SecurityArgs) -> ClientConfig {
    ClientConfig {
        request_timeout: security.timeout,
        application_name: "taktwerk".into(),
        reconnect: ReconnectPolicy { enabled: false, ..ReconnectPolicy::default() },
        ..ClientConfig::default()
    }
}

/// What to connect to.
pub(crate) fn target(endpoint: &Endpoint, security: &SecurityArgs) -> Result<Target, Failure> {
    security.check()?;
    let mut target = Target::direct(&endpoint.to_string())
        .map_err(|error| Failure::Usage(format!("{endpoint}: {error}")))?;
    if let Some(name) = &security.user {
        let password = security.read_password()?;
        target.identity =
            Identity::UserName { name: name.as_str().into(), password: password.as_str().into() };
        // On loopback nothing crosses a network.
        target.allow_plaintext_password = security.allow_plaintext_password || endpoint.is_loopback();
    }
    Ok(target)
}

/// Asks a server for its endpoints, without a session.
pub(crate) fn endpoints(arguments: &ConnectionArgs) -> Result<Vec<EndpointDescription>, Failure> {
    let mut target = target(&arguments.endpoint, &arguments.security)?;
    target.session = false;
    let url = arguments.endpoint.to_string();
    let connected = BlockingClient::connect(Arc::new(config(&arguments.security)), target);
    let (mut client, _) = connected.map_err(|error| unreachable(&arguments.endpoint, &error))?;
    let mut request = GetEndpointsRequest { endpoint_url: url.as_str().into(), ..Default::default() };
    let response = client.call(&mut request).map_err(|error| failure(&error))?;
    client.disconnect();
    Ok(response.endpoints)
}

/// Why there is no session: always exit code 3, whatever the server answered.
pub(crate) fn unreachable(endpoint: &Endpoint, error: &ClientError) -> Failure {
    Failure::Connect(format!("cannot connect to {endpoint}: {}", describe(error)))
}

impl Session {
    /// Connects.
    pub(crate) fn connect(arguments: &ConnectionArgs) -> Result<Self, Failure> {
        let mut target = target(&arguments.endpoint, &arguments.security)?;
        // One more round trip, and the server can say what it offers instead.
        target.discover = true;
        target.security = Security::Exactly(
            taktwerk_crypto::SecurityPolicy::None,
            taktwerk_crypto::MessageSecurityMode::None,
        );
        let config = Arc::new(config(&arguments.security));
        let (client, info) = BlockingClient::connect(config, target)
            .map_err(|error| unreachable(&arguments.endpoint, &error))?;
        let namespaces: Vec<String> = info.namespaces.iter().map(|uri| uri.as_str().to_owned()).collect();
        let namespaces = (!namespaces.is_empty()).then_some(namespaces);
        Ok(Self { client, namespaces, types: Types::default() })
    }

    /// The client itself.
    pub(crate) fn client(&mut self) -> &mut BlockingClient {
        &mut self.client
    }

    /// Ends the session in order.
    pub(crate) fn close(self) {
        self.client.disconnect();
    }

    /// Sends a request, in parts if the server wants that.
    pub(crate) fn request<R: Splittable>(&mut self, request: R) -> Result<R::Response, Failure> {
        self.client.operate(request).map_err(|error| failure(&error))
    }

    /// Reads attributes with both timestamps, from the source.
    pub(crate) fn read(&mut self, nodes: Vec<ReadValueId>) -> Result<Vec<DataValue>, Failure> {
        self.read_aged(nodes, 0.0)
    }

    /// Reads attributes with both timestamps; values may be so old, in milliseconds.
    pub(crate) fn read_aged(
        &mut self,
        nodes_to_read: Vec<ReadValueId>,
        max_age: f64,
    ) -> Result<Vec<DataValue>, Failure> {
        let wanted = nodes_to_read.len();
        let timestamps_to_return = TimestampsToReturn::BOTH;
        let request = ReadRequest { max_age, timestamps_to_return, nodes_to_read, ..Default::default() };
        let results = self.request(request)?.results;
        if results.len() == wanted {
            return Ok(results);
        }
        Err(Failure::BadStatus(format!("the server answered {} results for {wanted} reads", results.len())))
    }

    /// The NamespaceArray.
    pub(crate) fn namespaces(&mut self) -> Result<Vec<String>, Failure> {
        if let Some(known) = &self.namespaces {
            return Ok(known.clone());
        }
        let array = ReadValueId {
            node_id: NodeId::numeric(0, variable_ids::SERVER_NAMESPACE_ARRAY),
            attribute_id: crate::attribute::Attribute::VALUE.id(),
            ..Default::default()
        };
        let value = self.read(vec![array])?.into_iter().next().and_then(|result| result.value);
        let uris: Vec<taktwerk_types::UaString> = value
            .and_then(|value| value.try_into().ok())
            .ok_or_else(|| Failure::BadStatus("the server has no NamespaceArray".to_owned()))?;
        let uris: Vec<String> = uris.iter().map(|uri| uri.as_str().to_owned()).collect();
        self.namespaces = Some(uris.clone());
        Ok(uris)
    }

    // ---- data types: see `types`

    /// Which built-in type values of a DataType have in a Variant; `None` if it is not known.
    pub(crate) fn built_in_type(&mut self, data_type: &NodeId) -> Result<Option<BuiltInType>, Failure> {
        let mut types = std::mem::take(&mut self.types);
        let result = types.built_in_type(self, data_type);
        self.types = types;
        result
    }

    /// Reads the definitions of the structures in a value.
    pub(crate) fn learn_types(&mut self, value: Option<&Variant>) -> Result<(), Failure> {
        let Some(value) = value else { return Ok(()) };
        let mut types = std::mem::take(&mut self.types);
        let result = types.learn(self, value);
        self.types = types;
        result
    }

    /// A value for people; structures with names as far as they have been learnt.
    pub(crate) fn show(&self, value: &Variant) -> String {
        self.types.registry().print(value).to_string()
    }

    /// The structures of a value as JSON with names; `None` if there are none or they are not known.
    pub(crate) fn structure_document(&self, value: &Variant) -> Option<serde_json::Value> {
        self.types.document(value)
    }

    /// A structure of a DataType from JSON with names.
    pub(crate) fn structure_from_json(&mut self, data_type: &NodeId, text: &str) -> Result<Variant, Failure> {
        let mut types = std::mem::take(&mut self.types);
        let result = types.parse(self, data_type, text);
        self.types = types;
        result
    }

    /// What a DataType is called, for messages.
    pub(crate) fn type_name(&mut self, data_type: &NodeId) -> String {
        match data_type.ns0().and_then(|id| u8::try_from(id).ok()).and_then(BuiltInType::from_number) {
            Some(kind) => kind.to_string(),
            None => data_type.to_string(),
        }
    }
}
