//! A small server: `cargo run -p taktwerk --example server [address:port]`.

#![allow(clippy::print_stdout)] // an example talks

use core::time::Duration;
use std::thread;
use taktwerk::{Server, StatusCode, Unit};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:4840".to_owned());
    let server = Server::builder().application_name("Boiler house").bind(&address).anonymous().build()?;

    let boiler = server.namespace("urn:example:boilers").object("Boiler 1").add()?;
    let temperature = boiler.variable("Temperature", 20.0).units(Unit::CELSIUS).range(0.0..=150.0).add()?;
    let setpoint =
        boiler
            .variable("Setpoint", 60.0)
            .units(Unit::CELSIUS)
            .on_write(|_, value| {
                if (0.0..=90.0).contains(&value) { Ok(value) } else { Err(StatusCode::BAD_OUT_OF_RANGE) }
            })
            .add()?;
    boiler.variable("History", [20.0; 10]).description("the last ten temperatures").add()?;
    let target = setpoint.clone();
    boiler.method("Heat up").inputs(["degrees"]).outputs(["setpoint"]).handler(
        move |_, (degrees,): (f64,)| {
            let value = target.get()? + degrees;
            target.set(value);
            Ok((value,))
        },
    )?;

    let running = server.spawn()?;
    println!("listening at {}", running.url());
    loop {
        // Simulates the plant: the temperature approaches the setpoint.
        let now = temperature.get()?;
        temperature.set(now + (setpoint.get()? - now) * 0.01);
        thread::sleep(Duration::from_millis(100));
    }
}
