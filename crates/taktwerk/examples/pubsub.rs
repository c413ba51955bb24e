//! A server whose variables are published, and a subscriber: `cargo run -p taktwerk --example pubsub [url]`.

#![allow(clippy::print_stdout)] // an example talks

use core::time::Duration;
use std::thread;
use taktwerk::Server;
use taktwerk::pubsub::{DataSet, Publisher, Subscriber, named};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "opc.udp://239.192.0.1:4840".to_owned());
    let server =
        Server::builder().application_name("Boiler house").bind("127.0.0.1:0").anonymous().build()?;
    let boiler = server.namespace("urn:example:boilers").object("Boiler 1").add()?;
    let temperature = boiler.variable("Temperature", 20.0).add()?;
    let is_heating = boiler.variable("Heating", true).add()?;
    let running = server.spawn()?;

    let publisher = Publisher::builder(&url)
        .publisher_id(2234)
        .interval(Duration::from_millis(100))
        .data_set(
            DataSet::new("boiler").variable("temperature", &temperature).variable("heating", &is_heating),
        )
        .start()?;
    let subscriber = Subscriber::builder(&url)
        .publisher_id(2234)
        .writer(1)
        .on_message(|message| {
            let fields: Vec<_> = named(message)
                .map(|(name, value)| format!("{name} = {}", value.value.clone().unwrap_or_default()))
                .collect();
            println!("{}", fields.join(", "));
        })
        .start()?;

    for step in 0..50 {
        temperature.set(20.0 + f64::from(step));
        is_heating.set(step < 40);
        thread::sleep(Duration::from_millis(100));
    }
    let lateness = publisher.lateness();
    println!(
        "received {} messages; p99 lateness {} ns",
        subscriber.counters().data_set_messages,
        lateness.total.quantile(0.99)
    );
    subscriber.stop();
    publisher.stop();
    running.stop(Duration::from_secs(1));
    Ok(())
}
