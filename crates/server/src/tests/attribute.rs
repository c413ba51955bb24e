//! Read and Write.

use super::*;
use schema::{ReadRequest, ReadValueId, TimestampsToReturn};
use taktwerk_schema::ids::variable_ids;
use taktwerk_types::{DataValue, Variant};

fn read(client: &mut Client, server: &mut Server, nodes: &[(NodeId, u32)]) -> Vec<DataValue> {
    let request = ReadRequest {
        request_header: client.header(),
        max_age: 0.0,
        timestamps_to_return: TimestampsToReturn(2),
        nodes_to_read: nodes
            .iter()
            .map(|(id, attribute_id)| ReadValueId {
                node_id: id.clone(),
                attribute_id: *attribute_id,
                ..ReadValueId::default()
            })
            .collect(),
    };
    client.call(server, &request).unwrap().results
}

#[test]
fn server_status_is_live() {
    let mut server = Server::new();
    let mut client = server.session();
    server.pass(Duration::from_secs(5));
    let values =
        read(&mut client, &mut server, &[(variable_ids::SERVER_SERVER_STATUS_CURRENT_TIME.into(), 13)]);
    assert_eq!(values[0].value, Some(Variant::DateTime(server.now.utc)));
}
