//! Which columns of a recording hold the values of tags.

use crate::feed::Reading;
use crate::json_time::time_of;
use crate::value::{Kind, parse};
use serde_json::Value as Json;
use std::collections::HashMap;
use taktwerk_types::{StatusCode, UtcTime};

/// The tags of a recording with the columns that the configuration names.
#[derive(Debug, Default)]
pub struct Tags {
    /// The columns with tag name and value, if each row has a single value.
    pub narrow: Option<(String, String)>,
    /// The column with the time of a row.
    pub time: Option<String>,
    /// The column of each tag, or the content of the tag column.
    tags: Vec<(String, Kind)>,
    /// The positions of tags by the first of both.
    by_column: HashMap<String, Vec<usize>>,
}

impl Tags {
    /// Adds a tag.
    pub fn add(&mut self, column: String, kind: Kind) {
        self.by_column.entry(column.clone()).or_default().push(self.tags.len());
        self.tags.push((column, kind));
    }

    /// Finds the columns in a file with these column names.
    ///
    /// # Errors
    /// A column does not exist.
    pub fn layout(&self, headers: &[String]) -> Result<Layout<'_>, String> {
        let column = |name: &str| {
            let found = headers.iter().position(|header| header.as_str() == name);
            found.ok_or_else(|| format!("there is no column {name:?}; there are {}", headers.join(", ")))
        };
        let time = self.time.as_deref().map(column).transpose()?;
        let values = match &self.narrow {
            // Files written by the gateway have texts in a column next to the numbers.
            Some((tag, value)) => {
                Values::Narrow { tag: column(tag)?, value: column(value)?, text: column("text").ok() }
            }
            None => Values::Wide(self.tags.iter().map(|(name, _)| column(name)).collect::<Result<_, _>>()?),
        };
        Ok(Layout { tags: self, time, values })
    }
}

#[derive(Debug)]
enum Values {
    Narrow {
        tag: usize,
        value: usize,
        text: Option<usize>,
    },
    /// The column of each tag.
    Wide(Vec<usize>),
}

/// The columns of a file.
#[derive(Debug)]
pub struct Layout<'a> {
    tags: &'a Tags,
    time: Option<usize>,
    values: Values,
}

impl Layout<'_> {
    /// The time of a row, if it has one.
    #[must_use]
    pub fn time(&self, row: &[String]) -> Option<UtcTime> {
        let cell = row.get(self.time?)?;
        // ISO 8601, or a number since 1970.
        match cell.parse::<f64>() {
            Ok(number) => time_of(&Json::from(number)),
            Err(_) => UtcTime::parse(cell),
        }
    }

    /// The readings of a row, by the positions of their tags. Empty cells have none.
    #[must_use]
    pub fn readings(&self, row: &[String]) -> Vec<(usize, Reading)> {
        let cell = |at: usize| row.get(at).map(String::as_str).filter(|cell| !cell.is_empty());
        let reading = |kind: &Kind, cell: &str| {
            parse(kind.element, cell)
                .map_or_else(|| Reading::bad(StatusCode::BAD_TYPE_MISMATCH), Reading::good)
        };
        match &self.values {
            Values::Narrow { tag, value, text } => {
                let Some(value) = cell(*value).or_else(|| cell((*text)?)) else { return Vec::new() };
                let positions = cell(*tag).and_then(|name| self.tags.by_column.get(name));
                let found = positions.into_iter().flatten().filter_map(|position| {
                    let (_, kind) = self.tags.tags.get(*position)?;
                    Some((*position, reading(kind, value)))
                });
                found.collect()
            }
            Values::Wide(columns) => {
                let found = self.tags.tags.iter().zip(columns).enumerate();
                let found = found.filter_map(|(position, ((_, kind), column))| {
                    Some((position, reading(kind, cell(*column)?)))
                });
                found.collect()
            }
        }
    }
}
