//! The users file of a running server.

use super::{User, Users, UsersError, memory};
use arc_swap::ArcSwap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use taktwerk_crypto::Entropy;
use taktwerk_net::OsEntropy;
use taktwerk_server::authorization::{Authorization, IdentityRule};

/// The users of a file. [`Self::reload`] reads the file again if it has changed.
#[derive(Debug)]
pub struct UserStore {
    path: PathBuf,
    users: ArcSwap<Users>,
    /// Modification time of the file when it was last read.
    read: Mutex<Option<SystemTime>>,
    /// Key for digests of password hashes. A digest detects a changed password without revealing the hash.
    digest_key: [u8; 16],
}

impl UserStore {
    /// Reads a file.
    ///
    /// # Errors
    /// [`UsersError`]
    pub fn open(path: &Path) -> Result<Arc<Self>, UsersError> {
        let read = changed(path);
        let users = Users::load(path)?;
        let mut digest_key = [0; 16];
        OsEntropy.fill(&mut digest_key);
        Ok(Arc::new(Self {
            path: path.to_owned(),
            users: ArcSwap::from_pointee(users),
            read: Mutex::new(read),
            digest_key,
        }))
    }

    /// A digest that changes with a user's password and with `must_change_password`. Sessions with an old digest are
    /// closed.
    pub(crate) fn credential(&self, user: &User) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.digest_key, user.password.as_str(), user.must_change_password).hash(&mut hasher);
        hasher.finish()
    }

    /// The users as last read.
    #[must_use]
    pub fn users(&self) -> Arc<Users> {
        self.users.load_full()
    }

    /// Reads the file again if it has changed, and frees unused hash memory. Call it periodically. Returns whether the
    /// file has changed.
    ///
    /// # Errors
    /// [`UsersError`]; the users stay unchanged.
    pub fn reload(&self) -> Result<bool, UsersError> {
        memory::tidy();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let now = changed(&self.path);
        if *read == now {
            return Ok(false);
        }
        // Set before loading, so that an invalid file is reported only once.
        *read = now;
        self.users.store(Arc::new(Users::load(&self.path)?));
        Ok(true)
    }

    /// Changes the users and saves them. If the file was changed meanwhile, it is read again first.
    ///
    /// # Errors
    /// The error of `edit`, or the file cannot be read or written. Nothing is changed then.
    pub fn change<T, E: From<UsersError>>(
        &self,
        edit: impl FnOnce(&mut Users) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let mut users =
            if *read == changed(&self.path) { (*self.users()).clone() } else { Users::load(&self.path)? };
        let result = edit(&mut users)?;
        users.save(&self.path)?;
        *read = changed(&self.path);
        self.users.store(Arc::new(users));
        Ok(result)
    }

    /// Replaces the roles that clients have changed, and adds the roles of all users. Returns the names of roles that
    /// do not exist.
    pub fn grant(&self, authorization: &mut Authorization) -> Vec<String> {
        let mut unknown = Vec::new();
        for role in &self.users().roles {
            if !role.apply(authorization) {
                unknown.push(role.name.clone());
            }
        }
        for user in self.users().iter() {
            for name in &user.roles {
                match authorization.role_mut(name) {
                    Some(role) => role.identities.push(IdentityRule::UserName(user.name.clone())),
                    None => unknown.push(name.clone()),
                }
            }
        }
        unknown
    }
}

fn changed(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}
