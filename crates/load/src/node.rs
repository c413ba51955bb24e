//! Notation of nodes on the command line.
//!
//! - a NodeId: `i=85`, `ns=2;s=Name`, or with the namespace by name, `nsu=http://…;s=Name`;
//! - a browse path from the root: `/Objects/2:Boiler`, with `*` and `?` in names as wild cards;
//! - either of them, followed by an attribute and an index range: `i=2258#DataType`, `ns=2;s=Array#Value[0:2]`.
//!
//! In a path, `&` escapes the next character (Part 4 Annex A.2): `2:a&/b`.

use crate::attribute::{Attribute, ParseAttributeError};
use std::fmt;
use std::str::FromStr;
use taktwerk_types::{ExpandedNodeId, NumericRange, ParseNodeIdError};

/// A node by id or by path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeSpec {
    /// By id; the namespace may be a URI.
    Id(ExpandedNodeId),
    /// By browse path from the root (`i=84`).
    Path(Vec<Step>),
}

/// One name of a browse path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The namespace, if given. Without it, a wild card matches all namespaces, and a plain name is in namespace 0.
    pub namespace_index: Option<u16>,
    /// The characters of the name.
    name: Vec<Letter>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letter {
    Plain(char),
    /// `?`
    One,
    /// `*`
    Any,
}

/// A node with an optional attribute and range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// The node.
    pub node: NodeSpec,
    /// The attribute, if given.
    pub attribute: Option<Attribute>,
    /// The index range; empty for the whole value.
    pub range: String,
}

/// The text is not a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseNodeError {
    /// An invalid NodeId.
    #[error("{0}; or a browse path such as /Objects/2:Boiler (quote it: shells treat ; and * specially)")]
    Id(#[from] ParseNodeIdError),
    /// An empty name in a path.
    #[error("{0:?} has an empty name: write /Objects/2:Boiler, and && for a literal &")]
    EmptyName(String),
    /// An unknown attribute.
    #[error(transparent)]
    Attribute(#[from] ParseAttributeError),
    /// An invalid index range.
    #[error("{0:?} is not an index range: write [3], [0:2] or [0:1,2]")]
    Range(String),
}

impl FromStr for NodeSpec {
    type Err = ParseNodeError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        match text.strip_prefix('/') {
            None => Ok(Self::Id(text.parse()?)),
            Some("") => Ok(Self::Path(Vec::new())),
            Some(path) => {
                let steps: Option<Vec<Step>> = split_steps(path).iter().map(|step| Step::new(step)).collect();
                Ok(Self::Path(steps.ok_or_else(|| ParseNodeError::EmptyName(text.to_owned()))?))
            }
        }
    }
}

/// Splits at each `/` that is not escaped.
fn split_steps(path: &str) -> Vec<String> {
    let mut steps = vec![String::new()];
    let mut escaped = false;
    for character in path.chars() {
        if character == '/' && !escaped {
            steps.push(String::new());
            continue;
        }
        escaped = character == '&' && !escaped;
        if let Some(step) = steps.last_mut() {
            step.push(character);
        }
    }
    steps
}

impl Step {
    fn new(text: &str) -> Option<Self> {
        let (namespace_index, name) = match text.split_once(':') {
            Some((index, name)) if !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()) => {
                (Some(index.parse().ok()?), name)
            }
            _ => (None, text),
        };
        let mut letters = Vec::new();
        let mut characters = name.chars();
        while let Some(character) = characters.next() {
            letters.push(match character {
                '&' => Letter::Plain(characters.next()?),
                '*' => Letter::Any,
                '?' => Letter::One,
                other => Letter::Plain(other),
            });
        }
        (!letters.is_empty()).then_some(Self { namespace_index, name: letters })
    }

    /// The name, if it has no wild cards.
    pub fn plain(&self) -> Option<String> {
        self.name
            .iter()
            .map(|letter| match letter {
                Letter::Plain(character) => Some(*character),
                Letter::One | Letter::Any => None,
            })
            .collect()
    }

    /// Whether a BrowseName matches.
    pub fn matches(&self, namespace_index: u16, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        self.namespace_index.is_none_or(|index| index == namespace_index) && matches(&self.name, &name)
    }
}

/// Wild-card matching in O(pattern · name): on a mismatch, only the last `*` is extended.
fn matches(pattern: &[Letter], name: &[char]) -> bool {
    let (mut at, mut in_name) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(character) = name.get(in_name) {
        match pattern.get(at) {
            Some(Letter::Any) => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(Letter::One) => (at, in_name) = (at + 1, in_name + 1),
            Some(Letter::Plain(wanted)) if wanted == character => (at, in_name) = (at + 1, in_name + 1),
            _ => match star {
                Some((star_at, swallowed)) => {
                    star = Some((star_at, swallowed + 1));
                    (at, in_name) = (star_at + 1, swallowed + 1);
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|letter| *letter == Letter::Any))
}

impl FromStr for Operand {
    type Err = ParseNodeError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Ids may contain any character; '#' is special only before the name of an attribute.
        if let Some((node, suffix)) = text.rsplit_once('#') {
            let (name, range) = match suffix.split_once('[') {
                None => (suffix, Some("")),
                Some((name, rest)) => (name, rest.strip_suffix(']')),
            };
            if let (Ok(attribute), false) = (name.parse(), name.bytes().all(|byte| byte.is_ascii_digit())) {
                let range = range.ok_or_else(|| ParseNodeError::Range(suffix.to_owned()))?;
                return Ok(Self {
                    node: node.parse()?,
                    attribute: Some(attribute),
                    range: index_range(range)?.to_owned(),
                });
            }
        }
        match text.parse() {
            Ok(node) => Ok(Self { node, attribute: None, range: String::new() }),
            // The whole text is not a node: perhaps the attribute is misspelt.
            Err(error) => match text.rsplit_once('#') {
                Some((node, suffix)) if node.parse::<NodeSpec>().is_ok() => {
                    let name = suffix.split('[').next().unwrap_or(suffix);
                    Err(name.parse::<Attribute>().err().map_or(error, ParseNodeError::from))
                }
                _ => Err(error),
            },
        }
    }
}

/// Validates an index range before sending it, because the server would only return a status code.
pub fn index_range(text: &str) -> Result<&str, ParseNodeError> {
    NumericRange::parse(text).map(|_| text).map_err(|_| ParseNodeError::Range(text.to_owned()))
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(index) = self.namespace_index {
            write!(f, "{index}:")?;
        }
        self.name.iter().try_for_each(|letter| match letter {
            Letter::Plain(character) if "/&*?".contains(*character) => write!(f, "&{character}"),
            Letter::Plain(character) => write!(f, "{character}"),
            Letter::One => f.write_str("?"),
            Letter::Any => f.write_str("*"),
        })
    }
}

impl fmt::Display for NodeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Path(steps) if steps.is_empty() => f.write_str("/"),
            Self::Path(steps) => steps.iter().try_for_each(|step| write!(f, "/{step}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<Step> {
        match text.parse().unwrap() {
            NodeSpec::Path(steps) => steps,
            NodeSpec::Id(id) => panic!("{id} is an id"),
        }
    }

    #[test]
    fn ids_and_paths() {
        for text in ["i=85", "ns=2;s=a/b", "nsu=http://a/;i=7", "/", "/Objects/2:Boiler", "/Objects/2:a&/b/*"]
        {
            assert_eq!(text.parse::<NodeSpec>().unwrap().to_string(), text);
        }
        let path = steps("/Objects/2:a&/b");
        assert_eq!((path[0].namespace_index, path[0].plain().as_deref()), (None, Some("Objects")));
        assert_eq!((path[1].namespace_index, path[1].plain().as_deref()), (Some(2), Some("a/b")));
        for bad in ["", "Objects", "ns=x;i=1", "//Objects", "/Objects/", "/a&"] {
            assert!(bad.parse::<NodeSpec>().is_err(), "{bad}");
        }
        // A colon without a number before it belongs to the name.
        assert_eq!(steps("/urn:a")[0].plain().as_deref(), Some("urn:a"));
    }

    #[test]
    fn wild_cards() {
        let step = |text: &str| steps(&format!("/{text}")).remove(0);
        assert!(step("signal*").matches(1, "signal17") && !step("signal*").matches(1, "a signal"));
        assert!(step("2:*").matches(2, "anything") && !step("2:*").matches(1, "anything"));
        assert!(step("*1?3*").matches(0, "a103b") && !step("*1?3*").matches(0, "a13b"));
        assert!(step("a*b*c").matches(0, "aXbYbZc") && !step("a*b*c").matches(0, "aXbYbZ"));
        assert!(step("&*").matches(0, "*") && !step("&*").matches(0, "x"));
        assert_eq!(step("a*").plain(), None);
    }

    #[test]
    fn operands() {
        let operand: Operand = "ns=2;s=Array#Value[0:2]".parse().unwrap();
        assert_eq!((operand.attribute, operand.range.as_str()), (Some(Attribute::VALUE), "0:2"));
        assert_eq!(operand.node.to_string(), "ns=2;s=Array");
        let operand: Operand = "ns=2;s=pump#7".parse().unwrap();
        assert_eq!((operand.attribute, operand.node.to_string().as_str()), (None, "ns=2;s=pump#7"));
        assert!("i=1#Value[2:1]".parse::<Operand>().is_err() && "i=1#Value[1".parse::<Operand>().is_err());
    }
}
