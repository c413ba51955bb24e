//! Where things are: the folders that other OPC UA stacks use too.
//!
//! ```text
//! own/certs  own/private                 our certificates and their keys
//! trusted/certs  trusted/crl             whom we trust, and what authorities among them revoked
//! issuer/certs  issuer/crl               authorities that complete chains but are not trusted themselves
//! rejected/certs                         who was refused, to be looked at
//! users/trusted  users/issuer  users/rejected    the same for users' certificates
//! ```

use std::path::{Path, PathBuf};

/// Whose certificates: applications and users have separate trust lists (Part 12 §7.8.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Applications that open or accept channels.
    Applications,
    /// Users who log on with a certificate.
    Users,
}

/// A folder of a [`Group`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Folder {
    /// Trusted certificates.
    Trusted,
    /// Revocation lists of trusted authorities.
    TrustedLists,
    /// Certificates of further authorities.
    Issuers,
    /// Revocation lists of further authorities.
    IssuerLists,
    /// Refused certificates.
    Rejected,
}

impl Folder {
    /// The folders that decide: everything but the rejected certificates.
    pub const DECIDING: [Self; 4] = [Self::Trusted, Self::TrustedLists, Self::Issuers, Self::IssuerLists];

    /// Whether it holds revocation lists.
    #[must_use]
    pub const fn holds_lists(self) -> bool {
        matches!(self, Self::TrustedLists | Self::IssuerLists)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Trusted => "trusted/certs",
            Self::TrustedLists => "trusted/crl",
            Self::Issuers => "issuer/certs",
            Self::IssuerLists => "issuer/crl",
            Self::Rejected => "rejected/certs",
        }
    }
}

/// The folder of a group below the root of a store.
pub(crate) fn folder(root: &Path, group: Group, folder: Folder) -> PathBuf {
    match group {
        Group::Applications => root.join(folder.name()),
        Group::Users => root.join("users").join(folder.name()),
    }
}

/// Our certificates.
pub(crate) fn own_certificates(root: &Path) -> PathBuf {
    root.join("own/certs")
}

/// Our private keys.
pub(crate) fn own_keys(root: &Path) -> PathBuf {
    root.join("own/private")
}

/// A thumbprint as it is written: the name of every file that we write. Nothing that a peer chose is ever part of a
/// file name.
#[must_use]
pub fn thumbprint_text(thumbprint: &[u8; 20]) -> String {
    taktwerk_types::hexadecimal::text(thumbprint)
}
