//! Clients that change alias categories (Part 17 §6.3.4, §6.3.5).

use taktwerk::schema::ids::{method_ids as m, object_ids};
use taktwerk::types::{ExpandedNodeId, UaString};
use taktwerk::{Client, NodeId, RunningServer, Server, StatusCode, Variant};

fn serve(has_node_management: bool) -> (RunningServer, NodeId) {
    let builder = Server::builder().bind("127.0.0.1:0").anonymous();
    let builder = if has_node_management { builder.node_management() } else { builder };
    let server = builder.build().unwrap();
    let level = server.namespace("urn:plant").variable("Level", 1.5).add().unwrap().id().clone();
    (server.spawn().unwrap(), level)
}

fn tags() -> NodeId {
    NodeId::numeric(0, object_ids::TAG_VARIABLES)
}

async fn change(
    client: &Client,
    category: &NodeId,
    method: u32,
    name: &str,
    target: &NodeId,
) -> Result<Vec<StatusCode>, StatusCode> {
    let names: Variant = vec![UaString::from(name)].into();
    let targets: Variant = vec![ExpandedNodeId::from(target.clone())].into();
    let mut inputs = vec![names, targets];
    if method == m::ALIAS_NAME_CATEGORY_TYPE_ADD_ALIASES_TO_CATEGORY {
        inputs.extend([Vec::<UaString>::new().into(), NodeId::NULL.into()]);
    }
    let called = client.call_variants(category.clone(), NodeId::numeric(0, method), inputs).await;
    let outputs = called.map_err(|error| error.status())?;
    Ok(Vec::try_from(outputs[0].clone()).unwrap())
}

const ADD: u32 = m::ALIAS_NAME_CATEGORY_TYPE_ADD_ALIASES_TO_CATEGORY;
const DELETE: u32 = m::ALIAS_NAME_CATEGORY_TYPE_DELETE_ALIASES_FROM_CATEGORY;

async fn targets(client: &Client, category: &NodeId) -> usize {
    let find = NodeId::numeric(0, m::ALIAS_NAME_CATEGORY_TYPE_FIND_ALIAS);
    let inputs = vec!["TIC%".into(), NodeId::NULL.into()];
    let found = client.call_variants(category.clone(), find, inputs).await.unwrap();
    found[0].as_array().map_or(0, |array| array.values.len())
}

#[tokio::test]
async fn clients_add_and_delete_aliases_if_they_may_add_nodes() {
    let (server, level) = serve(true);
    // Also in a category that is added later.
    let line = server.space().add_alias_category(&tags(), "Line", taktwerk::UtcTime::NULL).unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    for category in [tags(), line] {
        assert_eq!(change(&client, &category, ADD, "TIC101", &level).await, Ok(vec![StatusCode::GOOD]));
        assert_eq!(targets(&client, &category).await, 1);
        assert_eq!(change(&client, &category, DELETE, "TIC101", &level).await, Ok(vec![StatusCode::GOOD]));
        assert_eq!(targets(&client, &category).await, 0);
    }
}

#[tokio::test]
async fn without_node_management_the_methods_are_not_executable() {
    let (server, level) = serve(false);
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    for method in [ADD, DELETE] {
        let refused = change(&client, &tags(), method, "TIC101", &level).await;
        assert_eq!(refused, Err(StatusCode::BAD_NOT_EXECUTABLE));
    }
}
