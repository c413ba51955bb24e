//! Floods while regular clients log on: who is admitted or evicted, without counting as failed logins.

use super::*;
use crate::eviction::{Class, Kind};
use core::net::IpAddr;
use taktwerk_channel::OpenParams;
use taktwerk_crypto::NullProvider;

const FLOODER: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 66));

fn from(network: u8, host: u8) -> IpAddr {
    IpAddr::from([10, 1, network, host])
}

fn both(change: impl FnOnce(&mut ServerConfig)) -> Server {
    server_with(&[NONE, ENCRYPT], &tokens(), |config| {
        config.verifier = Some(Arc::new(Staff));
        config.allow_clear_passwords = true;
        change(config);
    })
}

impl Server {
    fn connect_from(&mut self, address: IpAddr) -> Client {
        self.from = Some(address);
        let client = self.connect_with(Arc::new(NullProvider), OpenParams::insecure(URL));
        self.from = None;
        client
    }

    fn created_from(&mut self, address: IpAddr, name: &str, security: Security) -> Party {
        self.from = Some(address);
        let party = Party::created(self, name, security);
        self.from = None;
        party
    }
}

/// Sends CreateSession repeatedly, in turns over these connections.
fn flood(server: &mut Server, connections: &mut [Client], count: usize) {
    let len = connections.len();
    for number in 0..count {
        // Whatever the result.
        let _ = connections[number % len].create(server);
    }
}

/// The flood comes from the address of the regular users with a certificate.
#[test]
fn sessions_that_are_never_activated_do_not_lock_out_clients() {
    let mut server = both(|config| config.limits.sessions_max = 200);
    let mut connections: Vec<Client> = (0..24).map(|_| server.connect_from(FLOODER)).collect();
    flood(&mut server, &mut connections, 1_000);
    for number in 0..15u8 {
        let mut certified = server.created_from(FLOODER, "client", ENCRYPT);
        let mut anonymous = server.connect_from(from(number, 1));
        anonymous.create(&mut server).unwrap();
        // 300 ms pass until the clients continue, and 300 sessions are created.
        for _ in 0..10 {
            server.pass(Duration::from_millis(30));
            flood(&mut server, &mut connections, 30);
        }
        certified.log_on(&mut server, "joe", "secret").unwrap();
        anonymous.activate(&mut server).unwrap();
    }
    let evictable = Arc::clone(server.shard.shared().evictable());
    assert_eq!(evictable.count(Kind::Session, Class::Signed), 0, "all are activated");
    // The flood has all but the reserved sessions, and the anonymous users have theirs of those.
    assert_eq!(server.shard.session_count(), 200 - 20 + 15);
}

/// Each session of the flood uses its own connection from its own address in the new clients' network.
#[test]
fn a_flood_from_many_addresses_of_a_network_does_not_lock_out_certificates() {
    let mut server = both(|config| {
        config.limits.sessions_max = 100;
        config.limits.connections_max = 120;
    });
    for round in 0..5u8 {
        let mut certified = server.created_from(from(0, 200 + round), "client", ENCRYPT);
        for number in 0..300u32 {
            let mut client = server.connect_from(from(0, (number % 200) as u8));
            let _ = client.create(&mut server);
            server.pass(Duration::from_millis(1));
        }
        certified.log_on(&mut server, "joe", "secret").unwrap();
    }
    assert!(server.shard.connection_count() <= 120);
    assert!(server.shard.shared().live().counters.evicted_connection_count.value() > 1_000);
}

/// Activated anonymous sessions cannot be evicted, and any client can have them.
#[test]
fn activated_anonymous_sessions_leave_some_for_certificates_and_known_addresses() {
    let mut server = both(|config| config.limits.sessions_max = 50);
    // A user logs on with a password, and logs off.
    let known = from(3, 3);
    let mut user = server.connect_from(known);
    user.create(&mut server).unwrap();
    let request = super::super::session::login(&mut user, "joe", "secret");
    user.call(&mut server, &request).unwrap();
    server.shard.closed(user.connection, server.now);
    let mut connections: Vec<Client> = (0..5).map(|_| server.connect_from(FLOODER)).collect();
    let mut count = 1;
    loop {
        let client = &mut connections[count % 5];
        if client.create(&mut server).is_err() {
            break;
        }
        client.activate(&mut server).unwrap();
        count += 1;
    }
    assert_eq!(count, 50 - 5);
    let mut certified = server.created_from(from(7, 7), "client", ENCRYPT);
    certified.log_on(&mut server, "joe", "secret").unwrap();
    let mut again = server.connect_from(known);
    again.create(&mut server).unwrap();
    again.activate(&mut server).unwrap();
    // Logging on as Anonymous has no benefit.
    let mut anonymous = server.connect_from(FLOODER);
    assert_eq!(anonymous.create(&mut server).unwrap_err(), StatusCode::BAD_TOO_MANY_SESSIONS);
}

/// A flood with a trusted certificate locks out neither other certificates nor clients without one.
#[test]
fn a_flood_by_a_trusted_application_does_not_lock_out_others() {
    let mut server = both(|config| {
        config.limits.sessions_max = 50;
        config.limits.sessions_per_connection_max = 100;
    });
    let mut insider = server.created_from(FLOODER, "insider", ENCRYPT);
    for _ in 0..60 {
        insider.create(&mut server).unwrap();
    }
    let mut certified = server.created_from(FLOODER, "client", ENCRYPT);
    let mut anonymous = server.connect_from(from(1, 1));
    anonymous.create(&mut server).unwrap();
    for _ in 0..200 {
        insider.create(&mut server).unwrap();
    }
    certified.log_on(&mut server, "joe", "secret").unwrap();
    anonymous.activate(&mut server).unwrap();
}

#[test]
fn evictions_do_not_count_as_failed_logins() {
    for is_connection in [false, true] {
        let mut server = both(|config| {
            config.limits.sessions_max = if is_connection { 100 } else { 1 };
            config.limits.connections_max = if is_connection { 1 } else { 100 };
        });
        let mut checks = VecDeque::new();
        let rejected = || server.shard.shared().live().counters.security_rejected_session_count.value();
        assert_eq!(rejected(), 0);
        // Far more often than the permitted failures.
        for round in 0..20 {
            let mut user = server.created_from(FLOODER, "client", NONE);
            let id = user.ask_plainly(&mut server, "joe", "secret", &mut checks);
            // The password is already being checked.
            assert_eq!(checks.len(), 1, "round {round}");
            let mut other = server.connect_from(from(round, 1));
            if !is_connection {
                other.create(&mut server).unwrap();
            }
            let told = user.answer(&mut server, id);
            assert!(told.is_none_or(|told| told == Err(StatusCode::BAD_SERVER_TOO_BUSY)), "{told:?}");
            assert!(server.run_check(&mut checks));
            server.shard.closed(other.connection, server.now);
            server.shard.closed(user.client.connection, server.now);
        }
        let mut user = server.created_from(FLOODER, "client", NONE);
        let id = user.ask_plainly(&mut server, "joe", "secret", &mut checks);
        assert!(server.run_check(&mut checks));
        assert_eq!(user.answer(&mut server, id), Some(Ok(())), "is a connection: {is_connection}");
        let counters = &server.shard.shared().live().counters;
        assert_eq!(counters.security_rejected_session_count.value(), 0);
    }
}

impl Party {
    /// Sends a login with an unencrypted password.
    fn ask_plainly(
        &mut self,
        server: &mut Server,
        name: &str,
        password: &str,
        checks: &mut VecDeque<Effect>,
    ) -> u32 {
        let request = super::super::session::login(&mut self.client, name, password);
        let id = self.client.send(server, ActivateSessionRequest::BINARY_ENCODING_ID, &request);
        server.run_all_but_checks(checks);
        self.client.drain(server);
        id
    }
}

#[test]
fn a_session_that_was_never_activated_ends_with_its_connection() {
    let mut server = both(|_| {});
    for _ in 0..10 {
        let mut client = server.connect_from(FLOODER);
        client.create(&mut server).unwrap();
        server.shard.closed(client.connection, server.now);
    }
    assert_eq!(server.shard.session_count(), 0);
    assert_eq!(server.shard.shared().live().counters.current_session_count.value(), 0);
    let evictable = server.shard.shared().evictable();
    assert_eq!(evictable.count(Kind::Session, Class::Unsigned), 0);
    assert_eq!(evictable.count(Kind::Connection, Class::Unsigned), 0);
}

/// A connection with a trusted certificate is not evicted by any number of others, half open or without security.
#[test]
fn connections_without_a_certificate_are_evicted_first() {
    let mut server = both(|config| {
        config.limits.connections_max = 40;
        config.limits.connections_per_address_max = 1_000;
    });
    let mut certified = server.created_from(FLOODER, "client", ENCRYPT);
    let mut quiet = server.connect_from(from(9, 9));
    for number in 0..500 {
        server.now.instant = server.now.instant + Duration::from_millis(20);
        server.from = Some(FLOODER);
        let mut client = server.dial(Arc::new(NullProvider), OpenParams::insecure(URL));
        server.from = None;
        if number % 2 == 0 {
            client.exchange(&mut server);
        }
        client.drain(&mut server);
    }
    assert_eq!(server.shard.connection_count(), 40);
    certified.log_on(&mut server, "joe", "secret").unwrap();
    quiet.create(&mut server).unwrap();
    quiet.activate(&mut server).unwrap();
}

/// Handshakes of many addresses are in progress; a client from elsewhere is still served.
#[test]
fn handshakes_of_a_flood_leave_capacity_for_others() {
    let mut server = both(|config| {
        config.limits.handshakes_max = 32;
        config.limits.connections_max = 1_000;
    });
    let mut strangers = Vec::new();
    for number in 0..100u8 {
        server.from = Some(from(number % 2, number));
        let provider = Arc::new(DummyProvider::new("stranger", 2048));
        let params = OpenParams {
            policy: ENCRYPT.0,
            mode: ENCRYPT.1,
            server_certificate: Some(certificate("server", 2048).into()),
            ..OpenParams::insecure(URL)
        };
        let mut client = server.dial(provider, params);
        client.exchange(&mut server);
        client.exchange(&mut server);
        strangers.push(client);
    }
    server.from = None;
    assert!(server.shard.shared().live().counters.shed_handshake_count.value() >= 70);
    // Those in progress do not finish before this one arrives.
    assert!((24..32).contains(&server.used(Category::HandshakeCount)));
    let mut certified = server.created_from(from(77, 1), "client", ENCRYPT);
    certified.log_on(&mut server, "joe", "secret").unwrap();
}
