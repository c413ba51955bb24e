//! Certificates, private keys and trust lists in a folder, as OPC UA applications keep them.
//!
//! - [`layout`]: the folders; [`Store`]: reading and writing them; [`Problem`]: a file that is broken, torn or foreign
//!   is reported and never fatal;
//! - [`StoreValidator`]: decides by a store whether a certificate is trusted, notices when its files change, keeps who
//!   was refused ([`RejectedStore`], bounded);
//! - [`PrivateKey`], [`create`]: our own keys, self-signed certificates and requests; [`encoding`]: PEM and DER;
//! - [`permissions`]: whether others can read or change a file;
//! - [`import`]: bringing files of any kind to their places;
//! - [`doctor`]: what is wrong with a certificate in one sentence, and the command that mends it.
//!
//! Files are written beside their place, flushed and renamed, so a crash leaves the old or the new one. They are named
//! by thumbprints: nothing that a peer chose becomes part of a path. What is decided, and in which order, stands in
//! [`taktwerk_crypto::certificate`].

#![forbid(unsafe_code)]

mod content;
pub mod create;
pub mod doctor;
pub mod encoding;
mod file;
mod foreign;
pub mod import;
pub mod key;
pub mod layout;
mod managed;
pub mod permissions;
mod rejected;
mod scan;
pub mod store;
mod validator;

pub use content::ContentError;
pub use create::{CertificateSettings, CreateError};
pub use key::{NewKey, PrivateKey};
pub use layout::{Folder, Group, thumbprint_text};
pub use rejected::{REJECTED_MAX, RejectedStore};
pub use scan::Problem;
pub use store::{Entry, OwnCertificate, Store};
pub use validator::{StoreValidator, first_certificate};
