//! Reads NodeSet files.

use crate::error::BuildError;
use crate::space::now;
use std::path::Path;
use taktwerk_server::AddressSpace;
use taktwerk_server::space::import::{Batch, Imported, Importer, Prepared};

/// Longest NodeSet file in bytes: the largest companion specifications have about 20 MB.
pub(super) const NODESET_LEN_MAX: u64 = 256 << 20;

pub(super) fn import<P: AsRef<Path>>(
    space: &AddressSpace,
    importer: &mut Importer,
    paths: impl IntoIterator<Item = P>,
) -> Result<Imported, BuildError> {
    let imported = importer.import(space, &read(paths)?, now())?;
    warn(&imported);
    Ok(imported)
}

pub(super) fn prepare<P: AsRef<Path>>(
    space: &AddressSpace,
    importer: &mut Importer,
    paths: impl IntoIterator<Item = P>,
    instead: Option<Batch>,
) -> Result<Prepared, BuildError> {
    let mut prepared = importer.prepare(space, &read(paths)?, instead)?;
    // The caller checks settings that name them.
    importer.register(space, &mut prepared);
    Ok(prepared)
}

pub(super) fn replace(space: &AddressSpace, importer: &mut Importer, prepared: Prepared) -> Imported {
    let imported = importer.replace(space, prepared, now());
    warn(&imported);
    imported
}

fn read<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Vec<(String, String)>, BuildError> {
    let read = |path: P| {
        let path = path.as_ref();
        let text = taktwerk_files::read_text(path, NODESET_LEN_MAX)
            .map_err(|source| BuildError::File { path: path.to_owned(), source })?;
        Ok((path.display().to_string(), text))
    };
    paths.into_iter().map(read).collect()
}

pub(super) fn warn(imported: &Imported) {
    for warning in &imported.warnings {
        tracing::warn!("{warning}");
    }
    if imported.more_warnings > 0 {
        tracing::warn!("and {} more warnings of this kind", imported.more_warnings);
    }
}
