//! Sessions that reconnect to another shard, through a proxy that can cut connections.

use crate::common::{monitor, start, wait_until};
use core::net::SocketAddr;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use taktwerk_client::{Event, Restored, SubscriptionEvent, SubscriptionParams, Target};
use taktwerk_net::ServerOptions;
use taktwerk_net::client::{AsyncClient, SubscriptionMessage};

/// Forwards bytes until it is told to cut the connection.
struct Proxy {
    address: SocketAddr,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    fn new(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let all = Arc::clone(&open);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(to).unwrap();
                all.lock().unwrap().extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
                copy(client.try_clone().unwrap(), server.try_clone().unwrap());
                copy(server, client);
            }
        });
        Self { address, open }
    }

    fn cut(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            // One of the two ends may already be closed.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
    });
}

#[test]
fn a_session_continues_on_any_shard() {
    let server = start(5, 2, ServerOptions::default());
    let direct = server.running.addresses()[0];
    let proxy = Proxy::new(direct);
    let target = Target::direct(&format!("opc.tcp://{}", proxy.address)).unwrap();
    let connections = || server.running.connections();
    // The client runs only while this thread awaits, so it cannot reconnect before the other connections are made.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, _, mut events) = AsyncClient::connect(Arc::default(), target).await.unwrap();
        let params = SubscriptionParams { publishing_interval_ms: 20.0, ..Default::default() };
        let (subscription, mut messages) = client.create_subscription(params).await.unwrap();
        client.add_items(subscription, (0..5).map(|number| monitor(number, 20.0))).await.unwrap();
        let mut others = Vec::new();
        for round in 1..=6 {
            server.variables[0].set_at(f64::from(round), taktwerk_net::clock::wall());
            let mut seen = false;
            while !seen {
                match messages.next().await.unwrap() {
                    SubscriptionMessage::DataChanges { values, .. } => {
                        let wanted = Some(f64::from(round).into());
                        seen = values.iter().any(|(handle, value)| *handle == 0 && value.value == wanted);
                    }
                    SubscriptionMessage::State(SubscriptionEvent::DataLost { from, to }) => {
                        panic!("{from} to {to} are lost")
                    }
                    _ => {}
                }
            }
            proxy.cut();
            wait_until("the connection is gone", || connections() == others.len());
            // New connections go to the shard with the fewest, so each of these changes which one that is.
            others.push(TcpStream::connect(direct).unwrap());
            wait_until("the other one is there", || connections() == others.len());
            loop {
                if let Event::Restored(how, _) = events.next().await.unwrap() {
                    assert_eq!(how, Restored::SameSession, "round {round}");
                    break;
                }
            }
        }
        client.disconnect().await;
    });
}
