//! Queries of the client, with several responses.

use taktwerk::client::NodeQuery;
use taktwerk::schema::ids::{object_type_ids, variable_type_ids};
use taktwerk::schema::{
    ContentFilter, ContentFilterElement, FilterOperator, LiteralOperand, SimpleAttributeOperand,
};
use taktwerk::types::ExtensionObject;
use taktwerk::{Client, NodeId, QualifiedName, Server, Variant};

fn filter(name: &str, least: i32) -> ContentFilter {
    let value = SimpleAttributeOperand {
        type_definition_id: NodeId::numeric(0, object_type_ids::FOLDER_TYPE),
        browse_path: vec![QualifiedName::new(2, name)],
        attribute_id: 13,
        ..Default::default()
    };
    let operands =
        [ExtensionObject::new(&value), ExtensionObject::new(&LiteralOperand { value: least.into() })];
    let element = ContentFilterElement {
        filter_operator: FilterOperator::GREATER_THAN_OR_EQUAL,
        filter_operands: operands.into(),
    };
    ContentFilter { elements: vec![element] }
}

#[tokio::test]
async fn nodes_are_found_by_their_type_and_values() {
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .anonymous()
        // Forces several responses per query.
        .limits(|limits| limits.references_per_browse_max = 7)
        .build()
        .unwrap();
    let plant = server.namespace("urn:plant");
    for number in 0..40 {
        plant.folder(&format!("Line {number}")).unwrap().variable("Speed", number).add().unwrap();
    }
    let server = server.spawn().unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    let query = NodeQuery::of_exact_type(NodeId::numeric(0, object_type_ids::FOLDER_TYPE))
        .value([QualifiedName::new(2, "Speed")])
        .attribute([], 3)
        .filter(filter("Speed", 10));
    let found = client.query(&query).await.unwrap();
    assert_eq!(found.len(), 30);
    let values = [Variant::from(10), QualifiedName::new(2, "Line 10").into()];
    assert_eq!(found[0].values, values);
    // Variables too, of another type.
    let query = NodeQuery::of_type(NodeId::numeric(0, variable_type_ids::BASE_DATA_VARIABLE_TYPE))
        .attribute([], 3)
        .or_of_type(NodeId::numeric(0, object_type_ids::SERVER_TYPE))
        .attribute([], 1);
    let found = client.query(&query).await.unwrap();
    let speed = Variant::from(QualifiedName::new(2, "Speed"));
    assert_eq!(found.iter().filter(|one| one.values[0] == speed).count(), 40);
    assert!(found.iter().any(|one| one.values[0] == Variant::from(NodeId::numeric(0, 2253))));
    let unknown = NodeQuery::of_type(NodeId::numeric(2, 1));
    assert!(client.query(&unknown).await.is_err());
}
