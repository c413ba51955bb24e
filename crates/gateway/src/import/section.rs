//! A section of a configuration file as text.

use core::fmt;
use toml::Value;

/// A section: `[[source]]` or `[[tag]]` with its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    kind: &'static str,
    entries: Vec<(&'static str, Value)>,
    comments: Vec<String>,
}

impl Section {
    /// A section without settings.
    #[must_use]
    pub fn new(kind: &'static str) -> Self {
        Self { kind, entries: Vec::new(), comments: Vec::new() }
    }

    /// Adds a setting.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.entries.push((key, value.into()));
        self
    }

    /// Adds a setting if there is a value.
    #[must_use]
    pub fn maybe(self, key: &'static str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Adds a comment line.
    #[must_use]
    pub fn comment(mut self, text: impl Into<String>) -> Self {
        self.comments.push(text.into());
        self
    }

    /// A setting.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for comment in &self.comments {
            writeln!(f, "# {}", comment.replace(char::is_control, " "))?;
        }
        writeln!(f, "[[{}]]", self.kind)?;
        for (key, value) in &self.entries {
            writeln!(f, "{key} = {value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_can_be_read_back() {
        let section = Section::new("tag")
            .comment("one\ntwo")
            .with("name", "a \"b\"\n")
            .with("scale", 0.5)
            .maybe("units", None::<&str>);
        let text = section.to_string();
        assert!(text.starts_with("# one two\n[[tag]]\n"), "{text}");
        let read: toml::Table = text.parse().unwrap();
        assert_eq!(read["tag"][0]["name"].as_str(), Some("a \"b\"\n"));
        assert_eq!(read["tag"][0]["scale"].as_float(), Some(0.5));
        assert_eq!(section.get("units"), None);
    }
}
