//! Certificates, private keys and trust lists in a directory, in the layout common to OPC UA applications.
//!
//! - [`layout`]: the directories; [`Store`]: reads and writes them; [`Lists`]: a trust list as four lists; [`Problem`]: reports a broken, truncated or foreign file,
//!   which is never fatal;
//! - [`StoreValidator`]: decides from a store whether a certificate is trusted, detects changes of the files, and keeps rejected
//!   certificates ([`RejectedStore`], bounded);
//! - [`PrivateKey`], [`create`]: own keys, self-signed certificates and requests; [`encoding`]: PEM and DER;
//! - [`permissions`]: checks whether other users can read or change a file;
//! - [`import`]: imports files of any kind;
//! - [`doctor`]: explains in one sentence what is wrong with a certificate, and names the command that corrects it.
//!
//! Files are written to a temporary file, flushed and renamed, so a crash leaves the old file or the new one. File names are
//! thumbprints: no text chosen by a peer becomes part of a path. The validation steps and their order are in
//! [`taktwerk_crypto::certificate`].

#![forbid(unsafe_code)]

mod content;
pub mod create;
pub mod doctor;
pub mod encoding;
mod foreign;
pub mod import;
mod in_process;
pub mod key;
pub mod layout;
mod lists;
mod managed;
pub mod permissions;
mod rejected;
mod scan;
pub mod store;
mod validator;

pub use content::ContentError;
pub use create::{CertificateSettings, CreateError};
pub use in_process::InProcess;
pub use key::{NewKey, PrivateKey};
pub use layout::{Folder, Group, thumbprint_text};
pub use lists::Lists;
pub use rejected::{REJECTED_MAX, RejectedStore};
pub use scan::Problem;
pub use store::{Entry, OwnCertificate, Store};
pub use validator::{StoreValidator, first_certificate};
