//! Discovery announcements (Part 14 §7.2.4.6.3 to §7.2.4.6.11) of publishers.

use taktwerk_schema::{
    ActionMethodDataType, ActionTargetDataType, ApplicationDescription, DataSetMetaDataType,
    EndpointDescription, PubSubConnectionDataType, PubSubState, WriterGroupDataType,
};
use taktwerk_types::codec::Decode;
use taktwerk_types::{DecodeError, Decoder, Encode, StatusCode, UaString, UtcTime};

/// The content of an announcement.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Announcement {
    /// The publisher's server endpoints.
    PublisherEndpoints {
        /// The endpoints.
        endpoints: Vec<EndpointDescription>,
        /// Bad if the publisher cannot provide them.
        status: StatusCode,
    },
    /// The metadata of a DataSetWriter.
    DataSetMetaData {
        /// The writer.
        writer_id: u16,
        /// Its metadata.
        meta_data: Box<DataSetMetaDataType>,
        /// Bad if there is no such writer.
        status: StatusCode,
    },
    /// The configuration of DataSetWriters.
    DataSetWriters {
        /// The writers.
        writer_ids: Vec<u16>,
        /// Their group, with only these writers.
        group: Box<WriterGroupDataType>,
        /// One per writer.
        statuses: Vec<StatusCode>,
    },
    /// The configuration of the PubSubConnections.
    PubSubConnections(Vec<PubSubConnectionDataType>),
    /// The application behind the publisher.
    Application {
        /// Its description.
        description: Box<ApplicationDescription>,
        /// Its capability identifiers (Part 12).
        capabilities: Vec<UaString>,
    },
    /// The status of the publisher.
    Status {
        /// The state of its PubSubConnection.
        state: PubSubState,
        /// The times of the next and of this message, if they are cyclic.
        cyclic: Option<(UtcTime, UtcTime)>,
    },
    /// The connections of an ActionResponder.
    ActionResponder(Vec<PubSubConnectionDataType>),
    /// The metadata of Actions.
    ActionMetaData {
        /// The DataSetWriter of the responses.
        writer_id: u16,
        /// The targets.
        targets: Vec<ActionTargetDataType>,
        /// The fields of a request.
        request: Box<DataSetMetaDataType>,
        /// The fields of a response.
        response: Box<DataSetMetaDataType>,
        /// The Methods of the targets, if announced.
        methods: Vec<ActionMethodDataType>,
    },
}

/// An announcement with its sequence number.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberedAnnouncement {
    /// Incremented by one for each announcement of a PublisherId.
    pub sequence_number: u16,
    /// The content.
    pub announcement: Announcement,
}

const DESCRIPTION: u16 = 1;
const STATUS: u16 = 2;

impl Encode for NumberedAnnouncement {
    /// Appends the payload of the NetworkMessage.
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match &self.announcement {
            Announcement::PublisherEndpoints { .. } => 1,
            Announcement::DataSetMetaData { .. } => 2,
            Announcement::DataSetWriters { .. } => 3,
            Announcement::PubSubConnections(_) => 4,
            Announcement::Application { .. } | Announcement::Status { .. } => 5,
            Announcement::ActionResponder(_) => 6,
            Announcement::ActionMetaData { .. } => 7,
        });
        self.sequence_number.encode(out);
        match &self.announcement {
            Announcement::PublisherEndpoints { endpoints, status } => {
                endpoints.encode(out);
                status.encode(out);
            }
            Announcement::DataSetMetaData { writer_id, meta_data, status } => {
                writer_id.encode(out);
                meta_data.encode(out);
                status.encode(out);
            }
            Announcement::DataSetWriters { writer_ids, group, statuses } => {
                writer_ids.encode(out);
                group.encode(out);
                statuses.encode(out);
            }
            Announcement::PubSubConnections(connections) | Announcement::ActionResponder(connections) => {
                connections.encode(out);
            }
            Announcement::Application { description, capabilities } => {
                DESCRIPTION.encode(out);
                description.encode(out);
                capabilities.encode(out);
            }
            Announcement::Status { state, cyclic } => {
                STATUS.encode(out);
                cyclic.is_some().encode(out);
                state.encode(out);
                if let Some((next_report, timestamp)) = cyclic {
                    next_report.encode(out);
                    timestamp.encode(out);
                }
            }
            Announcement::ActionMetaData { writer_id, targets, request, response, methods } => {
                writer_id.encode(out);
                targets.encode(out);
                request.encode(out);
                response.encode(out);
                methods.encode(out);
            }
        }
    }
}

impl<'a> Decode<'a> for NumberedAnnouncement {
    const MIN_LEN: usize = 3;

    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let kind = decoder.byte()?;
        let sequence_number = u16::decode(decoder)?;
        let announcement = match kind {
            1 => Announcement::PublisherEndpoints {
                endpoints: decoder.array()?,
                status: StatusCode::decode(decoder)?,
            },
            2 => Announcement::DataSetMetaData {
                writer_id: u16::decode(decoder)?,
                meta_data: Box::decode(decoder)?,
                status: StatusCode::decode(decoder)?,
            },
            3 => Announcement::DataSetWriters {
                writer_ids: decoder.array()?,
                group: Box::decode(decoder)?,
                statuses: decoder.array()?,
            },
            4 => Announcement::PubSubConnections(decoder.array()?),
            5 => application(decoder)?,
            6 => Announcement::ActionResponder(decoder.array()?),
            7 => Announcement::ActionMetaData {
                writer_id: u16::decode(decoder)?,
                targets: decoder.array()?,
                request: Box::decode(decoder)?,
                response: Box::decode(decoder)?,
                methods: decoder.array()?,
            },
            _ => return Err(DecodeError::Invalid("AnnouncementType")),
        };
        Ok(Self { sequence_number, announcement })
    }
}

fn application(decoder: &mut Decoder<'_>) -> Result<Announcement, DecodeError> {
    match u16::decode(decoder)? {
        DESCRIPTION => Ok(Announcement::Application {
            description: Box::decode(decoder)?,
            capabilities: decoder.array()?,
        }),
        STATUS => {
            let is_cyclic = bool::decode(decoder)?;
            let state = PubSubState::decode(decoder)?;
            let cyclic =
                if is_cyclic { Some((UtcTime::decode(decoder)?, UtcTime::decode(decoder)?)) } else { None };
            Ok(Announcement::Status { state, cyclic })
        }
        _ => Err(DecodeError::Invalid("ApplicationInformationType")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::probe::Probe;
    use super::*;
    use taktwerk_types::DecodeLimits;

    #[test]
    fn announcements_round_trip() {
        let all = [
            Announcement::PublisherEndpoints {
                endpoints: vec![EndpointDescription {
                    endpoint_url: "opc.tcp://localhost:4840".into(),
                    ..Default::default()
                }],
                status: StatusCode::GOOD,
            },
            Announcement::DataSetMetaData {
                writer_id: 7,
                meta_data: Box::new(DataSetMetaDataType { name: "one".into(), ..Default::default() }),
                status: StatusCode::BAD_NOT_FOUND,
            },
            Announcement::DataSetWriters {
                writer_ids: vec![1, 2],
                group: Box::new(WriterGroupDataType { writer_group_id: 5, ..Default::default() }),
                statuses: vec![StatusCode::GOOD; 2],
            },
            Announcement::PubSubConnections(vec![PubSubConnectionDataType::default()]),
            Announcement::Application {
                description: Box::new(ApplicationDescription {
                    application_uri: "urn:x".into(),
                    ..Default::default()
                }),
                capabilities: vec!["DA".into()],
            },
            Announcement::Status { state: PubSubState::OPERATIONAL, cyclic: None },
            Announcement::Status {
                state: PubSubState::OPERATIONAL,
                cyclic: Some((UtcTime::from_ticks(7), UtcTime::from_ticks(5))),
            },
            Announcement::ActionResponder(vec![]),
            Announcement::ActionMetaData {
                writer_id: 3,
                targets: vec![ActionTargetDataType { action_target_id: 1, ..Default::default() }],
                request: Box::default(),
                response: Box::default(),
                methods: vec![ActionMethodDataType::default()],
            },
        ];
        for (index, announcement) in all.into_iter().enumerate() {
            let numbered = NumberedAnnouncement { sequence_number: index as u16, announcement };
            let bytes = numbered.encode_to_vec();
            assert_eq!(NumberedAnnouncement::decode_from(&bytes, DecodeLimits::DEFAULT), Ok(numbered));
            for cut in 0..bytes.len() {
                assert!(NumberedAnnouncement::decode_from(&bytes[..cut], DecodeLimits::DEFAULT).is_err());
            }
        }
    }

    #[test]
    fn probes_round_trip() {
        for probe in [
            Probe::FindApplications,
            Probe::PublisherEndpoints,
            Probe::DataSetMetaData(vec![1, 2]),
            Probe::DataSetWriters(vec![]),
            Probe::WriterGroup { writer_group_id: 9, include_data_set_writers: true },
            Probe::PubSubConnections { include_writer_groups: true, include_data_set_writers: false },
        ] {
            let bytes = probe.encode_to_vec();
            assert_eq!(Probe::decode_from(&bytes, DecodeLimits::DEFAULT), Ok(probe));
        }
        assert_eq!(Probe::DataSetMetaData(vec![1]).encode_to_vec(), [1, 2, 1, 0, 0, 0, 1, 0]);
    }
}
