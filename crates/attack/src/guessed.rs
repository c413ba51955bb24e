//! A server whose users have passwords in a file, hashed as `taktwerk user` does it, and readable on the way: encrypting
//! them would cost the attacker more than the server.

use crate::AttackError;
use std::path::{Path, PathBuf};
use taktwerk_config::users::Users;

/// The user that knows its password.
pub(crate) const HONEST: (&str, &str) = ("joe", "a password that joe knows");
/// A user that exists and is guessed for.
pub(crate) const VICTIM: &str = "ann";
/// What is guessed; nobody has it.
pub(crate) const GUESS: &str = "a password that nobody has";

const CONFIG: &str = "[server]
bind = [\"127.0.0.1:0\"]
[security]
pki = \"server\"
policies = []
none = true
[identities]
anonymous = true
clear_passwords = true
users_file = \"users.toml\"
[permissions]
unspecified = \"open\"
";

/// Writes the configuration and its users into a folder.
pub(crate) fn write(folder: &Path) -> Result<PathBuf, AttackError> {
    let mut users = Users::default();
    for (name, password) in [HONEST, (VICTIM, "a password that is not guessed")] {
        users.add(name, password.as_bytes(), Vec::new()).map_err(AttackError::environment)?;
    }
    users.save(&folder.join("users.toml")).map_err(AttackError::environment)?;
    let path = folder.join("server.toml");
    std::fs::write(&path, CONFIG).map_err(AttackError::environment)?;
    Ok(path)
}
