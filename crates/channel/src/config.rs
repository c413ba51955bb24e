//! Limits and settings of channels, shared by all channels of an endpoint.

use core::time::Duration;
use std::sync::Arc;
use taktwerk_crypto::{KeyLog, MessageSecurityMode, NullProvider, Provider, SecurityPolicy};
use taktwerk_types::UtcTime;

/// What a channel accepts. Each field says what its default costs or why it is what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelLimits {
    /// Largest chunk we receive, in bytes (Part 6 §7.1.2.3). The driver's receive buffer must hold one.
    /// Default 65 536: at 64 kB the cost per chunk has vanished behind the cost per byte.
    pub receive_buffer_size: u32,
    /// Largest chunk we send, in bytes. Default 65 536.
    pub send_buffer_size: u32,
    /// Largest message we receive, in bytes of its body (Part 6 §7.1.2.3). Default 16 MiB. 0 is not "unlimited".
    pub message_size_max: u32,
    /// Most chunks of a message we receive. Default 2 048: enough for the message size in chunks of 8 kB.
    pub chunk_count_max: u32,
    /// Largest OpenSecureChannel chunk, in bytes: a bound on what an unknown peer makes us decrypt. Default 16 384.
    pub open_size_max: u32,
    /// Shortest lifetime a server grants a security token, in milliseconds. Default 1 000.
    pub lifetime_min_ms: u32,
    /// Longest lifetime a server grants a security token, in milliseconds. Default 3 600 000.
    pub lifetime_max_ms: u32,
    /// From the connection to its Hello (server) or Acknowledge (client). Default 10 s.
    pub hello_timeout: Duration,
    /// From there until the channel is open, and for each renewal a client asks for. Default 10 s.
    pub open_timeout: Duration,
    /// From the first byte of a chunk to its last. Default 10 s.
    pub chunk_timeout: Duration,
    /// From the first chunk of a message to its last. Default 120 s.
    pub message_timeout: Duration,
}

impl Default for ChannelLimits {
    fn default() -> Self {
        Self {
            receive_buffer_size: 65_536,
            send_buffer_size: 65_536,
            message_size_max: 16 * 1024 * 1024,
            chunk_count_max: 2_048,
            open_size_max: 16_384,
            lifetime_min_ms: 1_000,
            lifetime_max_ms: 3_600_000,
            hello_timeout: Duration::from_secs(10),
            open_timeout: Duration::from_secs(10),
            chunk_timeout: Duration::from_secs(10),
            message_timeout: Duration::from_secs(120),
        }
    }
}

/// Settings shared by the channels of an endpoint.
#[derive(Debug, Clone)]
pub struct ChannelConfig {
    /// What the channels accept.
    pub limits: ChannelLimits,
    /// The cryptographic library with our certificates.
    pub provider: Arc<dyn Provider>,
    /// What a server lets clients open. None must be listed for discovery to work without security; which services
    /// a channel without security may use is for the server above to say.
    pub security: Vec<(SecurityPolicy, MessageSecurityMode)>,
    /// The wall time at [`taktwerk_types::Instant::ZERO`]: tokens carry the time of their creation.
    pub utc_origin: UtcTime,
    /// Is told the keys of all tokens, as far as the provider discloses them. Default: nobody is.
    pub key_log: Option<Arc<dyn KeyLog>>,
}

impl Default for ChannelConfig {
    /// Policy None only.
    fn default() -> Self {
        Self {
            limits: ChannelLimits::default(),
            provider: Arc::new(NullProvider),
            security: vec![(SecurityPolicy::None, MessageSecurityMode::None)],
            utc_origin: UtcTime::NULL,
            key_log: None,
        }
    }
}

impl ChannelConfig {
    /// Smallest buffer a peer may announce, in bytes: 8 192, or 1 024 where a policy with elliptic curves is
    /// offered (Part 6 §7.1.2.3).
    pub(crate) fn buffer_size_min(&self) -> u32 {
        if self.security.iter().any(|(policy, _)| policy.info().is_ecc()) { 1024 } else { 8192 }
    }
}

/// What a client wants of the channel it opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenParams {
    /// The endpoint's URL, as the Hello names it.
    pub endpoint_url: Box<str>,
    /// The security policy.
    pub policy: SecurityPolicy,
    /// The security mode; None if and only if the policy is None.
    pub mode: MessageSecurityMode,
    /// The server's certificate from its EndpointDescription; needed unless the policy is None.
    pub server_certificate: Option<Arc<[u8]>>,
    /// Lifetime to ask for, in milliseconds.
    pub lifetime_ms: u32,
}

impl OpenParams {
    /// A channel without security and with tokens of one hour.
    pub fn insecure(endpoint_url: impl Into<Box<str>>) -> Self {
        Self {
            endpoint_url: endpoint_url.into(),
            policy: SecurityPolicy::None,
            mode: MessageSecurityMode::None,
            server_certificate: None,
            lifetime_ms: 3_600_000,
        }
    }

    /// The host name or address in the URL.
    #[must_use]
    pub fn host_name(&self) -> &str {
        let rest = self.endpoint_url.split_once("://").map_or(&*self.endpoint_url, |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        match authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            Some((address, _)) => address,
            None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_found() {
        for (url, host) in [
            ("opc.tcp://plc:4840/path", "plc"),
            ("opc.tcp://plc", "plc"),
            ("opc.tcp://[::1]:4840", "::1"),
            ("opc.tcp://10.0.0.1:4840/a:b", "10.0.0.1"),
            ("plc:4840", "plc"),
            ("", ""),
        ] {
            assert_eq!(OpenParams::insecure(url).host_name(), host);
        }
    }
}
