//! Gateways that share sources by locks of a database, of which one is killed. Needs PostgreSQL; without it the test says so
//! and ends.

#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test fails by panicking, and says what it measures

mod database;
mod device;
mod group;
mod stand;

use database::Database;
use device::Device;
use group::{Gateway, INTERVAL, SOURCES, each_is_asked_by_one, until};
use stand::MS;
use std::sync::Arc;
use tokio::time::sleep;

/// Not a test of its own: what a child process runs, until it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    group::child().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_gateways_each_asks_half_and_one_takes_over_all() {
    let Some(mut database) = Database::start() else { return };
    drop(database::client(&database).await);
    let devices: Vec<Arc<Device>> = (0..SOURCES).map(|_| Device::start(4)).collect();
    let text = group::text(&devices, &format!("url = \"{}\"\n", database.url()));
    let mut one = Gateway::start(&text).await;
    until("the first one asks everything", async || one.fresh().await == SOURCES).await;
    let two = Gateway::start(&text).await;
    until("they share", async || one.fresh().await == 3 && two.fresh().await == 3).await;
    each_is_asked_by_one(&devices, 3000 * MS).await;
    one.kill();
    let took = until("the other one asks everything", async || two.fresh().await == SOURCES).await;
    println!("everything was fresh {took:?} after the kill, with an interval of {INTERVAL:?}");
    // Without the database nothing is asked: nobody knows who else does.
    database.kill();
    let asked = || devices.iter().map(|device| device.asked()).collect::<Vec<_>>();
    let mut last = asked();
    until("nothing is asked", async || {
        sleep(3 * INTERVAL).await;
        let now = asked();
        core::mem::replace(&mut last, now.clone()) == now
    })
    .await;
    database.go_on();
    until("it goes on", async || two.fresh().await == SOURCES).await;
}
