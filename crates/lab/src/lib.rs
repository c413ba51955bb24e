//! Measuring: what `taktwerk bench`, `cargo xtask versus` and the laboratory share.
//!
//! Nothing here speaks OPC UA. The rules of a measurement that can be believed stand here once:
//!
//! - [`schedule`]: send times are fixed beforehand (open loop), so that a slow answer cannot hide the next request;
//! - [`latency`]: each sample counts from its scheduled time *and* from its real send time, both are kept;
//! - [`progress`]: what each monitored item received; the worst one counts, not the mean;
//! - [`process`]: CPU time, context switches and memory of a process, from `/proc`;
//! - [`statistics`]: medians, spread, confidence intervals;
//! - [`validity`]: reasons why a measurement is worth nothing (the generator was late or saturated);
//! - [`pin`], [`clock`], [`files`], [`machine`], [`program`]: CPU affinity, time, the limit of open files, what machine
//!   this was, and other programs that are started, waited for and always ended;
//! - [`cpu`]: isolation, class, governor, and what they really are;
//! - [`links`]: networks that are emulated, probed and taken away again;
//! - [`mqtt`]: a client to measure brokers with;
//! - [`peers`]: other stacks and brokers, installed from their registries and started in one way;
//! - [`orphans`]: programs that outlived a laboratory that was killed;
//! - [`table`], [`figures`]: output for people.

pub mod clock;
pub mod cpu;
pub mod figures;
pub mod files;
pub mod latency;
pub mod links;
pub mod machine;
pub mod mqtt;
pub mod orphans;
pub mod peers;
pub mod pin;
pub mod process;
pub mod program;
pub mod progress;
pub mod schedule;
pub mod statistics;
pub mod table;
pub mod validity;
