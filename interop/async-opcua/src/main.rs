// SPDX-License-Identifier: MIT OR Apache-2.0

//! An async-opcua server with N changing variables.
//!
//!     async-opcua-server --port P --variables N --update MS [--bind ADDR] [--exit-with-stdin]

use opcua::nodes::VariableBuilder;
use opcua::server::address_space::AccessLevel;
use opcua::server::node_manager::memory::{simple_node_manager, SimpleNodeManager};
use opcua::server::{diagnostics::NamespaceMetadata, ServerBuilder, ServerEndpoint, ANONYMOUS_USER_TOKEN_ID};
use opcua::types::{ByteString, DataTypeId, DataValue, DateTime, NodeId, ObjectId, Variant};
use std::time::Duration;
use tokio::io::AsyncReadExt;

const FIRST_SIGNAL: u32 = 100_000;
const SIGNAL_FOLDER: u32 = 99_999;
const APPLICATION: &str = "urn:taktwerk:peer:async-opcua:server";
const NAMESPACE: &str = "urn:taktwerk:peer:async-opcua:signals";
/// The interop test node that clients write and monitor.
const INTEROP: &str = "urn:taktwerk:interop";
const PAYLOAD: &str = "scalar/ByteString";

fn option(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|it| it != name);
    arguments.next().and_then(|_| arguments.next())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve())
}

async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let bind = option("--bind").unwrap_or_else(|| "127.0.0.1".into());
    let count: u32 = option("--variables").map_or(Ok(0), |it| it.parse())?;
    let update: f64 = option("--update").map_or(Ok(0.0), |it| it.parse())?;
    let port: u16 = option("--port").map_or(Ok(4840), |it| it.parse())?;
    let port = match port {
        0 => std::net::TcpListener::bind((bind.as_str(), 0))?.local_addr()?.port(),
        port => port,
    };
    let mut builder = ServerBuilder::new();
    // The defaults are a thousand items and values of 64 kB: less than the loads need, and than other stacks allow.
    let limits = builder.limits_mut();
    limits.subscriptions.max_monitored_items_per_sub = 0;
    limits.max_byte_string_length = 4 << 20;
    limits.max_message_size = 8 << 20;
    limits.max_chunk_count = 1_000;
    let (server, handle) = builder
        .application_name("async-opcua peer")
        // Not that of the signals: namespace 1 is the server's own, and its nodes do not belong to the manager.
        .application_uri(APPLICATION)
        .product_uri(APPLICATION)
        .host(bind.clone())
        .port(port)
        .max_sessions(10_000)
        .add_endpoint("none", ServerEndpoint::new_none("/", &[ANONYMOUS_USER_TOKEN_ID.to_string()]))
        .discovery_urls(vec!["/".to_owned()])
        .pki_dir(std::env::temp_dir().join("taktwerk-peer-async-opcua"))
        .with_node_manager(simple_node_manager(
            NamespaceMetadata { namespace_uri: NAMESPACE.to_owned(), ..Default::default() },
            "signals",
        ))
        .with_node_manager(simple_node_manager(
            NamespaceMetadata { namespace_uri: INTEROP.to_owned(), ..Default::default() },
            "interop",
        ))
        .build()?;
    let managers = handle.node_managers();
    let manager = managers.get_by_name::<SimpleNodeManager>("signals").ok_or("no node manager")?;
    let interop = managers.get_by_name::<SimpleNodeManager>("interop").ok_or("no node manager")?;
    let index = handle.get_namespace_index(NAMESPACE).ok_or("no namespace")?;
    let ids: Vec<NodeId> = (0..count).map(|k| NodeId::new(index, FIRST_SIGNAL + k)).collect();
    {
        let mut space = manager.address_space().write();
        let folder = NodeId::new(index, SIGNAL_FOLDER);
        space.add_folder(&folder, "signals", "signals", &NodeId::from(ObjectId::ObjectsFolder));
        for (k, id) in ids.iter().enumerate() {
            VariableBuilder::new(id, format!("signal{k}"), format!("signal{k}"))
                .data_type(DataTypeId::Double)
                .value(k as f64)
                .access_level(AccessLevel::CURRENT_READ | AccessLevel::CURRENT_WRITE)
                .user_access_level(AccessLevel::CURRENT_READ | AccessLevel::CURRENT_WRITE)
                .organized_by(&folder)
                .insert(&mut *space);
        }
    }
    {
        let index = handle.get_namespace_index(INTEROP).ok_or("no namespace")?;
        let both = AccessLevel::CURRENT_READ | AccessLevel::CURRENT_WRITE;
        VariableBuilder::new(&NodeId::new(index, PAYLOAD), "ByteString", "ByteString")
            .data_type(DataTypeId::ByteString)
            .value(ByteString::from(Vec::new()))
            .access_level(both)
            .user_access_level(both)
            .organized_by(ObjectId::ObjectsFolder)
            .insert(&mut *interop.address_space().write());
    }
    if update > 0.0 {
        let (manager, subscriptions) = (manager.clone(), handle.subscriptions().clone());
        tokio::spawn(async move {
            let mut timer = tokio::time::interval(Duration::from_secs_f64(update / 1e3));
            let mut turn = 0u64;
            loop {
                timer.tick().await;
                turn += 1;
                let now = DateTime::now();
                let values = ids.iter().enumerate().map(|(k, id)| {
                    (id, None, DataValue::new_at(Variant::Double((turn + k as u64) as f64), now))
                });
                let _ = manager.set_values(&subscriptions, values);
            }
        });
    }
    let token = handle.token().clone();
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let with_stdin = std::env::args().any(|it| it == "--exit-with-stdin");
    tokio::spawn(async move {
        let stdin = async {
            if !with_stdin {
                std::future::pending::<()>().await;
            }
            let mut buffer = [0; 256];
            let mut stdin = tokio::io::stdin();
            while stdin.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
            () = stdin => {}
        }
        // The library's shutdown waits for its clients; nothing is left to clean up.
        std::process::exit(0);
    });
    if index != 1 {
        println!("NODE ns={index};i={FIRST_SIGNAL}");
    }
    // It starts listening shortly after this; earlier connection attempts are refused by the system.
    tokio::spawn(async move {
        let address = format!("{bind}:{port}");
        while tokio::net::TcpStream::connect(&address).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        println!("READY opc.tcp://{address}");
    });
    server.run().await.map_err(|error| format!("{error:?}"))?;
    drop(token);
    Ok(())
}
