//! Argon2id hashes of passwords (RFC 9106), in the usual text form.

use super::memory;
use argon2::password_hash::{self, Output, PasswordHasher, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use core::fmt;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use taktwerk_crypto::Entropy;
use taktwerk_net::OsEntropy;

/// Bytes of the longest salt that there is.
const SALT_LEN_MAX: usize = 64;
/// Bytes of a salt.
const SALT_LEN: usize = 16;
/// Largest memory that a hash in a file may ask for, in KiB: a mistake there must not take the server down.
const MEMORY_MAX: u32 = 1 << 20;
/// Most passes over it.
const PASSES_MAX: u32 = 32;

/// How much work a password costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// KiB.
    pub memory: u32,
    /// Passes over the memory.
    pub passes: u32,
}

impl Cost {
    /// The least that there is. For tests.
    pub const LEAST: Self = Self { memory: 8, passes: 1 };
}

/// What OWASP recommends: 19 MiB, two passes, some 30 ms.
impl Default for Cost {
    fn default() -> Self {
        Self { memory: 19 << 10, passes: 2 }
    }
}

/// The hash of a password. It is not printed: it can be guessed at.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Hashes a password with a salt of its own.
    #[must_use]
    pub fn new(password: &[u8], cost: Cost) -> Self {
        let mut salt = [0; SALT_LEN];
        OsEntropy.fill(&mut salt);
        let hash = SaltString::encode_b64(&salt).and_then(|salt| {
            let hash = hasher(cost)?.hash_password(password, &salt)?;
            Ok(hash.to_string())
        });
        // Salt and parameters are ours and fit. If they did not, nobody would have this password.
        Self(hash.unwrap_or_default())
    }

    /// Whether it is the hash of a password.
    #[must_use]
    pub fn is_of(&self, password: &[u8]) -> bool {
        self.check(password).unwrap_or(false)
    }

    /// `None` for what is no hash.
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
        // Outputs are compared in constant time.
        Some(Output::new(output).ok()? == expected)
    }

    /// How much work it costs; `None` for what is no hash.
    pub(super) fn cost(&self) -> Option<Cost> {
        let hash = password_hash::PasswordHash::new(&self.0).ok()?;
        let params = Params::try_from(&hash).ok()?;
        Some(Cost { memory: params.m_cost(), passes: params.t_cost() })
    }

    /// A hash that no password has, of the same cost as others: names without a user are compared with it. Nothing is
    /// computed, so that the first such name costs no more either.
    pub(super) fn nobodys(cost: Cost) -> Self {
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
        let wrong = "this is no Argon2id hash; make one with `taktwerk user passwd`";
        let hash = password_hash::PasswordHash::new(&text).map_err(|_| wrong)?;
        if hash.algorithm != Algorithm::Argon2id.ident() || hash.hash.is_none() || hash.salt.is_none() {
            return Err(wrong);
        }
        let params = Params::try_from(&hash).map_err(|_| wrong)?;
        if params.m_cost() > MEMORY_MAX || params.t_cost() > PASSES_MAX {
            return Err("this hash would cost more than 1 GiB or 32 passes for each attempt to log on");
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
    fn a_hash_knows_its_password_and_no_other() {
        let hash = PasswordHash::new(b"secret one", Cost::LEAST);
        assert!(hash.is_of(b"secret one"));
        assert!(!hash.is_of(b"secret two"));
        assert!(!hash.is_of(b""));
        assert_ne!(hash, PasswordHash::new(b"secret one", Cost::LEAST), "salted");
        assert!(!PasswordHash::nobodys(Cost::LEAST).is_of(b""));
        // Whatever was in the memory before, and as the crate itself does it.
        let large = PasswordHash::new(b"secret one", Cost { memory: 64, passes: 2 });
        for _ in 0..3 {
            assert!(hash.is_of(b"secret one") && large.is_of(b"secret one") && !large.is_of(b"secret two"));
        }
        let parsed = password_hash::PasswordHash::new(large.as_str()).unwrap();
        assert!(Argon2::default().verify_password(b"secret one", &parsed).is_ok());
    }

    #[test]
    fn what_an_unknown_user_costs_is_what_a_known_one_costs() {
        let params = |hash: &PasswordHash| {
            let hash = password_hash::PasswordHash::new(hash.as_str()).unwrap();
            let params = Params::try_from(&hash).unwrap();
            (params.m_cost(), params.t_cost(), params.p_cost(), params.output_len(), hash.salt.unwrap().len())
        };
        for cost in [Cost::default(), Cost::LEAST, Cost { memory: 64, passes: 3 }] {
            let (nobodys, somebodys) =
                (PasswordHash::nobodys(cost), PasswordHash::new(b"some password", cost));
            assert_eq!(params(&nobodys), params(&somebodys));
            assert_eq!((nobodys.cost(), somebodys.cost()), (Some(cost), Some(cost)));
            assert!(nobodys.check(b"x").is_some(), "the work is done");
        }
    }

    #[test]
    fn hashes_that_would_take_the_server_down_are_refused() {
        let text = |cost| PasswordHash::new(b"x", cost).as_str().to_owned();
        let fine = text(Cost::LEAST);
        assert!(PasswordHash::parse(fine.clone()).is_ok());
        assert!(PasswordHash::parse(fine.replace("m=8", "m=2000000")).is_err());
        assert!(PasswordHash::parse(fine.replace("t=1", "t=99")).is_err());
        assert!(PasswordHash::parse(fine.replace("argon2id", "argon2i")).is_err());
        assert!(PasswordHash::parse("plain".to_owned()).is_err());
    }
}
