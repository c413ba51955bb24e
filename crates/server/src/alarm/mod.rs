//! Alarms and Conditions (Part 9).
//!
//! Pure state machines: inputs and operators' calls go in, changes to report come out. They have no clock and no nodes.
//! The address space (`space/alarms`) decides what is monitored, shown and reported; a driver calls it with the time
//! ([`AddressSpace::poll_alarms`]). Servers without conditions pay nothing; with conditions, the cost is per write to a
//! monitored Variable.
//!
//! - [`detector`]: when an input is abnormal; [`limits`]: limits with deadbands;
//! - [`machine`]: the state machine of a condition; [`state`], [`shelving`], [`dialog`]: its parts; [`operation`]: the
//!   Methods;
//! - [`group`]: alarm groups; [`metrics`]: counts, durations and rates of alarms;
//! - [`condition`]: the definition of a condition; `fields`: the fields of its events; `message`: their texts.
//!
//! `service/condition.rs` handles the Method calls, `subscription/refresh.rs` ConditionRefresh.
//!
//! [`AddressSpace::poll_alarms`]: crate::AddressSpace::poll_alarms

pub mod condition;
pub mod detector;
pub mod dialog;
pub(crate) mod fields;
pub mod group;
pub mod limits;
pub mod machine;
pub(crate) mod message;
pub mod metrics;
pub mod operation;
pub mod shelving;
pub mod state;

pub use condition::{Certified, ConditionSpec, ConditionView};
pub use detector::{Kind, Quantity, Severities};
pub use dialog::Dialog;
pub use group::{GroupKind, GroupSpec};
pub use limits::{LimitSet, Limits};
pub use machine::Rules;
pub use operation::{Method, Operation};
pub use shelving::Shelving;
pub use state::{OwnFields, State};
