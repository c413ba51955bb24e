//! The peers that there are.

use super::tools::{CARGO, CMAKE, COMPILER, GO, JAVAC, MAKE, MAVEN, NODE, NPM, OPENSSL, PYTHON, Tool};
use serde::Serialize;

/// What a peer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// An OPC UA server.
    OpcUa,
    /// An MQTT broker.
    Mqtt,
}

/// How it is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recipe {
    /// By a script of ours that builds the C library.
    Script { folder: &'static str, script: &'static str },
    /// A virtual environment of Python.
    Python { folder: &'static str },
    /// Jars of a Maven project, and one class of ours.
    Maven { folder: &'static str },
    /// Packages of npm.
    Npm { folder: &'static str },
    /// A Go module of ours.
    Go { folder: &'static str, program: &'static str },
    /// A Rust program of ours.
    Cargo { folder: &'static str, program: &'static str },
    /// A package of the system.
    Debian { package: &'static str, program: &'static str },
}

/// A peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it is.
    pub role: Role,
    /// The language that it is written in.
    pub language: &'static str,
    /// The version that is installed.
    pub version: &'static str,
    /// Its licence. Peers are programs of their own, so none of these reaches Taktwerk.
    pub licence: &'static str,
    /// Where it comes from.
    pub registry: &'static str,
    pub(super) needs: &'static [Tool],
    pub(super) recipe: Recipe,
}

/// All peers.
pub const PEERS: [Peer; 9] = [
    Peer {
        name: "open62541",
        role: Role::OpcUa,
        language: "C",
        version: "1.5.10",
        licence: "MPL-2.0",
        registry: "crates.io (sources in open62541-sys 0.6.6)",
        needs: &[CARGO, CMAKE, COMPILER, MAKE, OPENSSL, PYTHON],
        recipe: Recipe::Script { folder: "open62541", script: "build.sh" },
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
    },
];

/// The peer of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Peer> {
    PEERS.iter().find(|peer| peer.name == name)
}
