//! The data set, configuration and keys shared by the interop peers (`interop/README.md`).
#![allow(dead_code, unreachable_pub)] // not everything is used everywhere

use taktwerk_crypto::PubSubSecurityPolicy;
use taktwerk_pubsub::PublisherId;
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{
    Configuration, Connection, DataSetWriter, PublishedDataSet, WriterGroup, WriterGroupMessage,
};
use taktwerk_pubsub::security::SecurityKeys;
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_schema::{
    DataSetFieldContentMask as FieldMask, FieldMetaData, UadpNetworkMessageContentMask as NetworkMask,
};
use taktwerk_types::BuiltInType;

/// The SecurityTokenId of the only key.
pub const TOKEN_ID: u32 = 7;

/// The configuration of the publisher, from which the subscriber's is derived.
pub fn configuration(url: &str, layout: &str, mode: SecurityMode, interval: f64) -> Configuration {
    let text = FieldMetaData { max_string_length: 16, ..field("text", BuiltInType::String) };
    let fields = vec![
        field("count", BuiltInType::UInt32),
        field("x", BuiltInType::Double),
        field("flag", BuiltInType::Boolean),
        text,
    ];
    let is_fixed = layout == "fixed";
    let mut group = if is_fixed {
        WriterGroup::periodic_fixed("group", 100, interval)
    } else {
        WriterGroup::dynamic("group", 100, interval)
    };
    let make = if is_fixed { DataSetWriter::periodic_fixed } else { DataSetWriter::dynamic };
    let mut writer = make("writer", 62541, "set");
    if layout == "full" {
        group.header_layout_uri.clear();
        if let WriterGroupMessage::Uadp(uadp) = &mut group.message {
            uadp.network_message_content_mask |= NetworkMask::GROUP_HEADER
                | NetworkMask::WRITER_GROUP_ID
                | NetworkMask::SEQUENCE_NUMBER
                | NetworkMask::TIMESTAMP;
        }
        writer.field_content_mask = FieldMask::STATUS_CODE | FieldMask::SOURCE_TIMESTAMP;
    }
    group.security.mode = mode;
    if mode != SecurityMode::None {
        group.security.security_group_id = "group".into();
    }
    group.writers.push(writer);
    let mut connection = Connection::new("udp", Some(PublisherId::UInt16(2234)), url);
    connection.writer_groups.push(group);
    Configuration {
        enabled: true,
        data_sets: vec![PublishedDataSet::new("set", fields)],
        connections: vec![connection],
        ..Configuration::default()
    }
}

/// Publicly known keys: counting bytes.
pub fn keys(policy: PubSubSecurityPolicy) -> SecurityKeys {
    let signing = 0..32;
    let encrypting = 0x40..0x40 + policy.encrypting_key_len() as u8;
    let nonce = 0xa0..0xa4;
    SecurityKeys {
        security_policy_uri: policy.uri().into(),
        first_token_id: TOKEN_ID,
        keys: vec![signing.chain(encrypting).chain(nonce).collect()],
        time_to_next_key: 3.6e6,
        key_lifetime: 3.6e6,
        current_token_id: None,
        nonces: None,
    }
}
