//! The address space: children of a node, details of a node, writing a value.

use super::values::{json_of, number_text};
use super::{Problem, Who};
use crate::compress;
use axum::Json;
use axum::extract::Query;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use taktwerk::client::{Attribute, BrowseOptions, BrowsePage, ToNodeId};
use taktwerk::{Client, DataValue, NodeId, Variant};
use taktwerk_schema::ids::{object_ids, reference_type_ids};
use taktwerk_schema::{BrowseDirection, EUInformation, NodeClass, Range};
use taktwerk_types::hexadecimal;
use taktwerk_types::{BuiltInType, ByteString, ExtensionObject, UaString};

/// Maximum number of children per response.
const CHILDREN_MAX: usize = 5_000;

#[derive(Deserialize)]
pub(crate) struct Of {
    node: Option<String>,
}

/// Which children of a node are requested.
#[derive(Deserialize)]
pub(crate) struct Children {
    node: Option<String>,
    /// Maximum number of children.
    limit: Option<usize>,
    /// Whether the rest will be requested with `next`.
    #[serde(default)]
    keep: bool,
    /// Number of references read so far, and the continuation point of the last response.
    #[serde(default)]
    from: usize,
    next: Option<String>,
}

/// Parses a NodeId, also one with the URI of a namespace.
pub(crate) fn parse(namespaces: &[UaString], text: &str) -> Result<NodeId, Problem> {
    text.to_node_id(namespaces).map_err(|error| Problem::bad_request(error.to_string()))
}

/// Lists children of a node, by default of the Objects folder. `from` and `next` of the response continue the list.
pub(crate) async fn browse(
    Who(visitor): Who,
    Query(of): Query<Children>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let node = match &of.node {
        Some(node) => parse(&visitor.client.namespaces(), node)?,
        None => NodeId::numeric(0, object_ids::OBJECTS_FOLDER),
    };
    let client = &visitor.client;
    let limit = of.limit.unwrap_or(CHILDREN_MAX).clamp(1, CHILDREN_MAX);
    let max = u32::try_from(limit).unwrap_or(u32::MAX);
    let has_more = |page: BrowsePage| (page.next.is_some(), page);
    let (mut has_more, mut page) = match of.next.as_deref().and_then(hexadecimal::bytes) {
        None if of.from == 0 => has_more(client.browse_page(node, &BrowseOptions::default(), max).await?),
        None => skip(client, node, of.from).await?,
        Some(point) => match client.browse_next(ByteString::from(point), false).await {
            Ok(page) => has_more(page),
            // The server has released the continuation point: it keeps few per session, and anonymous visitors share a
            // session.
            Err(_) => skip(client, node, of.from).await?,
        },
    };
    let is_cut = page.references.len() > limit;
    page.references.truncate(limit);
    has_more |= is_cut;
    // The rest is not needed, so release the continuation point.
    if let Some(next) = page.next.take_if(|_| !of.keep || is_cut) {
        release(client, next).await;
    }
    let read = of.from.saturating_add(page.references.len());
    // A node may have several references, such as HasComponent and HasNotifier.
    let mut seen = HashSet::new();
    let children: Vec<Value> = page
        .references
        .iter()
        .filter_map(|reference| {
            let id = reference.node_id.local().filter(|id| seen.insert((*id).clone()))?;
            Some(json!({
                "id": id.to_string(),
                "name": name(reference.display_name.text.as_str(), reference.browse_name.name.as_str()),
                "class": class_name(reference.node_class),
                "isProperty": reference.reference_type_id.ns0() == Some(reference_type_ids::HAS_PROPERTY),
            }))
        })
        .collect();
    let next = page.next.as_ref().map(|point| hexadecimal::text(point.as_bytes()));
    let answer = json!({ "children": children, "from": read, "hasMore": has_more, "next": next });
    Ok(compress::json(&headers, &answer))
}

/// Browses a node again and skips the first `from` references. They are read in parts, because a node may have more of
/// them than fit into memory.
async fn skip(client: &Client, node: NodeId, from: usize) -> Result<(bool, BrowsePage), Problem> {
    let max = u32::try_from(CHILDREN_MAX).unwrap_or(u32::MAX);
    let mut page = client.browse_page(node, &BrowseOptions::default(), max).await?;
    let mut left = from;
    loop {
        let skipped = left.min(page.references.len());
        page.references.drain(..skipped);
        left -= skipped;
        match page.next.take() {
            Some(next) if page.references.is_empty() => page = client.browse_next(next, false).await?,
            Some(next) => {
                release(client, next).await;
                return Ok((true, page));
            }
            None => return Ok((false, page)),
        }
    }
}

/// Releases a continuation point that is not used. If the request fails, the server releases it later.
async fn release(client: &Client, next: ByteString) {
    let _ = client.browse_next(next, true).await;
}

fn name<'a>(display: &'a str, browse: &'a str) -> &'a str {
    if display.is_empty() { browse } else { display }
}

fn class_name(class: NodeClass) -> &'static str {
    match class {
        NodeClass::OBJECT => "Object",
        NodeClass::VARIABLE => "Variable",
        NodeClass::METHOD => "Method",
        NodeClass::VIEW => "View",
        _ => "Type",
    }
}

/// Details of a node.
pub(crate) async fn node(Who(visitor): Who, Query(of): Query<Of>) -> Result<Json<Value>, Problem> {
    let node = parse(&visitor.client.namespaces(), of.node.as_deref().unwrap_or_default())?;
    let client = &visitor.client;
    let attributes = [
        Attribute::NodeClass,
        Attribute::DisplayName,
        Attribute::Description,
        Attribute::DataType,
        Attribute::UserAccessLevel,
        Attribute::Historizing,
        Attribute::Value,
        Attribute::BrowseName,
    ];
    let values = client.read_many(attributes.map(|attribute| (node.clone(), attribute))).await?;
    let of = |wanted: Attribute| {
        let at = attributes.iter().position(|attribute| *attribute == wanted)?;
        values.get(at).filter(|value| !value.status().is_bad())
    };
    let Some(class) = of(Attribute::NodeClass) else {
        return Err(Problem::bad_request(format!(
            "{node}: the node does not exist, or you have no permission to see it"
        )));
    };
    let class = class.value.clone().and_then(|class| i32::try_from(class).ok()).unwrap_or_default();
    let access = of(Attribute::UserAccessLevel).and_then(|access| access.value.clone());
    let access = access.and_then(|access| u8::try_from(access).ok()).unwrap_or_default();
    let properties = properties(client, &node).await?;
    let data_type = match of(Attribute::DataType).and_then(|value| value.value.clone()) {
        Some(Variant::NodeId(id)) => Some(type_name(client, *id).await),
        _ => None,
    };
    let value = values.iter().zip(attributes).find(|(_, attribute)| *attribute == Attribute::Value);
    Ok(Json(json!({
        "id": node.to_string(),
        "class": class_name(NodeClass(class)),
        "name": of(Attribute::DisplayName).and_then(text),
        "description": of(Attribute::Description).and_then(text),
        "dataType": data_type,
        "isReadable": access & 1 != 0,
        "isWritable": access & 2 != 0,
        "hasHistory": access & 4 != 0,
        "value": value.filter(|_| class == NodeClass::VARIABLE.0).map(|(value, _)| json_of(value)),
        "unit": properties.unit,
        "low": properties.low,
        "high": properties.high,
    })))
}

fn text(value: &DataValue) -> Option<String> {
    match value.value.as_ref()? {
        Variant::LocalizedText(text) => Some(text.text.as_str().to_owned()).filter(|text| !text.is_empty()),
        _ => None,
    }
}

async fn type_name(client: &Client, data_type: NodeId) -> String {
    match client.read_attribute(data_type.clone(), Attribute::BrowseName).await {
        Ok(DataValue { value: Some(Variant::QualifiedName(name)), .. }) => name.name.as_str().to_owned(),
        _ => data_type.to_string(),
    }
}

/// Unit and range of a value (Part 8 §5.3.2).
#[derive(Default)]
struct Properties {
    unit: Option<String>,
    low: Option<f64>,
    high: Option<f64>,
}

async fn properties(client: &Client, node: &NodeId) -> Result<Properties, Problem> {
    let options = BrowseOptions {
        direction: BrowseDirection::FORWARD,
        reference_type: NodeId::numeric(0, reference_type_ids::HAS_PROPERTY),
        ..BrowseOptions::default()
    };
    let mut wanted = Vec::new();
    for reference in client.browse_with(node.clone(), &options).await? {
        if let (name @ ("EURange" | "EngineeringUnits"), Some(id)) =
            (reference.browse_name.name.as_str(), reference.node_id.local())
        {
            wanted.push((name == "EURange", id.clone()));
        }
    }
    let mut found = Properties::default();
    if wanted.is_empty() {
        return Ok(found);
    }
    let values = client.read_many(wanted.iter().map(|(_, id)| (id.clone(), Attribute::Value))).await?;
    for ((is_range, _), value) in wanted.iter().zip(values) {
        let Some(Variant::ExtensionObject(object)) = value.value else { continue };
        let object: &ExtensionObject = &object;
        if *is_range {
            if let Ok(range) = object.decode::<Range>() {
                (found.low, found.high) = (Some(range.low), Some(range.high));
            }
        } else if let Ok(unit) = object.decode::<EUInformation>() {
            found.unit = Some(unit.display_name.text.as_str().to_owned());
        }
    }
    Ok(found)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    node: String,
    value: Value,
}

/// Writes a scalar value. It is converted to the type of the variable's current value.
pub(crate) async fn write(Who(visitor): Who, Json(write): Json<Write>) -> Result<Json<Value>, Problem> {
    let node = parse(&visitor.client.namespaces(), &write.node)?;
    let now = visitor.client.read(node.clone()).await?;
    let kind = now.value.as_ref().and_then(Variant::built_in_type);
    let is_array = now.value.as_ref().is_some_and(|value| value.as_array().is_some());
    let kind = kind.filter(|_| !is_array).ok_or_else(|| {
        Problem::bad_request(format!("{node}: only values of a simple type can be written here"))
    })?;
    let text = match write.value {
        Value::String(text) => text,
        Value::Bool(_) | Value::Number(_) => write.value.to_string(),
        _ => return Err(Problem::bad_request("the value must be a text, a number, true or false")),
    };
    let value = parse_scalar(kind, text.trim())
        .ok_or_else(|| Problem::bad_request(format!("{text:?} is not a value of the type {kind}")))?;
    let results = visitor.client.write_many([(node.clone(), DataValue::new(value))]).await?;
    let status = results.first().copied().unwrap_or_default();
    if status.is_bad() {
        return Err(Problem::bad_request(format!("{node}: the server refuses the value: {status}")));
    }
    Ok(Json(json!({ "status": status.to_string() })))
}

/// Parses a scalar of a type.
fn parse_scalar(kind: BuiltInType, text: &str) -> Option<Variant> {
    Some(match kind {
        BuiltInType::Boolean => text.parse::<bool>().ok()?.into(),
        BuiltInType::SByte => text.parse::<i8>().ok()?.into(),
        BuiltInType::Byte => text.parse::<u8>().ok()?.into(),
        BuiltInType::Int16 => text.parse::<i16>().ok()?.into(),
        BuiltInType::UInt16 => text.parse::<u16>().ok()?.into(),
        BuiltInType::Int32 => text.parse::<i32>().ok()?.into(),
        BuiltInType::UInt32 => text.parse::<u32>().ok()?.into(),
        BuiltInType::Int64 => text.parse::<i64>().ok()?.into(),
        BuiltInType::UInt64 => text.parse::<u64>().ok()?.into(),
        BuiltInType::Float => number_text(text)?.parse::<f32>().ok()?.into(),
        BuiltInType::Double => number_text(text)?.parse::<f64>().ok()?.into(),
        BuiltInType::String => text.into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_no_node_say_what_is_wrong() {
        let namespaces = ["http://opcfoundation.org/UA/", "urn:server", "urn:plant"].map(UaString::from);
        assert_eq!(parse(&namespaces, "nsu=urn:plant;s=Boiler").unwrap(), NodeId::string(2, "Boiler"));
        let told = |text: &str| parse(&namespaces, text).unwrap_err().to_string();
        let unknown = told("nsu=urn:plnt;s=Boiler");
        assert!(unknown.contains("urn:plnt") && unknown.contains("urn:plant"), "{unknown}");
        assert!(!unknown.contains("not a NodeId"), "{unknown}");
        assert!(told("nsu=urn:plant").contains("not a NodeId"), "{}", told("nsu=urn:plant"));
    }

    #[test]
    fn values_are_parsed_as_the_current_type() {
        assert_eq!(parse_scalar(BuiltInType::Double, "21,5"), Some(Variant::from(21.5)));
        assert_eq!(parse_scalar(BuiltInType::Byte, "256"), None);
        assert_eq!(parse_scalar(BuiltInType::Boolean, "true"), Some(Variant::from(true)));
        assert_eq!(parse_scalar(BuiltInType::Double, ""), None);
        assert_eq!(parse_scalar(BuiltInType::Guid, "x"), None);
    }
}
