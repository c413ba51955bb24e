//! Bringing a file to its place in a store: what is in it decides where.

use crate::content::{self, ContentError};
use crate::encoding;
use crate::key::{NewKey, PrivateKey};
use crate::layout::Group;
use crate::store::{OwnCertificate, Store};
use std::io;
use std::path::{Path, PathBuf};
use taktwerk_crypto::certificate::{REVOCATION_LIST_LEN_MAX, RevocationList};

/// What the certificates in a file are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Trusted: an application, a user, or an authority of which everybody is trusted.
    Trusted,
    /// Authorities that complete chains but are not trusted.
    Issuer,
    /// Ours: there is a private key, in the file, in another one, or in the store since the request was made.
    Own,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// What it is, for people.
    pub what: String,
    /// Where it is now.
    pub path: PathBuf,
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file cannot be read, or does not hold what it should.
    #[error("{0}")]
    File(String),
    /// There is no key for the certificate that is to be ours.
    #[error(
        "there is no private key for {0}: neither in the file nor in own/private; name its file with --key"
    )]
    NoKey(String),
    /// The key is another certificate's.
    #[error("the private key does not belong to the certificate of {0}")]
    WrongKey(String),
    /// The store cannot be written.
    #[error("the store cannot be written: {0}")]
    Store(#[from] io::Error),
}

/// Imports a file: certificates in PEM or DER, or revocation lists.
///
/// # Errors
/// [`ImportError`].
pub fn import(
    store: &Store,
    group: Group,
    path: &Path,
    role: Role,
    key: Option<&Path>,
) -> Result<Vec<Imported>, ImportError> {
    let bytes = Store::read_file(path, REVOCATION_LIST_LEN_MAX, |bytes| Ok(bytes.to_vec()))
        .map_err(ImportError::File)?;
    let chain = match encoding::certificates(&bytes) {
        Ok(chain) => chain,
        Err(error) => return import_lists(store, group, path, &bytes, role, &error),
    };
    if role == Role::Own {
        let Some(certificate) = chain.first() else { return Ok(Vec::new()) };
        let who = certificate.subject_text();
        let read = |path: &Path| Store::read_file(path, REVOCATION_LIST_LEN_MAX, PrivateKey::read);
        let key = match key {
            Some(path) => Some(read(path).map_err(ImportError::File)?),
            None if content::holds_private_key(&bytes) => {
                Some(PrivateKey::read(&bytes).map_err(|error: ContentError| {
                    ImportError::File(format!("{}: {error}", path.display()))
                })?)
            }
            None => store.key_of(certificate),
        };
        let key = key.ok_or_else(|| ImportError::NoKey(who.clone()))?;
        if !key.belongs_to(certificate) {
            return Err(ImportError::WrongKey(who));
        }
        let others = store.own(&mut Vec::new());
        let (path, key_path) = store.keep_own(&chain, &key)?;
        let mut done = vec![
            Imported { what: format!("own certificate {who}"), path },
            Imported { what: "its private key".to_owned(), path: key_path },
        ];
        // It takes the place of what served the same policies: of two the one that is valid longer would be used, and
        // that is often the self-signed one.
        let takes_the_place = |own: &OwnCertificate| {
            own.certificate != *certificate
                && NewKey::like(key.kind()).is_some_and(|kind| kind.serves_as(own.key.kind()))
        };
        for own in others.iter().filter(|own| takes_the_place(own)) {
            let what = format!("put aside: own certificate {}", own.certificate.subject_text());
            done.push(Imported { what, path: store.retire(own)? });
        }
        return Ok(done);
    }
    store.create()?;
    let mut done = Vec::new();
    for (at, certificate) in chain.iter().enumerate() {
        // Behind a trusted certificate stand its issuers: they complete the chain, no more.
        let trusted = role == Role::Trusted && at == 0;
        let path =
            if trusted { store.trust(group, certificate)? } else { store.add_issuer(group, certificate)? };
        let kind = if trusted { "trusted certificate" } else { "issuer" };
        done.push(Imported { what: format!("{kind} {}", certificate.subject_text()), path });
    }
    Ok(done)
}

/// Imports what is no certificate, but may be a revocation list.
fn import_lists(
    store: &Store,
    group: Group,
    path: &Path,
    bytes: &[u8],
    role: Role,
    error: &ContentError,
) -> Result<Vec<Imported>, ImportError> {
    let lists = match encoding::revocation_lists(bytes) {
        Ok(_) if role == Role::Own => {
            return Err(ImportError::File(format!(
                "{}: a revocation list cannot be imported as own certificate",
                path.display()
            )));
        }
        Ok(lists) => lists,
        // A broken list in PEM is a list all the same.
        Err(ContentError::Malformed(fault)) if content::is_pem(bytes) => {
            return Err(ImportError::File(format!("{}: {fault}", path.display())));
        }
        Err(_) => return Err(ImportError::File(format!("{}: {error}", path.display()))),
    };
    store.create()?;
    let import_list = |list| {
        let what = format!("revocation list of {}", RevocationList::issuer_text(list));
        Ok(Imported { what, path: store.add_revocation_list(group, list)? })
    };
    lists.iter().map(import_list).collect()
}
