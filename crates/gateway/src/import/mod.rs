//! Files of other products as sources and tags: OPC Publisher's `publishednodes.json`, Kepware's tables of tags.
//!
//! What has no counterpart here is left out, and a note says so. Passwords are never taken over.
//!
//! - [`publisher`], [`kepware`]: the formats; [`section`]: sections of a configuration as text.

pub mod kepware;
pub mod publisher;
pub mod section;

use crate::fields::Mistake;
use section::Section;
use std::collections::BTreeSet;
use std::path::Path;

/// Largest file.
pub const FILE_LEN_MAX: u64 = 64 << 20;

/// What the file does not say.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// The name of the source.
    pub name: Option<String>,
    /// Where the device is: `host[:port]`.
    pub address: Option<String>,
}

/// Sections to be added to a configuration.
#[derive(Debug, Clone, Default)]
pub struct Imported {
    /// `[[source]]`
    pub sources: Vec<Section>,
    /// `[[tag]]`
    pub tags: Vec<Section>,
    /// What was left out or has to be looked at, and why.
    pub notes: Vec<String>,
}

impl Imported {
    /// The sections as they stand in a configuration.
    #[must_use]
    pub fn text(&self) -> String {
        let sections: Vec<String> = self.sources.iter().chain(&self.tags).map(ToString::to_string).collect();
        sections.join("\n")
    }
}

/// Reads a file of another product; which one is told by its content.
///
/// # Errors
/// It is none that is known, or nothing in it can be used.
pub fn read(path: &Path, text: &str, wishes: &Wishes) -> Result<Imported, Mistake> {
    let text = text.trim_start_matches('\u{feff}');
    let imported = match text.trim_start().chars().next() {
        Some('[' | '{') => publisher::read(path, text, wishes),
        _ => kepware::read(path, text, wishes),
    }?;
    if imported.tags.is_empty() {
        let why = imported.notes.first().cloned().unwrap_or_else(|| "the file is empty".to_owned());
        return Err(mistake(path, 0, format!("there is no tag that can be used: {why}"), ""));
    }
    Ok(imported)
}

fn mistake(path: &Path, line: usize, problem: impl Into<String>, hint: &str) -> Mistake {
    let (path, problem, hint) = (path.to_owned(), problem.into(), hint.to_owned());
    Mistake { path, line, key: String::new(), problem, hint }
}

/// Names that were given, so that no two tags have the same one.
#[derive(Debug, Default)]
struct Names(BTreeSet<String>);

impl Names {
    /// The name, or the first free one behind it.
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

/// A name that a source can have.
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
    fn a_file_that_is_neither_is_refused() {
        let read = |text: &str| read(Path::new("x"), text, &Wishes::default()).unwrap_err().to_string();
        assert!(read("").contains("this is neither"), "{}", read(""));
        assert!(read("a,b\n1,2\n").contains("this is neither"));
        assert!(read("[{]").contains("x:1: "), "{}", read("[{]"));
        assert!(read("[]").contains("there is no tag that can be used"));
    }

    #[test]
    fn whatever_is_imported_is_a_configuration() {
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
