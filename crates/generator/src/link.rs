//! `bench --link`: an emulated link between this generator and a server that is already running.
//!
//! The relay is a separate program, so that its cost counts neither for the generator nor for the server. It is probed
//! before measuring, and ends with this program, even if that is killed.

use crate::context::Context;
use crate::error::GeneratorError;
use serde_json::Value;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;
use taktwerk_lab::links::address::first_address;
use taktwerk_lab::links::{Effort, Profile};
use taktwerk_lab::program::{Program, ProgramError, Running};
use taktwerk_load::endpoint::Endpoint;

/// Timeout for probing, which takes a few seconds, and longer over slow links.
const LIMIT: Duration = Duration::from_secs(60);

/// A running relay that has been verified.
#[derive(Debug)]
pub(crate) struct Over {
    name: String,
    probed: Value,
    address: SocketAddr,
    /// Stops it when dropped.
    _relay: Running,
}

impl Over {
    /// Starts the relay to a server and waits until the link has been probed.
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
            // The relay's own message is the reason; the name of its program is left out.
            ProgramError::Early { stderr, .. } => {
                GeneratorError::Environment(stderr.trim_start_matches("error: ").to_owned())
            }
            error => GeneratorError::Environment(error.to_string()),
        })?;
        let broken =
            || GeneratorError::Environment(format!("unexpected output of the relay: READY {}", relay.url()));
        let address = relay.url().split(' ').next().and_then(|it| it.parse().ok()).ok_or_else(broken)?;
        let probed = relay.note("PROBED").and_then(|text| serde_json::from_str(text).ok());
        Ok(Self { name: name.to_owned(), probed: probed.unwrap_or_default(), address, _relay: relay })
    }

    /// The address at which clients reach the server.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requested and observed properties, for the document.
    pub(crate) fn probed(&self) -> Value {
        self.probed.clone()
    }

    /// The same in one line.
    pub(crate) fn sentence(&self) -> String {
        let ms = |pointer: &str| self.probed.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
        format!(
            "{} by a relay, round trip {:.3} ± {:.3} ms (requested {:.3} ± {:.3} ms)",
            self.name,
            ms("/round_trips/mean_ms"),
            ms("/round_trips/std_ms"),
            ms("/expected/mean_ms"),
            ms("/expected/std_ms"),
        )
    }
}
