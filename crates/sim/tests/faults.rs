//! Hundreds of random worlds with random faults, checked against a model with one rule: every distinct written value is
//! delivered, in order, or a loss is reported.
#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test fails by panicking and prints the reason

mod common;

use common::*;
use core::time::Duration;
use taktwerk_client::{Event, SubscriptionEvent, SubscriptionParams};
use taktwerk_crypto::{Entropy, SeededEntropy};
use taktwerk_sim::plant::monitor;
use taktwerk_sim::{ClientId, EffectTime, Path, Route, Side, Subscriber, World};

const VARIABLES: u32 = 4;
const CLIENTS: u64 = 3;

/// InfoBits: type DataValue with Overflow set (Part 4 §7.39.1).
const OVERFLOW: u32 = 0x0480;

/// An event reported to an application, as far as it matters for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Value {
        number: i64,
        overflow: bool,
    },
    /// Messages were lost, or the subscription was created again: any number of values may be missing here, and the
    /// current one may arrive again.
    Loss,
}

/// What was reported to a client about a variable, in order.
fn told(app: &Subscriber, client_handle: u32) -> Vec<(u64, Told)> {
    let losses = app.events.iter().filter_map(|happened| {
        let Event::Subscription(_, event) = &happened.event else { return None };
        let lost = matches!(
            event,
            SubscriptionEvent::DataLost { .. }
                | SubscriptionEvent::Recreating(_)
                | SubscriptionEvent::Ended(_)
        );
        lost.then_some((happened.order, Told::Loss))
    });
    let values = app.values_of(client_handle).iter().map(|received| {
        let number = i64::try_from(received.value.value.clone().unwrap()).unwrap();
        let overflow = received.value.status().0 & OVERFLOW == OVERFLOW;
        (received.order, Told::Value { number, overflow })
    });
    let mut all: Vec<_> = losses.chain(values).collect();
    all.sort_by_key(|(order, _)| *order);
    all
}

/// An event on one line.
fn brief(event: &Event) -> String {
    match event {
        Event::Connected(_) => "Connected".to_owned(),
        Event::Restored(how, _) => format!("Restored({how:?})"),
        other => format!("{other:?}").chars().take(200).collect(),
    }
}

/// Checks the rule of the model.
fn check(app: &Subscriber, client_handle: u32, written: i64) {
    let told = told(app, client_handle);
    let fail = |order: u64, why: &str| -> ! {
        // Events around the failure.
        let mut lines: Vec<(u64, String)> =
            told.iter().map(|(order, told)| (*order, format!("    {told:?}"))).collect();
        lines.extend(app.events.iter().map(|happened| {
            let at = happened.at.as_nanos() as f64 / 1e9;
            (happened.order, format!("{at:.4} {}", brief(&happened.event)))
        }));
        lines.sort_by_key(|(order, _)| *order);
        let from = lines.partition_point(|(line, _)| *line < order).saturating_sub(25);
        for (_, line) in lines.iter().skip(from).take(35) {
            eprintln!("{line}");
        }
        panic!("variable {client_handle}: {why}")
    };
    let mut last: Option<i64> = None;
    let mut lossy = false;
    // After a loss the client requests the current values (ResendData), which may have arrived already.
    let mut repeats = 0;
    for (order, told) in &told {
        match *told {
            Told::Loss => {
                lossy = true;
                repeats += 1;
            }
            Told::Value { number, .. } if repeats > 0 && Some(number) == last => repeats -= 1,
            Told::Value { number, overflow } => {
                let follows = match last {
                    None => true,
                    Some(last) if lossy => number >= last,
                    Some(last) if overflow => number > last,
                    Some(last) => number == last + 1,
                };
                if !follows {
                    fail(*order, &format!("{number} after {last:?} (overflow {overflow}, loss {lossy})"));
                }
                (last, lossy) = (Some(number), false);
            }
        }
    }
    if last != Some(written) {
        fail(u64::MAX, &format!("the last value is {last:?}, not {written}"));
    }
}

fn path(entropy: &mut SeededEntropy) -> Path {
    Path {
        delay: Duration::from_micros(entropy.below(50_000)),
        jitter: Duration::from_micros(entropy.below(20_000)),
        loss_ppm: if entropy.below(3) == 0 { entropy.below(50_000) as u32 } else { 0 },
        rate: (entropy.below(3) == 0).then(|| 50_000 + entropy.below(10_000_000)),
        segment_len: 100 + entropy.below(1400) as usize,
        send_buffer: 2000 + entropy.below(100_000) as usize,
        receive_buffer: 2000 + entropy.below(100_000) as usize,
        give_up: secs(10 + entropy.below(60)),
        ..Path::LAN
    }
}

fn fault(site: &mut Site, clients: &[ClientId], written: &[i64], entropy: &mut SeededEntropy) {
    let client = clients[entropy.below(CLIENTS) as usize];
    let soon = Duration::from_millis(entropy.below(20_000));
    match entropy.below(10) {
        0..3 => site.world.cut(client),
        3..6 => {
            let side = if entropy.below(2) == 0 { Side::Client } else { Side::Server };
            site.world.cut_at_byte(client, side, entropy.below(3000));
        }
        6 | 7 => {
            site.world.partition(client);
            site.world.after(soon, move |world| world.heal(client));
        }
        8 => {
            site.world.set_reads(client, false);
            site.world.after(soon, move |world| world.set_reads(client, true));
        }
        _ if entropy.below(3) == 0 => {
            site.restart();
            for (variable, written) in written.iter().enumerate() {
                site.write(variable, *written);
            }
        }
        _ => {}
    }
}

fn run(seed: u64) -> u64 {
    let mut entropy = SeededEntropy::new(seed ^ 0x5eed);
    let mut site = Site::with(seed, VARIABLES, |config| {
        config.limits.subscriptions.retransmission_len_max = 5;
        config.limits.send_budget = 4 << 10;
    });
    if entropy.below(2) == 0 {
        let server = site.server;
        site.world.server_mut(server).effect_time = EffectTime::Between(Duration::ZERO, millis(200));
    }
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let queue_size = 1 + entropy.below(20) as u32;
        let items = (0..VARIABLES).map(|number| monitor(number, queue_size.max(2))).collect();
        let params = SubscriptionParams {
            publishing_interval_ms: 20.0 + entropy.below(1000) as f64,
            lifetime_count: 30 + entropy.below(300) as u32,
            keep_alive_count: 3 + entropy.below(7) as u32,
            notifications_max: if entropy.below(2) == 0 { 0 } else { 1 + entropy.below(10) as u32 },
            ..SubscriptionParams::default()
        };
        let timeout_ms = 2000.0 + entropy.below(60_000) as f64;
        let route =
            Route { to_server: path(&mut entropy), to_client: path(&mut entropy), ..Route::default() };
        clients.push(site.client_with(route, Subscriber::new(params, items), |config| {
            config.session_timeout_ms = timeout_ms;
            config.publish_max = 1 + entropy.below(8) as usize;
        }));
    }
    let mut written = vec![0i64; VARIABLES as usize];
    let end = site.world.now().instant + secs(40);
    let mut next_fault = site.world.now().instant + secs(entropy.below(10));
    while site.world.now().instant < end {
        site.run(Duration::from_micros(entropy.below(200_000)));
        let variable = entropy.below(u64::from(VARIABLES)) as usize;
        written[variable] += 1;
        site.write(variable, written[variable]);
        if site.world.now().instant >= next_fault {
            fault(&mut site, &clients, &written, &mut entropy);
            next_fault = site.world.now().instant + Duration::from_millis(entropy.below(8000));
        }
    }
    // All faults end; the last written values must arrive everywhere.
    for client in &clients {
        site.world.heal(*client);
        site.world.set_reads(*client, true);
    }
    for client in &clients {
        site.until_up(*client);
    }
    for (variable, written) in written.iter_mut().enumerate() {
        *written += 1;
        site.write(variable, *written);
    }
    let delivered = |world: &World<Subscriber>| {
        let has_last = |client: &ClientId| {
            let app = &world.client(*client).application;
            (0..).zip(&written).all(|(variable, written)| numbers(app, variable).last() == Some(written))
        };
        clients.iter().all(has_last)
    };
    // If this does not happen, the model reports what is missing.
    let _ = site.world.run_while(secs(200), |world| !delivered(world)).unwrap();
    for client in &clients {
        for (variable, written) in (0..).zip(&written) {
            check(site.app(*client), variable, *written);
        }
    }
    site.world.events()
}

#[test]
fn nothing_is_lost_silently() {
    for_seeds(500, |seed| {
        run(seed);
    });
}

#[test]
fn equal_seeds_give_equal_runs() {
    assert_eq!(run(17), run(17));
}
