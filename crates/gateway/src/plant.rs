//! The nodes of the gateway in the address space.

use crate::tag::{Access, Tag};
use crate::value::Kind;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use taktwerk::server::Server;
use taktwerk::{BuildError, Namespace, Node, Variable};
use taktwerk_server::space::VariableHandle;
use taktwerk_types::{DataValue, NodeId, StatusCode, Variant};

/// Decides on what a client writes.
pub type OnWrite = Arc<dyn Fn(Variant) -> StatusCode + Send + Sync>;

/// Where tags become nodes.
#[derive(Debug)]
pub struct Plant {
    namespace: Namespace,
    folders: Mutex<HashMap<String, Node>>,
    /// The variables of all sources by path and name, for tags that are calculated from others.
    variables: RwLock<HashMap<String, VariableHandle>>,
}

impl Plant {
    /// Adds the namespace.
    #[must_use]
    pub fn new(server: &Server, uri: &str) -> Self {
        Self { namespace: server.namespace(uri), folders: Mutex::default(), variables: RwLock::default() }
    }

    /// The folder of a path; what is missing of it is added.
    ///
    /// # Errors
    /// A variable has the name of a folder.
    pub fn folder(&self, path: &[String]) -> Result<Node, BuildError> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let mut parent = self.namespace.objects();
        let mut key = String::new();
        for name in path {
            key.push('/');
            key.push_str(name);
            parent = match folders.get(&key) {
                Some(folder) => folder.clone(),
                None => {
                    let folder = parent.folder(name)?;
                    folders.insert(key.clone(), folder.clone());
                    folder
                }
            };
        }
        Ok(parent)
    }

    /// Adds the variable of a tag.
    ///
    /// # Errors
    /// There is a node of that name.
    pub fn variable(
        &self,
        tag: &Tag,
        kind: Kind,
        every: Option<Duration>,
        on_write: OnWrite,
    ) -> Result<Variable<Variant>, BuildError> {
        let folder = self.folder(&tag.path)?;
        let zero = kind.zero();
        let is_typed = !zero.is_empty();
        let mut builder = folder.variable(&tag.name, zero).organized();
        if !is_typed {
            builder = builder.data_type(NodeId::numeric(0, u32::from(kind.element.number())));
        }
        if let Some(every) = every {
            builder = builder.minimum_sampling_interval((every.as_secs_f64() * 1e3) as f32);
        }
        if let Some(description) = &tag.description {
            builder = builder.description(description.as_str());
        }
        if let Some(units) = &tag.units {
            builder = builder.engineering_units(units.clone());
        }
        if let Some((low, high)) = tag.range {
            builder = builder.range(low..=high);
        }
        if tag.access == Access::ReadWrite {
            // An error status is what the client gets; it may be good.
            builder = builder.on_write(move |_, value: Variant| Err(on_write(value)));
        }
        if tag.historize {
            builder = builder.historize();
        }
        let variable = builder.add()?;
        variable.set_status(StatusCode::BAD_WAITING_FOR_INITIAL_DATA);
        let mut path = tag.path.join("/");
        path.push('/');
        path.push_str(&tag.name);
        let mut variables = self.variables.write().unwrap_or_else(PoisonError::into_inner);
        variables.insert(path, variable.handle().clone());
        Ok(variable)
    }

    /// The value of the tag with a path and name, such as `Line 1/Oven/Temperature`.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<DataValue> {
        let variables = self.variables.read().unwrap_or_else(PoisonError::into_inner);
        variables.get(path).map(VariableHandle::get)
    }
}
