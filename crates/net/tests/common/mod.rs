//! A server on loopback with some variables, for the driver tests.

#![allow(dead_code)] // each test uses a part

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use taktwerk_client::Target;
use taktwerk_net::clock::{monotonic, origin, wall};
use taktwerk_net::{RunningServer, ServerOptions};
use taktwerk_schema::{MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, ReadValueId};
use taktwerk_server::space::build::{Under, ValueShape};
use taktwerk_server::space::{NodeSpec, VariableHandle};
use taktwerk_server::{AddressSpace, Limits, ServerConfig, ServerShared};
use taktwerk_types::{BuiltInType, Instant, NodeId, QualifiedName};

pub(crate) struct TestServer {
    pub(crate) running: RunningServer,
    pub(crate) variables: Vec<VariableHandle>,
}

/// Starts a server with `count` Doubles `ns=1;i=0..count`, all 0.
pub(crate) fn start(count: u32, shards: usize, options: ServerOptions) -> TestServer {
    let mut config = ServerConfig::new("Test", "urn:taktwerk:test", "opc.tcp://127.0.0.1:0", wall());
    config.limits = Limits::laboratory();
    let space = Arc::new(AddressSpace::new(shards, 1024, &config.application_uri));
    let (objects, organizes, kind) = (NodeId::numeric(0, 85), NodeId::numeric(0, 35), NodeId::numeric(0, 63));
    let under = Under { parent: &objects, reference_type: &organizes, type_definition: Some(&kind) };
    let id = |number| NodeId::numeric(1, number + 1);
    let specs = (0..count).map(|number| {
        let name = QualifiedName::new(1, format!("Signal {number}"));
        NodeSpec::variable(id(number), name, NodeId::NULL, Some(0.0.into()))
            .shape(ValueShape::scalar(BuiltInType::Double))
    });
    space.add_nodes(specs, under, wall()).unwrap();
    let variables = (0..count).map(|number| space.variable(&id(number)).unwrap()).collect();
    let shared = ServerShared::new(config, space, shards, origin());
    let running = RunningServer::start(&shared, &["127.0.0.1:0".parse().unwrap()], options).unwrap();
    TestServer { running, variables }
}

impl TestServer {
    pub(crate) fn target(&self) -> Target {
        Target::direct(&format!("opc.tcp://{}", self.running.addresses()[0])).unwrap()
    }

    /// Writes all variables every `interval` until the handle is dropped.
    pub(crate) fn write_every(&self, interval: Duration) -> Writer {
        let stop = Arc::new(AtomicBool::new(false));
        let (variables, stopped) = (self.variables.clone(), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let mut round = 0.0;
            while !stopped.load(Ordering::Relaxed) {
                round += 1.0;
                let now = wall();
                variables.iter().for_each(|variable| variable.set_at(round, now));
                thread::sleep(interval);
            }
        });
        Writer { stop, thread: Some(thread) }
    }
}

pub(crate) struct Writer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

pub(crate) fn node(number: u32) -> NodeId {
    NodeId::numeric(1, number + 1)
}

/// Value of a variable, for a Read.
pub(crate) fn value_of(number: u32) -> ReadValueId {
    ReadValueId { node_id: node(number), attribute_id: 13, ..ReadValueId::default() }
}

/// Monitors a variable with queue size 1 under its own number as client handle.
pub(crate) fn monitor(number: u32, sampling: f64) -> MonitoredItemCreateRequest {
    MonitoredItemCreateRequest {
        item_to_monitor: value_of(number),
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle: number,
            sampling_interval: sampling,
            queue_size: 1,
            discard_oldest: true,
            ..MonitoringParameters::default()
        },
    }
}

pub(crate) fn after(span: Duration) -> Instant {
    monotonic() + span
}

pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = after(Duration::from_secs(20));
    while !holds() {
        assert!(monotonic() < end, "timed out waiting until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
