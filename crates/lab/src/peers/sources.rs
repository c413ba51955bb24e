//! The programs around the peers' libraries, as text.

/// A file below `interop/`: its path there and its text.
pub(super) type Source = (&'static str, &'static str);

macro_rules! sources {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../../interop/", $path)))),*]
    };
}

/// All of them.
pub(super) const ALL: &[Source] = sources![
    "open62541/build.sh",
    "open62541/CMakeLists.txt",
    "open62541/Cargo.toml",
    "open62541/Cargo.lock",
    "open62541/pin.rs",
    "open62541/src/bench.c",
    "open62541/src/client.c",
    "open62541/src/client.h",
    "open62541/src/common.c",
    "open62541/src/common.h",
    "open62541/src/publisher.c",
    "open62541/src/server.c",
    "open62541/src/smoke.c",
    "open62541/src/smoke.h",
    "open62541/src/smoke_data.c",
    "open62541/src/smoke_subscription.c",
    "open62541/src/testnodes.c",
    "open62541/src/testnodes.h",
    "floor/tcp-floor.c",
    "asyncua/requirements.txt",
    "asyncua/server.py",
    "asyncua/testnodes.py",
    "python-opcua/requirements.txt",
    "python-opcua/server.py",
    "milo/pom.xml",
    "milo/src/MiloServer.java",
    "node-opcua/package.json",
    "node-opcua/package-lock.json",
    "node-opcua/server.js",
    "gopcua/go.mod",
    "gopcua/go.sum",
    "gopcua/main.go",
    "async-opcua/Cargo.toml",
    "async-opcua/Cargo.lock",
    "async-opcua/src/main.rs",
    "rumqttd/Cargo.toml",
    "rumqttd/Cargo.lock",
    "rumqttd/src/main.rs",
    "mosquitto/broker.sh",
    "asyncua-pymodbus/requirements.txt",
    "asyncua-pymodbus/server.py",
    "node-red/package.json",
    "node-red/package-lock.json",
    "node-red/server.js",
];

/// Those of a folder.
pub(super) fn of(folder: &str) -> impl Iterator<Item = &'static Source> {
    let prefix = format!("{folder}/");
    ALL.iter().filter(move |(path, _)| path.starts_with(&prefix))
}

/// A number that changes with any of the files of a folder (FNV-1a).
pub(super) fn fingerprint(folder: &str) -> u64 {
    of(folder)
        .flat_map(|(path, text)| path.bytes().chain([0]).chain(text.bytes()))
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}
