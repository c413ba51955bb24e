//! A web server with a real server, used by browsers, scrapers and attackers.

#![allow(clippy::unwrap_used)]

mod alarms;
mod health;
mod limits;
mod plant;
mod refusals;
mod users;
mod values;
