//! File access for files that users name and for files that the program owns.
//!
//! - [`read_text`], [`read_bytes`], [`open_regular`]: read safely; a file that a user names may be a pipe, a device, or endless;
//! - [`replace`], [`Staged`], [`remove`]: change files atomically: readers find the old content or the new one;
//! - [`create_private`]: a new file that other code fills, such as a database;
//! - [`FileLock`]: ensures that only one program uses a file;
//! - [`resolve`]: the file that a path leads to. Changes and locks follow links.
//!
//! This is the lowest crate for files, below those that read keys, configurations and states. Errors in the *content* of a text
//! file are explained by the crate `explain`.

#![cfg_attr(test, allow(clippy::unwrap_used))] // a test fails by panicking

mod lock;
mod read;
mod replace;
mod resolve;
mod temporary;

pub use lock::FileLock;
pub use read::{CERTIFICATES_LEN_MAX, SECRET_LEN_MAX, open_regular, read_bytes, read_text};
pub use replace::{PRIVATE, PUBLIC, Staged, create_private, is_exposed, remove, replace};
pub use resolve::resolve;
pub use temporary::remove_leftovers;
