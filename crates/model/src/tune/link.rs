//! The link of a plant file: a text, or a table of properties.

use serde::Deserialize;
use taktwerk_netem::Profile;

/// A link in a plant file: a text, or a table of properties.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a text such as \"ppp-2m,busy=30%\", or a table of properties")]
pub enum LinkSpec {
    /// `"ppp-2m,busy=30%"`.
    Text(String),
    /// `profile = "ppp-2m"`, `rate = "5M"`, `busy = "30%"` and the other properties of links.
    Table(toml::Table),
}

impl LinkSpec {
    /// Parses the link.
    ///
    /// # Errors
    /// The key, such as `link.rate`, and the problem.
    pub fn profile(&self) -> Result<Profile, (String, String)> {
        let table = match self {
            Self::Text(text) => return parse("link", text),
            Self::Table(table) => table,
        };
        let mut text = match table.get("profile") {
            Some(toml::Value::String(name)) => name.clone(),
            Some(_) => {
                return Err(("link.profile".to_owned(), "write the name of a link as a string".to_owned()));
            }
            None => String::new(),
        };
        // Without a name, the properties describe the link.
        let mut profile = if text.is_empty() { None } else { Some(parse("link.profile", &text)?) };
        let properties = table.iter().filter(|(key, _)| !matches!(key.as_str(), "profile" | "shared"));
        let mut properties: Vec<_> = properties.collect();
        properties.sort_by_key(|(key, _)| order(key));
        // One after the other, so that the key of a mistake is known.
        for (key, value) in properties {
            let key_of_link = format!("link.{key}");
            let value = match value {
                toml::Value::String(value) => value.clone(),
                toml::Value::Integer(value) => value.to_string(),
                toml::Value::Float(value) => value.to_string(),
                _ => {
                    let problem = "write a string such as \"2M\", \"10ms\" or \"30%\"";
                    return Err((key_of_link, problem.to_owned()));
                }
            };
            let value = if key.ends_with("rate") { rate(&value) } else { value };
            let comma = if text.is_empty() { "" } else { "," };
            text = format!("{text}{comma}{key}={value}");
            profile = Some(parse(&key_of_link, &text)?);
        }
        profile.map_or_else(|| parse("link.profile", &text), Ok)
    }

    /// Whether both directions share one line with the properties of `link`, as on a radio. The laboratory's emulated links do
    /// not have this property.
    ///
    /// # Errors
    /// The valid values.
    pub fn is_shared(&self, link: &Profile) -> Result<bool, &'static str> {
        let is_shared = match self {
            Self::Table(table) => match table.get("shared") {
                None => false,
                Some(toml::Value::Boolean(shared)) => *shared,
                Some(_) => return Err("write true or false"),
            },
            Self::Text(_) => false,
        };
        if is_shared && link.up != link.down {
            return Err(
                "both directions share one line, so it has the same properties in both: give one value of each \
                        instead of up- and down-",
            );
        }
        Ok(is_shared)
    }
}

/// What is for both directions comes first, so that a value for one of them counts. What changes another property comes
/// last, and `busy` after the rate of which it takes a share.
fn order(key: &str) -> u8 {
    match key {
        "busy" => 2,
        "up-busy" | "down-busy" => 3,
        "distribution" | "burst" => 4,
        key if key.starts_with("up-") || key.starts_with("down-") => 1,
        _ => 0,
    }
}

fn parse(key: &str, text: &str) -> Result<Profile, (String, String)> {
    text.parse()
        .map_err(|error: taktwerk_netem::profile::ParseProfileError| (key.to_owned(), error.to_string()))
}

/// `5M` is short for `5mbit`; a bare number is in bits per second.
fn rate(text: &str) -> String {
    let text = text.trim();
    let unit = |number: &str, unit: &str| format!("{number}{unit}");
    if let Some(number) = text.strip_suffix(['k', 'K']) {
        unit(number, "kbit")
    } else if let Some(number) = text.strip_suffix('M') {
        unit(number, "mbit")
    } else if let Some(number) = text.strip_suffix('G') {
        unit(number, "gbit")
    } else if let Ok(bits) = text.parse::<f64>() {
        format!("{}kbit", bits / 1e3)
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::problem::tests::problem;

    #[test]
    fn a_value_for_one_direction_counts_more_than_one_for_both() {
        let rates = |sets: &[&str]| {
            let link = problem(sets).link;
            (link.up.rate, link.down.rate)
        };
        assert_eq!(rates(&["link.rate=5M", "link.down-rate=1M"]), (Some(5_000_000), Some(1_000_000)));
        assert_eq!(rates(&["link.rate=5M", "link.up-rate=1M"]), (Some(1_000_000), Some(5_000_000)));
        let lossy = problem(&["link.down-loss=30%", "link.loss=0%"]).link;
        assert_eq!((lossy.up.loss.share(), lossy.down.loss.share()), (0.0, 0.3));
    }
}
