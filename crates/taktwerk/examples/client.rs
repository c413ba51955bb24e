//! A small client for the example `server`: `cargo run -p taktwerk --example client [url]`.

#![allow(clippy::print_stdout)] // an example talks

use core::time::Duration;
use taktwerk::Client;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "opc.tcp://127.0.0.1:4840".to_owned());
    let client = Client::connect(&url).await?;
    for child in client.browse("i=85").await? {
        println!("{} {}", child.node_id, child.browse_name);
    }

    let boiler = client.find("i=85", "2:Boiler 1").await?;
    let temperature: f64 = client.read_value("nsu=urn:example:boilers;s=Boiler 1/Temperature").await?;
    let setpoint = client.find(&boiler, "2:Setpoint").await?;
    client.write(&setpoint, temperature + 5.0).await?;
    let heat_up = client.find(&boiler, "2:Heat up").await?;
    let (now,): (f64,) = client.call(&boiler, &heat_up, (1.5,)).await?;
    println!("the setpoint is {now}");

    let mut subscription = client.subscribe(Duration::from_millis(200)).await?;
    subscription.monitor("nsu=urn:example:boilers;s=Boiler 1/Temperature").await?;
    for _ in 0..10 {
        let Some(change) = subscription.next_change().await else { break };
        println!("{} {:?}", change.node, change.value.value);
    }
    client.disconnect().await;
    Ok(())
}
