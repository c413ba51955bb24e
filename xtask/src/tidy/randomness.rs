//! Random numbers must come from the system: keys, nonces and tokens have no other source (Part 2 §6.11).
//!
//! Delivered code has two sources: the kernel (`net/src/entropy.rs`) and the cryptographic library, which is seeded by
//! it (`crypto/src/aws_lc`). Reproducible generators are for tests, simulations and load generation only.

use super::Finding;
use super::source::{Code, line_of};

/// Crates used only in a laboratory.
const LABORATORY: [&str; 3] = ["crates/sim/", "crates/lab/", "xtask/"];
/// Our reproducible generator.
const OWN: &str = "SeededEntropy";
/// Where it is defined, or used for toy cryptography.
const REPEATABLE: [&str; 4] = [
    "crates/crypto/src/entropy.rs",
    "crates/crypto/src/lib.rs",
    "crates/crypto-dummy/src/lib.rs",
    "crates/crypto-dummy/src/pubsub.rs",
];
/// The comment that allows it elsewhere; the reason follows it.
const ALLOWED: &str = "tidy: repeatable";

/// Generators that are predictable or of unknown strength.
const GENERATORS: [&str; 9] =
    [OWN, "fastrand", "oorandom", "nanorand", "SmallRng", "StdRng", "thread_rng", "ThreadRng", "RandomState"];

/// Allowed users of the library's generator: the provider, and serial numbers of certificates.
const LIBRARY: &[&str] = &["crates/crypto/src/aws_lc/", "crates/pki/src/create.rs"];
/// The sources, and the only places that may use each.
const SOURCES: [(&str, &[&str]); 3] =
    [("getrandom", &["crates/net/src/entropy.rs"]), ("SystemRandom", LIBRARY), ("rand::fill", LIBRARY)];

/// Checks a file of the workspace.
pub(super) fn check(path: &str, code: &Code) -> Vec<Finding> {
    let is_test = ["/tests/", "/tests.rs", "/benches/", "/examples/"].iter().any(|part| path.contains(part));
    if is_test || LABORATORY.iter().any(|laboratory| path.starts_with(laboratory)) {
        return Vec::new();
    }
    let text = &code.program;
    let mut findings = Vec::new();
    for generator in GENERATORS {
        for at in words(text, generator) {
            let line = line_of(text, at);
            let is_home = generator == OWN && REPEATABLE.contains(&path);
            if !is_home && !code.is_marked(line, ALLOWED) {
                let message = format!("{generator}: random numbers are the system's; take an `Entropy`");
                findings.push(Finding::new(path, line, message));
            }
        }
    }
    for (source, homes) in SOURCES {
        for at in words(text, source) {
            if !homes.iter().any(|home| path.starts_with(home)) {
                let homes = homes.join(" and ");
                let message = format!("{source}: only {homes} asks it; take an `Entropy` or a `Provider`");
                findings.push(Finding::new(path, line_of(text, at), message));
            }
        }
    }
    findings
}

/// Positions of a whole word.
fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = text.get(..*at).unwrap_or("");
        let after = text.get(at + word.len()..).unwrap_or("");
        !before.ends_with(part) && !after.starts_with(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(path, &Code::new(text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn generators_that_repeat_themselves_are_found() {
        let text = "fn a() {}\nlet nonce = SeededEntropy::new(1);\nlet b = fastrand::u64(..);\n";
        assert_eq!(lines("crates/server/src/session/mod.rs", text), [2, 3]);
        assert_eq!(lines("crates/cli/src/main.rs", text), [2, 3]);
        assert_eq!(lines("crates/crypto/src/entropy.rs", text), [3]);
        assert!(lines("crates/sim/src/world.rs", text).is_empty());
        assert!(lines("crates/server/src/tests/mod.rs", text).is_empty());
        let tested = "#[cfg(test)]\nmod tests {\n    use taktwerk_crypto::SeededEntropy;\n}\n";
        assert!(lines("crates/pubsub/src/security/ring.rs", tested).is_empty());
        let said = "// SeededEntropy is not for keys.\nlet text = \"fastrand\";\n";
        assert!(lines("crates/net/src/lib.rs", said).is_empty());
        let marked = "// tidy: repeatable: a load\nlet a = SeededEntropy::new(1);\n";
        assert!(lines("crates/cli/src/bench/plant.rs", marked).is_empty());
    }

    #[test]
    fn the_system_source_has_one_user() {
        let text = "use rustix::rand::{GetRandomFlags, getrandom};\n";
        assert!(lines("crates/net/src/entropy.rs", text).is_empty());
        assert_eq!(lines("crates/config/src/users/hash.rs", text), [1]);
        assert_eq!(lines("crates/server/src/lib.rs", "let a = aws_lc_rs::rand::fill(b);"), [1]);
        assert!(
            lines("crates/crypto/src/aws_lc/mod.rs", "rand::fill(bytes); SystemRandom::new()").is_empty()
        );
    }
}
