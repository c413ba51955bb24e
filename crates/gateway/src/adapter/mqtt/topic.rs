//! Topics, filters with wildcards, and the text matched by wildcards.

/// Longest topic that is processed.
pub const TOPIC_LEN_MAX: usize = 1024;

/// A filter of topics: `plant/+/temperature`, `plant/#`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter(Vec<String>);

impl Filter {
    /// Parses a filter; `None` if a wildcard is at an invalid position (MQTT 5 §4.7.1).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || text.len() > TOPIC_LEN_MAX || text.contains('\0') {
            return None;
        }
        let levels: Vec<String> = text.split('/').map(str::to_owned).collect();
        let last = levels.len() - 1;
        let is_fine = |(at, level): (usize, &String)| match level.as_str() {
            "+" => true,
            "#" => at == last,
            level => !level.contains(['+', '#']),
        };
        levels.iter().enumerate().all(is_fine).then_some(Self(levels))
    }

    /// Whether it has wildcards.
    #[must_use]
    pub fn has_wildcards(&self) -> bool {
        self.0.iter().any(|level| matches!(level.as_str(), "+" | "#"))
    }

    /// The parts of a topic that match the wildcards; `None` if the topic does not match.
    #[must_use]
    pub fn matches<'a>(&self, topic: &'a str) -> Option<Vec<&'a str>> {
        // A leading wildcard does not match topics of the broker itself (§4.7.2).
        if topic.starts_with('$') && !self.0.first()?.starts_with('$') {
            return None;
        }
        let mut found = Vec::new();
        let mut rest = Some(topic);
        for level in &self.0 {
            if level == "#" {
                found.push(rest.unwrap_or_default());
                return Some(found);
            }
            let (here, after) = match rest?.split_once('/') {
                Some((here, after)) => (here, Some(after)),
                None => (rest?, None),
            };
            match level.as_str() {
                "+" => found.push(here),
                level if level == here => {}
                _ => return None,
            }
            rest = after;
        }
        rest.is_none().then_some(found)
    }
}

/// Replaces the placeholders `{1}`, `{2}` …, `{topic}`, `{parent}`, `{last}` in a text.
#[must_use]
pub fn fill(template: &str, topic: &str, found: &[&str]) -> String {
    let (parent, last) = topic.rsplit_once('/').unwrap_or(("", topic));
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            out.push('{');
            rest = after;
            continue;
        };
        match name {
            "topic" => out.push_str(topic),
            "parent" => out.push_str(parent),
            "last" => out.push_str(last),
            number => match number.parse::<usize>().ok().and_then(|number| found.get(number.checked_sub(1)?))
            {
                Some(found) => out.push_str(found),
                None => {
                    out.push('{');
                    out.push_str(name);
                    out.push('}');
                }
            },
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_as_brokers_match_them() {
        let found = |filter: &str, topic: &'static str| Filter::parse(filter).unwrap().matches(topic);
        assert_eq!(found("a/b", "a/b"), Some(vec![]));
        assert_eq!(found("a/b", "a/b/c"), None);
        assert_eq!(found("a/+/c", "a/b/c"), Some(vec!["b"]));
        assert_eq!(found("+/+", "/x"), Some(vec!["", "x"]));
        assert_eq!(found("a/#", "a/b/c"), Some(vec!["b/c"]));
        assert_eq!(found("a/#", "a"), Some(vec![""]));
        assert_eq!(found("#", "$SYS/broker"), None);
        assert_eq!(found("$SYS/#", "$SYS/broker"), Some(vec!["broker"]));
        assert_eq!(found("a/+", "a"), None);
        for wrong in ["", "a#", "a/#/b", "a+/b", "a\0"] {
            assert_eq!(Filter::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn templates_insert_the_text_matched_by_wildcards() {
        assert_eq!(fill("Line {1}/{last}", "l/7/t", &["7"]), "Line 7/t");
        assert_eq!(fill("{parent}|{topic}|{2}|{x|", "a/b", &["a"]), "a|a/b|{2}|{x|");
        assert_eq!(fill("{0}{99999999999999999999}", "a", &[]), "{0}{99999999999999999999}");
    }
}
