//! A server with a gateway, and a client that reads from it.

#![allow(dead_code)] // each test uses some of it

use std::path::Path;
use std::time::{Duration, Instant};
use taktwerk::{Client, RunningServer, Server};
use taktwerk_gateway::{DestinationView, Gateway, GatewayConfig, PreparedGateway, SourceView};
use taktwerk_types::{DataValue, StatusCode, Variant};
use tokio::time::sleep;

pub(crate) const MS: Duration = Duration::from_millis(1);

pub(crate) struct Stand {
    pub(crate) server: RunningServer,
    pub(crate) gateway: Gateway,
    pub(crate) client: Client,
}

impl Stand {
    pub(crate) async fn new(text: &str) -> Self {
        Self::in_folder(Path::new(""), text).await
    }

    /// With a configuration in a directory, to which its paths are relative.
    pub(crate) async fn in_folder(folder: &Path, text: &str) -> Self {
        let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let config = GatewayConfig::parse(&folder.join("g.toml"), text).unwrap().unwrap();
        let prepared = PreparedGateway::new(config, &server).unwrap();
        let server = server.spawn().unwrap();
        let gateway = prepared.start().unwrap();
        let client = Client::connect(&server.url()).await.unwrap();
        Self { server, gateway, client }
    }

    pub(crate) async fn read(&self, name: &str) -> DataValue {
        self.client.read(&*format!("nsu=urn:taktwerk:gateway;s={name}")).await.unwrap()
    }

    /// Waits until a value matches.
    pub(crate) async fn until(&self, name: &str, what: impl Fn(&DataValue) -> bool) -> DataValue {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let value = self.read(name).await;
            if what(&value) {
                return value;
            }
            assert!(Instant::now() < end, "{name}: {value:?}\n{:?}", self.gateway.sources().views());
            sleep(10 * MS).await;
        }
    }

    pub(crate) async fn value(&self, name: &str, expected: impl Into<Variant>) {
        let expected = Some(expected.into());
        self.until(name, |value| value.value == expected && value.status() == StatusCode::GOOD).await;
    }

    /// Waits until a node exists.
    pub(crate) async fn until_there(&self, name: &str) {
        let end = Instant::now() + Duration::from_secs(20);
        let node = format!("nsu=urn:taktwerk:gateway;s={name}");
        while self
            .client
            .read(&*node)
            .await
            .is_ok_and(|value| value.status() == StatusCode::BAD_NODE_ID_UNKNOWN)
        {
            assert!(Instant::now() < end, "{name}: {:?}", self.gateway.sources().views());
            sleep(10 * MS).await;
        }
    }

    pub(crate) async fn write(&self, name: &str, value: impl Into<Variant>) -> Result<(), StatusCode> {
        let node = format!("nsu=urn:taktwerk:gateway;s={name}");
        self.client.write(&*node, value.into()).await.map_err(|error| error.status())
    }

    pub(crate) fn source(&self, name: &str) -> SourceView {
        self.gateway.sources().views().into_iter().find(|view| view.name == name).unwrap()
    }

    pub(crate) fn destination(&self, name: &str) -> DestinationView {
        self.gateway.destinations().views().into_iter().find(|view| view.name == name).unwrap()
    }

    /// Waits until a source has delivered so many values. On a busy machine the last one may be lost before it is read.
    pub(crate) async fn until_values(&self, name: &str, count: u32) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.source(name).statistics.values < u64::from(count) {
            assert!(Instant::now() < end, "{:?}", self.source(name));
            sleep(10 * MS).await;
        }
    }

    /// Waits until a destination matches.
    pub(crate) async fn until_destination(&self, name: &str, what: impl Fn(&DestinationView) -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !what(&self.destination(name)) {
            assert!(Instant::now() < end, "{:?}", self.destination(name));
            sleep(10 * MS).await;
        }
    }

    pub(crate) async fn end(self) {
        self.client.disconnect().await;
        drop(self.gateway);
        self.server.stop(Duration::from_secs(1));
    }
}
