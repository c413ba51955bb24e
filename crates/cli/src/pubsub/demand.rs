//! Checks that a configuration with message security has keys. Without keys, secured messages would silently be neither
//! sent nor received.

use super::keys::Keys;
use crate::failure::Failure;
use taktwerk::pubsub::SecurityMode;
use taktwerk::pubsub::config::{Configuration, GroupSecurity};

/// A part of a configuration with message security.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Secured {
    /// Its name, such as `writer group "fast"`.
    pub(crate) element: String,
    /// The security group.
    pub(crate) group: String,
    /// Whether the configuration names a key service for the group.
    pub(crate) has_services: bool,
}

/// The side of a configuration that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// WriterGroups.
    Writers,
    /// DataSetReaders.
    Readers,
}

/// The enabled parts of a side that have message security.
pub(crate) fn secured(configuration: &Configuration, side: Side) -> Vec<Secured> {
    let has_default = !configuration.default_security_key_services.is_empty();
    let mut all = Vec::new();
    let mut look = |element: String, security: &GroupSecurity| {
        if security.mode != SecurityMode::None {
            let has_services = has_default || !security.security_key_services.is_empty();
            all.push(Secured { element, group: security.security_group_id.clone(), has_services });
        }
    };
    for connection in configuration.connections.iter().filter(|connection| connection.enabled) {
        if side == Side::Writers {
            for group in connection.writer_groups.iter().filter(|group| group.enabled) {
                look(format!("writer group {:?}", group.name), &group.security);
            }
            continue;
        }
        for group in connection.reader_groups.iter().filter(|group| group.enabled) {
            for reader in group.readers.iter().filter(|reader| reader.enabled) {
                let security = reader.security.as_ref().unwrap_or(&group.security);
                look(format!("reader {:?}", reader.name), security);
            }
        }
    }
    all
}

/// Refuses parts that can never have keys, and keys that no part uses: otherwise messages would be sent unencrypted.
pub(super) fn check(configuration: &Configuration, side: Side, keys: Option<&Keys>) -> Result<(), Failure> {
    let secured = secured(configuration, side);
    let Some(keys) = keys else {
        let Some(first) = secured.first() else { return Ok(()) };
        let Secured { element, group, has_services } = first;
        let service = if *has_services { ", which the configuration names" } else { "" };
        return Err(Failure::Usage(format!(
            "{element} has message security with the keys of {group:?}, but no keys are given: pass --keys FILE (create one \
             with: taktwerk pubsub keys {group} > {group}.keys) or --key-service SERVER{service}"
        )));
    };
    if secured.is_empty() {
        let what = match side {
            Side::Writers => "sent",
            Side::Readers => "received",
        };
        return Err(Failure::Usage(format!(
            "keys are given, but nothing would be {what} with message security: pass --security sign-and-encrypt"
        )));
    }
    let Some(known) = keys.groups() else { return Ok(()) };
    match secured.iter().find(|one| !known.contains(&one.group)) {
        Some(Secured { element, group, .. }) => Err(Failure::Usage(format!(
            "{element} has message security with the keys of {group:?}, but --keys has those of {}: pass the file with \
             the keys of {group:?} too",
            known.iter().map(|group| format!("{group:?}")).collect::<Vec<_>>().join(", ")
        ))),
        None => Ok(()),
    }
}

/// Fails if no keys have arrived: then no secured message was sent or received.
pub(super) fn check_received(keys: Option<&super::keys::Progress>) -> Result<(), Failure> {
    match keys.and_then(super::keys::Progress::failure) {
        Some(why) => Err(Failure::Connect(format!(
            "no keys were received, so no secured message was sent or received: {why}"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk::pubsub::config::toml::from_toml;

    const TEXT: &str = r#"
[[connection]]
name = "udp"
publisher-id = { uint16 = 18 }
url = "opc.udp://239.0.0.1:4848"
[[connection.writer-group]]
name = "v"
id = 1
interval = 200.0
security = { mode = "Sign", group = "plant" }
[[connection.reader-group]]
name = "in"
readers = [{ name = "r", writer-id = 4 }]
"#;

    #[test]
    fn secured_groups_need_keys() {
        let configuration = from_toml(TEXT).unwrap();
        let error = check(&configuration, Side::Writers, None).unwrap_err().to_string();
        assert!(
            error.contains("\"v\"") && error.contains("\"plant\"") && error.contains("--keys"),
            "{error}"
        );
        assert!(check(&configuration, Side::Readers, None).is_ok());
        let mut stronger = configuration;
        stronger.strengthen_readers(SecurityMode::Sign, "other");
        stronger.strengthen_writers(SecurityMode::SignAndEncrypt, "other");
        let groups: Vec<_> = [Side::Writers, Side::Readers]
            .iter()
            .flat_map(|side| secured(&stronger, *side))
            .map(|one| one.group)
            .collect();
        assert_eq!(groups, ["plant", "other"]);
        assert_eq!(stronger.connections[0].writer_groups[0].security.mode, SecurityMode::SignAndEncrypt);
        stronger.strengthen_writers(SecurityMode::Sign, "other");
        assert_eq!(stronger.connections[0].writer_groups[0].security.mode, SecurityMode::SignAndEncrypt);
    }
}
