#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| taktwerk_fuzz::targets::sources::replay(data));
