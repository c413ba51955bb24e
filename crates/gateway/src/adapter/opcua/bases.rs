//! The supertypes of another server's types, for values and events whose own type is unknown.

use super::budget::{Budget, browse};
use std::collections::HashMap;
use taktwerk::Client;
use taktwerk::client::BrowseOptions;
use taktwerk_schema::BrowseDirection;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_types::NodeId;

/// Most types whose supertypes are remembered.
const BASES_MAX: usize = 10_000;

/// The nearest supertypes in namespace 0 of requested types.
#[derive(Debug, Default)]
pub(super) struct Bases(HashMap<NodeId, NodeId>);

/// Most supertypes that are followed.
const SUPERTYPES_MAX: usize = 20;

impl Bases {
    /// The nearest supertype in namespace 0; null if there is none.
    pub(super) async fn of(
        &mut self,
        client: &Client,
        kind: &NodeId,
        budget: &mut Budget,
    ) -> Result<NodeId, taktwerk::client::Error> {
        if kind.namespace_index == 0 {
            return Ok(kind.clone());
        }
        if let Some(base) = self.0.get(kind) {
            return Ok(base.clone());
        }
        let options = BrowseOptions {
            direction: BrowseDirection::INVERSE,
            reference_type: NodeId::numeric(0, reference_type_ids::HAS_SUBTYPE),
            ..BrowseOptions::default()
        };
        let mut at = kind.clone();
        for _ in 0..SUPERTYPES_MAX {
            let above = browse(client, vec![at.clone()], &options, budget).await?.pop();
            let above = above.and_then(|references| references.into_iter().next());
            match above.and_then(|above| above.node_id.local().cloned()) {
                Some(above) if above.namespace_index == 0 => {
                    self.keep(kind, &above);
                    return Ok(above);
                }
                Some(above) => at = above,
                None => break,
            }
        }
        // Beyond the limit nothing was requested, so the type may still have a supertype.
        if budget.exceeded().is_none() {
            self.keep(kind, &NodeId::NULL);
        }
        Ok(NodeId::NULL)
    }

    /// The nearest supertype in namespace 0 of a requested type; null if there is none.
    pub(super) fn known(&self, kind: &NodeId) -> NodeId {
        if kind.namespace_index == 0 { kind.clone() } else { self.0.get(kind).cloned().unwrap_or_default() }
    }

    /// Remembers a supertype, unless there are too many: then it is requested again.
    fn keep(&mut self, kind: &NodeId, base: &NodeId) {
        if self.0.len() < BASES_MAX {
            self.0.insert(kind.clone(), base.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use taktwerk_schema::ids::object_type_ids;
    use taktwerk_server::space::NodeSpec;
    use taktwerk_server::space::build::Under;
    use taktwerk_types::QualifiedName;

    #[test]
    fn remembered_types_are_limited() {
        let mut bases = Bases::default();
        (0..BASES_MAX as u32 + 10).for_each(|number| bases.keep(&NodeId::numeric(1, number), &NodeId::NULL));
        assert_eq!(bases.0.len(), BASES_MAX);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_supertype_not_returned_in_time_is_requested_again() {
        let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let _own = server.namespace("urn:example:plant");
        let ns0 = |id| NodeId::numeric(0, id);
        let base = ns0(object_type_ids::DEVICE_FAILURE_EVENT_TYPE);
        let under = Under {
            parent: &base,
            reference_type: &ns0(reference_type_ids::HAS_SUBTYPE),
            type_definition: None,
        };
        let kind = NodeId::numeric(2, 7);
        let spec = NodeSpec::object_type(kind.clone(), QualifiedName::new(2, "PumpFailure"));
        server.space().add_node(spec, under, taktwerk_net::clock::wall()).unwrap();
        let server = server.spawn().unwrap();
        let client = Client::connect(&server.url()).await.unwrap();
        let mut bases = Bases::default();
        // The answer is larger.
        let mut budget = Budget::new(1, Duration::from_secs(60));
        budget.take(2);
        assert_eq!(bases.of(&client, &kind, &mut budget).await.unwrap(), NodeId::NULL);
        assert_eq!(bases.of(&client, &kind, &mut Budget::small()).await.unwrap(), base);
        // A type without supertype is not requested repeatedly.
        let none = NodeId::numeric(2, 8);
        assert_eq!(bases.of(&client, &none, &mut Budget::small()).await.unwrap(), NodeId::NULL);
        assert_eq!(bases.0.get(&none), Some(&NodeId::NULL));
    }
}
