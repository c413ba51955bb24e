//! Reading of configuration files for commands.

use crate::failure::Failure;
use std::path::Path;
use taktwerk_config::ConfigFile;
use taktwerk_config::users::Users;

/// Reads a configuration file. Errors are usage errors.
pub(crate) fn load(path: &Path) -> Result<ConfigFile, Failure> {
    ConfigFile::load(path).map_err(|error| Failure::Usage(error.to_string()))
}

/// The users file that a configuration names.
pub(crate) fn users(config: &ConfigFile) -> Result<Option<Users>, Failure> {
    let Some(path) = &config.config().identities.users_file else { return Ok(None) };
    let users = Users::load(&config.resolve(path)).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(Some(users))
}
