//! Limits the size of expanded templates. A placeholder of three bytes can stand for a text of any length, in each tag of each
//! instance: without limits, a file of 600 kB could take 30 GB of memory.

use super::fill::{Values, filled_len};
use crate::fields::{Fields, Mistake, Setting};
use core::mem::take;

/// Longest text in bytes.
const TEXT_MAX: usize = 64 << 10;
/// Most bytes of all texts of all instances: over a hundred bytes for each of the maximum number of tags.
const TEXTS_MAX: usize = 128 << 20;
/// Most settings of all instances, including those in lists and tables: ten for each of the maximum number of tags.
const SETTINGS_MAX: usize = 10_000_000;

/// Longest key that is not counted: known keys are shorter.
const KEY_LEN: usize = 64;

/// The exceeded limit.
#[derive(Debug, Clone, Copy)]
pub(super) enum TooMuch {
    /// One text.
    Text,
    /// All texts.
    Texts,
    /// All settings.
    Settings,
}

impl TooMuch {
    pub(super) fn problem(self) -> String {
        match self {
            Self::Text => format!("with its parameters, the text is longer than {TEXT_MAX} bytes"),
            Self::Texts => format!("all texts of all instances together are longer than {TEXTS_MAX} bytes"),
            Self::Settings => format!("all instances together have more than {SETTINGS_MAX} settings"),
        }
    }

    pub(super) fn hint(self) -> &'static str {
        match self {
            Self::Text => "write a shorter text",
            Self::Texts => "write shorter texts, or use several gateways",
            Self::Settings => "use several gateways",
        }
    }
}

/// The resources used by the instances so far.
#[derive(Debug, Default)]
pub(super) struct Budget {
    texts: usize,
    settings: usize,
    is_spent: bool,
}

impl Budget {
    /// Whether a limit is exceeded, so that nothing more may be expanded.
    pub(super) fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// Counts a tag of a template for the instance at a line; `more` are bytes of the instance itself.
    ///
    /// # Errors
    /// The first setting beyond a limit, with its line and that of the instance.
    pub(super) fn tag(
        &mut self,
        tag: &Fields,
        instance: usize,
        values: &Values<'_>,
        more: usize,
    ) -> Result<(), Mistake> {
        let mut more = more;
        tag.visit(|line, key, setting| {
            let key_len = Some(key.len()).filter(|len| *len > KEY_LEN).unwrap_or_default();
            let counted = self.setting(key_len + take(&mut more)).and_then(|()| match setting {
                Setting::Text(text) => self.text(text, values),
                Setting::Table(entries) => self.bytes(entries.keys().map(String::len).sum()),
                _ => Ok(()),
            });
            counted.map_err(|what| tag.mistake_of_instance(instance, line, key, what.problem(), what.hint()))
        })
    }

    fn text(&mut self, text: &str, values: &Values<'_>) -> Result<(), TooMuch> {
        // A long text must be read even if its expansion is short.
        let len = filled_len(text, values, TEXT_MAX).filter(|_| is_short(text));
        self.bytes(len.ok_or(TooMuch::Text)?.max(text.len()))
    }

    fn setting(&mut self, more: usize) -> Result<(), TooMuch> {
        self.settings = self.settings.saturating_add(1);
        if self.settings > SETTINGS_MAX {
            self.is_spent = true;
            return Err(TooMuch::Settings);
        }
        self.bytes(more)
    }

    fn bytes(&mut self, len: usize) -> Result<(), TooMuch> {
        self.texts = self.texts.saturating_add(len);
        if self.texts > TEXTS_MAX {
            self.is_spent = true;
            return Err(TooMuch::Texts);
        }
        Ok(())
    }
}

/// Whether a single text has an allowed length.
pub(super) fn is_short(text: &str) -> bool {
    text.len() <= TEXT_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Sections;
    use std::path::Path;

    #[test]
    fn settings_other_than_texts_are_counted_too() {
        let text = "[[tag]]\nname = \"t\"\nrange = [0, 1, 2]\n";
        let tag = Sections::parse(Path::new("g.toml"), text).unwrap().tags.remove(0);
        let mut budget = Budget { settings: SETTINGS_MAX - 5, ..Budget::default() };
        assert_eq!(budget.tag(&tag, 9, &Values::new(), 0), Ok(()));
        assert!(!budget.is_spent());
        let refused =
            Budget { settings: SETTINGS_MAX - 4, ..Budget::default() }.tag(&tag, 9, &Values::new(), 0);
        assert_eq!(
            refused.unwrap_err().to_string(),
            "g.toml:3: range: all instances together have more than 10000000 settings \
             (for the instance in line 9); use several gateways"
        );
    }
}
