//! Empty: see Cargo.toml for why this package exists.
