//! A run against one server: its session, its namespace index, and operations common to all checks.

use crate::report::Report;
use crate::session::{Fault, Session};
use std::fmt::Display;
use taktwerk::schema::{ReadRequest, ReadValueId, TimestampsToReturn, WriteRequest, WriteValue};
use taktwerk::types::{DataValue, NodeId, StatusCode, Variant};

/// The numbers of attributes used in requests (Part 6 Annex A.1).
pub(crate) mod attribute {
    use taktwerk::client::Attribute;

    pub(crate) const NODE_ID: u32 = Attribute::NodeId as u32;
    pub(crate) const NODE_CLASS: u32 = Attribute::NodeClass as u32;
    pub(crate) const VALUE: u32 = Attribute::Value as u32;
    pub(crate) const DATA_TYPE: u32 = Attribute::DataType as u32;
    pub(crate) const VALUE_RANK: u32 = Attribute::ValueRank as u32;
    pub(crate) const ACCESS_LEVEL: u32 = Attribute::AccessLevel as u32;
    pub(crate) const ACCESS_LEVEL_EX: u32 = Attribute::AccessLevelEx as u32;
}

/// A run against one server.
pub(crate) struct Smoke {
    pub(crate) url: String,
    pub(crate) session: Session,
    pub(crate) report: Report,
    /// The index of the interop namespace.
    pub(crate) ns: u16,
}

impl Smoke {
    pub(crate) fn check(&mut self, name: impl Into<String>, ok: bool, detail: impl Display) -> bool {
        self.report.check(name, ok, detail)
    }

    /// Compares a status with the permitted ones.
    pub(crate) fn check_status(&mut self, name: &str, got: StatusCode, wanted: &[StatusCode]) {
        let first = wanted.first().copied().unwrap_or_default();
        self.check(name, wanted.contains(&got), format!("{got}, want {first}"));
    }

    pub(crate) fn id(&self, text: &str) -> NodeId {
        NodeId::string(self.ns, text)
    }

    /// Reads one attribute; if the service fails, its status is returned.
    pub(crate) async fn read_attribute(&self, node_id: NodeId, attribute_id: u32, range: &str) -> DataValue {
        let item = ReadValueId {
            node_id,
            attribute_id,
            index_range: Some(range).filter(|range| !range.is_empty()).into(),
            ..ReadValueId::default()
        };
        match self.read_items(vec![item], TimestampsToReturn::BOTH, 0.0).await {
            Ok(mut values) => values.pop().unwrap_or_default(),
            Err(fault) => DataValue::from_status(fault.status),
        }
    }

    pub(crate) async fn read_items(
        &self,
        nodes_to_read: Vec<ReadValueId>,
        timestamps_to_return: TimestampsToReturn,
        max_age: f64,
    ) -> Result<Vec<DataValue>, Fault> {
        let request = ReadRequest { nodes_to_read, timestamps_to_return, max_age, ..ReadRequest::default() };
        Ok(self.session.request(request).await?.results)
    }

    /// Reads the value of a node in the interop namespace.
    pub(crate) async fn read(&self, id: &str) -> DataValue {
        self.read_attribute(self.id(id), attribute::VALUE, "").await
    }

    /// Writes the value of a node in the interop namespace.
    ///
    /// Without a status, because open62541 treats the first explicit Good as a change of status, which passes every deadband.
    pub(crate) async fn write(&self, id: &str, value: Variant, range: &str) -> StatusCode {
        let item = WriteValue {
            node_id: self.id(id),
            attribute_id: attribute::VALUE,
            index_range: Some(range).filter(|range| !range.is_empty()).into(),
            value: DataValue::new(value),
        };
        let request = WriteRequest { nodes_to_write: vec![item], ..WriteRequest::default() };
        match self.session.request(request).await {
            Ok(response) => response.results.first().copied().unwrap_or(StatusCode::BAD_UNEXPECTED_ERROR),
            Err(fault) => fault.status,
        }
    }
}

/// Formats a value for details.
pub(crate) fn show(value: Option<&Variant>) -> String {
    value.map_or_else(|| "nothing".to_owned(), ToString::to_string)
}
