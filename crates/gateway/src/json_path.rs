//! Paths into JSON: `$.machine.axes[0].position`, `temperature`, `$['name with dots']`.

use serde_json::Value as Json;

/// Deepest path.
const STEPS_MAX: usize = 64;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Name(String),
    /// From the end if negative.
    Index(i64),
}

/// A path to one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath(Vec<Step>);

impl JsonPath {
    /// Parses a path; `None` if it is invalid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        rest = rest.strip_prefix('$').unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if steps.len() == STEPS_MAX {
                return None;
            }
            if let Some(inner) = rest.strip_prefix('[') {
                let quote = inner.chars().next().filter(|char| matches!(char, '\'' | '"'));
                rest = match quote {
                    Some(quote) => {
                        let (name, rest) = inner.get(1..)?.split_once(quote)?;
                        steps.push(Step::Name(name.to_owned()));
                        rest.strip_prefix(']')?
                    }
                    None => {
                        let (index, rest) = inner.split_once(']')?;
                        steps.push(Step::Index(index.trim().parse().ok()?));
                        rest
                    }
                };
                continue;
            }
            let name = match rest.strip_prefix('.') {
                Some(name) => name,
                // Only the first name needs no dot.
                None if steps.is_empty() => rest,
                None => return None,
            };
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let (name, after) = name.split_at(end);
            if name.is_empty() {
                return None;
            }
            steps.push(Step::Name(name.to_owned()));
            rest = after;
        }
        Some(Self(steps))
    }

    /// The value at the path.
    #[must_use]
    pub fn find<'a>(&self, json: &'a Json) -> Option<&'a Json> {
        self.0.iter().try_fold(json, |json, step| match step {
            Step::Name(name) => json.get(name),
            Step::Index(index) => {
                let list = json.as_array()?;
                let index =
                    if *index < 0 { i64::try_from(list.len()).ok()?.checked_add(*index)? } else { *index };
                list.get(usize::try_from(index).ok()?)
            }
        })
    }
}

/// Formats names, outermost first, as a path that [`JsonPath::parse`] reads; `None` if that is impossible.
#[must_use]
pub fn written(names: &[String]) -> Option<String> {
    if names.len() > STEPS_MAX {
        return None;
    }
    let mut path = "$".to_owned();
    for name in names {
        let is_plain = !name.is_empty()
            && name.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '-' | ':'));
        if is_plain {
            path.push('.');
            path.push_str(name);
            continue;
        }
        let quote = ['\'', '"'].into_iter().find(|quote| !name.contains(*quote))?;
        path.extend(['[', quote]);
        path.push_str(name);
        path.extend([quote, ']']);
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_to_values() {
        let json = json!({"a": {"b": [1, {"c.d": 2}]}, "t": 3});
        let find = |path: &str| JsonPath::parse(path).unwrap().find(&json).cloned();
        assert_eq!(find("$.a.b[0]"), Some(json!(1)));
        assert_eq!(find("a.b[-1]['c.d']"), Some(json!(2)));
        assert_eq!(find("t"), Some(json!(3)));
        assert_eq!(find("$"), Some(json.clone()));
        assert_eq!(find("$.a.x"), None);
        assert_eq!(find("a.b[7]"), None);
        assert_eq!(find("a.b[-9223372036854775808]"), None);
        for wrong in ["a..b", "a.b[", "a[x]", "a['b]", ".", "a.", "$a[0]b", "[é"] {
            assert_eq!(JsonPath::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn paths_are_written_as_they_are_read() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (path, text) in [
            (names(&["a", "b-1"]), "$.a.b-1"),
            (names(&["a.b", "it's", "say \"x\"", ""]), "$['a.b'][\"it's\"]['say \"x\"']['']"),
        ] {
            assert_eq!(written(&path).as_deref(), Some(text));
            let steps = path.iter().cloned().map(Step::Name).collect();
            assert_eq!(JsonPath::parse(text), Some(JsonPath(steps)));
        }
        assert_eq!(written(&names(&["'\""])), None);
        assert!(written(&names(&["a"; STEPS_MAX])).is_some_and(|path| JsonPath::parse(&path).is_some()));
        assert_eq!(written(&names(&["a"; STEPS_MAX + 1])), None);
    }
}
