//! The header layouts of Annex A: related settings, identified by a URI.

use taktwerk_schema::{
    DataSetFieldContentMask, DataSetOrderingType, UadpDataSetMessageContentMask,
    UadpDataSetWriterMessageDataType, UadpNetworkMessageContentMask, UadpWriterGroupMessageDataType,
};

/// The layout with a fixed position for every field (Part 14 §A.2.1).
pub const PERIODIC_FIXED_URI: &str = "http://opcfoundation.org/UA/PubSub-Layouts/UADP-Periodic-Fixed";
/// The layout whose messages describe themselves (Part 14 §A.2.2).
pub const DYNAMIC_URI: &str = "http://opcfoundation.org/UA/PubSub-Layouts/UADP-Dynamic";

/// The group settings of the periodic fixed layout.
#[must_use]
pub fn periodic_fixed_group() -> UadpWriterGroupMessageDataType {
    UadpWriterGroupMessageDataType {
        group_version: 1,
        data_set_ordering: DataSetOrderingType::ASCENDING_WRITER_ID,
        network_message_content_mask: UadpNetworkMessageContentMask::PUBLISHER_ID
            | UadpNetworkMessageContentMask::GROUP_HEADER
            | UadpNetworkMessageContentMask::WRITER_GROUP_ID
            | UadpNetworkMessageContentMask::GROUP_VERSION
            | UadpNetworkMessageContentMask::NETWORK_MESSAGE_NUMBER
            | UadpNetworkMessageContentMask::SEQUENCE_NUMBER,
        sampling_offset: -1.0,
        publishing_offset: Vec::new(),
    }
}

/// The writer settings of the periodic fixed layout.
#[must_use]
pub fn periodic_fixed_writer() -> UadpDataSetWriterMessageDataType {
    UadpDataSetWriterMessageDataType {
        data_set_message_content_mask: UadpDataSetMessageContentMask::STATUS
            | UadpDataSetMessageContentMask::SEQUENCE_NUMBER,
        ..UadpDataSetWriterMessageDataType::default()
    }
}

/// The field settings of the periodic fixed layout.
#[must_use]
pub const fn periodic_fixed_fields() -> DataSetFieldContentMask {
    DataSetFieldContentMask::RAW_DATA
}

/// The group settings of the dynamic layout.
#[must_use]
pub fn dynamic_group() -> UadpWriterGroupMessageDataType {
    UadpWriterGroupMessageDataType {
        group_version: 0,
        data_set_ordering: DataSetOrderingType::UNDEFINED,
        network_message_content_mask: UadpNetworkMessageContentMask::PUBLISHER_ID
            | UadpNetworkMessageContentMask::PAYLOAD_HEADER,
        sampling_offset: -1.0,
        publishing_offset: Vec::new(),
    }
}

/// The writer settings of the dynamic layout.
#[must_use]
pub fn dynamic_writer() -> UadpDataSetWriterMessageDataType {
    UadpDataSetWriterMessageDataType {
        data_set_message_content_mask: UadpDataSetMessageContentMask::TIMESTAMP
            | UadpDataSetMessageContentMask::STATUS
            | UadpDataSetMessageContentMask::MINOR_VERSION
            | UadpDataSetMessageContentMask::SEQUENCE_NUMBER,
        ..UadpDataSetWriterMessageDataType::default()
    }
}
