//! What a server needs around it in an installation: files that people write and keep.
//!
//! - [`config`]: the configuration file of `taktwerk serve`;
//! - [`users`]: the file with users and their password hashes, and who checks passwords; [`tokens`]: access tokens of an
//!   authorization service;
//! - [`audit`]: audit records as lines of JSON; [`file`]: writing files that must never be half there.

#![forbid(unsafe_code)]

pub mod audit;
pub mod config;
pub mod file;
pub mod tokens;
pub mod users;
