//! The key service of a plant (Part 14 §8). It answers without delay: only the keys and their times matter here.

use taktwerk_crypto::{Entropy, PubSubSecurityPolicy, SeededEntropy};
use taktwerk_pubsub::security::{KeyRequest, KeyService, SecurityKeys};
use taktwerk_schema::SecurityGroupDataType;
use taktwerk_types::{Instant, StatusCode};

/// Creates the keys of all SecurityGroups.
#[derive(Debug)]
pub(crate) struct Keys {
    service: KeyService,
    entropy: SeededEntropy,
}

impl Keys {
    pub(crate) fn new(entropy: SeededEntropy) -> Self {
        Self { service: KeyService::new(), entropy }
    }

    /// Adds a group with this key lifetime in milliseconds.
    pub(crate) fn add_group(&mut self, id: &str, key_lifetime: f64, now: Instant) -> Result<(), StatusCode> {
        let group = SecurityGroupDataType {
            security_group_id: id.into(),
            security_policy_uri: PubSubSecurityPolicy::Aes256Ctr.uri().into(),
            key_lifetime,
            max_future_key_count: 5,
            max_past_key_count: 2,
            ..SecurityGroupDataType::default()
        };
        self.service.add_group(&group, &mut self.entropy, now)
    }

    /// Answers a key request of an engine.
    pub(crate) fn answer(&mut self, request: &KeyRequest, now: Instant) -> Result<SecurityKeys, StatusCode> {
        let (id, first) = (request.security_group_id.as_str(), request.starting_token_id);
        let (count, entropy): (u32, &mut dyn Entropy) = (request.requested_key_count, &mut self.entropy);
        self.service.get_security_keys(id, first, count, true, true, entropy, now)
    }
}
