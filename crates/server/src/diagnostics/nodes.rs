//! The diagnostics objects of sessions (Part 5 §6.3.4, §6.3.5): virtual nodes without storage.
//!
//! A session's object and its variables mirror the instance declarations of SessionDiagnosticsObjectType. The NodeId
//! contains the session's number and the declaration's number. So ten thousand sessions need no nodes, and nothing has
//! to be cleaned up.

use super::live::Live;
use crate::node_ix::{NodeIx, Reference};
use taktwerk_schema::ids::{
    object_ids, object_type_ids, reference_type_ids, variable_ids, variable_type_ids,
};
use taktwerk_schema::ns0::Ns0;
use taktwerk_types::{Guid, IdentifierRef, NodeId, NodeIdRef};

/// The declaration that represents the session's object itself.
pub(crate) const OBJECT: u32 = object_type_ids::SESSION_DIAGNOSTICS_OBJECT_TYPE;
/// The variable with the session's diagnostics; its components mirror those of its type.
pub(crate) const DIAGNOSTICS: u32 = variable_ids::SESSION_DIAGNOSTICS_OBJECT_TYPE_SESSION_DIAGNOSTICS;
/// The variable with the diagnostics of the session's subscriptions.
pub(crate) const SUBSCRIPTIONS: u32 =
    variable_ids::SESSION_DIAGNOSTICS_OBJECT_TYPE_SUBSCRIPTION_DIAGNOSTICS_ARRAY;

/// The variable with the session's security diagnostics; its components mirror those of its type. Only administrators
/// can read it.
pub(crate) const SECURITY: u32 = variable_ids::SESSION_DIAGNOSTICS_OBJECT_TYPE_SESSION_SECURITY_DIAGNOSTICS;

/// Prefix of the Guids of diagnostics nodes; namespace 1 belongs to the server.
const MARK: [u8; 8] = *b"sessions";
const NAMESPACE: u16 = 1;
/// Node indexes from here on represent declarations of diagnostics nodes; the generation is the session's number.
const FIRST_INDEX: u32 = 0xff00_0000;

/// The NodeId of the session's node for a declaration.
pub(crate) fn node_id(session: u32, declaration: u32) -> NodeId {
    let mut bytes = [0; 16];
    let (mark, numbers) = bytes.split_at_mut(8);
    mark.copy_from_slice(&MARK);
    let both = u64::from(session) << 32 | u64::from(declaration);
    numbers.copy_from_slice(&both.to_be_bytes());
    NodeId::guid(NAMESPACE, Guid::from_bytes(bytes))
}

/// A session's id; null for session 0, which never exists.
pub(crate) fn session_id(session: u32) -> NodeId {
    if session == 0 { NodeId::NULL } else { node_id(session, OBJECT) }
}

/// A node of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionNode {
    /// The session's number.
    pub(crate) session: u32,
    /// The instance declaration that the node mirrors.
    pub(crate) declaration: u32,
}

impl SessionNode {
    /// The node for an index, whether its session exists or not.
    #[inline]
    pub(crate) fn from_ix(ix: NodeIx) -> Option<Self> {
        let declaration = ix.index.checked_sub(FIRST_INDEX)?;
        Some(Self { session: ix.generation, declaration })
    }

    pub(crate) fn ix(self) -> NodeIx {
        NodeIx { index: FIRST_INDEX + self.declaration, generation: self.session }
    }

    pub(crate) fn id(self) -> NodeId {
        node_id(self.session, self.declaration)
    }

    /// The node with this id, if its session exists.
    pub(crate) fn resolve(id: NodeIdRef<'_>, live: &Live) -> Option<Self> {
        let (NAMESPACE, IdentifierRef::Guid(guid)) = (id.namespace_index, id.identifier) else { return None };
        let (mark, numbers) = guid.as_bytes().split_first_chunk::<8>()?;
        if *mark != MARK {
            return None;
        }
        let numbers = u64::from_be_bytes(*numbers.first_chunk()?);
        let node = Self { session: (numbers >> 32) as u32, declaration: numbers as u32 };
        (node.exists() && live.session(node.session).is_some()).then_some(node)
    }

    /// The number of the session with this id.
    pub(crate) fn session_of(id: &NodeId, live: &Live) -> Option<u32> {
        Self::resolve(id.as_ref(), live).filter(|node| node.declaration == OBJECT).map(|node| node.session)
    }

    /// Whether sessions mirror the declaration.
    fn exists(self) -> bool {
        matches!(self.declaration, OBJECT | DIAGNOSTICS | SECURITY | SUBSCRIPTIONS)
            || components(variable_type_ids::SESSION_DIAGNOSTICS_VARIABLE_TYPE)
                .any(|id| id == self.declaration)
            || self.is_security_component()
    }

    fn is_security_component(self) -> bool {
        components(variable_type_ids::SESSION_SECURITY_DIAGNOSTICS_TYPE).any(|id| id == self.declaration)
    }

    /// Whether the value shows the session's user or security.
    pub(crate) fn is_confidential(self) -> bool {
        self.declaration == SECURITY || self.is_security_component()
    }

    fn type_definition(self) -> u32 {
        match self.declaration {
            OBJECT => object_type_ids::SESSION_DIAGNOSTICS_OBJECT_TYPE,
            DIAGNOSTICS => variable_type_ids::SESSION_DIAGNOSTICS_VARIABLE_TYPE,
            SECURITY => variable_type_ids::SESSION_SECURITY_DIAGNOSTICS_TYPE,
            SUBSCRIPTIONS => variable_type_ids::SUBSCRIPTION_DIAGNOSTICS_ARRAY_TYPE,
            _ => variable_type_ids::BASE_DATA_VARIABLE_TYPE,
        }
    }

    /// Calls `each` with the node's references until it returns false.
    pub(crate) fn references(self, mut each: impl FnMut(Reference) -> bool) {
        let component = NodeIx::ns0(reference_type_ids::HAS_COMPONENT);
        let parent = match self.declaration {
            OBJECT => NodeIx::ns0(object_ids::SERVER_SERVER_DIAGNOSTICS_SESSIONS_DIAGNOSTICS_SUMMARY),
            DIAGNOSTICS | SECURITY | SUBSCRIPTIONS => Self { declaration: OBJECT, ..self }.ix(),
            _ if self.is_security_component() => Self { declaration: SECURITY, ..self }.ix(),
            _ => Self { declaration: DIAGNOSTICS, ..self }.ix(),
        };
        let own = [
            Reference {
                reference_type: NodeIx::ns0(reference_type_ids::HAS_TYPE_DEFINITION),
                is_forward: true,
                target: NodeIx::ns0(self.type_definition()),
            },
            Reference { reference_type: component, is_forward: false, target: parent },
        ];
        if !own.into_iter().all(&mut each) {
            return;
        }
        let forward = |declaration: u32| {
            let target = Self { declaration, ..self }.ix();
            Reference { reference_type: component, is_forward: true, target }
        };
        match self.declaration {
            OBJECT => {
                [DIAGNOSTICS, SECURITY, SUBSCRIPTIONS].into_iter().map(forward).all(each);
            }
            DIAGNOSTICS | SECURITY => {
                components(self.type_definition()).map(forward).all(each);
            }
            _ => {}
        }
    }
}

/// The components of a VariableType.
fn components(variable_type: u32) -> impl Iterator<Item = u32> {
    Ns0::get()
        .references(variable_type)
        .filter(|reference| {
            reference.is_forward && reference.reference_type == reference_type_ids::HAS_COMPONENT
        })
        .map(|reference| reference.target)
}

/// Calls `each` with the references from SessionsDiagnosticsSummary to the sessions, until it returns false.
pub(crate) fn summary_references(live: &Live, mut each: impl FnMut(Reference) -> bool) {
    for session in live.session_numbers() {
        let target = SessionNode { session, declaration: OBJECT }.ix();
        let reference_type = NodeIx::ns0(reference_type_ids::HAS_COMPONENT);
        if !each(Reference { reference_type, is_forward: true, target }) {
            return;
        }
    }
}
