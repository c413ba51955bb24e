//! What a source offers: for people who write tags.

use crate::settings::SourceSettings;
use core::fmt::Write;
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is to be found out.
#[derive(Debug, Clone)]
pub struct Question {
    /// The settings of the source.
    pub settings: SourceSettings,
    /// How long to listen to a source whose values come by themselves.
    pub within: Duration,
    /// Where to begin: a node of an OPC UA server, a filter of MQTT topics.
    pub below: Option<String>,
    /// Most offers.
    pub most: usize,
    /// Set to end early, with what was found until then.
    pub stop: Arc<AtomicBool>,
}

impl Question {
    /// Whether to end early.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// One thing that a source offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// Its address in the source, as people read it.
    pub address: String,
    /// The name that a tag would have.
    pub name: String,
    /// The folders that a tag would have.
    pub path: Vec<String>,
    /// The type of its value.
    pub kind: String,
    /// Its value, or the last message.
    pub value: String,
    /// The settings of a tag that shows it, with values as TOML; none if no tag can.
    pub settings: Vec<(&'static str, String)>,
}

impl Offer {
    /// The section of a tag that shows it; `None` if no tag can.
    #[must_use]
    pub fn tag(&self, source: &str) -> Option<String> {
        if self.settings.is_empty() {
            return None;
        }
        let mut text = format!("[[tag]]\nsource = {}\nname = {}\n", quoted(source), quoted(&self.name));
        if !self.path.is_empty() {
            // Writing into memory does not fail.
            let _ = writeln!(text, "path = {}", quoted(&self.path.join("/")));
        }
        for (key, value) in &self.settings {
            let _ = writeln!(text, "{key} = {value}");
        }
        Some(text)
    }
}

/// A text as TOML writes it.
#[must_use]
pub fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_becomes_a_tag_that_can_be_read_back() {
        let offer = Offer {
            name: "Say \"T\"".to_owned(),
            path: vec!["a".to_owned(), "b\\c".to_owned()],
            settings: vec![("topic", quoted("line/\n1")), ("expand", "true".to_owned())],
            ..Offer::default()
        };
        let text = offer.tag("s").unwrap();
        let read: toml::Table = text.parse().unwrap();
        let tag = &read["tag"][0];
        assert_eq!(tag["name"].as_str(), Some("Say \"T\""));
        assert_eq!((tag["path"].as_str(), tag["topic"].as_str()), (Some("a/b\\c"), Some("line/\n1")));
        assert_eq!(Offer::default().tag("s"), None);
    }
}
