//! Hosts with processors: work takes time, queues, and is distributed.

use crate::common::{SERVER, Site, lasting_subscription, millis, numbers, secs, subscription};
use core::time::Duration;
use std::sync::Arc;
use taktwerk_client::{Client, ClientConfig, Target};
use taktwerk_model::HostProfile;
use taktwerk_model::host::Cost;
use taktwerk_schema::{ReadRequest, ReadResponse};
use taktwerk_sim::plant::{Plant, monitor, url, value_of};
use taktwerk_sim::{ClientId, Competitor, Costs, EffectTime, MachineId, Path, Route, Subscriber, World};
use taktwerk_types::Instant;

fn costs(cores: u32, change: impl FnOnce(&mut HostProfile)) -> Arc<Costs> {
    let mut profile = HostProfile::free(cores);
    change(&mut profile);
    Arc::new(Costs::new(&profile).unwrap())
}

fn server_costs(profile: &mut HostProfile, all: &[(&str, f64)]) {
    profile.server.extend(all.iter().map(|(name, cost)| ((*name).to_owned(), *cost)));
}

fn lan() -> Route {
    Route::symmetric(Path::LAN.with_delay(Duration::from_micros(50)))
}

/// A site whose server is on a machine.
fn placed(seed: u64, variables: u32, costs: Arc<Costs>) -> (Site, MachineId) {
    let mut site = Site::new(seed, variables);
    let machine = site.world.add_machine(costs);
    site.world.place_server(site.server, machine);
    (site, machine)
}

fn read(count: u32) -> ReadRequest {
    ReadRequest { nodes_to_read: (0..count).map(value_of).collect(), ..ReadRequest::default() }
}

/// Duration of a Read of this many variables.
fn round_trip(site: &mut Site, client: ClientId, count: u32) -> Duration {
    let start = site.world.now().instant;
    let before = site.app(client).responses.len();
    site.world.request(client, read(count)).unwrap();
    site.until("an answer", secs(10), |world| world.client(client).application.responses.len() > before);
    let (at, _, result) = site.world.client_mut(client).application.responses.pop().unwrap();
    let response: ReadResponse = result.unwrap().decode().unwrap();
    assert_eq!(response.results.len(), count as usize);
    at.since(start)
}

#[test]
fn a_response_is_sent_when_its_work_is_done() {
    let free = {
        let (mut site, _) = placed(1, 10, costs(1, |_| {}));
        let client = site.client(lan(), Subscriber::default());
        site.until_up(client);
        round_trip(&mut site, client, 10)
    };
    let priced = costs(1, |profile| {
        server_costs(profile, &[("operations", 1_000.0), ("requests", 20_000.0), ("send", 4_000.0)]);
        server_costs(profile, &[("receive", 2_000.0), ("turn", 1_500.0), ("wake", 500.0)]);
        profile.scheduler.wake = Cost::Fixed(30_000.0);
    });
    let (mut site, machine) = placed(1, 10, priced);
    let client = site.client(lan(), Subscriber::default());
    site.until_up(client);
    site.run(secs(1));
    let before = site.world.machine(machine).used();
    let took = round_trip(&mut site, client, 10);
    // Ten operations, one request, one receive and send, one turn with its wake-up, and the processor's own cost.
    let work = Duration::from_micros(10 + 20 + 4 + 2 + 2);
    assert_eq!(took - free, work + Duration::from_micros(30));
    assert_eq!(site.world.machine(machine).used() - before, work);
    assert_eq!(site.world.server_used(site.server), site.world.machine(machine).used());
}

#[test]
fn requests_queue_for_the_processor() {
    let priced = costs(4, |profile| server_costs(profile, &[("operations", 100_000.0)]));
    let (mut site, _) = placed(2, 1, priced);
    let clients: Vec<_> = (0..8).map(|_| site.client(lan(), Subscriber::default())).collect();
    for client in &clients {
        site.until_up(*client);
    }
    site.run(secs(1));
    let start = site.world.now().instant;
    for client in &clients {
        site.world.request(*client, read(1)).unwrap();
    }
    site.run(secs(1));
    let mut took: Vec<_> =
        clients.iter().map(|client| site.app(*client).responses.last().unwrap().0.since(start)).collect();
    took.sort();
    // One thread, regardless of the number of processors: each answer arrives 100 µs after the previous one.
    for pair in took.windows(2) {
        assert_eq!(pair[1] - pair[0], Duration::from_micros(100));
    }
}

#[test]
fn slow_jobs_queue_for_processors_and_delay_nothing_else() {
    let up = |cores: u32| {
        let priced = costs(cores, |profile| {
            for name in ["check-credential", "read-value"] {
                profile.jobs.insert(name.into(), Cost::Fixed(50e6));
            }
            server_costs(profile, &[("requests", 1_000.0)]);
        });
        let (mut site, machine) = placed(3, 1, priced);
        for _ in 0..cores {
            site.world.compete(machine, Competitor { share: 1.0, burst: millis(5) });
        }
        let client = site.client(lan(), Subscriber::default());
        site.until_up(client);
        round_trip(&mut site, client, 1)
    };
    // A shard that wakes gets a processor even if other programs never sleep.
    assert!(up(1) < millis(1), "{:?}", up(1));
    assert!(up(2) < millis(1));
}

#[test]
fn competing_programs_slow_a_loaded_server_down() {
    let delay = |share: f64| {
        let priced = costs(1, |profile| server_costs(profile, &[("operations", 4_000_000.0)]));
        let (mut site, machine) = placed(4, 1, priced);
        if share > 0.0 {
            site.world.compete(machine, Competitor { share, burst: millis(20) });
        }
        let client = site.client(lan(), Subscriber::default());
        site.until_up(client);
        let all: Duration = (0..50).map(|_| round_trip(&mut site, client, 1)).sum();
        all / 50
    };
    let (alone, beside) = (delay(0.0), delay(0.9));
    assert!(beside > alone.mul_f64(1.3), "{alone:?} {beside:?}");
}

#[test]
fn values_arrive_in_order_through_processors_and_a_cut() {
    let run = |seed: u64| {
        let priced = costs(1, |profile| {
            server_costs(profile, &[("notifications", 3_000.0), ("send", 9_000.0), ("timer", 2_000.0)]);
            profile.client.extend([("receive".to_owned(), 7_000.0), ("notifications".to_owned(), 900.0)]);
            profile.scheduler.wake = Cost::Quantiles(vec![1_000.0, 5_000.0, 90_000.0]);
            profile.scheduler.noise = Cost::Quantiles(vec![0.8, 1.0, 1.7]);
        });
        let (mut site, machine) = placed(seed, 3, Arc::clone(&priced));
        site.world.compete(machine, Competitor { share: 0.4, burst: millis(3) });
        let own = site.world.add_machine(priced);
        let thread = site.world.add_client_thread(own);
        let items = || (0..3).map(|number| monitor(number, 1_000)).collect();
        let clients: Vec<_> = (0..4).map(|_| site.client(lan(), subscription(20.0, items()))).collect();
        for client in &clients {
            site.world.place_client(*client, thread);
        }
        site.until("all subscribe", secs(60), |world| {
            clients.iter().all(|client| world.client(*client).application.values.len() == 3)
        });
        for value in 1..=300 {
            site.write((value % 3) as usize, value);
            site.run(millis(7));
            if value == 150 {
                site.world.cut(clients[0]);
            }
        }
        site.run(secs(30));
        for client in &clients {
            for item in 0..3u32 {
                let mut want: Vec<i64> = (1..=300).filter(|value| value % 3 == i64::from(item)).collect();
                want.insert(0, 0);
                assert_eq!(numbers(site.app(*client), item), want);
            }
        }
        assert!(site.world.client_thread_used(thread) > Duration::ZERO);
        (site.world.events(), site.world.now().instant, site.world.machine(machine).used())
    };
    assert_eq!(run(5), run(5), "equal seeds must give equal runs");
    assert_ne!(run(5).2, run(6).2);
}

#[test]
fn shards_share_the_connections_and_subscriptions_move_between_them() {
    let mut world = World::new(7);
    let more = (0..2).map(|_| Box::new(world.fork_entropy()) as _).collect();
    let entropy = Box::new(world.fork_entropy());
    let plant = Plant::of_shards(SERVER, 2, world.utc_origin(), entropy, more, |_| {}).unwrap();
    let variables = plant.variables.clone();
    let server = world.add_server_of(SERVER, plant.into_shards());
    let priced = costs(2, |profile| server_costs(profile, &[("requests", 10_000.0), ("send", 5_000.0)]));
    let machine = world.add_machine(priced);
    world.place_server(server, machine);
    world.server_mut(server).effect_time = EffectTime::Between(millis(1), millis(2));
    let mut clients = Vec::new();
    for _ in 0..6 {
        let mut config = ClientConfig::default();
        config.reconnect.retry_first = true;
        let client = Client::new(Arc::new(config), Box::new(world.fork_entropy()));
        let subscriber = lasting_subscription(50.0, vec![monitor(0, 1_000), monitor(1, 1_000)]);
        let id = world.add_client(client, subscriber, lan());
        let target = Target::new(&url(SERVER)).unwrap();
        world.with_client(id, |client, _, now| client.connect(target, now.instant)).unwrap();
        clients.push(id);
    }
    world.run_for(secs(5)).unwrap();
    let counts: Vec<_> = world.server(server).shards().map(|shard| shard.connection_count()).collect();
    assert_eq!(counts, [2, 2, 2]);
    for round in 1..=60i64 {
        for variable in &variables {
            variable.set_at(round, world.now().utc);
        }
        world.run_for(millis(500)).unwrap();
        if round % 3 == 0 {
            // They reconnect to whichever shard has the fewest connections: sessions stay, connections move.
            world.cut(clients[(round as usize / 3) % 6]);
            world.cut(clients[(round as usize / 3 + 2) % 6]);
        }
    }
    world.run_for(secs(20)).unwrap();
    for client in &clients {
        for item in 0..2 {
            let got = numbers(&world.client(*client).application, item);
            assert_eq!(got, (0..=60).collect::<Vec<i64>>(), "{client:?}");
        }
    }
    let total: usize = world.server(server).shards().map(|shard| shard.connection_count()).sum();
    assert_eq!(total, 6);
    // The process dies: its threads end, and a new process serves the clients.
    let more = (0..2).map(|_| Box::new(world.fork_entropy()) as _).collect();
    let entropy = Box::new(world.fork_entropy());
    let plant = Plant::of_shards(SERVER, 2, world.utc_origin(), entropy, more, |_| {}).unwrap();
    let variables = plant.variables.clone();
    world.restart_of(server, plant.into_shards());
    world.run_for(secs(20)).unwrap();
    variables[0].set_at(1_000i64, world.now().utc);
    world.run_for(secs(1)).unwrap();
    for client in &clients {
        assert_eq!(numbers(&world.client(*client).application, 0).last(), Some(&1_000));
    }
    assert!(world.now().instant > Instant::ZERO);
}

#[test]
fn clock_jumps_cause_no_disturbance() {
    let mut site = Site::new(8, 1);
    let client = site.client(lan(), subscription(100.0, vec![monitor(0, 100)]));
    site.until_up(client);
    site.run(secs(1));
    let hour = 3_600_000_000_000i64;
    for (round, offset) in [0, hour, -hour, 24 * hour].into_iter().enumerate() {
        site.world.set_server_clock(site.server, offset);
        site.world.set_client_clock(client, -offset);
        site.write(0, round as i64 + 1);
        site.run(secs(5));
    }
    assert_eq!(numbers(site.app(client), 0), [0, 1, 2, 3, 4]);
}
