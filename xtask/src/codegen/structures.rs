//! Structures, in files by service area.

use super::output::Output;
use super::types::{Model, Structure, StructureField, rust_type};
use crate::Failure;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use taktwerk_types::BuiltInType;

/// A file and the name patterns of its structures: `Name`, `Start*`, `*End` or `*Part*`.
struct Area {
    file: &'static str,
    title: &'static str,
    patterns: &'static [&'static str],
}

/// A structure belongs to the first area with a matching pattern; the last area takes the rest.
const AREAS: &[Area] = &[
    Area {
        file: "session",
        title: "Secure channels, sessions and the headers of all messages (Part 4 §5.6, §5.7)",
        patterns: &[
            "CreateSession*",
            "ActivateSession*",
            "CloseSession*",
            "Cancel*",
            "*SecureChannel*",
            "ChannelSecurityToken",
            "SignatureData",
            "SignedSoftwareCertificate",
            "*IdentityToken",
            "RequestHeader",
            "ResponseHeader",
            "ServiceFault",
            "Sessionless*",
            "AdditionalParametersType",
            "EphemeralKeyType",
        ],
    },
    Area {
        file: "discovery",
        title: "Discovery (Part 4 §5.5)",
        patterns: &[
            "FindServers*",
            "GetEndpoints*",
            "RegisterServer*",
            "RegisteredServer",
            "ServerOnNetwork",
            "ApplicationDescription",
            "EndpointDescription",
            "UserTokenPolicy",
            "*DiscoveryConfiguration",
        ],
    },
    Area {
        file: "node_management",
        title: "Node management (Part 4 §5.8)",
        patterns: &[
            "AddNodes*",
            "AddReferences*",
            "DeleteNodes*",
            "DeleteReferences*",
            "*Attributes",
            "GenericAttributeValue",
        ],
    },
    Area {
        file: "view",
        title: "Browsing and registering nodes (Part 4 §5.9)",
        patterns: &[
            "Browse*",
            "TranslateBrowsePaths*",
            "RegisterNodes*",
            "UnregisterNodes*",
            "ViewDescription",
            "ReferenceDescription",
            "RelativePath*",
        ],
    },
    Area {
        file: "query",
        title: "Queries and content filters (Part 4 §5.10, §7.7)",
        patterns: &[
            "Query*",
            "ContentFilter*",
            "*Operand",
            "ParsingResult",
            "NodeTypeDescription",
            "NodeReference",
        ],
    },
    Area {
        file: "attribute",
        title: "Reading, writing and history (Part 4 §5.11, Part 11)",
        patterns: &[
            "ReadRequest",
            "ReadResponse",
            "ReadValueId",
            "Read*Details*",
            "Write*Request",
            "WriteRequest",
            "WriteResponse",
            "WriteValue",
            "History*",
            "*DataDetails",
            "*EventDetails",
            "DeleteRawModifiedDetails",
            "DeleteAtTimeDetails",
            "SortRuleElement",
            "ModificationInfo",
            "Annotation",
            "AggregateConfiguration",
        ],
    },
    Area { file: "method", title: "Calling methods (Part 4 §5.12)", patterns: &["Call*"] },
    Area {
        file: "monitored_item",
        title: "Monitored items (Part 4 §5.13)",
        patterns: &[
            "MonitoredItemCreate*",
            "MonitoredItemModify*",
            "*MonitoredItems*",
            "SetMonitoringMode*",
            "SetTriggering*",
            "MonitoringParameters",
            "DataChangeFilter",
            "EventFilter*",
            "AggregateFilter*",
            "Monitoring*",
        ],
    },
    Area {
        file: "subscription",
        title: "Subscriptions and notifications (Part 4 §5.14)",
        patterns: &[
            "CreateSubscription*",
            "ModifySubscription*",
            "DeleteSubscriptions*",
            "TransferSubscriptions*",
            "TransferResult",
            "SetPublishingMode*",
            "PublishRequest",
            "PublishResponse",
            "Republish*",
            "Notification*",
            "*Notification",
            "EventNotificationList",
            "EventFieldList",
            "SubscriptionAcknowledgement",
        ],
    },
    Area {
        file: "pubsub",
        title: "PubSub configuration and messages (Part 14)",
        patterns: &[
            "*PubSub*",
            "*DataSet*",
            "*WriterGroup*",
            "*ReaderGroup*",
            "Datagram*",
            "Broker*",
            "Json*",
            "Uadp*",
            "*Qos*",
            "NetworkAddress*",
            "SecurityGroup*",
            "Published*",
            "Action*",
            "Field*",
            "TargetVariables*",
            "ConnectionTransport*",
        ],
    },
    Area {
        file: "configuration",
        title: "Configuration, certificates and users (Part 12, Part 18)",
        patterns: &[
            "TrustList*",
            "*Certificate*",
            "*Configuration*",
            "UserManagement*",
            "ApplicationIdentity*",
            "*Endpoint*DataType",
            "SecuritySettings*",
            "UserTokenSettings*",
            "TransactionError*",
            "IdentityMapping*",
            "RolePermission*",
            "AliasName*",
            "AliasCategory*",
            "AliasUpdate*",
        ],
    },
    Area {
        file: "diagnostics",
        title: "Server status, diagnostics and change events (Part 5)",
        patterns: &[
            "*Diagnostic*",
            "ServerStatus*",
            "BuildInfo",
            "ServiceCounter*",
            "StatusResult",
            "ModelChange*",
            "SemanticChange*",
            "Redundant*",
            "NetworkGroup*",
            "Log*",
            "TraceContext*",
            "SpanContext*",
            "NameValuePair",
        ],
    },
    Area {
        file: "base",
        title: "Type definitions, geometry, networking and what other parts share (Part 3, Part 5, Part 8, Part 22)",
        patterns: &["*"],
    },
];

fn matches(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(""), _) => true,
        (Some(rest), Some(_)) => name.contains(rest.trim_end_matches('*')),
        (Some(end), None) => name.ends_with(end),
        (None, Some(start)) => match start.split_once('*') {
            Some((start, part)) => name.strip_prefix(start).is_some_and(|rest| rest.contains(part)),
            None => name.starts_with(start),
        },
        (None, None) => match pattern.split_once('*') {
            Some((start, end)) => name.starts_with(start) && name.ends_with(end),
            None => name == pattern,
        },
    }
}

/// Writes one file per area, and the module that lists them.
pub(crate) fn generate(model: &Model, output: &mut Output) -> Result<(), Failure> {
    let mut areas: BTreeMap<&str, Vec<&Structure>> = BTreeMap::new();
    for structure in &model.structures {
        let area =
            AREAS.iter().find(|area| area.patterns.iter().any(|pattern| matches(pattern, &structure.name)));
        let area = area.ok_or_else(|| format!("no area for {}", structure.name))?;
        areas.entry(area.file).or_default().push(structure);
    }
    let import_paths = import_paths(model, &areas);
    let mut index = String::from("//! Structures by service area.\n\n");
    for area in AREAS {
        let Some(structures) = areas.get(area.file) else { continue };
        let mut text = format!("//! {}.\n\n", area.title);
        imports(area.file, structures, &import_paths, &mut text);
        structures.iter().for_each(|structure| one(structure, &mut text));
        output.rust(&format!("crates/schema/src/generated/structures/{}.rs", area.file), text);
        let _ = writeln!(index, "mod {};", area.file);
    }
    for area in AREAS.iter().filter(|area| areas.contains_key(area.file)) {
        let _ = writeln!(index, "pub use {}::*;", area.file);
    }
    output.rust("crates/schema/src/generated/structures.rs", index);
    output.rust("crates/schema/src/generated/each.rs", each(model));
    let root = "//! Everything that `cargo xtask codegen` writes.\n\n\
        mod descriptions;\nmod each;\nmod enums;\npub mod ids;\nmod messages;\nmod option_sets;\nmod structures;\n\n\
        pub(crate) use descriptions::{ENUMERATIONS, SIMPLE_TYPES, STRUCTURES};\n\
        pub use enums::*;\npub use messages::message_name;\npub use option_sets::*;\npub use structures::*;\n";
    output.rust("crates/schema/src/generated.rs", root.to_owned());
    Ok(())
}

/// Import path by Rust type.
fn import_paths(model: &Model, areas: &BTreeMap<&str, Vec<&Structure>>) -> BTreeMap<String, String> {
    let mut import_paths = BTreeMap::new();
    for kind in BuiltInType::ALL {
        let name = rust_type(kind);
        if name.starts_with(|first: char| first.is_ascii_uppercase()) {
            import_paths.insert(name.to_owned(), format!("taktwerk_types::{name}"));
        }
    }
    for entry in &model.enumerations {
        import_paths.insert(entry.name.clone(), format!("crate::generated::enums::{}", entry.name));
    }
    for entry in &model.option_sets {
        import_paths.insert(entry.name.clone(), format!("crate::generated::option_sets::{}", entry.name));
    }
    for (area, structures) in areas {
        for structure in structures {
            import_paths.insert(structure.name.clone(), format!("super::{area}::{}", structure.name));
        }
    }
    import_paths
}

fn imports(
    area: &str,
    structures: &[&Structure],
    import_paths: &BTreeMap<String, String>,
    text: &mut String,
) {
    let used: BTreeSet<&String> = structures
        .iter()
        .flat_map(|structure| &structure.fields)
        .filter_map(|field| import_paths.get(&field.rust_type))
        .filter(|path| !path.starts_with(&format!("super::{area}::")))
        .collect();
    let mut modules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in used {
        if let Some((module, name)) = path.rsplit_once("::") {
            modules.entry(module).or_default().push(name);
        }
    }
    for (module, names) in modules {
        let _ = writeln!(text, "use {module}::{{{}}};", names.join(", "));
    }
}

fn one(structure: &Structure, text: &mut String) {
    let optional = structure.has_optional_fields();
    let macro_name = if optional { "structure_with_optional_fields" } else { "structure" };
    let _ = writeln!(text, "\n{macro_name}! {{\n    /// `{}` (DataType i={}).", structure.name, structure.id);
    let _ = write!(text, "    pub struct {} = {}", structure.name, structure.id);
    if let Some(encoding) = structure.binary_encoding {
        let _ = write!(text, ", {encoding}");
    }
    text.push_str(" {");
    for field in &structure.fields {
        let _ = write!(
            text,
            "\n        {}{}: {},",
            presence(field, optional),
            field.rust_name,
            field.full_type()
        );
    }
    text.push_str(if structure.fields.is_empty() { "}\n}\n" } else { "\n    }\n}\n" });
}

fn presence(field: &StructureField, optional: bool) -> &'static str {
    match (optional, field.is_optional) {
        (false, _) => "",
        (true, true) => "optional ",
        (true, false) => "required ",
    }
}

/// A macro that calls another one with all structures.
fn each(model: &Model) -> String {
    let names: Vec<&str> = model.structures.iter().map(|structure| structure.name.as_str()).collect();
    let mut text = String::from(
        "//! A list of all structures, for tests.\n\n/// Runs a macro with the names of all structures, separated by commas.\n\
         #[macro_export]\nmacro_rules! for_each_structure {\n    ($macro:ident) => {\n        $macro! {\n",
    );
    for line in names.chunks(4) {
        let _ = writeln!(text, "            {},", line.join(", "));
    }
    text.push_str("        }\n    };\n}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        assert!(matches("Call*", "CallRequest"));
        assert!(matches("*Operand", "LiteralOperand"));
        assert!(matches("*Qos*", "TransmitQosDataType"));
        assert!(matches("Read*Details*", "ReadEventDetails2"));
        assert!(matches("Write*Request", "WriteRequest"));
        assert!(!matches("ReadRequest", "HistoryReadRequest"));
        assert!(matches("*", "Anything"));
    }
}
