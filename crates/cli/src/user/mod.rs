//! `taktwerk user`: edits the users file of a server. A running server notices changes by itself.

mod prompt;

use crate::failure::Failure;
use crate::output::Output;
use crate::suggestion;
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::{Path, PathBuf};
use taktwerk::server::authorization::role::well_known;
use taktwerk_config::file;
use taktwerk_config::users::{Users, UsersError};
use taktwerk_lab::table::{Align, Table};
use zeroize::Zeroizing;

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Add a user; asks for the password.
    Add {
        /// Login name.
        name: String,
        /// Role, such as Observer, Operator or Engineer. Can be repeated.
        #[arg(long = "role", value_name = "ROLE")]
        roles: Vec<String>,
        /// The user must change the password at the first login.
        #[arg(long)]
        must_change_password: bool,
        #[command(flatten)]
        password: PasswordArgs,
        #[command(flatten)]
        file: FileArgs,
    },
    /// Show all users with their roles.
    List {
        #[command(flatten)]
        file: FileArgs,
    },
    /// Remove a user.
    Remove {
        /// The name.
        name: String,
        #[command(flatten)]
        file: FileArgs,
    },
    /// Change a user's password.
    Passwd {
        /// The name.
        name: String,
        /// The user must change the password at the next login.
        #[arg(long)]
        must_change_password: bool,
        #[command(flatten)]
        password: PasswordArgs,
        #[command(flatten)]
        file: FileArgs,
    },
    /// Replace a user's roles; without ROLES, remove all.
    Role {
        /// The name.
        name: String,
        /// The roles.
        roles: Vec<String>,
        #[command(flatten)]
        file: FileArgs,
    },
}

/// Where a password comes from.
#[derive(Debug, Args)]
pub(crate) struct PasswordArgs {
    /// File whose first line is the password, instead of a prompt; - for standard input.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

/// Which users.
#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// The file with the users.
    #[arg(long, value_name = "FILE", default_value = "users.toml")]
    file: PathBuf,
}

fn failure(error: UsersError) -> Failure {
    match error {
        UsersError::File { .. } => Failure::Environment(error.to_string()),
        _ => Failure::Usage(error.to_string()),
    }
}

/// Runs a command.
pub(crate) fn run(command: &UserCommand, output: Output) -> Result<(), Failure> {
    match command {
        UserCommand::Add { name, roles, must_change_password, password, file } => {
            warn_of(roles);
            let mut users = Users::load_or_new(&file.file).map_err(failure)?;
            if users.get(name).is_some() {
                // Checked before the user types a password twice.
                return Err(failure(UsersError::Exists(name.clone())));
            }
            users.add(name, password.read(name)?.as_bytes(), roles.clone()).map_err(failure)?;
            users.edit(name, |user| user.must_change_password = *must_change_password).map_err(failure)?;
            save(&users, &file.file, output, &format!("added {name}"))
        }
        UserCommand::List { file } => list(&file.file, output),
        UserCommand::Remove { name, file } => {
            change(&file.file, output, &format!("removed {name}"), |users| users.remove(name))
        }
        UserCommand::Passwd { name, must_change_password, password, file } => {
            let mut users = Users::load(&file.file).map_err(failure)?;
            let Some(user) = users.get(name) else {
                return Err(failure(UsersError::Unknown(name.clone())));
            };
            if *must_change_password && user.no_change_by_user {
                return Err(Failure::Usage(format!("{name} cannot change the password (no_change_by_user)")));
            }
            users.set_password(name, password.read(name)?.as_bytes()).map_err(failure)?;
            users.edit(name, |user| user.must_change_password = *must_change_password).map_err(failure)?;
            save(&users, &file.file, output, &format!("{name} has a new password"))
        }
        UserCommand::Role { name, roles, file } => {
            warn_of(roles);
            let told = match roles.as_slice() {
                [] => format!("{name} has no roles"),
                roles => format!("{name} is {}", roles.join(", ")),
            };
            change(&file.file, output, &told, |users| users.set_roles(name, roles.clone()))
        }
    }
}

fn change(
    path: &Path,
    output: Output,
    told: &str,
    change: impl FnOnce(&mut Users) -> Result<(), UsersError>,
) -> Result<(), Failure> {
    let mut users = Users::load(path).map_err(failure)?;
    change(&mut users).map_err(failure)?;
    save(&users, path, output, told)
}

fn save(users: &Users, path: &Path, output: Output, told: &str) -> Result<(), Failure> {
    users.save(path).map_err(failure)?;
    if output.is_json() {
        return output.document(&json!({ "File": path.display().to_string(), "Users": users.iter().len() }));
    }
    output.text(&format!("{told} ({})", path.display()))
}

fn list(path: &Path, output: Output) -> Result<(), Failure> {
    let users = Users::load(path).map_err(failure)?;
    if output.is_json() {
        let all: Vec<_> =
            users.iter().map(|user| json!({ "Name": user.name, "Roles": user.roles })).collect();
        return output.document(&all.into());
    }
    let mut table = Table::new(&[("User", Align::Left), ("Roles", Align::Left)]);
    for user in users.iter() {
        table.row([user.name.as_str(), &user.roles.join(", ")]);
    }
    output.text(&table.to_string())
}

/// Warns about roles that are not in the specification. The configuration of the server may define them.
fn warn_of(roles: &[String]) {
    for role in roles {
        if !well_known::ALL.iter().any(|(name, _)| name == role) {
            let meant = suggestion::question(role, well_known::ALL.iter().map(|(name, _)| *name));
            tell!(
                "note: {role:?} is not a role of the specification, so it must be defined in the server's configuration{meant}"
            );
        }
    }
}

/// Reads text from a program, up to a limit.
fn read_start(from: impl std::io::Read) -> std::io::Result<Zeroizing<String>> {
    // A growing string would leave copies of secrets in memory.
    let mut text = Zeroizing::new(String::with_capacity(file::SECRET_LEN_MAX as usize + 2));
    let read = std::io::Read::read_to_string(&mut from.take(file::SECRET_LEN_MAX + 1), &mut text)?;
    if read as u64 > file::SECRET_LEN_MAX {
        return Err(std::io::Error::other(format!("it is longer than {} bytes", file::SECRET_LEN_MAX)));
    }
    Ok(text)
}

impl PasswordArgs {
    fn read(&self, name: &str) -> Result<Zeroizing<String>, Failure> {
        match &self.password_file {
            None => prompt::new_password(name),
            Some(path) => {
                // Not /dev/stdin: after a change of the user it may be another user's pipe, which cannot be opened
                // again.
                let text = if path.as_os_str() == "-" {
                    read_start(std::io::stdin())
                } else {
                    file::read_text(path, file::SECRET_LEN_MAX).map(Zeroizing::new)
                };
                let text = text.map_err(|error| {
                    Failure::Environment(format!("cannot read the password from {}: {error}", path.display()))
                })?;
                Ok(Zeroizing::new(text.lines().next().unwrap_or_default().to_owned()))
            }
        }
    }
}
