//! A minimal server: only namespace 0, on a free port, until standard input closes. `cargo xtask versus` measures its memory: the
//! cost of the library itself.

#![allow(clippy::print_stdout)] // prints its address

use core::time::Duration;
use std::io::Read as _;
use taktwerk::Server;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let running = Server::builder().bind("127.0.0.1:0").anonymous().build()?.spawn()?;
    println!("READY {}", running.url());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    running.stop(Duration::from_secs(1));
    Ok(())
}
