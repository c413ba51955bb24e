//! Runs the targets with a stable compiler: committed seeds, and reproducible mutations of them.

use crate::{TARGETS, Target};
use std::path::Path;
use std::time::{Duration, Instant};
use taktwerk_crypto::{Entropy, SeededEntropy};

/// Mutations per target, so that all targets together take some seconds.
const MUTATIONS: usize = 2_000;
/// Time limit of slow targets.
const PATIENCE: Duration = Duration::from_secs(2);

fn seeds(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(name);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|path| (path.display().to_string(), std::fs::read(path).unwrap())).collect()
}

/// Runs a target and reports the input if it panics.
fn run(target: Target, what: &str, data: &[u8]) {
    let result = std::panic::catch_unwind(|| target(data));
    if let Err(panic) = result {
        eprintln!("input: {what}\nbytes: {data:02x?}");
        std::panic::resume_unwind(panic);
    }
}

fn mutate(data: &mut Vec<u8>, other: &[u8], entropy: &mut SeededEntropy) {
    for _ in 0..=entropy.below(4) {
        let at = entropy.below(data.len() as u64 + 1) as usize;
        match entropy.below(6) {
            0 => data.truncate(at),
            1 => data.insert(at, entropy.next_u64() as u8),
            2 => {
                if let Some(byte) = data.get_mut(at) {
                    *byte ^= 1 << entropy.below(8);
                }
            }
            3 => {
                if let Some(four) = data.get_mut(at..at + 4) {
                    let values = [u32::MAX, i32::MAX as u32, i32::MIN as u32, 0, 1, 0x1_0000];
                    four.copy_from_slice(&values[entropy.below(6) as usize].to_le_bytes());
                }
            }
            4 => {
                if let Some(byte) = data.get_mut(at) {
                    *byte = entropy.next_u64() as u8;
                }
            }
            _ => {
                let from = entropy.below(other.len() as u64 + 1) as usize;
                let len = entropy.below(33) as usize;
                let piece: Vec<u8> = other.iter().skip(from).take(len).copied().collect();
                data.splice(at..at, piece);
            }
        }
    }
}

fn replay(name: &str) {
    let (_, target) = *TARGETS.iter().find(|entry| entry.0 == name).unwrap();
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "{name} has no seeds");
    for (what, data) in &seeds {
        run(target, what, data);
    }
    let start = Instant::now();
    let mut entropy = SeededEntropy::new(name.bytes().map(u64::from).sum());
    for number in 0..MUTATIONS {
        if start.elapsed() > PATIENCE {
            break;
        }
        let mut pick = || &seeds[entropy.below(seeds.len() as u64) as usize].1;
        let (mut data, other) = (pick().clone(), pick());
        mutate(&mut data, other, &mut entropy);
        run(target, &format!("{name}, mutation {number}"), &data);
    }
}

macro_rules! replays {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn every_target_is_replayed_and_has_a_binary() {
            let names: Vec<&str> = TARGETS.iter().map(|entry| entry.0).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
            for name in names {
                let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fuzz_targets/{name}.rs"));
                assert!(file.exists(), "{}", file.display());
            }
        }
    };
}

replays! {
    decode_variant, decode_any_structure, decode_extension_object, decode_dynamic_structure, chunk_reader_server, chunk_reader_client,
    server_bytes, server_requests, server_sessions, alarm_methods, alarm_stored, event_filters, file_methods, durable_log, history_stored, history_requests, query_requests, client_responses, client_secured, secure_chunk, encrypted_secret, jwt, nodeset_xml, node_id_text, event_condition, numeric_range,
    x509_certificate, x509_revocation_list, x509_request, certificate_validation,
    pubsub_uadp, pubsub_json, pubsub_discovery, pubsub_action, pubsub_configuration,
    gateway_queue, gateway_mqtt, gateway_program, gateway_text, gateway_sparkplug, gateway_line, gateway_replay, gateway_http, gateway_can, gateway_modbus, gateway_configuration,
}
