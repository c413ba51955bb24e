//! The attacks: their names, what they do and how many connections they use.

use core::fmt;
use core::str::FromStr;

/// An attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attack {
    /// Connections that never send a Hello.
    Idle,
    /// Open channels with half a chunk each.
    HalfChunks,
    /// More connections from one address than the limit.
    OneAddress,
    /// Hello, OpenSecureChannel and messages at one byte per second.
    SlowLoris,
    /// Clients that send requests and never read the responses.
    ZeroWindow,
    /// Connecting as fast as possible.
    Connects,
    /// Invalid OpenSecureChannel requests as fast as possible.
    Opens,
    /// Invalid handshakes, at a rate at which the server checks each of them.
    Forged,
    /// Messages that never end.
    Chunks,
    /// Sessions, subscriptions, items, Publish requests and continuation points beyond their limits.
    Services,
    /// Sessions that are never activated.
    Sessions,
    /// GetEndpoints and FindServers as fast as possible.
    Discovery,
    /// Guessed passwords.
    Logins,
    /// Whether the time of a refused handshake reveals its fault.
    Timing,
    /// Whether the time of a refused login reveals whether the user exists.
    Passwords,
    /// CreateSession without end while honest clients log on.
    CreateSessions,
    /// Connections from many addresses while honest clients log on.
    Storm,
    /// Failed logins that fill the audit file, while honest clients log on.
    Audit,
    /// CreateSession with nonces and strings of maximum length.
    SessionStrings,
    /// Publish requests with a million acknowledgements.
    Acknowledgements,
    /// Monitored items with an IndexRange of a megabyte.
    IndexRanges,
}

/// The server that an attack needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// `serve` without a configuration.
    Plain,
    /// Users with unencrypted passwords and no security policy. Encrypting the passwords would cost the attacker more
    /// than the server.
    ClearPasswords,
    /// Security policies and None, users with passwords, anonymous users, and an audit file.
    Users,
}

impl Attack {
    /// All attacks.
    pub const ALL: [Self; 21] = [
        Self::Idle,
        Self::HalfChunks,
        Self::OneAddress,
        Self::SlowLoris,
        Self::ZeroWindow,
        Self::Connects,
        Self::Opens,
        Self::Forged,
        Self::Chunks,
        Self::Services,
        Self::Sessions,
        Self::Discovery,
        Self::Logins,
        Self::Timing,
        Self::Passwords,
        Self::CreateSessions,
        Self::Storm,
        Self::Audit,
        Self::SessionStrings,
        Self::Acknowledgements,
        Self::IndexRanges,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.description().0
    }

    /// A summary of one line.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        self.description().1
    }

    /// Default number of connections of the attacker.
    #[must_use]
    pub const fn connections(self) -> usize {
        self.description().2
    }

    const fn description(self) -> (&'static str, &'static str, usize) {
        match self {
            Self::Idle => ("idle", "Connections that never send a Hello", 10_000),
            Self::HalfChunks => ("half-chunks", "Open channels with half a chunk each", 10_000),
            Self::OneAddress => ("one-address", "More connections from one address than the limit", 300),
            Self::SlowLoris => {
                ("slow-loris", "Hello, OpenSecureChannel and messages at one byte per second", 2_000)
            }
            Self::ZeroWindow => {
                ("zero-window", "Clients that send requests and never read the responses", 500)
            }
            Self::Connects => ("connects", "Connections as fast as possible", 50),
            Self::Opens => ("opens", "Invalid OpenSecureChannel requests as fast as possible", 50),
            // 30 s: long enough to fill the store of rejected certificates.
            Self::Forged => {
                ("forged", "Invalid handshakes at a rate at which the server checks each of them", 24_000)
            }
            Self::Chunks => ("chunks", "Messages that never end", 200),
            Self::Services => (
                "services",
                "Sessions, subscriptions, items, Publish requests and continuation points beyond their limits",
                50,
            ),
            Self::Sessions => ("sessions", "Sessions that are never activated", 3_000),
            Self::Discovery => ("discovery", "GetEndpoints and FindServers as fast as possible", 50),
            Self::Logins => ("logins", "Guessed passwords", 10_000),
            Self::Timing => ("timing", "Whether the time of a refused handshake reveals its fault", 6_000),
            Self::Passwords => {
                ("passwords", "Whether the time of a refused login reveals whether the user exists", 1_000)
            }
            Self::CreateSessions => {
                ("create-sessions", "CreateSession without end while honest clients log on", 24)
            }
            Self::Storm => ("storm", "Connections from many addresses while honest clients log on", 60_000),
            Self::Audit => {
                ("audit", "Failed logins that fill the audit file, while honest clients log on", 20)
            }
            Self::SessionStrings => {
                ("session-strings", "CreateSession with nonces and strings of maximum length", 300)
            }
            Self::Acknowledgements => {
                ("acknowledgements", "Publish requests with a million acknowledgements", 3)
            }
            Self::IndexRanges => ("index-ranges", "Monitored items with an IndexRange of a megabyte", 10),
        }
    }

    /// The server that the attack needs.
    pub(crate) const fn server(self) -> ServerKind {
        match self {
            Self::Logins | Self::Passwords => ServerKind::ClearPasswords,
            Self::CreateSessions | Self::Storm | Self::Audit => ServerKind::Users,
            _ => ServerKind::Plain,
        }
    }

    /// Maximum number of files that the attack has open.
    pub(crate) const fn files(self, connections: usize) -> u64 {
        match self {
            Self::Logins | Self::Timing | Self::Passwords | Self::Forged => 200,
            // Two threads with 200 connections each.
            Self::Storm => 600,
            _ => connections as u64 + 100,
        }
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no attack with this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown attack {0:?}")]
pub struct UnknownAttack(String);

impl FromStr for Attack {
    type Err = UnknownAttack;

    fn from_str(name: &str) -> Result<Self, UnknownAttack> {
        let found = Self::ALL.into_iter().find(|attack| attack.name() == name);
        found.ok_or_else(|| UnknownAttack(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_parsed() {
        for attack in Attack::ALL {
            assert_eq!(attack.name().parse(), Ok(attack));
        }
        assert!("other".parse::<Attack>().is_err());
    }
}
