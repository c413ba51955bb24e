//! Argon2id password hashes (RFC 9106) in the PHC string format.

use super::memory;
use argon2::password_hash::{self, Output, PasswordHasher, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use core::fmt;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use taktwerk_crypto::Entropy;
use taktwerk_net::OsEntropy;

/// Longest salt, in bytes.
const SALT_LEN_MAX: usize = 64;
/// Length of a new salt, in bytes.
const SALT_LEN: usize = 16;
/// Maximum memory of a hash in a file, in KiB. It limits what a mistake in the file can cost the server.
const MEMORY_MAX: u32 = 1 << 20;
/// Maximum number of passes over the memory.
const PASSES_MAX: u32 = 32;

/// The work that one password hash takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Memory in KiB.
    pub memory: u32,
    /// Passes over the memory.
    pub passes: u32,
}

impl Cost {
    /// The minimum. For tests.
    pub const LEAST: Self = Self { memory: 8, passes: 1 };
}

/// The OWASP recommendation: 19 MiB, two passes, about 30 ms.
impl Default for Cost {
    fn default() -> Self {
        Self { memory: 19 << 10, passes: 2 }
    }
}

/// The hash of a password. `Debug` does not print it, because hashes can be attacked offline.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Hashes a password with a new random salt.
    #[must_use]
    pub fn new(password: &[u8], cost: Cost) -> Self {
        let mut salt = [0; SALT_LEN];
        OsEntropy.fill(&mut salt);
        let hash = SaltString::encode_b64(&salt).and_then(|salt| {
            let hash = hasher(cost)?.hash_password(password, &salt)?;
            Ok(hash.to_string())
        });
        // Salt and parameters are valid. An empty hash would match no password.
        Self(hash.unwrap_or_default())
    }

    /// Whether this is the hash of `password`.
    #[must_use]
    pub fn is_of(&self, password: &[u8]) -> bool {
        self.check(password).unwrap_or(false)
    }

    /// `None` if the hash is malformed.
    fn check(&self, password: &[u8]) -> Option<bool> {
        let hash = password_hash::PasswordHash::new(&self.0).ok()?;
        let params = Params::try_from(&hash).ok()?;
        let algorithm = Algorithm::try_from(hash.algorithm).ok()?;
        let version = hash.version.map_or(Ok(Version::V0x13), Version::try_from).ok()?;
        let (mut salt, mut output) = ([0; SALT_LEN_MAX], [0; Output::MAX_LENGTH]);
        let salt = hash.salt?.decode_b64(&mut salt).ok()?;
        let expected = hash.hash?;
        let output = output.get_mut(..expected.len())?;
        let count = params.block_count();
        let argon2 = Argon2::new(algorithm, version, params);
        memory::with(count, |blocks| argon2.hash_password_into_with_memory(password, salt, output, blocks))
            .ok()?;
        // `Output` compares in constant time.
        Some(Output::new(output).ok()? == expected)
    }

    /// The work that checking takes; `None` if the hash is malformed.
    pub(super) fn cost(&self) -> Option<Cost> {
        let hash = password_hash::PasswordHash::new(&self.0).ok()?;
        let params = Params::try_from(&hash).ok()?;
        Some(Cost { memory: params.m_cost(), passes: params.t_cost() })
    }

    /// A random hash that matches no password. Unknown user names are compared with it, so that they take the same time
    /// as known ones. It is not computed, so the first such comparison is not slower either.
    pub(super) fn decoy(cost: Cost) -> Self {
        let (mut salt, mut output) = ([0; SALT_LEN], [0; Params::DEFAULT_OUTPUT_LEN]);
        OsEntropy.fill(&mut salt);
        OsEntropy.fill(&mut output);
        let text = || -> Result<String, password_hash::Error> {
            let salt = SaltString::encode_b64(&salt)?;
            let hash = password_hash::PasswordHash {
                algorithm: Algorithm::Argon2id.ident(),
                version: Some(Version::V0x13.into()),
                params: hasher(cost)?.params().try_into()?,
                salt: Some(salt.as_salt()),
                hash: Some(Output::new(&output)?),
            };
            Ok(hash.to_string())
        };
        Self(text().unwrap_or_default())
    }

    /// The text form: `$argon2id$v=19$m=19456,t=2,p=1$salt$hash`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn parse(text: String) -> Result<Self, &'static str> {
        let wrong = "this is not an Argon2id hash; make one with `taktwerk user passwd`";
        let hash = password_hash::PasswordHash::new(&text).map_err(|_| wrong)?;
        if hash.algorithm != Algorithm::Argon2id.ident() || hash.hash.is_none() || hash.salt.is_none() {
            return Err(wrong);
        }
        let params = Params::try_from(&hash).map_err(|_| wrong)?;
        if params.m_cost() > MEMORY_MAX || params.t_cost() > PASSES_MAX {
            return Err("this hash needs more than 1 GiB or 32 passes for each attempt to log on");
        }
        Ok(Self(text))
    }
}

fn hasher(cost: Cost) -> Result<Argon2<'static>, password_hash::Error> {
    let params = Params::new(cost.memory, cost.passes, 1, None)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash")
    }
}

impl Serialize for PasswordHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for PasswordHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use argon2::password_hash::PasswordVerifier;

    #[test]
    fn a_hash_matches_only_its_password() {
        let hash = PasswordHash::new(b"secret one", Cost::LEAST);
        assert!(hash.is_of(b"secret one"));
        assert!(!hash.is_of(b"secret two"));
        assert!(!hash.is_of(b""));
        assert_ne!(hash, PasswordHash::new(b"secret one", Cost::LEAST), "salted");
        assert!(!PasswordHash::decoy(Cost::LEAST).is_of(b""));
        // Independent of the previous content of the memory, and equal to the result of the argon2 crate.
        let large = PasswordHash::new(b"secret one", Cost { memory: 64, passes: 2 });
        for _ in 0..3 {
            assert!(hash.is_of(b"secret one") && large.is_of(b"secret one") && !large.is_of(b"secret two"));
        }
        let parsed = password_hash::PasswordHash::new(large.as_str()).unwrap();
        assert!(Argon2::default().verify_password(b"secret one", &parsed).is_ok());
    }

    #[test]
    fn unknown_users_cost_the_same_work_as_known_users() {
        let params = |hash: &PasswordHash| {
            let hash = password_hash::PasswordHash::new(hash.as_str()).unwrap();
            let params = Params::try_from(&hash).unwrap();
            (params.m_cost(), params.t_cost(), params.p_cost(), params.output_len(), hash.salt.unwrap().len())
        };
        for cost in [Cost::default(), Cost::LEAST, Cost { memory: 64, passes: 3 }] {
            let (decoy, real) = (PasswordHash::decoy(cost), PasswordHash::new(b"some password", cost));
            assert_eq!(params(&decoy), params(&real));
            assert_eq!((decoy.cost(), real.cost()), (Some(cost), Some(cost)));
            assert!(decoy.check(b"x").is_some(), "the hash is computed");
        }
    }

    #[test]
    fn too_expensive_hashes_are_refused() {
        let text = |cost| PasswordHash::new(b"x", cost).as_str().to_owned();
        let fine = text(Cost::LEAST);
        assert!(PasswordHash::parse(fine.clone()).is_ok());
        assert!(PasswordHash::parse(fine.replace("m=8", "m=2000000")).is_err());
        assert!(PasswordHash::parse(fine.replace("t=1", "t=99")).is_err());
        assert!(PasswordHash::parse(fine.replace("argon2id", "argon2i")).is_err());
        assert!(PasswordHash::parse("plain".to_owned()).is_err());
    }
}
