//! Limits and settings that all channels of an endpoint share.

use core::time::Duration;
use std::sync::Arc;
use taktwerk_crypto::{KeyLog, MessageSecurityMode, NullProvider, Provider, SecurityPolicy};
use taktwerk_types::UtcTime;

/// What a channel accepts. Each field states its default and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelLimits {
    /// Largest chunk we receive, in bytes (Part 6 §7.1.2.3). The driver's receive buffer must hold one.
    /// Default 65 536: at 64 kB the cost per chunk is negligible next to the cost per byte.
    pub receive_buffer_size: u32,
    /// Largest chunk we send, in bytes. Default 65 536.
    pub send_buffer_size: u32,
    /// Largest message we receive, in bytes of its body (Part 6 §7.1.2.3). Default 16 MiB. 0 does not mean "unlimited".
    pub message_size_max: u32,
    /// Most chunks per received message. Default 2 048: enough for the message size in chunks of 8 kB.
    pub chunk_count_max: u32,
    /// Largest OpenSecureChannel chunk, in bytes. It bounds what an unknown peer can make us decrypt. Default 16 384.
    pub open_size_max: u32,
    /// Shortest lifetime a server grants a security token, in milliseconds. Default 1 000.
    pub lifetime_min_ms: u32,
    /// Longest lifetime a server grants a security token, in milliseconds. Default 3 600 000.
    pub lifetime_max_ms: u32,
    /// Time from the connection to its Hello (server) or Acknowledge (client). Default 10 s.
    pub hello_timeout: Duration,
    /// Time from there until the channel is open, and for each renewal that a client requests. Default 10 s.
    pub open_timeout: Duration,
    /// Time from the first byte of a chunk to its last. Default 10 s.
    pub chunk_timeout: Duration,
    /// Time from the first chunk of a message to its last. Default 120 s.
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
    /// The policies and modes that a server offers. Discovery without security needs policy None. The server above
    /// decides which services a channel without security may use.
    pub security: Vec<(SecurityPolicy, MessageSecurityMode)>,
    /// The wall time at [`taktwerk_types::Instant::ZERO`]: tokens carry their creation time.
    pub utc_origin: UtcTime,
    /// Receives the keys of all tokens, as far as the provider discloses them. Default: none.
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
    /// Smallest buffer a peer may announce, in bytes: 8 192, or 1 024 if an elliptic-curve policy is offered (Part 6
    /// §7.1.2.3).
    pub(crate) fn buffer_size_min(&self) -> u32 {
        if self.security.iter().any(|(policy, _)| policy.info().is_ecc()) { 1024 } else { 8192 }
    }
}

/// Parameters of a channel that a client opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenParams {
    /// The endpoint URL for the Hello.
    pub endpoint_url: Box<str>,
    /// The security policy.
    pub policy: SecurityPolicy,
    /// The security mode. It is None if and only if the policy is None.
    pub mode: MessageSecurityMode,
    /// The server's certificate from its EndpointDescription. Required unless the policy is None.
    pub server_certificate: Option<Arc<[u8]>>,
    /// Requested lifetime, in milliseconds.
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
