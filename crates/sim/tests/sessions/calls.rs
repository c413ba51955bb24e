//! Opening a session and reading blocks over links, with processors and certificate authorities.

use core::time::Duration;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_model::HostProfile;
use taktwerk_model::host::Cost;
use taktwerk_sim::Transport;
use taktwerk_sim::calls::{Block, Setup, call};
use taktwerk_sim::network::soap::Soap;
use taktwerk_sim::publishing::SimulateError;

const SECURED: (SecurityPolicy, MessageSecurityMode) =
    (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt);

fn setup(link: &str) -> Setup {
    Setup::new(link.parse().unwrap())
}

/// Equal except for an acknowledgement (60 bytes at 2 Mbit/s), which travels with data if that is sent soon enough.
fn is_about(one: Duration, other: Duration) -> bool {
    one.abs_diff(other) <= Duration::from_micros(240) * 3
}

#[test]
fn time_is_the_sum_of_line_and_processor_times() {
    let blocks = [Block::new(1, 4), Block::new(256, 4), Block::new(1, 1024)];
    let slow = call(&setup("ppp-2m"), &blocks).unwrap();
    let fast = call(&setup("ppp-10m"), &blocks).unwrap();
    assert!(slow.session_up > fast.session_up * 4 && slow.session_up < fast.session_up * 6);
    // 256 ReadValueIds of 18 bytes and values of 6 bytes at 2 Mbit/s: 24.6 ms, plus headers.
    assert!((0.025..0.029).contains(&slow.round_trips[1].as_secs_f64()), "{slow:?}");
    assert!((0.005..0.007).contains(&slow.round_trips[2].as_secs_f64()), "{slow:?}");
    let mut profile = HostProfile::free(1);
    profile.server.insert("requests".into(), 2e6);
    let server = Some(profile);
    let priced = call(&Setup { server, ..setup("ppp-2m") }, &blocks).unwrap();
    for (with, without) in priced.round_trips.iter().zip(&slow.round_trips) {
        assert!(is_about(*with, *without + Duration::from_millis(2)), "{priced:?} {slow:?}");
    }
    assert_eq!(call(&setup("ppp-2m"), &blocks), Ok(slow));
}

#[test]
fn pipelined_requests_use_both_directions() {
    let whole = Block::new(4096, 8);
    let parts = Block { per_request: 512, ..whole };
    let took = call(&setup("ppp-2m"), &[whole, parts]).unwrap().round_trips;
    assert!(took[1].as_secs_f64() < took[0].as_secs_f64() * 0.75, "{took:?}");
}

#[test]
fn certificates_and_validation_cost_time_at_both_ends() {
    let plain = call(&setup("ppp-2m"), &[]).unwrap().session_up;
    let secured = Setup { security: SECURED, ..setup("ppp-2m") };
    let short = call(&Setup { certificate_len: 0, ..secured.clone() }, &[]).unwrap().session_up;
    let long = call(&secured, &[]).unwrap().session_up;
    assert!(plain < short && short + Duration::from_millis(12) < long, "{plain:?} {short:?} {long:?}");
    let mut profile = HostProfile::free(1);
    for (jobs, name) in [(&mut profile.jobs, "open-channel"), (&mut profile.client_jobs, "open-chunk")] {
        jobs.insert(format!("{name}/Basic256Sha256"), Cost::Fixed(3e9));
    }
    let slow = Setup { server: Some(profile.clone()), client: Some(profile), ..secured };
    let slow = call(&slow, &[]).unwrap().session_up;
    assert!(is_about(slow, long + Duration::from_secs(6)), "{slow:?} {long:?}");
}

#[test]
fn soap_takes_longer() {
    let soap = Setup { transport: Transport::Soap(Soap::default()), ..setup("ppp-2m") };
    let (one, other) = (call(&setup("ppp-2m"), &[Block::new(1, 4)]), call(&soap, &[Block::new(1, 4)]));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert!(one.session_up < other.session_up && one.round_trips[0] < other.round_trips[0]);
}

#[test]
fn invalid_settings_are_refused() {
    let key = |block| match call(&setup("ppp-2m"), &[block]) {
        Err(SimulateError::Invalid { key, .. }) => key,
        other => panic!("{other:?}"),
    };
    assert_eq!(key(Block::new(0, 4)), "variables");
    assert_eq!(key(Block::new(1, 100 << 20)), "value_len");
    let mut profile = HostProfile::free(1);
    profile.server.insert("widgets".into(), 1.0);
    let error = call(&Setup { server: Some(profile), ..setup("ppp-2m") }, &[]).unwrap_err();
    assert!(error.to_string().contains("widgets"), "{error}");
}
