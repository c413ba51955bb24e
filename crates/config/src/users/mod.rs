//! The users of a server: a TOML file with names, Argon2id hashes of passwords, and roles.
//!
//! ```toml
//! [[user]]
//! name = "olaf"
//! password = "$argon2id$v=19$m=19456,t=2,p=1$…$…"
//! roles = ["Operator"]
//! ```
//!
//! `taktwerk user` writes it. Only its owner may read it, because hashes can be attacked offline.
//!
//! Clients with the role SecurityAdmin may change users and roles with the server's methods (Part 18). Changed roles
//! are in the same file, in `[[role]]`.
//!
//! - `hash`: password hashes; `memory`: working memory for them; [`store`]: the users file of a running server;
//!   `verify`: the verifier for passwords;
//! - [`role`]: roles that clients have changed;
//! - `certificate`: users that log on with a certificate. They are in no file.

mod certificate;
mod hash;
mod memory;
pub mod role;
pub mod store;
mod verify;

pub use certificate::CertificateVerifier;
pub use hash::{Cost, PasswordHash};
pub use role::ManagedRole;
pub use store::UserStore;
pub use verify::PasswordVerifier;

use crate::file;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use taktwerk_explain::Mistake;

/// Longest name, in bytes.
pub const NAME_LEN_MAX: usize = 128;
/// Shortest password, in characters.
pub const PASSWORD_LEN_MIN: usize = 8;
/// Longest password, in bytes. The server accepts no longer ones either.
pub const PASSWORD_LEN_MAX: usize = 1024;
/// Largest file, in bytes: about twenty thousand users.
const FILE_LEN_MAX: u64 = 4 << 20;

/// Why users cannot be read, changed or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UsersError {
    /// The file cannot be read or written.
    #[error("{}: {source}{}", path.display(), advice(path, source))]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Other users of the machine can read the file.
    #[error("{0}: others can read the password hashes; make it private with `chmod 600 {0}`", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// The content of the file is invalid.
    #[error("{}:{line}: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// The user name is invalid.
    #[error("a user's name has 1 to 128 bytes, no control characters, and no spaces at its ends")]
    Name,
    /// The password is too short or too long.
    #[error("a password has at least 8 characters and at most 1024 bytes")]
    Password,
    /// A user with this name exists already.
    #[error("the user {0:?} exists already; `taktwerk user passwd` changes a password")]
    Exists(String),
    /// A user has a name that differs only in upper and lower case.
    #[error(
        "the names {name:?} and {other:?} differ only in upper and lower case and are easily confused; choose another name"
    )]
    Alike {
        /// The new name.
        name: String,
        /// The name of the other user.
        other: String,
    },
    /// There is no such user.
    #[error("there is no user {0:?}; `taktwerk user list` shows all")]
    Unknown(String),
}

/// A user.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The name, as it is typed in.
    pub name: String,
    /// The password's hash.
    pub password: PasswordHash,
    /// The names of the user's roles.
    #[serde(default)]
    pub roles: Vec<String>,
    /// A note for administrators.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The user cannot log on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disabled: bool,
    /// Clients cannot remove the user.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_delete: bool,
    /// The user may not change the password.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_change_by_user: bool,
    /// The user has to change the password to get the roles (Part 18 §5.2.3).
    #[serde(default, skip_serializing_if = "is_false")]
    pub must_change_password: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes references
fn is_false(value: &bool) -> bool {
    !*value
}

/// All users of a file, and the roles that clients have changed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Users {
    #[serde(default, rename = "user")]
    users: Vec<User>,
    /// Roles that clients have changed. They replace the same roles of the configuration.
    #[serde(default, rename = "role", skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<ManagedRole>,
    /// The decoy for passwords of unknown users. See [`PasswordHash::decoy`].
    #[serde(skip)]
    decoy: OnceLock<PasswordHash>,
}

impl Users {
    /// Reads a file.
    ///
    /// # Errors
    /// [`UsersError`]
    pub fn load(path: &Path) -> Result<Self, UsersError> {
        let failed = |source| UsersError::File { path: path.to_owned(), source };
        if file::is_exposed(path).map_err(failed)? {
            return Err(UsersError::Exposed { path: path.to_owned() });
        }
        Self::parse(path, &file::read_text(path, FILE_LEN_MAX).map_err(failed)?)
    }

    /// Reads a file, or starts with an empty one if it does not exist.
    ///
    /// # Errors
    /// [`UsersError`]
    pub fn load_or_new(path: &Path) -> Result<Self, UsersError> {
        match Self::load(path) {
            Err(UsersError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(Self::default())
            }
            other => other,
        }
    }

    /// Parses the text of a file; `path` is for messages.
    ///
    /// # Errors
    /// [`UsersError::Malformed`]
    pub fn parse(path: &Path, text: &str) -> Result<Self, UsersError> {
        let malformed =
            |line, problem: String| UsersError::Malformed { path: path.to_owned(), line, problem };
        let users: Self = toml::from_str(text).map_err(|error| {
            let mistake = Mistake::of(&error, Some(text));
            malformed(mistake.line.max(1), mistake.to_string())
        })?;
        for (at, user) in users.users.iter().enumerate() {
            let line = text
                .lines()
                .position(|line| line.contains(&format!("{:?}", user.name)))
                .map_or(1, |at| at + 1);
            if check_name(&user.name).is_err() {
                return Err(malformed(line, UsersError::Name.to_string()));
            }
            if user.must_change_password && user.no_change_by_user {
                let problem = "must_change_password and no_change_by_user exclude each other: delete one";
                return Err(malformed(line, format!("the user {:?}: {problem}", user.name)));
            }
            if users.users.iter().take(at).any(|other| other.name == user.name) {
                return Err(malformed(line, format!("the user {:?} is defined twice", user.name)));
            }
        }
        users.warn_of_names();
        users.decoy();
        Ok(users)
    }

    /// Replaces the file atomically, readable by its owner only.
    ///
    /// # Errors
    /// [`UsersError::File`]
    pub fn save(&self, path: &Path) -> Result<(), UsersError> {
        let body = toml::to_string(self).map_err(|error| UsersError::File {
            path: path.to_owned(),
            source: io::Error::other(error.to_string()),
        })?;
        let text = format!("# Users of a Taktwerk server. Change it with `taktwerk user`.\n\n{body}");
        if text.len() as u64 > FILE_LEN_MAX {
            // A larger file could be written, but not read at the next start.
            let problem = format!(
                "the users and roles would take {} bytes; the maximum is {FILE_LEN_MAX}. Remove some of them",
                text.len()
            );
            return Err(UsersError::File { path: path.to_owned(), source: io::Error::other(problem) });
        }
        file::replace(path, text.as_bytes(), file::PRIVATE)
            .map_err(|source| UsersError::File { path: path.to_owned(), source })
    }

    /// All users, in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &User> {
        self.users.iter()
    }

    /// The user with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&User> {
        self.users.iter().find(|user| user.name == name)
    }

    fn get_mut(&mut self, name: &str) -> Result<&mut User, UsersError> {
        let user = self.users.iter_mut().find(|user| user.name == name);
        user.ok_or_else(|| UsersError::Unknown(name.to_owned()))
    }

    /// Adds a user.
    ///
    /// # Errors
    /// The name or the password is invalid, or the user exists already.
    pub fn add(&mut self, name: &str, password: &[u8], roles: Vec<String>) -> Result<(), UsersError> {
        check_name(name)?;
        check_password(password)?;
        if self.get(name).is_some() {
            return Err(UsersError::Exists(name.to_owned()));
        }
        if let Some(other) = self.users.iter().find(|user| is_alike(name, &user.name)) {
            return Err(UsersError::Alike { name: name.to_owned(), other: other.name.clone() });
        }
        let password = PasswordHash::new(password, Cost::default());
        self.users.push(User {
            name: name.to_owned(),
            password,
            roles,
            description: String::new(),
            disabled: false,
            no_delete: false,
            no_change_by_user: false,
            must_change_password: false,
        });
        Ok(())
    }

    /// Warns of names that earlier versions allowed.
    fn warn_of_names(&self) {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for user in &self.users {
            if let Some(other) = seen.insert(user.name.to_lowercase(), &user.name) {
                let user = &user.name;
                tracing::warn!(
                    user,
                    other,
                    "the names of these users differ only in upper and lower case: rename one"
                );
            }
        }
        self.roles.iter().for_each(|role| role::warn_of_name(&role.name));
    }

    /// Changes a user's settings other than password and roles.
    ///
    /// # Errors
    /// There is no such user.
    pub fn edit(&mut self, name: &str, edit: impl FnOnce(&mut User)) -> Result<(), UsersError> {
        edit(self.get_mut(name)?);
        Ok(())
    }

    /// Removes a role from all users.
    pub(crate) fn forget_role(&mut self, role: &str) {
        for user in &mut self.users {
            user.roles.retain(|name| name != role);
        }
    }

    /// Removes a user.
    ///
    /// # Errors
    /// There is no such user.
    pub fn remove(&mut self, name: &str) -> Result<(), UsersError> {
        self.get_mut(name)?;
        self.users.retain(|user| user.name != name);
        Ok(())
    }

    /// Changes a password.
    ///
    /// # Errors
    /// There is no such user, or the password is too short or too long.
    pub fn set_password(&mut self, name: &str, password: &[u8]) -> Result<(), UsersError> {
        check_password(password)?;
        self.get_mut(name)?.password = PasswordHash::new(password, Cost::default());
        Ok(())
    }

    /// Changes a user's roles.
    ///
    /// # Errors
    /// There is no such user.
    pub fn set_roles(&mut self, name: &str, roles: Vec<String>) -> Result<(), UsersError> {
        self.get_mut(name)?.roles = roles;
        Ok(())
    }

    /// Whether `password` is the password of the user `name`. The check takes the same work for unknown and disabled
    /// users (Part 18 §5.2.3).
    #[must_use]
    pub fn verify(&self, name: &str, password: &[u8]) -> bool {
        // Always search the whole list, so that the time does not depend on the position.
        let found =
            self.users.iter().fold(None, |found, user| if user.name == name { Some(user) } else { found });
        match found {
            Some(user) => user.password.is_of(password) && !user.disabled,
            None => {
                // The result is ignored: only the work matters.
                let _ = self.decoy().is_of(password);
                false
            }
        }
    }

    /// A decoy hash with the cost of most users' hashes.
    fn decoy(&self) -> &PasswordHash {
        self.decoy.get_or_init(|| {
            let mut counts: BTreeMap<Cost, usize> = BTreeMap::new();
            for cost in self.users.iter().filter_map(|user| user.password.cost()) {
                *counts.entry(cost).or_default() += 1;
            }
            let most = counts.into_iter().max_by_key(|(_, count)| *count);
            PasswordHash::decoy(most.map_or_else(Cost::default, |(cost, _)| cost))
        })
    }
}

/// How to create a missing users file. No advice if the directory is missing too: then the path is probably wrong.
fn advice(path: &Path, error: &io::Error) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let is_missing = error.kind() == io::ErrorKind::NotFound && folder.is_none_or(Path::is_dir);
    if is_missing {
        format!("; `taktwerk user add NAME --role ROLE --file {}` creates it", path.display())
    } else {
        String::new()
    }
}

/// Whether two different names differ only in upper and lower case.
pub(crate) fn is_alike(one: &str, other: &str) -> bool {
    one != other && one.to_lowercase() == other.to_lowercase()
}

fn check_name(name: &str) -> Result<(), UsersError> {
    let is_fine = !name.is_empty()
        && name.len() <= NAME_LEN_MAX
        && !name.chars().any(char::is_control)
        && name.trim() == name;
    if is_fine { Ok(()) } else { Err(UsersError::Name) }
}

pub(crate) fn check_password(password: &[u8]) -> Result<(), UsersError> {
    let characters = core::str::from_utf8(password).map_or(0, |text| text.chars().count());
    let is_fine = characters >= PASSWORD_LEN_MIN && password.len() <= PASSWORD_LEN_MAX;
    if is_fine { Ok(()) } else { Err(UsersError::Password) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANARY: &[u8] = b"canary-7f3a";

    fn some() -> Users {
        let mut users = Users::default();
        users.add("olaf", CANARY, vec!["Operator".into()]).unwrap();
        users.add("jörg \"x\"", b"another one", Vec::new()).unwrap();
        users
    }

    #[test]
    fn the_error_for_a_missing_file_says_how_to_create_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users.toml");
        let said = Users::load(&path).unwrap_err().to_string();
        assert!(said.ends_with(&format!("--file {}` creates it", path.display())), "{said}");
        let said = Users::load(&folder.path().join("no folder/users.toml")).unwrap_err().to_string();
        assert!(said.contains("no folder") && !said.contains("creates it"), "{said}");
    }

    #[test]
    fn files_contain_no_passwords() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users.toml");
        some().save(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("$argon2id$") && !text.contains("canary"), "{text}");
        let users = Users::load(&path).unwrap();
        assert!(users.verify("olaf", CANARY));
        assert!(!users.verify("olaf", b"canary-7f3b"));
        assert!(!users.verify("olga", CANARY));
        assert!(users.verify("jörg \"x\"", b"another one"));
        assert_eq!(users.get("olaf").unwrap().roles, ["Operator"]);
        let printed = format!("{users:?}");
        assert!(!printed.contains("canary") && !printed.contains("argon2id"), "{printed}");
    }

    #[test]
    fn unknown_users_cost_the_work_of_most_users() {
        let cheap = Cost { memory: 64, passes: 1 };
        let user = |name: &str, cost| {
            let password = PasswordHash::new(b"a password", cost);
            format!("[[user]]\nname = {name:?}\npassword = {:?}\n", password.as_str())
        };
        let parse = |text: &str| Users::parse(Path::new("users.toml"), text).unwrap();
        let some = [user("a", cheap), user("b", Cost::LEAST), user("c", cheap)].concat();
        assert_eq!(parse(&some).decoy().cost(), Some(cheap));
        assert_eq!(parse("").decoy().cost(), Some(Cost::default()));
        assert!(parse(&some).verify("c", b"a password") && !parse(&some).verify("d", b"a password"));
    }

    #[test]
    fn users_are_changed() {
        let mut users = some();
        assert!(matches!(users.add("olaf", CANARY, Vec::new()), Err(UsersError::Exists(_))));
        for alike in ["OLAF", "Olaf", "JÖRG \"x\""] {
            let refused = users.add(alike, CANARY, Vec::new());
            assert!(matches!(refused, Err(UsersError::Alike { .. })), "{alike}: {refused:?}");
        }
        // A file of an earlier version.
        let text = toml::to_string(&users).unwrap();
        let both =
            format!("{text}\n{}", text.replace("name = \"olaf\"", "name = \"OLAF\"").replace("jörg", "jorg"));
        let both = Users::parse(Path::new("u"), &both).unwrap();
        assert!(both.get("olaf").is_some() && both.get("OLAF").is_some());
        assert!(matches!(users.add(" olaf", CANARY, Vec::new()), Err(UsersError::Name)));
        assert!(matches!(users.add("otto", b"short", Vec::new()), Err(UsersError::Password)));
        users.set_password("olaf", b"new password").unwrap();
        assert!(users.verify("olaf", b"new password") && !users.verify("olaf", CANARY));
        users.set_roles("olaf", vec!["Observer".into()]).unwrap();
        assert_eq!(users.get("olaf").unwrap().roles, ["Observer"]);
        users.remove("olaf").unwrap();
        assert!(matches!(users.remove("olaf"), Err(UsersError::Unknown(_))));
        assert_eq!(users.iter().len(), 1);
    }

    #[test]
    fn too_large_files_are_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users.toml");
        let mut users = some();
        users.save(&path).unwrap();
        let before = std::fs::read(&path).unwrap();
        users.edit("olaf", |user| user.description = "x".repeat(4 << 20)).unwrap();
        assert!(users.save(&path).unwrap_err().to_string().contains("Remove some"));
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users.toml");
        file::replace(&path, b"", file::PUBLIC).unwrap();
        assert!(Users::load(&path).unwrap_err().to_string().contains("chmod 600"));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let problem = |text: &str| Users::parse(Path::new("u"), text).unwrap_err().to_string();
        assert!(problem("[[user]]\nname = \"a\"\npasword = \"\"").starts_with("u:3: unknown field"));
        let weak = "[[user]]\nname = \"a\"\npassword = \"$2b$12$abc\"";
        assert!(problem(weak).starts_with("u:3: "), "{}", problem(weak));
        let hash = PasswordHash::new(CANARY, Cost::LEAST);
        let hash = hash.as_str();
        let twice = format!("[[user]]\nname = \"a\"\npassword = \"{hash}\"\n").repeat(2);
        assert!(problem(&twice).contains("twice"));
        let both = "must_change_password = true\nno_change_by_user = true\n";
        let both = format!("[[user]]\nname = \"a\"\npassword = \"{hash}\"\n{both}");
        assert!(problem(&both).contains("exclude each other"));
    }
}
