//! Extracts values from text, JSON lines and CSV rows: the addresses of tags of files.

use crate::feed::Reading;
use crate::fields::{Fields, Mistake};
use crate::json_path::JsonPath;
use crate::json_time::time_of;
use crate::tag::Tag;
use crate::value::{Kind, parse};
use regex::{Regex, RegexBuilder};
use serde_json::Value as Json;
use std::path::Path;
use taktwerk_types::{BuiltInType, StatusCode, UtcTime};

/// Largest compiled regular expression, in bytes.
const PATTERN_MAX: usize = 1 << 20;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Plain text.
    Text,
    /// JSON.
    Json,
    /// CSV with this delimiter.
    Csv(u8),
}

/// The column of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Column {
    /// Counted from 0.
    Number(usize),
    Name(String),
}

/// The location of a value.
#[derive(Debug, Clone)]
enum Place {
    /// The whole text without surrounding whitespace.
    Whole,
    /// The group `value` of a pattern, or else its first group, or else the whole match.
    Pattern(Regex),
    Json(JsonPath, Option<JsonPath>),
    Column(Column, Option<Column>),
}

/// The reading found for a tag.
type Found = Option<Reading>;

/// Extracts values from texts.
#[derive(Debug, Clone)]
pub struct Extractor {
    format: Format,
    columns: Vec<String>,
    tags: Vec<(Place, Kind)>,
}

/// Most columns of a CSV file: every tag searches their names.
const COLUMNS_MAX: usize = 10_000;

/// Lines times tags that are searched in one go.
pub(crate) const LOOKS_AT_ONCE: usize = 2000;

impl Extractor {
    /// Lines to process before yielding to other sources and delivering values: every tag searches every line.
    #[must_use]
    pub fn lines_at_once(&self) -> usize {
        (LOOKS_AT_ONCE / self.tags.len().max(1)).max(1)
    }

    /// Takes `format`, `delimiter` and `columns` of a source. The default format follows from the file extension.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, file: &Path) -> Result<Self, Mistake> {
        #[derive(Clone, Copy)]
        enum Named {
            Text,
            Json,
            Csv,
        }
        let named =
            fields.word("format", &[("text", Named::Text), ("json", Named::Json), ("csv", Named::Csv)])?;
        let delimiter = fields.word("delimiter", &[(",", b','), (";", b';'), ("tab", b'\t')])?;
        let ending = file.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
        let format = match (named, ending.as_deref()) {
            (Some(Named::Text), _) => Format::Text,
            (Some(Named::Json), _) | (None, Some("json" | "jsonl" | "ndjson")) => Format::Json,
            (None, Some("tsv")) => Format::Csv(delimiter.unwrap_or(b'\t')),
            (Some(Named::Csv), _) | (None, Some("csv")) => Format::Csv(delimiter.unwrap_or(b',')),
            (None, _) => Format::Text,
        };
        if delimiter.is_some() && !matches!(format, Format::Csv(_)) {
            return Err(fields.mistake("delimiter is for CSV", "set format = \"csv\", or remove it"));
        }
        Ok(Self { format, columns: Vec::new(), tags: Vec::new() })
    }

    /// An extractor without tags.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self { format, columns: Vec::new(), tags: Vec::new() }
    }

    /// The column names for rows without a header.
    pub fn set_columns(&mut self, columns: Vec<String>) {
        self.columns = columns;
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Takes the settings of a tag: `json` and `time`, `column` and `time`, or `pattern`.
    ///
    /// # Errors
    /// The first mistake.
    pub fn add_tag(&mut self, tag: &Tag, fields: &mut Fields) -> Result<Kind, Mistake> {
        let element = tag.kind.filter(|_| tag.scaling.is_identity()).unwrap_or(BuiltInType::Double);
        let mut kind = Kind::scalar(element);
        let place = match self.format {
            Format::Json => {
                let Some(value) = json_path(fields, "json")? else {
                    return Err(fields.mistake("json is missing", "write json = \"$.temperature\""));
                };
                kind.is_array = fields.flag("array")?.unwrap_or(false);
                Place::Json(value, json_path(fields, "time")?)
            }
            Format::Csv(_) => {
                let column = column(fields, "column")?.unwrap_or_else(|| Column::Name(tag.name.clone()));
                Place::Column(column, self::column(fields, "time")?)
            }
            Format::Text => match fields.text_at("pattern")? {
                None => Place::Whole,
                Some((line, text)) => {
                    let mut builder = RegexBuilder::new(&text);
                    let hint = "write a regular expression, such as '''T=(?<value>[-0-9.]+)'''";
                    let pattern =
                        builder.multi_line(true).size_limit(PATTERN_MAX).build().map_err(|error| {
                            let error = error.to_string();
                            let said = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                            fields.mistake_in(
                                line,
                                "pattern",
                                format!("{text:?} is no pattern: {said}"),
                                hint,
                            )
                        })?;
                    Place::Pattern(pattern)
                }
            },
        };
        self.tags.push((place, kind));
        Ok(kind)
    }

    /// The readings of a line, each with the position of its tag; tags without a value are omitted. `None` if the line is not of
    /// the format.
    #[must_use]
    pub fn line(&self, text: &str) -> Option<Vec<(usize, Reading)>> {
        let found = self.found(text, &self.columns, text)?;
        Some(found.into_iter().enumerate().filter_map(|(at, found)| Some((at, found?))).collect())
    }

    /// One reading per tag from a whole file; Bad_NoData if the file does not contain the value. For CSV, values come from the
    /// last row; the first row names the columns.
    ///
    /// # Errors
    /// Why the file is not of the format.
    pub fn whole(&self, text: &str) -> Result<Vec<Reading>, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let found = match self.format {
            // A program that rewrites the file truncates it first.
            Format::Text if text.trim().is_empty() => return Err("is empty".to_owned()),
            Format::Text => self.found(text, &[], text),
            Format::Json => {
                let json: Json =
                    serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
                Some(self.in_json(&json))
            }
            Format::Csv(delimiter) => {
                let mut rows = rows(text, delimiter);
                let mut next = || rows.next().transpose().map_err(|error| format!("is no CSV: {error}"));
                let first = next()?.ok_or("has no rows")?;
                if first.len() > COLUMNS_MAX {
                    return Err(format!("has {} columns; {COLUMNS_MAX} are allowed", first.len()));
                }
                let names: Vec<String> = first.iter().map(|name| name.trim().to_owned()).collect();
                let mut last = next()?.ok_or("has no row below the names of its columns")?;
                while let Some(row) = next()? {
                    last = row;
                }
                let cells: Vec<&str> = last.iter().collect();
                Some(self.in_cells(&cells, &names))
            }
        };
        let none = || Reading::bad(StatusCode::BAD_NO_DATA);
        Ok(found.unwrap_or_default().into_iter().map(|found| found.unwrap_or_else(none)).collect())
    }

    fn found(&self, text: &str, columns: &[String], line: &str) -> Option<Vec<Found>> {
        Some(match self.format {
            Format::Text => self.tags.iter().map(|(place, kind)| in_text(place, *kind, text)).collect(),
            Format::Json => self.in_json(&serde_json::from_str(line).ok()?),
            Format::Csv(delimiter) => {
                let row = rows(line, delimiter).next()?.ok()?;
                self.in_cells(&row.iter().collect::<Vec<_>>(), columns)
            }
        })
    }

    fn in_json(&self, json: &Json) -> Vec<Found> {
        let found = self.tags.iter().map(|(place, kind)| {
            let Place::Json(value, time) = place else { return None };
            let time = time.as_ref().and_then(|path| path.find(json)).and_then(time_of);
            Some(reading(kind.of_json(value.find(json)?)).at(time))
        });
        found.collect()
    }

    fn in_cells(&self, cells: &[&str], names: &[String]) -> Vec<Found> {
        let cell = |column: &Column| {
            let at = match column {
                Column::Number(at) => Some(*at),
                Column::Name(name) => names.iter().position(|other| other == name),
            };
            cells.get(at?).map(|cell| cell.trim()).filter(|cell| !cell.is_empty())
        };
        let found = self.tags.iter().map(|(place, kind)| {
            let Place::Column(value, time) = place else { return None };
            let time = time.as_ref().and_then(&cell).and_then(time_of_text);
            Some(reading(parse(kind.element, cell(value)?)).at(time))
        });
        found.collect()
    }
}

fn in_text(place: &Place, kind: Kind, text: &str) -> Found {
    match place {
        Place::Whole => Some(reading(parse(kind.element, text.trim()))),
        Place::Pattern(pattern) => {
            let groups = pattern.captures(text)?;
            let value = groups.name("value").or_else(|| groups.get(1)).or_else(|| groups.get(0))?;
            let time = groups.name("time").and_then(|time| time_of_text(time.as_str()));
            Some(reading(parse(kind.element, value.as_str())).at(time))
        }
        Place::Json(..) | Place::Column(..) => None,
    }
}

fn reading(value: Option<taktwerk_types::Variant>) -> Reading {
    value.map_or_else(|| Reading::bad(StatusCode::BAD_TYPE_MISMATCH), Reading::good)
}

fn rows(text: &str, delimiter: u8) -> csv::StringRecordsIntoIter<&[u8]> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(text.as_bytes())
        .into_records()
}

/// A time in ISO 8601, or a number since 1970.
fn time_of_text(text: &str) -> Option<UtcTime> {
    match text.trim().parse::<f64>() {
        Ok(number) => time_of(&Json::from(number)),
        Err(_) => UtcTime::parse(text.trim()),
    }
}

fn json_path(fields: &mut Fields, key: &'static str) -> Result<Option<JsonPath>, Mistake> {
    let Some((line, text)) = fields.text_at(key)? else { return Ok(None) };
    let hint = "write the names from the outside in, such as \"$.machine.axes[0].position\"";
    let path = JsonPath::parse(&text);
    path.map(Some).ok_or_else(|| fields.mistake_in(line, key, format!("{text:?} is no path"), hint))
}

/// A column by its name, or by its number counted from 1.
fn column(fields: &mut Fields, key: &'static str) -> Result<Option<Column>, Mistake> {
    let Some((line, setting)) = fields.take(key) else { return Ok(None) };
    let hint = "write the name of a column in quotation marks, or its number from 1";
    let text = setting.as_text().filter(|text| !text.trim().is_empty());
    let Some(text) = text else { return Err(fields.mistake_in(line, key, "this is no column", hint)) };
    match text.trim().parse::<usize>() {
        Ok(0) => Err(fields.mistake_in(line, key, "columns count from 1", hint)),
        Ok(number) => Ok(Some(Column::Number(number - 1))),
        Err(_) => Ok(Some(Column::Name(text.trim().to_owned()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Sections;

    fn add(extractor: &mut Extractor, settings: &str) -> Result<Kind, Mistake> {
        let text = format!("[[tag]]\nsource = \"s\"\nname = \"T\"\n{settings}\n");
        let mut fields = Sections::parse(Path::new("g.toml"), &text).unwrap().tags.remove(0);
        let tag = Tag::take(&mut fields)?;
        let kind = extractor.add_tag(&tag, &mut fields)?;
        fields.finish().map(|()| kind)
    }

    fn made(format: Format, tags: &[&str]) -> Extractor {
        let mut extractor = Extractor::new(format);
        for settings in tags {
            add(&mut extractor, settings).unwrap();
        }
        extractor
    }

    #[test]
    fn patterns_find_values_and_times_in_lines() {
        let extractor = made(
            Format::Text,
            &[
                "pattern = '''(?<time>\\S+) T=(?<value>[-0-9.]+)'''",
                "pattern = 'P (\\d+)'\ntype = \"UInt16\"",
            ],
        );
        let time = UtcTime::parse("2026-01-01T12:00:00Z");
        assert_eq!(
            extractor.line("2026-01-01T12:00:00Z T=-2.5"),
            Some(vec![(0, Reading::good(-2.5).at(time))])
        );
        assert_eq!(extractor.line("x P 7"), Some(vec![(1, Reading::good(7u16))]));
        let wrong = Reading::bad(StatusCode::BAD_TYPE_MISMATCH);
        assert_eq!(extractor.line("P 70000"), Some(vec![(1, wrong)]), "nothing wraps around");
        assert_eq!(extractor.line("nothing"), Some(Vec::new()));
        let whole = extractor.whole("a\nP 7\nb T=1.5\n").unwrap();
        assert_eq!(whole, [Reading::good(1.5), Reading::good(7u16)]);
        assert_eq!(made(Format::Text, &[""]).whole(" 42000\n"), Ok(vec![Reading::good(42000.0)]));
    }

    #[test]
    fn json_and_rows_give_values_or_errors() {
        let json = made(Format::Json, &["json = \"$.a\"\ntime = \"$.t\"", "json = \"b\"\narray = true"]);
        let time = UtcTime::parse("2023-11-14T22:13:20Z");
        assert_eq!(
            json.whole(r#"{"a":1,"t":1700000000}"#).unwrap(),
            [Reading::good(1.0).at(time), Reading::bad(StatusCode::BAD_NO_DATA)]
        );
        assert_eq!(json.line(r#"{"b":[1,2]}"#), Some(vec![(1, Reading::good(vec![1.0, 2.0]))]));
        assert_eq!(json.line("{"), None);
        assert!(json.whole("{").unwrap_err().starts_with("is no JSON"));
        let mut rows =
            made(Format::Csv(b';'), &["column = \"temp\"\ntime = 1", "column = 3\ntype = \"String\""]);
        let text = "time;temp;state\n1700000000;20;on\n1700000000;21.5;\"a;b\"\n";
        assert_eq!(rows.whole(text).unwrap(), [Reading::good(21.5).at(time), Reading::good("a;b")]);
        assert!(rows.whole("time;temp\n").unwrap_err().contains("no row below"));
        assert_eq!(rows.line("1700000000;3"), Some(Vec::new()), "no column has this name");
        rows.set_columns(vec!["time".to_owned(), "temp".to_owned()]);
        assert_eq!(rows.line("1700000000;3"), Some(vec![(0, Reading::good(3.0).at(time))]));
    }

    #[test]
    fn mistakes_suggest_a_correction() {
        for (format, settings, said) in [
            (Format::Text, "pattern = '('", "g.toml:4: pattern: \"(\" is no pattern: unclosed group"),
            (Format::Text, "json = \"$.a\"", "json"),
            (Format::Json, "", "json is missing"),
            (Format::Csv(b','), "column = 0", "columns count from 1"),
        ] {
            let error = add(&mut Extractor::new(format), settings).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
