//! Processors: machines shared by hosts, and the cost of work on them.
//!
//! A server or client that is placed on a machine (see [`World::place_server`](crate::World::place_server)) needs a
//! processor for all of its work. A *step* is one input of its core: bytes of a connection, a deadline, or the result
//! of a job. The core handles the input when its thread runs. The step takes the cost of its `Work` counters, and its
//! output is sent when the step ends. Slow jobs of a server are queued for its worker threads; those of a client run on
//! the client's thread.
//!
//! [`machine`] schedules the processors; [`costs`] has the costs, from a [`HostProfile`](taktwerk_model::HostProfile).
//! Hosts without a machine need no processor time.

pub(crate) mod client;
pub mod costs;
pub mod machine;
pub(crate) mod pool;

pub use costs::{Costs, client_job_name};
pub use machine::{Competitor, Machine, MachineId};
