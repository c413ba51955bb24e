//! Reading and writing (Part 4 §5.11).

use super::{Client, Error, Namespaces, ToNodeId};
use crate::value::{Initial, Value};
use taktwerk_schema::{ReadRequest, ReadValueId, TimestampsToReturn, WriteRequest, WriteValue};
use taktwerk_types::{DataValue, NodeId, StatusCode};

/// The attributes of nodes (Part 6 Annex A.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
#[allow(missing_docs)] // the names say it
pub enum Attribute {
    NodeId = 1,
    NodeClass = 2,
    BrowseName = 3,
    DisplayName = 4,
    Description = 5,
    WriteMask = 6,
    UserWriteMask = 7,
    IsAbstract = 8,
    Symmetric = 9,
    InverseName = 10,
    ContainsNoLoops = 11,
    EventNotifier = 12,
    Value = 13,
    DataType = 14,
    ValueRank = 15,
    ArrayDimensions = 16,
    AccessLevel = 17,
    UserAccessLevel = 18,
    MinimumSamplingInterval = 19,
    Historizing = 20,
    Executable = 21,
    UserExecutable = 22,
    DataTypeDefinition = 23,
    RolePermissions = 24,
    UserRolePermissions = 25,
    AccessRestrictions = 26,
    AccessLevelEx = 27,
}

impl Client {
    /// Reads a variable's value as a Rust type.
    ///
    /// ```no_run
    /// # async fn example(client: taktwerk::Client) -> Result<(), taktwerk::client::Error> {
    /// let temperature: f64 = client.read_value("ns=2;s=Boiler 1/Temperature").await?;
    /// let names = client.read_value::<Vec<String>>("i=2255").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The value is bad, or of another type, or there is no answer.
    pub async fn read_value<T: Value>(&self, node: impl ToNodeId) -> Result<T, Error> {
        let (value, id) = self.read_data(node, Attribute::Value).await?;
        let what = format!("read {id}");
        if value.status().is_bad() {
            return Err(Error::status_of(what, value.status()));
        }
        let Some(variant) = value.value else { return Err(Error::status_of(what, StatusCode::BAD_NO_DATA)) };
        T::from_variant(variant).map_err(|source| Error::WrongType { what, source })
    }

    /// Reads a variable's value with its quality and times. A bad status is part of the answer, not an error.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn read(&self, node: impl ToNodeId) -> Result<DataValue, Error> {
        Ok(self.read_data(node, Attribute::Value).await?.0)
    }

    /// Reads any attribute.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn read_attribute(
        &self,
        node: impl ToNodeId,
        attribute: Attribute,
    ) -> Result<DataValue, Error> {
        Ok(self.read_data(node, attribute).await?.0)
    }

    /// Reads many attributes, in the order of the list. Requests are split to respect the server's limits.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn read_many(
        &self,
        what: impl IntoIterator<Item = (NodeId, Attribute)>,
    ) -> Result<Vec<DataValue>, Error> {
        Ok(self.operate(read_request(what)).await?.results)
    }

    /// Reads an attribute; returns the node's id, too.
    async fn read_data(
        &self,
        node: impl ToNodeId,
        attribute: Attribute,
    ) -> Result<(DataValue, NodeId), Error> {
        let read = |namespaces: &Namespaces| {
            let id = node.to_node_id(namespaces)?;
            Ok((read_request([(id.clone(), attribute)]), id))
        };
        let (mut response, id) = self.operate_with(read).await?;
        Ok((response.results.pop().unwrap_or_default(), id))
    }

    /// Writes a variable's value.
    ///
    /// # Errors
    /// The server refuses (Bad_TypeMismatch if the variable has another type), or there is no answer.
    pub async fn write(&self, node: impl ToNodeId, value: impl Initial) -> Result<(), Error> {
        let value = DataValue::new(value.into_value().into_variant());
        let write = |namespaces: &Namespaces| {
            let id = node.to_node_id(namespaces)?;
            Ok((write_request([(id.clone(), value.clone())]), id))
        };
        let (response, id) = self.operate_with(write).await?;
        let status = response.results.first().copied().unwrap_or_default();
        if status.is_good() { Ok(()) } else { Err(Error::status_of(format!("write {id}"), status)) }
    }

    /// Writes the values of many variables and returns a status for each. Requests are split to respect the server's limits.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn write_many(
        &self,
        values: impl IntoIterator<Item = (NodeId, DataValue)>,
    ) -> Result<Vec<StatusCode>, Error> {
        Ok(self.operate(write_request(values)).await?.results)
    }
}

fn read_request(what: impl IntoIterator<Item = (NodeId, Attribute)>) -> ReadRequest {
    let read = |(node_id, attribute)| ReadValueId {
        node_id,
        attribute_id: attribute as u32,
        ..ReadValueId::default()
    };
    ReadRequest {
        nodes_to_read: what.into_iter().map(read).collect(),
        timestamps_to_return: TimestampsToReturn::BOTH,
        ..ReadRequest::default()
    }
}

fn write_request(values: impl IntoIterator<Item = (NodeId, DataValue)>) -> WriteRequest {
    let write = |(node_id, value)| WriteValue {
        node_id,
        attribute_id: Attribute::Value as u32,
        value,
        ..WriteValue::default()
    };
    WriteRequest { nodes_to_write: values.into_iter().map(write).collect(), ..WriteRequest::default() }
}
