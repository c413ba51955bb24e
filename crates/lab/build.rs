//! Packs the programs around the peers' libraries: for each one a line with its length in bytes and its path, then its text.

#![allow(clippy::print_stdout)] // cargo reads it

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;
use std::path::Path;
use std::{env, fs, io};

const LIST: &str = "src/peers/sources.txt";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={LIST}");
    let folder = Path::new("../../interop");
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    for name in fs::read_to_string(LIST)?.lines() {
        let path = folder.join(name);
        println!("cargo::rerun-if-changed={}", path.display());
        let text = fs::read_to_string(&path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        write!(packed, "{} {name}\n{text}", text.len())?;
    }
    let output = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    fs::write(Path::new(&output).join("sources.z"), packed.finish()?)
}
