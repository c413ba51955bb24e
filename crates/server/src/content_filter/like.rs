//! The patterns of the Like operator (Part 4 §7.7.3).

use crate::account::{HeapSize, allocation};

/// Longest pattern, in bytes. A longer one from a client is refused; one from a field matches nothing.
pub(crate) const PATTERN_LEN_MAX: usize = 4096;

/// A pattern: `%` is any text, `_` one character, `[…]` one of a list, `[^…]` one not in the list, and `\` escapes the
/// next character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(Box<[Token]>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    AnyText,
    AnyChar,
    Char(char),
    /// Ranges, including both ends.
    OneOf(Box<[(char, char)]>),
    NoneOf(Box<[(char, char)]>),
}

impl Pattern {
    /// Parses a pattern. A list without its closing bracket is taken literally, and so is each further bracket: looking
    /// for the end once keeps the time proportional to the length.
    pub(crate) fn new(text: &str) -> Self {
        let mut tokens = Vec::new();
        let mut rest = text.chars();
        let mut has_lists = true;
        while let Some(char) = rest.next() {
            let token = match char {
                '%' if tokens.last() == Some(&Token::AnyText) => continue,
                '%' => Token::AnyText,
                '_' => Token::AnyChar,
                '\\' => Token::Char(rest.next().unwrap_or('\\')),
                '[' if has_lists => match list(rest.clone()) {
                    Some((token, after)) => {
                        rest = after;
                        token
                    }
                    None => {
                        has_lists = false;
                        Token::Char('[')
                    }
                },
                char => Token::Char(char),
            };
            tokens.push(token);
        }
        Self(tokens.into())
    }

    /// Whether the pattern matches the whole text. Time can be proportional to the product of both lengths, so each
    /// compared character is subtracted from `steps`. `None`: there were too few.
    pub(crate) fn matches(&self, text: &str, steps: &mut usize) -> Option<bool> {
        let mut text = text.chars();
        let mut at = 0;
        // Where to continue if the part after the last `%` does not match here.
        let mut retry: Option<(usize, core::str::Chars<'_>)> = None;
        loop {
            *steps = steps.checked_sub(1)?;
            if self.0.get(at) == Some(&Token::AnyText) {
                at += 1;
                retry = Some((at, text.clone()));
                continue;
            }
            let before = text.clone();
            let token = self.0.get(at);
            *steps = steps.checked_sub(token.map_or(0, Token::more_steps))?;
            match (token, text.next()) {
                (None, None) => return Some(true),
                (Some(token), Some(char)) if token.fits(char) => at += 1,
                // The text has ended; a later start leaves even less text.
                (Some(_), None) => return Some(false),
                _ => {
                    let Some((from, mut start)) = retry.take() else { return Some(false) };
                    drop(before);
                    if start.next().is_none() {
                        return Some(false);
                    }
                    text = start.clone();
                    at = from;
                    retry = Some((from, start));
                }
            }
        }
    }
}

impl Token {
    /// Comparisons beyond the first of a character with it.
    fn more_steps(&self) -> usize {
        match self {
            Self::OneOf(ranges) | Self::NoneOf(ranges) => ranges.len().saturating_sub(1),
            Self::AnyText | Self::AnyChar | Self::Char(_) => 0,
        }
    }

    fn fits(&self, char: char) -> bool {
        let is_in = |ranges: &[(char, char)]| ranges.iter().any(|(low, high)| (*low..=*high).contains(&char));
        match self {
            Self::AnyText => false,
            Self::AnyChar => true,
            Self::Char(own) => *own == char,
            Self::OneOf(ranges) => is_in(ranges),
            Self::NoneOf(ranges) => !is_in(ranges),
        }
    }
}

/// Parses a list after its opening bracket.
fn list(mut rest: core::str::Chars<'_>) -> Option<(Token, core::str::Chars<'_>)> {
    let is_negated = rest.clone().next() == Some('^');
    if is_negated {
        rest.next();
    }
    let mut ranges: Vec<(char, char)> = Vec::new();
    loop {
        let low = match rest.next()? {
            ']' if !ranges.is_empty() => break,
            '\\' => rest.next()?,
            char => char,
        };
        let mut ahead = rest.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                rest = ahead;
                high
            }
            _ => low,
        };
        ranges.push((low, high));
    }
    let ranges = ranges.into();
    Some((if is_negated { Token::NoneOf(ranges) } else { Token::OneOf(ranges) }, rest))
}

impl HeapSize for Pattern {
    fn heap_size(&self) -> usize {
        let tokens = allocation(self.0.len() * size_of::<Token>());
        self.0.iter().fold(tokens, |sum, token| match token {
            Token::OneOf(ranges) | Token::NoneOf(ranges) => {
                sum + allocation(ranges.len() * size_of::<(char, char)>())
            }
            Token::AnyText | Token::AnyChar | Token::Char(_) => sum,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn like(text: &str, pattern: &str) -> bool {
        Pattern::new(pattern).matches(text, &mut 1_000).unwrap()
    }

    #[test]
    fn the_examples_of_the_specification() {
        assert!(like("main", "main%") && like("mainframe", "main%") && !like("remain", "main%"));
        assert!(like("remain", "%main%") && like("en", "%en%") && like("enlightened", "%en%"));
        assert!(like("kind", "_ind") && !like("ind", "_ind") && !like("kkind", "_ind"));
        assert!(like("100%", "100\\%") && !like("1000", "100\\%"));
        assert!(like("C1", "C[13-68]") && like("C4", "C[13-68]") && like("C8", "C[13-68]"));
        assert!(!like("C2", "C[13-68]") && !like("C7", "C[13-68]"));
        assert!(like("C2", "C[^13-5]") && !like("C1", "C[^13-5]") && !like("C4", "C[^13-5]"));
    }

    #[test]
    fn unusual_patterns_are_defined() {
        assert!(like("", "") && like("", "%") && like("", "%%") && !like("", "_"));
        assert!(like("a[b", "a[b") && like("]", "[]]") && like("-", "[a-]") && like("a", "[a-]"));
        assert!(like("\\", "\\") && like("\\", "\\\\") && like("_", "\\_") && like("ü", "_"));
        assert!(like("aXbXc", "a%X%c") && like("ab", "%b") && !like("abc", "%b"));
    }

    #[test]
    fn the_number_of_compared_characters_is_limited() {
        for (text, pattern, is_matched) in [
            // Both ends of each attempt are far apart.
            ("a".repeat(5_000), "%".to_owned() + &"a".repeat(500) + "b", None),
            ("a".repeat(5_000), "%a".repeat(500) + "b", Some(false)),
            ("a".repeat(200_000), "%ab".to_owned(), None),
            ("a".repeat(200_000), "%".to_owned(), None),
            ("a".repeat(200_000), "b%".to_owned(), Some(false)),
            ("a".repeat(20_000), "%a".to_owned(), Some(true)),
        ] {
            let mut steps = 100_000;
            assert_eq!(
                Pattern::new(&pattern).matches(&text, &mut steps),
                is_matched,
                "{} in {}",
                pattern.len(),
                text.len()
            );
            assert_eq!(steps == 0, is_matched.is_none());
        }
    }

    #[test]
    fn each_range_of_a_list_is_a_comparison() {
        let pattern = Pattern::new(&format!("%[{}]b", "xy".repeat(500)));
        let mut steps = 100_000;
        assert_eq!(pattern.matches(&"a".repeat(1_000), &mut steps), None);
        assert_eq!(pattern.matches(&"a".repeat(50), &mut 100_000), Some(false));
    }

    #[test]
    fn a_list_that_never_ends_is_looked_for_once() {
        for (unit, end) in [("[", ""), ("[", "\\]"), ("[^", ""), ("[a-", ""), ("%[", "\\")] {
            let text = unit.repeat(1_000_000 / unit.len()) + end;
            let pattern = Pattern::new(&text);
            assert!(pattern.0.len() <= text.len() && !pattern.0.iter().any(|token| token.more_steps() > 0));
        }
        assert!(like("[a[bx", "[a[b_") && !like("[b]", "[^") && like("[^", "[^"));
    }

    /// Direct implementation of the pattern's definition.
    fn naive(tokens: &[Token], text: &[char]) -> bool {
        match (tokens.split_first(), text.split_first()) {
            (None, None) => true,
            (Some((Token::AnyText, rest)), next) => {
                naive(rest, text) || next.is_some_and(|(_, after)| naive(tokens, after))
            }
            (Some((token, rest)), Some((char, after))) => token.fits(*char) && naive(rest, after),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn it_matches_like_an_exhaustive_search(pattern in "[ab%_\\[\\]^\\\\-]{0,8}", text in "[ab%_\\]^-]{0,8}") {
            let pattern = Pattern::new(&pattern);
            let chars: Vec<char> = text.chars().collect();
            prop_assert_eq!(pattern.matches(&text, &mut 10_000), Some(naive(&pattern.0, &chars)));
        }
    }
}
