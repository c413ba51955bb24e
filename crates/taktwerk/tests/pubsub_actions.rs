//! Actions over a real network: asked for once, executed once, answered.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may, and says why it is skipped

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use taktwerk::pubsub::{ActionRequestor, ActionResponder, SecurityKeys, SecurityMode, StaticKeys};
use taktwerk::{StatusCode, Variant};

const PATIENCE: Duration = Duration::from_secs(20);

fn free_url() -> String {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    format!("opc.udp://127.0.0.1:{port}")
}

fn keys() -> StaticKeys {
    let keys = SecurityKeys {
        security_policy_uri: taktwerk_crypto::PubSubSecurityPolicy::Aes256Ctr.uri().to_owned(),
        first_token_id: 1,
        keys: vec![vec![7; 68]; 2],
        time_to_next_key: 3.6e6,
        key_lifetime: 3.6e6,
        current_token_id: None,
    };
    StaticKeys::new().with("plant", keys)
}

fn double(inputs: Vec<Variant>) -> Result<Vec<Variant>, StatusCode> {
    match inputs.first() {
        Some(Variant::Double(value)) => Ok(vec![(value * 2.0).into(), "done".into()]),
        _ => Err(StatusCode::BAD_INVALID_ARGUMENT),
    }
}

#[test]
fn an_action_is_asked_for_executed_once_and_answered() {
    let (there, here) = (free_url(), free_url());
    let refused = ActionResponder::builder(&there, 7).action(1, 1, double).start().unwrap_err();
    assert_eq!(refused.status(), StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
    let executed = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&executed);
    let interval = Duration::from_millis(5);
    let _responder = ActionResponder::builder(&there, 7)
        .security(SecurityMode::SignAndEncrypt, "plant", keys())
        .interval(interval)
        .action(1, 1, double)
        .action(1, 2, move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            // Longer than several repetitions of the request.
            std::thread::sleep(Duration::from_millis(50));
            Ok(Vec::new())
        })
        .start()
        .unwrap();
    let requestor = ActionRequestor::builder(&there, 9)
        .response_address(&here)
        .security(SecurityMode::SignAndEncrypt, "plant", keys())
        .interval(interval)
        .start()
        .unwrap();
    let invoke = |target, inputs| requestor.invoke(7, 1, target, inputs, PATIENCE);
    assert_eq!(invoke(1, vec![21.0.into()]), Ok(vec![42.0.into(), "done".into()]));
    assert_eq!(invoke(1, vec!["no number".into()]), Err(StatusCode::BAD_INVALID_ARGUMENT));
    assert_eq!(invoke(3, Vec::new()), Err(StatusCode::BAD_NOT_FOUND));
    assert_eq!(invoke(2, Vec::new()), Ok(Vec::new()));
    assert_eq!(executed.load(Ordering::Relaxed), 1);
    // Several at the same time, from several threads.
    std::thread::scope(|scope| {
        for number in 0..8 {
            let requestor = &requestor;
            scope.spawn(move || {
                let value = f64::from(number);
                let results = requestor.invoke(7, 1, 1, vec![value.into()], PATIENCE);
                assert_eq!(results, Ok(vec![(value * 2.0).into(), "done".into()]));
            });
        }
    });
    // Nobody there.
    let nobody = requestor.invoke(8, 1, 1, vec![1.0.into()], Duration::from_millis(50));
    assert_eq!(nobody, Err(StatusCode::BAD_TIMEOUT));
    // Without the keys nobody is heard.
    let stranger = ActionRequestor::builder(&there, 10).response_address(&free_url()).allow_unsecured();
    let stranger = stranger.interval(interval).start().unwrap();
    let unheard = stranger.invoke(7, 1, 2, Vec::new(), Duration::from_millis(100));
    assert_eq!((unheard, executed.load(Ordering::Relaxed)), (Err(StatusCode::BAD_TIMEOUT), 1));
}

/// Over a broker: mosquitto, where it is installed.
#[cfg(feature = "mqtt")]
#[test]
fn an_action_goes_over_a_broker() {
    use std::net::{TcpListener, TcpStream};
    use std::process::{Child, Command, Stdio};
    struct Broker(Child);
    impl Drop for Broker {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let known = ["/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto", "/usr/bin/mosquitto"];
    let Some(program) = known.iter().find(|path| std::path::Path::new(path).is_file()) else {
        println!("skipped: there is no mosquitto");
        return;
    };
    let mut command = Command::new(program);
    command.args(["-p", &port.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    let _broker = Broker(command.spawn().unwrap());
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let url = format!("mqtt://127.0.0.1:{port}");
    let interval = Duration::from_millis(20);
    let secured = SecurityMode::SignAndEncrypt;
    let _responder = ActionResponder::builder(&url, 7)
        .security(secured, "plant", keys())
        .interval(interval)
        .action(1, 1, double)
        .start()
        .unwrap();
    let unnamed = ActionRequestor::builder(&url, 9).security(secured, "plant", keys()).start();
    assert!(unnamed.unwrap_err().to_string().contains("responder()"));
    let requestor = ActionRequestor::builder(&url, 9)
        .responder(7)
        .security(secured, "plant", keys())
        .interval(interval)
        .start()
        .unwrap();
    let results = requestor.invoke(7, 1, 1, vec![21.0.into()], PATIENCE);
    assert_eq!(results, Ok(vec![42.0.into(), "done".into()]));
}
