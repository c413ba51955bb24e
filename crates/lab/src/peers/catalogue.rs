//! The catalogue of peers.

use super::start::LIMIT;
use super::tools::{CARGO, CMAKE, COMPILER, GO, JAVAC, MAKE, MAVEN, NODE, NPM, OPENSSL, PYTHON, Tool};
use serde::Serialize;
use std::time::Duration;

/// Kind of peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// An OPC UA server.
    OpcUa,
    /// An MQTT broker.
    Mqtt,
    /// A gateway: an OPC UA server that reads Modbus TCP devices.
    Gateway,
}

/// Method of installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recipe {
    /// Our script, which builds the C library.
    Script { folder: &'static str, script: &'static str },
    /// A Python virtual environment.
    Python { folder: &'static str },
    /// A Maven project with one class of ours.
    Maven { folder: &'static str },
    /// npm packages.
    Npm { folder: &'static str },
    /// Our Go module.
    Go { folder: &'static str, program: &'static str },
    /// Our Rust program.
    Cargo { folder: &'static str, program: &'static str },
    /// A system package.
    Debian { package: &'static str, program: &'static str },
}

/// Additional start time compared with our server: numbers of variables in ascending order, and the milliseconds until
/// a server with that many variables listens. Empty for peers that start as fast.
///
/// From one `lab reproduce all --quick` on two idle virtual Xeon cores (2026-11-23): median time between the windows of
/// two reading loads, minus the same for our server. For 20 000 variables in Python, from subscribing loads. asyncua
/// was not ready with them within two minutes, python-opcua once in three attempts.
type Starting = &'static [(u32, u32)];

/// A peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Name on the command line.
    pub name: &'static str,
    /// Kind.
    pub role: Role,
    /// Implementation language.
    pub language: &'static str,
    /// Installed version.
    pub version: &'static str,
    /// Licence. Peers are separate programs, so their licences do not apply to Taktwerk.
    pub licence: &'static str,
    /// Source.
    pub registry: &'static str,
    pub(super) needs: &'static [Tool],
    pub(super) recipe: Recipe,
    pub(super) starting: Starting,
    /// Additional milliseconds in a separate network namespace, from the same measurements. open62541 needs ten seconds
    /// more, which is the timeout of two resolver attempts.
    pub(super) apart_ms: u64,
}

impl Peer {
    /// Estimated additional time until its program listens with this many variables, compared with our server; at most
    /// the start timeout.
    #[must_use]
    pub fn starts_in(&self, variables: u32) -> Duration {
        let parts = || self.starting.windows(2);
        let holds = |part: &&[(u32, u32)]| part.last().is_some_and(|(end, _)| variables <= *end);
        // Extrapolate the last segment.
        let ms = match parts().find(holds).or(parts().last()) {
            Some([(from, early), (to, late)]) => {
                let [from, to, early, late] = [from, to, early, late].map(|number| f64::from(*number));
                early + (f64::from(variables) - from) / (to - from) * (late - early)
            }
            _ => self.starting.first().map_or(0.0, |(_, ms)| f64::from(*ms)),
        };
        Duration::try_from_secs_f64(ms / 1e3).map_or(LIMIT, |span| span.min(LIMIT))
    }

    /// Additional time in a separate network namespace, as for an emulated link.
    #[must_use]
    pub fn starts_later_apart(&self) -> Duration {
        Duration::from_millis(self.apart_ms)
    }
}

/// All peers.
pub const PEERS: [Peer; 11] = [
    Peer {
        name: "open62541",
        role: Role::OpcUa,
        language: "C",
        version: "1.5.10",
        licence: "MPL-2.0",
        registry: "crates.io (sources in open62541-sys 0.6.6)",
        needs: &[CARGO, CMAKE, COMPILER, MAKE, OPENSSL, PYTHON],
        recipe: Recipe::Script { folder: "open62541", script: "build.sh" },
        starting: &[],
        apart_ms: 10_000,
    },
    Peer {
        name: "asyncua",
        role: Role::OpcUa,
        language: "Python",
        version: "2.1.0",
        licence: "LGPL-3.0",
        registry: "PyPI",
        needs: &[PYTHON],
        recipe: Recipe::Python { folder: "asyncua" },
        starting: &[(0, 1_800), (1_000, 2_000), (5_000, 16_800), (20_000, 120_000)],
        apart_ms: 0,
    },
    Peer {
        name: "python-opcua",
        role: Role::OpcUa,
        language: "Python",
        version: "0.98.13",
        licence: "LGPL-3.0",
        registry: "PyPI (opcua)",
        needs: &[PYTHON],
        recipe: Recipe::Python { folder: "python-opcua" },
        starting: &[(0, 600), (5_000, 8_100), (20_000, 115_000)],
        apart_ms: 0,
    },
    Peer {
        name: "milo",
        role: Role::OpcUa,
        language: "Java",
        version: "1.1.2",
        licence: "EPL-2.0",
        registry: "Maven Central (org.eclipse.milo)",
        needs: &[MAVEN, JAVAC],
        recipe: Recipe::Maven { folder: "milo" },
        starting: &[(0, 3_000)],
        apart_ms: 0,
    },
    Peer {
        name: "node-opcua",
        role: Role::OpcUa,
        language: "JavaScript",
        version: "2.186.4",
        licence: "MIT",
        registry: "npm",
        needs: &[NODE, NPM],
        recipe: Recipe::Npm { folder: "node-opcua" },
        starting: &[(0, 3_400), (5_000, 4_800)],
        apart_ms: 0,
    },
    Peer {
        name: "gopcua",
        role: Role::OpcUa,
        language: "Go",
        version: "0.8.0",
        licence: "MIT",
        registry: "Go modules",
        needs: &[GO],
        recipe: Recipe::Go { folder: "gopcua", program: "gopcua-server" },
        starting: &[(0, 200)],
        apart_ms: 0,
    },
    Peer {
        name: "async-opcua",
        role: Role::OpcUa,
        language: "Rust",
        version: "0.19.0",
        licence: "MPL-2.0",
        registry: "crates.io",
        needs: &[CARGO],
        recipe: Recipe::Cargo { folder: "async-opcua", program: "async-opcua-server" },
        starting: &[],
        apart_ms: 0,
    },
    Peer {
        name: "mosquitto",
        role: Role::Mqtt,
        language: "C",
        version: "2.0",
        licence: "EPL-2.0",
        registry: "Debian",
        needs: &[],
        recipe: Recipe::Debian { package: "mosquitto", program: "mosquitto" },
        starting: &[],
        apart_ms: 0,
    },
    Peer {
        name: "rumqttd",
        role: Role::Mqtt,
        language: "Rust",
        version: "0.20.0",
        licence: "Apache-2.0",
        registry: "crates.io",
        needs: &[CARGO],
        recipe: Recipe::Cargo { folder: "rumqttd", program: "rumqttd-broker" },
        starting: &[],
        apart_ms: 0,
    },
    Peer {
        name: "asyncua-pymodbus",
        role: Role::Gateway,
        language: "Python",
        version: "2.1.0",
        licence: "LGPL-3.0",
        registry: "PyPI (asyncua, pymodbus)",
        needs: &[PYTHON],
        recipe: Recipe::Python { folder: "asyncua-pymodbus" },
        starting: &[],
        apart_ms: 0,
    },
    Peer {
        name: "node-red",
        role: Role::Gateway,
        language: "JavaScript",
        version: "4.1.15",
        licence: "Apache-2.0",
        registry: "npm (node-red, node-red-contrib-modbus, node-red-contrib-opcua)",
        needs: &[NODE, NPM],
        recipe: Recipe::Npm { folder: "node-red" },
        starting: &[],
        apart_ms: 0,
    },
];

/// Finds a peer by name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Peer> {
    PEERS.iter().find(|peer| peer.name == name)
}
