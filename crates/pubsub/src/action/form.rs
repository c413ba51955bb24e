//! The form of a DataSetWriter's requests and responses: from its ActionMetaData, and from its settings in the
//! ActionResponder message.

use super::describe::ActionDescription;
use super::wire::ActionError;
use crate::config::{Connection, DataSetWriter, DataSetWriterMessage, WriterGroup};
use crate::uadp::fields::{FieldTypes, encoding_of};
use crate::uadp::raw::RawLayout;
use crate::uadp::{FieldEncoding, raw::RawLayoutError};
use std::collections::BTreeMap;
use taktwerk_schema::{DataSetMetaDataType, JsonDataSetMessageContentMask};
use taktwerk_types::{BuiltInType, DataValue, StatusCode, Variant};

/// The fields of requests, or of responses.
#[derive(Debug)]
pub(crate) struct FieldSet {
    /// In order; empty if they were not described.
    pub(crate) names: Vec<String>,
    types: Vec<Option<BuiltInType>>,
    raw: Result<RawLayout, RawLayoutError>,
    /// The namespaces after that of OPC UA.
    #[cfg(feature = "json")]
    pub(crate) namespaces: Vec<String>,
    pub(crate) major_version: u32,
    #[cfg(feature = "json")]
    pub(crate) minor_version: u32,
}

impl FieldSet {
    fn new(meta_data: &DataSetMetaDataType) -> Self {
        let types = meta_data.fields.iter().map(|field| BuiltInType::from_number(field.built_in_type));
        Self {
            names: meta_data.fields.iter().map(|field| field.name.as_str().to_owned()).collect(),
            types: types.collect(),
            raw: RawLayout::new(meta_data),
            #[cfg(feature = "json")]
            namespaces: meta_data.namespaces.iter().map(|uri| uri.as_str().to_owned()).collect(),
            major_version: meta_data.configuration_version.major_version,
            #[cfg(feature = "json")]
            minor_version: meta_data.configuration_version.minor_version,
        }
    }

    /// The types that a decoder needs.
    pub(super) fn types(&self) -> FieldTypes<'_> {
        FieldTypes { built_in_types: &self.types, raw: self.raw() }
    }

    /// The built-in type of a field; `None` if unknown.
    #[cfg(feature = "json")]
    pub(crate) fn built_in_type(&self, index: usize) -> Option<BuiltInType> {
        self.types.get(index).copied().flatten()
    }

    pub(super) fn raw(&self) -> Option<&RawLayout> {
        self.raw.as_ref().ok().filter(|layout| !layout.is_empty())
    }

    /// Whether fields can be sent in this form, by name or as raw data.
    fn check(&self, fields: &[Variant], is_raw: bool) -> Result<(), StatusCode> {
        if !self.names.is_empty() && fields.len() > self.names.len() {
            return Err(StatusCode::BAD_TOO_MANY_ARGUMENTS);
        }
        let Some(layout) = self.raw().filter(|_| is_raw) else { return Ok(()) };
        if fields.len() < layout.len() {
            return Err(StatusCode::BAD_ARGUMENTS_MISSING);
        }
        let (mut scratch, mut out) = (Vec::new(), Vec::new());
        for (index, field) in fields.iter().enumerate() {
            layout.encode_field(index, &DataValue::new(field.clone()), &mut scratch, &mut out)?;
        }
        Ok(())
    }
}

/// The form of a DataSetWriter's messages in both directions.
#[derive(Debug, Default)]
pub(crate) struct Form {
    /// Fields are RawData; otherwise Variants (Part 14 §7.2.4.5.9, §7.2.5.6.2).
    pub(crate) is_raw: bool,
    /// Additional members of JSON messages.
    pub(crate) json: JsonDataSetMessageContentMask,
    pub(crate) writer_name: String,
    pub(crate) group_name: String,
    request: Option<FieldSet>,
    response: Option<FieldSet>,
}

impl Form {
    /// The fields of one direction, if they were described.
    pub(crate) fn fields(&self, is_request: bool) -> Option<&FieldSet> {
        if is_request { self.request.as_ref() } else { self.response.as_ref() }
    }

    fn settings(&mut self, group: &WriterGroup, writer: &DataSetWriter) {
        self.is_raw = encoding_of(writer.field_content_mask) == FieldEncoding::RawData;
        self.json = match &writer.message {
            DataSetWriterMessage::Json(json) => json.data_set_message_content_mask,
            _ => JsonDataSetMessageContentMask::EMPTY,
        };
        self.writer_name.clone_from(&writer.name);
        self.group_name.clone_from(&group.name);
    }

    fn description(&mut self, description: &ActionDescription) {
        self.request = Some(FieldSet::new(&description.request));
        self.response = Some(FieldSet::new(&description.response));
    }

    /// Whether the fields can be encoded.
    pub(super) fn check(&self, is_request: bool, fields: &[Variant]) -> Result<(), StatusCode> {
        self.fields(is_request).map_or(Ok(()), |set| set.check(fields, self.is_raw))
    }
}

/// Maximum DataSetWriters kept per responder; further ones are ignored.
const WRITERS_MAX: usize = 1_024;

/// The forms of a responder's DataSetWriters.
#[derive(Debug, Default)]
pub(crate) struct Forms(BTreeMap<u16, Form>);

impl Forms {
    pub(crate) fn get(&self, data_set_writer_id: u16) -> Option<&Form> {
        self.0.get(&data_set_writer_id)
    }

    fn of(&mut self, id: u16) -> Option<&mut Form> {
        if self.0.len() >= WRITERS_MAX && !self.0.contains_key(&id) {
            return None;
        }
        Some(self.0.entry(id).or_default())
    }

    /// Takes the settings of a connection's DataSetWriters.
    pub(super) fn settings(&mut self, connection: &Connection) {
        for group in &connection.writer_groups {
            for writer in &group.writers {
                if let Some(form) = self.of(writer.data_set_writer_id) {
                    form.settings(group, writer);
                }
            }
        }
    }

    /// Takes an ActionMetaData description.
    pub(super) fn description(&mut self, description: &ActionDescription) {
        if let Some(form) = self.of(description.data_set_writer_id) {
            form.description(description);
        }
    }

    /// The forms of a responder itself, with validation.
    pub(super) fn checked(
        connection: &Connection,
        descriptions: &[ActionDescription],
    ) -> Result<Self, ActionError> {
        let mut forms = Self::default();
        forms.settings(connection);
        for group in &connection.writer_groups {
            for writer in &group.writers {
                if encoding_of(writer.field_content_mask) == FieldEncoding::DataValue {
                    return Err(ActionError::DataValues(writer.data_set_writer_id));
                }
            }
        }
        for description in descriptions {
            let writer_id = description.data_set_writer_id;
            forms.description(description);
            let Some(form) = forms.get(writer_id).filter(|form| form.is_raw) else { continue };
            for set in form.request.iter().chain(&form.response) {
                if let Err(reason) = &set.raw {
                    return Err(ActionError::NoRawData { writer_id, reason: reason.to_string() });
                }
            }
        }
        Ok(forms)
    }
}
