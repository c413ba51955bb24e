//! Ways to name a node in a client's calls.

use super::Error;
use taktwerk_types::{ExpandedNodeId, NodeId, UaString};

/// A node: a [`NodeId`], or its text form. The URI in `nsu=urn:plant;s=Boiler` is resolved in the server's NamespaceArray.
pub trait ToNodeId {
    /// The id on this server.
    ///
    /// # Errors
    /// The text is not a NodeId, or the server has no such namespace.
    fn to_node_id(&self, namespaces: &[UaString]) -> Result<NodeId, Error>;
}

impl ToNodeId for NodeId {
    fn to_node_id(&self, _: &[UaString]) -> Result<NodeId, Error> {
        Ok(self.clone())
    }
}

/// A numeric id of namespace 0.
impl ToNodeId for u32 {
    fn to_node_id(&self, _: &[UaString]) -> Result<NodeId, Error> {
        Ok(NodeId::numeric(0, *self))
    }
}

impl ToNodeId for ExpandedNodeId {
    fn to_node_id(&self, namespaces: &[UaString]) -> Result<NodeId, Error> {
        let mut id = self.node_id.clone();
        if let Some(uri) = self.namespace_uri.as_deref() {
            let known = || namespaces.iter().map(|uri| uri.as_str().to_owned()).collect();
            let position = namespaces.iter().position(|known| known == uri);
            let index = position.and_then(|position| u16::try_from(position).ok());
            id.namespace_index =
                index.ok_or_else(|| Error::Namespace { uri: uri.to_owned(), known: known() })?;
        }
        Ok(id)
    }
}

impl ToNodeId for str {
    fn to_node_id(&self, namespaces: &[UaString]) -> Result<NodeId, Error> {
        let id: ExpandedNodeId =
            self.parse().map_err(|source| Error::NodeId { text: self.to_owned(), source })?;
        id.to_node_id(namespaces)
    }
}

impl ToNodeId for String {
    fn to_node_id(&self, namespaces: &[UaString]) -> Result<NodeId, Error> {
        self.as_str().to_node_id(namespaces)
    }
}

impl<T: ToNodeId + ?Sized> ToNodeId for &T {
    fn to_node_id(&self, namespaces: &[UaString]) -> Result<NodeId, Error> {
        (**self).to_node_id(namespaces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_texts_become_ids_of_the_server() {
        let namespaces = ["http://opcfoundation.org/UA/", "urn:server", "urn:plant"].map(UaString::from);
        let id = |node: &dyn ToNodeId| node.to_node_id(&namespaces);
        assert_eq!(id(&85).unwrap(), NodeId::numeric(0, 85));
        assert_eq!(id(&"ns=2;s=Boiler").unwrap(), NodeId::string(2, "Boiler"));
        assert_eq!(id(&"nsu=urn:plant;s=Boiler".to_owned()).unwrap(), NodeId::string(2, "Boiler"));
        assert_eq!(id(&NodeId::numeric(3, 1)).unwrap(), NodeId::numeric(3, 1));
        let error = id(&"nsu=urn:gone;i=1").unwrap_err().to_string();
        assert!(error.contains("urn:gone") && error.contains("urn:plant"), "{error}");
        assert!(id(&"Boiler").unwrap_err().to_string().contains("ns=2;s=Boiler"));
    }
}
