//! Objects, with or without a type.

use super::node::{Node, Texts, common_setters};
use super::ns0;
use crate::error::BuildError;
use taktwerk_schema::ids::{object_type_ids, reference_type_ids};
use taktwerk_server::space::NodeSpec;
use taktwerk_types::{LocalizedText, NodeId, QualifiedName};

/// The bit of EventNotifier that lets clients monitor events (Part 3 §8.59).
const SUBSCRIBE_TO_EVENTS: u8 = 1;

/// Settings of an object; [`ObjectBuilder::add`] adds it.
#[derive(Debug)]
#[must_use = "nothing is added before add()"]
pub struct ObjectBuilder {
    parent: Node,
    name: String,
    texts: Texts,
    object_type: Option<NodeId>,
    declared_type: Option<NodeId>,
    optional: Vec<String>,
    is_organized: bool,
    is_notifier: bool,
}

impl ObjectBuilder {
    pub(super) fn new(parent: Node, name: &str) -> Self {
        Self {
            parent,
            name: name.to_owned(),
            texts: Texts::default(),
            object_type: None,
            declared_type: None,
            optional: Vec::new(),
            is_organized: false,
            is_notifier: false,
        }
    }

    common_setters!();

    /// Makes it an instance of an ObjectType, with all mandatory children of the type and its supertypes.
    pub fn of_type(mut self, object_type: impl Into<NodeId>) -> Self {
        self.object_type = Some(object_type.into());
        self
    }

    /// Sets the ObjectType without adding the children of the type. The caller must add them.
    pub fn declared_type(mut self, object_type: impl Into<NodeId>) -> Self {
        self.declared_type = Some(object_type.into());
        self
    }

    /// Adds an optional child of the type, by its path of names: `"Identification/SerialNumber"`.
    pub fn with(mut self, path: &str) -> Self {
        self.optional.push(path.to_owned());
        self
    }

    /// Uses the reference Organizes from the parent instead of HasComponent, as for folders.
    pub fn organized(mut self) -> Self {
        self.is_organized = true;
        self
    }

    /// Lets clients monitor the events of the object and of everything below it.
    pub fn event_notifier(mut self) -> Self {
        self.is_notifier = true;
        self
    }

    /// Adds the object.
    ///
    /// # Errors
    /// The id is taken (usually because the parent has a child with that name), or the type does not exist.
    pub fn add(self) -> Result<Node, BuildError> {
        let Self { parent, name, mut texts, object_type, declared_type, optional, .. } = self;
        let (is_organized, is_notifier) = (self.is_organized, self.is_notifier);
        let id = texts.id.take().unwrap_or_else(|| parent.child_id(&name));
        let browse_name = texts.browse_name.take().unwrap_or_else(|| parent.child_name(&name));
        let mut spec = texts.apply(NodeSpec::object(id.clone(), browse_name));
        if is_notifier {
            spec = spec.event_notifier(SUBSCRIBE_TO_EVENTS);
        }
        let reference_type =
            if is_organized { reference_type_ids::ORGANIZES } else { reference_type_ids::HAS_COMPONENT };
        match object_type {
            Some(kind) => parent.add_instance(spec, reference_type, &kind, &optional)?,
            None => {
                let kind = declared_type.unwrap_or_else(|| ns0(object_type_ids::BASE_OBJECT_TYPE));
                parent.add(spec, reference_type, Some(&kind))?;
            }
        }
        Ok(Node { space: parent.space, id, namespace: parent.namespace })
    }
}
