//! The TOML form of a configuration, for serde.

use crate::uadp::SecurityMode;
use serde::{Deserialize, Serialize};

pub(super) fn yes() -> bool {
    true
}

pub(super) fn is_yes(value: &bool) -> bool {
    *value
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The ValueRank of arrays with these dimensions; -1 for scalars.
pub(super) fn rank_of(dimensions: &[u32]) -> i32 {
    match dimensions.len() {
        0 => -1,
        rank => i32::try_from(rank).unwrap_or(i32::MAX),
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct File {
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(super) enabled: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) configuration_version: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) key_services: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) security_group: Vec<Group>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) data_set: Vec<Set>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) connection: Vec<Conn>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Group {
    pub(super) id: String,
    /// Milliseconds.
    pub(super) key_lifetime: f64,
    pub(super) policy: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) future_keys: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) past_keys: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Set {
    pub(super) name: String,
    /// Major and minor version.
    #[serde(default = "first_version", skip_serializing_if = "is_first_version")]
    pub(super) version: [u32; 2],
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(super) cyclic: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) fields: Vec<Field>,
    /// Fields of requests of the actions; `fields` are those of responses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) request: Vec<Field>,
    /// The actions: Methods of a server, or of the application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) actions: Vec<Action>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Action {
    /// The ActionTargetId.
    pub(super) id: u16,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) description: String,
    /// The Object and its Method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) object: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) method: Option<String>,
}

pub(super) fn first_version() -> [u32; 2] {
    [1, 1]
}

pub(super) fn is_first_version(version: &[u32; 2]) -> bool {
    *version == first_version()
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Field {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// The DataType, if it differs from the built-in type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data_type: Option<String>,
    /// Only if it differs from what the dimensions imply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) value_rank: Option<i32>,
    /// The Variable to read from or, in a reader, to write to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<String>,
    /// Milliseconds; for Variables.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) sampling: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) max_length: u32,
    /// Maximum lengths of an array's dimensions; 0: unlimited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) dimensions: Vec<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) promoted: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) description: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Id {
    Byte(u8),
    UInt16(u16),
    UInt32(u32),
    UInt64(u64),
    String(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Conn {
    pub(super) name: String,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(super) enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) publisher_id: Option<Id>,
    pub(super) url: String,
    /// A file whose first line is the password of the user in the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) password_file: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) interface: String,
    /// The URI of the transport profile, if the URL does not imply it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) transport: Option<String>,
    /// Seconds between announcements without a probe; 0: none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) announce_every: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) writer_group: Vec<Writers>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) reader_group: Vec<Readers>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Security {
    pub(super) mode: SecurityMode,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) group: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) key_services: Vec<String>,
}

#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Default)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Layout {
    #[default]
    Dynamic,
    PeriodicFixed,
    Json,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Writers {
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) id: u16,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(super) enabled: bool,
    /// Milliseconds.
    pub(super) interval: f64,
    /// Milliseconds; the default is ten intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) keep_alive: Option<f64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) priority: u8,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) max_message_size: u32,
    /// Only if it differs from what the URL implies: JSON for `mqtt+json://…`, otherwise dynamic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) layout: Option<Layout>,
    /// Bits of the NetworkMessageContentMask, if they differ from the layout's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) network_message_content: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) group_version: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) one_writer_per_message: bool,
    /// How often each message is repeated (MessageRepeatCount), and the delay in milliseconds; for datagrams.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) repeat: u8,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) repeat_delay: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sampling_offset: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) publishing_offsets: Vec<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) security: Option<Security>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) writers: Vec<Writer>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Writer {
    pub(super) name: String,
    pub(super) id: u16,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(super) enabled: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) data_set: String,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(super) key_frame_count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) field_content: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message_content: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) configured_size: u16,
    /// Milliseconds between metadata messages (MetaDataUpdateTime); over brokers. 0: only when it changes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) metadata_interval: f64,
}

pub(super) fn one() -> u32 {
    1
}

pub(super) fn is_one(value: &u32) -> bool {
    *value == 1
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Readers {
    pub(super) name: String,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(super) enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) security: Option<Security>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) readers: Vec<Reader>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Reader {
    pub(super) name: String,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(super) enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) publisher_id: Option<Id>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) writer_group_id: u16,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) writer_id: u16,
    /// Milliseconds; 0: never in error.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) timeout: f64,
    /// Only if it differs from what the URL implies: JSON for `mqtt+json://…`, otherwise dynamic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) layout: Option<Layout>,
    /// The publisher's interval in milliseconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) interval: f64,
    /// The writer's setting, if it is not the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key_frame_count: Option<u32>,
    /// Bits of the content masks and the group's version, if they differ from the layout's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) network_message_content: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message_content: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) field_content: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) group_version: Option<u32>,
    /// Number of the NetworkMessage in a cycle; 0: any.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) message_number: u16,
    /// Offset of the DataSetMessage in messages without PayloadHeader.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) offset: u16,
    /// The publisher's name of the data set.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) data_set: String,
    #[serde(default = "first_version", skip_serializing_if = "is_first_version")]
    pub(super) version: [u32; 2],
    /// The fields, if the publisher is not asked for metadata; with `node` their targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) fields: Vec<Field>,
}
