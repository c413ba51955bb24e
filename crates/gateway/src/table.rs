//! Tags as a table: CSV files whose first line names the settings.

use crate::fields::{Fields, Head, Mistake, Sections, Setting};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Largest file in bytes.
const FILE_LEN_MAX: u64 = 64 << 20;

/// Reads the tags of a file. The column `source` is optional.
///
/// # Errors
/// The file cannot be read, or is not CSV.
pub fn read(path: &Path, source: &str) -> Result<Vec<Fields>, Mistake> {
    let text = taktwerk_config::file::read_text(path, FILE_LEN_MAX)
        .map_err(|error| mistake(path, 0, error.to_string()))?;
    parse(path, source, &text)
}

fn mistake(path: &Path, line: usize, problem: String) -> Mistake {
    Mistake { path: path.to_owned(), line, key: String::new(), problem, hint: String::new() }
}

/// Reads the tags from the text of a file.
///
/// # Errors
/// The text is not CSV.
pub fn parse(path: &Path, source: &str, text: &str) -> Result<Vec<Fields>, Mistake> {
    let mistake = |line: usize, problem: String| mistake(path, line, problem);
    // Spreadsheets write a byte order mark, and semicolons in many locales.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.lines().next().unwrap_or_default();
    let delimiter = if first.matches(';').count() > first.matches(',').count() { b';' } else { b',' };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let line_of = |error: &csv::Error| error.position().map_or(0, |position| position.line() as usize);
    let headers = reader.headers().map_err(|error| mistake(line_of(&error), error.to_string()))?.clone();
    // Comments may be in front of it.
    let is_head = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
    let line = text.lines().position(is_head).map_or(1, |at| at + 1);
    let mut names = BTreeSet::new();
    if let Some(twice) = headers.iter().find(|name| !names.insert(name.to_owned())) {
        return Err(mistake(line, format!("there are two columns {twice:?}")));
    }
    let head = Arc::new(Head { line, columns: names.into_iter().map(str::to_owned).collect() });
    let mut tags = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| mistake(line_of(&error), error.to_string()))?;
        let line = record.position().map_or(0, |position| position.line() as usize);
        let cells = headers.iter().zip(&record).map(|(key, cell)| (key.to_owned(), cell.to_owned()));
        let default = core::iter::once(("source".to_owned(), source.to_owned()));
        // A cell overrides the default.
        tags.push(Fields::of_cells(
            path,
            (&head, line),
            default.chain(cells.filter(|(_, cell)| !cell.is_empty())),
        ));
    }
    Ok(tags)
}

/// Writes the tags of a configuration as a table, including those from tables and template instances.
///
/// # Errors
/// The text is not a valid configuration, or a table cannot be read.
pub fn write(path: &Path, text: &str) -> Result<String, Mistake> {
    let mut sections = Sections::parse(path, text)?;
    if let Some(mistake) = crate::template::expand(&mut sections).into_iter().next() {
        return Err(mistake);
    }
    let mut tags = Vec::new();
    for source in &sections.sources {
        if let (Some(Setting::Text(name)), Some(Setting::Text(table))) =
            (source.get("name"), source.get("tags"))
        {
            tags.extend(read(&path.parent().unwrap_or(Path::new("")).join(table), name)?);
        }
    }
    tags.extend(sections.tags);
    let mut columns: Vec<&str> = vec!["source", "name", "path", "address"];
    let others: BTreeSet<&str> = tags.iter().flat_map(Fields::keys).collect();
    columns.extend(others.into_iter().filter(|key| !["source", "name", "path", "address"].contains(key)));
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory cannot fail.
    let _ = writer.write_record(&columns);
    for tag in &tags {
        let _ = writer.write_record(columns.iter().map(|key| tag.get(key).map(cell).unwrap_or_default()));
    }
    Ok(String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default())
}

/// Formats a setting for a cell.
fn cell(setting: &Setting) -> String {
    match setting {
        Setting::Text(text) => text.clone(),
        Setting::Integer(number) => number.to_string(),
        Setting::Number(number) => number.to_string(),
        Setting::Flag(flag) => flag.to_string(),
        Setting::List(list) => list.iter().map(|(_, entry)| cell(entry)).collect::<Vec<_>>().join(".."),
        Setting::Table(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GatewayConfig;

    const SOURCE: &str = "[[source]]\nname = \"plc\"\ntype = \"modbus\"\naddress = \"localhost\"\n";

    #[test]
    fn tags_survive_a_round_trip_through_a_table() {
        let tags = "[[tag]]\nsource = \"plc\"\nname = \"A, B\"\npath = \"x/y\"\naddress = \"holding:1\"\nscale = 0.5\n\
                    range = [0, 10.5]\nhistorize = true\n[[tag]]\nsource = \"plc\"\nname = \"C\"\naddress = \"coil:2\"\n";
        let table = write(Path::new("g.toml"), &format!("{SOURCE}{tags}")).unwrap();
        assert_eq!(
            table,
            "source,name,path,address,historize,range,scale\nplc,\"A, B\",x/y,holding:1,true,0..10.5,0.5\n\
             plc,C,,coil:2,,,\n"
        );
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tags.csv"), format!("\u{feff}{table}")).unwrap();
        let file = folder.path().join("g.toml");
        let text = format!("{SOURCE}tags = \"tags.csv\"\n");
        // A configuration with a table yields the same table.
        assert_eq!(write(&file, &text).unwrap(), table);
        let config = GatewayConfig::parse(&file, &text).unwrap().unwrap();
        let tag = &config.sources[0].tags[0].tag;
        assert_eq!((tag.name.as_str(), tag.range, tag.historize), ("A, B", Some((0.0, 10.5)), true));
        assert_eq!(config.tag_count(), 2);
    }

    #[test]
    fn mistakes_in_tables_have_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let parse = |table: &str| {
            std::fs::write(folder.path().join("tags.csv"), table).unwrap();
            let text = format!("{SOURCE}tags = \"tags.csv\"\n");
            GatewayConfig::parse(&folder.path().join("g.toml"), &text).unwrap_err().to_string()
        };
        assert!(
            parse("name;address\na;holding:1\nb;holdin:2\n")
                .contains("tags.csv:3: address: \"holdin:2\" is no")
        );
        assert!(parse("name,adress\na,holding:1\n").contains("tags.csv:1: address is missing"));
        assert!(parse("name,address\na,\nb,coil:1\n").contains("tags.csv:2: address is missing"));
        assert!(
            parse("name,address,scael\na,coil:1,2\n").contains("tags.csv:1: scael: there is no such setting")
        );
        assert!(parse("name,name\na,b\n").contains("tags.csv:1: there are two columns"));
        assert!(parse("# of plant 7\nname,name\na,b\n").contains("tags.csv:2: there are two columns"));
        assert!(parse("name,address\na\n").contains("tags.csv:2: "));
        // One mistake, however many rows there are.
        std::fs::write(folder.path().join("tags.csv"), "name,address,x\na,coil:1,1\nb,coil:2,1\n").unwrap();
        let text = format!("{SOURCE}tags = \"tags.csv\"\n");
        assert_eq!(GatewayConfig::examine(&folder.path().join("g.toml"), &text).1.len(), 1);
        let text = format!("{SOURCE}tags = \"none.csv\"\n");
        let error = GatewayConfig::parse(&folder.path().join("g.toml"), &text).unwrap_err().to_string();
        assert!(error.contains("none.csv"), "{error}");
    }
}
