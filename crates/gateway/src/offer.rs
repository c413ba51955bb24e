//! What a source offers, to help users write tags.

use crate::settings::SourceSettings;
use core::fmt::Write;
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An exploration request.
#[derive(Debug, Clone)]
pub struct Question {
    /// The settings of the source.
    pub settings: SourceSettings,
    /// How long to listen to a source that sends values on its own.
    pub within: Duration,
    /// Where to begin: a node of an OPC UA server, or an MQTT topic filter.
    pub below: Option<String>,
    /// Maximum number of offers.
    pub most: usize,
    /// Set this to end early with the results so far.
    pub stop: Arc<AtomicBool>,
}

impl Question {
    /// Whether to end early.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// One item that a source offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// Its address in the source, in readable form.
    pub address: String,
    /// The suggested name of a tag.
    pub name: String,
    /// The suggested folders of a tag.
    pub path: Vec<String>,
    /// The type of its value.
    pub kind: String,
    /// Its value, or the last message.
    pub value: String,
    /// The settings of a tag for it, with values as TOML; empty if no tag can show it.
    pub settings: Vec<(&'static str, String)>,
}

impl Offer {
    /// The section of a tag for it; `None` if no tag can show it.
    #[must_use]
    pub fn tag(&self, source: &str) -> Option<String> {
        if self.settings.is_empty() {
            return None;
        }
        let mut text = format!("[[tag]]\nsource = {}\nname = {}\n", quoted(source), quoted(&self.name));
        if !self.path.is_empty() {
            // Writing to memory cannot fail.
            let _ = writeln!(text, "path = {}", quoted(&self.path.join("/")));
        }
        for (key, value) in &self.settings {
            let _ = writeln!(text, "{key} = {value}");
        }
        Some(text)
    }
}

/// Quotes a text for TOML.
#[must_use]
pub fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_becomes_a_readable_tag() {
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
