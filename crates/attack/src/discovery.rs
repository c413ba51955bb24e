//! Discovery services for unknown clients: size and rate of the responses.

use crate::report::{Findings, Tally};
use crate::wire::{Wire, WireError};
use crate::{Limits, Run};
use std::time::{Duration, Instant};
use taktwerk_schema::service::Request;
use taktwerk_schema::{FindServersRequest, GetEndpointsRequest};
use taktwerk_types::{Encode, StatusCode};

/// Longest response to an unknown client, in bytes.
const REPLY_MAX: u64 = 64 << 10;

pub(crate) fn ask(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let mut wire = Wire::open(run.address, run.source(0, 1)).map_err(|error| error.to_string())?;
    let endpoints =
        GetEndpointsRequest { endpoint_url: "opc.tcp://localhost:4840".into(), ..Default::default() };
    let servers =
        FindServersRequest { endpoint_url: "opc.tcp://localhost:4840".into(), ..Default::default() };
    let first = meter(&mut wire, &endpoints)?;
    let second = meter(&mut wire, &servers)?;
    for (name, (asked, answered)) in [("GetEndpoints", first), ("FindServers", second)] {
        let factor = answered as f64 / asked as f64;
        findings.fact(name, format!("{asked} bytes ask, {answered} bytes answer: {factor:.1} times"));
        findings.claim(format!("{name} answers at most {REPLY_MAX} bytes"), answered <= REPLY_MAX);
    }
    let mut tally = Tally::default();
    let (mut good, mut refused) = (0u64, 0u64);
    let began = Instant::now();
    while began.elapsed() < run.duration && !run.is_over() {
        match wire.call(&mut endpoints.clone()) {
            Ok(_) => good += 1,
            Err(WireError::Fault(status)) => {
                refused += u64::from(status == StatusCode::BAD_SERVER_TOO_BUSY);
                tally.status(Some(status));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    findings.fact("answered from one address", format!("{:.0} per second", good as f64 / seconds));
    findings.fact("refused", tally);
    if run.limits == Limits::Strangers {
        // The rate and the initial burst.
        let allowed = 1_000.0 * seconds + 1_000.0;
        findings.claim("an address gets at most its rate", good as f64 <= allowed + 10.0);
        let asked = (good + refused) as f64;
        let fast = asked > allowed || run.duration < Duration::from_secs(2);
        findings.claim(
            "above the rate, the server answers that it is busy",
            !fast || refused > 0 || asked <= allowed,
        );
    }
    Ok(findings)
}

/// Size of a request and of its response in bytes, with headers.
fn meter<R: Request + Clone + Encode>(wire: &mut Wire, request: &R) -> Result<(u64, u64), String> {
    let mut request = request.clone();
    let before = wire.received;
    wire.call(&mut request).map_err(|error| error.to_string())?;
    let asked = 24 + 4 + request.encode_to_vec().len() as u64;
    Ok((asked, wire.received - before))
}
