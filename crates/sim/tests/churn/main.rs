//! Random worlds in which everything changes at the same time. Servers have several shards, and clients reconnect to
//! other shards. Values come from the application, from several writing clients, from polled sources that may hang, and
//! in bursts that overflow every ring. Meanwhile items and subscriptions are modified, deleted and created again.
//! `model` defines what must hold.
#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test fails by panicking and prints the reason

#[path = "../common/mod.rs"]
mod common;
mod customer;
mod device;
mod model;
mod plant;

use common::{for_seeds, millis, secs};
use core::cell::RefCell;
use core::time::Duration;
use customer::Customer;
use model::{Confirmed, Seen, agree, check, order};
use plant::{POLLED, SHARED, Site, WRITTEN};
use taktwerk_crypto::{Entropy, SeededEntropy};
use taktwerk_schema::MonitoringMode;
use taktwerk_sim::{EffectTime, Side, Subscriber, World};

const CLIENTS: u64 = 3;

/// Causes a random fault.
fn fault(site: &mut Site, customers: &[Customer], entropy: &mut SeededEntropy) {
    let client = customers[entropy.below(CLIENTS) as usize].id;
    let soon = Duration::from_millis(entropy.below(8_000));
    match entropy.below(12) {
        // All at once, so that they reconnect to other shards.
        0..4 => customers.iter().for_each(|customer| site.world.cut(customer.id)),
        4 | 5 => site.world.cut(client),
        6 => {
            let side = if entropy.below(2) == 0 { Side::Client } else { Side::Server };
            site.world.cut_at_byte(client, side, entropy.below(3000));
        }
        7 => {
            site.world.partition(client);
            site.world.after(soon, move |world| world.heal(client));
        }
        8 => {
            site.world.set_reads(client, false);
            site.world.after(soon, move |world| world.set_reads(client, true));
        }
        9 | 10 => {
            let device = site.devices[entropy.below(2) as usize].clone();
            device.set_hangs(true);
            site.world.after(Duration::from_millis(entropy.below(3_000)), move |_| device.set_hangs(false));
        }
        _ if entropy.below(3) == 0 => site.restart(),
        _ => {}
    }
}

/// The application writes some values, or more than the rings hold.
fn write(site: &mut Site, entropy: &mut SeededEntropy) {
    let variable = entropy.below(u64::from(WRITTEN.end)) as u32;
    let count = match entropy.below(10) {
        0 => 1 + entropy.below(200),
        1..4 => 1 + entropy.below(6),
        _ => 1,
    };
    (0..count).for_each(|_| site.write(variable));
}

fn heal(site: &mut Site, customers: &mut [Customer]) {
    site.devices.iter().for_each(|device| device.set_hangs(false));
    for customer in &*customers {
        site.world.heal(customer.id);
        site.world.set_reads(customer.id, true);
    }
    let ids: Vec<_> = customers.iter().map(|customer| customer.id).collect();
    let all_up = |world: &World<Subscriber>| ids.iter().all(|client| world.client(*client).client().is_up());
    assert!(site.world.run_while(secs(300), |world| !all_up(world)).unwrap(), "all clients must reconnect");
    // Waits until pending work has finished.
    site.world.run_for(secs(2)).unwrap();
    for customer in customers {
        customer.set_publishing(true, &mut site.world);
        customer.set_mode(None, MonitoringMode::REPORTING, &mut site.world);
    }
    site.world.run_for(secs(2)).unwrap();
}

/// The last written value arrives at every item, and values of devices arrive again.
fn arrives(site: &mut Site, customers: &[Customer]) {
    WRITTEN.for_each(|variable| site.write(variable));
    let devices = [site.devices[0].count(), site.devices[1].count()];
    let wanted: Vec<i64> = WRITTEN.map(|variable| site.written(variable)).collect();
    let late = |world: &World<Subscriber>| {
        customers.iter().find_map(|customer| {
            let app = &world.client(customer.id).application;
            customer.lives.iter().filter(|life| life.is_live).find_map(|life| {
                let last = app.values_of(life.handle).last();
                let last = last.and_then(|it| i64::try_from(it.value.value.clone()?).ok()).unwrap_or(-1);
                let is_there = match wanted.get(life.variable as usize) {
                    Some(wanted) => last == *wanted,
                    None => last > devices[usize::from(life.variable != POLLED.start)],
                };
                (!is_there)
                    .then(|| format!("{life:?} has {last}, not {:?}", wanted.get(life.variable as usize)))
            })
        })
    };
    let _ = site.world.run_while(secs(200), |world| late(world).is_some()).unwrap();
    assert_eq!(late(&site.world), None);
}

fn run(seed: u64, seen: &mut Seen) -> u64 {
    let mut entropy = SeededEntropy::new(seed ^ 0xc4);
    let mut site = Site::new(seed, &mut entropy);
    if entropy.below(2) == 0 {
        let server = site.server;
        site.world.server_mut(server).effect_time = EffectTime::Between(millis(1), millis(100));
    }
    let mut customers: Vec<_> =
        (1..=CLIENTS).map(|writer| Customer::new(writer, &mut site, &mut entropy)).collect();
    let mut confirmed = Confirmed::new();
    let end = site.world.now().instant + secs(16);
    let mut next_fault = site.world.now().instant + secs(entropy.below(5));
    while site.world.now().instant < end {
        site.world.run_for(Duration::from_micros(entropy.below(150_000))).unwrap();
        write(&mut site, &mut entropy);
        let customer = &mut customers[entropy.below(CLIENTS) as usize];
        customer.act(&mut site.world, &mut entropy, seen);
        customer.confirm(&mut site.world, &mut confirmed);
        if site.world.now().instant >= next_fault {
            fault(&mut site, &customers, &mut entropy);
            next_fault = site.world.now().instant + Duration::from_millis(entropy.below(4000));
        }
    }
    heal(&mut site, &mut customers);
    customers.iter_mut().for_each(|customer| customer.confirm(&mut site.world, &mut confirmed));
    arrives(&mut site, &customers);
    seen.confirmed += confirmed.values().map(|numbers| numbers.len() as u64).sum::<u64>();
    seen.moves += site.world.server(site.server).moves();
    for customer in &customers {
        let app = &site.world.client(customer.id).application;
        for life in &customer.lives {
            check(app, life, &confirmed, seen).unwrap();
        }
    }
    for variable in SHARED {
        let orders: Vec<_> = customers
            .iter()
            .flat_map(|customer| {
                let app = &site.world.client(customer.id).application;
                customer.lives.iter().filter(|life| life.variable == variable).map(|life| order(app, life))
            })
            .collect();
        for (at, one) in orders.iter().enumerate() {
            orders[at + 1..].iter().for_each(|other| agree(one, other).unwrap());
        }
    }
    site.world.events()
}

#[test]
fn no_value_is_lost_silently_while_everything_changes() {
    let seen = RefCell::new(Seen::default());
    let worlds = core::cell::Cell::new(0);
    for_seeds(500, |seed| {
        run(seed, &mut seen.borrow_mut());
        worlds.set(worlds.get() + 1);
    });
    let seen = seen.into_inner();
    // The test is meaningful only if everything happened often enough.
    if worlds.get() >= 50 {
        let each = worlds.get();
        assert!(seen.values > 300 * each && seen.confirmed > 5 * each, "{seen:?}");
        assert!(seen.overflows > each && seen.losses > each && seen.doubtful > each, "{seen:?}");
        assert!(seen.moves > each / 2 && seen.modified > each && seen.deleted > each, "{seen:?}");
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    let mut seen = Seen::default();
    assert_eq!(run(3, &mut seen), run(3, &mut seen));
}
