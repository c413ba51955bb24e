//! Processors: machines that hosts share, and what work costs on them.
//!
//! A server or client that is placed on a machine (see [`World::place_server`](crate::World::place_server)) needs a
//! processor for everything it does. A *step* is one input of its core: bytes of a connection, a deadline, the result of
//! a job. The core handles it when the thread gets to it; the step takes what its `Work` counters cost, and what it has to
//! say leaves when the step is done. Slow jobs of a server queue for its worker threads, those of a client run on the
//! client's thread.
//!
//! [`machine`] shares the processors; [`costs`] has the prices, from a
//! [`HostProfile`](taktwerk_model::HostProfile). Hosts that are on no machine need no time.

pub(crate) mod client;
pub mod costs;
pub mod machine;
pub(crate) mod pool;

pub use costs::{Costs, client_job_name};
pub use machine::{Competitor, Machine, MachineId};
