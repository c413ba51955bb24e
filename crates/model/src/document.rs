//! A TOML document with values from the command line, and the positions of its keys.

use taktwerk_explain::{Mistake, key_span, line_of};

/// A TOML document with replaced values.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    file: String,
    text: String,
    sets: Vec<String>,
    table: toml::Table,
}

/// The document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It is not TOML.
    #[error("{}", mistake.within(file))]
    Toml {
        /// The file.
        file: String,
        /// Position and reason.
        mistake: Mistake,
    },
    /// `--set` is not `key=value`, or its key cannot be set.
    #[error("--set {set}: {problem}")]
    Set {
        /// The option's value.
        set: String,
        /// The problem.
        problem: String,
    },
}

impl Document {
    /// Parses a text and applies `sets` of the form `table.key=value`. A value is TOML, or else a string.
    /// `signals.0.count` refers to the first entry of an array of tables.
    ///
    /// # Errors
    /// See [`DocumentError`].
    pub fn parse(text: &str, file: &str, sets: &[String]) -> Result<Self, DocumentError> {
        let toml = |error: toml::de::Error| DocumentError::Toml {
            file: file.to_owned(),
            mistake: Mistake::of(&error, Some(text)),
        };
        let mut table: toml::Table = toml::from_str(text).map_err(toml)?;
        for set in sets {
            apply(&mut table, set)
                .map_err(|problem| DocumentError::Set { set: set.clone(), problem: problem.to_owned() })?;
        }
        Ok(Self { file: file.to_owned(), text: text.to_owned(), sets: sets.to_vec(), table })
    }

    /// All values, including replaced ones.
    #[must_use]
    pub fn table(&self) -> &toml::Table {
        &self.table
    }

    /// The file, for messages.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Deserializes the document.
    ///
    /// # Errors
    /// With line and column of the mistake in the text.
    pub fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, DocumentError> {
        let error = |mistake| DocumentError::Toml { file: self.file.clone(), mistake };
        let told = |one: toml::de::Error| error(Mistake::of(&one, Some(&self.text)));
        if self.sets.is_empty() {
            return toml::from_str(&self.text).map_err(told);
        }
        self.table.clone().try_into().map_err(|one: toml::de::Error| {
            // If the text alone is invalid, report its line; otherwise a replaced value is wrong.
            if let Err(own) = toml::from_str::<T>(&self.text) {
                return told(own);
            }
            let Mistake { line, problem, hint } = Mistake::of(&one, None);
            let problem = format!("with --set {}: {problem}", self.sets.join(" --set "));
            error(Mistake { line, problem, hint })
        })
    }

    /// The line of a key in the text, counted from 1.
    #[must_use]
    pub fn line(&self, key: &str) -> Option<usize> {
        key_span(&self.text, key).map(|span| line_of(&self.text, span.start))
    }

    /// Position of a key: `plant.toml:12: link.rate`, or `--set link.rate=0`.
    #[must_use]
    pub fn place(&self, key: &str) -> String {
        // Of the key, or of a table that has it.
        let is_it = |set: &&String| {
            let name = set.split('=').next().unwrap_or_default().trim();
            key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if let Some(set) = self.sets.iter().rev().find(is_it) {
            return format!("--set {set}");
        }
        match self.line(key) {
            Some(line) => format!("{}:{line}: {key}", self.file),
            None => format!("{}: {key}", self.file),
        }
    }
}

fn apply(table: &mut toml::Table, set: &str) -> Result<(), &'static str> {
    let (path, value) = set.split_once('=').ok_or("write key=value, such as link.rate=5M")?;
    let value = value.trim();
    let value: toml::Value = toml::from_str::<toml::Table>(&format!("value = {value}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| toml::Value::String(value.to_owned()));
    let path: Vec<&str> = path.trim().split('.').collect();
    if path.iter().any(|part| part.is_empty()) {
        return Err("the key has an empty part");
    }
    insert(table, &path, value)
}

fn insert(table: &mut toml::Table, path: &[&str], value: toml::Value) -> Result<(), &'static str> {
    let Some((first, rest)) = path.split_first() else { return Err("the key is empty") };
    if rest.is_empty() {
        table.insert((*first).to_owned(), value);
        return Ok(());
    }
    let child = table.entry((*first).to_owned()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
    match child {
        toml::Value::Table(child) => insert(child, rest, value),
        toml::Value::Array(array) => {
            let (index, rest) = rest.split_first().ok_or("give the entry's number, starting at 0")?;
            let index: usize = index.parse().map_err(|_| "give the entry's number, starting at 0")?;
            let entry = array.get_mut(index).ok_or("the list has fewer entries; numbers start at 0")?;
            match entry {
                toml::Value::Table(child) if !rest.is_empty() => insert(child, rest, value),
                entry => {
                    *entry = value;
                    Ok(())
                }
            }
        }
        _ => Err("a part of the key is not a table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "name = \"x\"\n\n[link]\nrate = \"2M\"\n\n[[signals]]\ncount = 5\n\n[[signals]]\ncount = 7\n";

    fn read(sets: &[&str]) -> toml::Table {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        Document::parse(TEXT, "p.toml", &sets).unwrap().read().unwrap()
    }

    #[test]
    fn values_are_replaced() {
        let table = read(&[
            "link.rate=5M",
            "signals.1.count=9",
            "tune.seeds = 3",
            "tune.search.publishing_ms=[1, 2]",
        ]);
        assert_eq!(table["link"]["rate"].as_str(), Some("5M"));
        assert_eq!(table["signals"][1]["count"].as_integer(), Some(9));
        assert_eq!(table["signals"][0]["count"].as_integer(), Some(5));
        assert_eq!(table["tune"]["seeds"].as_integer(), Some(3));
        assert_eq!(table["tune"]["search"]["publishing_ms"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn mistakes_name_the_option() {
        for (set, hint) in [
            ("link", "key=value"),
            ("name.x=1", "not a table"),
            ("signals.count=1", "entry's number"),
            ("signals.4.count=1", "fewer"),
            ("link..rate=1", "empty part"),
        ] {
            let error = Document::parse(TEXT, "p.toml", &[set.to_owned()]).unwrap_err().to_string();
            assert!(error.contains(hint) && error.contains(set), "{error}");
        }
        let error = Document::parse("name = ", "p.toml", &[]).unwrap_err().to_string();
        assert!(error.starts_with("p.toml:1: "), "{error}");
    }

    #[test]
    fn places_have_lines() {
        let document = Document::parse(TEXT, "p.toml", &["link.busy=2".to_owned()]).unwrap();
        assert_eq!(document.place("link.rate"), "p.toml:4: link.rate");
        assert_eq!(document.place("signals.1.count"), "p.toml:10: signals.1.count");
        assert_eq!(document.place("link.busy"), "--set link.busy=2");
        // For a missing key, its table.
        assert_eq!(document.place("link.delay"), "p.toml:3: link.delay");
        assert_eq!(document.place("tune.seeds"), "p.toml: tune.seeds");
    }
}
