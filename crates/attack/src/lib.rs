//! Attacks on a server on this machine, with honest clients that check whether they are affected.
//!
//! [`run`] starts the server, attacks it and returns a [`Report`] with measurements and pass/fail claims. This crate
//! prints nothing.
//!
//! - [`attack`]: the list of attacks; [`options`]: user settings; [`flood`]: runs and judges an attack;
//!   [`run`](mod@run): what an attack can use;
//! - [`idle`], [`slow`]: idle and slow connections; [`reader`]: clients that do not read;
//! - [`storm`]: connections and handshakes as fast as possible; [`forged`]: invalid handshakes that the server must
//!   check; [`chunks`]: messages that never end;
//! - [`services`]: sessions, subscriptions, items and requests beyond their limits; [`discovery`]: discovery services;
//!   [`login`]: password guessing, on a server with [`guessed`] users; [`timing`], [`passwords`]: timing side channels;
//! - [`admission`]: floods while honest clients log on; [`memory`]: fields of maximum length;
//! - [`canary`]: the connected honest client, [`newcomers`]: honest clients that log on during the attack, [`keys`]:
//!   certificates; [`connections`], [`wire`]: sockets; [`report`]: the result.

#![cfg_attr(test, allow(clippy::unwrap_used))] // a test fails by panicking

mod admission;
mod attack;
mod canary;
mod chunks;
mod connections;
mod discovery;
mod error;
mod flood;
mod forged;
mod guessed;
mod idle;
mod keys;
mod login;
mod memory;
mod newcomers;
mod options;
mod passwords;
mod reader;
mod report;
mod run;
mod services;
mod slow;
mod storm;
mod timing;
mod wire;

pub use attack::{Attack, UnknownAttack};
pub use canary::CanaryReport;
pub use error::AttackError;
pub use flood::run;
pub use options::{Limits, Options, ServerProgram};
pub use report::{Claim, Memory, Report};

use run::Run;
