//! Gateways that share sources by locks of a database, of which one is killed. Needs PostgreSQL; without it the test says so
//! and ends.

#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test fails by panicking, and says what it measures

mod database;
mod device;
mod group;
mod relay;
mod stand;

use database::Database;
use device::Device;
use group::{Gateway, INTERVAL, SOURCES, each_is_asked_by_one, until};
use relay::Relay;
use stand::MS;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use taktwerk_gateway::fields::Sections;
use taktwerk_gateway::lease::{LeaseConfig, Leases};
use tokio::task::JoinHandle;
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

/// Who asks which source, and whether two ever did.
#[derive(Debug, Default)]
struct Asked {
    by: BTreeMap<String, BTreeSet<usize>>,
    overlaps: Vec<String>,
}

/// A gateway with sources that do nothing but have their leases.
struct Member {
    tasks: Vec<JoinHandle<()>>,
}

impl Member {
    fn start(number: usize, url: &str, asked: &Arc<Mutex<Asked>>) -> Self {
        let text = format!("[lease]\ngroup = \"plant\"\nurl = \"{url}\"\n");
        let mut sections = Sections::parse(Path::new("g.toml"), &text).unwrap();
        let config = LeaseConfig::take(&mut sections.lease.take().unwrap()).unwrap();
        let leases = Leases::default();
        let mut tasks = Vec::new();
        for source in 0..SOURCES {
            let name = format!("s{source}");
            let mut lease = leases.lease(&name, Some(INTERVAL));
            let asked = Arc::clone(asked);
            tasks.push(tokio::spawn(async move {
                loop {
                    let running = lease.held().await;
                    {
                        let mut asked = asked.lock().unwrap();
                        let by = asked.by.entry(name.clone()).or_default();
                        by.insert(number);
                        if by.len() > 1 {
                            let told = format!("{name} by {by:?}");
                            asked.overlaps.push(told);
                        }
                    }
                    lease.lost().await;
                    asked.lock().unwrap().by.entry(name.clone()).or_default().remove(&number);
                    drop(running);
                }
            }));
        }
        tasks.push(tokio::spawn(leases.keep(config)));
        Self { tasks }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// How many sources each gateway asks.
fn counts(asked: &Mutex<Asked>, members: usize) -> Vec<usize> {
    let asked = asked.lock().unwrap();
    let of = |number| asked.by.values().filter(|by| by.contains(&number)).count();
    (0..members).map(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_source_is_asked_twice_when_the_database_loses_a_connection() {
    let Some(database) = Database::start() else { return };
    let other = database::client(&database).await;
    let relay = Relay::start(database.folder());
    let asked = Arc::new(Mutex::new(Asked::default()));
    let _one = Member::start(0, &relay.url(), &asked);
    until("the first one asks everything", async || counts(&asked, 2) == [6, 0]).await;
    let _two = Member::start(1, &database.url(), &asked);
    until("they share", async || counts(&asked, 2) == [3, 3]).await;
    // Both connections end, and both gateways are told so.
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'taktwerk-gateway leases%'";
    assert_eq!(other.query(end, &[]).await.unwrap().len(), 2);
    until("they stop", async || counts(&asked, 2) == [0, 0]).await;
    until("they share again", async || counts(&asked, 2) == [3, 3]).await;
    // The database gives the locks back, and the gateway that had them does not know it.
    relay.cut();
    until("the other one asks everything", async || counts(&asked, 2) == [0, 6]).await;
    assert_eq!(asked.lock().unwrap().overlaps, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn shares_differ_by_one_at_most() {
    let Some(database) = Database::start() else { return };
    drop(database::client(&database).await);
    let asked = Arc::new(Mutex::new(Asked::default()));
    let mut members = Vec::new();
    for number in 0..4 {
        members.push(Member::start(number, &database.url(), &asked));
        let (least, most) = (SOURCES / members.len(), SOURCES.div_ceil(members.len()));
        until("each has its share", async || {
            let counts = counts(&asked, members.len());
            counts.iter().sum::<usize>() == SOURCES
                && counts.iter().all(|count| (least..=most).contains(count))
        })
        .await;
    }
    // One goes, and the others share what it has had.
    drop(members.remove(1));
    until("the others have two each", async || {
        // It cannot say so itself.
        asked.lock().unwrap().by.values_mut().for_each(|by| by.retain(|number| *number != 1));
        counts(&asked, 4) == [2, 0, 2, 2]
    })
    .await;
}
