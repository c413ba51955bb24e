//! Discovery probes (Part 14 §7.2.4.6.12), with which a subscriber queries publishers.

use taktwerk_types::codec::Decode;
use taktwerk_types::{DecodeError, Decoder, Encode};

/// The requested information.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Probe {
    /// Existing applications; the message has no PublisherId.
    FindApplications,
    /// The server endpoints of the publisher.
    PublisherEndpoints,
    /// The DataSetMetaData of DataSetWriters; empty: of all.
    DataSetMetaData(Vec<u16>),
    /// The configuration of DataSetWriters; empty: of all.
    DataSetWriters(Vec<u16>),
    /// The configuration of a WriterGroup.
    WriterGroup {
        /// The group.
        writer_group_id: u16,
        /// Include its DataSetWriters.
        include_data_set_writers: bool,
    },
    /// The configuration of the PubSubConnections.
    PubSubConnections {
        /// Include their WriterGroups.
        include_writer_groups: bool,
        /// Include the DataSetWriters of these.
        include_data_set_writers: bool,
    },
}

const PUBLISHER_INFORMATION: u8 = 1;
const FIND_APPLICATIONS: u8 = 2;

impl Encode for Probe {
    /// Appends the payload of the NetworkMessage.
    fn encode(&self, out: &mut Vec<u8>) {
        if *self == Self::FindApplications {
            return out.push(FIND_APPLICATIONS);
        }
        out.push(PUBLISHER_INFORMATION);
        match self {
            Self::FindApplications => {}
            Self::PublisherEndpoints => out.push(1),
            Self::DataSetMetaData(ids) => {
                out.push(2);
                ids.encode(out);
            }
            Self::DataSetWriters(ids) => {
                out.push(3);
                ids.encode(out);
            }
            Self::WriterGroup { writer_group_id, include_data_set_writers } => {
                out.push(4);
                writer_group_id.encode(out);
                include_data_set_writers.encode(out);
            }
            Self::PubSubConnections { include_writer_groups, include_data_set_writers } => {
                out.push(5);
                include_writer_groups.encode(out);
                include_data_set_writers.encode(out);
            }
        }
    }
}

impl<'a> Decode<'a> for Probe {
    const MIN_LEN: usize = 1;

    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        match decoder.byte()? {
            FIND_APPLICATIONS => return Ok(Self::FindApplications),
            PUBLISHER_INFORMATION => {}
            _ => return Err(DecodeError::Invalid("ProbeType")),
        }
        Ok(match decoder.byte()? {
            1 => Self::PublisherEndpoints,
            2 => Self::DataSetMetaData(decoder.array()?),
            3 => Self::DataSetWriters(decoder.array()?),
            4 => Self::WriterGroup {
                writer_group_id: u16::decode(decoder)?,
                include_data_set_writers: bool::decode(decoder)?,
            },
            5 => Self::PubSubConnections {
                include_writer_groups: bool::decode(decoder)?,
                include_data_set_writers: bool::decode(decoder)?,
            },
            _ => return Err(DecodeError::Invalid("InformationType of a probe")),
        })
    }
}
