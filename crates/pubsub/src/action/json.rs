//! Actions as JSON: requests and responses (Part 14 §7.2.5.6), and announcements of a responder (§7.2.5.5.7,
//! §7.2.5.5.8).
//!
//! Values are written in CompactEncoding, whatever the JsonDataSetMessageContentMask says about encodings, and are read
//! in any encoding.

use super::ActionTarget;
use super::form::{FieldSet, Form};
use super::message::{ActionMessage, KnownForm, Part, plain as plain_value};
use crate::json::structure;
use crate::json::value::value;
use crate::publisher_id::{PublisherId, PublisherIdRef};
use crate::time::Now;
use crate::uadp::action::{ActionBody, ActionHeader};
use crate::uadp::announcement::Announcement;
use std::borrow::Cow;
use taktwerk_schema::{ActionState, JsonDataSetMessageContentMask as MessageMask};
use taktwerk_types::json::parse::parse_bytes;
use taktwerk_types::json::write::{Members, array, plain, string};
use taktwerk_types::json::{Json, JsonContext, JsonDecode, JsonEncode, JsonError, JsonLimits, encode_value};
use taktwerk_types::{ByteString, StatusCode, Structure, Variant};

const REQUEST: &str = "ua-action-request";
const RESPONSE: &str = "ua-action-response";
const META_DATA: &str = "ua-action-metadata";
const RESPONDER: &str = "ua-action-responder";

fn message_type(is_request: bool) -> &'static str {
    if is_request { REQUEST } else { RESPONSE }
}

fn context<'a>(namespaces: &'a [&'a str]) -> JsonContext<'a> {
    JsonContext { verbose: false, namespaces, structures: Some(&structure::Standard) }
}

/// The namespaces of a message's values: that of OPC UA and those of its metadata.
fn namespaces(set: Option<&FieldSet>) -> Vec<&str> {
    let own = set.into_iter().flat_map(|set| set.namespaces.iter().map(String::as_str));
    core::iter::once("http://opcfoundation.org/UA/").chain(own).collect()
}

/// A request or response to send.
pub(crate) struct Outgoing<'a> {
    pub(crate) message_id: &'a str,
    pub(crate) responder: PublisherIdRef<'a>,
    pub(crate) header: &'a ActionHeader<'a>,
    pub(crate) target: ActionTarget,
    pub(crate) request_id: u16,
    pub(crate) state: ActionState,
    pub(crate) status: StatusCode,
    pub(crate) fields: &'a [Variant],
    pub(crate) form: Option<&'a Form>,
}

impl Outgoing<'_> {
    /// Appends the NetworkMessage.
    pub(crate) fn encode(&self, now: Now, out: &mut Vec<u8>) {
        let plain_context = context(&[]);
        let header = self.header;
        let mut members = Members::open(out);
        members.name("MessageId", out);
        string(self.message_id, out);
        members.name("MessageType", out);
        string(message_type(header.is_request), out);
        members.name("PublisherId", out);
        string(&self.responder.to_owned().to_string(), out);
        members.name("Timestamp", out);
        now.utc.encode_json(&plain_context, out);
        if header.is_request {
            members.name("ResponseAddress", out);
            string(header.response_address.unwrap_or_default(), out);
        }
        if let Some(data) = header.correlation_data {
            members.name("CorrelationData", out);
            ByteString::from(data.to_vec()).encode_json(&plain_context, out);
        }
        if let Some(id) = &header.requestor_id {
            members.name("RequestorId", out);
            encode_value(id, &plain_context, out);
        }
        if let Some(hint) = header.timeout_hint.filter(|_| header.is_request) {
            members.name("TimeoutHint", out);
            hint.encode_json(&plain_context, out);
        }
        members.name("Messages", out);
        array(core::iter::once(self), out, |message, out| message.encode_part(now, out));
        members.close(out);
    }

    fn encode_part(&self, now: Now, out: &mut Vec<u8>) {
        let is_request = self.header.is_request;
        let set = self.form.and_then(|form| form.fields(is_request));
        let namespaces = namespaces(set);
        let context = context(&namespaces);
        let has = |bit| self.form.is_some_and(|form| form.json.contains(bit));
        let mut members = Members::open(out);
        members.name("DataSetWriterId", out);
        plain(self.target.data_set_writer_id, out);
        members.name("ActionTargetId", out);
        plain(self.target.action_target_id, out);
        if let Some(form) = self.form {
            if has(MessageMask::DATA_SET_WRITER_NAME) {
                members.name("DataSetWriterName", out);
                string(&form.writer_name, out);
            }
            if has(MessageMask::WRITER_GROUP_NAME) {
                members.name("WriterGroupName", out);
                string(&form.group_name, out);
            }
        }
        if let Some(set) = set {
            if has(MessageMask::META_DATA_VERSION) {
                members.name("MetaDataVersion", out);
                let mut version = Members::open(out);
                version.name("MajorVersion", out);
                plain(set.major_version, out);
                version.name("MinorVersion", out);
                plain(set.minor_version, out);
                version.close(out);
            } else if has(MessageMask::MINOR_VERSION) {
                members.name("MinorVersion", out);
                plain(set.minor_version, out);
            }
        }
        if has(MessageMask::TIMESTAMP) {
            members.name("Timestamp", out);
            now.utc.encode_json(&context, out);
        }
        if !is_request {
            members.name("Status", out);
            self.status.encode_json(&context, out);
        }
        if has(MessageMask::MESSAGE_TYPE) {
            members.name("MessageType", out);
            string(message_type(is_request), out);
        }
        members.name("RequestId", out);
        plain(self.request_id, out);
        members.name("ActionState", out);
        plain(self.state.0, out);
        members.name("Payload", out);
        let is_raw = self.form.is_some_and(|form| form.is_raw);
        let mut payload = Members::open(out);
        for (index, field) in self.fields.iter().enumerate() {
            payload.name(&name(set, index), out);
            match is_raw {
                true => encode_value(field, &context, out),
                false => field.encode_json(&context, out),
            }
        }
        payload.close(out);
        members.close(out);
    }
}

/// The name of a field; fields without a description are numbered.
fn name(set: Option<&FieldSet>, index: usize) -> Cow<'_, str> {
    match set.and_then(|set| set.names.get(index)) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(format!("Field{}", index + 1)),
    }
}

/// A message related to Actions.
pub(crate) enum Received {
    Action(ActionMessage),
    Announcement(PublisherId, Box<Announcement>),
}

/// Parses a message; `None` if it is not related to Actions.
pub(crate) fn receive(message: &[u8], form: KnownForm<'_>) -> Result<Option<Received>, JsonError> {
    let json = parse_bytes(message, JsonLimits::default())?;
    let Some(kind) = json.get("MessageType").and_then(Json::as_str) else { return Ok(None) };
    if !matches!(kind, REQUEST | RESPONSE | META_DATA | RESPONDER) {
        return Ok(None);
    }
    let publisher_id = json.get("PublisherId").and_then(Json::as_str).filter(|id| !id.is_empty());
    let publisher_id =
        PublisherId::String(publisher_id.ok_or(JsonError::Expected("PublisherId"))?.to_owned().into());
    if matches!(kind, META_DATA | RESPONDER) {
        let announcement = Box::new(announcement(&json, kind)?);
        return Ok(Some(Received::Announcement(publisher_id, announcement)));
    }
    let is_request = kind == REQUEST;
    let messages = json.get("Messages").and_then(Json::as_array);
    let messages = messages.ok_or(JsonError::Expected("Messages: an array of requests or responses"))?;
    let parts = messages.iter().map(|message| part(message, is_request, &publisher_id, form));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let text = |name: &str| json.get(name).and_then(Json::as_str).filter(|text| !text.is_empty());
    let correlation_data: ByteString = member(&json, "CorrelationData")?;
    let hint = json.get("TimeoutHint").filter(|hint| !hint.is_null());
    Ok(Some(Received::Action(ActionMessage {
        is_request,
        response_address: text("ResponseAddress").map(str::to_owned),
        correlation_data: correlation_data.as_deref().map(<[u8]>::to_vec),
        requestor_id: text("RequestorId").map(Variant::from),
        timeout_hint: hint.map(|hint| f64::decode_json(hint, &context(&[]))).transpose()?,
        parts,
        responder: publisher_id,
    })))
}

/// A member of a message; its default if it is missing, as in the CompactEncoding.
fn member<T: JsonDecode>(json: &Json<'_>, name: &str) -> Result<T, JsonError> {
    T::decode_json(json.get(name).unwrap_or(&Json::Null), &context(&[]))
}

fn number(json: &Json<'_>, name: &str) -> Result<u16, JsonError> {
    json.get(name).map_or(Ok(0), |number| u16::decode_json(number, &context(&[])))
}

/// An enumeration value: its number, or name and number.
fn state(json: &Json<'_>) -> Result<ActionState, JsonError> {
    let number = match json.get("ActionState") {
        None | Some(Json::Null) => Some(0),
        Some(Json::String(text)) => text.rsplit('_').next().and_then(|number| number.parse().ok()),
        Some(Json::Number(number)) => number.parse().ok(),
        Some(_) => None,
    };
    let state = number.map(ActionState).filter(|state| state.name().is_some());
    state.ok_or(JsonError::Expected("ActionState: 0, 1 or 2"))
}

/// Good is written in several ways.
fn status(json: &Json<'_>) -> Result<StatusCode, JsonError> {
    match json.get("Status") {
        Some(Json::Number(number)) => {
            number.parse().map(StatusCode).map_err(|_| JsonError::Expected("Status: a StatusCode"))
        }
        Some(status) => StatusCode::decode_json(status, &context(&[])),
        None => Ok(StatusCode::GOOD),
    }
}

fn part(
    json: &Json<'_>,
    is_request: bool,
    responder: &PublisherId,
    form: KnownForm<'_>,
) -> Result<Part, JsonError> {
    if json.as_object().is_none() {
        return Err(JsonError::Expected("a request or response"));
    }
    let kind = json.get("MessageType").and_then(Json::as_str);
    if kind.is_some_and(|kind| kind != message_type(is_request)) {
        return Err(JsonError::Expected("requests in a request, responses in a response"));
    }
    let writer_id = number(json, "DataSetWriterId")?;
    let body = ActionBody {
        target_id: number(json, "ActionTargetId")?,
        request_id: number(json, "RequestId")?,
        state: state(json)?,
    };
    let set = form(responder, writer_id).and_then(|form| form.fields(is_request));
    let major = match json.get("MetaDataVersion").and_then(|version| version.get("MajorVersion")) {
        Some(major) => Some(u32::decode_json(major, &context(&[]))?),
        None => None,
    };
    let fields = match set {
        Some(set) if major.is_some_and(|major| major != set.major_version) => {
            Err(StatusCode::BAD_CONFIGURATION_ERROR)
        }
        set => fields(json.get("Payload"), set, is_request),
    };
    Ok(Part { writer_id, body, status: if is_request { StatusCode::GOOD } else { status(json)? }, fields })
}

/// The fields in the order of the metadata, or as received if there is none.
fn fields(
    payload: Option<&Json<'_>>,
    set: Option<&FieldSet>,
    is_request: bool,
) -> Result<Vec<Variant>, StatusCode> {
    let members = match payload {
        None | Some(Json::Null) => &[],
        Some(payload) => payload.as_object().ok_or(StatusCode::BAD_DECODING_ERROR)?,
    };
    let namespaces = namespaces(set);
    let context = context(&namespaces);
    let known = set.map(|set| set.names.as_slice()).unwrap_or_default();
    // A message without fields means that the Action is executing.
    let mut fields = vec![Variant::Empty; if members.is_empty() { 0 } else { known.len() }];
    for (position, (name, json)) in members.iter().enumerate() {
        let index = match known.iter().position(|known| *known == **name) {
            Some(index) => index,
            None if known.is_empty() => position,
            // A responder must not execute something other than requested.
            None if is_request => return Err(StatusCode::BAD_INVALID_ARGUMENT),
            None => continue,
        };
        let kind = set.and_then(|set| set.built_in_type(index));
        let field = value(kind, json, &context).map_err(|_| StatusCode::BAD_DECODING_ERROR)?;
        match fields.get_mut(index) {
            Some(place) => *place = plain_value(field),
            None => fields.push(plain_value(field)),
        }
    }
    Ok(fields)
}

/// Appends an ActionMetaData or ActionResponder announcement. Others have their own messages.
pub(crate) fn announce(
    message_id: &str,
    publisher_id: &str,
    announcement: &Announcement,
    now: Now,
    out: &mut Vec<u8>,
) {
    let context = context(&[]);
    let mut members = Members::open(out);
    let mut head = |kind: &str, out: &mut Vec<u8>| {
        members.name("MessageId", out);
        string(message_id, out);
        members.name("MessageType", out);
        string(kind, out);
        members.name("PublisherId", out);
        string(publisher_id, out);
        members.name("Timestamp", out);
        now.utc.encode_json(&context, out);
    };
    match announcement {
        Announcement::ActionMetaData { writer_id, targets, request, response, methods } => {
            head(META_DATA, out);
            members.name("DataSetWriterId", out);
            plain(writer_id, out);
            members.name("ActionTargets", out);
            array(targets.iter(), out, |target, out| structure::encode(target, &context, out));
            members.name("Request", out);
            structure::encode(&**request, &context, out);
            members.name("Response", out);
            structure::encode(&**response, &context, out);
            if !methods.is_empty() {
                members.name("ActionMethods", out);
                array(methods.iter(), out, |method, out| structure::encode(method, &context, out));
            }
        }
        Announcement::ActionResponder(connections) => {
            head(RESPONDER, out);
            // A responder has one connection.
            if let Some(connection) = connections.first() {
                members.name("Connection", out);
                structure::encode(connection, &context, out);
            }
        }
        _ => {}
    }
    members.close(out);
}

fn announcement(json: &Json<'_>, kind: &str) -> Result<Announcement, JsonError> {
    let context = context(&[]);
    fn all<T: Structure>(
        json: &Json<'_>,
        name: &str,
        context: &JsonContext<'_>,
    ) -> Result<Vec<T>, JsonError> {
        let elements = match json.get(name) {
            None | Some(Json::Null) => &[],
            Some(elements) => elements.as_array().ok_or(JsonError::Expected("an array"))?,
        };
        elements.iter().map(|element| structure::decode(element, context)).collect()
    }
    let needed = |name: &'static str| json.get(name).ok_or(JsonError::Expected(name));
    if kind == RESPONDER {
        let connection = structure::decode(needed("Connection")?, &context)?;
        return Ok(Announcement::ActionResponder(vec![connection]));
    }
    Ok(Announcement::ActionMetaData {
        writer_id: number(json, "DataSetWriterId")?,
        targets: all(json, "ActionTargets", &context)?,
        request: Box::new(structure::decode(needed("Request")?, &context)?),
        response: Box::new(structure::decode(needed("Response")?, &context)?),
        methods: all(json, "ActionMethods", &context)?,
    })
}
