//! `taktwerk gateway import` and `export`: converts files of other products to sources and tags, and tags to a table.

use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use taktwerk_config::file;
use taktwerk_gateway::import::{self, Wishes};
use taktwerk_gateway::{GatewayConfig, init, table};

/// Arguments of `taktwerk gateway import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// OPC Publisher's publishednodes.json, or a table of tags that Kepware has exported as CSV.
    file: PathBuf,

    /// The name of the source. Default: what the file says, or the host.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Address of the device, which Kepware's tables do not contain.
    #[arg(long, value_name = "HOST[:PORT]")]
    address: Option<String>,

    /// Write a configuration that runs as it is; the file must not exist. Without it, the sections are printed.
    #[arg(long, short = 'o', value_name = "FILE")]
    to: Option<PathBuf>,
}

/// Arguments of `taktwerk gateway export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The configuration file.
    file: PathBuf,

    /// Write the table to a file that must not exist. Without it, the table is printed.
    #[arg(long, short = 'o', value_name = "FILE")]
    to: Option<PathBuf>,
}

fn read(path: &Path) -> Result<String, Failure> {
    file::read_text(path, super::FILE_LEN_MAX)
        .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if path.exists() {
        return Err(Failure::Usage(format!("{} exists already; name another file", path.display())));
    }
    file::replace(path, text.as_bytes(), file::PUBLIC)
        .map_err(|error| Failure::Environment(format!("{}: {error}", path.display())))
}

/// Imports.
pub(crate) fn import(arguments: &ImportArgs, output: Output) -> Result<(), Failure> {
    let wishes = Wishes { name: arguments.name.clone(), address: arguments.address.clone() };
    let imported = import::read(&arguments.file, &read(&arguments.file)?, &wishes)
        .map_err(|mistake| Failure::Usage(mistake.to_string()))?;
    let sections = imported.text();
    // Check the result: a valid name in the other product may be invalid here.
    let (_, mistakes) = GatewayConfig::examine(Path::new("imported"), &sections);
    if output.is_json() {
        output.document(&json!({
            "Sources": imported.sources.len(),
            "Tags": imported.tags.len(),
            "Notes": imported.notes,
            "Mistakes": mistakes.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "Text": sections,
        }))?;
    } else {
        imported.notes.iter().for_each(|note| tell!("note: {note}"));
        mistakes.iter().for_each(|mistake| tell!("error: {mistake}"));
        if arguments.to.is_none() {
            output.text(&sections)?;
        }
    }
    if let Some(path) = &arguments.to {
        write(path, &init::file_of(&sections))?;
        if !output.is_json() {
            output.text(&format!(
                "wrote {0}: {1}, {2}; next: taktwerk gateway check {0}, then taktwerk serve --config {0}",
                path.display(),
                crate::output::counted(imported.sources.len(), "source"),
                crate::output::counted(imported.tags.len(), "tag")
            ))?;
        }
    }
    if mistakes.is_empty() {
        Ok(())
    } else {
        Err(Failure::Usage("the imported tags have errors; see above".to_owned()))
    }
}

/// Exports.
pub(crate) fn export(arguments: &ExportArgs, output: Output) -> Result<(), Failure> {
    let text = read(&arguments.file)?;
    let usage = |mistake: taktwerk_gateway::Mistake| Failure::Usage(mistake.to_string());
    let config = GatewayConfig::parse(&arguments.file, &text).map_err(usage)?;
    let count = config.as_ref().map_or(0, GatewayConfig::tag_count);
    if count == 0 {
        return Err(Failure::Usage(format!("{}: there is no [[tag]]", arguments.file.display())));
    }
    let table = table::write(&arguments.file, &text).map_err(usage)?;
    if let Some(path) = &arguments.to {
        write(path, &table)?;
    }
    match (output.is_json(), &arguments.to) {
        (true, _) => output.document(&json!({ "Tags": count, "Table": table })),
        (false, None) => output.text(&table),
        (false, Some(path)) => output.text(&format!("wrote {count} tags to {}", path.display())),
    }
}
