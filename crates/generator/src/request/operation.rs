//! The requests of a load: built once, sent repeatedly.

use super::view::{self, Checked};
use crate::client::Session;
use crate::error::GeneratorError;
use crate::values;
use taktwerk_client::Reply;
use taktwerk_load::attribute::Attribute;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::service::Request;
use taktwerk_schema::{
    BrowseDescription, BrowseDirection, BrowseRequest, ReadRequest, TimestampsToReturn, WriteRequest,
    WriteValue,
};
use taktwerk_types::{DataValue, NodeId, Variant};

/// Requests of one kind, with functions to modify them and to check answers.
pub(crate) struct Operation<R> {
    /// Client k sends request k modulo their number.
    requests: Vec<R>,
    /// Modifies a request before it is sent; the number increases with every request.
    prepare: fn(&mut R, u64),
    /// Counts Bad results.
    check: fn(&Reply<'_>) -> Checked,
}

impl<R: Request> Operation<R> {
    /// The request of a client, ready to send.
    #[inline]
    pub(crate) fn request(&mut self, client: usize, number: u64) -> Option<&mut R> {
        let count = self.requests.len().max(1);
        let request = self.requests.get_mut(client % count)?;
        (self.prepare)(request, number);
        Some(request)
    }

    /// The function that checks answers.
    pub(crate) fn checker(&self) -> fn(&Reply<'_>) -> Checked {
        self.check
    }
}

/// Groups of `batch` nodes; nodes are repeated if there are fewer.
fn groups(nodes: &[NodeId], batch: u32) -> Vec<Vec<NodeId>> {
    let batch = batch as usize;
    let count = (nodes.len() / batch.max(1)).max(1);
    (0..count).map(|group| nodes.iter().cycle().skip(group * batch).take(batch).cloned().collect()).collect()
}

/// Reads values with both timestamps.
pub(crate) fn read(nodes: &[NodeId], batch: u32) -> Operation<ReadRequest> {
    let requests = groups(nodes, batch).into_iter().map(|group| ReadRequest {
        timestamps_to_return: TimestampsToReturn::BOTH,
        nodes_to_read: group.into_iter().map(values::of).collect(),
        ..Default::default()
    });
    Operation { requests: requests.collect(), prepare: |_, _| {}, check: view::read }
}

/// Browses forward hierarchical references.
pub(crate) fn browse(nodes: &[NodeId], batch: u32) -> Operation<BrowseRequest> {
    let requests = groups(nodes, batch).into_iter().map(|group| BrowseRequest {
        nodes_to_browse: group
            .into_iter()
            .map(|node_id| BrowseDescription {
                node_id,
                browse_direction: BrowseDirection::FORWARD,
                reference_type_id: NodeId::numeric(0, reference_type_ids::HIERARCHICAL_REFERENCES),
                include_subtypes: true,
                node_class_mask: 0,
                result_mask: 0x3f,
            })
            .collect(),
        ..Default::default()
    });
    Operation { requests: requests.collect(), prepare: |_, _| {}, check: view::browse }
}

/// Writes values of the current type of each node; numbers count up.
pub(crate) fn write(
    session: &mut Session,
    nodes: &[NodeId],
    batch: u32,
) -> Result<Operation<WriteRequest>, GeneratorError> {
    let values = session.read(nodes.iter().cloned().map(values::of).collect())?;
    if let Some((node, value)) = nodes.iter().zip(&values).find(|(_, value)| value.value.is_none()) {
        return Err(GeneratorError::BadStatus(format!(
            "{node} has no value to take the type from: {}",
            value.status()
        )));
    }
    let writes: Vec<WriteValue> = nodes
        .iter()
        .zip(values)
        .map(|(node, value)| WriteValue {
            node_id: node.clone(),
            attribute_id: Attribute::VALUE.id(),
            // Only the value: many servers refuse timestamps and status.
            value: DataValue { value: value.value, ..DataValue::default() },
            ..Default::default()
        })
        .collect();
    let batch = batch as usize;
    let count = (writes.len() / batch.max(1)).max(1);
    let requests = (0..count).map(|group| WriteRequest {
        nodes_to_write: writes.iter().cycle().skip(group * batch).take(batch).cloned().collect(),
        ..Default::default()
    });
    Ok(Operation { requests: requests.collect(), prepare: count_up, check: view::write })
}

/// Changes all numbers of a request, so that subscribers see a change.
fn count_up(request: &mut WriteRequest, number: u64) {
    for write in &mut request.nodes_to_write {
        // Wrapping and rounding are acceptable, because any different value will do.
        match &mut write.value.value {
            Some(Variant::Boolean(value)) => *value = number & 1 == 1,
            Some(Variant::SByte(value)) => *value = number as i8,
            Some(Variant::Byte(value)) => *value = number as u8,
            Some(Variant::Int16(value)) => *value = number as i16,
            Some(Variant::UInt16(value)) => *value = number as u16,
            Some(Variant::Int32(value)) => *value = number as i32,
            Some(Variant::UInt32(value)) => *value = number as u32,
            Some(Variant::Int64(value)) => *value = number as i64,
            Some(Variant::UInt64(value)) => *value = number,
            Some(Variant::Float(value)) => *value = number as f32,
            Some(Variant::Double(value)) => *value = number as f64,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_use_all_nodes_and_repeat_few() {
        let nodes: Vec<NodeId> = (0..5).map(|id| NodeId::numeric(1, id)).collect();
        let two = groups(&nodes, 2);
        assert_eq!(two.len(), 2);
        assert_eq!(two[1], [NodeId::numeric(1, 2), NodeId::numeric(1, 3)]);
        let many = groups(&nodes, 7);
        assert_eq!((many.len(), many[0].len(), &many[0][6]), (1, 7, &NodeId::numeric(1, 1)));
        let mut read = read(&nodes, 2);
        assert_eq!(read.request(3, 0).unwrap().nodes_to_read[0].node_id, NodeId::numeric(1, 2));
    }

    #[test]
    fn written_numbers_change() {
        let value = |value: Variant| WriteValue { value: DataValue::new(value), ..Default::default() };
        let mut request =
            WriteRequest { nodes_to_write: vec![value(1.5.into()), value("x".into())], ..Default::default() };
        count_up(&mut request, 7);
        assert_eq!(request.nodes_to_write[0].value.value, Some(Variant::Double(7.0)));
        assert_eq!(request.nodes_to_write[1].value.value, Some(Variant::from("x")));
    }
}
