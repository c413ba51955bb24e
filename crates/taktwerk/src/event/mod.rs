//! Typed events: Rust structs for event types, to raise at a server and to receive at a client.
//!
//! [`event_type!`](crate::event_type) declares one. `taktwerk_nodeset::event_types` writes such declarations from NodeSet
//! files, for a `build.rs`; [`standard`] has those of namespace 0. A type and its fields are named by namespace URIs. The
//! indexes are looked up in the server that raises the event, or in the one that the client is connected to.
//!
//! ```
//! use taktwerk::event::BaseEvent;
//!
//! taktwerk::event_type! {
//!     /// A pump has stopped.
//!     pub struct PumpStopped is ("urn:example:pumps", "i=1001") {
//!         /// Why.
//!         pub reason: String = [("urn:example:pumps", "Reason")],
//!         /// In bar, if there is a sensor.
//!         pub pressure: Option<f64> = [("urn:example:pumps", "Pressure")],
//!     }
//! }
//!
//! # fn example(pump: &taktwerk::Node) -> Result<(), taktwerk::event::EmitError> {
//! let base = BaseEvent::new(700, "Pump 7 has stopped");
//! pump.emit(PumpStopped { base, reason: "no power".into(), pressure: None })?;
//! # Ok(())
//! # }
//! ```
//!
//! - `emit`: raising; `receive`: monitoring and reading; `field`: values of fields.

mod emit;
mod field;
mod receive;
pub mod standard;

pub use emit::EmitError;
pub use field::{Field, FieldValue, FieldValues};
pub use receive::{ReadEventError, TypedEvents};
pub use taktwerk_server::FieldName;

use taktwerk_types::{ByteString, LocalizedText, NodeId, UtcTime, Variant};

/// The URI of namespace 0.
pub const UA: &str = "http://opcfoundation.org/UA/";

/// A Rust type that stands for an event type: an ObjectType that derives from BaseEventType.
pub trait EventType: Sized + Send + 'static {
    /// The URI of the type's namespace, and its id without a namespace: `i=1001`, `s=PumpStopped`.
    const TYPE: (&'static str, &'static str);
    /// The fields beyond those of BaseEventType.
    const FIELDS: &'static [Field];

    /// The fields of BaseEventType, and the values of the others in the order of [`Self::FIELDS`].
    fn into_parts(self) -> (BaseEvent, Vec<Variant>);

    /// Puts an event together.
    ///
    /// # Errors
    /// A field that is not optional has no value, or a value has another type.
    fn from_parts(base: BaseEvent, fields: FieldValues) -> Result<Self, ReadEventError>;
}

/// The fields of BaseEventType (OPC 10000-5 §6.4.2), which every event has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BaseEvent {
    /// Identifies the event. Null in an event that is to be raised: the server makes one.
    pub event_id: ByteString,
    /// The type, which may be a subtype of what was asked for. Set by the server.
    pub event_type: NodeId,
    /// The node that the event is about. Set by the server.
    pub source_node: NodeId,
    /// The name of the source. Empty in an event that is to be raised: the server takes its DisplayName.
    pub source_name: String,
    /// When it happened. Null in an event that is to be raised: now.
    pub time: UtcTime,
    /// When the server heard of it. Set by the server.
    pub receive_time: UtcTime,
    /// What happened, for people.
    pub message: LocalizedText,
    /// How urgent it is, from 1 to 1000.
    pub severity: u16,
}

impl BaseEvent {
    /// What an event that is to be raised needs at least; the server sets the rest.
    #[must_use]
    pub fn new(severity: u16, message: impl Into<LocalizedText>) -> Self {
        Self { severity, message: message.into(), ..Self::default() }
    }

    /// The names of the fields, in namespace 0.
    pub(crate) const NAMES: [&'static str; 8] =
        ["EventId", "EventType", "SourceNode", "SourceName", "Time", "ReceiveTime", "Message", "Severity"];

    /// Reads the fields in the order of [`Self::NAMES`].
    fn read(values: &mut impl Iterator<Item = Variant>) -> Result<Self, ReadEventError> {
        let mut names = Self::NAMES.into_iter();
        Ok(Self {
            event_id: field::next(&mut names, values)?,
            event_type: field::next(&mut names, values)?,
            source_node: field::next(&mut names, values)?,
            source_name: field::next(&mut names, values)?,
            time: field::next(&mut names, values)?,
            receive_time: field::next::<Option<UtcTime>>(&mut names, values)?.unwrap_or_default(),
            message: field::next(&mut names, values)?,
            severity: field::next(&mut names, values)?,
        })
    }
}

impl EventType for BaseEvent {
    const TYPE: (&'static str, &'static str) = (UA, "i=2041");
    const FIELDS: &'static [Field] = &[];

    fn into_parts(self) -> (BaseEvent, Vec<Variant>) {
        (self, Vec::new())
    }

    fn from_parts(base: BaseEvent, _: FieldValues) -> Result<Self, ReadEventError> {
        Ok(base)
    }
}

/// Declares structs of event types: see [`event`](crate::event).
///
/// `is` is followed by the namespace URI of the type and its id without a namespace. Each field has a Rust type (a
/// [`Value`](crate::Value), or an `Option` of one if events may lack the field) and the path of BrowseNames that leads to
/// it from the type, each with its namespace URI. An empty path is the ConditionId. Every struct gets a field `base` of
/// type [`BaseEvent`](crate::event::BaseEvent).
#[macro_export]
macro_rules! event_type {
    ($(
        $(#[$meta:meta])*
        $vis:vis struct $name:ident is ($uri:expr, $id:expr) {
            $(
                $(#[$field_meta:meta])*
                $field_vis:vis $field:ident: $type:ty = [$(($path_uri:expr, $path_name:expr)),* $(,)?]
            ),* $(,)?
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $name {
            /// What every event has.
            pub base: $crate::event::BaseEvent,
            $($(#[$field_meta])* $field_vis $field: $type,)*
        }

        impl $crate::event::EventType for $name {
            const TYPE: (&'static str, &'static str) = ($uri, $id);
            const FIELDS: &'static [$crate::event::Field] = &[$(
                $crate::event::Field::new::<$type>(&[$(($path_uri, $path_name)),*]),
            )*];

            fn into_parts(self) -> ($crate::event::BaseEvent, ::std::vec::Vec<$crate::Variant>) {
                (self.base, ::std::vec![$($crate::event::FieldValue::into_field(self.$field)),*])
            }

            #[allow(unused_mut, unused_variables)] // of types without fields
            fn from_parts(
                base: $crate::event::BaseEvent,
                mut fields: $crate::event::FieldValues,
            ) -> ::core::result::Result<Self, $crate::event::ReadEventError> {
                ::core::result::Result::Ok(Self { base, $($field: fields.take()?,)* })
            }
        }
    )*};
}
