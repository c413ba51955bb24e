//! Automatic functions of the library: endpoint selection, typed values, splitting of requests, structures that only the server
//! defines, subscriptions as streams, reconnection.

use crate::nodes::{CELSIUS, NAMESPACE_URI};
use crate::proxy::Proxy;
use crate::session::{Fault, Session};
use crate::smoke::Smoke;
use std::time::Duration;
use taktwerk::client::{
    Attribute, ClientEvents, Event, Item, Security, SubscriptionEvent, SubscriptionOptions, Update,
};
use taktwerk::schema::dynamic::{DynamicValue, TypeRegistry};
use taktwerk::schema::ids::{data_type_ids, variable_ids};
use taktwerk::schema::{CancelRequest, QueryFirstRequest, Range, ServerDiagnosticsSummaryDataType};
use taktwerk::types::{DecodeLimits, ExtensionObject, NodeId, StatusCode, Variant};
use taktwerk::{Client, Struct};
use tokio::time::timeout;

/// More operations than servers usually accept in one request.
const MANY: usize = 25_000;

/// Elements of an array whose message needs several chunks in both directions.
const LONG: i32 = 150_000;

/// Bytes per piece when a connection is split into pieces.
const PIECE: usize = 5;

impl Smoke {
    pub(crate) async fn library(&mut self) {
        self.users().await;
        self.refused_security().await;
        self.typed_values().await;
        self.operation_limits().await;
        self.chunks().await;
        self.pieces().await;
        self.server_defined_structure().await;
        self.other_services().await;
        self.stream().await;
        self.reconnection().await;
    }

    async fn users(&mut self) {
        match Session::connect(&self.url, Some(("user1", "password"))).await {
            Ok(session) => {
                session.close().await;
                self.check("user and password", true, "user1")
            }
            Err(fault) => self.check("user and password", false, fault),
        };
        let refused = [StatusCode::BAD_USER_ACCESS_DENIED, StatusCode::BAD_IDENTITY_TOKEN_REJECTED];
        let status = match Session::connect(&self.url, Some(("user1", "wrong"))).await {
            Ok(session) => {
                session.close().await;
                StatusCode::GOOD
            }
            Err(fault) => fault.status,
        };
        self.check_status("wrong password", status, &refused);
    }

    /// The server has no endpoint with security, so a request for one must fail before anything is sent to it.
    async fn refused_security(&mut self) {
        let outcome = Client::builder(&self.url).security(Security::Best).connect().await;
        let ok =
            outcome.as_ref().is_err_and(|error| error.status() == StatusCode::BAD_SECURITY_POLICY_REJECTED);
        self.check(
            "endpoint selection",
            ok,
            outcome.map_or_else(|error| error.to_string(), |_| "connected".into()),
        );
    }

    async fn typed_values(&mut self) {
        let outcome = self.typed_round_trip().await;
        let detail = outcome.as_ref().map_or_else(ToString::to_string, |_| "f64, Range, String".to_owned());
        self.check("typed values", outcome.is_ok_and(|held| held), detail);
    }

    async fn typed_round_trip(&self) -> Result<bool, Fault> {
        let client = &self.session.client;
        // The namespace by its URI, the recommended form.
        let analog = format!("nsu={NAMESPACE_URI};s=analog");
        client.write(&analog, 51.5).await?;
        let read: f64 = client.read_value(&analog).await?;
        client.write(&analog, 50.0).await?;
        let Struct(range): Struct<Range> = client.read_value(self.id("struct/Range")).await?;
        let (greeting,): (String,) =
            client.call(self.id("methods"), self.id("method/hello"), ("Takt".to_owned(),)).await?;
        let mismatch = client.read_value::<f64>(self.id("the.answer")).await;
        let mismatched = mismatch.is_err_and(|error| error.status() == StatusCode::BAD_TYPE_MISMATCH);
        Ok(read == 51.5
            && range == Range { low: 0.0, high: 100.0 }
            && greeting == "Hello, Takt!"
            && mismatched)
    }

    /// The limits are read after connecting, and long lists are split accordingly.
    async fn operation_limits(&mut self) {
        let items = std::iter::repeat_n((self.id("the.answer"), Attribute::Value), MANY);
        let outcome = self.session.client.read_many(items).await;
        let limits = self.session.client.session_info().limits;
        let (ok, detail) = match outcome {
            Ok(values) => {
                let right = values.iter().filter(|value| value.value == Some(43i32.into())).count();
                (right == MANY, format!("{right} of {MANY} values, {limits:?}"))
            }
            Err(error) => (false, format!("{error}, {limits:?}")),
        };
        self.check("operation-limits", ok, detail);
    }

    /// Requests and responses with several chunks.
    async fn chunks(&mut self) {
        let long = Variant::from((0..LONG).collect::<Vec<i32>>());
        let status = self.write("array/Int32", long.clone(), "").await;
        let got = self.read("array/Int32").await;
        let ok = status.is_good() && got.value == Some(long);
        let length = got.value.as_ref().and_then(Variant::as_array).map_or(0, |array| array.values.len());
        self.check(
            "chunked messages",
            ok,
            format!("{status}, read back {length} elements, {}", got.status()),
        );
        self.write("array/Int32", vec![i32::MIN, -1, 0, 1, i32::MAX].into(), "").await;
    }

    /// Messages do not depend on how the bytes of a connection are split.
    async fn pieces(&mut self) {
        let outcome = self.in_pieces().await;
        let detail = outcome.as_ref().map_or_else(ToString::to_string, |count| format!("{count} references"));
        self.check("connection in pieces", outcome.is_ok_and(|count| count > 20), detail);
    }

    async fn in_pieces(&self) -> Result<usize, Fault> {
        let proxy = self.proxy(PIECE)?;
        let session = Session::connect(&proxy.url, None).await?;
        let references = session.client.browse(self.id("scalar")).await?;
        session.close().await;
        Ok(references.len())
    }

    fn proxy(&self, piece: usize) -> Result<Proxy, Fault> {
        let fail =
            |error: std::io::Error| taktwerk::client::ClientError::Connection(error.to_string().into());
        Ok(Proxy::start(&self.url, piece).map_err(fail).map_err(taktwerk::client::Error::from)?)
    }

    /// Decodes a structure only from the server's definition. The library knows this type already, so it is registered under ids
    /// that the library cannot know.
    async fn server_defined_structure(&mut self) {
        let outcome = self.decode_by_definition().await;
        let detail = outcome.as_ref().map_or_else(Clone::clone, |fields| format!("{fields:?}"));
        let wanted = ["NamespaceUri", "UnitId", "DisplayName", "Description"];
        let unit = DynamicValue::from(CELSIUS);
        let ok = outcome.is_ok_and(|fields| {
            fields.iter().map(|(name, _)| name.as_str()).eq(wanted)
                && fields.get(1).is_some_and(|(_, id)| *id == unit)
        });
        self.check("structure by the server's definition", ok, detail);
    }

    async fn decode_by_definition(&self) -> Result<Vec<(String, DynamicValue)>, String> {
        let data_type = NodeId::numeric(0, data_type_ids::EU_INFORMATION);
        let definition = self.read_attribute(data_type, Attribute::DataTypeDefinition as u32, "").await;
        let object = |value: Option<Variant>| ExtensionObject::try_from(value.unwrap_or_default());
        let definition =
            object(definition.value.clone()).map_err(|error| format!("{error}, {}", definition.status()))?;
        let alias = NodeId::string(u16::MAX, "unit");
        let mut types = TypeRegistry::new();
        types.add(alias.clone(), "Unit", &NodeId::NULL, &definition).map_err(|error| error.to_string())?;
        let mut unit =
            object(self.read("struct/EUInformation").await.value).map_err(|error| error.to_string())?;
        unit.type_id = alias;
        let unit = types.decode(&unit, DecodeLimits::DEFAULT).map_err(|error| error.to_string())?;
        Ok(unit.fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
    }

    async fn other_services(&mut self) {
        let id = NodeId::numeric(0, variable_ids::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY);
        let summary = self.session.client.read_value::<Struct<ServerDiagnosticsSummaryDataType>>(id).await;
        let detail =
            summary.as_ref().map_or_else(ToString::to_string, |Struct(summary)| format!("{summary:?}"));
        self.check(
            "server diagnostics",
            summary.is_ok_and(|summary| summary.0.current_session_count > 0),
            detail,
        );

        // No request has this handle.
        let request = CancelRequest { request_handle: u32::MAX, ..CancelRequest::default() };
        let outcome = self.session.request(request).await;
        let detail = outcome
            .as_ref()
            .map_or_else(ToString::to_string, |done| format!("{} cancelled", done.cancel_count));
        self.check("cancel", outcome.is_ok_and(|done| done.cancel_count == 0), detail);

        let outcome = self.session.request(QueryFirstRequest::default()).await;
        let status = outcome.err().map_or(StatusCode::GOOD, |fault| fault.status);
        // Most stacks do not support Query. Those that do report an empty request.
        let wanted = [
            StatusCode::BAD_SERVICE_UNSUPPORTED,
            StatusCode::BAD_NOT_IMPLEMENTED,
            StatusCode::BAD_NOTHING_TO_DO,
        ];
        self.check_status("query for nothing", status, &wanted);
    }

    async fn stream(&mut self) {
        let outcome = self.count_in_stream().await;
        let ok = outcome.as_ref().is_ok_and(|values| values.len() >= 8 && is_gapless(values));
        let detail = outcome.map_or_else(|fault| fault.to_string(), |values| format!("{values:?}"));
        self.check("subscription as a stream", ok, detail);
    }

    async fn count_in_stream(&self) -> Result<Vec<u32>, Fault> {
        let mut subscription = self.session.client.subscribe(Duration::from_millis(100)).await?;
        let counter = self.id("counter");
        subscription.monitor_item(Item::new(counter).sampling(Duration::from_millis(50)).queue(10)).await?;
        let mut values = Vec::new();
        let collect = async {
            while let Some(change) = subscription.next_change().await {
                values.extend(change.value::<u32>().ok());
            }
        };
        // The stream never ends by itself.
        let _ = timeout(Duration::from_millis(1500), collect).await;
        Ok(values)
    }

    /// The connection is cut for less than the session timeout: the session and its subscription continue, and no value that fits
    /// into the item's queue is lost.
    async fn reconnection(&mut self) {
        let outcome = self.cut_and_mend().await;
        let Resumed { restored, states, values } = match outcome {
            Ok(resumed) => resumed,
            Err(fault) => {
                self.check("reconnect", false, fault);
                return;
            }
        };
        let goes_on = restored.is_some() && values.1.len() >= 5;
        let (before, after) = (values.0.len(), values.1.len());
        let detail = format!("{restored:?}, {before} values before, {after} after, {states:?}");
        self.check("reconnect", goes_on, detail);
        let all: Vec<u32> = values.0.into_iter().chain(values.1).collect();
        let is_lost = states.iter().any(|state| matches!(state, SubscriptionEvent::DataLost { .. }));
        self.check(
            "reconnect without loss",
            goes_on && !is_lost && is_gapless(&all),
            format!("{all:?}, {states:?}"),
        );
    }

    async fn cut_and_mend(&self) -> Result<Resumed, Fault> {
        let proxy = self.proxy(usize::MAX)?;
        let session = Session::connect(&proxy.url, None).await?;
        let mut events = session.client.events();
        let options = SubscriptionOptions::every(Duration::from_millis(100));
        let mut subscription = session.client.subscribe(options).await?;
        let counter = self.id("counter");
        subscription.monitor_item(Item::new(counter).sampling(Duration::from_millis(50)).queue(100)).await?;
        let mut resumed = Resumed { restored: None, states: Vec::new(), values: Default::default() };
        let mut values = Vec::new();
        let mut take = |update, values: &mut Vec<u32>| match update {
            Update::Change(change) => values.extend(change.value::<u32>().ok()),
            Update::State(state) => resumed.states.push(state),
            _ => {}
        };
        for (cut, millis) in [(None, 700), (Some(true), 800), (Some(false), 2500)] {
            match cut {
                Some(true) => proxy.cut(),
                Some(false) => {
                    proxy.mend();
                    resumed.values.0 = std::mem::take(&mut values);
                }
                None => {}
            }
            let collect = async {
                while let Some(update) = subscription.next().await {
                    take(update, &mut values);
                }
            };
            let _ = timeout(Duration::from_millis(millis), collect).await;
        }
        resumed.values.1 = values;
        resumed.restored = restored(&mut events).await;
        drop(subscription);
        session.close().await;
        Ok(resumed)
    }
}

/// Observations around a cut.
struct Resumed {
    /// How the client reports the reconnection.
    restored: Option<String>,
    states: Vec<SubscriptionEvent>,
    /// Before the connection was restored, and after.
    values: (Vec<u32>, Vec<u32>),
}

/// How the client reports the reconnection.
async fn restored(events: &mut Option<ClientEvents>) -> Option<String> {
    let events = events.as_mut()?;
    let search = async {
        while let Some(event) = events.next().await {
            if let Event::Restored(how, _) = event {
                return Some(format!("{how:?}"));
            }
        }
        None
    };
    timeout(Duration::from_millis(200), search).await.ok().flatten()
}

/// Whether each value is the previous one plus one; the first value after a reconnection may be repeated.
fn is_gapless(values: &[u32]) -> bool {
    values.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1))
}
