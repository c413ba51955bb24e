//! Imports Kepware's tag tables (KEPServerEX, File | Export CSV) for devices of its Modbus drivers.
//!
//! The table does not describe the device. In particular it lacks the word order, which in these drivers is low word first by
//! default.

use super::section::Section;
use super::{Imported, Names, Wishes, mistake, source_name};
use crate::adapter::modbus::address::{Table, parse};
use crate::connect::host_and_port;
use crate::fields::Mistake;
use std::collections::HashMap;
use std::path::Path;

/// The column that every table has.
const NAME: &str = "tagname";

pub(super) fn read(path: &Path, text: &str, wishes: &Wishes) -> Result<Imported, Mistake> {
    // Lines before the heading are comments.
    let is_heading = |line: &str| plain(line).starts_with(NAME);
    let Some(skipped) = text.lines().position(is_heading) else {
        let hint = "import takes OPC Publisher's publishednodes.json, and tables of tags that Kepware exports as CSV";
        return Err(mistake(path, 0, "the format is unknown", hint));
    };
    let Some(address) = &wishes.address else {
        let hint = "add --address HOST[:PORT]";
        return Err(mistake(path, 0, "the table does not say where the device is", hint));
    };
    if host_and_port(address, 502).is_none() {
        return Err(mistake(path, 0, format!("{address:?} is no address"), "write HOST or HOST:PORT"));
    }
    let body: String = text.split_inclusive('\n').skip(skipped).collect();
    let first = body.lines().next().unwrap_or_default();
    let delimiter = if first.matches(';').count() > first.matches(',').count() { b';' } else { b',' };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .trim(csv::Trim::All)
        .flexible(true)
        .from_reader(body.as_bytes());
    let line_of =
        |error: &csv::Error| error.position().map_or(0, |position| position.line() as usize + skipped);
    let failed = |error: csv::Error| mistake(path, line_of(&error), error.to_string(), "");
    let columns: Vec<String> = reader.headers().map_err(failed)?.iter().map(plain).collect();
    let source = source_name(wishes.name.as_deref().unwrap_or("device"));
    let mut imported = Imported::default();
    let mut names = Names::default();
    let mut rates: Vec<f64> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(failed)?;
        let line = record.position().map_or(0, |position| position.line() as usize + skipped);
        let cells = columns.iter().map(String::as_str).zip(&record).filter(|(_, cell)| !cell.is_empty());
        let row = Row(cells.collect());
        let Some(name) = row.text(NAME) else { continue };
        match row.tag(name, &source, &mut names) {
            Ok((tag, notes)) => {
                imported.tags.push(tag);
                imported.notes.extend(notes.into_iter().map(|note| format!("line {line}: {name}: {note}")));
                rates.extend(row.number("scanrate").filter(|rate| *rate > 0.0));
            }
            Err(why) => imported.notes.push(format!("line {line}: {name} was not imported: {why}")),
        }
    }
    let fastest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    if rates.iter().any(|rate| *rate > fastest) {
        let note = format!("tags have several scan rates; the source reads all of them every {fastest} ms");
        imported.notes.push(note);
    }
    let mut section = Section::new("source").with("name", source).with("type", "modbus");
    section = section.with("address", address.as_str()).with("word_order", "little");
    if fastest.is_finite() {
        section = section.with("interval", format!("{fastest} ms"));
    }
    imported
        .sources
        .push(section.comment("word_order: Kepware's \"First Word Low\", which is on unless changed"));
    Ok(imported)
}

/// A column title without differences between versions: case, dots, spaces.
fn plain(text: &str) -> String {
    text.chars().filter(|char| !matches!(char, ' ' | '.' | '"' | '_')).flat_map(char::to_lowercase).collect()
}

/// The non-empty cells of a row, by column.
struct Row<'a>(HashMap<&'a str, &'a str>);

impl Row<'_> {
    fn text(&self, column: &str) -> Option<&str> {
        self.0.get(column).copied()
    }

    fn number(&self, column: &str) -> Option<f64> {
        self.text(column)?.parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn flag(&self, column: &str) -> bool {
        self.text(column).is_some_and(|cell| matches!(&*cell.to_lowercase(), "1" | "true" | "yes"))
    }

    /// The tag with notes, or why it cannot be imported.
    fn tag(&self, full: &str, source: &str, names: &mut Names) -> Result<(Section, Vec<String>), String> {
        let place =
            place(self.text("address").unwrap_or_default(), self.text("datatype").unwrap_or_default())?;
        let (folders, name) = match full.rsplit_once('.') {
            Some((folders, name)) => (Some(folders.replace('.', "/")), name),
            None => (None, full),
        };
        let path = match folders {
            Some(folders) => format!("{source}/{folders}"),
            None => source.to_owned(),
        };
        let mut notes = Vec::new();
        let name = names.free(name, &path);
        let mut tag = Section::new("tag").with("source", source).with("name", name).with("path", path);
        tag = tag.with("address", place.address).maybe("format", place.format);
        tag = tag.maybe("length", place.length).maybe("count", place.count);
        tag = tag.maybe("description", self.text("description")).maybe("units", self.text("engunits"));
        match &*self.text("clientaccess").unwrap_or("RO").to_uppercase() {
            "RW" | "R/W" | "READ/WRITE" if place.is_writable => tag = tag.with("access", "read-write"),
            "WO" if place.is_writable => {
                tag = tag.with("access", "read-write");
                notes.push("was write-only; it can be read now".to_owned());
            }
            _ => {}
        }
        Ok((self.scaled(tag, &mut notes), notes))
    }

    fn scaled(&self, tag: Section, notes: &mut Vec<String>) -> Section {
        let mode = self.text("scaling").unwrap_or("None").to_lowercase();
        let sign = if self.flag("negatevalue") { -1.0 } else { 1.0 };
        let ends = ["rawlow", "rawhigh", "scaledlow", "scaledhigh"].map(|column| self.number(column));
        let [Some(raw_low), Some(raw_high), Some(low), Some(high)] = ends else {
            if mode != "none" {
                notes.push("the scaling was not imported: it has no ranges".to_owned());
            }
            return if sign < 0.0 { tag.with("scale", sign) } else { tag };
        };
        if mode != "linear" || raw_low >= raw_high || low == high {
            if mode != "none" {
                notes.push(format!(
                    "the scaling was not imported: {mode} from {raw_low}…{raw_high} to {low}…{high}"
                ));
            }
            return if sign < 0.0 { tag.with("scale", sign) } else { tag };
        }
        let scale = (high - low) / (raw_high - raw_low);
        let offset = low - raw_low * scale;
        // Adding zero turns -0 into 0.
        let (one, two) = (low * sign + 0.0, high * sign + 0.0);
        let range = toml::Value::from(vec![one.min(two), one.max(two)]);
        let mut tag = tag.with("scale", scale * sign);
        if offset != 0.0 {
            tag = tag.with("offset", offset * sign);
        }
        tag = tag.with("range", range.clone());
        match (self.flag("clamplow"), self.flag("clamphigh")) {
            (true, true) => tag.with("clamp", range),
            (false, false) => tag,
            _ => {
                notes.push("clamping at only one end was not imported".to_owned());
                tag
            }
        }
    }
}

/// The address of a value in the gateway's notation.
struct Place {
    address: String,
    format: Option<&'static str>,
    length: Option<i64>,
    count: Option<i64>,
    is_writable: bool,
}

/// Parses addresses of Kepware's Modbus drivers: `400001`, `400001.3` (a bit), `400001[10]` (an array), `400001.20H` (a text).
fn place(address: &str, kind: &str) -> Result<Place, String> {
    let unknown = || format!("{address:?} is no Modbus address");
    let (base, count) = match address.split_once('[') {
        Some((base, rest)) => {
            let sizes: Option<Vec<i64>> =
                rest.trim_end_matches(']').split("][").map(|size| size.trim().parse().ok()).collect();
            (base.trim(), Some(sizes.ok_or_else(unknown)?.iter().product()))
        }
        None => (address, None),
    };
    let (base, length) = match base.split_once('.') {
        Some((register, rest)) if rest.ends_with(['H', 'L', 'h', 'l']) => {
            if rest.ends_with(['L', 'l']) {
                return Err("texts with the low byte first are not imported".to_owned());
            }
            (register, Some(rest.trim_end_matches(['H', 'h']).parse().map_err(|_| unknown())?))
        }
        _ => (base, None),
    };
    let (table, first, bit) = parse(base).filter(|_| !base.contains(':')).ok_or_else(unknown)?;
    let kind = kind.to_lowercase();
    let format = match kind.trim_end_matches(" array") {
        "boolean" if table.is_bits() || bit.is_some() => None,
        _ if table.is_bits() => None,
        "boolean" => return Err("a register is no Boolean; name its bit".to_owned()),
        "short" => Some("int16"),
        "word" | "" | "default" => Some("uint16"),
        "long" => Some("int32"),
        "dword" => Some("uint32"),
        "llong" => Some("int64"),
        "qword" => Some("uint64"),
        "float" => Some("float32"),
        "double" => Some("float64"),
        "string" if length.is_some() => Some("string"),
        other => return Err(format!("values of type {other:?} are not imported")),
    };
    if (length.is_some() && format != Some("string")) || (bit.is_some() && format.is_some()) {
        return Err(format!("{address:?} does not fit the type {kind:?}"));
    }
    let bit = bit.map(|bit| format!(".{bit}")).unwrap_or_default();
    Ok(Place {
        address: format!("{}:{first}{bit}", table.name()),
        format,
        length,
        count,
        is_writable: matches!(table, Table::Coil | Table::Holding),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str = "Tag Name,Address,Data Type,Respect Data Type,Client Access,Scan Rate,Scaling,Raw Low,Raw High,\
                           Scaled Low,Scaled High,Scaled Data Type,Clamp Low,Clamp High,Eng Units,Description,Negate Value";

    fn import(rows: &str) -> Imported {
        let wishes = Wishes { name: Some("oven".to_owned()), address: Some("plc:502".to_owned()) };
        read(Path::new("k.csv"), &format!("{HEADING}\n{rows}"), &wishes).unwrap()
    }

    #[test]
    fn lines_become_tags() {
        let imported = import(
            "\"Zone 1.Temperature\",\"400001\",Word,1,R/W,100,Linear,0,1000,-50,150,Double,1,1,°C,\"Upper, left\",0\n\
             \"Zone 1.Ready\",400010.3,Boolean,1,RO,200,None,,,,,,,,,,\n\
             Pump,000017,Boolean,1,R/W,100,None,,,,,,,,,,\n\
             Energy,300100,DWord,1,R/W,100,,,,,,,,,kWh,,\n\
             Name,400200.16H,String,1,RO,100,,,,,,,,,,,\n\
             Curve,400300[8],Float Array,1,RO,100,,,,,,,,,,,\n",
        );
        let text = imported.text();
        for part in [
            "[[source]]\nname = \"oven\"\ntype = \"modbus\"\naddress = \"plc:502\"\nword_order = \"little\"\ninterval = \"100 ms\"",
            "name = \"Temperature\"\npath = \"oven/Zone 1\"\naddress = \"holding:0\"\nformat = \"uint16\"\n\
             description = \"Upper, left\"\nunits = \"°C\"\naccess = \"read-write\"\nscale = 0.2\noffset = -50.0\n\
             range = [-50.0, 150.0]\nclamp = [-50.0, 150.0]",
            "address = \"holding:9.3\"\n",
            "address = \"coil:16\"\naccess = \"read-write\"",
            "address = \"input:99\"\nformat = \"uint32\"\nunits = \"kWh\"\n",
            "address = \"holding:199\"\nformat = \"string\"\nlength = 16",
            "address = \"holding:299\"\nformat = \"float32\"\ncount = 8",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(imported.notes.len(), 1, "{:?}", imported.notes);
        assert!(imported.notes[0].contains("every 100 ms"));
    }

    #[test]
    fn unsupported_rows_are_reported_with_their_line() {
        let imported = import(
            "A,DB1.INT0,Short,1,RO,100,,,,,,,,,,,\n\
             B,400001,BCD,1,RO,100,,,,,,,,,,,\n\
             C,400001,Word,1,RO,100,Square Root,0,1,0,1,,,,,,\n\
             D,400001,Boolean,1,RO,100,,,,,,,,,,,\n\
             E,400005,Word,1,WO,100,Linear,0,10,0,1,,1,0,,,1\n",
        );
        let notes = imported.notes.join("\n");
        for note in [
            "line 2: A was not imported: \"DB1.INT0\" is no Modbus address",
            "line 3: B was not imported: values of type \"bcd\"",
            "line 4: C: the scaling was not imported: square root",
            "line 5: D was not imported: a register is no Boolean",
            "line 6: E: was write-only",
            "line 6: E: clamping at only one end",
        ] {
            assert!(notes.contains(note), "{note} in {notes}");
        }
        assert!(imported.text().contains("scale = -0.1\nrange = [-1.0, 0.0]\n"), "{}", imported.text());
        let nowhere = read(Path::new("k.csv"), HEADING, &Wishes::default()).unwrap_err().to_string();
        assert!(nowhere.contains("--address HOST"), "{nowhere}");
    }
}
