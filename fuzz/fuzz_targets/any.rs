//! All targets in one binary, for short runs: it is built and linked once instead of once per target.
//! `TAKTWERK_FUZZ_TARGET` selects the target.
#![no_main]

use std::sync::LazyLock;
use taktwerk_fuzz::{TARGETS, Target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let wanted = std::env::var("TAKTWERK_FUZZ_TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|(name, _)| *name == wanted);
    found.map_or_else(|| panic!("TAKTWERK_FUZZ_TARGET={wanted:?} is not a target"), |(_, target)| *target)
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
