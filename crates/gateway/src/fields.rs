//! Settings of a configuration file with their lines, and mistakes that say where they are and how to correct them.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A wrong setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The file, as it was named.
    pub path: PathBuf,
    /// The line, counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// The key; empty if the mistake concerns the whole section.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// How to correct it; empty if that is obvious.
    pub hint: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if self.key.is_empty() {
            write!(f, ": {}", self.problem)?
        } else {
            write!(f, ": {}: {}", self.key, self.problem)?
        }
        if self.hint.is_empty() { Ok(()) } else { write!(f, "; {}", self.hint) }
    }
}

impl std::error::Error for Mistake {}

/// A value of a setting.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    /// A text, or any cell of a table.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Number(f64),
    /// true or false.
    Flag(bool),
    /// A list.
    List(Vec<(usize, Setting)>),
    /// A table of settings.
    Table(BTreeMap<String, (usize, Setting)>),
}

impl Setting {
    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) => "a whole number",
            Self::Number(_) => "a number",
            Self::Flag(_) => "true or false",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }

    /// The same setting with changed texts.
    fn with_texts(&self, change: &dyn Fn(&str) -> String) -> Self {
        match self {
            Self::Text(text) => Self::Text(change(text)),
            Self::List(list) => {
                Self::List(list.iter().map(|(line, setting)| (*line, setting.with_texts(change))).collect())
            }
            Self::Table(entries) => {
                let entry = |(key, (line, setting)): (&String, &(usize, Self))| {
                    (key.clone(), (*line, setting.with_texts(change)))
                };
                Self::Table(entries.iter().map(entry).collect())
            }
            other => other.clone(),
        }
    }

    /// Passes this setting and all settings within it to `look`, until one fails.
    fn visit<E>(&self, look: &mut dyn FnMut(&Self) -> Result<(), E>) -> Result<(), E> {
        look(self)?;
        match self {
            Self::List(list) => list.iter().try_for_each(|(_, setting)| setting.visit(look)),
            Self::Table(entries) => entries.values().try_for_each(|(_, setting)| setting.visit(look)),
            _ => Ok(()),
        }
    }

    /// A text, or a number or flag as text.
    #[must_use]
    pub fn as_text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Integer(number) => Some(number.to_string()),
            Self::Number(number) => Some(number.to_string()),
            Self::Flag(flag) => Some(flag.to_string()),
            Self::List(_) | Self::Table(_) => None,
        }
    }

    fn fingerprint(&self, hasher: &mut impl Hasher) {
        core::mem::discriminant(self).hash(hasher);
        match self {
            Self::Text(text) => text.hash(hasher),
            Self::Integer(number) => number.hash(hasher),
            Self::Number(number) => number.to_bits().hash(hasher),
            Self::Flag(flag) => flag.hash(hasher),
            Self::List(list) => {
                list.len().hash(hasher);
                list.iter().for_each(|(_, setting)| setting.fingerprint(hasher));
            }
            Self::Table(entries) => hash(entries, hasher),
        }
    }

    fn of_toml(lines: &Lines, value: &DeValue<'_>) -> Result<Self, String> {
        let entry = |value: &Spanned<DeValue<'_>>| -> Result<(usize, Self), String> {
            Ok((lines.at(value.span().start), Self::of_toml(lines, value.get_ref())?))
        };
        Ok(match value {
            DeValue::String(text) => Self::Text(text.clone().into_owned()),
            DeValue::Integer(number) => {
                let parsed = i64::from_str_radix(number.as_str(), number.radix());
                Self::Integer(parsed.map_err(|_| format!("{} is too large", number.as_str()))?)
            }
            DeValue::Float(number) => {
                let parsed = number.as_str().parse();
                Self::Number(parsed.map_err(|_| format!("{} is no number", number.as_str()))?)
            }
            DeValue::Boolean(flag) => Self::Flag(*flag),
            DeValue::Datetime(time) => Self::Text(time.to_string()),
            DeValue::Array(list) => Self::List(list.iter().map(entry).collect::<Result<_, _>>()?),
            DeValue::Table(table) => {
                let entries =
                    table.iter().map(|(key, value)| Ok((key.get_ref().clone().into_owned(), entry(value)?)));
                Self::Table(entries.collect::<Result<_, String>>()?)
            }
        })
    }
}

/// A parsed section with all its mistakes.
#[derive(Debug)]
pub struct Examined<T> {
    /// The parsed value; if there are mistakes, examples replace the wrong settings.
    pub value: Option<T>,
    /// All mistakes.
    pub mistakes: Vec<Mistake>,
    /// The settings that are wrong.
    pub wrong: BTreeSet<String>,
}

/// The settings of one section. Each is taken by the code that knows it; settings left at the end are unknown.
#[derive(Debug, Clone)]
pub struct Fields {
    path: PathBuf,
    line: usize,
    entries: BTreeMap<String, (usize, Setting)>,
    known: Vec<&'static str>,
    /// Wrong settings. They are replaced by examples so that the others can be checked.
    wrong: BTreeSet<String>,
    /// A required setting that is missing.
    missing: Option<&'static str>,
    /// The line of the template instance to which these settings belong.
    instance: Option<usize>,
    /// The first line of the table of which this is a row.
    head: Option<Arc<Head>>,
}

/// The line of a table that names its columns.
#[derive(Debug)]
pub struct Head {
    /// Its number.
    pub line: usize,
    /// The columns.
    pub columns: BTreeSet<String>,
}

impl Fields {
    /// The settings of a table row.
    #[must_use]
    pub fn of_cells(
        path: &Path,
        (head, line): (&Arc<Head>, usize),
        cells: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let entries = cells.into_iter().filter(|(_, cell)| !cell.is_empty());
        let entries = entries.map(|(key, cell)| (key, (line, Setting::Text(cell)))).collect();
        Self {
            path: path.to_owned(),
            line,
            entries,
            known: Vec::new(),
            wrong: BTreeSet::new(),
            missing: None,
            instance: None,
            head: Some(Arc::clone(head)),
        }
    }

    /// The settings of a nested section.
    #[must_use]
    pub fn within(&self, line: usize, entries: BTreeMap<String, (usize, Setting)>) -> Self {
        Self {
            path: self.path.clone(),
            line,
            entries,
            known: Vec::new(),
            wrong: BTreeSet::new(),
            missing: None,
            instance: None,
            head: None,
        }
    }

    /// The same settings for a template instance at line `instance`. `change` is applied to each text and each key.
    #[must_use]
    pub fn instantiate(&self, instance: usize, change: &dyn Fn(&str) -> String) -> Self {
        let entries = self
            .entries
            .iter()
            .map(|(key, (line, setting))| (key.clone(), (*line, setting.with_texts(change))));
        Self { instance: Some(instance), ..self.within(self.line, entries.collect()) }
    }

    /// Passes each setting to `look`, including those in lists and tables, with line and key of its entry.
    ///
    /// # Errors
    /// The first error of `look`.
    pub fn visit<E>(&self, mut look: impl FnMut(usize, &str, &Setting) -> Result<(), E>) -> Result<(), E> {
        self.entries
            .iter()
            .try_for_each(|(key, (line, setting))| setting.visit(&mut |setting| look(*line, key, setting)))
    }

    /// A mistake in one setting of a template instance that is at another line.
    pub fn mistake_of_instance(
        &self,
        instance: usize,
        line: usize,
        key: &str,
        problem: String,
        hint: &str,
    ) -> Mistake {
        let problem = format!("{problem} (for the instance in line {instance})");
        self.mistake_in(line, key, problem, hint)
    }

    /// Replaces or adds a setting.
    pub fn put(&mut self, key: &str, line: usize, setting: Setting) {
        self.entries.insert(key.to_owned(), (line, setting));
    }

    /// Takes all remaining settings.
    pub fn take_all(&mut self) -> BTreeMap<String, (usize, Setting)> {
        core::mem::take(&mut self.entries)
    }

    /// The first line of the section.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A mistake concerning the whole section.
    pub fn mistake(&self, problem: impl Into<String>, hint: impl Into<String>) -> Mistake {
        let mut problem = problem.into();
        if let Some(line) = self.instance {
            problem.push_str(&format!(" (for the instance in line {line})"));
        }
        Mistake { path: self.path.clone(), line: self.line, key: String::new(), problem, hint: hint.into() }
    }

    /// A mistake in one setting.
    pub fn mistake_in(
        &self,
        line: usize,
        key: &str,
        problem: impl Into<String>,
        hint: impl Into<String>,
    ) -> Mistake {
        Mistake { line, key: key.to_owned(), ..self.mistake(problem, hint) }
    }

    /// The line of a remaining setting; the line of the section if it does not exist.
    #[must_use]
    pub fn line_of(&self, key: &str) -> usize {
        self.entries.get(key).map_or(self.line, |(line, _)| *line)
    }

    /// Whether a setting remains.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Hashes the settings, independent of their lines.
    pub fn fingerprint(&self, hasher: &mut impl Hasher) {
        hash(&self.entries, hasher);
    }

    /// The names of the remaining settings.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// A remaining setting.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.entries.get(key).map(|(_, setting)| setting)
    }

    /// Takes a setting with its line.
    pub fn take(&mut self, key: &'static str) -> Option<(usize, Setting)> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.entries.remove(key)
    }

    fn wrong<T>(&self, line: usize, key: &str, found: &Setting, wanted: &str) -> Result<T, Mistake> {
        let problem = match found {
            Setting::Text(text) if text.len() <= SHOWN_MAX => format!("this is the text {text:?}"),
            other => format!("this is {}", other.kind()),
        };
        let hint = match found {
            // Many locales write a decimal comma.
            Setting::Text(text) if text.trim().replacen(',', ".", 1).parse::<f64>().is_ok() => {
                format!("write {wanted} with a decimal point: {}", text.trim().replacen(',', ".", 1))
            }
            _ => format!("write {wanted}"),
        };
        Err(self.mistake_in(line, key, problem, hint))
    }

    /// A remaining setting whose name resembles one of `names`, as the mistake to report if none of them is set.
    #[must_use]
    pub fn misspelt(&self, names: &[&'static str]) -> Option<Mistake> {
        self.entries.iter().find_map(|(key, (line, _))| {
            let near = taktwerk_config::nearest(key, names.iter().copied())?;
            Some(self.mistake_in(*line, key, UNKNOWN, meant(near)))
        })
    }

    /// Takes a text with its line.
    pub fn text_at(&mut self, key: &'static str) -> Result<Option<(usize, String)>, Mistake> {
        match self.take(key) {
            None => Ok(None),
            Some((line, Setting::Text(text))) => Ok(Some((line, text))),
            Some((line, other)) => self.wrong(line, key, &other, "a text in quotation marks"),
        }
    }

    /// Takes a text.
    pub fn text(&mut self, key: &'static str) -> Result<Option<String>, Mistake> {
        Ok(self.text_at(key)?.map(|(_, text)| text))
    }

    /// Takes a required text.
    pub fn required(&mut self, key: &'static str, example: &str) -> Result<(usize, String), Mistake> {
        match self.text_at(key)? {
            Some((line, text)) if !text.trim().is_empty() => Ok((line, text)),
            Some((line, _)) => {
                Err(self.mistake_in(line, key, "is empty", format!("write {key} = {example}")))
            }
            None if self.wrong.contains(key) => {
                let example = example.trim_matches('"').replace("\\\\", "\\");
                Ok((self.line, example))
            }
            None => {
                self.missing = Some(key);
                let head = self.head.as_ref().filter(|head| !head.columns.contains(key));
                let line = head.map_or(self.line, |head| head.line);
                let mistake = self.mistake(format!("{key} is missing"), format!("write {key} = {example}"));
                Err(Mistake { line, ..mistake })
            }
        }
    }

    /// Parses a section repeatedly, each time without the settings that were found wrong, so that all mistakes are found. Stops
    /// if a setting in `decisive` is wrong.
    pub fn examine<T>(
        &mut self,
        decisive: &[&str],
        mut take: impl FnMut(&mut Self) -> Result<T, Mistake>,
    ) -> Examined<T> {
        let whole = self.clone();
        let mut mistakes: Vec<Mistake> = Vec::new();
        let mut wrong = BTreeSet::new();
        // Mistakes about missing settings.
        let mut missing: Vec<(usize, &str)> = Vec::new();
        loop {
            let mistake = match take(self) {
                Ok(value) => {
                    let mistakes = without_typos(mistakes, &missing);
                    return Examined { value: Some(value), mistakes, wrong };
                }
                Err(mistake) => mistake,
            };
            let key = match self.missing.take() {
                None => mistake.key.clone(),
                Some(key) => {
                    missing.push((mistakes.len(), key));
                    key.to_owned()
                }
            };
            // A mistake about an example, or about the section while a setting is missing, is a consequence and not reported.
            let is_consequence = wrong.contains(&key) || (key.is_empty() && !mistakes.is_empty());
            if !is_consequence {
                mistakes.push(mistake);
            }
            if is_consequence || key.is_empty() || decisive.contains(&&*key) {
                wrong.insert(key);
                return Examined { value: None, mistakes: without_typos(mistakes, &missing), wrong };
            }
            wrong.insert(key);
            *self = whole.clone();
            self.entries.retain(|key, _| !wrong.contains(key));
            self.wrong = wrong.clone();
        }
    }

    /// Takes true or false.
    pub fn flag(&mut self, key: &'static str) -> Result<Option<bool>, Mistake> {
        match self.take(key) {
            None => Ok(None),
            Some((_, Setting::Flag(flag))) => Ok(Some(flag)),
            Some((line, Setting::Text(text))) => match &*text.to_ascii_lowercase() {
                "true" | "yes" | "1" => Ok(Some(true)),
                "false" | "no" | "0" => Ok(Some(false)),
                _ => self.wrong(line, key, &Setting::Text(text), "true or false"),
            },
            Some((line, other)) => self.wrong(line, key, &other, "true or false"),
        }
    }

    /// Takes a number with its line.
    pub fn number_at(&mut self, key: &'static str) -> Result<Option<(usize, f64)>, Mistake> {
        let Some((line, setting)) = self.take(key) else { return Ok(None) };
        let number = match &setting {
            Setting::Integer(number) => Some(*number as f64),
            Setting::Number(number) => Some(*number),
            Setting::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number.filter(|number: &f64| number.is_finite()) {
            Some(number) => Ok(Some((line, number))),
            None if number.is_some() => self.wrong(line, key, &setting, "a finite number"),
            None => self.wrong(line, key, &setting, "a number"),
        }
    }

    /// Takes a number.
    pub fn number(&mut self, key: &'static str) -> Result<Option<f64>, Mistake> {
        Ok(self.number_at(key)?.map(|(_, number)| number))
    }

    /// Takes a whole number within bounds.
    pub fn integer(&mut self, key: &'static str, min: u64, max: u64) -> Result<Option<u64>, Mistake> {
        let Some((line, setting)) = self.take(key) else { return Ok(None) };
        let number = match &setting {
            Setting::Integer(number) => u64::try_from(*number).ok(),
            Setting::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number {
            Some(number) if (min..=max).contains(&number) => Ok(Some(number)),
            _ => {
                let hint = format!("write a whole number from {min} to {max}");
                Err(self.mistake_in(line, key, "the number does not fit", hint))
            }
        }
    }

    /// Takes a duration: `"500 ms"`, `"2 s"`, `"5 min"`, or milliseconds as a number.
    pub fn span(&mut self, key: &'static str) -> Result<Option<Duration>, Mistake> {
        let Some((line, setting)) = self.take(key) else { return Ok(None) };
        let span = match &setting {
            Setting::Integer(millis) => u64::try_from(*millis).ok().map(Duration::from_millis),
            Setting::Number(millis) => Duration::try_from_secs_f64(millis / 1e3).ok(),
            Setting::Text(text) => span(text),
            _ => None,
        };
        match span.filter(|span| !span.is_zero() && *span <= Duration::from_secs(366 * 86_400)) {
            Some(span) => Ok(Some(span)),
            None => self.wrong(line, key, &setting, "a time such as \"500 ms\", \"2 s\" or \"5 min\""),
        }
    }

    /// Takes two numbers, the lower one first: `[0, 100]`; in a table cell `0..100`.
    pub fn pair(&mut self, key: &'static str) -> Result<Option<(f64, f64)>, Mistake> {
        let Some((line, setting)) = self.take(key) else { return Ok(None) };
        let number = |setting: &Setting| match setting {
            Setting::Integer(number) => Some(*number as f64),
            Setting::Number(number) => Some(*number),
            _ => None,
        };
        let pair = match &setting {
            Setting::List(list) => match &list[..] {
                [(_, low), (_, high)] => number(low).zip(number(high)),
                _ => None,
            },
            Setting::Text(text) => text
                .split_once("..")
                .and_then(|(low, high)| Some((low.trim().parse().ok()?, high.trim().parse().ok()?))),
            _ => None,
        };
        match pair.filter(|(low, high)| low.is_finite() && high.is_finite() && low < high) {
            Some(pair) => Ok(Some(pair)),
            None => Err(self.mistake_in(
                line,
                key,
                "this is no range",
                "write two numbers, the lower one first, such as [0.0, 100.0]",
            )),
        }
    }

    /// Takes a list of texts, or one text.
    pub fn texts(&mut self, key: &'static str) -> Result<Option<Vec<String>>, Mistake> {
        let Some((line, setting)) = self.take(key) else { return Ok(None) };
        let hint = "a list of texts, such as [\"a\", \"b\"]";
        match &setting {
            Setting::Text(text) => Ok(Some(vec![text.clone()])),
            Setting::List(list) => {
                let texts = list.iter().map(|(_, entry)| match entry {
                    Setting::Text(text) => Some(text.clone()),
                    _ => None,
                });
                match texts.collect::<Option<Vec<_>>>() {
                    Some(texts) => Ok(Some(texts)),
                    None => self.wrong(line, key, &setting, hint),
                }
            }
            _ => self.wrong(line, key, &setting, hint),
        }
    }

    /// Takes one of several words.
    pub fn word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Result<Option<T>, Mistake> {
        let Some((line, text)) = self.text_at(key)? else { return Ok(None) };
        self.meaning(line, key, &text, words).map(Some)
    }

    /// Maps a word to its meaning.
    pub fn meaning<T: Copy>(
        &self,
        line: usize,
        key: &str,
        text: &str,
        words: &[(&str, T)],
    ) -> Result<T, Mistake> {
        if let Some((_, meaning)) = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
            return Ok(*meaning);
        }
        let names = words.iter().map(|(word, _)| *word);
        let hint = match taktwerk_config::nearest(text, names.clone()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
        };
        Err(self.mistake_in(line, key, format!("there is no {text:?}"), hint))
    }

    /// Checks that all settings were taken.
    ///
    /// # Errors
    /// The first unknown setting, with the closest known name.
    pub fn finish(&self) -> Result<(), Mistake> {
        self.unknown().min_by_key(|mistake| mistake.line).map_or(Ok(()), Err)
    }

    /// A mistake for each remaining setting.
    pub fn unknown(&self) -> impl Iterator<Item = Mistake> {
        self.entries.iter().map(|(key, (line, _))| {
            let hint = match taktwerk_config::nearest(key, self.known.iter().copied()) {
                Some(near) => meant(near),
                None => format!("the settings here are {}", self.known.join(", ")),
            };
            let line = self.head.as_ref().map_or(*line, |head| head.line);
            self.mistake_in(line, key, UNKNOWN, hint)
        })
    }
}

/// The message for an unknown setting.
const UNKNOWN: &str = "there is no such setting here";

/// Longest text repeated in a message, in bytes.
const SHOWN_MAX: usize = 40;

fn meant(key: &str) -> String {
    format!("did you mean `{key}`?")
}

/// Removes mistakes about missing settings that are present with a misspelt name.
fn without_typos(mistakes: Vec<Mistake>, missing: &[(usize, &str)]) -> Vec<Mistake> {
    let is_typo = |key: &str| mistakes.iter().any(|mistake| mistake.hint == meant(key));
    let typos: Vec<usize> = missing.iter().filter(|(_, key)| is_typo(key)).map(|(at, _)| *at).collect();
    let kept = mistakes.into_iter().enumerate().filter(|(at, _)| !typos.contains(at));
    kept.map(|(_, mistake)| mistake).collect()
}

fn hash(entries: &BTreeMap<String, (usize, Setting)>, hasher: &mut impl Hasher) {
    entries.len().hash(hasher);
    for (key, (_, setting)) in entries {
        key.hash(hasher);
        setting.fingerprint(hasher);
    }
}

/// Parses a duration.
#[must_use]
pub fn span(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit.trim() {
        "us" | "µs" => 1e-6,
        "ms" | "" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}

/// The start of each line of a text, for fast look-up: a file may have hundreds of thousands of settings.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    /// The line of a byte offset, counted from 1.
    fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|end| *end < byte) + 1
    }
}

/// The sections of a file that concern the gateway.
#[derive(Debug, Clone)]
pub struct Sections {
    /// `[gateway]`
    pub gateway: Option<Fields>,
    /// `[[source]]`
    pub sources: Vec<Fields>,
    /// `[[tag]]`
    pub tags: Vec<Fields>,
    /// `[[template]]`
    pub templates: Vec<Fields>,
    /// `[[instance]]`
    pub instances: Vec<Fields>,
    /// `[[destination]]`
    pub destinations: Vec<Fields>,
    /// `[lease]`
    pub lease: Option<Fields>,
    /// The names of `[[role]]`. The server reads the rest of these sections.
    pub roles: Vec<String>,
}

impl Sections {
    /// Finds the gateway's sections in a file; other sections are ignored.
    ///
    /// # Errors
    /// The file is not TOML, or a section has the wrong type.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Mistake> {
        let mistake = |line: usize, problem: String| Mistake {
            path: path.to_owned(),
            line,
            key: String::new(),
            problem,
            hint: String::new(),
        };
        let lines = Lines::of(text);
        let document = DeTable::parse(text).map_err(|error| {
            let taktwerk_config::Mistake { line, problem, hint } =
                taktwerk_config::Mistake::of(&error, Some(text));
            Mistake { hint, ..mistake(line, problem) }
        })?;
        let fields = |value: &Spanned<DeValue<'_>>| -> Result<Fields, Mistake> {
            let line = lines.at(value.span().start);
            match Setting::of_toml(&lines, value.get_ref()).map_err(|problem| mistake(line, problem))? {
                Setting::Table(entries) => {
                    // The span of a section is that of its heading.
                    Ok(Fields {
                        path: path.to_owned(),
                        line,
                        entries,
                        known: Vec::new(),
                        wrong: BTreeSet::new(),
                        missing: None,
                        instance: None,
                        head: None,
                    })
                }
                _ => Err(mistake(line, "this is no section".to_owned())),
            }
        };
        let list = |name: &str| -> Result<Vec<Fields>, Mistake> {
            match document.get_ref().get(name) {
                None => Ok(Vec::new()),
                Some(value) => match value.get_ref() {
                    DeValue::Array(list) => list.iter().map(fields).collect(),
                    _ => Err(mistake(
                        lines.at(value.span().start),
                        format!("{name} is a list of sections: write [[{name}]]"),
                    )),
                },
            }
        };
        Ok(Self {
            gateway: document.get_ref().get("gateway").map(fields).transpose()?,
            sources: list("source")?,
            tags: list("tag")?,
            templates: list("template")?,
            instances: list("instance")?,
            destinations: list("destination")?,
            lease: document.get_ref().get("lease").map(fields).transpose()?,
            roles: list("role")
                .unwrap_or_default()
                .iter()
                .filter_map(|role| role.get("name")?.as_text())
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests;
