//! Alarms and Conditions (Part 9).
//!
//! Inputs and operators' calls go into pure state machines, and changes to tell of come out. No clock, no nodes: what is
//! watched, shown and told is up to the address space (`space/alarms`), which a driver calls with the time
//! ([`AddressSpace::poll_alarms`]). Servers without conditions pay nothing; with conditions the cost follows the writes of the
//! watched Variables.
//!
//! - [`detector`]: what is abnormal about an input; [`limits`]: limits with deadbands;
//! - [`machine`]: the state machine of a condition; [`state`], [`shelving`], [`dialog`]: its parts; [`operation`]: the Methods;
//! - [`group`]: alarms that belong together; [`metrics`]: how many there are, and how fast they come;
//! - [`condition`]: what a condition is; `fields`: what its events say; `message`: for people.
//!
//! Calls of Methods come from `service/condition.rs`, ConditionRefresh from `subscription/refresh.rs`.
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
