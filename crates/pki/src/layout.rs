//! The directories of a store. Other OPC UA stacks use the same ones.
//!
//! ```text
//! own/certs  own/private                 our certificates and their keys
//! trusted/certs  trusted/crl             trusted certificates, and revocation lists of trusted authorities
//! issuer/certs  issuer/crl               authorities that complete chains but are not trusted themselves
//! rejected/certs                         rejected certificates, for review
//! users/trusted  users/issuer  users/rejected    the same for users' certificates
//! ```

use std::path::{Path, PathBuf};

/// Applications and users have separate trust lists (Part 12 §7.8.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Applications that open or accept channels.
    Applications,
    /// Users who log on with a certificate.
    Users,
}

/// A directory of a [`Group`].
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
    /// Rejected certificates.
    Rejected,
}

impl Folder {
    /// The directories that decide about trust: all but the rejected certificates.
    pub const DECIDING: [Self; 4] = [Self::Trusted, Self::TrustedLists, Self::Issuers, Self::IssuerLists];

    /// Whether the directory contains revocation lists.
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

/// The directory of a group below the root of a store.
pub(crate) fn folder(root: &Path, group: Group, folder: Folder) -> PathBuf {
    match group {
        Group::Applications => root.join(folder.name()),
        Group::Users => root.join("users").join(folder.name()),
    }
}

/// The directory of our certificates.
pub(crate) fn own_certificates(root: &Path) -> PathBuf {
    root.join("own/certs")
}

/// The directory of our private keys.
pub(crate) fn own_keys(root: &Path) -> PathBuf {
    root.join("own/private")
}

/// A thumbprint as text: the name of every file that is written. No text chosen by a peer becomes part of a file name.
#[must_use]
pub fn thumbprint_text(thumbprint: &[u8; 20]) -> String {
    taktwerk_types::hexadecimal::text(thumbprint)
}
