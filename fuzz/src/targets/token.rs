//! Access tokens: JSON Web Tokens, their claims, and files with keys.

use crate::input::Input;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;
use taktwerk_config::tokens::{JwtSettings, TokenAuthority, TokenKeys};
use taktwerk_types::UtcTime;

/// The trusted issuer.
pub const ISSUER: &str = "https://login";
/// The audience of tokens.
pub const AUDIENCE: &str = "urn:fuzz";
/// The current time, in seconds since 1970.
pub const NOW: u64 = 1_800_000_000;

static AUTHORITY: LazyLock<TokenAuthority> = LazyLock::new(|| {
    let keys = TokenKeys::parse(Path::new("keys"), include_str!("../../keys/tokens.pem"));
    TokenAuthority::new(JwtSettings::new(ISSUER, AUDIENCE), keys.expect("they are committed"))
});

/// A whole token, signed claims, or a file with keys.
pub fn jwt(data: &[u8]) {
    let mut input = Input::new(data);
    let choice = input.below(4);
    let now = UtcTime::from_unix(Duration::from_secs(NOW));
    match choice {
        0 | 1 => {
            // The private key does not exist any more, so an accepted token is one of the seeds, bit for bit.
            if AUTHORITY.check(input.rest(), now).is_ok() {
                let seeds = [include_bytes!("../../keys/token.jwt")];
                assert!(seeds.iter().any(|seed| seed.trim_ascii() == input.rest()), "a forged token");
            }
        }
        2 => {
            if let Ok(user) = AUTHORITY.read_claims(input.rest(), now) {
                assert!(!user.user_id.is_empty() && user.expires.ticks() + 300_000_000 > now.ticks());
                let text = String::from_utf8_lossy(input.rest());
                assert!(text.contains("\"exp\"") || text.contains("\\u"));
            }
        }
        _ => {
            let text = String::from_utf8_lossy(input.rest());
            if let Ok(keys) = TokenKeys::parse(Path::new("keys"), &text) {
                let authority = TokenAuthority::new(JwtSettings::new(ISSUER, AUDIENCE), keys);
                assert!(authority.check(b"e30.e30.e30", now).is_err());
            }
        }
    }
}
