//! Configuration of a server with a users file, hashed as `taktwerk user` does.

use crate::attack::ServerKind;
use crate::{AttackError, ServerProgram};
use std::path::{Path, PathBuf};
use taktwerk_config::users::Users;

/// The user who logs in with the right password.
pub(crate) const HONEST: (&str, &str) = ("joe", "a password that joe knows");
/// A user whose password is guessed.
pub(crate) const VICTIM: &str = "ann";
/// The guess, which is no user's password.
pub(crate) const GUESS: &str = "a password that nobody has";

const CLEAR: &str = "[server]
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

/// With security policies and an audit file.
const USERS: &str = "[security]
pki = \"server\"
none = true
[identities]
anonymous = true
users_file = \"users.toml\"
[permissions]
unspecified = \"open\"
[audit]
file = \"audit.log\"
";

/// Writes the configuration and the users file into a directory.
pub(crate) fn write(
    folder: &Path,
    kind: ServerKind,
    program: &ServerProgram,
) -> Result<PathBuf, AttackError> {
    let mut users = Users::default();
    for (name, password) in [HONEST, (VICTIM, "a password that is not guessed")] {
        users.add(name, password.as_bytes(), Vec::new()).map_err(AttackError::environment)?;
    }
    users.save(&folder.join("users.toml")).map_err(AttackError::environment)?;
    let path = folder.join("server.toml");
    let ServerProgram { application_name: name, application_uri: uri, .. } = program;
    let text = match kind {
        ServerKind::Users => format!(
            "[server]\nbind = [\"127.0.0.1:0\"]\napplication_name = {name:?}\napplication_uri = {uri:?}\n{USERS}"
        ),
        ServerKind::ClearPasswords | ServerKind::Plain => CLEAR.to_owned(),
    };
    std::fs::write(&path, text).map_err(AttackError::environment)?;
    Ok(path)
}
