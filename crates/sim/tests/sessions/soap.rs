//! The same cores over SOAP: everything works, but takes more bytes and time.

use crate::common::*;
use core::time::Duration;
use taktwerk_schema::ReadRequest;
use taktwerk_sim::network::soap::{Body, Soap};
use taktwerk_sim::plant::{monitor, value_of};
use taktwerk_sim::{Path, Route, Side, Subscriber, Transport};

fn route(transport: Transport) -> Route {
    let path = Path { rate: Some(2_000_000), ..Path::IDEAL.with_delay(millis(1)) };
    Route { transport, ..Route::symmetric(path) }
}

/// The time until the session is up, the time of a Read, and the number of bytes that the client sent.
fn run(transport: Transport) -> (Duration, Duration, u64) {
    let mut site = Site::new(1, 1);
    let start = site.world.now().instant;
    let client = site.client(route(transport), Subscriber::default());
    site.until_up(client);
    let up = site.world.now().instant.since(start);
    site.run(secs(5));
    let asked = site.world.now().instant;
    site.world
        .request(client, ReadRequest { nodes_to_read: vec![value_of(0)], ..Default::default() })
        .unwrap();
    site.until("the answer", secs(10), |world| world.client(client).waiting() == 0);
    let took = site.world.now().instant.since(asked);
    let end =
        taktwerk_sim::network::End { link: site.world.client(client).link().unwrap(), side: Side::Client };
    (up, took, site.world.network().traffic(end).wire_bytes)
}

#[test]
fn soap_takes_more_bytes_and_time_and_xml_most() {
    let tcp = run(Transport::UaTcp);
    let soap = run(Transport::Soap(Soap::default()));
    let xml = run(Transport::Soap(Soap { body: Body::Xml { factor_percent: 800 }, ..Soap::default() }));
    let slow = run(Transport::Soap(Soap { per_message: millis(5), ..Soap::default() }));
    assert!(tcp.0 < soap.0 && soap.0 < xml.0, "{tcp:?} {soap:?} {xml:?}");
    assert!(tcp.1 < soap.1 && soap.1 < xml.1, "{tcp:?} {soap:?} {xml:?}");
    assert!(tcp.2 < soap.2 && soap.2 < xml.2, "{tcp:?} {soap:?} {xml:?}");
    // Encoding and decoding of a request and a response.
    assert_eq!(slow.1, soap.1 + millis(20));
}

#[test]
fn subscriptions_and_cuts_work_over_soap() {
    let mut site = Site::new(2, 1);
    let soap = Transport::Soap(Soap { per_message: millis(1), per_byte_ps: 20_000, ..Soap::default() });
    let client = site.client(route(soap), lasting_subscription(100.0, vec![monitor(0, 100)]));
    site.until_up(client);
    site.run(secs(2));
    for value in 1..=60i64 {
        site.write(0, value);
        site.run(millis(100));
        if value % 20 == 10 {
            site.world.cut(client);
        }
    }
    site.run(secs(20));
    assert_eq!(numbers(site.app(client), 0), (0..=60).collect::<Vec<_>>());
}
