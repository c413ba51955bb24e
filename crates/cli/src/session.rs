//! A session for commands: that of the generators, with support for the server's own data types.

use crate::attribute::Attribute;
use crate::connection::{ConnectionArgs, SecurityArgs};
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::suggestion;
use crate::tell::StandardError;
use crate::types::Types;
use std::ops::{Deref, DerefMut};
use taktwerk_client::ClientError;
use taktwerk_client::config::Target;
use taktwerk_generator::client::session;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{BrowseDescription, BrowseDirection, BrowseRequest, EndpointDescription, description};
use taktwerk_types::{BuiltInType, NodeId, StatusCode, Variant};

/// Limit of the supertypes that are followed. It breaks cycles.
const SUPERTYPES_MAX: usize = 32;

/// A connected session.
pub(crate) struct Session {
    session: session::Session,
    types: Types,
}

impl Deref for Session {
    type Target = session::Session;

    fn deref(&self) -> &Self::Target {
        &self.session
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.session
    }
}

/// Converts a failed request.
pub(crate) fn failure(error: &ClientError) -> Failure {
    session::failure(error).into()
}

/// The error, and what the user can do.
pub(crate) fn describe(error: &ClientError) -> String {
    session::describe(error)
}

/// What the user can do about a Bad status of a node; empty if unknown.
pub(crate) fn advice(node: &NodeId, status: StatusCode) -> String {
    match status {
        StatusCode::BAD_NODE_ID_UNKNOWN => {
            // Text after # that is not an attribute belongs to the identifier.
            let name = node.to_string();
            match name.rsplit_once('#') {
                Some((_, text)) => {
                    format!(
                        " {text:?} is not an attribute{}",
                        suggestion::question(text, Attribute::all().map(Attribute::name))
                    )
                }
                None => " `taktwerk browse` shows the nodes.".to_owned(),
            }
        }
        StatusCode::BAD_ATTRIBUTE_ID_INVALID => {
            " Only Variables have a Value; `taktwerk browse` shows those below an Object.".to_owned()
        }
        StatusCode::BAD_SECURITY_MODE_INSUFFICIENT => " Connect with --policy best.".to_owned(),
        _ => String::new(),
    }
}

/// The connection target.
pub(crate) fn target(endpoint: &Endpoint, security: &SecurityArgs) -> Result<Target, Failure> {
    Ok(session::target(endpoint, security)?)
}

/// Requests the endpoints of a server, without a session.
pub(crate) fn endpoints(arguments: &ConnectionArgs) -> Result<Vec<EndpointDescription>, Failure> {
    Ok(session::endpoints(arguments)?)
}

/// The policy's name, from its URI.
pub(crate) fn policy_name(endpoint: &EndpointDescription) -> &str {
    let uri = endpoint.security_policy_uri.as_str();
    uri.rsplit_once('#').map_or(uri, |(_, name)| name)
}

/// The servers that a discovery server lists (Part 4 §5.5.2), and its own endpoints.
#[cfg(feature = "gateway")]
pub(crate) fn discovery(
    arguments: &ConnectionArgs,
) -> Result<(Vec<taktwerk_schema::ApplicationDescription>, Vec<EndpointDescription>), Failure> {
    Ok(session::discovery(arguments)?)
}

impl Session {
    /// Connects.
    pub(crate) fn connect(arguments: &ConnectionArgs) -> Result<Self, Failure> {
        let session = session::Session::connect(arguments, &StandardError)?;
        Ok(Self { session, types: Types::default() })
    }

    /// Connects, and reconnects if the connection is lost. Fails if the first attempt fails.
    pub(crate) fn connect_for_good(arguments: &ConnectionArgs) -> Result<Self, Failure> {
        let session = session::Session::connect_for_good(arguments, &StandardError)?;
        Ok(Self { session, types: Types::default() })
    }

    /// Connects, and reconnects if the connection is lost, unless the server refuses the user.
    pub(crate) fn connect_again(arguments: &ConnectionArgs) -> Result<Self, Failure> {
        let session = session::Session::connect_again(arguments, &StandardError)?;
        Ok(Self { session, types: Types::default() })
    }

    /// Closes the session.
    pub(crate) fn close(self) {
        self.session.close();
    }

    /// The built-in type that encodes values of a DataType; `None` if unknown.
    pub(crate) fn built_in_type(&mut self, data_type: &NodeId) -> Result<Option<BuiltInType>, Failure> {
        let mut at = data_type.clone();
        for _ in 0..SUPERTYPES_MAX {
            if let Some(kind) = at.ns0().and_then(description::built_in_type) {
                return Ok(Some(kind));
            }
            match self.supertype(&at)? {
                Some(base) => at = base,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    fn supertype(&mut self, data_type: &NodeId) -> Result<Option<NodeId>, Failure> {
        let description = BrowseDescription {
            node_id: data_type.clone(),
            browse_direction: BrowseDirection::INVERSE,
            reference_type_id: NodeId::numeric(0, reference_type_ids::HAS_SUBTYPE),
            include_subtypes: true,
            node_class_mask: 0,
            result_mask: 0,
        };
        let response =
            self.request(BrowseRequest { nodes_to_browse: vec![description], ..Default::default() })?;
        let result = response.results.into_iter().next().unwrap_or_default();
        Ok(result.references.into_iter().find_map(|reference| reference.node_id.local().cloned()))
    }

    /// Reads the definitions of the structures in a value, including nested ones.
    pub(crate) fn learn_types(&mut self, value: Option<&Variant>) -> Result<(), Failure> {
        let Some(value) = value else { return Ok(()) };
        self.types.reader().want_all(value);
        self.read_types()
    }

    fn read_types(&mut self) -> Result<(), Failure> {
        self.session.client().learn(self.types.reader()).map_err(|error| failure(&error))
    }

    /// A value for display. Structures have field names if their definitions were read.
    pub(crate) fn show(&self, value: &Variant) -> String {
        self.types.registry().print(value).to_string()
    }

    /// The structures of a value as JSON with field names; `None` if there are none or they are unknown.
    pub(crate) fn structure_document(&self, value: &Variant) -> Option<serde_json::Value> {
        self.types.document(value)
    }

    /// A structure of a DataType from JSON with field names.
    pub(crate) fn structure_from_json(&mut self, data_type: &NodeId, text: &str) -> Result<Variant, Failure> {
        self.types.reader().want_data_type(data_type);
        self.read_types()?;
        self.types.parse(data_type, text)
    }

    /// The name of a DataType, for messages.
    pub(crate) fn type_name(&mut self, data_type: &NodeId) -> String {
        match data_type.ns0().and_then(|id| u8::try_from(id).ok()).and_then(BuiltInType::from_number) {
            Some(kind) => kind.to_string(),
            None => data_type.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_attributes_get_a_suggestion() {
        let advice = |node: &str, status| advice(&node.parse().unwrap(), status);
        let unknown = StatusCode::BAD_NODE_ID_UNKNOWN;
        let found = advice("ns=2;s=Plant/Mode#DisplayNam", unknown);
        assert_eq!(found, " \"DisplayNam\" is not an attribute; did you mean DisplayName?");
        assert!(advice("ns=2;s=Plant/Mode", unknown).contains("taktwerk browse"));
        assert!(advice("i=85", StatusCode::BAD_ATTRIBUTE_ID_INVALID).contains("Only Variables"));
        let unencrypted = advice("i=85", StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
        assert!(unencrypted.contains("--policy best"), "{unencrypted}");
        assert_eq!(advice("i=85", StatusCode::BAD_TIMEOUT), "");
    }
}
