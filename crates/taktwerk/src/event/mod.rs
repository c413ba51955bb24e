//! Typed events: Rust structs for event types, raised by servers and received by clients.
//!
//! [`event_type!`](crate::event_type) declares one. `taktwerk_nodeset::event_types` generates such declarations from NodeSet
//! files in a `build.rs`; [`standard`] contains those of namespace 0. Types and fields are named by namespace URIs. The indexes
//! are looked up in the server that raises the event, or in the connected server.
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

    /// Assembles an event.
    ///
    /// # Errors
    /// A required field has no value, or a value has another type.
    fn from_parts(base: BaseEvent, fields: FieldValues) -> Result<Self, ReadEventError>;
}

/// The fields of BaseEventType (OPC 10000-5 §6.4.2), which every event has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BaseEvent {
    /// Identifies the event. Null in an event to be raised: the server generates it.
    pub event_id: ByteString,
    /// The type, which may be a subtype of the requested one. Set by the server.
    pub event_type: NodeId,
    /// The node that the event is about. Set by the server.
    pub source_node: NodeId,
    /// The name of the source. Empty in an event to be raised: the server uses the DisplayName.
    pub source_name: String,
    /// When it happened. Null in an event to be raised: the current time.
    pub time: UtcTime,
    /// When the server received it. Set by the server.
    pub receive_time: UtcTime,
    /// A readable description.
    pub message: LocalizedText,
    /// The severity, from 1 to 1000.
    pub severity: u16,
}

impl BaseEvent {
    /// The minimum for raising an event; the server sets the other fields.
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
/// `is` is followed by the namespace URI of the type and its id without a namespace. Each field has a Rust type and a path. The
/// type is a [`Value`](crate::Value), or an `Option` of one if events may lack the field. The path consists of BrowseNames from
/// the type to the field, each with its namespace URI; an empty path is the ConditionId. Every struct gets a field `base` of type
/// [`BaseEvent`](crate::event::BaseEvent).
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
            /// The fields of BaseEventType.
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

            #[allow(unused_mut, unused_variables)] // for types without fields
            fn from_parts(
                base: $crate::event::BaseEvent,
                mut fields: $crate::event::FieldValues,
            ) -> ::core::result::Result<Self, $crate::event::ReadEventError> {
                ::core::result::Result::Ok(Self { base, $($field: fields.take()?,)* })
            }
        }
    )*};
}
