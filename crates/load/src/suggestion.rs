//! The nearest of some names to a misspelt one.

/// The name that was probably meant, if one is near enough.
pub fn nearest<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let text = text.to_lowercase();
    names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&text, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// The same as a question behind a message; empty if no name is near.
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
