//! `taktwerk pki import`.

use super::{StoreArgs, unusable};
use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use taktwerk_pki::import::{ImportError, Role, import};

/// Arguments of `taktwerk pki import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Certificate or chain in PEM or DER, or a revocation list.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Import as issuer: the certificates complete chains, but are not trusted.
    #[arg(long, conflicts_with = "own")]
    issuer: bool,

    /// Import as own certificate.
    #[arg(long)]
    own: bool,

    /// Private key of the own certificate. Default: the one in FILE or in the store.
    #[arg(long, value_name = "FILE", requires = "own")]
    key: Option<PathBuf>,
}

pub(super) fn run(arguments: &ImportArgs, at: &StoreArgs, output: Output) -> Result<(), Failure> {
    let store = at.store()?;
    let role = match arguments {
        ImportArgs { own: true, .. } => Role::Own,
        ImportArgs { issuer: true, .. } => Role::Issuer,
        _ => Role::Trusted,
    };
    let done = import(&store, at.group(), &arguments.file, role, arguments.key.as_deref());
    let done = done.map_err(|error| match error {
        ImportError::Store(error) => unusable(&store, &error),
        error => Failure::Usage(error.to_string()),
    })?;
    if output.is_json() {
        let files = done.iter().map(|it| json!({ "What": it.what, "Path": it.path.display().to_string() }));
        return output.document(&files.collect());
    }
    for it in done {
        output.text(&format!("{}\n  {}", it.what, it.path.display()))?;
    }
    Ok(())
}
