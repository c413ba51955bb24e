//! OPC Publisher's `publishednodes.json`: a list of servers with nodes.

use super::section::Section;
use super::{Imported, Names, Wishes, mistake, source_name};
use crate::fields::Mistake;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;
use taktwerk_types::ExpandedNodeId;

/// A server and its publishing interval: nodes with another interval belong to another source.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    url: String,
    is_secure: bool,
    user: Option<String>,
    millis: Option<u64>,
}

pub(super) fn read(path: &Path, text: &str, wishes: &Wishes) -> Result<Imported, Mistake> {
    let json: Json = serde_json::from_str(text)
        .map_err(|error| mistake(path, error.line(), format!("this is no JSON: {error}"), ""))?;
    let entries = match &json {
        Json::Array(entries) => entries.as_slice(),
        one => core::slice::from_ref(one),
    };
    let mut imported = Imported::default();
    let mut names = Names::default();
    let mut taken = Names::default();
    let mut sources: BTreeMap<Key, String> = BTreeMap::new();
    for (number, entry) in entries.iter().enumerate() {
        let number = number + 1;
        let Some(url) = text_of(entry, "EndpointUrl") else {
            imported.notes.push(format!("entry {number} has no EndpointUrl and was not imported"));
            continue;
        };
        let nodes = nodes_of(entry);
        let events = entry.get("OpcEvents").and_then(Json::as_array).map_or(0, Vec::len);
        if events > 0 {
            imported.notes.push(format!("{url}: {events} event subscriptions were not imported"));
        }
        for node in nodes {
            let Some(id) = node_id(node) else {
                imported.notes.push(format!("{url}: a node without Id was not imported"));
                continue;
            };
            if let Some(reason) = unusable(node, &id) {
                imported.notes.push(format!("{url}: {id} was not imported: {reason}"));
                continue;
            }
            let key = Key {
                url: url.to_owned(),
                is_secure: is_secure(entry),
                user: text_of(entry, "OpcAuthenticationUsername").map(str::to_owned),
                millis: millis(entry, "DataSetPublishingInterval")
                    .or_else(|| millis(node, "OpcPublishingInterval")),
            };
            let source = sources.entry(key).or_insert_with_key(|key| {
                let name = text_of(entry, "DataSetWriterGroup").or_else(|| text_of(entry, "DataSetWriterId"));
                let name = wishes.name.as_deref().or(name).unwrap_or_else(|| host(&key.url));
                let name = taken.free(&source_name(name), "");
                imported.sources.push(source(key, &name, &mut imported.notes));
                name
            });
            let shown = text_of(node, "DisplayName").or_else(|| text_of(node, "DataSetFieldId"));
            let name = names.free(shown.unwrap_or_else(|| last_part(&id)), source);
            let tag = Section::new("tag").with("source", source.as_str()).with("name", name);
            imported.tags.push(tag.with("address", id));
        }
    }
    Ok(imported)
}

fn source(key: &Key, name: &str, notes: &mut Vec<String>) -> Section {
    let mut section = Section::new("source").with("name", name).with("type", "opcua").with("url", &*key.url);
    if let Some(millis) = key.millis {
        section = section.with("publishing_interval", format!("{millis} ms"));
    }
    if !key.is_secure && key.user.is_none() {
        return section.with("security", "none");
    }
    section = section.with("security", "best").with("pki", "pki-gateway");
    if let Some(user) = &key.user {
        let file = format!("{}.password", name.replace(|char: char| !char.is_alphanumeric(), "-"));
        notes.push(format!("source {name}: write the password of {user} into the file {file}"));
        if !key.is_secure {
            notes.push(format!("source {name}: the connection is encrypted now, because it has a password"));
        }
        section = section.with("user", user.as_str()).with("password_file", file);
    }
    section
}

fn text_of<'a>(json: &'a Json, key: &str) -> Option<&'a str> {
    json.get(key).and_then(Json::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// The nodes of an entry. Old files have one, as `NodeId`.
fn nodes_of(entry: &Json) -> Vec<&Json> {
    match entry.get("OpcNodes").and_then(Json::as_array) {
        Some(nodes) => nodes.iter().collect(),
        None => entry.get("NodeId").into_iter().collect(),
    }
}

fn node_id(node: &Json) -> Option<String> {
    let id = text_of(node, "ExpandedNodeId").or_else(|| text_of(node, "Id"));
    let id = id.or_else(|| text_of(node, "Identifier")).or_else(|| node.as_str())?;
    // OPC Publisher's stack also writes http://uri#s=name.
    Some(match id.split_once('#') {
        Some((uri, rest)) if uri.contains("://") && !id.starts_with("nsu=") => format!("nsu={uri};{rest}"),
        _ => id.to_owned(),
    })
}

fn unusable(node: &Json, id: &str) -> Option<String> {
    if node.get("EventFilter").is_some() || node.get("ConditionHandling").is_some() {
        return Some("it is a subscription of events".to_owned());
    }
    if node.get("BrowsePath").and_then(Json::as_array).is_some_and(|path| !path.is_empty()) {
        return Some("it has a BrowsePath; name the node itself".to_owned());
    }
    let attribute = node.get("AttributeId").and_then(Json::as_str);
    if let Some(attribute) = attribute.filter(|attribute| *attribute != "Value") {
        return Some(format!("it is the attribute {attribute}, and tags show values"));
    }
    id.parse::<ExpandedNodeId>().err().map(|error| format!("it is no NodeId ({error})"))
}

fn is_secure(entry: &Json) -> bool {
    let mode = text_of(entry, "EndpointSecurityMode");
    match mode {
        Some(mode) => !mode.eq_ignore_ascii_case("None"),
        None => entry.get("UseSecurity").and_then(Json::as_bool).unwrap_or(false),
    }
}

/// A time in milliseconds, or as `hh:mm:ss` under the key with `Timespan`.
fn millis(json: &Json, key: &str) -> Option<u64> {
    let span = json.get(format!("{key}Timespan")).and_then(Json::as_str).and_then(timespan);
    let millis = span.or_else(|| json.get(key).and_then(Json::as_f64).map(|millis| millis as u64))?;
    (millis > 0).then_some(millis)
}

fn timespan(text: &str) -> Option<u64> {
    let mut seconds = 0.0;
    for part in text.split(':') {
        seconds = seconds * 60.0 + part.parse::<f64>().ok().filter(|part| *part >= 0.0)?;
    }
    (seconds < 366.0 * 86_400.0).then_some((seconds * 1e3) as u64)
}

fn host(url: &str) -> &str {
    let rest = url.strip_prefix("opc.tcp://").unwrap_or(url);
    rest.split(['/', ':']).next().unwrap_or(rest)
}

/// The readable part of an id.
fn last_part(id: &str) -> &str {
    let id = id.rsplit_once(';').map_or(id, |(_, id)| id);
    let id = id.split_once('=').map_or(id, |(_, id)| id);
    id.rsplit(['/', '.']).next().filter(|part| !part.is_empty()).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"[
      {
        "EndpointUrl": "opc.tcp://plc8:4840/server",
        "UseSecurity": true,
        "OpcAuthenticationMode": "UsernamePassword",
        "OpcAuthenticationUsername": "gateway",
        "OpcAuthenticationPassword": "secret",
        "DataSetWriterGroup": "Line 1",
        "OpcNodes": [
          { "Id": "nsu=urn:example:plc;s=Oven.Temperature", "OpcPublishingInterval": 1000 },
          { "ExpandedNodeId": "http://example.com/plc#i=7", "OpcPublishingInterval": 1000, "DisplayName": "Speed" },
          { "Id": "ns=2;s=Slow", "OpcPublishingInterval": 5000 },
          { "Id": "ns=2;s=Events", "EventFilter": {} },
          { "Id": "nothing" }
        ]
      },
      { "EndpointUrl": "opc.tcp://old:4840", "NodeId": { "Identifier": "i=2258" } },
      { "OpcNodes": [] }
    ]"#;

    #[test]
    fn servers_become_sources_and_nodes_become_tags() {
        let imported = read(Path::new("p.json"), FILE, &Wishes::default()).unwrap();
        let text = imported.text();
        let names: Vec<_> =
            imported.sources.iter().filter_map(|source| source.get("name")?.as_str()).collect();
        assert_eq!(names, ["Line 1", "Line 1 (2)", "old"]);
        assert_eq!(imported.tags.len(), 4);
        for line in [
            "publishing_interval = \"1000 ms\"\nsecurity = \"best\"",
            "user = \"gateway\"\npassword_file = \"Line-1.password\"",
            "source = \"Line 1\"\nname = \"Temperature\"\naddress = \"nsu=urn:example:plc;s=Oven.Temperature\"",
            "name = \"Speed\"\naddress = \"nsu=http://example.com/plc;i=7\"",
            "source = \"Line 1 (2)\"\nname = \"Slow\"",
            "url = \"opc.tcp://old:4840\"\nsecurity = \"none\"",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains("secret"));
        let notes = imported.notes.join("\n");
        for note in
            ["Events was not imported", "nothing was not imported", "entry 3 has no", "Line-1.password"]
        {
            assert!(notes.contains(note), "{note} in {notes}");
        }
        assert!(!notes.contains("secret"));
    }

    #[test]
    fn times_are_read_in_both_notations() {
        let json: Json =
            serde_json::from_str(r#"{"aTimespan": "00:00:01.5", "b": 250, "c": -1, "dTimespan": "x"}"#)
                .unwrap();
        let all = ["a", "b", "c", "d"].map(|key| millis(&json, key));
        assert_eq!(all, [Some(1500), Some(250), None, None]);
    }
}
