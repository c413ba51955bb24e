//! Patterns that select tags: `Line 1/*/Temperature`, `Line 2/**`.

/// A pattern of paths. `*` matches any text within one level, `**` any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Makes a pattern.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.trim_matches('/').to_owned())
    }

    /// The original text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether it is the name of one tag.
    #[must_use]
    pub fn is_name(&self) -> bool {
        !self.0.contains('*')
    }

    /// Whether a path matches.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        matches(self.0.as_bytes(), path.as_bytes())
    }
}

/// Whether a path matches one of `include` (or `include` is empty) and none of `exclude`.
#[must_use]
pub fn takes(include: &[Pattern], exclude: &[Pattern], path: &str) -> bool {
    let matches = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(path));
    (include.is_empty() || matches(include)) && !matches(exclude)
}

/// Backtracks to the last star that can match one more byte. At most two positions are remembered, so the time is bounded by the
/// product of the lengths and their number.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    // Where to resume after a star: positions in pattern and path.
    let mut narrow: Option<(usize, usize)> = None;
    let mut wide: Option<(usize, usize)> = None;
    let (mut at, mut on) = (0, 0);
    loop {
        match (pattern.get(at), path.get(on)) {
            (Some(b'*'), _) if pattern.get(at + 1) == Some(&b'*') => {
                at += 2;
                wide = Some((at, on));
                narrow = None;
                continue;
            }
            (Some(b'*'), _) => {
                at += 1;
                narrow = Some((at, on));
                continue;
            }
            (Some(wanted), Some(found)) if wanted == found => {
                (at, on) = (at + 1, on + 1);
                continue;
            }
            (None, None) => return true,
            _ => {}
        }
        if let Some((after, from)) = narrow
            && path.get(from).is_some_and(|byte| *byte != b'/')
        {
            narrow = Some((after, from + 1));
            (at, on) = (after, from + 1);
        } else if let Some((after, from)) = wide
            && from < path.len()
        {
            narrow = None;
            wide = Some((after, from + 1));
            (at, on) = (after, from + 1);
        } else {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_text_within_or_across_levels() {
        for (pattern, path, is_match) in [
            ("Line 1/T", "Line 1/T", true),
            ("Line 1/T", "Line 1/T2", false),
            ("Line 1/*", "Line 1/T", true),
            ("Line 1/*", "Line 1/Oven/T", false),
            ("Line 1/**", "Line 1/Oven/T", true),
            ("**/T", "Line 1/Oven/T", true),
            ("**/T", "Line 1/T/Oven", false),
            ("**", "a", true),
            ("*/*/T*", "Line 1/Oven/Temperature", true),
            ("**/Oven/*", "A/Oven/B/Oven/C", true),
            ("**/Oven/*", "A/Oven/B/C", false),
            ("L*e*/T", "Line 1/T", true),
            ("", "a", false),
            ("/Line 1/T", "Line 1/T", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(path), is_match, "{pattern} {path}");
        }
        assert!(!Pattern::new(&"*a".repeat(50)).matches(&"a".repeat(2000).replace("aaaa", "aaab")));
    }
}
