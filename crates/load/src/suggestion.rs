//! Suggests the name that was probably meant, as the end of a message.

use taktwerk_explain::nearest;

/// The suggestion; empty if no name is similar.
pub fn question<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(text, names).map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_found() {
        let names = ["Value", "DataType", "ValueRank", "Operator", "Observer"];
        assert_eq!(nearest("Valeu", names), Some("Value"));
        assert_eq!(nearest("operatr", names), Some("Operator"));
        assert_eq!(nearest("xyz", names), None);
        assert_eq!(question("datatyp", names), "; did you mean DataType?");
    }
}
