//! A web server with a real server, used by browsers, scrapers and attackers.

#![allow(clippy::unwrap_used)]

mod attacks;
mod logins;
mod nodes;
mod pages;
mod plant;
mod streams;
