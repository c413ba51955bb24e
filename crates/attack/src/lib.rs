//! Floods of a server on this machine, and honest clients that check whether they notice.
//!
//! [`run`] starts the server, attacks it and returns a [`Report`]: figures, and claims that hold or not. Nothing is printed here.
//!
//! - [`attack`]: which attacks exist; [`options`]: what a user chooses; [`flood`]: starts everything and judges;
//!   [`run`](mod@run): what an attack can use;
//! - [`idle`], [`slow`]: connections that do (almost) nothing; [`reader`]: clients that do not read;
//! - [`storm`]: connections and handshakes as fast as possible; [`forged`]: handshakes that the server checks; [`chunks`]:
//!   messages that never end;
//! - [`services`]: sessions, subscriptions, items and requests beyond their limits; [`discovery`]: what anonymous clients are
//!   answered; [`login`]: guessed passwords, at a server with [`guessed`] users; [`timing`], [`passwords`]: what the time of a
//!   refusal tells;
//! - [`admission`]: floods that would keep others out; [`memory`]: fields as large as they can be;
//! - [`canary`]: the honest client that is connected, [`newcomers`]: those that log on anew, [`keys`]: its certificates; [`connections`], [`wire`]: sockets; [`report`]: the result.

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
