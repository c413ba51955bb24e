//! The least a server takes: the whole namespace 0 and nothing of one's own, on a free port, until standard input ends.
//! `cargo xtask versus` measures its memory: what the library costs a program that has nothing else in it.

#![allow(clippy::print_stdout)] // its address is what it is asked for

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
