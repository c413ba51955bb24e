//! Converts names of the specification to Rust names.

/// Splits `OPCUANamespaceMetadata` into `OPCUA`, `Namespace`, `Metadata`. Digits belong to the word before them.
fn words(name: &str) -> Vec<String> {
    let characters: Vec<char> = name.chars().collect();
    let mut words: Vec<String> = vec![String::new()];
    for (index, &character) in characters.iter().enumerate() {
        let previous = index.checked_sub(1).and_then(|before| characters.get(before)).copied();
        let next = characters.get(index + 1).copied();
        if !character.is_ascii_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let starts = character.is_ascii_uppercase()
            && previous.is_some_and(|previous| {
                previous.is_ascii_lowercase()
                    || previous.is_ascii_digit()
                    || previous.is_ascii_uppercase() && next.is_some_and(|next| next.is_ascii_lowercase())
            });
        if starts {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(character);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// `NodeIdUnknown` as `NODE_ID_UNKNOWN`. A leading digit gets an underscore before it.
pub(crate) fn constant(name: &str) -> String {
    let joined = words(name).join("_").to_ascii_uppercase();
    if joined.starts_with(|first: char| first.is_ascii_digit()) { format!("_{joined}") } else { joined }
}

/// `NodesToRead` as `nodes_to_read`.
pub(crate) fn field(name: &str) -> String {
    let joined = words(name).join("_").to_ascii_lowercase();
    if KEYWORDS.contains(&joined.as_str()) { format!("r#{joined}") } else { joined }
}

/// Keywords that occur as field names.
const KEYWORDS: [&str; 8] = ["type", "move", "ref", "in", "enum", "struct", "final", "abstract"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(constant("Server_ServerStatus_CurrentTime"), "SERVER_SERVER_STATUS_CURRENT_TIME");
        assert_eq!(constant("OPCUANamespaceMetadata"), "OPCUA_NAMESPACE_METADATA");
        assert_eq!(constant("BadNodeIdUnknown"), "BAD_NODE_ID_UNKNOWN");
        assert_eq!(constant("X509IdentityToken"), "X509_IDENTITY_TOKEN");
        assert_eq!(constant("3DVector"), "_3_D_VECTOR");
        assert_eq!(field("NodesToRead"), "nodes_to_read");
        assert_eq!(field("Type"), "r#type");
    }
}
