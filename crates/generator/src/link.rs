//! `bench --link`: a link that is not there, between this generator and a server that runs already.
//!
//! The relay is a program of its own, so that what it costs is neither the generator's nor the server's. It is probed
//! before anything is measured over it, and ends with this program, however that ends.

use crate::context::Context;
use crate::error::GeneratorError;
use serde_json::Value;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;
use taktwerk_lab::links::address::first_address;
use taktwerk_lab::links::{Effort, Profile};
use taktwerk_lab::program::{Program, ProgramError, Running};
use taktwerk_load::endpoint::Endpoint;

/// Probing takes a few seconds, more over slow links.
const LIMIT: Duration = Duration::from_secs(60);

/// A relay that stands and does what was asked for.
#[derive(Debug)]
pub(crate) struct Over {
    name: String,
    probed: Value,
    address: SocketAddr,
    /// Stops it when dropped.
    _relay: Running,
}

impl Over {
    /// Starts the relay to a server and waits until the link has been looked at.
    pub(crate) fn start(
        name: &str,
        server: &Endpoint,
        context: &Context<'_>,
    ) -> Result<Self, GeneratorError> {
        let profile =
            name.parse::<Profile>().map_err(|error| GeneratorError::Usage(format!("--link: {error}")))?;
        let authority = (server.host(), server.port());
        let unknown = |why: String| GeneratorError::Connect(format!("cannot connect to {server}: {why}"));
        let found = authority.to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
        let far = first_address(found).ok_or_else(|| unknown("the name has no address".to_owned()))?;
        taktwerk_lab::leftovers::clean_up();
        let program = Program::new(context.program()?)
            .args(["lab", "links", "proxy", name, "127.0.0.1:0"])
            .arg(far)
            .args(["--verify", "--exit-with-stdin"]);
        let expected = Duration::try_from_secs_f64(Effort::BRIEF.seconds(&profile)).unwrap_or_default();
        let waiting = context.wait("probing the link", expected);
        let relay = program.serve(LIMIT);
        drop(waiting);
        let relay = relay.map_err(|error| match error {
            // What the relay said is the reason, without the program around it.
            ProgramError::Early { stderr, .. } => {
                GeneratorError::Environment(stderr.trim_start_matches("error: ").to_owned())
            }
            error => GeneratorError::Environment(error.to_string()),
        })?;
        let broken = || GeneratorError::Environment(format!("the relay said READY {}", relay.url()));
        let address = relay.url().split(' ').next().and_then(|it| it.parse().ok()).ok_or_else(broken)?;
        let probed = relay.note("PROBED").and_then(|text| serde_json::from_str(text).ok());
        Ok(Self { name: name.to_owned(), probed: probed.unwrap_or_default(), address, _relay: relay })
    }

    /// Where the server is to be reached.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What was asked for and what was seen, for the document.
    pub(crate) fn probed(&self) -> Value {
        self.probed.clone()
    }

    /// The same in a line.
    pub(crate) fn sentence(&self) -> String {
        let ms = |pointer: &str| self.probed.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
        format!(
            "{} by a relay, round trip {:.3} ± {:.3} ms (asked for {:.3} ± {:.3} ms)",
            self.name,
            ms("/round_trips/mean_ms"),
            ms("/round_trips/std_ms"),
            ms("/expected/mean_ms"),
            ms("/expected/std_ms"),
        )
    }
}
