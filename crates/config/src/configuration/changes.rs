//! The settings that differ between two configuration files.

use super::ConfigFile;
use toml::{Table, Value};

impl ConfigFile {
    /// The settings that differ in `newer`, as `section.key`. A list, such as all `[[namespace]]` sections, is one
    /// setting. Comments, order and layout are ignored. A default that is written out counts as a change.
    ///
    /// ```
    /// use std::path::Path;
    /// use taktwerk_config::ConfigFile;
    ///
    /// let text = "[security]\nnone = true\n[identities]\nanonymous = true\n";
    /// let file = ConfigFile::parse(Path::new("server.toml"), text)?;
    /// let newer = format!("{text}[limits]\nsessions = 5\n");
    /// let newer = ConfigFile::parse(Path::new("server.toml"), &newer)?;
    /// assert_eq!(file.changes(&newer), ["limits.sessions"]);
    /// # Ok::<(), taktwerk_config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn changes(&self, newer: &Self) -> Vec<String> {
        let mut found = Vec::new();
        compare("", &self.table(), &newer.table(), &mut found);
        found
    }

    fn table(&self) -> Table {
        // The text was parsed before, so it is valid TOML.
        self.text.parse().unwrap_or_default()
    }
}

fn compare(path: &str, old: &Table, new: &Table, found: &mut Vec<String>) {
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    let none = Table::new();
    for name in names {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match (old.get(name), new.get(name)) {
            (old, new) if old == new => {}
            (Some(Value::Table(old)), Some(Value::Table(new))) => compare(&path, old, new, found),
            (Some(Value::Table(old)), None) => compare(&path, old, &none, found),
            (None, Some(Value::Table(new))) => compare(&path, &none, new, found),
            _ => found.push(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const BASE: &str = "[security]\nnone = true\n[identities]\nanonymous = true\n";

    fn changes(old: &str, new: &str) -> Vec<String> {
        let file =
            |text: &str| ConfigFile::parse(Path::new("server.toml"), &format!("{BASE}{text}")).unwrap();
        file(old).changes(&file(new))
    }

    #[test]
    fn each_setting_is_named_once() {
        let namespace = "[[namespace]]\nuri = \"urn:a\"\n";
        assert_eq!(changes("", namespace), ["namespace"]);
        assert_eq!(changes(namespace, namespace), [""; 0]);
        let twice = format!("{namespace}{namespace}").replacen("urn:a", "urn:b", 1);
        assert_eq!(changes(namespace, &twice), ["namespace"]);
        assert_eq!(
            changes("[limits]\nsessions = 1\n[audit]\nupdates = false\n", "[limits]\nsessions = 2\n"),
            ["audit.updates", "limits.sessions"]
        );
    }

    #[test]
    fn comments_order_and_empty_sections_are_ignored() {
        let old = "[limits]\nsessions = 1\nsession_timeout = 5.0\n";
        let new = "# a remark\n[audit]\n[limits]\nsession_timeout  =  5.0\nsessions = 1 # few\n";
        assert_eq!(changes(old, new), [""; 0]);
    }
}
