//! Imports a file into a store: its content decides where.

use crate::content::{self, ContentError};
use crate::encoding;
use crate::key::{NewKey, PrivateKey};
use crate::layout::Group;
use crate::store::{OwnCertificate, REVOCATION_FILE_LEN_MAX, Store};
use std::io;
use std::path::{Path, PathBuf};
use taktwerk_crypto::certificate::RevocationList;

/// The role of the certificates in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Trusted: an application, a user, or an authority whose certificates are all trusted.
    Trusted,
    /// Authorities that complete chains but are not trusted themselves.
    Issuer,
    /// Our own: the private key is in the same file, in another one, or in the store since the request was created.
    Own,
}

/// An imported item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// A description of the item.
    pub what: String,
    /// The path of the new file.
    pub path: PathBuf,
}

/// Why an import failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file cannot be read, or has the wrong content.
    #[error("{0}")]
    File(String),
    /// There is no private key for the own certificate.
    #[error(
        "there is no private key for {0}: neither in the file nor in own/private. Name its file with --key"
    )]
    NoKey(String),
    /// The key belongs to another certificate.
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
    let bytes = Store::read_file(path, REVOCATION_FILE_LEN_MAX, |bytes| Ok(bytes.to_vec()))
        .map_err(ImportError::File)?;
    let chain = match encoding::certificates(&bytes) {
        Ok(chain) => chain,
        Err(error) => return import_lists(store, group, path, &bytes, role, &error),
    };
    if role == Role::Own {
        let Some(certificate) = chain.first() else { return Ok(Vec::new()) };
        let who = certificate.subject_text();
        let read = |path: &Path| Store::read_file(path, REVOCATION_FILE_LEN_MAX, PrivateKey::read);
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
        // Retire the old certificates for the same policies. Otherwise the one that is valid longest is used, and that is often
        // the self-signed one.
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
        // The issuers after a trusted certificate only complete the chain.
        let trusted = role == Role::Trusted && at == 0;
        let path =
            if trusted { store.trust(group, certificate)? } else { store.add_issuer(group, certificate)? };
        let kind = if trusted { "trusted certificate" } else { "issuer" };
        done.push(Imported { what: format!("{kind} {}", certificate.subject_text()), path });
    }
    Ok(done)
}

/// Imports a file without certificates that may be a revocation list.
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
        // A broken revocation list in PEM is still reported as a list.
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
