//! Gateways that share sources with database locks; one gateway is killed. Skipped without PostgreSQL.

#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test fails by panicking, and says what it measures

mod database;
mod device;
mod group;
mod relay;
mod stand;

use database::Database;
use device::Device;
use group::{Gateway, INTERVAL, SOURCES, each_is_polled_by_one, until, within_two_intervals};
use relay::Relay;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use taktwerk_gateway::fields::Sections;
use taktwerk_gateway::lease::{LeaseConfig, Leases};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Not a separate test: runs in the child process until it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    group::child().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_share_the_sources_and_one_takes_over() {
    let Some(mut database) = Database::start() else { return };
    drop(database::client(&database).await);
    let devices: Vec<Arc<Device>> = (0..SOURCES).map(|_| Device::start(4)).collect();
    let text = group::text(&devices, &format!("url = \"{}\"\n", database.url()));
    let mut one = Gateway::start(&text).await;
    until("the first one asks everything", async || one.fresh().await == SOURCES).await;
    let two = Gateway::start(&text).await;
    until("they share", async || one.fresh().await == 3 && two.fresh().await == 3).await;
    each_is_polled_by_one(&devices, 3 * INTERVAL).await;
    one.kill();
    let took = until("the other one asks everything", async || two.fresh().await == SOURCES).await;
    within_two_intervals(took);
    // Without the database no source is polled, because the other gateway may poll it.
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

/// Which gateway polls which source, and whether two ever polled the same.
#[derive(Debug, Default)]
struct Asked {
    by: BTreeMap<String, BTreeSet<usize>>,
    overlaps: Vec<String>,
}

/// A gateway with sources that only hold their leases.
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

/// The number of sources that each gateway polls.
fn counts(asked: &Mutex<Asked>, members: usize) -> Vec<usize> {
    let asked = asked.lock().unwrap();
    let of = |number| asked.by.values().filter(|by| by.contains(&number)).count();
    (0..members).map(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_source_is_polled_twice_when_a_connection_is_lost() {
    let Some(database) = Database::start() else { return };
    let other = database::client(&database).await;
    let relay = Relay::start(database.folder());
    let asked = Arc::new(Mutex::new(Asked::default()));
    let _one = Member::start(0, &relay.url(), &asked);
    until("the first one asks everything", async || counts(&asked, 2) == [6, 0]).await;
    let _two = Member::start(1, &database.url(), &asked);
    until("they share", async || counts(&asked, 2) == [3, 3]).await;
    // Both connections are closed, which both gateways notice.
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'taktwerk-gateway leases%'";
    assert_eq!(other.query(end, &[]).await.unwrap().len(), 2);
    until("they stop", async || counts(&asked, 2) == [0, 0]).await;
    until("they share again", async || counts(&asked, 2) == [3, 3]).await;
    // The database releases the locks, but the gateway that held them does not notice.
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
    // One gateway stops, and the others share its sources.
    drop(members.remove(1));
    until("the others have two each", async || {
        // A stopped gateway cannot report that itself.
        asked.lock().unwrap().by.values_mut().for_each(|by| by.retain(|number| *number != 1));
        counts(&asked, 4) == [2, 0, 2, 2]
    })
    .await;
}
