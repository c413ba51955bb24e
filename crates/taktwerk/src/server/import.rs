//! Reading NodeSet files for the importer.

use crate::error::BuildError;
use crate::space::now;
use std::path::Path;
use taktwerk_server::AddressSpace;
use taktwerk_server::space::import::{Imported, Importer};

pub(super) fn import<P: AsRef<Path>>(
    space: &AddressSpace,
    importer: &mut Importer,
    paths: impl IntoIterator<Item = P>,
) -> Result<Imported, BuildError> {
    let mut files = Vec::new();
    for path in paths {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|source| BuildError::File { path: path.to_owned(), source })?;
        files.push((path.display().to_string(), text));
    }
    let imported = importer.import(space, &files, now())?;
    for warning in &imported.warnings {
        tracing::warn!("{warning}");
    }
    Ok(imported)
}
