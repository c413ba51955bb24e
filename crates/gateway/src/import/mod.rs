//! Imports files of other products as sources and tags: OPC Publisher's `publishednodes.json`, Kepware's tag tables.
//!
//! Unsupported settings are skipped with a note. Passwords are never imported.
//!
//! - [`publisher`], [`kepware`]: the formats; [`section`]: sections of a configuration as text.

pub mod kepware;
pub mod publisher;
pub mod section;

use crate::fields::Mistake;
use section::Section;
use std::collections::BTreeSet;
use std::path::Path;

/// Largest file in bytes.
pub const FILE_LEN_MAX: u64 = 64 << 20;

/// Information that the file lacks.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// The name of the source.
    pub name: Option<String>,
    /// The address of the device: `host[:port]`.
    pub address: Option<String>,
}

/// Sections to be added to a configuration.
#[derive(Debug, Clone, Default)]
pub struct Imported {
    /// `[[source]]`
    pub sources: Vec<Section>,
    /// `[[tag]]`
    pub tags: Vec<Section>,
    /// What was skipped or must be checked, and why.
    pub notes: Vec<String>,
}

impl Imported {
    /// The text of the sections.
    #[must_use]
    pub fn text(&self) -> String {
        let sections: Vec<String> = self.sources.iter().chain(&self.tags).map(ToString::to_string).collect();
        sections.join("\n")
    }
}

/// Reads a file of another product. The format is detected from the content.
///
/// # Errors
/// The format is unknown, or nothing can be used.
pub fn read(path: &Path, text: &str, wishes: &Wishes) -> Result<Imported, Mistake> {
    let text = text.trim_start_matches('\u{feff}');
    let imported = match text.trim_start().chars().next() {
        Some('[' | '{') => publisher::read(path, text, wishes),
        _ => kepware::read(path, text, wishes),
    }?;
    if imported.tags.is_empty() {
        let why = imported.notes.first().cloned().unwrap_or_else(|| "the file is empty".to_owned());
        return Err(mistake(path, 0, format!("no tag can be imported: {why}"), ""));
    }
    Ok(imported)
}

fn mistake(path: &Path, line: usize, problem: impl Into<String>, hint: &str) -> Mistake {
    let (path, problem, hint) = (path.to_owned(), problem.into(), hint.to_owned());
    Mistake { path, line, key: String::new(), problem, hint }
}

/// Names in use, to keep tag names unique.
#[derive(Debug, Default)]
struct Names(BTreeSet<String>);

impl Names {
    /// The name, or the first free one derived from it.
    fn free(&mut self, name: &str, taken_in: &str) -> String {
        let name: String = name
            .trim()
            .chars()
            .map(|char| if char.is_control() || char == '/' { '_' } else { char })
            .collect();
        let name = if name.is_empty() { "_".to_owned() } else { name.chars().take(100).collect() };
        let mut free = name.clone();
        let mut number = 1;
        while !self.0.insert(format!("{taken_in}/{free}")) {
            number += 1;
            free = format!("{name} ({number})");
        }
        free
    }
}

/// A valid source name.
fn source_name(text: &str) -> String {
    let name: String = text
        .trim()
        .chars()
        .map(|char| if char.is_control() || char == '/' { '_' } else { char })
        .take(50)
        .collect();
    if name.is_empty() { "source".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GatewayConfig;

    #[test]
    fn a_file_of_unknown_format_is_rejected() {
        let read = |text: &str| read(Path::new("x"), text, &Wishes::default()).unwrap_err().to_string();
        assert!(read("").contains("the format is unknown"), "{}", read(""));
        assert!(read("a,b\n1,2\n").contains("the format is unknown"));
        assert!(read("[{]").contains("x:1: "), "{}", read("[{]"));
        assert!(read("[]").contains("no tag can be imported"));
    }

    #[test]
    fn every_import_is_a_valid_configuration() {
        let publisher = r#"[{"EndpointUrl": "opc.tcp://a:4840", "OpcNodes": [{"Id": "i=2258"},
            {"Id": "ns=2;s=A/\"B\"", "DisplayName": "x/y"}, {"Id": "ns=2;s=C", "DisplayName": "x/y"}]}]"#;
        let kepware = "Tag Name,Address,Data Type,Client Access,Scan Rate,Scaling,Raw Low,Raw High,Scaled Low,Scaled High,\
                       Clamp Low,Clamp High,Eng Units,Negate Value\n\
                       G.A,400001,Word,R/W,100,Linear,0,1000,0,100,1,1,°C,1\nG.B,400003.20H,String,RO,100,,,,,,,,,\n\
                       C,000001,Boolean,R/W,100,None,,,,,,,,\nD,400010[4],Short Array,RO,200,,,,,,,,,\n";
        let wishes = Wishes { name: None, address: Some("plc".to_owned()) };
        for (text, count) in [(publisher, 3), (kepware, 4)] {
            let imported = read(Path::new("x"), text, &wishes).unwrap();
            let config = GatewayConfig::parse(Path::new("g"), &imported.text());
            assert_eq!(config.unwrap().unwrap().tag_count(), count, "{}", imported.text());
        }
    }
}
